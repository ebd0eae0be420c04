//! HTTPS, certificates that are renewed, and those who do not get that far.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

use crate::client::{Client, PATIENCE, get};
use crate::service::{Directory, Service, until};

type Secret = Client<StreamOwned<ClientConnection, TcpStream>>;

/// Writes a certificate for this machine that vouches for itself, and its key.
fn certify(home: &Directory) -> CertificateDer<'static> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    home.replace("key.pem", &key.serialize_pem());
    home.replace("certificate.pem", &certificate.pem());
    certificate.der().clone()
}

const FLAGS: [&str; 4] = ["--tls-certificate", "certificate.pem", "--tls-key", "key.pem"];

fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<Secret, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions)?;
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(config, name)?;
    let mut stream = Client::to(address).stream;
    while connection.is_handshaking() {
        if let Err(error) = connection.complete_io(&mut stream) {
            return Err(rustls::Error::General(error.to_string()));
        }
    }
    Ok(Client { stream: StreamOwned::new(connection, stream), buffer: Vec::new() })
}

fn secret(service: &Service, trusted: &CertificateDer<'static>) -> Result<Secret, rustls::Error> {
    connect(service.address, trusted, rustls::ALL_VERSIONS)
}

#[test]
fn it_is_asked_over_https() {
    let home = Directory::new();
    let certificate = certify(&home);
    let service = Service::start_in(home.path(), &FLAGS);
    assert!(service.stdout().contains("listening on https://127.0.0.1:"), "{}", service.stdout());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut client = connect(service.address, &certificate, &[version]).unwrap();
        assert_eq!(client.get("/healthz").status, 200);
        let asked = r#"{"key":"alice","limit":"100/day"}"#;
        let left = client.check(asked).remaining();
        assert_eq!(client.check(asked).remaining(), left - 1);
    }
    // The command it prints works too, by one who trusts the certificate.
    let stdout = until("the command", PATIENCE, || {
        Some(service.stdout()).filter(|told| told.contains("curl"))
    });
    let line = stdout.lines().find(|line| line.contains("curl")).unwrap();
    let trusting = format!("{line} -sS -m 20 --cacert {}", home.file("certificate.pem"));
    let output = Command::new("sh").args(["-c", &trusting]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(" 200"), "{line}: {output:?}");
}

#[test]
fn the_file_may_say_so() {
    let home = Directory::new();
    let certificate = certify(&home);
    let rules = "[serve]\ntls_certificate = 'certificate.pem'\ntls_key = 'key.pem'\n";
    let service = Service::with_rules(&home, rules, &[]);
    assert_eq!(secret(&service, &certificate).unwrap().get("/healthz").status, 200);
}

#[test]
fn who_speaks_in_the_clear_gets_nothing() {
    let home = Directory::new();
    let certificate = certify(&home);
    let mut service = Service::start_in(home.path(), &FLAGS);
    for bytes in [get("/healthz").as_bytes(), &[0; 100], b"\x16\x03\x01\xff\xff", &[0x16; 70_000]] {
        let mut client = service.client();
        let _ = std::io::Write::write_all(&mut client.stream, bytes);
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        let (said, closed) = client.rest();
        assert!(closed, "still open");
        assert!(!said.windows(3).any(|three| three == b"200"), "{said:?}");
    }
    assert!(service.runs());
    assert_eq!(secret(&service, &certificate).unwrap().get("/healthz").status, 200);
}

#[test]
fn a_renewed_certificate_is_used() {
    let home = Directory::new();
    let old = certify(&home);
    let service = Service::start_in(home.path(), &FLAGS);
    let mut before = secret(&service, &old).unwrap();
    assert_eq!(before.get("/healthz").status, 200);
    let new = certify(&home);
    service.signal("HUP");
    let mut after = until("the new certificate", PATIENCE, || secret(&service, &new).ok());
    assert_eq!(after.get("/healthz").status, 200);
    assert!(secret(&service, &old).is_err(), "the old one is gone");
    assert_eq!(before.get("/healthz").status, 200, "who is connected stays so");
}

#[test]
fn a_renewal_that_is_wrong_leaves_the_last_good_one() {
    let home = Directory::new();
    let good = certify(&home);
    let service = Service::start_in(home.path(), &FLAGS);
    let wrong: [(&str, &dyn Fn()); 4] = [
        ("no certificate", &|| home.replace("certificate.pem", "nonsense\n")),
        ("an empty one", &|| home.replace("certificate.pem", "")),
        ("another one's key", &|| {
            certify(&home);
            home.replace("key.pem", &KeyPair::generate().unwrap().serialize_pem());
        }),
        ("none at all", &|| fs::remove_file(home.path().join("certificate.pem")).unwrap()),
    ];
    for (what, break_it) in wrong {
        break_it();
        let before = service.log().len();
        service.signal("HUP");
        until("it to be told", Duration::from_secs(10), || {
            service.log()[before..].contains(".pem").then_some(())
        });
        let client = secret(&service, &good);
        assert_eq!(client.expect(what).get("/healthz").status, 200, "{what}");
    }
    let renewed = certify(&home);
    service.signal("HUP");
    until("the new certificate", PATIENCE, || secret(&service, &renewed).ok());
}

/// Who is silent, and who stops in the middle. Others are served meanwhile.
#[test]
fn who_never_ends_the_handshake_is_let_go() {
    let home = Directory::new();
    let certificate = certify(&home);
    let service = Service::start_in(home.path(), &FLAGS);
    let begun = Instant::now();
    let mut slow: Vec<_> = (0..20).map(|_| service.client()).collect();
    for client in &mut slow[10..] {
        client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    }
    let mut client = secret(&service, &certificate).unwrap();
    assert_eq!(client.get("/healthz").status, 200);
    for client in &mut slow {
        client.patience(Duration::from_secs(45).saturating_sub(begun.elapsed()));
        let (_, closed) = client.rest();
        assert!(closed, "still open after {:?}", begun.elapsed());
    }
    println!("all are gone after {:?}", begun.elapsed());
    assert_eq!(secret(&service, &certificate).unwrap().get("/healthz").status, 200);
}

#[test]
fn it_stops_as_cleanly() {
    let home = Directory::new();
    let certificate = certify(&home);
    let mut service =
        Service::start_in(home.path(), &[&FLAGS[..], &["--drain-delay", "0s"]].concat());
    let mut client = secret(&service, &certificate).unwrap();
    assert_eq!(client.get("/healthz").status, 200);
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(5)).code(), Some(0));
    // With a word of goodbye, so that it cannot be taken for an answer cut short.
    assert!(client.answer().unwrap().is_none());
}

/// Nothing of theirs is under way, as with those who are silent in the clear.
#[test]
fn who_has_not_ended_the_handshake_does_not_hold_it_up() {
    let home = Directory::new();
    certify(&home);
    let mut service =
        Service::start_in(home.path(), &[&FLAGS[..], &["--drain-delay", "0s"]].concat());
    let _silent = service.client();
    std::thread::sleep(Duration::from_millis(100));
    service.signal("TERM");
    assert_eq!(service.end(Duration::from_secs(5)).code(), Some(0));
}
