//! What is around it: pipes that nobody reads, files that run out, ports that were used before.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::client::{Client, PATIENCE, get};
use crate::service::{Directory, Service, command, signal, until};

const RULES: &str = "[[rule]]\nname = 'all'\nlimits = ['7/day']\n";

/// `dashpot serve 2>&1 | head -2`, or a collector of logs that has crashed: what it would say has no
/// reader any more. It still answers, stops in order, and keeps its counts.
#[test]
fn it_goes_on_when_nobody_reads_what_it_says() {
    let home = Directory::new();
    home.write("dashpot.toml", RULES);
    let arguments = ["--listen", "127.0.0.1:0", "--state-file", "state", "--drain-delay", "0s"];
    let mut command = command(home.path(), &arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix("listening on http://")?.parse().ok());
    drop(lines);
    let mut child = Unheard(child);
    let mut client = Client::to(address.expect("it listens"));
    home.write("dashpot.toml", "[[rule]]\nname = 3\n");
    signal(child.0.id(), "HUP");
    let mut wrong = Vec::new();
    let failed = client.post("/v1/rules/reload", "");
    if failed.status != 400 {
        wrong.push(format!("{failed:?}"));
    }
    assert_eq!(client.check(r#"{"request":{"path":"/"}}"#).remaining(), 6);
    signal(child.0.id(), "TERM");
    let end = until("it to end", PATIENCE, || child.0.try_wait().unwrap());
    if end.code() != Some(0) {
        wrong.push(format!("it ends with {end}"));
    }
    home.write("dashpot.toml", RULES);
    let again = Service::start_in(home.path(), &["--state-file", "state"]);
    let left = again.client().check(r#"{"request":{"path":"/"}}"#).remaining();
    if left != 5 {
        wrong.push(format!("{left} left: counts were lost"));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Killed if the test fails.
struct Unheard(Child);

impl Drop for Unheard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn without_a_file_there_is_nothing_to_read_again() {
    let mut service = Service::start::<&str>(&[]);
    let mut client = service.client();
    for _ in 0..5 {
        service.signal("HUP");
    }
    assert_eq!(client.get("/healthz").status, 200);
    let answer = client.post("/v1/rules/reload", "");
    assert!(answer.status < 500, "{answer:?}");
    thread::sleep(Duration::from_millis(100));
    assert!(service.runs());
    assert_eq!(client.get("/healthz").status, 200);
}

/// Connections that it closed are remembered by the kernel for a minute. That is no reason to wait.
#[test]
fn it_starts_again_where_it_was() {
    let service = Service::start(&["--drain-delay", "0s"]);
    let address = service.address.to_string();
    let mut clients: Vec<_> = (0..20).map(|_| service.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/healthz").status, 200);
    }
    service.stop();
    assert!(clients.iter_mut().all(Client::is_closed), "it closes first");
    let home = Directory::new();
    let again = Service::run(command(home.path(), &["--listen", &address]));
    assert_eq!(again.client().get("/healthz").status, 200);
}

#[test]
fn it_listens_where_it_is_told() {
    let home = Directory::new();
    let service = Service::run(command(home.path(), &["--listen", "[::1]:0"]));
    assert!(service.address.is_ipv6());
    assert_eq!(service.client().get("/healthz").status, 200);
    assert_eq!(service.client().get("/v1/health").status, 200, "this is the same machine, too");
    let service = Service::run(command(home.path(), &["--listen", "0.0.0.0:0"]));
    let mut client = Client::to(([127, 0, 0, 1], service.address.port()).into());
    assert_eq!(client.get("/healthz").status, 200);
}

/// How long it has been at work, in hundredths of a second.
fn work(service: &Service) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", service.process())).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
}

/// With no file left for another connection, those that are there are served, nobody spins, and
/// when some leave there is room again.
#[test]
fn files_that_run_out_are_no_end() {
    let home = Directory::new();
    let mut shell = Command::new("sh");
    let line = "ulimit -n 64; exec \"$0\" serve --listen 127.0.0.1:0 --grpc-listen 127.0.0.1:0 --resp-listen 127.0.0.1:0";
    shell.args(["-c", line, env!("CARGO_BIN_EXE_dashpot")]).env_clear().current_dir(home.path());
    let mut service = Service::run(shell);
    let mut first = service.client();
    assert_eq!(first.get("/healthz").status, 200);
    let crowd: Vec<_> = (0..100).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(first.get("/healthz").status, 200);
    let before = work(&service);
    thread::sleep(Duration::from_secs(1));
    let spent = work(&service) - before;
    println!("{spent} hundredths of a second at work, of a hundred");
    assert!(spent < 60, "it spins");
    assert!(service.log().lines().count() < 50, "it fills the log: {}", service.log());
    drop(crowd);
    let mut late = service.client();
    late.send(get("/healthz"));
    late.patience(PATIENCE);
    assert_eq!(late.expect().status, 200);
    assert!(service.runs());
}

/// By content: neither its time nor its length tells that this is another file.
#[test]
fn a_change_that_does_not_show_is_seen() {
    let home = Directory::new();
    let service = Service::with_rules(&home, RULES, &[]);
    let path = home.path().join("rules.toml");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, RULES.replace('7', "8")).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    until("the change", PATIENCE, || {
        let answer = service.client().check(r#"{"request":{"path":"/"},"cost":0}"#);
        (answer.json()["policies"][0]["limit"] == 8).then_some(())
    });
}
