//! How the gateway listens and forwards: what `[proxy]` says.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::Listen;

/// How the gateway listens and forwards: what `[proxy]` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxySettings {
    /// Where.
    pub listen: Option<SocketAddr>,
    /// The backend.
    pub upstream: Option<Upstream>,
    /// Where administrators ask.
    pub admin_listen: Option<Listen>,
    /// The file with the certificate, if HTTPS is served.
    pub tls_certificate: Option<PathBuf>,
    /// The file with its private key.
    pub tls_key: Option<PathBuf>,
    /// How long the backend may take to accept a connection.
    pub connect_timeout: Option<Duration>,
    /// How long it may take to begin its answer, and to go on with it.
    pub response_timeout: Option<Duration>,
    /// How long a caller may take for the head of a request, and to go on with its body.
    pub client_timeout: Option<Duration>,
    /// How long a caller may stay without a request.
    pub idle_timeout: Option<Duration>,
    /// How long an upgraded connection may be silent.
    pub tunnel_timeout: Option<Duration>,
    /// The longest body of a request.
    pub max_body: Option<MaxBody>,
    /// Where requests are noted.
    pub access_log: Option<AccessLog>,
}

/// A backend: a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    host: String,
    port: u16,
}

impl Upstream {
    /// The host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Both, as a URL or a `Host` header has them.
    #[must_use]
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

/// Why something is not a backend, a size or a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {hint}")]
pub struct ParseProxyError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl ParseProxyError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

const HINT: &str = "write it as in \"http://127.0.0.1:3000\"";

impl FromStr for Upstream {
    type Err = ParseProxyError;

    fn from_str(text: &str) -> Result<Self, ParseProxyError> {
        let wrong = |what: &str| ParseProxyError::new(format!("`{text}` {what}"), HINT);
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong("is not the URL of a backend"));
        };
        if scheme.eq_ignore_ascii_case("https") {
            let hint = "write http://, and let the connection to a backend elsewhere be encrypted by the network";
            return Err(ParseProxyError::new("the backend is spoken to without TLS", hint));
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(wrong("is not the URL of a backend"));
        }
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(wrong("has a path; requests keep their own"));
        }
        if authority.contains('@') {
            return Err(wrong("has a user; callers send their own"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) =
                    rest.split_once(']').ok_or_else(|| wrong("has a bracket too many"))?;
                host.parse::<Ipv6Addr>().map_err(|_| wrong("has no address in its brackets"))?;
                let port = after.strip_prefix(':');
                if port.is_none() && !after.is_empty() {
                    return Err(wrong("has something after its bracket"));
                }
                (host, port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || !host.chars().all(is_plain) {
            return Err(wrong("has no host"));
        }
        let port = match port {
            None => 80,
            Some(port) => match port.parse() {
                Ok(port @ 1..) if port.to_string().len() == port_digits(authority) => port,
                _ => return Err(wrong("has no port between 1 and 65535")),
            },
        };
        Ok(Self { host: host.to_owned(), port })
    }
}

/// How many digits a port is written with: `+80` and `080` are none.
fn port_digits(authority: &str) -> usize {
    authority.rsplit(':').next().map_or(0, str::len)
}

/// The longest body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxBody {
    /// So many bytes.
    Bytes(u64),
    /// As long as it likes.
    Unlimited,
}

impl FromStr for MaxBody {
    type Err = ParseProxyError;

    fn from_str(text: &str) -> Result<Self, ParseProxyError> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let wrong = |_| {
            let hint = "write a number of bytes, or \"unlimited\"";
            ParseProxyError::new(format!("`{text}` is not a size"), hint)
        };
        text.parse().map(Self::Bytes).map_err(wrong)
    }
}

/// Where requests are noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere: written `off`.
    Off,
    /// On the standard output: written `-`.
    Output,
    /// In a file.
    File(PathBuf),
}

impl FromStr for AccessLog {
    type Err = ParseProxyError;

    fn from_str(text: &str) -> Result<Self, ParseProxyError> {
        match text {
            "" => {
                let hint = "write \"-\" for the standard output, or \"off\"";
                Err(ParseProxyError::new("a file has a name", hint))
            }
            "off" => Ok(Self::Off),
            "-" => Ok(Self::Output),
            file => Ok(Self::File(file.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_a_host_and_a_port() {
        for (text, host, port) in [
            ("http://127.0.0.1:3000", "127.0.0.1", 3000),
            ("HTTP://localhost/", "localhost", 80),
            ("http://[::1]:8080", "::1", 8080),
            ("http://[::1]", "::1", 80),
            ("http://my_backend.internal:65535", "my_backend.internal", 65535),
        ] {
            let upstream: Upstream = text.parse().unwrap();
            assert_eq!((upstream.host(), upstream.port()), (host, port), "{text}");
            assert_eq!(upstream.to_string().parse(), Ok(upstream));
        }
    }

    #[test]
    fn everything_else_is_told() {
        for text in [
            "",
            "127.0.0.1:3000",
            "localhost",
            "ftp://a",
            "https://a",
            "http://",
            "http:///",
            "http://:80",
            "http://a:",
            "http://a:0",
            "http://a:65536",
            "http://a:+80",
            "http://a:080",
            "http://a/b",
            "http://a?b",
            "http://a#b",
            "http://u@a",
            "http://a b",
            "http://[::1",
            "http://[x]",
            "http://[::1]x",
            "http://::1",
            "http://a//",
        ] {
            assert!(text.parse::<Upstream>().is_err(), "{text}");
        }
    }
}
