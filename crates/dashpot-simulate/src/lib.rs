//! What limits do to traffic.
//!
//! Some [`Traffic`] is sent through a policy, by the algorithms that are shipped and on a clock that is set, so a day takes
//! as long as its requests take to decide. What comes of it is a [`Run`]: figures, and what a [picture](picture()) shows.
//!
//! ```
//! use dashpot::{Algorithm, Policy};
//! use dashpot_simulate::{Setting, Traffic, run};
//! use std::time::Duration;
//!
//! let policy = Policy::builder("api", "10/min".parse()?).algorithm(Algorithm::FixedWindow).build()?;
//! let traffic: Traffic = "boundary 10/min".parse()?;
//! let setting = Setting { length: Duration::from_secs(240), ..Setting::default() };
//!
//! let run = run(&policy, traffic.arrivals(&setting)?, &setting);
//! assert_eq!(run.worst.units, 20); // twice the limit, around the end of a window
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

mod arrival;
mod csv;
mod picture;
pub mod plot;
mod run;
mod series;
mod text;
mod traffic;
mod trailing;

pub use arrival::{Arrival, together};
pub use csv::{Csv, CsvError};
pub use picture::{over_time, picture};
pub use run::{Run, START, Setting, run, run_with};
pub use series::{Counts, Series};
pub use traffic::{Arrivals, ParseTrafficError, Traffic, Unaimed};
pub use trailing::Worst;
