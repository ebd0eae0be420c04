//! The gateway, called by those who have manners: `dashpot-client`.

use std::time::{Duration, Instant};

use dashpot_client::{Manners, Report, Why};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

use crate::backend::Backend;
use crate::proxy::Proxy;

fn client(manners: Manners) -> ClientWithMiddleware {
    let within = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
    ClientBuilder::new(within).with(manners).build()
}

async fn call(client: ClientWithMiddleware, url: String) -> (u16, Report) {
    let answer = client.get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.extensions().get::<Report>().unwrap().clone())
}

fn rules(style: &str, algorithm: &str) -> String {
    format!(
        "[headers]\nstyles = ['{style}']\n[[rule]]\nname = 'all'\nlimits = ['5/s']\n\
         algorithm = '{algorithm}'\n"
    )
}

/// One after another, whichever way the gateway tells it: nobody is ever turned away.
#[tokio::test]
async fn who_listens_is_not_turned_away() {
    let ways = [
        ("ietf", "token-bucket"),
        ("ietf", "fixed-window"),
        ("draft-07", "sliding-log"),
        ("draft-06", "sliding-window"),
        ("x-ratelimit", "fixed-window"),
    ];
    // At the same time, since it takes some.
    let runs = ways.map(|(style, algorithm)| tokio::spawn(listen(style, algorithm)));
    for run in runs {
        run.await.unwrap();
    }
}

async fn listen(style: &str, algorithm: &str) {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rules(style, algorithm));
    let client = client(Manners::default());
    let start = Instant::now();
    let mut waited = Duration::ZERO;
    for nth in 0..12 {
        let (status, report) = call(client.clone(), format!("http://{}/", proxy.address)).await;
        assert_eq!((status, report.attempts()), (200, 1), "{style} {algorithm} {nth}: {report}");
        waited += report.waited_for(Why::Quota) + report.waited_for(Why::Thrift);
    }
    // Five at first, and five more in each second.
    assert!(start.elapsed() >= Duration::from_millis(1200), "{:?}", start.elapsed());
    assert!(waited >= Duration::from_millis(500), "{style} {algorithm}: {waited:?}");
    assert_eq!(backend.count(), 12);
}

/// All at once: nobody could know, and all are served in the end, none before its time.
#[tokio::test]
async fn a_crowd_is_served_in_the_end() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "10/s burst 5", "--by", "ip"]);
    let manners = Manners::builder().retry_floor("100/min".parse().unwrap()).attempts(10).build();
    let client = client(manners);
    let url = format!("http://{}/", proxy.address);
    let calls: Vec<_> = (0..25).map(|_| tokio::spawn(call(client.clone(), url.clone()))).collect();
    let mut again = 0;
    for call in calls {
        let (status, report) = call.await.unwrap();
        assert_eq!(status, 200, "{report}");
        if report.attempts() > 1 {
            again += 1;
            // It was told a whole second.
            assert!(report.waited() >= Duration::from_secs(1), "{report}");
        }
    }
    assert!(again > 0, "nobody was turned away");
    assert_eq!(backend.count(), 25);
}
