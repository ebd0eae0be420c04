//! No tokens, in a program that was built without them.

use std::convert::Infallible;

use dashpot::Timestamp;

use super::{Claims, TokenError, TokenRefusal, TokenSettings};

/// Checks tokens; not in this program, which was built without the `jwt` feature. There is none of
/// these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens(Infallible);

impl Tokens {
    /// Says that this program was built without the `jwt` feature.
    ///
    /// # Errors
    ///
    /// Always.
    pub const fn new(_: &TokenSettings) -> Result<Self, TokenError> {
        Err(TokenError::NotBuilt)
    }

    /// What a token says, if it is good now.
    ///
    /// # Errors
    ///
    /// Why it is not believed.
    pub const fn claims(&self, _: &str) -> Result<Claims, TokenRefusal> {
        match self.0 {}
    }

    /// What a token says, if it is good at this moment.
    ///
    /// # Errors
    ///
    /// Why it is not believed.
    pub const fn claims_at(&self, _: &str, _: Timestamp) -> Result<Claims, TokenRefusal> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_tokens_is_told_what_to_do() {
        let error = Tokens::new(&TokenSettings::new("HS256", "x")).unwrap_err();
        assert!(error.to_string().contains("`jwt` feature"), "{error}");
    }
}
