//! What must not be told, and what must.

use crate::client::PATIENCE;
use crate::scene::{Scene, all, told, words};
use crate::service::{Service, until};

/// All it has said to anybody who may look.
fn said(scene: &Scene) -> String {
    let mut all = scene.stdout() + &scene.log();
    for path in ["/metrics", "/v1/health", "/openapi.json"] {
        all += &scene.client().get(path).body;
    }
    all
}

#[test]
fn no_password_is_ever_told() {
    let scene = Scene::start(&["--resp-password", "open-sesame", "--log-level", "trace"]);
    for case in [
        all(&["AUTH open-sesame", "PING", "INFO", "CONFIG GET *", "CONFIG GET requirepass"]),
        all(&["AUTH wrong-sesame", "PING"]),
        all(&["AUTH bob wrong-sesame", "HELLO 3 AUTH bob wrong-sesame"]),
        all(&["HELLO 3 AUTH default open-sesame", "INFO everything", "COMMAND DOCS"]),
        // The password where a mistake is, too.
        [words("AUTH open-sesame"), b"*1\r\nwrong-sesame\r\n".to_vec()].concat(),
        b"AUTH \"wrong-sesame\r\n".to_vec(),
        b"AUTH open-sesame\r\n".to_vec(),
    ] {
        let answered = String::from_utf8_lossy(&told(scene.resp, &case)).into_owned();
        assert!(!answered.contains("sesame"), "{answered}");
    }
    scene.signal("HUP");
    let told = said(&scene);
    assert!(!told.contains("sesame"), "{told}");
    // Nor in what can be seen of its flags.
    let refused = crate::service::refusal(
        scene.home.path(),
        &["--listen", "nowhere", "--resp-password", "open-sesame"],
    );
    assert_eq!(refused.0, Some(2));
    assert!(!refused.1.contains("sesame"), "{}", refused.1);
}

#[test]
fn the_help_does_not_show_the_one_that_is_set() {
    let home = crate::service::Directory::new();
    let mut help = crate::service::command(home.path(), &["--help"]);
    let help = help.env("DASHPOT_RESP_PASSWORD", "open-sesame").output().unwrap();
    let told = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(told.contains("--resp-password"), "{told}");
    assert!(!told.contains("sesame"), "{told}");
}

fn warns_of_passwords(service: &Service) -> bool {
    // What it has to say at the start is said by then.
    until("the greeting", PATIENCE, || service.stdout().contains("curl").then_some(()));
    assert_eq!(service.client().get("/healthz").status, 200);
    let log = service.log().to_lowercase();
    log.lines().any(|line| line.contains("warn") && line.contains("password"))
}

#[test]
fn who_lets_everybody_in_from_everywhere_is_warned() {
    let everywhere = ["--resp-listen", "0.0.0.0:0"];
    let scene = Scene::start(&everywhere);
    assert!(scene.resp.ip().is_unspecified(), "{}", scene.resp);
    assert!(warns_of_passwords(&scene), "{}", scene.log());
    let scene = Scene::start(&[&everywhere[..], &["--resp-password", "sesame"]].concat());
    assert!(!warns_of_passwords(&scene), "{}", scene.log());
    assert!(!warns_of_passwords(&Scene::start(&[])), "on loopback it is nobody else");
}
