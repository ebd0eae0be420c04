#![no_main]

//! Facts of a request: headers, cookies, query, JSON and forms, as rules count by them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use bytes::Bytes;
use dashpot_fuzz::parts;
use dashpot_http::HttpDescriptor;
use dashpot_rules::{Descriptor, Fact, RuleSet};
use http::HeaderValue;
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let text = r#"
        [identity]
        trusted_proxies = ["10.0.0.0/8"]
        user = "header:x-user"
        tier = "header:x-tier"
        api_key = "header:x-api-key"

        [[rule]]
        name = "all"
        by = ["api_key | user | ip", "cookie:c", "query:q", "header:h", "json:a.b", "form:f", "host", "method", "path"]
        limits = ["5/s"]
    "#;
    RuleSet::parse(text).unwrap_or_else(|errors| panic!("{errors}"))
});

/// What a request may be asked for.
static FACTS: LazyLock<Vec<Fact>> = LazyLock::new(|| {
    let names = "ip user tier api_key host method path cookie:c query:q header:h json:a.b form:f";
    names.split(' ').map(|name| name.parse().expect("a fact")).collect()
});

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

fuzz_target!(|data: &[u8]| {
    let Some((request, body)) = parts::request(data) else { return };
    let body = Bytes::copy_from_slice(body);
    for peer in [PROXY, STRANGER] {
        let asked = HttpDescriptor::new(&RULES, &request, Some(&body)).connected_by(Some(peer));
        for fact in &*FACTS {
            let value = asked.fact(fact);
            assert_eq!(value, asked.fact(fact), "{fact}");
            assert!(!asked.why(fact).is_empty());
            match fact {
                // Who is not trusted cannot say who it is.
                Fact::User | Fact::ApiKey if peer == STRANGER => assert_eq!(value, None),
                // One spelling.
                Fact::Json(_) | Fact::Form(_) => {
                    let value = value.unwrap_or_default();
                    let text = str::from_utf8(&value).expect("a text");
                    assert_eq!(text.trim(), text);
                }
                _ => {}
            }
        }
        let keys = keys(&asked);
        assert_eq!(keys, self::keys(&asked));
        if let Some(secret) = asked.fact(&Fact::ApiKey).filter(|secret| secret.len() >= 8)
            && contains(&keys, &secret)
        {
            // Others may say the same; then it is there with another key, too.
            let mut other = request.clone();
            other.headers_mut().insert("x-api-key", HeaderValue::from_static("another"));
            let other = HttpDescriptor::new(&RULES, &other, Some(&body)).connected_by(Some(peer));
            assert!(contains(&self::keys(&other), &secret), "{secret:?} is in {keys:?}");
        }
    }
});

fn keys(asked: &HttpDescriptor<'_>) -> Vec<Vec<u8>> {
    RULES.select(asked).plan(asked).keys().map(|(.., key)| key.as_bytes().to_vec()).collect()
}

fn contains(keys: &[Vec<u8>], text: &[u8]) -> bool {
    keys.iter().any(|key| key.windows(text.len()).any(|part| part == text))
}
