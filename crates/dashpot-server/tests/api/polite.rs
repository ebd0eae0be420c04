//! The service, asked by those who have manners: `dashpot-client`.

use std::time::{Duration, Instant};

use dashpot_client::{GaveUp, Manners, Report, Why};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

use crate::support::Server;

fn client(manners: Manners) -> ClientWithMiddleware {
    let within = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
    ClientBuilder::new(within).with(manners).build()
}

async fn ask(client: &ClientWithMiddleware, server: &Server, limit: &str) -> (u16, Report) {
    let url = format!("http://{}/v1/check", server.address());
    let body = format!(r#"{{"key":"alice","limit":"{limit}"}}"#);
    let answer = client.post(url).body(body).send().await.unwrap();
    (answer.status().as_u16(), answer.extensions().get::<Report>().unwrap().clone())
}

#[tokio::test]
async fn who_listens_to_the_service_is_not_denied() {
    let server = Server::start(&[]);
    let client = client(Manners::default());
    let start = Instant::now();
    for nth in 0..6 {
        let (status, report) = ask(&client, &server, "2/s").await;
        assert_eq!((status, report.attempts()), (200, 1), "{nth}: {report}");
    }
    // Two at once, and two more in each second.
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_denial_is_waited_for_only_if_it_may_be_asked_twice() {
    // Slow enough to be used up, however slow the machine is.
    const LIMIT: &str = "2/4s";
    let server = Server::start(&[]);
    let unsafe_by_default = client(Manners::default());
    for _ in 0..2 {
        // Somebody else, of whom the next one knows nothing.
        ask(&client(Manners::default()), &server, LIMIT).await;
    }
    let (status, report) = ask(&unsafe_by_default, &server, LIMIT).await;
    assert_eq!((status, report.gave_up()), (429, Some(GaveUp::Unsafe)));
    let (status, report) = ask(&unsafe_by_default, &server, LIMIT).await;
    // Not sent before the time that the one before was told.
    assert!(report.waited_for(Why::RetryAfter) >= Duration::from_secs(1), "{status} {report}");

    for _ in 0..4 {
        ask(&client(Manners::default()), &server, LIMIT).await;
    }
    let (status, report) =
        ask(&client(Manners::builder().may_repeat(|_| true).build()), &server, LIMIT).await;
    assert_eq!((status, report.attempts()), (200, 2), "{report}");
    assert!(report.waited_for(Why::RetryAfter) >= Duration::from_secs(1), "{report}");
}
