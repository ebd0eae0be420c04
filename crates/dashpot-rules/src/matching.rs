//! Which rules a request matches.

mod covers;
mod host;
mod index;
mod method;
mod path;

pub(crate) use host::HostPattern;
pub(crate) use index::Index;
pub(crate) use method::{MethodName, Methods};
pub(crate) use path::{PathPattern, normal, unresolved};

use crate::{Descriptor, Fact};

/// What must hold for a request to match. Nothing said is nothing asked.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) methods: Option<Methods>,
    pub(crate) paths: Vec<PathPattern>,
    pub(crate) hosts: Vec<HostPattern>,
    /// What must be known.
    pub(crate) facts: Vec<(Fact, Wanted)>,
    /// What must not be known.
    pub(crate) without: Vec<Fact>,
}

/// What a fact must be. It may be a secret, so it is not for everybody to see.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Present.
    Any,
    /// This.
    Value(String),
}

impl Wanted {
    fn is_met(&self, value: Option<&[u8]>) -> bool {
        match (self, value) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::Value(wanted), Some(value)) => wanted.as_bytes() == value,
        }
    }
}

impl Condition {
    /// Whether all but host and path hold, which the index has seen to.
    pub(crate) fn rest_holds(&self, method: &str, request: &impl Descriptor) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(method))
            && self.facts.iter().all(|(fact, wanted)| wanted.is_met(request.fact(fact).as_deref()))
            && self.without.iter().all(|fact| request.fact(fact).is_none())
    }

    /// Whether it covers all requests.
    pub(crate) fn is_everything(&self) -> bool {
        let anywhere = self.paths.is_empty() || self.paths.iter().any(PathPattern::is_everything);
        let anybody = self.facts.is_empty() && self.without.is_empty();
        self.methods.is_none() && anywhere && self.hosts.is_empty() && anybody
    }
}
