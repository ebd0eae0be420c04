//! Commands of the pages, run as they stand there, line by line.

mod lines;
mod pages;
mod stage;

pub(crate) use lines::expected_of;
pub(crate) use pages::RUN;
