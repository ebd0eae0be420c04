//! Where settings come from: a flag, else a variable, else the file.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::client::PATIENCE;
use crate::scene::{FINE, OK, Scene, command, get, listener, post};
use crate::service::Directory;
use crate::wire::Wire;

fn url(backend: &TcpListener) -> String {
    format!("http://{}", backend.local_addr().unwrap())
}

/// A request arrives there.
#[track_caller]
fn serves(caller: &mut Wire, backend: &TcpListener) {
    caller.send(get("/"));
    let mut backend = Wire::of(backend.accept().expect("a connection").0);
    backend.request();
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

/// One that does not say `listening on`. It is killed when it is dropped.
struct Running {
    child: Child,
    address: SocketAddr,
    said: Vec<String>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut running = Self { child, address: ([0; 4], 0).into(), said: Vec::new() };
        let output = running.child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        while running.address.port() == 0 {
            let line = lines.recv_timeout(PATIENCE).expect("it does not say where it listens");
            if let Some(address) = line.strip_prefix("proxy on http://") {
                running.address = address.split(' ').next().unwrap().parse().unwrap();
            }
            running.said.push(line);
        }
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_flag_comes_first_then_a_variable_then_the_file() {
    let (by_flag, by_variable, by_file) = (listener(), listener(), listener());
    for nth in 0..3 {
        let home = Directory::new();
        home.write("dashpot.toml", &format!("[proxy]\nupstream = '{}'\n", url(&by_file)));
        let mut command = command::<&str>(home.path(), &[]);
        if nth >= 1 {
            command.env("DASHPOT_UPSTREAM", url(&by_variable));
        }
        if nth >= 2 {
            command.args(["--upstream", &url(&by_flag)]);
        }
        let expected = [&by_file, &by_variable, &by_flag][nth];
        let scene = Scene::run(home, listener(), command);
        let greeting = scene.stdout();
        let line = format!("proxy on http://{} for {}", scene.address, url(expected));
        assert!(greeting.lines().any(|said| said == line), "{line} in {greeting}");
        serves(&mut scene.connect(), expected);
    }
}

/// Everything in the file, and nothing else.
#[test]
fn the_file_is_enough() {
    let backend = listener();
    let home = Directory::new();
    let rules = format!(
        "[proxy]\nupstream = '{}'\nlisten = '127.0.0.1:0'\nadmin_listen = '127.0.0.1:0'\n\
         connect_timeout = '1s'\nresponse_timeout = '1min'\nclient_timeout = '30s'\n\
         idle_timeout = '500ms'\ntunnel_timeout = '1h'\nmax_body = 10\naccess_log = 'off'\n",
        url(&backend)
    );
    home.write("dashpot.toml", &rules);
    let mut command = command::<&str>(home.path(), &[]);
    command.env_remove("DASHPOT_PROXY_LISTEN").env_remove("DASHPOT_ADMIN_LISTEN");
    let scene = Scene::run(home, listener(), command);
    let mut caller = scene.connect();
    serves(&mut caller, &backend);
    scene.connect().expect_end();
    let mut caller = scene.connect();
    caller.send(post("/", "longer than that"));
    caller.answer().is_problem(413);
    assert_eq!(scene.client().get("/healthz").status, 200);
}

#[test]
fn variables_are_enough() {
    let backend = listener();
    let home = Directory::new();
    let mut command = command::<&str>(home.path(), &[]);
    command.env("DASHPOT_UPSTREAM", url(&backend)).env("DASHPOT_PROXY_LIMIT", "2/h");
    command.env("DASHPOT_MAX_BODY", "10").env("DASHPOT_IDLE_TIMEOUT", "500ms");
    let scene = Scene::run(home, listener(), command);
    let mut caller = scene.connect();
    serves(&mut caller, &backend);
    scene.connect().expect_end();
    let mut caller = scene.connect();
    caller.send(post("/", "longer than that"));
    caller.answer().is_problem(413);
}

#[test]
fn it_says_where_it_listens_and_what_to_try() {
    let scene = Scene::start(&["--limit", "5/min", "--by", "ip"]);
    let greeting = crate::service::until("all of it", PATIENCE, || {
        Some(scene.stdout()).filter(|said| said.contains("curl"))
    });
    let lines: Vec<_> = greeting.lines().collect();
    assert!(
        lines[0].starts_with("dashpot ") && lines[0].ends_with(", in memory, 1 rule"),
        "{lines:?}"
    );
    assert!(
        lines.contains(&format!("listening on http://{}", scene.admin()).as_str()),
        "{lines:?}"
    );
    let said = lines.iter().map(|line| line.trim()).find(|line| line.starts_with("curl")).unwrap();
    assert_eq!(said, format!("curl -i http://{}/", scene.address));
    let trying = format!("{said} -sS -m 20");
    let child = Command::new("sh").args(["-c", &trying]).stdout(Stdio::piped()).spawn().unwrap();
    let mut backend = scene.accept();
    backend.request();
    backend.send(FINE);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("HTTP/1.1 200 OK") && told.ends_with("fine"), "{told}");
}

/// Callers do not reach the one for administrators, and the other way round.
#[test]
fn the_two_ports_are_kept_apart() {
    let scene = Scene::start(&[]);
    for target in ["/metrics", "/healthz", "/v1/keys/top", "/v1/rules"] {
        assert_eq!(scene.seen(get(target)).first, format!("GET {target} HTTP/1.1"));
        assert_eq!(scene.client().get(target).status, 200, "{target}");
    }
    assert_eq!(scene.client().get("/of-the-backend").status, 404);
    scene.goes_on();
}

#[test]
fn it_may_do_without_the_port_for_administrators() {
    let backend = listener();
    let home = Directory::new();
    let arguments = ["--upstream", &url(&backend), "--admin-listen", "off"];
    let running = Running::start(command(home.path(), &arguments));
    serves(&mut Wire::to(running.address), &backend);
    let said = running.said.join("\n");
    assert!(!said.contains("listening on"), "{said}");
}

/// A name is looked up. It may have more than one address, and the first need not be the one.
#[test]
fn the_backend_may_have_a_name() {
    let backend = listener();
    let home = Directory::new();
    let port = backend.local_addr().unwrap().port();
    let arguments = ["--upstream", &format!("http://localhost:{port}")];
    let command = command(home.path(), &arguments);
    let scene = Scene::run(home, listener(), command);
    serves(&mut scene.connect(), &backend);
}
