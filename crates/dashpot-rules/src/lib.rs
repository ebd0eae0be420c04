//! Rule files: which limits apply to a request, and by what it is counted.

mod describe;
mod fact;
mod identity;

pub use describe::{HeaderStyle, Headers, OnDeny};
pub use fact::{Fact, ParseFactError};
pub use identity::{Identity, KeyHolder, Keys, Trust};
