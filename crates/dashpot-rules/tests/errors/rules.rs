//! Rules, priorities and what they match.

use insta::assert_snapshot;

use super::errors;

#[test]
fn a_rule_without_a_name_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        limits = ["5/s"]
    "#), @"
    dashpot.toml:1:1: error: `name` is missing here
      |
    1 | [[rule]]
      | ^^^^^^^^
    ");
}

#[test]
fn a_name_that_could_not_be_shown_in_a_header_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "my api"
        limits = ["5/s"]
        [[rule]]
        name = ""
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:2:9: error: a name has 1 to 64 letters, digits, `.`, `_` or `-`: it is shown in headers and metrics
      |
    2 | name = "my api"
      |         ^^^^^^

    dashpot.toml:5:9: error: a name has 1 to 64 letters, digits, `.`, `_` or `-`: it is shown in headers and metrics
      |
    5 | name = ""
      |         ^
    "#);
}

#[test]
fn a_fact_nobody_knows_is_told_in_the_midst_of_others() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        by = ["api_key | usr | ip", "path"]
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:3:18: error: `usr` is not a fact
      |
    3 | by = ["api_key | usr | ip", "path"]
      |                  ^^^
      = did you mean `user`?
    "#);
}

#[test]
fn facts_without_a_name_or_without_sense_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        by = ["header:", "headers:x-id", "IP", "ip |", ""]
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:3:8: error: `header:` is followed by a name of up to 128 printable characters, as in `header:id`
      |
    3 | by = ["header:", "headers:x-id", "IP", "ip |", ""]
      |        ^^^^^^^

    dashpot.toml:3:19: error: `headers:x-id` is not a fact
      |
    3 | by = ["header:", "headers:x-id", "IP", "ip |", ""]
      |                   ^^^^^^^^^^^^
      = did you mean `header:x-id`?

    dashpot.toml:3:35: error: `IP` is not a fact
      |
    3 | by = ["header:", "headers:x-id", "IP", "ip |", ""]
      |                                   ^^
      = did you mean `ip`?

    dashpot.toml:3:45: error: a fact is missing here
      |
    3 | by = ["header:", "headers:x-id", "IP", "ip |", ""]
      |                                             ^

    dashpot.toml:3:49: error: a fact is missing here
      |
    3 | by = ["header:", "headers:x-id", "IP", "ip |", ""]
      |                                                 ^
    "#);
}

#[test]
fn two_facts_in_one_text_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        by = "ip, path"
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:3:7: error: `ip, path` is not a fact
      |
    3 | by = "ip, path"
      |       ^^^^^^^^
      = write ["ip", "path"]
    "#);
}

#[test]
fn an_empty_by_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        by = []
        match = { method = [], path = [] }
        limits = ["5/s"]
    "#), @"
    dashpot.toml:3:6: error: an empty list; leave `by` out or name one
      |
    3 | by = []
      |      ^^

    dashpot.toml:4:20: error: an empty list; leave `method` out or name one
      |
    4 | match = { method = [], path = [] }
      |                    ^^

    dashpot.toml:4:31: error: an empty list; leave `path` out or name one
      |
    4 | match = { method = [], path = [] }
      |                               ^^
    ");
}

#[test]
fn a_parameter_that_is_in_no_path_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        match = { path = ["/users/{id}", "/groups/{group}"] }
        by = ["param:id"]
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:4:8: error: `{id}` is not in every path of this rule
      |
    4 | by = ["param:id"]
      |        ^^^^^^^^
      = write match.path = "/…/{id}"
    "#);
}

#[test]
fn paths_hosts_and_methods_that_match_nothing_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        [rule.match]
        method = ["GET", "P OST"]
        path = ["login", "/a*", "/{}", "/search?q=1"]
        host = ["https://example.com", "example.com:80", "a.*.com", ""]
        header = { "x y" = "1" }
    "#), @r#"
    dashpot.toml:5:19: error: `P OST` is not a method; write one as in "POST"
      |
    5 | method = ["GET", "P OST"]
      |                   ^^^^^

    dashpot.toml:6:10: error: a path begins with `/`
      |
    6 | path = ["login", "/a*", "/{}", "/search?q=1"]
      |          ^^^^^

    dashpot.toml:6:19: error: `*` and `{name}` stand for a whole segment: `/files/*`, not `/files/a*`
      |
    6 | path = ["login", "/a*", "/{}", "/search?q=1"]
      |                   ^^^

    dashpot.toml:6:26: error: `{}` holds a name of letters, digits and `_`
      |
    6 | path = ["login", "/a*", "/{}", "/search?q=1"]
      |                          ^^^

    dashpot.toml:6:33: error: a path is matched without its query; leave out what begins with `?`
      |
    6 | path = ["login", "/a*", "/{}", "/search?q=1"]
      |                                 ^^^^^^^^^^^

    dashpot.toml:7:10: error: `https://example.com` names a port or a scheme; write the host alone
      |
    7 | host = ["https://example.com", "example.com:80", "a.*.com", ""]
      |          ^^^^^^^^^^^^^^^^^^^

    dashpot.toml:7:33: error: `example.com:80` names a port or a scheme; write the host alone
      |
    7 | host = ["https://example.com", "example.com:80", "a.*.com", ""]
      |                                 ^^^^^^^^^^^^^^

    dashpot.toml:7:51: error: a `*` is only understood in front, as in `*.example.com`
      |
    7 | host = ["https://example.com", "example.com:80", "a.*.com", ""]
      |                                                   ^^^^^^^

    dashpot.toml:7:62: error: `` is not a host, as in `example.com`
      |
    7 | host = ["https://example.com", "example.com:80", "a.*.com", ""]
      |                                                              ^

    dashpot.toml:8:13: error: `x y` is not the name of a header
      |
    8 | header = { "x y" = "1" }
      |             ^^^
    "#);
}

#[test]
fn charging_twice_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        charge_on = [200]
        settle = "header:x-cost"
    "#), @r#"
    dashpot.toml:5:11: error: `settle` and `charge_on` do not go together; choose one
      |
    5 | settle = "header:x-cost"
      |           ^^^^^^^^^^^^^
    "#);
}

#[test]
fn what_settles_nothing_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        settle = "json:usage"
        [[rule]]
        name = "writes"
        limits = ["5/s"]
        charge_on = [99, 600]
        [[rule]]
        name = "uploads"
        limits = ["5 concurrent"]
        charge_on = [200]
    "#), @r#"
    dashpot.toml:4:11: error: a cost is settled by a response header, or by `bytes`
      |
    4 | settle = "json:usage"
      |           ^^^^^^^^^^
      = write settle = "header:x-tokens-used"

    dashpot.toml:8:14: error: a status is between 100 and 599
      |
    8 | charge_on = [99, 600]
      |              ^^

    dashpot.toml:8:18: error: a status is between 100 and 599
      |
    8 | charge_on = [99, 600]
      |                  ^^^

    dashpot.toml:12:13: error: permits are given back when the response was sent, whatever it says; leave out `settle` and `charge_on`
       |
    12 | charge_on = [200]
       |             ^^^^^
    "#);
}

#[test]
fn more_than_a_hundred_percent_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        enforce_percent = 101
    "#), @"
    dashpot.toml:4:19: error: a percentage is between 0 and 100
      |
    4 | enforce_percent = 101
      |                   ^^^
    ");
}

#[test]
fn a_shadow_that_is_enforced_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        shadow = true
        enforce_percent = 10
    "#), @"
    dashpot.toml:5:19: error: a shadow rule is enforced for nobody; leave out `enforce_percent`
      |
    5 | enforce_percent = 10
      |                   ^^
    ");
}

#[test]
fn answers_that_are_no_denial_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "ok"
        limits = ["5/s"]
        on_deny = { status = 200 }
        [[rule]]
        name = "captcha"
        limits = ["5/s"]
        on_deny = { status = 403, redirect = "captcha", body = "no" }
        [[rule]]
        name = "split"
        limits = ["5/s"]
        on_deny = { body = "no", content_type = "text/html\r\nset-cookie: a=b" }
    "#), @r#"
    dashpot.toml:4:22: error: the status of a denial is 400 to 599
      |
    4 | on_deny = { status = 200 }
      |                      ^^^

    dashpot.toml:8:22: error: the status of a redirect is 300 to 399
      |
    8 | on_deny = { status = 403, redirect = "captcha", body = "no" }
      |                      ^^^

    dashpot.toml:8:39: error: a redirect goes to a path or a URL, in plain ASCII
      |
    8 | on_deny = { status = 403, redirect = "captcha", body = "no" }
      |                                       ^^^^^^^
      = write redirect = "/captcha"

    dashpot.toml:8:57: error: a redirect has no body
      |
    8 | on_deny = { status = 403, redirect = "captcha", body = "no" }
      |                                                         ^^

    dashpot.toml:12:41: error: a content type is plain ASCII, as in "text/html"
       |
    12 | on_deny = { body = "no", content_type = "text/html\r\nset-cookie: a=b" }
       |                                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn priorities_with_mistakes_are_told() {
    assert_snapshot!(errors(r#"
        [[priority]]
        name = "hooks"
        [[priority]]
        weight = 2
        [[priority]]
        name = "twice"
        weight = 2
        [[priority]]
        name = "twice"
        weight = 3
    "#), @r#"
    dashpot.toml:2:9: error: this priority has neither a weight nor a class
      |
    2 | name = "hooks"
      |         ^^^^^
      = write weight = 10.0, or class = "critical"

    dashpot.toml:3:1: error: `name` is missing here
      |
    3 | [[priority]]
      | ^^^^^^^^^^^^

    dashpot.toml:9:9: error: there is a priority `twice` already (line 6)
      |
    9 | name = "twice"
      |         ^^^^^
    "#);
}
