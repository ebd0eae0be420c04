//! Tokens: who signed them is believed, and nobody else.
#![cfg(feature = "jwt")]

use std::fs;
use std::path::PathBuf;

use dashpot_rules::RuleSet;

use crate::common::{Server, get, rules_in};

// Signed once, with this secret, and good until 2100.
const SECRET: &str = "0123456789abcdef0123456789abcdef";
const HS256: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
/// {"exp":4102444800,"iss":"us","sub":"alice","plan":"pro"}
const ALICE: &str = "eyJleHAiOjQxMDI0NDQ4MDAsImlzcyI6InVzIiwic3ViIjoiYWxpY2UiLCJwbGFuIjoicHJvIn0";
const ALICES_SIGNATURE: &str = "oJHHyJMOO4kR6Wq5uYy5YJOmLtcuPz9y6lSbh1zayGg";
/// {"exp":4102444800,"iss":"us","sub":"bob"}
const BOB: &str = "eyJleHAiOjQxMDI0NDQ4MDAsImlzcyI6InVzIiwic3ViIjoiYm9iIn0";
const BOBS_SIGNATURE: &str = "9tUbgNdUHRnKjL1ifmewtVltCipAUrYK8B8Qqbrq4cM";
/// {"exp":4102444800,"iss":"us","sub":"eve","plan":"pro"}
const EVE: &str = "eyJleHAiOjQxMDI0NDQ4MDAsImlzcyI6InVzIiwic3ViIjoiZXZlIiwicGxhbiI6InBybyJ9";

fn alice() -> String {
    format!("Bearer {HS256}.{ALICE}.{ALICES_SIGNATURE}")
}

fn bob() -> String {
    format!("Bearer {HS256}.{BOB}.{BOBS_SIGNATURE}")
}

/// Tokens that say somebody is eve, a pro, and are not to be believed; and why.
fn forged() -> Vec<(&'static str, String)> {
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    let hs512 = "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9";
    let past = "eyJleHAiOjE2MDAwMDAwMDAsImlzcyI6InVzIiwic3ViIjoiZXZlIiwicGxhbiI6InBybyJ9";
    let them = "eyJleHAiOjQxMDI0NDQ4MDAsImlzcyI6InRoZW0iLCJzdWIiOiJldmUiLCJwbGFuIjoicHJvIn0";
    let later = "eyJleHAiOjQxMDI0NDQ4MDAsIm5iZiI6NDEwMjQ0NDcwMCwiaXNzIjoidXMiLCJzdWIiOiJldmUiLCJwbGFuIjoicHJvIn0";
    let for_ever = "eyJpc3MiOiJ1cyIsInN1YiI6ImV2ZSIsInBsYW4iOiJwcm8ifQ";
    let tokens = [
        ("expired", format!("{HS256}.{past}.j-nwZrGkJhAfZ0AKxAFz1oFcdtwlAjzIORC8kg2GCIA")),
        ("of another key", format!("{HS256}.{EVE}.PnMSukqd8uiuX__BpF1oqUeSV7xWCePqTvih3M3gSME")),
        (
            "of another issuer",
            format!("{HS256}.{them}.heLrNVuE6_1ihetZf41Omb08AQd2aa9isSyckLhQofE"),
        ),
        ("not valid yet", format!("{HS256}.{later}.tNecAZWqKfbmU0eWbjUt3I2i8iqwZmErpZavxlXH0_k")),
        (
            "good for ever",
            format!("{HS256}.{for_ever}.r0-S-vcsxgpJrzGNztPSpqbGUaY5mYFlRwZpN3H8rmw"),
        ),
        (
            "of another algorithm",
            format!(
                "{hs512}.{EVE}.3seo6gFmy522LnIcQ03Hbg32ypa1kdbs2JuYPNV0mZvgu9V_HAVUX5Cet_LgOvpB\
                 _tsT-PS9YPIyf34XLQB6DQ"
            ),
        ),
        ("of no algorithm", format!("{none}.{EVE}.")),
        ("of no algorithm, signed", format!("{none}.{EVE}.{ALICES_SIGNATURE}")),
        ("with alice's signature", format!("{HS256}.{EVE}.{ALICES_SIGNATURE}")),
        ("without a signature", format!("{HS256}.{EVE}.")),
        ("without a third part", format!("{HS256}.{EVE}")),
        ("no token at all", "eve".to_owned()),
        ("empty", String::new()),
    ];
    tokens.into_iter().map(|(why, token)| (why, format!("Bearer {token}"))).collect()
}

/// Nobody is trusted; the signature alone counts.
fn signed(name: &str) -> RuleSet {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("secret"), SECRET).unwrap();
    let text = r#"
        [identity]
        user = "jwt:sub"
        tier = "jwt:plan"
        default_tier = "free"
        jwt = { algorithm = "HS256", key_file = "secret", issuer = "us" }

        [[rule]]
        name = "api"
        by = ["user | ip"]
        tiers.free = ["2/min"]
        tiers.pro = ["4/min"]
    "#;
    rules_in(&directory, text)
}

#[tokio::test]
async fn a_verified_claim_is_the_user_and_the_tier() {
    let server = Server::limited(signed("verified")).await;
    let asked = get("/").line("authorization", alice());
    assert_eq!(asked.statuses(&server, 3).await, [200; 3]);
    // One user is one caller, wherever the token comes from and however the scheme is spelled.
    let asked =
        get("/").from("127.0.0.2").line("Authorization", alice().replace("Bearer", "bearer"));
    assert_eq!(asked.statuses(&server, 2).await, [200, 429]);
    let asked = get("/").line("authorization", bob());
    assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn a_forged_token_is_as_good_as_none() {
    for (why, token) in forged() {
        let server = Server::limited(signed("forged")).await;
        let asked = get("/").line("authorization", token);
        assert_eq!(asked.statuses(&server, 3).await, [200, 200, 429], "{why}");
        assert_eq!(get("/").status(&server).await, 429, "{why}: those count by address");
    }
}

#[tokio::test]
async fn all_forged_tokens_together_buy_nothing() {
    let server = Server::limited(signed("together")).await;
    for (_, token) in forged() {
        get("/").line("authorization", token).send(&server).await;
    }
    assert_eq!(server.served(), 2);
    assert_eq!(get("/").line("authorization", alice()).status(&server).await, 200);
}

/// Two lines are one that is no token: nobody chooses which of them counts.
#[tokio::test]
async fn two_tokens_are_none() {
    let server = Server::limited(signed("two")).await;
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
    let asked = get("/").line("authorization", alice()).line("authorization", bob());
    assert_eq!(asked.status(&server).await, 429);
}

#[tokio::test]
async fn what_else_the_caller_says_does_not_count() {
    let server = Server::limited(signed("else")).await;
    for n in 0..4 {
        let asked = get("/").line("authorization", bob()).line("x-plan", "pro");
        let asked = asked.line("x-user-id", format!("u{n}")).line("plan", "pro");
        assert_eq!(asked.status(&server).await, if n < 2 { 200 } else { 429 }, "{n}");
    }
}
