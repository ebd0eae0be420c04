//! HTTPS ends at the gateway.

use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio_rustls::TlsConnector;

use crate::client::PATIENCE;
use crate::message::latin;
use crate::multiplexed::{Multiplexed, request};
use crate::scene::{FINE, OK, Scene, get, with};
use crate::service::{Directory, until};
use crate::wire::Wire;

const FLAGS: [&str; 4] = ["--tls-certificate", "certificate.pem", "--tls-key", "key.pem"];

/// Writes a certificate for this machine that vouches for itself, and its key.
fn certify(home: &Directory) -> CertificateDer<'static> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    home.replace("key.pem", &key.serialize_pem());
    home.replace("certificate.pem", &certificate.pem());
    certificate.der().clone()
}

fn secured() -> (Scene, CertificateDer<'static>) {
    let home = Directory::new();
    let certificate = certify(&home);
    (Scene::start_in(home, &FLAGS), certificate)
}

fn trusting(certificate: &CertificateDer<'static>, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::ALL_VERSIONS);
    let mut config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

type Secret = Wire<StreamOwned<ClientConnection, TcpStream>>;

/// A connection, and the protocol that was agreed on.
fn connect(scene: &Scene, config: Arc<ClientConfig>) -> Result<(Secret, String), std::io::Error> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(config, name).unwrap();
    let mut stream = scene.connect().stream;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    let protocol = latin(connection.alpn_protocol().unwrap_or_default());
    Ok((Wire::over(StreamOwned::new(connection, stream)), protocol))
}

#[test]
fn it_is_asked_over_https() {
    let (scene, certificate) = secured();
    let greeting = scene.stdout();
    assert!(greeting.contains(&format!("proxy on https://{}", scene.address)), "{greeting}");
    let (mut caller, _) = connect(&scene, trusting(&certificate, &[])).unwrap();
    caller.send(with("POST", "/a?b", "content-length: 3\r\nx-forwarded-proto: http\r\n", "abc"));
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!((seen.first.as_str(), seen.text().as_str()), ("POST /a?b HTTP/1.1", "abc"));
    assert_eq!(seen.one("x-forwarded-proto"), "https");
    assert_eq!(seen.one("x-forwarded-for"), "127.0.0.1");
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    for nth in 0..10 {
        caller.send(get(&format!("/{nth}")));
        assert_eq!(backend.request().first, format!("GET /{nth} HTTP/1.1"));
        backend.send(FINE);
        assert_eq!(caller.answer().text(), "fine");
    }
}

#[test]
fn the_protocol_is_agreed_on() {
    let (scene, certificate) = secured();
    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], "h2"),
        (&["http/1.1", "h2"], "h2"),
        (&["h2"], "h2"),
        (&["http/1.1"], "http/1.1"),
        (&[], ""),
    ] {
        let (_, protocol) = connect(&scene, trusting(&certificate, offered)).unwrap();
        assert_eq!(protocol, agreed, "of {offered:?}");
    }
    let (mut caller, _) = connect(&scene, trusting(&certificate, &["http/1.1"])).unwrap();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

#[test]
fn http_2_is_spoken_if_both_can() {
    let (scene, certificate) = secured();
    let config = trusting(&certificate, &["h2", "http/1.1"]);
    let address = scene.address;
    let caller = Multiplexed::over(async move {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(config).connect(name, stream).await.unwrap()
    });
    for nth in 0..5 {
        let mut asked = request("PUT", &format!("/{nth}"));
        *asked.uri_mut() = format!("https://localhost/{nth}").parse().unwrap();
        let mut asked = caller.begin(asked, false);
        asked.data("abc", true);
        let mut backend = scene.accept();
        let seen = backend.request();
        assert_eq!(seen.first, format!("PUT /{nth} HTTP/1.1"));
        assert_eq!((seen.one("host"), seen.text().as_str()), ("localhost", "abc"));
        assert_eq!(seen.one("x-forwarded-proto"), "https");
        backend.send(OK);
        assert_eq!(asked.answer().status(), 200);
    }
}

#[test]
fn what_ends_by_closing_ends_with_a_goodbye() {
    let (scene, certificate) = secured();
    let (mut caller, _) = connect(&scene, trusting(&certificate, &[])).unwrap();
    caller.send("GET / HTTP/1.0\r\nhost: example.com\r\n\r\n");
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.0 200 OK\r\n\r\n");
    backend.send(vec![b'x'; 500_000]);
    drop(backend);
    // Without one, this would be an error: somebody else may have cut it short.
    let answer = caller.answer();
    assert_eq!(answer.body.len(), 500_000);
}

#[test]
fn websockets_go_through() {
    let (scene, certificate) = secured();
    let (mut caller, _) = connect(&scene, trusting(&certificate, &["http/1.1"])).unwrap();
    caller.send(with("GET", "/", "connection: upgrade\r\nupgrade: websocket\r\n", "early"));
    let mut backend = scene.accept();
    assert_eq!(backend.head().one("x-forwarded-proto"), "https");
    backend.send("HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello");
    assert_eq!(caller.head().status(), 101);
    caller.expect_bytes("hello");
    backend.expect_bytes("early");
    caller.send("goodbye");
    backend.expect_bytes("goodbye");
    drop(backend);
    caller.expect_end();
}

#[test]
fn who_speaks_in_the_clear_reaches_nobody() {
    let (scene, certificate) = secured();
    for bytes in [get("/clear").as_bytes(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0x16; 1000]] {
        let mut caller = scene.connect();
        caller.send(bytes);
        caller.end();
        let said = latin(&caller.until_cut());
        assert!(!said.contains("200"), "{said:?}");
    }
    let (mut caller, _) = connect(&scene, trusting(&certificate, &[])).unwrap();
    caller.send(get("/secret"));
    let mut backend = scene.accept();
    assert_eq!(backend.request().first, "GET /secret HTTP/1.1", "what reached the backend first");
}

#[test]
fn the_file_may_say_so_and_a_renewed_certificate_is_used() {
    let home = Directory::new();
    let old = certify(&home);
    let rules = "[proxy]\ntls_certificate = 'certificate.pem'\ntls_key = 'key.pem'\n";
    home.write("dashpot.toml", rules);
    let scene = Scene::start_in(home, &[]);
    let serves = |(mut caller, _): (Secret, String)| {
        caller.send(get("/"));
        let mut backend = scene.accept();
        assert_eq!(backend.request().one("x-forwarded-proto"), "https");
        backend.send(OK);
        assert_eq!(caller.answer().status(), 200);
    };
    serves(connect(&scene, trusting(&old, &[])).unwrap());
    let new = certify(&scene.home);
    scene.signal("HUP");
    let renewed = || connect(&scene, trusting(&new, &[])).ok();
    serves(until("the new certificate", PATIENCE, renewed));
    assert!(connect(&scene, trusting(&old, &[])).is_err(), "the old one is gone");
}
