//! What was probably meant.

use insta::assert_snapshot;

use super::errors;

#[test]
fn a_key_or_section_written_twice_is_told_with_its_first_place() {
    assert_snapshot!(errors(r#"
        [store]
        deadline = "20ms"
        [identity.jwt]
        algorithm = "HS256"
        key_file = "no-such-file"
        [[rule]]
        name = "one"
        limits = ["5/s"]
        [[rule]]
        name = "two"
        match = { fact = { name = "x", "fact:b" = "y", "fact:b" = "z" } }
        limits = ["5/s"]
        name = "three"
        [rule.on_deny]
        status = 403
        [rule.on_deny]
        status = 403
        [identity.jwt]
        issuer = "me"
        [store]
        deadline = "30ms"
    "#), @r#"
    dashpot.toml:5:13: error: cannot read `no-such-file`: No such file or directory (os error 2)
      |
    5 | key_file = "no-such-file"
      |             ^^^^^^^^^^^^

    dashpot.toml:11:48: error: `fact:b` is here already (line 11)
       |
    11 | match = { fact = { name = "x", "fact:b" = "y", "fact:b" = "z" } }
       |                                                ^^^^^^^^

    dashpot.toml:13:1: error: `name` is here already (line 10)
       |
    13 | name = "three"
       | ^^^^

    dashpot.toml:16:7: error: `on_deny` is here already (line 14)
       |
    16 | [rule.on_deny]
       |       ^^^^^^^

    dashpot.toml:17:1: error: `status` is here already (line 15)
       |
    17 | status = 403
       | ^^^^^^

    dashpot.toml:18:11: error: `jwt` is here already (line 3)
       |
    18 | [identity.jwt]
       |           ^^^

    dashpot.toml:20:2: error: `store` is here already (line 1)
       |
    20 | [store]
       |  ^^^^^

    dashpot.toml:21:1: error: `deadline` is here already (line 2)
       |
    21 | deadline = "30ms"
       | ^^^^^^^^
    "#);
}

#[test]
fn facts_are_listed_once() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
        limits = ["5/s"]
        [block]
        xxx = ["1"]
    "#), @r#"
    dashpot.toml:3:8: error: `zzz` is not a fact
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |        ^^^
      = use ip, user, api_key, tier, method, path, host, or header:…, cookie:…, query:…, param:…, json:…, form:…, jwt:…, fact:…

    dashpot.toml:3:15: error: `yyy` is not a fact
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |               ^^^

    dashpot.toml:3:22: error: `user-agent` is not a fact
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |                      ^^^^^^^^^^
      = did you mean `header:user-agent`?

    dashpot.toml:3:36: error: `API-Key` is not a fact
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |                                    ^^^^^^^
      = did you mean `api_key` or `header:api-key`?

    dashpot.toml:3:47: error: `header` is not a fact
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |                                               ^^^^^^
      = did you mean `header:…`?

    dashpot.toml:3:57: error: `Cookie:sid` is not a fact
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |                                                         ^^^^^^^^^^
      = did you mean `cookie:sid`?

    dashpot.toml:3:71: error: `user & host` is not a fact
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |                                                                       ^^^^^^^^^^^
      = write ["user", "host"]

    dashpot.toml:3:90: error: a fact is missing here
      |
    3 | by = ["zzz", "yyy", "user-agent", "API-Key", "header", "Cookie:sid", "user & host", "ip ||"]
      |                                                                                          ^

    dashpot.toml:6:1: error: `xxx` is not a fact
      |
    6 | xxx = ["1"]
      | ^^^
    "#);
}

#[test]
fn where_somebody_is_told_is_a_part_of_the_request() {
    for (source, meant) in [
        ("x-user-id", "did you mean `header:x-user-id`?"),
        ("api-key", "did you mean `header:api-key`?"),
        ("cookies:sid", "did you mean `cookie:sid`?"),
        ("usr", "use header:…, cookie:…, query:…, jwt:…, json:… or form:…"),
    ] {
        for key in ["user", "api_key", "tier"] {
            let errors = errors(&format!("[identity]\n{key} = '{source}'"));
            assert!(errors.ends_with(&format!("  = {meant}")), "{errors}");
        }
    }
}

#[test]
fn times_that_are_none_are_told_by_what_is_missing() {
    assert_snapshot!(errors(r#"
        [headers]
        jitter = ""
        [store]
        deadline = "20"
        [identity.jwt]
        algorithm = "HS256"
        key_file = "no-such-file"
        leeway = "1.5s"
    "#), @r#"
    dashpot.toml:2:11: error: a number is missing here; write one and a unit, as in "20ms"
      |
    2 | jitter = ""
      |           ^

    dashpot.toml:4:15: error: a unit of time is missing here; use ms, s, min or h
      |
    4 | deadline = "20"
      |               ^

    dashpot.toml:7:13: error: cannot read `no-such-file`: No such file or directory (os error 2)
      |
    7 | key_file = "no-such-file"
      |             ^^^^^^^^^^^^

    dashpot.toml:8:12: error: write a smaller unit instead, as in 1500ms
      |
    8 | leeway = "1.5s"
      |            ^^^
    "#);
    for (time, told) in [
        ("0s", "a time is longer than nothing"),
        ("s", "a number is missing"),
        ("-5s", "a number is missing"),
        ("2h", "`2h` is more than an hour"),
        ("1month", "`1month` is more than an hour"),
        ("1year", "more than an hour"),
        ("61min", "more than an hour"),
        ("99999999999999999999s", "more than"),
        ("5s 6s", "is not a unit of time; use ms, s, min or h"),
    ] {
        for file in [format!("store.deadline = '{time}'"), format!("headers.jitter = '{time}'")] {
            let errors = errors(&file);
            assert!(errors.contains(told), "{time}: {errors}");
        }
    }
    for time in ["1h", "60min", "20ms", "3600s", "1 s"] {
        let file = format!("store.deadline = '{time}'\nheaders.jitter = '{time}'");
        assert!(dashpot_rules::RuleSet::parse(&file).is_ok(), "{time}");
    }
}

#[test]
fn tables_written_as_one_value_are_told_how_to_write_them() {
    assert_snapshot!(errors(r#"
        store = "redis://:hunter2@a"
        allow = ["10.0.0.0/8"]
        [[rule]]
        name = "a"
        limits = ["5/s"]
        on_deny = "/captcha"
        match = ["/a", "/b"]
        [[rule]]
        name = "b"
        tiers = "5/s"
        match = { path = "/", header = "x-a" }
        on_deny = "Slow down."
    "#), @r#"
    dashpot.toml:1:10: error: expected a table, found a text
      |
    1 | store = "redis://********@a"
      |          ^^^^^^^^^^^^^^^^^^
      = write store = { url = "redis://…" }

    dashpot.toml:2:9: error: expected a table, found a list
      |
    2 | allow = ["10.0.0.0/8"]
      |         ^^^^^^^^^^^^^^
      = write allow = { ip = ["203.0.113.7"] }

    dashpot.toml:6:12: error: expected a table, found a text
      |
    6 | on_deny = "/captcha"
      |            ^^^^^^^^
      = write on_deny = { redirect = "/captcha" }

    dashpot.toml:7:9: error: expected a table, found a list
      |
    7 | match = ["/a", "/b"]
      |         ^^^^^^^^^^^^
      = write match = { path = […] }

    dashpot.toml:10:10: error: expected a table, found a text
       |
    10 | tiers = "5/s"
       |          ^^^
       = write tiers.free = ["60/min"]

    dashpot.toml:11:33: error: expected a table, found a text
       |
    11 | match = { path = "/", header = "x-a" }
       |                                 ^^^
       = write header = { x-name = "value" }

    dashpot.toml:12:12: error: expected a table, found a text
       |
    12 | on_deny = "Slow down."
       |            ^^^^^^^^^^
       = write on_deny = { body = "Slow down." }
    "#);
}

#[test]
fn a_mistake_in_one_alternative_is_underlined_alone() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        match = { path = "/a" }
        by = ["ip | jwt:org | param:id"]
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:4:13: error: nothing says how to verify tokens
      |
    4 | by = ["ip | jwt:org | param:id"]
      |             ^^^^^^^
      = write [identity.jwt] with `algorithm` and `key_file`

    dashpot.toml:4:23: error: `{id}` is not in every path of this rule
      |
    4 | by = ["ip | jwt:org | param:id"]
      |                       ^^^^^^^^
      = write match.path = "/…/{id}"
    "#);
}

#[test]
fn words_that_others_use_are_understood() {
    for (file, meant) in [
        ("store.on_error = 'closed'", "`deny`"),
        ("store.on_error = 'Fail-Open'", "`allow`"),
        ("store.on_error = 'DENY'", "`deny`"),
        ("store.on_error = 'loacl'", "`local`"),
        ("headers.styles = 'off'", "`none`"),
    ] {
        let errors = errors(file);
        assert!(errors.contains(&format!("did you mean {meant}?")), "{errors}");
    }
}
