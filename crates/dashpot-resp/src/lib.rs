//! dashpot for every Redis client: the Redis protocol, and redis-cell's `CL.THROTTLE`.
//!
//! Nothing here reads or writes: bytes come in, bytes go out, and whoever has the connection asks the store between. That
//! is all there is to a server:
//!
//! ```
//! use dashpot::{Check, MemoryStore};
//! use dashpot_resp::{Limits, Next, Reader, Session, Surroundings};
//!
//! struct Open;
//! impl Surroundings for Open {}
//!
//! let (store, mut session, mut answers) = (MemoryStore::new(), Session::new(1, &Open), Vec::new());
//! let mut reader = Reader::default();
//! let input = b"*5\r\n$11\r\nCL.THROTTLE\r\n$5\r\nalice\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n";
//! let Some((request, _)) = reader.read(input, Limits::KNOWN)? else { panic!("there is more to come") };
//! if let Next::Throttle(asked) = session.answer(request, &Open, &mut answers) {
//!     let policy = asked.terms.policy("(throttle)")?;
//!     let decision = store.decide_now(&[Check::new(&policy, asked.key).cost(asked.quantity)]);
//!     asked.answer(&decision, &mut answers);
//! }
//! assert_eq!(answers, b"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What ships does not panic, and cuts no number short.
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![forbid(unsafe_code)]

mod commands;
mod line;
mod number;
mod reply;
mod request;
mod session;
mod throttle;

pub use reply::error;
pub use request::{Limits, ProtocolError, Reader, Request};
pub use session::{Next, Session, Surroundings};
pub use throttle::{KEY_MAX, Policies, Terms, Throttle, Wrong};
