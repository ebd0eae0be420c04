//! JSON Web Tokens: who signed them is believed.

#[cfg(feature = "jwt")]
mod verify;
#[cfg(not(feature = "jwt"))]
mod without;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

#[cfg(feature = "jwt")]
pub use verify::Tokens;
#[cfg(not(feature = "jwt"))]
pub use without::Tokens;

/// How tokens are checked.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenSettings {
    /// The one algorithm that is accepted: `HS256`, `HS384`, `HS512`, `RS256`, `RS384`, `RS512`,
    /// `PS256`, `PS384`, `PS512`, `ES256`, `ES384` or `EdDSA`.
    pub algorithm: String,
    /// The secret for `HS…`, else the public key in PEM.
    pub key: Vec<u8>,
    /// Who has to have issued a token, if it matters.
    pub issuer: Option<String>,
    /// Whom a token has to be for. If left out, tokens for anybody are accepted: fine where the key
    /// signs for one service only.
    pub audience: Option<String>,
    /// How far the clocks of others may be off; at most an hour.
    pub leeway: Duration,
}

impl TokenSettings {
    /// Tokens of any issuer, for any audience, with a minute of leeway.
    #[must_use]
    pub fn new(algorithm: impl Into<String>, key: impl Into<Vec<u8>>) -> Self {
        Self {
            algorithm: algorithm.into(),
            key: key.into(),
            issuer: None,
            audience: None,
            leeway: Duration::from_secs(60),
        }
    }
}

impl fmt::Debug for TokenSettings {
    /// Without the key, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSettings")
            .field("algorithm", &self.algorithm)
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .field("leeway", &self.leeway)
            .finish_non_exhaustive()
    }
}

/// What a token says that was found to be good.
#[derive(Clone, PartialEq, Eq)]
pub struct Claims(Map<String, Value>);

impl Claims {
    /// A claim that is a text, a number or a boolean, and not empty.
    ///
    /// `a.b` is the claim of that name if there is one, as there is in `https://example.com/plan`,
    /// else the field `b` of the claim `a`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut path = name.split('.');
        let by_path = || {
            let first = self.0.get(path.next()?)?;
            path.try_fold(first, |value, name| value.as_object()?.get(name))
        };
        match self.0.get(name).or_else(by_path)? {
            Value::String(text) => (!text.is_empty()).then_some(Cow::Borrowed(text)),
            Value::Number(number) => Some(Cow::Owned(number.to_string())),
            Value::Bool(truth) => Some(Cow::Borrowed(if *truth { "true" } else { "false" })),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

impl fmt::Debug for Claims {
    /// The names alone; what they say is about somebody.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claims ")?;
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Why tokens cannot be checked as told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// There is no such algorithm.
    #[error(
        "`{0}` is not an algorithm tokens are checked with; use HS256, HS384, HS512, RS256, RS384, \
         RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA"
    )]
    Algorithm(String),
    /// The secret can be guessed.
    #[error(
        "the secret has {length} bytes, few enough to be guessed; use 32 or more, as from \
         `openssl rand -hex 32`"
    )]
    ShortSecret {
        /// Its length.
        length: usize,
    },
    /// The secret is a key in PEM, likely one that everybody has.
    #[error(
        "the secret for {algorithm} is a key in PEM; if tokens are signed with a private key, the \
         algorithm is one of RS…, PS…, ES… or EdDSA"
    )]
    PemAsSecret {
        /// What it was meant for.
        algorithm: String,
    },
    /// The key cannot be read.
    #[error(
        "the key for {algorithm} has to be one public key in PEM, beginning with `-----BEGIN PUBLIC \
         KEY-----`; `openssl pkey -in private.pem -pubout` makes it of a private key, `openssl x509 \
         -in certificate.pem -pubkey -noout` of a certificate"
    )]
    Pem {
        /// What it was meant for.
        algorithm: String,
    },
    /// The key is one of another algorithm.
    #[error("the key is not one for {algorithm}, which needs {needs}")]
    OtherKey {
        /// What it was meant for.
        algorithm: String,
        /// The key it needs.
        needs: &'static str,
    },
    /// With so much leeway, no token would ever expire.
    #[error("a leeway of {} s is more than an hour; make it a minute", .0.as_secs())]
    Leeway(Duration),
    /// This program cannot.
    #[error("this program was built without the `jwt` feature; build it with `--features jwt`")]
    NotBuilt,
}

/// Why a token is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenRefusal {
    /// It has not the form of one.
    #[error("it is no token")]
    Malformed,
    /// It names another algorithm, or none.
    #[error("the token is not signed with the algorithm that was agreed on")]
    Algorithm,
    /// It asks for something that is not known here.
    #[error("the token asks for an extension that is not known here")]
    Extension,
    /// Somebody else signed it, or it was changed.
    #[error("the signature is wrong")]
    Signature,
    /// It was good once.
    #[error("the token expired")]
    Expired,
    /// It will be good.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// Something is not in it.
    #[error("the token has no usable `{0}`")]
    Missing(&'static str),
    /// Somebody else issued it.
    #[error("the token is of another issuer")]
    Issuer,
    /// It is for somebody else.
    #[error("the token is for another audience")]
    Audience,
}
