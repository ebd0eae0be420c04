//! Health checking and reflection, which their libraries do.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_reflection::server::Builder;
use tower_service::Service;

use crate::serve::api::BODY_MAX;
use crate::serve::streams::Coming;

/// The messages and services, for whoever asks what there is. `tests/protos.rs` makes it of `proto/`.
const DESCRIPTORS: &[u8] = include_bytes!("../../../proto/descriptors.bin");

/// What is asked about: all of it, the service, and what envoyproxy/ratelimit calls it.
const NAMES: [&str; 3] = ["", "envoy.service.ratelimit.v3.RateLimitService", "ratelimit"];

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;
type Method = Box<dyn Fn(Request<Coming>) -> Answering + Send + Sync>;

/// The services that others wrote.
pub(crate) struct Others {
    reporter: HealthReporter,
    /// By what their paths begin with.
    methods: Vec<(&'static str, Method)>,
}

impl Others {
    pub(crate) fn new() -> Self {
        let reporter = HealthReporter::new();
        let health = HealthService::from_health_reporter(reporter.clone());
        let health = HealthServer::new(health).max_decoding_message_size(BODY_MAX);
        let mut methods = vec![("/grpc.health.v1.Health/", method(health))];
        let describe = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        // They are what they were when the tests read them.
        if let Ok(service) = describe().build_v1() {
            let service = service.max_decoding_message_size(BODY_MAX);
            methods.push(("/grpc.reflection.v1.ServerReflection/", method(service)));
        }
        if let Ok(service) = describe().build_v1alpha() {
            let service = service.max_decoding_message_size(BODY_MAX);
            methods.push(("/grpc.reflection.v1alpha.ServerReflection/", method(service)));
        }
        Self { reporter, methods }
    }

    pub(crate) async fn call(&self, request: Request<Coming>) -> super::grpc::Called {
        let path = request.uri().path();
        match self.methods.iter().find(|(begin, _)| path.starts_with(begin)) {
            Some((_, method)) => method(request).await,
            None => Ok(Status::unimplemented("there is no such method").into_http()),
        }
    }

    /// Says that all is well.
    pub(crate) async fn start(&self) {
        for name in NAMES {
            self.reporter.set_service_status(name, ServingStatus::Serving).await;
        }
    }

    /// Says that it is about to stop.
    pub(crate) async fn stop(&self) {
        for name in NAMES {
            self.reporter.set_service_status(name, ServingStatus::NotServing).await;
        }
    }

    /// Ends what those listen to who want to hear of every change: nothing will change any more.
    pub(crate) async fn hang_up(&self) {
        for name in NAMES {
            self.reporter.clone().clear_service_status(name).await;
        }
    }
}

fn method<S>(service: S) -> Method
where
    S: Service<Request<Coming>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    // They are always ready.
    Box::new(move |request| Box::pin(service.clone().call(request)))
}
