//! Waiting when the server says so.

use dashpot_client::{Manners, Polite, Report, Why};
use tower::ServiceExt;

use crate::common::{Server, World, answer, get, secs};

#[test]
fn retry_after_is_waited_for_and_told() {
    let mut world = World::new();
    let server = Server::new(&world.clock, |arrival| match arrival.number {
        0 => answer(429, &[("retry-after", "5")]),
        _ => answer(200, &[]),
    });
    let manners = Manners::builder().clock(world.clock.clone()).seed(1).build();
    let polite = Polite::new(server.clone(), manners);
    let response = world.wait_for(polite.oneshot(get("http://example.com/"))).unwrap();
    assert_eq!(response.status(), 200);
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.attempts(), 2);
    assert!(report.waited_for(Why::RetryAfter) >= secs(5), "{report}");
    let times = server.times(world.at(secs(0)));
    assert!(times[1] >= secs(5) && times[1] <= secs(6), "{times:?}");
    eprintln!("{report}");
}
