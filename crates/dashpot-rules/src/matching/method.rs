//! Methods.

use std::str::FromStr;

use crate::config::{Wrong, is_token};

/// A method, as in `POST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MethodName(pub(crate) String);

impl FromStr for MethodName {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_token(text) {
            return Ok(Self(text.to_ascii_uppercase()));
        }
        Err(Wrong(format!("`{text}` is not a method; write one as in \"POST\"")))
    }
}

/// Some methods. GET covers HEAD: servers answer it by the same code, and it would be a way around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Methods(Vec<String>);

impl Methods {
    pub(crate) fn new(names: impl IntoIterator<Item = MethodName>) -> Self {
        Self(names.into_iter().map(|name| name.0).collect())
    }

    pub(crate) fn contains(&self, method: &str) -> bool {
        self.0.iter().any(|name| name == method || (name == "GET" && method == "HEAD"))
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }
}
