//! Hosts.

use std::fmt;
use std::str::FromStr;

use crate::config::Wrong;

/// A host, or all below a domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HostPattern {
    /// This one.
    Is(String),
    /// All that end in this, which begins with a dot.
    Below(String),
}

impl FromStr for HostPattern {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.to_ascii_lowercase();
        // `example.com.` is the same name, spelled out; requests are read without that dot, too.
        let text = text.strip_suffix('.').unwrap_or(&text);
        let (host, below) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        // The dot of the root is left out, as it is when a host is looked for.
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.contains('*') {
            return Err(Wrong("a `*` is only understood in front, as in `*.example.com`".into()));
        }
        let is_address = host.starts_with('[') && host.ends_with(']');
        if host.contains(':') && !is_address {
            return Err(Wrong(format!("`{host}` names a port or a scheme; write the host alone")));
        }
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        if host.is_empty() || !(is_address || host.chars().all(is_plain)) {
            return Err(Wrong(format!("`{host}` is not a host, as in `example.com`")));
        }
        Ok(if below { Self::Below(format!(".{host}")) } else { Self::Is(host.to_owned()) })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(host) => f.write_str(host),
            Self::Below(domain) => write!(f, "*{domain}"),
        }
    }
}
