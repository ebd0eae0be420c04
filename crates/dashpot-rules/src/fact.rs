//! What is known about a request, by name.

mod naming;

use std::fmt;
use std::str::FromStr;

/// The name of something known about a request: `ip`, `user`, `header:user-agent`, `json:email`.
///
/// `docs/choosing-keys.md` says which to count by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fact {
    /// The caller's address, seen through the proxies that are trusted.
    Ip,
    /// Who the caller is, if there is reason to believe it.
    User,
    /// The key the caller came with, if there is reason to believe it.
    ApiKey,
    /// The plan the caller is on, if there is reason to believe it; else the default.
    Tier,
    /// The request's method.
    Method,
    /// The request's path, without the query.
    Path,
    /// The host that was asked for.
    Host,
    /// A request header, as it comes. In lower case.
    Header(String),
    /// A cookie, as it comes.
    Cookie(String),
    /// A parameter of the query, as it comes.
    Query(String),
    /// A parameter of the path: `id` where a rule matches `/users/{id}`.
    Param(String),
    /// A field of a JSON body; `a.b` is the field `b` of `a`.
    Json(String),
    /// A field of a form.
    Form(String),
    /// A claim of a verified token.
    Jwt(String),
    /// Whatever else the application says, by a name of its choice.
    Custom(String),
}

/// Those that are one word.
const WORDS: [(&str, Fact); 7] = [
    ("ip", Fact::Ip),
    ("user", Fact::User),
    ("api_key", Fact::ApiKey),
    ("tier", Fact::Tier),
    ("method", Fact::Method),
    ("path", Fact::Path),
    ("host", Fact::Host),
];

type Kind = (&'static str, fn(String) -> Fact);

/// Those that are a kind and a name.
const KINDS: [Kind; 8] = [
    ("header", Fact::Header),
    ("cookie", Fact::Cookie),
    ("query", Fact::Query),
    ("param", Fact::Param),
    ("json", Fact::Json),
    ("form", Fact::Form),
    ("jwt", Fact::Jwt),
    ("fact", Fact::Custom),
];

impl Fact {
    fn parts(&self) -> (&str, Option<&str>) {
        match self {
            Self::Ip => ("ip", None),
            Self::User => ("user", None),
            Self::ApiKey => ("api_key", None),
            Self::Tier => ("tier", None),
            Self::Method => ("method", None),
            Self::Path => ("path", None),
            Self::Host => ("host", None),
            Self::Header(name) => ("header", Some(name)),
            Self::Cookie(name) => ("cookie", Some(name)),
            Self::Query(name) => ("query", Some(name)),
            Self::Param(name) => ("param", Some(name)),
            Self::Json(name) => ("json", Some(name)),
            Self::Form(name) => ("form", Some(name)),
            Self::Jwt(name) => ("jwt", Some(name)),
            Self::Custom(name) => ("fact", Some(name)),
        }
    }

    /// Whether its values are such that nobody should read them in a key, a log or a metric. Those
    /// are hashed wherever they go.
    ///
    /// API keys and cookies are; headers, parameters and fields if a word of their name says so, as
    /// in `x-api-key`, `access_token` or `password`. `jwt:` and `fact:` never are: claims can be read
    /// by whoever has the token, and what an application says is its own choice of words.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        match self {
            Self::ApiKey | Self::Cookie(_) => true,
            Self::Header(name)
            | Self::Query(name)
            | Self::Param(name)
            | Self::Json(name)
            | Self::Form(name) => naming::is_secret(name),
            _ => false,
        }
    }

    /// Whether it is in the body, which has to be read for it.
    #[must_use]
    pub const fn is_in_body(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Form(_))
    }

    /// Whether the caller can make it up, and so be somebody else with each request.
    #[must_use]
    pub const fn is_callers_choice(&self) -> bool {
        matches!(
            self,
            Self::Header(_)
                | Self::Cookie(_)
                | Self::Query(_)
                | Self::Param(_)
                | Self::Path
                | Self::Host
                | Self::Json(_)
                | Self::Form(_)
        )
    }

    /// Whether what begins so goes on with a colon and a name.
    pub(crate) fn needs_name(beginning: &str) -> bool {
        KINDS.iter().any(|(kind, _)| *kind == beginning)
    }

    /// Every way to begin one, for suggestions.
    pub(crate) fn beginnings() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word).chain(KINDS.iter().map(|(kind, _)| *kind))
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (word, None) => f.write_str(word),
            (kind, Some(name)) => write!(f, "{kind}:{name}"),
        }
    }
}

impl FromStr for Fact {
    type Err = ParseFactError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((kind, name)) = text.split_once(':') else {
            let word = WORDS.into_iter().find(|(word, _)| *word == text);
            return word.map(|(_, fact)| fact).ok_or_else(|| ParseFactError::unknown(text));
        };
        let Some((kind, fact)) = KINDS.into_iter().find(|(known, _)| *known == kind) else {
            return Err(ParseFactError::unknown(text));
        };
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '|' | ',' | '"' | '=');
        if name.is_empty() || name.len() > 128 || !name.chars().all(is_plain) {
            return Err(ParseFactError::Name { kind });
        }
        let name = if kind == "header" { name.to_ascii_lowercase() } else { name.to_owned() };
        Ok(fact(name))
    }
}

/// Why a text does not name a fact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseFactError {
    /// There is no such fact.
    #[error("`{0}` is not a fact; use {known}", known = Self::KNOWN)]
    Unknown(String),
    /// It needs a better name.
    #[error("`{kind}:` is followed by a name of up to 128 printable characters, as in `{kind}:id`")]
    Name {
        /// What came before the name.
        kind: &'static str,
    },
}

impl ParseFactError {
    /// All there are.
    pub(crate) const KNOWN: &str = "ip, user, api_key, tier, method, path, host, or header:…, \
         cookie:…, query:…, param:…, json:…, form:…, jwt:…, fact:…";

    fn unknown(text: &str) -> Self {
        Self::Unknown(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_reads_as_it_is_written() {
        let named = KINDS.iter().map(|(kind, _)| format!("{kind}:some.name"));
        for text in WORDS.iter().map(|(word, _)| (*word).to_owned()).chain(named) {
            assert_eq!(text.parse::<Fact>().unwrap().to_string(), text);
        }
        assert_eq!("header:User-Agent".parse(), Ok(Fact::Header("user-agent".into())));
    }

    #[test]
    fn what_is_no_fact_is_refused() {
        for text in ["", "IP", "ip:", "header", "header:", "header:a b", "json:a|b", "claim:sub"] {
            assert!(text.parse::<Fact>().is_err(), "{text}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for text in
            ["api_key", "cookie:a", "header:x-api-key", "header:Authorization", "query:token"]
        {
            assert!(text.parse::<Fact>().unwrap().is_secret(), "{text}");
        }
        for text in ["ip", "user", "header:user-agent", "json:email", "query:page"] {
            assert!(!text.parse::<Fact>().unwrap().is_secret(), "{text}");
        }
    }
}
