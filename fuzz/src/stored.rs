//! URLs of a store on Redis, a line each.

use redis::{ConnectionAddr, ConnectionInfo};

use crate::target::{Seeds, Target, UrlError, Watched, without_user};

/// Where a password is in front of a host, and nowhere else, nobody is told it.
const PASSWORD: &str = "hunter2";
const USERS: [&str; 2] = ["ann:hunter2@", ":hunter2@"];

/// They name servers that are in the text, or a mistake is told, without passwords.
pub fn survives(text: &str) {
    let urls: Vec<String> = text.split('\n').map(str::to_owned).collect();
    match Target::parse(&urls, None) {
        Ok(Target::Servers(servers)) => {
            assert_eq!(servers.len(), urls.len());
            servers.iter().zip(&urls).for_each(|(server, url)| is_of(server, url, 6379));
        }
        Ok(Target::Cluster(Seeds { template, nodes })) => {
            let [url] = &*urls else { panic!("{urls:?} are one cluster") };
            assert_eq!(nodes.len(), hosts(url).split(',').count());
            nodes.iter().for_each(|node| {
                is_of(node, url, 6379);
                assert_eq!(secrets(node), secrets(&template));
            });
        }
        Ok(Target::Sentinel(Watched { sentinels, name, master })) => {
            let [url] = &*urls else { panic!("{urls:?} are sentinels") };
            assert_eq!(sentinels.len(), hosts(url).split(',').count());
            assert!(!name.is_empty() && url.contains(&name));
            assert!(sentinels.iter().all(|one| one.redis_settings().username().is_none()));
            sentinels.iter().for_each(|sentinel| is_of(sentinel, url, 26379));
            if url.contains("://ann:hunter2@") && url.matches('@').count() == 1 {
                assert_eq!(secrets(&master), (Some("ann".into()), Some(PASSWORD.into())));
            }
        }
        Err(wrong) => is_told(&wrong, text),
    }
}

/// A server is one of those that are written, at the port that is written, or the usual one.
fn is_of(server: &ConnectionInfo, url: &str, usual: u16) {
    let ConnectionAddr::Tcp(host, port) = server.addr() else { panic!("{}", server.addr()) };
    assert!(!host.is_empty());
    let hosts = hosts(url);
    assert!(*port == usual || hosts.contains(&format!(":{port}")) || hosts.contains(":0"), "{url}");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-,:".contains(c);
    if hosts.chars().all(is_plain) {
        let is_it = |one: &str| one == host || one.starts_with(&format!("{host}:"));
        assert!(is_it(hosts) || hosts.split(',').any(is_it), "{host} of {url}");
    }
}

/// What is between the user and the path.
fn hosts(url: &str) -> &str {
    let (_, rest) = url.split_once("://").expect("a URL has a scheme");
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

fn secrets(server: &ConnectionInfo) -> (Option<String>, Option<String>) {
    let settings = server.redis_settings();
    (settings.username().map(str::to_owned), settings.password().map(str::to_owned))
}

fn is_told(wrong: &UrlError, text: &str) {
    let told = wrong.to_string();
    let elsewhere = USERS.iter().fold(text.to_owned(), |text, user| text.replace(user, ""));
    assert!(elsewhere.contains(PASSWORD) || !told.contains(PASSWORD), "{told}");
    assert!(told.len() <= text.len() + 200, "{told}");
    assert!(!without_user(text).contains('@'));
}
