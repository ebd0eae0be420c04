//! A gRPC service with tonic, limited by the same layer and the same rules. Who is denied gets
//! `RESOURCE_EXHAUSTED`, as gRPC has it, with the same headers as over HTTP.

use std::error::Error;

use dashpot_http::{MemoryStore, RateLimitLayer, RuleSet};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Code;
use tonic::transport::{Channel, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder()
        .layer(RateLimitLayer::from_rules(rules, MemoryStore::new()))
        .add_service(health);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let channel = Channel::from_shared(format!("http://{address}"))?.connect().await?;
    let mut client = HealthClient::new(channel);
    for _ in 0..3 {
        let answer = client.check(HealthCheckRequest::default()).await?;
        println!("served, ratelimit: {:?}", answer.metadata().get("ratelimit"));
    }
    let denied =
        client.check(HealthCheckRequest::default()).await.expect_err("a fourth is too many");
    assert_eq!(denied.code(), Code::ResourceExhausted);
    println!(
        "{}: {}, retry-after: {:?}",
        denied.code(),
        denied.message(),
        denied.metadata().get("retry-after")
    );
    Ok(())
}
