#![no_main]

//! JSON Web Tokens. The input is a token's header, if it is not the usual one, and its claims, which are signed here, or
//! nothing would be read beyond the signature; and a token as it is, which nobody signed.

use std::sync::LazyLock;
use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashpot::Timestamp;
use dashpot_fuzz::parts;
use dashpot_rules::{TokenRefusal, TokenSettings, Tokens};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

const SECRET: &[u8; 32] = b"a secret that nobody could guess";
const USUAL: &[u8] = br#"{"alg":"HS256"}"#;
const NOW: u64 = 1_800_000_000;
const LEEWAY: u64 = 60;
const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "dashpot";

static ANY: LazyLock<Tokens> = LazyLock::new(|| tokens(SECRET, None));
/// Only those of one issuer that are for us.
static OURS: LazyLock<Tokens> = LazyLock::new(|| tokens(SECRET, Some((ISSUER, AUDIENCE))));
static OTHERS: LazyLock<Tokens> =
    LazyLock::new(|| tokens(b"A secret that nobody could guess", None));

fn tokens(secret: &[u8], only: Option<(&str, &str)>) -> Tokens {
    let mut settings = TokenSettings::new("HS256", secret);
    settings.issuer = only.map(|(issuer, _)| issuer.to_owned());
    settings.audience = only.map(|(_, audience)| audience.to_owned());
    settings.leeway = Duration::from_secs(LEEWAY);
    Tokens::new(&settings).expect("settings that are right")
}

fn now() -> Timestamp {
    Timestamp::from_secs(NOW)
}

fuzz_target!(|data: &[u8]| {
    let raw = String::from_utf8_lossy(data);
    assert!(ANY.claims_at(&raw, now()).is_err(), "{raw} is believed, and nobody signed it");
    let (header, claims) = parts::split(data, b'\n');
    let header = if header.is_empty() { USUAL } else { header };
    let text = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    let signature = sign(&Key::new(HMAC_SHA256, SECRET), text.as_bytes());
    let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));

    let found = ANY.claims_at(&token, now());
    match &found {
        Ok(found) => {
            is_agreed_on(header);
            let claims = is_good(claims);
            for (name, value) in &claims {
                let text = value.as_str().filter(|text| !text.is_empty());
                assert!(text.is_none() || found.get(name).as_deref() == text, "{name}");
                assert!(!found.get(name).is_some_and(|text| text.is_empty()));
            }
        }
        Err(refusal) if header == USUAL => assert_eq!(*refusal, why_not(claims)),
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
    if let Ok(found) = OURS.claims_at(&token, now()) {
        assert!(found == ANY.claims_at(&token, now()).expect("it is good for anybody"));
        is_for_us(&is_good(claims));
    }
    only_as_signed(&token, data);
});

/// By one algorithm, and without what the library would not know.
fn is_agreed_on(header: &[u8]) {
    let header: Map<String, Value> = serde_json::from_slice(header).expect("a header is an object");
    assert_eq!(header["alg"], "HS256");
    assert!(header.get("crit").is_none_or(Value::is_null), "{header:?}");
}

/// It has begun, and not ended yet; gives its claims.
fn is_good(claims: &[u8]) -> Map<String, Value> {
    let claims: Map<String, Value> = serde_json::from_slice(claims).expect("claims are an object");
    let at = |name: &str| claims.get(name).map(|at| at.as_f64().expect("a moment"));
    // What is off by less than a second may be the rounding of so large numbers.
    let expires = at("exp").expect("it has an end");
    assert!(expires + LEEWAY as f64 + 1.0 > NOW as f64, "good until {expires}");
    let begins = at("nbf").unwrap_or_default();
    assert!(begins < NOW as f64 + LEEWAY as f64 + 1.0, "good from {begins}");
    claims
}

/// Claims that have a meaning are there once.
#[derive(Deserialize)]
#[expect(dead_code, reason = "whether they can be read is enough")]
struct Once {
    exp: Option<IgnoredAny>,
    nbf: Option<IgnoredAny>,
    iss: Option<IgnoredAny>,
    aud: Option<IgnoredAny>,
    sub: Option<IgnoredAny>,
}

/// What is wrong with claims that are signed as agreed, for anybody.
fn why_not(claims: &[u8]) -> TokenRefusal {
    let is_once = serde_json::from_slice::<Once>(claims).is_ok();
    let Ok(claims) = serde_json::from_slice::<Map<String, Value>>(claims) else {
        return TokenRefusal::Malformed;
    };
    if !is_once {
        return TokenRefusal::Malformed;
    }
    let at = |name: &str| claims.get(name).and_then(Value::as_f64);
    match (at("exp"), at("nbf")) {
        (None, _) => TokenRefusal::Missing("exp"),
        (Some(expires), _) if expires + LEEWAY as f64 <= NOW as f64 => TokenRefusal::Expired,
        (_, None) if claims.contains_key("nbf") => TokenRefusal::Missing("nbf"),
        (_, Some(begins)) if begins > (NOW + LEEWAY) as f64 => TokenRefusal::NotYetValid,
        _ => panic!("nothing is wrong with {claims:?}"),
    }
}

/// As RFC 7519 has them: a text, or several for the audience.
fn is_for_us(claims: &Map<String, Value>) {
    let names = |claim: &Value, name: &str| match claim {
        Value::Array(all) => all.iter().any(|one| one == name),
        one => one == name,
    };
    assert!(names(&claims["iss"], ISSUER) && names(&claims["aud"], AUDIENCE), "{claims:?}");
}

/// Nothing of it can be exchanged, and nobody else's secret will do.
fn only_as_signed(token: &str, data: &[u8]) {
    assert!(OTHERS.claims_at(token, now()).is_err());
    let sum: usize = data.iter().map(|byte| usize::from(*byte)).sum();
    for place in [sum % token.len(), token.len() - 1 - sum % 43] {
        let (before, after) = token.split_at(place);
        for other in ["A", "w", ".", "=", ""] {
            let changed = format!("{before}{other}{}", &after[1..]);
            let is_same = changed == token;
            assert!(is_same || ANY.claims_at(&changed, now()).is_err(), "{changed} is believed");
        }
    }
    let (unsigned, _) = token.rsplit_once('.').expect("it has three parts");
    for cut in [unsigned.to_owned(), format!("{unsigned}."), format!("{token}.")] {
        assert!(ANY.claims_at(&cut, now()).is_err(), "{cut} is believed");
    }
}
