//! Where the password comes from, and what is no password.

use std::fs;

use crate::scene::{Scene, told, words};
use crate::service::{Directory, command, ended, refusal};

/// This one and no other.
#[track_caller]
fn opens(scene: &Scene, password: &str) {
    let with = |password: &str| {
        let said = told(scene.resp, &[words(&format!("AUTH {password}")), words("PING")].concat());
        String::from_utf8(said).unwrap()
    };
    assert_eq!(with(password), "+OK\r\n+PONG\r\n+OK\r\n");
    let wrong = with("nonsense");
    assert!(wrong.starts_with("-WRONGPASS ") && wrong.contains("\r\n-NOAUTH "), "{wrong}");
}

fn home_with(password: &str) -> Directory {
    let home = Directory::new();
    home.write("secret", password);
    home
}

#[test]
fn a_flag_a_file_or_a_variable_says_it() {
    opens(&Scene::start(&["--resp-password", "by-flag"]), "by-flag");
    let flags = ["--resp-password-file", "secret"];
    opens(&Scene::start_in(home_with("by-file"), &flags), "by-file");
    // As editors and `echo` write it.
    opens(&Scene::start_in(home_with("by-line\n"), &flags), "by-line");
    opens(&Scene::start_in(home_with("by-line\r\n"), &flags), "by-line");
    for (variable, value, password) in [
        ("DASHPOT_RESP_PASSWORD", "by-variable", "by-variable"),
        ("DASHPOT_RESP_PASSWORD_FILE", "secret", "by-file"),
    ] {
        let home = home_with("by-file\n");
        let mut command = command(home.path(), &["--listen", "127.0.0.1:0"]);
        command.env(variable, value);
        opens(&Scene::run(home, command), password);
    }
}

#[test]
fn the_rule_file_names_a_file() {
    let home = home_with("by-rules\n");
    home.write("rules.toml", "[serve]\nresp_password_file = 'secret'\n");
    let scene = Scene::start_in(home, &["--config", "rules.toml"]);
    opens(&scene, "by-rules");
    // A flag comes before it.
    let home = home_with("by-rules\n");
    home.write("other", "by-flag\n");
    home.write("rules.toml", "[serve]\nresp_password_file = 'secret'\n");
    let flags = ["--config", "rules.toml", "--resp-password-file", "other"];
    opens(&Scene::start_in(home, &flags), "by-flag");
}

#[test]
fn a_file_without_a_password_is_refused() {
    let home = Directory::new();
    home.write("empty-secret", "");
    home.write("blank-secret", "\n");
    fs::create_dir(home.path().join("directory-secret")).unwrap();
    for (name, told_of) in [
        ("missing-secret", "missing-secret"),
        ("directory-secret", "directory-secret"),
        ("empty-secret", "password"),
        ("blank-secret", "password"),
    ] {
        let arguments = ["--listen", "127.0.0.1:0"];
        let flags = [&arguments[..], &["--resp-password-file", name]].concat();
        let (code, told) = refusal(home.path(), &flags);
        assert_eq!(code, Some(2), "{name}: {told}");
        assert!(told.contains(told_of), "{name}: {told}");

        let mut by_variable = command(home.path(), &arguments);
        by_variable.env("DASHPOT_RESP_PASSWORD_FILE", name);
        let (code, told) = ended(by_variable);
        assert_eq!(code, Some(2), "{name}: {told}");
        assert!(told.contains(told_of), "{name}: {told}");

        home.write("rules.toml", &format!("[serve]\nresp_password_file = '{name}'\n"));
        let flags = [&arguments[..], &["--config", "rules.toml"]].concat();
        let (code, told) = refusal(home.path(), &flags);
        assert_eq!(code, Some(2), "{name}: {told}");
        assert!(told.contains(told_of), "{name}: {told}");
    }
}

/// Who wants one and gets none would find out too late.
#[test]
fn an_empty_password_is_refused() {
    let home = Directory::new();
    let (code, told) = refusal(home.path(), &["--listen", "127.0.0.1:0", "--resp-password", ""]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("password"), "{told}");
    let mut command = command(home.path(), &["--listen", "127.0.0.1:0"]);
    command.env("DASHPOT_RESP_PASSWORD", "");
    let (code, told) = ended(command);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("password"), "{told}");
}
