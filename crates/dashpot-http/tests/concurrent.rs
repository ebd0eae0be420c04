//! Many callers at once, over many connections: exactly the limit is admitted.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::common::{Server, get, rules};

const CALLERS: usize = 20;
const EACH: usize = 10;

/// Asks from many tasks, and counts the statuses.
async fn storm(server: Arc<Server>, from: &'static str) -> [usize; 2] {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let server = server.clone();
        callers.spawn(async move { get("/").from(from).statuses(&server, EACH).await });
    }
    let statuses: Vec<u16> = callers.join_all().await.into_iter().flatten().collect();
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    let counts = [count(200), count(429)];
    assert_eq!(counts[0] + counts[1], CALLERS * EACH, "something else was answered");
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_the_limit_is_admitted() {
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        let text = format!(
            "[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['37/min']\nalgorithm = '{algorithm}'"
        );
        let server = Arc::new(Server::limited(rules(&text)).await);
        let [passed, denied] = storm(server.clone(), "127.0.0.1").await;
        assert_eq!((passed, denied), (37, CALLERS * EACH - 37), "{algorithm}");
        assert_eq!(server.served(), 37);
    }
}

/// All or nothing, also under load: the denied have not used up the other limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_limits_admit_exactly_what_both_allow() {
    let text = "
        [[rule]]
        name = 'each'
        by = ['ip']
        limits = ['30/min']
        [[rule]]
        name = 'all'
        limits = ['75/h']
    ";
    let server = Arc::new(Server::limited(rules(text)).await);
    let mut storms = JoinSet::new();
    for from in ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"] {
        storms.spawn(storm(server.clone(), from));
    }
    let passed: Vec<usize> =
        storms.join_all().await.into_iter().map(|[passed, _]| passed).collect();
    assert!(passed.iter().all(|passed| *passed <= 30), "{passed:?}");
    assert_eq!(passed.iter().sum::<usize>(), 75, "{passed:?}");
    assert_eq!(server.served(), 75);
}

/// No permit is lost or doubled in the rush: afterwards there are as many as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn permits_are_neither_lost_nor_doubled() {
    let text = "[[rule]]\nname = 's'\nlimits = ['3 concurrent']\nalgorithm = 'concurrency'";
    let server = Arc::new(Server::limited(rules(text)).await);
    for _ in 0..3 {
        let [passed, _] = storm(server.clone(), "127.0.0.1").await;
        assert!(passed >= 3, "{passed}");
    }
    let answer = get("/").send(&server).await;
    assert_eq!(answer.get("ratelimit"), Some(r#""s";r=2"#));
}
