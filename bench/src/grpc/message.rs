//! What is asked and answered, as far as it matters here.

use prost::Message;

/// `envoy.service.ratelimit.v3.RateLimitRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RateLimitRequest {
    #[prost(string, tag = "1")]
    pub(crate) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) descriptors: Vec<Descriptor>,
    #[prost(uint32, tag = "3")]
    pub(crate) hits_addend: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Entry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// `envoy.service.ratelimit.v3.RateLimitResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    pub(crate) overall_code: i32,
}

/// Its codes.
pub(crate) const OK: i32 = 1;
pub(crate) const OVER_LIMIT: i32 = 2;

/// `throttlecrab.ThrottleRequest`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ThrottleRequest {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(int32, tag = "2")]
    pub(crate) max_burst: i32,
    #[prost(int32, tag = "3")]
    pub(crate) count_per_period: i32,
    #[prost(int32, tag = "4")]
    pub(crate) period: i32,
    #[prost(int32, tag = "5")]
    pub(crate) quantity: i32,
}

/// `throttlecrab.ThrottleResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ThrottleResponse {
    #[prost(bool, tag = "1")]
    pub(crate) allowed: bool,
}
