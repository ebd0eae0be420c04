//! dashpot for HTTP.

mod fields;
mod request_body;
mod response_body;

pub use request_body::RequestBody;
pub use response_body::ResponseBody;
