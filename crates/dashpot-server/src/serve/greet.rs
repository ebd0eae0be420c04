//! What is said when it begins to serve.

use std::io::Write;

use tracing::{info, warn};

use crate::serve::connection::Protocol;
use crate::serve::listen::Listening;
use crate::serve::service::Service;
use crate::serve::store::AnyStore;

/// Says where it listens, and what to try.
pub(crate) fn greet(service: &Service, doors: &[Listening]) {
    let mut text = summary(service);
    for door in doors {
        let base = base(door);
        text.push_str(&match (door.protocol, &service.gateway) {
            (Protocol::Http, _) => format!("listening on {base}\n"),
            (Protocol::Grpc, _) => format!("gRPC on {}\n", door.address),
            (Protocol::Resp, _) => format!("RESP on {}\n", door.address),
            (Protocol::Proxy, Some(gateway)) => {
                format!("proxy on {base} for {}\n", gateway.settings.upstream)
            }
            (Protocol::Proxy, None) => String::new(),
        });
    }
    let find = |protocol| doors.iter().find(|door| door.protocol == protocol);
    let (http, proxy) = (find(Protocol::Http), find(Protocol::Proxy));
    text.push_str(&match (proxy, http) {
        (Some(proxy), _) => format!("\n  curl -i {}/\n\n", base(proxy)),
        (None, Some(http)) => {
            let question = r#"{"key":"alice","limit":"10/s"}"#;
            format!("\n  curl -i {}/v1/check -d '{question}'\n\n", base(http))
        }
        (None, None) => String::new(),
    });
    // Whoever started it may not read it.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let is_for_others = |door: &Listening| !door.address.ip().is_loopback();
    if http.is_some_and(is_for_others) && service.admin_token.is_none() {
        info!("there is no admin token: /v1/keys and /v1/rules answer to this machine only");
    }
    if find(Protocol::Resp).is_some_and(is_for_others) && !service.resp.has_password() {
        warn!("Redis's protocol is served to others without a password: see --resp-password-file");
    }
    if proxy.is_some() && service.rules.current().is_empty() {
        warn!("there are no rules, so nobody is limited: see --limit and --config");
    }
}

/// How a door is reached over HTTP.
fn base(door: &Listening) -> String {
    let scheme = if door.is_secure { "https" } else { "http" };
    format!("{scheme}://{}", door.address)
}

/// What it is, where it counts, and by how many rules.
fn summary(service: &Service) -> String {
    let words = match service.rules.current().rules().len() {
        0 => "no rules".to_owned(),
        1 => "1 rule".to_owned(),
        many => format!("{many} rules"),
    };
    let store = match service.store {
        AnyStore::Memory(_) => "in memory",
        AnyStore::Redis(_) => "on Redis",
    };
    let mut text = format!("dashpot {}, {store}, {words}", env!("CARGO_PKG_VERSION"));
    if service.envoy.place().is_some() {
        let limits = service.envoy.current().rules().len();
        let words = if limits == 1 { "limit" } else { "limits" };
        text.push_str(&format!(", {limits} {words} of Envoy's YAML"));
    }
    text.push('\n');
    text
}
