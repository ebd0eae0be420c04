//! `rediss://`

use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::Client;
use crate::reply::{Reply, shown};
use crate::scene::{Scene, Wire, framed, words};
use crate::service::Directory;

const FLAGS: [&str; 4] = ["--tls-certificate", "certificate.pem", "--tls-key", "key.pem"];

/// Writes a certificate for this machine that vouches for itself, and its key.
fn certify(home: &Directory) -> CertificateDer<'static> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    home.write("key.pem", &key.serialize_pem());
    home.write("certificate.pem", &certificate.pem());
    certificate.der().clone()
}

fn connect(
    scene: &Scene,
    trusted: &CertificateDer<'static>,
) -> Wire<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::ALL_VERSIONS);
    let config = Arc::new(config.unwrap().with_root_certificates(roots).with_no_client_auth());
    let connection = ClientConnection::new(config, ServerName::try_from("localhost").unwrap());
    let stream = Client::to(scene.resp).stream;
    Wire::over(StreamOwned::new(connection.unwrap(), stream))
}

#[test]
fn with_a_certificate_it_speaks_tls() {
    let home = Directory::new();
    let certificate = certify(&home);
    let scene = Scene::start_in(home, &[&FLAGS[..], &["--resp-password", "sesame"]].concat());
    let mut wire = connect(&scene, &certificate);
    assert_eq!(wire.ask("PING").error(), "NOAUTH Authentication required.");
    assert!(wire.ask("AUTH sesame").is_status("OK"));
    assert_eq!(wire.ask("CL.THROTTLE tls 5 1 3600").throttle(), [0, 6, 5, -1, 3600]);
    let texts: Vec<_> = (0..2000).map(|nth| format!("{nth}").repeat(10)).collect();
    wire.send(texts.iter().flat_map(|text| framed(&["ECHO", text])).collect::<Vec<_>>());
    for text in texts {
        assert_eq!(wire.reply(), Reply::Text('$', text.into()));
    }
    wire.send(words("QUIT"));
    // With a word of goodbye, so that it cannot be taken for an answer cut short.
    assert_eq!(wire.rest(), b"+OK\r\n");
}

#[test]
fn who_speaks_in_the_clear_gets_nothing() {
    let home = Directory::new();
    let certificate = certify(&home);
    let scene = Scene::start_in(home, &FLAGS);
    for bytes in [words("PING"), b"PING\r\n".to_vec(), words("CL.THROTTLE clear 5 1 3600")] {
        let mut wire = scene.connect();
        wire.send(&bytes);
        let said = wire.rest();
        assert!(!said.starts_with(b"+") && !said.starts_with(b"*"), "{}", shown(&said));
    }
    let mut wire = connect(&scene, &certificate);
    assert_eq!(wire.ask("CL.THROTTLE clear 5 1 3600 0").throttle()[2], 6);
}

#[test]
fn redis_cli_gets_in() {
    let home = Directory::new();
    certify(&home);
    let scene = Scene::start_in(home, &FLAGS);
    let port = scene.resp.port().to_string();
    let mut cli = Command::new("redis-cli");
    cli.args(["--tls", "--cacert", &scene.home.file("certificate.pem"), "-p", &port]);
    cli.args(["CL.THROTTLE", "user123", "15", "30", "60"]);
    let output = cli.output().expect("redis-cli, which comes with redis-server");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(told, "0\n16\n15\n-1\n2\n", "{output:?}");
}
