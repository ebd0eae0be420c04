//! limitador's library in memory, as its documentation builds it: a limit by one variable. It has fixed windows and no burst.

use std::collections::HashMap;

use limitador::RateLimiter;
use limitador::limit::{Context, Expression, Limit, Namespace};

use crate::peer::{Peer, Setup};

pub(crate) struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

impl Peer for Limitador {
    fn new(setup: &Setup) -> Self {
        let limiter = RateLimiter::new(2 * setup.keys.max(1000) as u64);
        let variable = Expression::parse("descriptors[0].user").expect("a right expression");
        let most = u64::from(setup.rate.burst.max(setup.rate.count));
        let seconds = setup.rate.window.as_secs();
        limiter.add_limit(Limit::new("bench", most, seconds, [], [variable]));
        Self { limiter, namespace: "bench".into() }
    }

    fn check(&self, key: &String) -> bool {
        let mut context = Context::default();
        let facts = HashMap::from([("user".to_owned(), key.clone())]);
        context.list_binding("descriptors".to_owned(), vec![facts]);
        let answer = self.limiter.check_rate_limited_and_update(&self.namespace, &context, 1);
        !answer.expect("it answers").limited
    }
}
