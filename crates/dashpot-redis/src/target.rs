//! What the URLs of a store say.

use std::fmt;

use redis::io::tcp::TcpSettings;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

/// Who keeps the state.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// One server, or several that know nothing of each other.
    Servers(Vec<ConnectionInfo>),
    /// A cluster, by some of its nodes.
    Cluster(Seeds),
    /// Whoever the sentinels say is the master of this name.
    Sentinel(Watched),
}

/// Some nodes of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    /// How to talk to any node.
    pub(crate) template: ConnectionInfo,
    pub(crate) nodes: Vec<ConnectionInfo>,
}

/// A master that sentinels watch over.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) sentinels: Vec<ConnectionInfo>,
    pub(crate) name: String,
    /// How to talk to the master, wherever it is.
    pub(crate) master: ConnectionInfo,
}

/// Why a URL names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// There is none.
    #[error("a store needs a URL, such as redis://127.0.0.1:6379")]
    None,
    /// It is something else.
    #[error(
        "`{0}` is not a URL of Redis; use redis://, rediss://, redis-cluster:// or redis-sentinel://"
    )]
    Scheme(String),
    /// Its parts make no sense.
    #[error("`{url}` is no URL of Redis: {reason}")]
    Malformed {
        /// The URL, without its password.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A cluster or sentinels among several.
    #[error(
        "several URLs are several servers that know nothing of each other: each is redis:// or rediss://"
    )]
    Several,
    /// Sentinels of nobody.
    #[error("`{0}` does not say which master: redis-sentinel://host:26379/mymaster")]
    NoMaster(String),
    /// TLS without the feature for it.
    #[error("`{0}` needs the feature `tls` of dashpot-redis")]
    NoTls(String),
    /// A certificate that is none.
    #[error("the root certificate cannot be read: {0}")]
    Certificate(String),
    /// Braces have a meaning of their own in the names of keys.
    #[error("a prefix has 1 to 64 printable characters and no braces")]
    Prefix,
    /// There is nothing to run on.
    #[error("a store on Redis is started within a tokio runtime")]
    Runtime,
}

const REDIS: u16 = 6379;
const SENTINEL: u16 = 26379;

impl Target {
    pub(crate) fn parse(urls: &[String], root: Option<&[u8]>) -> Result<Self, UrlError> {
        match urls {
            [] => Err(UrlError::None),
            [url] => Self::of(&Url::parse(url)?, root),
            several => {
                let server = |url: &String| match Self::of(&Url::parse(url)?, root)? {
                    Self::Servers(mut servers) => servers.pop().ok_or(UrlError::None),
                    _ => Err(UrlError::Several),
                };
                Ok(Self::Servers(several.iter().map(server).collect::<Result<_, _>>()?))
            }
        }
    }

    fn of(url: &Url<'_>, root: Option<&[u8]>) -> Result<Self, UrlError> {
        let scheme = if url.scheme.starts_with("rediss") { "rediss" } else { "redis" };
        let info = |host: &str, port, path: &str| url.info(scheme, host, port, path, root);
        match url.scheme.strip_prefix(scheme).unwrap_or_default() {
            "" => Ok(Self::Servers(vec![info(url.hosts, REDIS, url.path)?])),
            "-cluster" => {
                let nodes = url.hosts.split(',').map(|host| info(host, REDIS, ""));
                let nodes = nodes.collect::<Result<_, _>>()?;
                Ok(Self::Cluster(Seeds { template: info("node.invalid", REDIS, "")?, nodes }))
            }
            "-sentinel" => {
                let (name, database) = url.path.split_once('/').unwrap_or((url.path, ""));
                if name.is_empty() {
                    return Err(UrlError::NoMaster(url.to_string()));
                }
                // Sentinels seldom have users of their own: the password is the master's.
                let anonymous = Url { user: "", ..*url };
                let sentinel = |host| anonymous.info(scheme, host, SENTINEL, "", root);
                Ok(Self::Sentinel(Watched {
                    sentinels: url.hosts.split(',').map(sentinel).collect::<Result<_, _>>()?,
                    name: name.to_owned(),
                    master: info("master.invalid", REDIS, database)?,
                }))
            }
            _ => Err(UrlError::Scheme(url.to_string())),
        }
    }
}

/// What follows the user and password in a URL, or all of it if there are none.
pub(crate) fn without_user(url: &str) -> &str {
    let rest = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
    // Nor what comes after, where there may be another.
    rest.split(['?', '#']).next().unwrap_or_default()
}

/// The parts of a URL.
#[derive(Clone, Copy)]
struct Url<'u> {
    scheme: &'u str,
    /// User and password, up to and with the `@`.
    user: &'u str,
    hosts: &'u str,
    path: &'u str,
}

impl<'u> Url<'u> {
    fn parse(url: &'u str) -> Result<Self, UrlError> {
        const SCHEMES: [&str; 6] = [
            "redis",
            "rediss",
            "redis-cluster",
            "rediss-cluster",
            "redis-sentinel",
            "rediss-sentinel",
        ];
        let hidden = || without_user(url).to_owned();
        let (scheme, rest) = url.split_once("://").ok_or_else(|| UrlError::Scheme(hidden()))?;
        if !SCHEMES.contains(&scheme) {
            return Err(UrlError::Scheme(hidden()));
        }
        let split = rest.rfind('@').map_or(0, |at| at + 1);
        let (user, rest) = rest.split_at(split);
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let url = Self { scheme, user, hosts, path };
        // There a URL's user ends: what comes before would be taken for the host.
        if user.contains(['/', '?', '#']) {
            let reason =
                "in a user or password, write `/` as %2F, `?` as %3F and `#` as %23".to_owned();
            return Err(UrlError::Malformed { url: url.to_string(), reason });
        }
        Ok(url)
    }

    fn info(
        &self,
        scheme: &str,
        host: &str,
        port: u16,
        path: &str,
        root: Option<&[u8]>,
    ) -> Result<ConnectionInfo, UrlError> {
        let malformed = |reason: String| UrlError::Malformed { url: self.to_string(), reason };
        if host.is_empty() {
            return Err(malformed("a host is missing".to_owned()));
        }
        // The library would take its own port for it, which is no sentinel's.
        if host.ends_with(':') {
            return Err(malformed("a port is missing".to_owned()));
        }
        if host.contains(|c: char| c.is_control() || matches!(c, '?' | '#')) {
            return Err(malformed("after a host and its port comes nothing but `/`".to_owned()));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let port = if has_port { String::new() } else { format!(":{port}") };
        let url = format!("{scheme}://{}{host}{port}/{path}", self.user);
        let info = url.into_connection_info().map_err(|error| malformed(error.to_string()))?;
        if !info.addr().is_supported() {
            return Err(UrlError::NoTls(self.to_string()));
        }
        let tcp = TcpSettings::default().set_nodelay(true);
        trust(info.set_tcp_settings(tcp), root)
    }
}

/// Trusts this root of certificates instead of the system's.
#[cfg(feature = "tls")]
fn trust(info: ConnectionInfo, root: Option<&[u8]>) -> Result<ConnectionInfo, UrlError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        return Ok(info);
    }
    // If the program chose one, that stays. If it has several and chose none, rustls would panic.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let Some(root) = root else { return Ok(info) };
    let found = CertificateDer::pem_slice_iter(root).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| UrlError::Certificate(error.to_string()))?;
    if found.is_empty() {
        return Err(UrlError::Certificate("there is none in it".to_owned()));
    }
    let certificates =
        redis::TlsCertificates { client_tls: None, root_cert: Some(root.to_owned()) };
    let client = redis::Client::build_with_tls(info, certificates)
        .map_err(|error| UrlError::Certificate(error.to_string()))?;
    Ok(client.get_connection_info().clone())
}

#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, reason = "with TLS it may fail")]
fn trust(info: ConnectionInfo, _root: Option<&[u8]>) -> Result<ConnectionInfo, UrlError> {
    Ok(info)
}

/// Without user and password.
impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, hosts, path, .. } = self;
        let (hosts, path) = (without_user(hosts), without_user(path));
        write!(f, "{scheme}://{hosts}")?;
        if path.is_empty() { Ok(()) } else { write!(f, "/{path}") }
    }
}

/// The same way to talk to another server.
pub(crate) fn at(info: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let address = match info.addr().clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host.to_owned(), port),
    };
    info.clone().set_addr(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(urls: &[&str]) -> Result<Target, UrlError> {
        let urls: Vec<_> = urls.iter().map(|&url| url.to_owned()).collect();
        Target::parse(&urls, None)
    }

    fn addresses(infos: &[ConnectionInfo]) -> Vec<String> {
        infos.iter().map(|info| info.addr().to_string()).collect()
    }

    #[test]
    fn one_server_has_user_password_and_database() {
        let Target::Servers(servers) = parse(&["redis://ann:s3cret@db.local:7000/3"]).unwrap()
        else {
            panic!("one server");
        };
        assert_eq!(addresses(&servers), ["db.local:7000"]);
        let settings = servers[0].redis_settings();
        assert_eq!(settings.username(), Some("ann"));
        assert_eq!(settings.password(), Some("s3cret"));
        assert_eq!(settings.db(), 3);
        assert!(servers[0].tcp_settings().nodelay());
    }

    #[test]
    fn clusters_and_sentinels_list_hosts() {
        let Target::Cluster(Seeds { nodes, .. }) =
            parse(&["redis-cluster://:pw@a:7001,b,[::1]:7003"]).unwrap()
        else {
            panic!("a cluster");
        };
        assert_eq!(addresses(&nodes), ["a:7001", "b:6379", "::1:7003"]);
        assert!(nodes.iter().all(|node| node.redis_settings().password() == Some("pw")));

        let Target::Sentinel(watched) = parse(&["redis-sentinel://:pw@a,b:1/mymaster/2"]).unwrap()
        else {
            panic!("sentinels");
        };
        assert_eq!(addresses(&watched.sentinels), ["a:26379", "b:1"]);
        assert_eq!(watched.name, "mymaster");
        assert_eq!(watched.sentinels[0].redis_settings().password(), None);
        assert_eq!(watched.master.redis_settings().password(), Some("pw"));
        assert_eq!(watched.master.redis_settings().db(), 2);
    }

    #[test]
    fn what_is_no_store_is_named_without_its_password() {
        let told = |urls: &[&str]| parse(urls).unwrap_err().to_string();
        assert!(told(&[]).contains("needs a URL"));
        assert!(told(&["http://ann:s3cret@x"]).contains("`x` is not a URL of Redis"));
        assert!(told(&["redis://a", "redis-cluster://b"]).contains("several"));
        assert!(told(&["redis-sentinel://ann:s3cret@a"]).contains("which master"));
        let bad = told(&["redis://ann:s3cret@a:99999"]);
        assert!(bad.contains("redis://a:99999") && !bad.contains("s3cret"), "{bad}");
        assert!(told(&["redis-cluster://a,,b"]).contains("a host is missing"));
        assert!(told(&["redis-sentinel://a,b:/m"]).contains("a port is missing"));
        assert!(told(&["redis-sentinel://a?b/m"]).contains("comes nothing but `/`"));
    }

    #[test]
    fn a_password_is_never_taken_for_a_host() {
        for user in ["ann:123#s3cret", "ann:123/s3cret", "ann?s3cret", "10.0.0.1:6379/s3cret"] {
            for scheme in ["redis", "rediss-cluster", "redis-sentinel"] {
                let told = parse(&[&format!("{scheme}://{user}@db/m")]).unwrap_err().to_string();
                assert!(told.contains("%23") && told.contains("://db/m"), "{told}");
                assert!(!told.contains("s3cret") && !told.contains("123"), "{told}");
            }
        }
    }
}
