//! What several of the tests need.

pub(crate) mod temp_dir;
pub(crate) mod text;
