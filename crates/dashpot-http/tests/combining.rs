//! Several facts in one key: each combination is a caller of its own, and no two are mixed up.

use axum::Router;

use crate::common::{Server, get, limit, rules, store};

fn by(facts: &str) -> String {
    format!("[[rule]]\nname = 'r'\nby = [{facts}]\nlimits = ['1/min']")
}

/// Those who are logged out: by address, endpoint and user agent.
#[tokio::test]
async fn each_combination_has_its_own_bucket() {
    let server = Server::limited(rules(&by("'ip', 'path', 'header:user-agent'"))).await;
    for from in ["127.0.0.1", "127.0.0.2"] {
        for path in ["/a", "/b"] {
            for agent in ["curl", "firefox"] {
                let asked = get(path).from(from).line("user-agent", agent);
                let what = format!("{from} {path} {agent}");
                assert_eq!(asked.statuses(&server, 2).await, [200, 429], "{what}");
            }
        }
    }
}

/// Keys that are joined with a separator are ambiguous as soon as a value has it.
#[tokio::test]
async fn values_do_not_run_into_each_other() {
    let server = Server::limited(rules(&by("'header:x-a', 'header:x-b'"))).await;
    let pairs = [
        ("ab", "c"),
        ("a", "bc"),
        ("a|b", "c"),
        ("a", "b|c"),
        ("a_b", "c"),
        ("a", "b_c"),
        ("a:b", "c"),
        ("a", "b:c"),
        ("a header:x-b b", "c"),
        ("a", "header:x-b"),
        ("", "a"),
        ("a", ""),
    ];
    for (a, b) in pairs {
        let asked = get("/").line("x-a", a).line("x-b", b);
        assert_eq!(asked.statuses(&server, 2).await, [200, 429], "{a:?} and {b:?}");
    }
    // One fact that is missing is not the other.
    for name in ["x-a", "x-b"] {
        let asked = get("/").line(name, "lonely");
        assert_eq!(asked.statuses(&server, 2).await, [200, 429], "{name}");
    }
}

#[tokio::test]
async fn long_values_are_told_apart_to_the_end() {
    let server = Server::limited(rules(&by("'header:x-a'"))).await;
    let long = "x".repeat(5000);
    for end in ["1", "2"] {
        let asked = get("/").line("x-a", format!("{long}{end}"));
        assert_eq!(asked.statuses(&server, 2).await, [200, 429], "{end}");
    }
}

#[tokio::test]
async fn parts_of_a_request_count_as_they_come() {
    let server = Server::limited(rules(&by("'query:team', 'cookie:lang', 'method', 'host'"))).await;
    let asked = |query: &str, cookie: &str, host: &str| {
        get(&format!("/?{query}")).line("cookie", cookie).line("host", host)
    };
    let first = asked("team=red", "lang=de", "a.example");
    assert_eq!(first.statuses(&server, 2).await, [200, 429]);
    let same = asked("x=1&te%61m=red", "theme=dark; lang=de", "A.example:80");
    assert_eq!(same.status(&server).await, 429);
    for other in [
        asked("team=blue", "lang=de", "a.example"),
        asked("team=red", "lang=en", "a.example"),
        asked("team=red", "lang=de", "b.example"),
    ] {
        assert_eq!(other.status(&server).await, 200);
    }
}

/// A rule without `by` is about all the world.
#[tokio::test]
async fn without_facts_there_is_one_bucket() {
    let server = Server::limited(rules("[[rule]]\nname = 'all'\nlimits = ['2/min']")).await;
    for (n, from) in ["127.0.0.1", "127.0.0.2", "127.0.0.3"].iter().enumerate() {
        assert_eq!(get("/").from(from).status(&server).await, if n < 2 { 200 } else { 429 });
    }
}

/// Rules are about the paths that callers ask for, wherever in a router the layer is.
#[tokio::test]
async fn a_layer_within_a_nested_router_sees_the_whole_path() {
    let text = "[[rule]]\nname = 'r'\nmatch.path = '/api/*'\nlimits = ['1/min']";
    let books = Router::new().route("/books", axum::routing::get(async || "books"));
    let app = Router::new().nest("/api", books.layer(limit(rules(text), store().0)));
    let server = Server::start(app).await;
    assert_eq!(get("/api/books").statuses(&server, 2).await, [200, 429]);
}
