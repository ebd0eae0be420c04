//! Identity: whom to believe.

use std::num::NonZeroU8;
use std::str;

use ipnet::IpNet;

use super::{Compiler, list, set};
use crate::Fact;
use crate::config::{IdentitySection, JwtSection, KeysConfig};
use crate::identity::{Identity, KeyHolder, Keys, Trust};
use crate::lists::canonical;
use crate::read::{PARTS, read_file};
use crate::source::{Source, Span, Written};
use crate::token::{TokenError, TokenSettings, Tokens};

impl Compiler<'_> {
    pub(super) fn identity(
        &mut self,
        section: Option<&Written<IdentitySection>>,
    ) -> (Identity, Option<Tokens>) {
        let mut identity = Identity::default();
        let Some(Written { value: section, .. }) = section else { return (identity, None) };
        identity.trust = self.trust(section);
        if let Some(header) = &section.client_ip_header {
            identity.client_ip_header.clone_from(&header.value.0);
        }
        if let Some(prefix) = &section.ipv6_prefix {
            match u8::try_from(prefix.value) {
                Ok(bits @ 1..=128) => identity.ipv6_prefix = bits,
                _ => self.error(&prefix.span, "an IPv6 prefix has 1 to 128 bits"),
            }
        }
        if let Some(max) = &section.max_body {
            match usize::try_from(max.value) {
                Ok(bytes) if bytes <= BODY_MAX => identity.body_max = bytes,
                _ => self.error(&max.span, "at most 16 MiB of a body are looked at"),
            }
        }
        self.has_tokens = section.jwt.is_some();
        let tokens = section.jwt.as_ref().and_then(|jwt| self.tokens(jwt, &mut identity));
        identity.user = self.told(section.user.as_ref());
        identity.api_key = self.told(section.api_key.as_ref());
        identity.tier = self.told(section.tier.as_ref());
        for fact in [&section.user, &section.api_key, &section.tier].into_iter().flatten() {
            self.available(&fact.value, &fact.span);
        }
        identity.default_tier = section.default_tier.as_ref().map(|tier| tier.value.clone());
        if let Some(file) = &section.api_keys_file {
            if section.api_key.is_none() {
                let hint = "write api_key = \"header:x-api-key\"";
                self.error_with(&file.span, "keys are known, but not where one is told", hint);
            }
            identity.keys = self.keys(file).unwrap_or_default();
        }
        (identity, tokens)
    }

    fn trust(&mut self, section: &IdentitySection) -> Trust {
        match (&section.trusted_proxies, &section.hops) {
            (None, None) => Trust::Nobody,
            (Some(_), Some(hops)) => {
                self.error(&hops.span, "`hops` goes instead of `trusted_proxies`, not with it");
                Trust::Nobody
            }
            (Some(_), None) => match list(section.trusted_proxies.as_ref()) {
                [] => Trust::Nobody,
                networks => {
                    let network = |written: &Written<IpNet>| canonical(written.value).trunc();
                    Trust::Proxies(networks.iter().map(network).collect())
                }
            },
            (None, Some(hops)) => match u8::try_from(hops.value).ok().and_then(NonZeroU8::new) {
                Some(number) => Trust::Hops(number),
                None => {
                    self.error(&hops.span, "there are 1 to 255 proxies in front; or leave it out");
                    Trust::Nobody
                }
            },
        }
    }

    /// Where a fact is told, if that is somewhere in a request.
    fn told(&mut self, source: Option<&Written<Fact>>) -> Option<Fact> {
        let Written { value: fact, span } = source?;
        if matches!(
            fact,
            Fact::Header(_)
                | Fact::Cookie(_)
                | Fact::Query(_)
                | Fact::Jwt(_)
                | Fact::Json(_)
                | Fact::Form(_)
        ) {
            return Some(fact.clone());
        }
        let message = format!("`{fact}` is not a part of a request");
        self.error_with(span, message, format!("use {PARTS}"));
        None
    }

    /// Sees that a fact can be had.
    pub(super) fn available(&mut self, fact: &Fact, span: &Span) {
        if matches!(fact, Fact::Jwt(_)) && !self.has_tokens {
            let hint = "write [identity.jwt] with `algorithm` and `key_file`";
            self.error_with(span, "nothing says how to verify tokens", hint);
        }
    }

    fn tokens(
        &mut self,
        Written { value: section, span }: &Written<JwtSection>,
        identity: &mut Identity,
    ) -> Option<Tokens> {
        if let Some(token) = self.told(section.token.as_ref()) {
            if matches!(token, Fact::Jwt(_)) || token.is_in_body() {
                let span = section.token.as_ref().map_or(span, |token| &token.span);
                self.error(span, "a token is told in a header, a cookie or the query");
            }
            identity.token = token;
        }
        let (algorithm, file) = (section.algorithm.as_ref()?, section.key_file.as_ref()?);
        let mut settings = TokenSettings::new(&algorithm.value, self.read(file)?);
        settings.issuer = section.issuer.as_ref().map(|issuer| issuer.value.clone());
        settings.audience = section.audience.as_ref().map(|audience| audience.value.clone());
        set(&mut settings.leeway, section.leeway.as_ref());
        match Tokens::new(&settings) {
            Ok(tokens) => Some(tokens),
            Err(error) => {
                let is_algorithm = matches!(error, TokenError::Algorithm(_));
                let span = if is_algorithm { &algorithm.span } else { &file.span };
                self.error(span, error.to_string());
                None
            }
        }
    }

    fn keys(&mut self, file: &Written<String>) -> Option<Keys> {
        let content = self.read(file)?;
        let Ok(text) = String::from_utf8(content) else {
            self.error(&file.span, format!("`{}` is not UTF-8", file.value));
            return None;
        };
        let number = self.sources.len();
        self.sources.push(Source::secret(file.value.clone(), text));
        let entries = read_file::<KeysConfig>(&self.sources, number, &mut self.problems)?;
        let mut keys = Keys::default();
        for (digest, holder) in entries.0 {
            let Some(hash) = parse_digest(&digest.value) else {
                let message = "keys are listed by their SHA-256, 64 digits";
                self.problems.error(&digest.span, message).hint("printf %s KEY | sha256sum");
                continue;
            };
            let holder = KeyHolder {
                user: holder.value.user.map(|user| user.value),
                tier: holder.value.tier.map(|tier| tier.value),
            };
            if keys.0.insert(hash, holder).is_some() {
                self.error(&digest.span, "this key is listed already");
            }
        }
        Some(keys)
    }
}

/// The most that may be looked at of a body.
const BODY_MAX: usize = 16 * 1024 * 1024;

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    // Numbers may have a sign, digests have none.
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}
