//! A request that is judged at once takes no memory of its own, but for the fields it is told by.

mod common;

use std::convert::Infallible;

use axum::body::Body;
use common::{limit, rules, store};
use dashpot_http::Peer;
use http::{Request, Response};
use tower::{Layer, Service, service_fn};

async fn served(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Body::empty()))
}

/// How often the heap is asked while a request is served.
fn allocations<S: Service<Request<Body>>>(service: &mut S) -> u64 {
    let mut request = Request::get("/api/books").body(Body::empty()).unwrap();
    request.extensions_mut().insert(Peer("192.0.2.1:1".parse().unwrap()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let info = allocation_counter::measure(|| {
        let _ = runtime.block_on(service.call(request));
    });
    info.count_total
}

#[test]
fn nothing_is_allocated_to_judge() {
    let limited = |style: &str| {
        let text = format!(
            "[headers]\nstyles = ['{style}']\n[[rule]]\nname = 'r'\nmatch.path = '/api/*'\n\
             by = ['user | ip']\nlimits = ['9/min', '99/h']"
        );
        limit(rules(&text), store().0).layer(service_fn(served))
    };
    let bare = allocations(&mut service_fn(served));
    let mut silent = limited("none");
    let mut telling = limited("ietf");
    // The first one makes room for its key, and writes what is said of the policies.
    allocations(&mut silent);
    allocations(&mut telling);
    assert_eq!(allocations(&mut silent), bare);
    // A list of two fields, the value of one, and room for them in the response.
    let told = allocations(&mut telling) - bare;
    assert!((1..=5).contains(&told), "{told}");
}
