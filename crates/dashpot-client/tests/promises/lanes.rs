//! Which calls go together, how many lanes there are, and what is never shown.

use dashpot_client::{Call, Lane, Manners, MannersBuilder, Pace};
use http::{Extensions, HeaderMap, Method, Request, Uri};
use http_body_util::Full;

use super::{HERE, Scene, well};
use crate::common::{answer, get, millis, secs};

/// When calls arrive that go to these places, with one each second in a lane.
fn seconds(uris: &[&str], settings: impl FnOnce(MannersBuilder) -> MannersBuilder) -> Vec<u64> {
    let pace = Pace::every(secs(1)).unwrap();
    let mut scene = Scene::new(well, |builder| settings(builder.pace(pace)));
    let calls: Vec<usize> = uris.iter().map(|uri| scene.call(get(uri))).collect();
    scene.world.run();
    calls.iter().map(|call| scene.of(*call).over.as_secs()).collect()
}

#[test]
fn a_lane_is_a_scheme_a_host_and_a_port() {
    let together = ["http://a/", "http://a/b?c", "http://A:80/", "http://user@a/"];
    assert_eq!(seconds(&together, |builder| builder), [0, 1, 2, 3]);
    let apart = ["http://a/", "https://a/", "http://a:81/", "http://b/", "http://x.a/"];
    assert_eq!(seconds(&apart, |builder| builder), [0, 0, 0, 0, 0]);
    let secure = ["https://a/", "https://a:443/", "https://a:80/"];
    assert_eq!(seconds(&secure, |builder| builder), [0, 1, 0]);
}

#[test]
fn a_host_may_be_in_its_header() {
    let (extensions, mut headers) = (Extensions::new(), HeaderMap::new());
    headers.insert("host", "EXAMPLE.com:8080".parse().unwrap());
    let uri = Uri::from_static("/path");
    let call = Call::new(&Method::GET, &uri, &headers, &extensions);
    assert_eq!(call.host(), "example.com");
    assert!(format!("{:?}", call.lane()).contains("example.com:8080"));
}

#[test]
fn a_server_that_says_when_is_known_by_all_clients_with_the_same_manners() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(429, &[("retry-after", "30")]),
            _ => answer(200, &[]),
        },
        |builder| builder.attempts(1),
    );
    scene.ask(get(HERE));
    // Another client, and a clone of the manners.
    assert!(scene.ask(get(HERE)).over >= secs(30));
    assert_eq!(scene.manners.lanes(), 1);
}

#[test]
fn lanes_are_told_apart_by_what_is_added() {
    let by_path = |builder: MannersBuilder| builder.lanes(|call| call.lane().and(call.uri.path()));
    let uris = ["http://a/x", "http://a/y", "http://a/x", "http://b/x"];
    assert_eq!(seconds(&uris, by_path), [0, 0, 1, 0]);
}

#[test]
fn what_is_added_one_after_the_other_is_not_the_same_as_all_at_once() {
    let lanes: [fn(&Call<'_>) -> Lane; 5] = [
        |call| call.lane().and("a").and("bc"),
        |call| call.lane().and("ab").and("c"),
        |call| call.lane().and("abc"),
        |call| call.lane().and("abc").and(""),
        |call| call.lane().and("").and("abc"),
    ];
    let pick = move |builder: MannersBuilder| {
        builder.lanes(move |call| {
            let number: usize = call.uri.path()[1..].parse().unwrap();
            lanes[number](call)
        })
    };
    let uris = ["http://h/0", "http://h/1", "http://h/2", "http://h/3", "http://h/4", "http://h/0"];
    assert_eq!(seconds(&uris, pick), [0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_name_cannot_pretend_to_be_a_name_and_what_is_added() {
    let pick = |builder: MannersBuilder| {
        builder.lanes(|call| match call.uri.path() {
            "/1" => Lane::named("a").and("b"),
            "/2" => Lane::named("ab"),
            _ => Lane::named("a\0b"),
        })
    };
    assert_eq!(seconds(&["http://h/1", "http://h/2", "http://h/3"], pick), [0, 0, 0]);
}

#[test]
fn lanes_are_told_apart_by_a_header_and_those_without_are_together() {
    let pace = Pace::every(secs(1)).unwrap();
    let mut scene = Scene::new(well, |builder| {
        builder.pace(pace).lanes(|call| call.lane().and_header(call, "authorization"))
    });
    let mut over = Vec::new();
    for token in [Some("one"), Some("two"), None, Some("one"), None] {
        let mut request = get(HERE);
        if let Some(token) = token {
            request.headers_mut().insert("authorization", token.parse().unwrap());
        }
        over.push(scene.call(request));
    }
    scene.world.run();
    let over: Vec<u64> = over.iter().map(|call| scene.of(*call).over.as_secs()).collect();
    assert_eq!(over, [0, 0, 0, 1, 1]);
}

#[test]
fn a_lane_may_have_a_pace_of_its_own() {
    let slow = Pace::every(secs(5)).unwrap();
    let pick = move |builder: MannersBuilder| {
        builder.lanes(move |call| match call.uri.path() {
            "/slow" => call.lane().and("slow").pace(&slow),
            _ => call.lane(),
        })
    };
    let uris = ["http://a/slow", "http://a/", "http://a/slow", "http://a/", "http://b/slow"];
    assert_eq!(seconds(&uris, pick), [0, 0, 5, 1, 0]);
}

#[test]
fn there_are_never_more_lanes_than_may_be() {
    let mut scene = Scene::new(well, |builder| builder.most_lanes(5));
    for number in 0..500 {
        let outcome = scene.ask(get(&format!("http://host{number}/")));
        assert_eq!((outcome.status, outcome.over), (Some(200), secs(0)));
        assert!(scene.manners.lanes() <= 5, "{}", scene.manners.lanes());
    }
}

#[test]
fn when_all_are_busy_newcomers_share_one_and_all_are_answered() {
    let pace = Pace::every(secs(1)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.most_lanes(3).pace(pace)).way(secs(20));
    let calls: Vec<usize> =
        (0..12).map(|number| scene.call(get(&format!("http://host{number}/")))).collect();
    scene.world.run_until(secs(15));
    assert!(scene.manners.lanes() <= 4, "{}", scene.manners.lanes());
    scene.world.run();
    assert!(calls.iter().all(|call| scene.of(*call).status == Some(200)));
    let late = scene.times().iter().filter(|time| **time > secs(20)).count();
    // Those that have a lane go at once; the others, one each second.
    assert!((8..=9).contains(&late), "{:?}", scene.times());
}

#[test]
fn a_lane_that_was_told_to_wait_is_not_idle() {
    let mut scene = Scene::new(
        |arrival| match arrival.uri.host() {
            Some("busy") => answer(429, &[("retry-after", "100")]),
            _ => answer(200, &[]),
        },
        |builder| builder.most_lanes(2).attempts(1).patience(secs(1000)),
    );
    scene.ask(get("http://busy/"));
    for number in 0..50 {
        scene.ask(get(&format!("http://host{number}/")));
    }
    // Never too fast: what is known of it is not given up for others.
    let again = scene.call(get("http://busy/"));
    scene.world.run();
    assert!(scene.of(again).over >= secs(100), "{:?}", scene.of(again));
}

#[test]
fn a_lane_whose_pace_would_make_it_wait_is_not_idle() {
    let pace = Pace::every(secs(60)).unwrap();
    let mut scene =
        Scene::new(well, |builder| builder.most_lanes(2).pace(pace).patience(secs(100_000)));
    scene.ask(get("http://one/"));
    for number in 0..5 {
        scene.call(get(&format!("http://host{number}/")));
    }
    scene.world.run_until(millis(1));
    let again = scene.call(get("http://one/"));
    scene.world.run();
    let over = scene.of(again).over;
    assert!(over >= secs(60), "it went again after {over:?}");
}

const SECRET: &str = "hunter2-and-more";

#[test]
fn secrets_are_not_shown() {
    let uri = Uri::from_static("https://example.com/");
    let (mut headers, extensions) = (HeaderMap::new(), Extensions::new());
    headers.insert("authorization", SECRET.parse().unwrap());
    let call = Call::new(&Method::GET, &uri, &headers, &extensions);
    let lane = call.lane().and_header(&call, "authorization").and(SECRET);
    let shown = format!("{lane:?} {lane:#?}");
    assert!(shown.contains("https://example.com"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    // Nor as a list of bytes.
    assert!(!shown.contains("104, 117, 110"), "{shown}");
}

#[test]
fn nothing_that_knows_a_lane_shows_its_secret() {
    let pace = Pace::every(secs(1000)).unwrap();
    let builder =
        Manners::builder().lanes(|call| call.lane().and_header(call, "authorization").and(SECRET));
    let _: &MannersBuilder = &builder;
    assert!(!format!("{builder:?}").contains("hunter2"));
    let mut scene = Scene::new(well, |builder| {
        builder.pace(pace).lanes(|call| call.lane().and_header(call, "authorization").and(SECRET))
    });
    let request = || {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = Uri::from_static(HERE);
        request.headers_mut().insert("authorization", SECRET.parse().unwrap());
        request
    };
    let sent = scene.ask(request());
    let late = scene.ask(request());
    assert!(late.error.is_some());
    let client = scene.client();
    drop(client);
    let shown = format!("{:?} {:#?} {sent:?} {late:?}", scene.manners, scene.manners);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(!shown.contains("104, 117, 110"), "{shown}");
}
