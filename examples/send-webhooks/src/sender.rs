//! The sender: all there is to it.

use std::time::Duration;

use dashpot_client::{Call, CallError, Lane, Manners, Pace, Patience, Report};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use story::Failure;

/// What is to be delivered, and where.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) to: String,
    pub(crate) text: String,
}

/// A letter that nobody took, and why. It is kept, and can be sent once more.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub(crate) letter: Letter,
    pub(crate) why: String,
}

/// Clones share lines and limits.
#[derive(Clone)]
pub(crate) struct Sender {
    client: ClientWithMiddleware,
}

impl Sender {
    pub(crate) fn new() -> Result<Self, Failure> {
        // Each destination gets an even flow, and 20 letters may wait for it: one that is slow does not hold up the others.
        let usual = Pace::leaky("20/s".parse()?, 20).concurrent(4);
        let gentle = Pace::leaky("5/s".parse()?, 20).concurrent(1);
        let manners = Manners::builder()
            .lanes(move |call| {
                destination(call).pace(if is_frail(call) { &gentle } else { &usual })
            })
            .overall("100/s burst 10".parse()?)
            // Receivers look at the key: what comes twice is done once.
            .attach_idempotency_keys()
            .attempts(4)
            .backoff(Duration::from_millis(20), Duration::from_millis(200))
            .build();
        let within = reqwest::Client::builder().timeout(Duration::from_secs(5)).build()?;
        Ok(Self { client: ClientBuilder::new(within).with(manners).build() })
    }

    /// Delivers a letter, or says why it is dead.
    pub(crate) async fn deliver(&self, letter: Letter) -> Result<Report, DeadLetter> {
        let call = self.client.post(&letter.to).body(letter.text.clone());
        // How long a letter may be on its way: hours, in earnest.
        let sent = call.with_extension(Patience(Duration::from_secs(10))).send().await;
        let why = match sent {
            Ok(answer) => {
                let report = answer.extensions().get::<Report>().cloned().unwrap_or_default();
                if answer.status().is_success() {
                    return Ok(report);
                }
                format!("{}, {report}", answer.status())
            }
            Err(error) => match not_sent(&error) {
                Some(reason) => reason.to_string(),
                None => "nobody answers".to_owned(),
            },
        };
        Err(DeadLetter { letter, why })
    }
}

fn destination(call: &Call<'_>) -> Lane {
    call.lane().and(call.uri.path())
}

/// In earnest, a column of the table of destinations.
fn is_frail(call: &Call<'_>) -> bool {
    call.uri.path() == "/frail"
}

fn not_sent(error: &reqwest_middleware::Error) -> Option<&CallError> {
    match error {
        reqwest_middleware::Error::Middleware(error) => error.downcast_ref(),
        reqwest_middleware::Error::Reqwest(_) => None,
    }
}
