//! Whom to believe, who is listed, and what is told.

use insta::assert_snapshot;

use super::errors;

#[test]
fn networks_that_are_none_are_told() {
    assert_snapshot!(errors(r#"
        [identity]
        trusted_proxies = ["10.0.0.1", "10.0.0.0/33", "localhost", "::1"]
    "#), @r#"
    dashpot.toml:2:21: error: `10.0.0.1` is not a network
      |
    2 | trusted_proxies = ["10.0.0.1", "10.0.0.0/33", "localhost", "::1"]
      |                     ^^^^^^^^
      = write `10.0.0.1/32`

    dashpot.toml:2:33: error: `10.0.0.0/33` is not a network
      |
    2 | trusted_proxies = ["10.0.0.1", "10.0.0.0/33", "localhost", "::1"]
      |                                 ^^^^^^^^^^^
      = write an address and the bits that count, as in `10.0.0.0/8`

    dashpot.toml:2:48: error: `localhost` is not a network
      |
    2 | trusted_proxies = ["10.0.0.1", "10.0.0.0/33", "localhost", "::1"]
      |                                                ^^^^^^^^^
      = write an address and the bits that count, as in `10.0.0.0/8`

    dashpot.toml:2:61: error: `::1` is not a network
      |
    2 | trusted_proxies = ["10.0.0.1", "10.0.0.0/33", "localhost", "::1"]
      |                                                             ^^^
      = write `::1/128`
    "#);
}

#[test]
fn hops_beside_trusted_proxies_are_told() {
    assert_snapshot!(errors(r#"
        [identity]
        trusted_proxies = ["10.0.0.0/8"]
        hops = 1
    "#), @"
    dashpot.toml:3:8: error: `hops` goes instead of `trusted_proxies`, not with it
      |
    3 | hops = 1
      |        ^
    ");
}

#[test]
fn numbers_out_of_range_are_told() {
    assert_snapshot!(errors(r#"
        [identity]
        hops = 0
        ipv6_prefix = 129
        max_body = 99_999_999
        [memory]
        max_keys = 0
    "#), @"
    dashpot.toml:2:8: error: there are 1 to 255 proxies in front; or leave it out
      |
    2 | hops = 0
      |        ^

    dashpot.toml:3:15: error: an IPv6 prefix has 1 to 128 bits
      |
    3 | ipv6_prefix = 129
      |               ^^^

    dashpot.toml:4:12: error: at most 16 MiB of a body are looked at
      |
    4 | max_body = 99_999_999
      |            ^^^^^^^^^^

    dashpot.toml:6:12: error: a store that remembers no key cannot limit anybody
      |
    6 | max_keys = 0
      |            ^
    ");
}

#[test]
fn a_header_that_is_none_is_told() {
    assert_snapshot!(errors(r#"
        [identity]
        client_ip_header = "x forwarded for"
    "#), @r#"
    dashpot.toml:2:21: error: `x forwarded for` is not the name of a header
      |
    2 | client_ip_header = "x forwarded for"
      |                     ^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn users_told_by_what_is_no_part_of_a_request_are_told() {
    assert_snapshot!(errors(r#"
        [identity]
        user = "ip"
        tier = "fact:plan"
        api_key = "x-api-key"
    "#), @r#"
    dashpot.toml:2:9: error: `ip` is not a part of a request
      |
    2 | user = "ip"
      |         ^^
      = use header:…, cookie:…, query:…, jwt:…, json:… or form:…

    dashpot.toml:3:9: error: `fact:plan` is not a part of a request
      |
    3 | tier = "fact:plan"
      |         ^^^^^^^^^
      = use header:…, cookie:…, query:…, jwt:…, json:… or form:…

    dashpot.toml:4:12: error: `x-api-key` is not a fact
      |
    4 | api_key = "x-api-key"
      |            ^^^^^^^^^
      = did you mean `header:x-api-key`?
    "#);
}

#[test]
fn claims_without_a_way_to_verify_them_are_told() {
    assert_snapshot!(errors(r#"
        [identity]
        user = "jwt:sub"
        [[rule]]
        name = "api"
        by = ["jwt:org | ip"]
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:2:9: error: nothing says how to verify tokens
      |
    2 | user = "jwt:sub"
      |         ^^^^^^^
      = write [identity.jwt] with `algorithm` and `key_file`

    dashpot.toml:5:8: error: nothing says how to verify tokens
      |
    5 | by = ["jwt:org | ip"]
      |        ^^^^^^^
      = write [identity.jwt] with `algorithm` and `key_file`
    "#);
}

#[test]
fn a_list_by_claims_without_a_way_to_verify_them_is_told() {
    assert_snapshot!(errors(r#"
        [block]
        "jwt:sub" = ["mallory"]
    "#), @r#"
    dashpot.toml:2:2: error: nothing says how to verify tokens
      |
    2 | "jwt:sub" = ["mallory"]
      |  ^^^^^^^
      = write [identity.jwt] with `algorithm` and `key_file`
    "#);
}

#[test]
fn tokens_without_what_is_needed_are_told() {
    assert_snapshot!(errors(r#"
        [identity.jwt]
        issuer = "me"
    "#), @"
    dashpot.toml:1:1: error: `algorithm` is missing here
      |
    1 | [identity.jwt]
      | ^^^^^^^^^^^^^^

    dashpot.toml:1:1: error: `key_file` is missing here
      |
    1 | [identity.jwt]
      | ^^^^^^^^^^^^^^
    ");
}

#[test]
fn a_token_that_is_told_in_the_body_is_told() {
    assert_snapshot!(errors(r#"
        [identity.jwt]
        algorithm = "HS256"
        key_file = "no-such-file"
        token = "json:token"
    "#), @r#"
    dashpot.toml:3:13: error: cannot read `no-such-file`: No such file or directory (os error 2)
      |
    3 | key_file = "no-such-file"
      |             ^^^^^^^^^^^^

    dashpot.toml:4:10: error: a token is told in a header, a cookie or the query
      |
    4 | token = "json:token"
      |          ^^^^^^^^^^
    "#);
}

#[test]
fn styles_that_write_the_same_fields_are_told() {
    assert_snapshot!(errors(r#"
        [headers]
        styles = ["x-ratelimit", "draft-06", "ietf"]
    "#), @r#"
    dashpot.toml:2:39: error: `draft-06` and `ietf` write the same fields; choose one
      |
    2 | styles = ["x-ratelimit", "draft-06", "ietf"]
      |                                       ^^^^
    "#);
}

#[test]
fn none_among_others_is_told() {
    assert_snapshot!(errors(r#"
        [headers]
        styles = ["none", "ietf"]
    "#), @r#"
    dashpot.toml:2:12: error: `none` goes with no other style
      |
    2 | styles = ["none", "ietf"]
      |            ^^^^
    "#);
}

#[test]
fn lists_by_what_is_no_fact_or_with_what_is_no_value_are_told() {
    assert_snapshot!(errors(r#"
        [allow]
        ips = ["10.0.0.0/8"]
        [block]
        ip = ["10.0.0.0/99", "example.com"]
        "param:id" = ["7"]
    "#), @r#"
    dashpot.toml:2:1: error: `ips` is not a fact
      |
    2 | ips = ["10.0.0.0/8"]
      | ^^^
      = did you mean `ip`?

    dashpot.toml:4:8: error: `10.0.0.0/99` is not an address or a network
      |
    4 | ip = ["10.0.0.0/99", "example.com"]
      |        ^^^^^^^^^^^
      = write `203.0.113.7` or `10.0.0.0/8`

    dashpot.toml:4:23: error: `example.com` is not an address or a network
      |
    4 | ip = ["10.0.0.0/99", "example.com"]
      |                       ^^^^^^^^^^^
      = write `203.0.113.7` or `10.0.0.0/8`

    dashpot.toml:5:2: error: a list is about all requests, and `param:` about one rule's
      |
    5 | "param:id" = ["7"]
      |  ^^^^^^^^
    "#);
}

/// Rules are matched before the body is read, so what is told there cannot be matched by.
#[test]
fn what_is_told_in_the_body_cannot_be_matched_by() {
    let text = "[identity]\nuser = 'json:user'\n[[rule]]\nname = 'r'\nlimits = '1/s'\n";
    for condition in ["match.without = 'user'", "match.fact.user = '*'"] {
        let errors = dashpot_rules::RuleSet::parse(&format!("{text}{condition}")).unwrap_err();
        let told = errors.to_string();
        assert!(told.contains("`user` is not known when rules are matched"), "{told}");
    }
}
