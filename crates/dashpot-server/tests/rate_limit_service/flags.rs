//! Where it listens, and what it refuses to be told.

use std::net::TcpListener;
use std::process::Stdio;

use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

use crate::door::{Door, descriptor, request};
use crate::rpc::call;
use crate::scene::{CONFIG, Scene, command, home, over_grpc, refusal};
use crate::service::{Directory, Service, ended, until};

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 5 }
";

#[test]
fn both_addresses_are_told_and_are_not_one() {
    let scene = Scene::start(YAML, &[]);
    assert!(scene.grpc.ip().is_loopback());
    assert_ne!(scene.grpc, scene.service.address);
}

#[test]
fn off_is_off_and_json_is_still_there() {
    let home = home(&[("limits.yaml", YAML)]);
    let arguments = ["--envoy-config", CONFIG, "--grpc-listen", "off"];
    let service = Service::run(command(&home, &arguments));
    let asked = request("d", &[descriptor(&[("k", "v")])]).to_string();
    let answer = service.client().post("/json", &asked);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["statuses"][0]["limitRemaining"], 4, "{answer:?}");
    assert!(!service.stdout().contains("gRPC on"), "{}", service.stdout());
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let told = refusal(&[("limits.yaml", YAML)], &["--grpc-listen", &address]);
    assert!(told.contains(&address) && told.contains("in use"), "{told}");
}

#[test]
fn an_address_that_is_none_is_told() {
    let told = refusal(&[("limits.yaml", YAML)], &["--grpc-listen", "nowhere"]);
    assert!(told.contains("--grpc-listen") || told.contains("nowhere"), "{told}");
}

#[test]
fn flags_are_variables_as_well() {
    let home = home(&[("limits.yaml", YAML)]);
    let mut command = command(&home, &[]);
    command.env("DASHPOT_ENVOY_CONFIG", CONFIG).env("DASHPOT_ENVOY_ALGORITHM", "concurrency");
    let (code, told) = ended(command);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("concurrency"), "{told}");

    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).env_clear().current_dir(home.path());
    command.env("DASHPOT_ENVOY_CONFIG", CONFIG).env("DASHPOT_GRPC_LISTEN", "127.0.0.1:0");
    command.env("DASHPOT_RESP_LISTEN", "127.0.0.1:0");
    command.env("DASHPOT_ENVOY_COUNT_DENIED", "true").stdin(Stdio::null());
    let service = Service::run(command);
    let ask = |hits: u64| {
        let asked = request("d", &[crate::door::costing(&[("k", "v")], hits)]);
        service.client().post("/json", &asked.to_string()).status
    };
    assert_eq!([ask(4), ask(3), ask(1)], [200, 429, 429], "what was denied counts");
    until("the address of gRPC", crate::client::PATIENCE, || {
        service.stdout().contains("gRPC on 127.0.0.1:").then_some(())
    });
}

/// One certificate for both ports.
#[test]
fn with_a_certificate_it_is_asked_over_tls() {
    let home = home(&[("limits.yaml", YAML)]);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap().pem();
    home.write("key.pem", &key.serialize_pem());
    home.write("certificate.pem", &certificate);
    let arguments =
        ["--envoy-config", CONFIG, "--tls-certificate", "certificate.pem", "--tls-key", "key.pem"];
    let scene = Scene::start_in(home, &arguments);
    let asked = request("d", &[descriptor(&[("k", "v")])]);
    let to = scene.grpc.to_string();
    let call = |roots: Option<&str>| {
        let mut asked = json!({"op": "limit", "to": to, "request": asked, "deadline": 5});
        if let Some(roots) = roots {
            asked["roots"] = json!(roots);
        }
        over_grpc(&call(asked))
    };
    call(Some(&certificate)).unwrap().passes(4);
    let refusal = call(None).expect_err("it is not asked without");
    assert!(["UNAVAILABLE", "DEADLINE_EXCEEDED"].contains(&refusal.code.as_str()), "{refusal:?}");
    call(Some(&certificate)).unwrap().passes(3);
}

/// Without YAML there is nothing to do but what rules and requests say.
#[test]
fn without_a_configuration_it_serves() {
    let scene = Scene::start_in(Directory::new(), &[]);
    scene.hit("d", &[("k", "v")]).is_free();
    scene.by(Door::Json).hit("d", &[("k", "v")]).is_free();
}
