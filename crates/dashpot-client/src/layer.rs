//! The layer: manners, around a service that makes calls.

use tower_layer::Layer;

use crate::{Manners, Polite};

/// Gives [manners](Manners) to a tower service that makes calls. Clones, and all services made by them, share what is known
/// of servers.
#[derive(Clone, Debug, Default)]
pub struct PoliteLayer {
    manners: Manners,
}

impl PoliteLayer {
    /// With these manners.
    #[must_use]
    pub const fn new(manners: Manners) -> Self {
        Self { manners }
    }
}

impl<S> Layer<S> for PoliteLayer {
    type Service = Polite<S>;

    fn layer(&self, inner: S) -> Polite<S> {
        Polite::new(inner, self.manners.clone())
    }
}
