//! Keys, types and syntax.

use insta::assert_snapshot;

use super::errors;

#[test]
fn an_unknown_section_is_told_with_what_was_meant() {
    assert_snapshot!(errors(r#"
        [identiy]
        hops = 1
    "#), @"
    dashpot.toml:1:2: error: unknown key `identiy`
      |
    1 | [identiy]
      |  ^^^^^^^
      = did you mean `identity`?
    ");
}

#[test]
fn an_unknown_section_like_no_other_is_told_with_all_there_are() {
    assert_snapshot!(errors(r#"
        zzz = 1
    "#), @"
    dashpot.toml:1:1: error: unknown key `zzz`
      |
    1 | zzz = 1
      | ^^^
      = known here: store, memory, serve, proxy, identity, headers, allow, block, priority, rule
    ");
}

#[test]
fn unknown_keys_are_told_at_every_level() {
    assert_snapshot!(errors(r#"
        [store]
        ulr = "redis://localhost"
        [memory]
        maxkeys = 5
        [identity]
        trusted_proxy = ["10.0.0.0/8"]
        [identity.jwt]
        algorithm = "HS256"
        key_file = "no-such-file"
        audiance = "me"
        [headers]
        style = "ietf"
        [[priority]]
        name = "p"
        wieght = 2
        [[rule]]
        name = "r"
        limit = "5/s"
        match = { methods = "GET" }
        on_deny = { stauts = 403 }
    "#), @r#"
    dashpot.toml:2:1: error: unknown key `ulr`
      |
    2 | ulr = "redis://localhost"
      | ^^^
      = did you mean `url`?

    dashpot.toml:4:1: error: unknown key `maxkeys`
      |
    4 | maxkeys = 5
      | ^^^^^^^
      = did you mean `max_keys`?

    dashpot.toml:6:1: error: unknown key `trusted_proxy`
      |
    6 | trusted_proxy = ["10.0.0.0/8"]
      | ^^^^^^^^^^^^^
      = did you mean `trusted_proxies`?

    dashpot.toml:9:13: error: cannot read `no-such-file`: No such file or directory (os error 2)
      |
    9 | key_file = "no-such-file"
      |             ^^^^^^^^^^^^

    dashpot.toml:10:1: error: unknown key `audiance`
       |
    10 | audiance = "me"
       | ^^^^^^^^
       = did you mean `audience`?

    dashpot.toml:12:1: error: unknown key `style`
       |
    12 | style = "ietf"
       | ^^^^^
       = did you mean `styles`?

    dashpot.toml:14:9: error: this priority has neither a weight nor a class
       |
    14 | name = "p"
       |         ^
       = write weight = 10.0, or class = "critical"

    dashpot.toml:15:1: error: unknown key `wieght`
       |
    15 | wieght = 2
       | ^^^^^^
       = did you mean `weight`?

    dashpot.toml:17:9: error: this rule has no limits
       |
    17 | name = "r"
       |         ^
       = write limits = ["100/min"], or tiers.free = ["60/min"]

    dashpot.toml:18:1: error: unknown key `limit`
       |
    18 | limit = "5/s"
       | ^^^^^
       = did you mean `limits`?

    dashpot.toml:19:11: error: unknown key `methods`
       |
    19 | match = { methods = "GET" }
       |           ^^^^^^^
       = did you mean `method`?

    dashpot.toml:20:13: error: unknown key `stauts`
       |
    20 | on_deny = { stauts = 403 }
       |             ^^^^^^
       = did you mean `status`?
    "#);
}

#[test]
fn other_types_than_wanted_are_told() {
    assert_snapshot!(errors(r#"
        [store]
        url = 5
        deadline = 20
        [memory]
        max_keys = "many"
        [headers]
        expose = "yes"
        styles = [true]
        [[priority]]
        name = "p"
        weight = [1]
        [[rule]]
        name = 5
        match = "/login"
        by = { ip = true }
        limits = [100]
        shadow = 1
        cost = 1.5
        on_deny = 403
    "#), @r#"
    dashpot.toml:2:7: error: expected a text, found a number
      |
    2 | url = 5
      |       ^

    dashpot.toml:3:12: error: expected a time, as in "20ms", found a number
      |
    3 | deadline = 20
      |            ^^

    dashpot.toml:5:13: error: expected a whole number, found a text
      |
    5 | max_keys = "many"
      |             ^^^^

    dashpot.toml:7:11: error: expected true or false, found a text
      |
    7 | expose = "yes"
      |           ^^^

    dashpot.toml:8:11: error: expected one of ietf, draft-07, draft-06, x-ratelimit, none, found true or false
      |
    8 | styles = [true]
      |           ^^^^

    dashpot.toml:11:10: error: expected a number above 0, or "unlimited", found a list
       |
    11 | weight = [1]
       |          ^^^

    dashpot.toml:13:8: error: expected a name, found a number
       |
    13 | name = 5
       |        ^

    dashpot.toml:14:10: error: expected a table, found a text
       |
    14 | match = "/login"
       |          ^^^^^^
       = write match = { path = "/login" }

    dashpot.toml:15:6: error: expected a fact, as in "ip", found a table
       |
    15 | by = { ip = true }
       |      ^^^^^^^^^^^^^

    dashpot.toml:16:11: error: expected a limit, as in "100/min", found a number
       |
    16 | limits = [100]
       |           ^^^

    dashpot.toml:17:10: error: expected true or false, found a number
       |
    17 | shadow = 1
       |          ^

    dashpot.toml:18:8: error: expected a whole number, found a fraction
       |
    18 | cost = 1.5
       |        ^^^

    dashpot.toml:19:11: error: expected a table, found a number
       |
    19 | on_deny = 403
       |           ^^^
       = write on_deny = { status = 403 }
    "#);
}

#[test]
fn one_pair_of_brackets_makes_one_rule_of_many() {
    assert_snapshot!(errors(r#"
        [rule]
        name = "api"
        limits = ["5/s"]
    "#), @"
    dashpot.toml:1:1: error: expected a list of tables
      |
    1 | [rule]
      | ^^^^^^
      = write double brackets, as in [[rule]]: there may be several
    ");
}

#[test]
fn words_that_are_none_of_a_few_are_told_with_those() {
    assert_snapshot!(errors(r#"
        [store]
        on_error = "open"
        [headers]
        styles = ["x-rate-limit"]
        [[rule]]
        name = "api"
        limits = ["5/s"]
        algorithm = "token_bucket"
        absent = "ignore"
        on_store_error = "Local"
    "#), @r#"
    dashpot.toml:2:13: error: `open` is not a choice here; use allow, deny, local
      |
    2 | on_error = "open"
      |             ^^^^
      = did you mean `allow`?

    dashpot.toml:4:12: error: `x-rate-limit` is not a header style; use ietf, draft-07, draft-06, x-ratelimit, none
      |
    4 | styles = ["x-rate-limit"]
      |            ^^^^^^^^^^^^
      = did you mean `x-ratelimit`?

    dashpot.toml:8:14: error: `token_bucket` is not an algorithm; use token-bucket, leaky-bucket, fixed-window, sliding-log, sliding-window, concurrency
      |
    8 | algorithm = "token_bucket"
      |              ^^^^^^^^^^^^
      = did you mean `token-bucket`?

    dashpot.toml:9:11: error: `ignore` is not a choice here; use share, skip, deny
      |
    9 | absent = "ignore"
      |           ^^^^^^
      = did you mean `skip`?

    dashpot.toml:10:19: error: `Local` is not a choice here; use allow, deny, local
       |
    10 | on_store_error = "Local"
       |                   ^^^^^
       = did you mean `local`?
    "#);
}

#[test]
fn negative_and_huge_numbers_are_told() {
    assert_snapshot!(errors(r#"
        [memory]
        max_keys = -1
        [[rule]]
        name = "api"
        limits = ["5/s"]
        cost = 99999999999999999999
    "#), @"
    dashpot.toml:2:12: error: -1 is negative
      |
    2 | max_keys = -1
      |            ^^

    dashpot.toml:6:8: error: 99999999999999999999 is too large
      |
    6 | cost = 99999999999999999999
      |        ^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn numbers_that_are_no_weight_are_told() {
    assert_snapshot!(errors(r#"
        [[priority]]
        name = "none"
        weight = 0
        [[priority]]
        name = "less"
        weight = -1.0
        [[priority]]
        name = "exponent"
        weight = 1e3
        [[priority]]
        name = "word"
        weight = "infinite"
    "#), @r#"
    dashpot.toml:3:10: error: `0` is not a weight
      |
    3 | weight = 0
      |          ^
      = write a number above 0 with at most nine decimals, or "unlimited"

    dashpot.toml:6:10: error: `-1.0` is not a weight
      |
    6 | weight = -1.0
      |          ^^^^
      = write a number above 0 with at most nine decimals, or "unlimited"

    dashpot.toml:9:10: error: `1e3` is not a weight
      |
    9 | weight = 1e3
      |          ^^^
      = write a number above 0 with at most nine decimals, or "unlimited"

    dashpot.toml:12:11: error: `infinite` is not a weight
       |
    12 | weight = "infinite"
       |           ^^^^^^^^
       = write a number above 0 with at most nine decimals, or "unlimited"
    "#);
}

#[test]
fn times_that_are_none_are_told() {
    assert_snapshot!(errors(r#"
        [store]
        deadline = "20 msecs"
        [headers]
        jitter = "soon"
    "#), @r#"
    dashpot.toml:2:16: error: `msecs` is not a unit of time; use ms, s, min or h
      |
    2 | deadline = "20 msecs"
      |                ^^^^^

    dashpot.toml:4:11: error: a number is missing here; write one and a unit, as in "20ms"
      |
    4 | jitter = "soon"
      |           ^^^^
    "#);
}

#[test]
fn a_quote_that_is_not_closed_is_told_where_it_is() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:2:12: error: invalid basic string, expected `"`
      |
    2 | name = "api
      |            ^
    "#);
}

#[test]
fn a_key_without_a_value_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name =
        limits = ["5/s"]
    "#), @"
    dashpot.toml:2:7: error: string values must be quoted, expected literal string
      |
    2 | name =
      |       ^
    ");
}

#[test]
fn a_bracket_that_is_not_closed_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]
        name = "api"
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:1:8: error: unclosed array table, expected `]`
      |
    1 | [[rule]
      |        ^

    dashpot.toml:3:1: error: unknown key `limits`
      |
    3 | limits = ["5/s"]
      | ^^^^^^
      = known here: store, memory, serve, proxy, identity, headers, allow, block, priority, rule
    "#);
}

#[test]
fn a_key_written_twice_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        limits = ["6/s"]
    "#), @r#"
    dashpot.toml:4:1: error: `limits` is here already (line 3)
      |
    4 | limits = ["6/s"]
      | ^^^^^^
    "#);
}

#[test]
fn yaml_is_no_rule_file() {
    assert_snapshot!(errors(r#"
        rules:
          - name: api
    "#), @"
    dashpot.toml:1:6: error: invalid unquoted key, expected letters, numbers, `-`, `_`
      |
    1 | rules:
      |      ^

    dashpot.toml:1:7: error: key with no value, expected `=`
      |
    1 | rules:
      |       ^

    dashpot.toml:2:5: error: key with no value, expected `=`
      |
    2 |   - name: api
      |     ^
    ");
}

#[test]
fn syntax_and_meaning_are_told_together() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/fortnight"]
        cost = = 3
        [[rule]]
        name = "other"
        limit = ["5/s"]
    "#), @r#"
    dashpot.toml:3:14: error: `fortnight` is not a unit of time; use s, min, h, day, week, month or year
      |
    3 | limits = ["5/fortnight"]
      |              ^^^^^^^^^

    dashpot.toml:4:8: error: extra `=`, expected nothing
      |
    4 | cost = = 3
      |        ^

    dashpot.toml:4:10: error: unexpected key or value, expected newline, `#`
      |
    4 | cost = = 3
      |          ^

    dashpot.toml:6:9: error: this rule has no limits
      |
    6 | name = "other"
      |         ^^^^^
      = write limits = ["100/min"], or tiers.free = ["60/min"]

    dashpot.toml:7:1: error: unknown key `limit`
      |
    7 | limit = ["5/s"]
      | ^^^^^
      = did you mean `limits`?
    "#);
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_lines() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "one"
        limits = ["0x5/s"]

        [[rule]]
        name = "two"
        by = ["pi"]
        limits = ["5/s"]

        [headers]
        styles = ["ietf", "draft-07"]

        [store]
        on_error = "maybe"
    "#), @r#"
    dashpot.toml:3:13: error: expected digits, or one of k, M, G, T
      |
    3 | limits = ["0x5/s"]
      |             ^^

    dashpot.toml:7:8: error: `pi` is not a fact
      |
    7 | by = ["pi"]
      |        ^^
      = did you mean `ip`?

    dashpot.toml:11:20: error: `ietf` and `draft-07` write the same fields; choose one
       |
    11 | styles = ["ietf", "draft-07"]
       |                    ^^^^^^^^

    dashpot.toml:14:13: error: `maybe` is not a choice here; use allow, deny, local
       |
    14 | on_error = "maybe"
       |             ^^^^^
    "#);
}

#[test]
fn carets_are_under_what_is_meant_after_letters_of_several_bytes() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api" # äöü
        match = { header = { x-stadt = "Zürich 🚲" }, pathh = "/" }
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:3:46: error: unknown key `pathh`
      |
    3 | match = { header = { x-stadt = "Zürich 🚲" }, pathh = "/" }
      |                                              ^^^^^
      = did you mean `path`?
    "#);
}
