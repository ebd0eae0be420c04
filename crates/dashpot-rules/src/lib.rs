//! Rule files: which limits apply to a request, and by what it is counted.

mod describe;
mod fact;
mod identity;
mod token;

pub use describe::{HeaderStyle, Headers, OnDeny};
pub use fact::{Fact, ParseFactError};
pub use identity::{Identity, KeyHolder, Keys, Trust};
pub use token::{Claims, TokenError, TokenRefusal, TokenSettings, Tokens};
