//! What targets share, and the parsers of `dashpot-server`, which is a program and no library: its files are included
//! as they are, under the paths by which they know each other. What is left out hangs on connections and stores.

pub mod api;
pub mod forwarded;
pub mod parts;
pub mod proxied;
pub mod reserved;
pub mod stored;

pub use serve::envoy::envoy;
pub use simulate::logs;

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../crates/dashpot-server/src/serve"]
mod serve {
    pub(crate) mod body;
    pub(crate) mod limits;
    pub(crate) mod question;
    pub(crate) mod reservation;
    pub(crate) mod secret;
    pub(crate) mod text;
    pub(crate) mod wrong;

    pub(crate) mod api {
        pub(crate) mod forward_auth {
            pub(crate) mod original;
        }
    }

    pub(crate) mod envoy {
        mod compile;
        mod frame;
        mod json;
        mod limits;
        mod message;
        mod pattern;
        mod problem;
        mod unit;
        mod yaml;

        // In here, because what is above is for its neighbours only.
        #[allow(clippy::module_inception, reason = "its file is called so")]
        #[path = "../../../../../fuzz/src/envoy.rs"]
        pub mod envoy;
    }
}

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../crates/dashpot-server/src/simulate"]
mod simulate {
    mod log;

    #[path = "../../../../fuzz/src/logs.rs"]
    pub mod logs;
}

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../crates/dashpot-server/src/proxy"]
mod proxy {
    pub(crate) mod headers;
}

/// Of `limit.rs`, which reads a command line.
mod limit {
    pub(crate) const NAME: &str = "check";
}

#[allow(dead_code, reason = "the store uses the rest")]
#[path = "../../crates/dashpot-redis/src/target.rs"]
mod target;
