//! With reqwest: errors, and calls that nobody waits for any more.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dashpot_client::{CallError, GaveUp, Mishap, NotSent, Pace, Patience, Report};
use dashpot_testkit::process::free_port;
use http::Extensions;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::server::{Server, endless, hangs_up, plain, polite, quick, redirect, status, text};
use super::support::run;

/// Why it was not sent: of the error of a middleware.
pub(crate) fn not_sent(error: &Error) -> (NotSent, Report) {
    let Error::Middleware(error) = error else { panic!("{error:?}") };
    let error = error.downcast_ref::<CallError>().expect("it is ours");
    (error.not_sent().expect("it was not sent"), error.report().clone())
}

/// An error of reqwest's own, and the report beside it.
async fn failed(
    client: &ClientWithMiddleware,
    call: ::reqwest::Request,
) -> (::reqwest::Error, Report) {
    let mut extensions = Extensions::new();
    let error = client.execute_with_extensions(call, &mut extensions).await.unwrap_err();
    let Error::Reqwest(error) = error else { panic!("{error:?}") };
    (error, extensions.get::<Report>().expect("there is a report").clone())
}

#[test]
fn who_could_not_connect_may_have_been_redirected_and_the_error_is_reqwests() {
    run(async {
        let url = format!("http://127.0.0.1:{}/", free_port());
        let client = polite(quick().attempts(3).build());
        let get = plain().get(&url).build().unwrap();
        let (error, report) = failed(&client, get).await;
        assert!(error.is_connect() && !error.is_timeout(), "{error:?}");
        assert_eq!((report.attempts(), report.last_status()), (3, None), "{report}");
        assert_eq!(report.gave_up(), Some(GaveUp::Attempts), "{report}");
        let post = plain().post(&url).body("not idempotent").build().unwrap();
        let (error, report) = failed(&client, post).await;
        assert!(error.is_connect(), "{error:?}");
        assert_eq!((report.attempts(), report.gave_up()), (1, Some(GaveUp::Unsafe)), "{report}");
    });
}

/// It was carried out; where it leads to is another matter.
#[test]
fn a_post_is_not_made_again_because_nobody_is_where_it_was_redirected_to() {
    run(async {
        let nobody = format!("http://127.0.0.1:{}/done", free_port());
        let server = Server::start(move |_, _| redirect(303, &nobody)).await;
        let client = polite(quick().build());
        let post = plain().post(server.at("/pay")).body("10 euros").build().unwrap();
        let (error, report) = failed(&client, post).await;
        assert!(error.is_connect(), "{error:?}");
        assert_eq!((report.attempts(), report.gave_up()), (1, Some(GaveUp::Unsafe)), "{report}");
        assert_eq!(server.seen().len(), 1);
    });
}

/// As the documentation has it, for those who follow no redirects.
fn who_could_not_connect(error: &(dyn std::error::Error + 'static)) -> Mishap {
    match error.downcast_ref() {
        Some(Error::Reqwest(error)) if error.is_connect() => Mishap::Unsent,
        _ => Mishap::Unknown,
    }
}

/// Opens a shop when somebody comes for the second time.
struct Opens {
    address: SocketAddr,
    server: Arc<Mutex<Vec<Server>>>,
    came: Mutex<usize>,
}

#[async_trait]
impl Middleware for Opens {
    async fn handle(
        &self,
        request: ::reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<::reqwest::Response> {
        let number = {
            let mut came = self.came.lock().unwrap();
            *came += 1;
            *came
        };
        if number == 2 {
            let listener = TcpListener::bind(self.address).await.unwrap();
            self.server.lock().unwrap().push(Server::listen(listener, |_, _| text("open")));
        }
        next.run(request, extensions).await
    }
}

#[test]
fn a_post_that_was_refused_is_made_again_if_somebody_says_so() {
    run(async {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let server = Arc::<Mutex<Vec<Server>>>::default();
        let manners = quick().judge_errors(who_could_not_connect).build();
        let opens = Opens { address, server: server.clone(), came: Mutex::new(0) };
        let client = ClientBuilder::new(plain()).with(manners).with(opens).build();
        let answer = client.post(format!("http://{address}/")).body("letter").send().await.unwrap();
        let report = answer.extensions().get::<Report>().unwrap();
        assert_eq!((answer.status().as_u16(), report.attempts()), (200, 2), "{report}");
        let server = server.lock().unwrap().pop().unwrap();
        let bodies: Vec<_> = server.seen().into_iter().map(|one| one.body).collect();
        assert_eq!(bodies, ["letter"]);
    });
}

#[test]
fn a_timeout_of_reqwest_ends_an_attempt_and_its_error_stays() {
    run(async {
        let server = Server::start(|_, _| None).await;
        let client = polite(quick().attempts(2).build());
        let short = Duration::from_millis(50);
        let get = plain().get(server.at("/get")).timeout(short).build().unwrap();
        let (error, report) = failed(&client, get).await;
        assert!(error.is_timeout() && !error.is_connect(), "{error:?}");
        assert_eq!((report.attempts(), report.gave_up()), (2, Some(GaveUp::Attempts)), "{report}");
        // It may have been carried out.
        let post = plain().post(server.at("/post")).timeout(short).build().unwrap();
        let (error, report) = failed(&client, post).await;
        assert!(error.is_timeout(), "{error:?}");
        assert_eq!((report.attempts(), report.gave_up()), (1, Some(GaveUp::Unsafe)), "{report}");
    });
}

#[test]
fn a_timeout_while_the_answer_is_read_is_an_error_of_the_body_and_frees_the_lane() {
    run(async {
        let server =
            Server::start(|number, _| if number == 0 { endless() } else { text("") }).await;
        let client = polite(quick().pace(Pace::default().concurrent(1)).build());
        // Long enough for the answer to begin, on any machine.
        let call = client.get(server.at("/")).timeout(Duration::from_millis(1500));
        let mut answer = call.send().await.unwrap();
        answer.chunk().await.unwrap();
        let error = answer.chunk().await.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        // It is still here, and yet it is over.
        assert_eq!(client.get(server.at("/")).send().await.unwrap().status(), 200);
        drop(answer);
    });
}

#[test]
fn a_connection_that_is_closed_without_an_answer_is_no_reason_to_post_twice() {
    run(async {
        let url = hangs_up().await;
        let client = polite(quick().attempts(2).build());
        let (error, report) = failed(&client, plain().get(&url).build().unwrap()).await;
        assert!(error.is_request() && !error.is_connect() && !error.is_timeout(), "{error:?}");
        assert_eq!((report.attempts(), report.gave_up()), (2, Some(GaveUp::Attempts)), "{report}");
        let (_, report) = failed(&client, plain().post(&url).build().unwrap()).await;
        assert_eq!((report.attempts(), report.gave_up()), (1, Some(GaveUp::Unsafe)), "{report}");
    });
}

#[test]
fn what_will_not_get_better_is_not_tried_again() {
    run(async {
        let server = Server::start(|_, _| redirect(302, "/round-and-round")).await;
        let client = polite(quick().build());
        let call = plain().get(server.at("/")).build().unwrap();
        let (error, report) = failed(&client, call).await;
        assert!(error.is_redirect(), "{error:?}");
        assert_eq!((report.attempts(), report.gave_up()), (1, None), "{report}");
        // reqwest follows ten.
        assert_eq!(server.seen().len(), 11);
        let call = ::reqwest::Request::new(http::Method::GET, "ftp://127.0.0.1/".parse().unwrap());
        let (error, report) = failed(&client, call).await;
        assert!(error.is_builder(), "{error:?}");
        assert_eq!((report.attempts(), report.gave_up()), (1, None), "{report}");
    });
}

#[test]
fn who_is_not_sent_is_told_by_an_error_of_ours_and_the_report_is_beside_it() {
    run(async {
        let server = Server::start(|number, _| if number == 0 { status(429) } else { None }).await;
        let client = polite(quick().pace(Pace::at_most("1/h".parse().unwrap())).build());
        let mut extensions = Extensions::new();
        extensions.insert(Patience(Duration::from_secs(60)));
        let call = plain().get(server.at("/")).build().unwrap();
        let answer = client.execute_with_extensions(call, &mut extensions).await;
        // It was turned away, and its own pace does not let it go again in time.
        let (reason, report) = not_sent(&answer.unwrap_err());
        let NotSent::TooLate { retry_after: Some(wait) } = reason else { panic!("{reason:?}") };
        assert!(wait > Duration::from_secs(3500), "{wait:?}");
        assert_eq!((report.attempts(), report.gave_up()), (1, Some(GaveUp::TooLate)), "{report}");
        assert_eq!(extensions.get::<Report>(), Some(&report));
        assert_eq!(report.last_status().map(|status| status.as_u16()), Some(429));
    });
}

#[test]
fn who_is_dropped_leaves_the_line_and_the_lane() {
    run(async {
        let server =
            Server::start(|_, seen| (seen.path != "/never").then(|| text("").unwrap())).await;
        let client = polite(quick().pace(Pace::default().concurrent(1).queue(1)).build());
        let on_its_way = tokio::spawn(client.get(server.at("/never")).send());
        server.until_seen(1).await;
        {
            let mut waiting = pin!(client.get(server.at("/waiting")).send());
            assert!(timeout(Duration::ZERO, &mut waiting).await.is_err(), "it waits");
            let third = client.get(server.at("/third")).send().await;
            assert_eq!(not_sent(&third.unwrap_err()).0, NotSent::Full);
        }
        // There is a place in line again, and then the way is free.
        let mut next = pin!(client.get(server.at("/next")).send());
        assert!(timeout(Duration::ZERO, &mut next).await.is_err(), "it waits");
        on_its_way.abort();
        assert_eq!(next.await.unwrap().status(), 200);
        assert_eq!(server.paths(), ["/never", "/next"]);
    });
}
