use jsonwebtoken::{EncodingKey, Header, encode};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use keys::*;

mod keys;

/// Now, to these tests.
const NOW: u64 = 1_800_000_000;

fn signed(algorithm: Algorithm, key: &EncodingKey, claims: &Value) -> String {
    encode(&Header::new(algorithm), claims, key).unwrap()
}

fn token(claims: &Value) -> String {
    signed(Algorithm::HS256, &EncodingKey::from_secret(SECRET.as_bytes()), claims)
}

fn checked(tokens: &Tokens, token: &str) -> Result<Claims, TokenRefusal> {
    tokens.claims_at(token, Timestamp::from_secs(NOW))
}

fn tokens(change: impl FnOnce(&mut TokenSettings)) -> Tokens {
    let mut settings = TokenSettings::new("HS256", SECRET);
    change(&mut settings);
    Tokens::new(&settings).unwrap()
}

fn refused(claims: &Value) -> TokenRefusal {
    checked(&tokens(|_| {}), &token(claims)).unwrap_err()
}

#[test]
fn a_good_token_is_believed() {
    let claims = checked(
        &tokens(|_| {}),
        &token(&json!({
            "exp": NOW + 1, "nbf": NOW, "aud": "anybody", "sub": "alice", "age": 7, "on": true,
            "org": {"id": "o1"}, "https://example.com/plan": "pro", "none": null, "empty": "",
        })),
    )
    .unwrap();
    assert_eq!(claims.get("sub").as_deref(), Some("alice"));
    assert_eq!(claims.get("age").as_deref(), Some("7"));
    assert_eq!(claims.get("on").as_deref(), Some("true"));
    assert_eq!(claims.get("org.id").as_deref(), Some("o1"));
    assert_eq!(claims.get("https://example.com/plan").as_deref(), Some("pro"));
    for none in ["", "org", "org.x", "org.id.x", "sub.x", "none", "empty", "nobody"] {
        assert_eq!(claims.get(none), None, "{none}");
    }
}

#[test]
fn now_is_now() {
    let tokens = tokens(|_| {});
    assert!(tokens.claims(&token(&json!({"exp": 4_000_000_000_u64}))).is_ok());
    let refusal = tokens.claims(&token(&json!({"exp": 1_000_000_000}))).unwrap_err();
    assert_eq!(refusal, TokenRefusal::Expired);
}

#[test]
fn key_pairs_do_as_well() {
    let claims = json!({"exp": NOW + 1, "sub": "alice"});
    let p256 = EncodingKey::from_ec_pem(P256_PRIVATE.as_bytes()).unwrap();
    let ed = EncodingKey::from_ed_pem(ED_PRIVATE.as_bytes()).unwrap();
    for (algorithm, private, public) in
        [(Algorithm::ES256, p256, P256_PUBLIC), (Algorithm::EdDSA, ed, ED_PUBLIC)]
    {
        let tokens = Tokens::new(&TokenSettings::new(format!("{algorithm:?}"), public)).unwrap();
        let token = signed(algorithm, &private, &claims);
        assert_eq!(checked(&tokens, &token).unwrap().get("sub").as_deref(), Some("alice"));
    }
}

#[test]
fn tokens_signed_elsewhere_are_believed() {
    for (algorithm, token) in [("RS256", RS256_TOKEN), ("PS256", PS256_TOKEN)] {
        for public in [RSA_PUBLIC, RSA_PUBLIC_PKCS1] {
            let tokens = Tokens::new(&TokenSettings::new(algorithm, public)).unwrap();
            assert_eq!(checked(&tokens, token).unwrap().get("sub").as_deref(), Some("alice"));
        }
        let other = if algorithm == "RS256" { "PS256" } else { "RS256" };
        let tokens = Tokens::new(&TokenSettings::new(other, RSA_PUBLIC)).unwrap();
        assert_eq!(checked(&tokens, token).unwrap_err(), TokenRefusal::Algorithm);
    }
}

#[test]
fn times_are_checked_to_the_leeway() {
    let tokens = tokens(|settings| settings.leeway = Duration::from_secs(10));
    let check = |claims: Value| checked(&tokens, &token(&claims)).map(|_| ());
    assert_eq!(check(json!({"exp": NOW - 9})), Ok(()));
    assert_eq!(check(json!({"exp": NOW - 10})), Err(TokenRefusal::Expired));
    assert_eq!(check(json!({"exp": -5})), Err(TokenRefusal::Expired));
    assert_eq!(check(json!({"exp": NOW as f64 + 0.5})), Ok(()));
    assert_eq!(check(json!({"exp": 1e300})), Ok(()));
    assert_eq!(check(json!({"exp": u64::MAX, "nbf": -1e300})), Ok(()));
    assert_eq!(check(json!({"exp": NOW + 99, "nbf": NOW + 10})), Ok(()));
    let early = json!({"exp": NOW + 99, "nbf": NOW + 11});
    assert_eq!(check(early), Err(TokenRefusal::NotYetValid));
    for exp in [json!(null), json!("tomorrow"), json!(NOW.to_string())] {
        assert_eq!(check(json!({"exp": exp})), Err(TokenRefusal::Missing("exp")));
    }
    assert_eq!(check(json!({})), Err(TokenRefusal::Missing("exp")));
    assert_eq!(check(json!({"exp": [NOW + 9]})), Err(TokenRefusal::Malformed));
    assert_eq!(check(json!({"exp": NOW, "nbf": "now"})), Err(TokenRefusal::Missing("nbf")));
}

#[test]
fn issuer_and_audience_have_to_be_there_if_asked_for() {
    let strict = tokens(|settings| {
        settings.issuer = Some("us".to_owned());
        settings.audience = Some("api".to_owned());
    });
    let check = |iss: Value, aud: Value| {
        let claims = json!({"exp": NOW + 1, "iss": iss, "aud": aud});
        checked(&strict, &token(&claims)).map(|_| ())
    };
    assert_eq!(check(json!("us"), json!("api")), Ok(()));
    assert_eq!(check(json!("us"), json!(["web", "api"])), Ok(()));
    assert_eq!(check(json!("them"), json!("api")), Err(TokenRefusal::Issuer));
    assert_eq!(check(json!("us"), json!("web")), Err(TokenRefusal::Audience));
    assert_eq!(check(json!("us"), json!([])), Err(TokenRefusal::Audience));
    assert_eq!(check(json!(null), json!("api")), Err(TokenRefusal::Missing("iss")));
    assert_eq!(check(json!("us"), json!(7)), Err(TokenRefusal::Missing("aud")));
    let neither = checked(&strict, &token(&json!({"exp": NOW + 1}))).unwrap_err();
    assert!(matches!(neither, TokenRefusal::Missing(_)));
}

#[test]
fn another_key_or_a_changed_token_is_found_out() {
    let claims = json!({"exp": NOW + 1});
    let other = EncodingKey::from_secret(b"another secret of 32 bytes or so");
    let tokens = tokens(|_| {});
    let refusal = checked(&tokens, &signed(Algorithm::HS256, &other, &claims)).unwrap_err();
    assert_eq!(refusal, TokenRefusal::Signature);

    let good = token(&claims);
    let better = token(&json!({"exp": NOW + 1, "tier": "pro"}));
    let (_, signature) = good.rsplit_once('.').unwrap();
    let (message, _) = better.rsplit_once('.').unwrap();
    for forged in [format!("{message}.{signature}"), format!("{message}.")] {
        assert_eq!(checked(&tokens, &forged).unwrap_err(), TokenRefusal::Signature);
    }
}

#[test]
fn no_other_algorithm_will_do() {
    let claims = json!({"exp": NOW + 1});
    // The public key taken for a secret: whoever has it could sign, if HS256 were accepted.
    let confused = EncodingKey::from_secret(P256_PUBLIC.as_bytes());
    let confused = signed(Algorithm::HS256, &confused, &claims);
    let es256 = Tokens::new(&TokenSettings::new("ES256", P256_PUBLIC)).unwrap();
    assert_eq!(checked(&es256, &confused).unwrap_err(), TokenRefusal::Algorithm);

    // The right secret, but another of its family.
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    let hs512 = signed(Algorithm::HS512, &secret, &claims);
    assert_eq!(checked(&tokens(|_| {}), &hs512).unwrap_err(), TokenRefusal::Algorithm);

    // {"alg":"none"}, {"alg":"None","typ":"JWT"}, with {"exp":1800000001}.
    for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIiwidHlwIjoiSldUIn0"] {
        for tokens in [&tokens(|_| {}), &es256] {
            let unsigned = format!("{header}.eyJleHAiOjE4MDAwMDAwMDF9.");
            assert_eq!(checked(tokens, &unsigned).unwrap_err(), TokenRefusal::Algorithm);
        }
    }
}

#[test]
fn a_critical_extension_is_refused() {
    let header = Header { crit: Some(vec!["b64".to_owned()]), ..Header::new(Algorithm::HS256) };
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    let token = encode(&header, &json!({"exp": NOW + 1}), &secret).unwrap();
    assert_eq!(checked(&tokens(|_| {}), &token).unwrap_err(), TokenRefusal::Extension);
}

#[test]
fn what_is_no_token_is_malformed() {
    for text in ["", ".", "..", "...", "a.b.c", "Bearer x", "e30.e30.e30.e30"] {
        let refusal = checked(&tokens(|_| {}), text).unwrap_err();
        assert_eq!(refusal, TokenRefusal::Malformed, "{text}");
    }
    assert_eq!(refused(&json!(["exp"])), TokenRefusal::Malformed);
    assert_eq!(refused(&json!("exp")), TokenRefusal::Malformed);
}

#[test]
fn wrong_settings_say_what_to_do() {
    let error = |algorithm: &str, key: &str| {
        Tokens::new(&TokenSettings::new(algorithm, key)).unwrap_err().to_string()
    };
    for algorithm in ["none", "", "hs256", "ES512"] {
        assert!(error(algorithm, SECRET).contains("use HS256, HS384"), "{algorithm}");
    }
    assert!(error("HS256", "secret").contains("6 bytes"));
    assert!(error("HS256", P256_PUBLIC).contains("key in PEM"));
    for key in ["", SECRET, P256_PRIVATE, &format!("{P256_PUBLIC}{P384_PUBLIC}")] {
        assert!(error("ES256", key).contains("-pubout"), "{key}");
    }
    assert!(error("ES256", "-----BEGIN PUBLIC KEY-----\nxx\n").contains("P-256"));
    assert!(error("ES256", P384_PUBLIC).contains("P-256"));
    assert!(error("ES384", P256_PUBLIC).contains("P-384"));
    assert!(error("EdDSA", P256_PUBLIC).contains("Ed25519"));
    assert!(error("RS256", ED_PUBLIC).contains("RSA"));
    assert!(error("PS512", RSA_1024_PUBLIC).contains("2048"));
    assert!(Tokens::new(&TokenSettings::new("ES384", P384_PUBLIC)).is_ok());

    let mut settings = TokenSettings::new("HS256", SECRET);
    settings.leeway = Duration::from_secs(86_400);
    assert_eq!(Tokens::new(&settings), Err(TokenError::Leeway(settings.leeway)));
}

#[test]
fn nothing_is_told_that_is_nobodys_business() {
    let settings = TokenSettings::new("HS256", SECRET);
    let tokens = Tokens::new(&settings).unwrap();
    let claims = checked(&tokens, &token(&json!({"exp": NOW + 1, "email": "a@x.com"}))).unwrap();
    let bytes = format!("{:?}", SECRET.as_bytes());
    for told in [format!("{settings:?}"), format!("{tokens:?}"), format!("{claims:?}")] {
        assert!(!told.contains(SECRET) && !told.contains(&bytes[1..20]), "{told}");
        assert!(!told.contains("a@x.com"), "{told}");
    }
    assert_eq!(tokens, tokens.clone());
    assert_ne!(tokens, Tokens::new(&TokenSettings::new("HS512", SECRET)).unwrap());
    assert_ne!(tokens, Tokens::new(&TokenSettings::new("HS256", [7; 32])).unwrap());
}

proptest! {
    #[test]
    fn any_text_will_do(text in "\\PC*", parts in "[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,20}\\.\\PC{0,9}") {
        let tokens = tokens(|_| {});
        prop_assert!(checked(&tokens, &text).is_err());
        prop_assert!(checked(&tokens, &parts).is_err());
    }
}
