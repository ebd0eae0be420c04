//! Why a fact is what it is, in words.

use dashpot_rules::{Descriptor, Fact, KeyHolder, Trust};

use super::HttpDescriptor;

impl HttpDescriptor<'_> {
    pub(super) fn reason(&self, fact: &Fact) -> String {
        if self.told.is_some_and(|told| told.get(fact).is_some()) {
            return "the application says so".to_owned();
        }
        let identity = self.identity();
        match fact {
            Fact::Ip => match self.client() {
                Some(client) => client.why.to_string(),
                None => "nobody says who connected; give the server's requests a peer".to_owned(),
            },
            Fact::User => self.reason_of(identity.user.as_ref(), |holder| holder.user.is_some()),
            Fact::Tier => {
                let says = |holder: &KeyHolder| holder.tier.is_some();
                let is_told = self.believed(identity.tier.as_ref()).is_some();
                let reason = self.reason_of(identity.tier.as_ref(), says);
                match is_told || self.holder().is_some_and(says) {
                    false if identity.default_tier.is_some() => format!("the default; {reason}"),
                    _ => reason,
                }
            }
            Fact::ApiKey => self.reason_of(identity.api_key.as_ref(), |_| true),
            Fact::Jwt(_) => self.reason_of_claim(),
            Fact::Custom(_) => "the application does not say".to_owned(),
            Fact::Json(_) | Fact::Form(_) if self.fact(fact).is_none() => {
                "not in the body, or the body is too long or of another kind".to_owned()
            }
            _ if self.fact(fact).is_none() => "not in the request".to_owned(),
            _ => "as the request says".to_owned(),
        }
    }

    fn reason_of(&self, source: Option<&Fact>, says: impl Fn(&KeyHolder) -> bool) -> String {
        if self.believed(source).is_some() {
            return match source {
                Some(Fact::Jwt(_)) => "a verified token says so".to_owned(),
                _ => "a trusted proxy says so".to_owned(),
            };
        }
        if self.holder().is_some_and(says) {
            return "the key is in the key file".to_owned();
        }
        match source {
            None => "nothing says where it is told".to_owned(),
            Some(Fact::Jwt(_)) => self.reason_of_claim(),
            Some(source) if self.raw(source).is_none() => format!("no {source} in the request"),
            Some(source) => match self.identity().trust {
                Trust::Nobody => format!("{source} is not believed: nobody is trusted"),
                _ => format!("{source} is not believed: the peer is no trusted proxy"),
            },
        }
    }

    fn reason_of_claim(&self) -> String {
        match self.claims() {
            None => "no token in the request".to_owned(),
            Some(Ok(_)) => "a verified token says so, or does not say".to_owned(),
            Some(Err(refusal)) => refusal.to_string(),
        }
    }
}
