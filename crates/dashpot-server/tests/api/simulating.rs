//! `POST /v1/simulate`.

use serde_json::{Value, json};

use crate::support::{Answer, Server};

fn simulate(server: &Server, change: impl FnOnce(&mut Value)) -> Answer {
    let mut question = json!({"traffic": ["boundary"], "limits": ["10/10s"], "algorithms": ["all"], "for": "1min"});
    change(&mut question);
    server.post("/v1/simulate", &question)
}

/// What the command prints, and a picture.
#[test]
fn it_is_the_simulator() {
    let server = Server::start(&[]);
    let told = simulate(&server, |_| {}).is(200).json();
    let runs = told["runs"].as_array().unwrap();
    let worst = |algorithm: &str| {
        let run = runs.iter().find(|run| run["algorithm"] == algorithm).unwrap();
        (run["worst_window"].as_u64().unwrap(), run["of"].as_u64().unwrap())
    };
    assert_eq!(worst("fixed-window"), (20, 10));
    assert_eq!(worst("sliding-log"), (10, 10));
    assert_eq!(runs.len(), 5);
    let svg = told["svg"].as_str().unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("2.00 times the limit"), "{svg}");
    // Nobody is limited by it.
    assert_eq!(server.get("/v1/keys/top").is(200).json()["keys"], json!([]));
    let again = simulate(&server, |_| {}).is(200).json();
    assert_eq!(told, again, "the same question, the same answer");
}

#[test]
fn mistakes_are_named() {
    let server = Server::start(&[]);
    let wrong = |field: &str, change: &dyn Fn(&mut Value)| simulate(&server, change).wrong(field);
    wrong("traffic", &|asked| asked["traffic"] = json!([]));
    wrong("traffic[1]", &|asked| asked["traffic"] = json!(["steady 1/s", "storm"]));
    wrong("limits", &|asked| asked["limits"] = json!(vec!["1/s"; 9]));
    wrong("limits[0]", &|asked| asked["limits"] = json!(["1/fortnight"]));
    wrong("limits", &|asked| asked["limits"] = json!(["5 concurrent"]));
    wrong("algorithms[0]", &|asked| asked["algorithms"] = json!(["magic"]));
    wrong("for", &|asked| asked["for"] = json!("soon"));
    wrong("takes", &|asked| asked["takes"] = json!("long"));
    wrong("fast", &|asked| asked["fast"] = json!(true));
}

/// Nobody keeps a service busy with made-up traffic.
#[test]
fn no_more_than_it_can_take() {
    let server = Server::start(&[]);
    let wrong = |change: &dyn Fn(&mut Value)| simulate(&server, change).wrong("for");
    for traffic in
        ["steady 1000000/s", "burst 999999999999 every 1s", "poisson 1T/ns", "boundary 1T/s"]
    {
        wrong(&|asked| asked["traffic"] = json!([traffic]));
    }
    wrong(&|asked| {
        asked["traffic"] = json!(["steady 1/s"]);
        asked["for"] = json!("1000year");
    });
    simulate(&server, |asked| asked["traffic"] = json!(["steady 500/s"])).is(200);
}
