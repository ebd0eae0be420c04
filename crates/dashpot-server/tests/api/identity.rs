//! For whom a request speaks: nobody is believed without a reason.

use serde_json::{Value, json};

use crate::support::Server;

const RULES: &str = "[identity]\ntrusted_proxies = ['10.0.0.0/8']\nuser = 'header:x-user'\n\
    [[rule]]\nname = 'r'\nby = ['user | ip']\nlimits = ['9/h']";

/// The key it is counted by, as the rules explain it.
#[track_caller]
fn counted_by(server: &Server, request: &Value) -> Value {
    let body = json!({ "request": request });
    server.post("/v1/rules/explain", &body).is(200).json()["rules"][0]["key"].clone()
}

#[track_caller]
fn by(server: &Server, ip: &str, headers: Value) -> Value {
    counted_by(server, &json!({"path": "/", "ip": ip, "headers": headers}))
}

#[test]
fn a_trusted_proxy_says_for_whom_it_speaks() {
    let server = Server::by(RULES);
    for (forwarded, address) in [
        (json!("203.0.113.7"), "203.0.113.7"),
        (json!("203.0.113.7, 10.9.9.9"), "203.0.113.7"),
        // Whoever wrote the leftmost may be anybody.
        (json!("1.2.3.4, 203.0.113.7"), "203.0.113.7"),
        (json!(["1.2.3.4", "203.0.113.7, 10.1.1.1"]), "203.0.113.7"),
        (json!("203.0.113.7:4711"), "203.0.113.7"),
        (json!("::ffff:203.0.113.7"), "203.0.113.7"),
    ] {
        let key = by(&server, "10.0.0.1", json!({ "x-forwarded-for": forwarded }));
        assert_eq!(key, json!([format!("ip={address}")]), "{forwarded}");
    }
    assert_eq!(by(&server, "10.0.0.1", json!({"x-user": "alice"})), json!(["user=alice"]));
}

#[test]
fn others_are_not_believed() {
    let server = Server::by(RULES);
    let forged = json!({"x-forwarded-for": "1.2.3.4", "x-user": "alice", "forwarded": "for=1.2.3.4",
        "x-real-ip": "1.2.3.4"});
    assert_eq!(by(&server, "203.0.113.7", forged.clone()), json!(["ip=203.0.113.7"]));
    // By counts, too: a caller that changes its headers gains nothing.
    for left in [8, 7, 6] {
        let headers =
            json!({"x-forwarded-for": format!("1.2.3.{left}"), "x-user": left.to_string()});
        let request = json!({"path": "/", "ip": "203.0.113.7", "headers": headers});
        assert_eq!(server.request(&request).allowed().remaining(), left);
    }
    // The application's own word is believed.
    let told = json!({"path": "/", "ip": "203.0.113.7", "headers": forged, "user": "bob"});
    assert_eq!(counted_by(&server, &told), json!(["user=bob"]));
}

#[test]
fn networks_of_ipv6_count_as_one_and_mapped_ipv4_does_not() {
    let server = Server::by("[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['9/h']");
    let left = |ip: &str| server.request(&json!({"path": "/", "ip": ip})).allowed().remaining();
    assert_eq!(left("2001:db8:1:2::1"), 8);
    assert_eq!(left("2001:db8:1:2:ffff::9"), 7, "one network of 64 bits");
    assert_eq!(left("2001:db8:1:3::1"), 8);
    assert_eq!(left("203.0.113.7"), 8);
    assert_eq!(left("::ffff:203.0.113.7"), 7, "the same address");
    assert_eq!(left("::ffff:203.0.113.8"), 8, "all of IPv4 in one bucket");
}

#[test]
fn a_key_file_says_whose_a_key_is() {
    // The SHA-256 of `test`.
    let keys = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 = \
        { user = 'acme', tier = 'pro' }";
    let rules = "[identity]\napi_key = 'header:x-api-key'\napi_keys_file = 'keys.toml'\n\
        default_tier = 'free'\n[[rule]]\nname = 'r'\nby = ['user | ip']\n\
        tiers.free = ['2/h']\ntiers.pro = ['20/h']";
    let server = Server::start_with(&[("dashpot.toml", rules), ("keys.toml", keys)], &[]);
    let limit = |headers: Value| {
        let request = json!({"path": "/", "ip": "203.0.113.7", "headers": headers});
        server.request(&request).allowed().policy(0)["limit"].clone()
    };
    assert_eq!(limit(json!({"x-api-key": "test"})), 20);
    assert_eq!(limit(json!({"x-api-key": "guess"})), 2);
    assert_eq!(limit(json!({})), 2);
}

#[test]
fn whoever_connects_to_the_service_is_not_who_the_request_is_from() {
    // The service itself was asked from loopback, with headers that say otherwise.
    let rules = "[identity]\ntrusted_proxies = ['127.0.0.0/8']\n\
        [[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['9/h']";
    let server = Server::by(rules);
    let ask = |forwarded: &str, request: Value| {
        let body = json!({ "request": request }).to_string();
        let headers = [("X-Forwarded-For", forwarded)];
        server.client().ask("POST", "/v1/check", &headers, body.as_bytes()).allowed().remaining()
    };
    assert_eq!(ask("1.1.1.1", json!({"path": "/", "ip": "203.0.113.7"})), 8);
    assert_eq!(ask("2.2.2.2", json!({"path": "/", "ip": "203.0.113.7"})), 7);
    assert_eq!(ask("1.1.1.1", json!({"path": "/"})), 8, "nobody knows who that was");
    assert_eq!(ask("2.2.2.2", json!({"path": "/"})), 7, "and they are one");
}
