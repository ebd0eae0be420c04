//! What several of the tests need.

pub(crate) mod apart;
pub(crate) mod calm;
pub(crate) mod instance;
pub(crate) mod load;
pub(crate) mod subject;
