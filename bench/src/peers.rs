//! One file per peer.

mod dashmap;
mod dashpot;
mod governor;
mod limitador;
mod limits;
mod nothing;
mod sketch;
mod throttlecrab;

pub(crate) use dashmap::DashMapBuckets;
pub(crate) use dashpot::{Capped, Dashpot, policy};
pub(crate) use governor::Governor;
pub(crate) use limitador::Limitador;
pub(crate) use limits::Limits;
pub(crate) use nothing::Nothing;
pub(crate) use sketch::Sketch;
pub(crate) use throttlecrab::Throttlecrab;
