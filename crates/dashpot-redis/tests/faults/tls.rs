//! `rediss://`: trusted by a certificate, or not at all.

use std::fs;
use std::path::Path;
use std::time::Duration;

use dashpot_redis::{RedisStore, UrlError};
use dashpot_testkit::RedisServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::common::{
    PATIENT, allowed, ask, complaint, millis, no_key_stays, plenty, run, until_answered,
};

/// A server with a second port for TLS, and the certificate to trust it by.
struct Secret {
    server: RedisServer,
    port: u16,
    root: String,
}

impl Secret {
    fn start() -> Self {
        let server = RedisServer::start();
        // Goes with the server.
        let directory = server.command(&["CONFIG", "GET", "dir"]).array()[1].text();
        let root = certify(Path::new(&directory));
        let of = |file: &str| format!("{directory}/{file}");
        let (certificate, key, trusted) = (of("cert.pem"), of("key.pem"), of("ca.pem"));
        let files =
            ["tls-cert-file", &certificate, "tls-key-file", &key, "tls-ca-cert-file", &trusted];
        for port in (server.port() + 1)..(server.port() + 100) {
            let number = port.to_string();
            let end = ["tls-auth-clients", "no", "tls-port", &number];
            let command = [&["CONFIG", "SET"], files.as_slice(), &end].concat();
            let reply = server.command(&command);
            if reply.is_ok() {
                return Self { server, port, root };
            }
            println!("{port}: {reply:?}");
        }
        panic!("no port for TLS");
    }

    fn url(&self) -> String {
        format!("rediss://localhost:{}", self.port)
    }
}

/// Writes a certificate for localhost, its key, and that of whom it is signed by, which is returned.
fn certify(directory: &Path) -> String {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = names.signed_by(&key, &authority).unwrap();
    fs::write(directory.join("cert.pem"), certificate.pem()).unwrap();
    fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
    fs::write(directory.join("ca.pem"), authority.pem()).unwrap();
    authority.pem()
}

#[test]
fn a_server_with_a_certificate_that_is_trusted_is_used() {
    run(async {
        let secret = Secret::start();
        let builder = RedisStore::builder(secret.url()).root_certificate(secret.root.clone());
        let store = builder.deadline(PATIENT).start().unwrap();
        store.ready(Duration::from_secs(5)).await.unwrap();
        allowed(&store, plenty(), "alice").await;
        secret.server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        println!("recovers after {:?}", until_answered(&store, millis(1000)).await);
        no_key_stays(&secret.server);
    });
}

#[test]
fn a_server_that_nobody_vouches_for_is_refused() {
    run(async {
        let secret = Secret::start();
        let other = Secret::start();
        let stranger = RedisStore::builder(secret.url()).root_certificate(other.root.clone());
        let misnamed = format!("rediss://127.0.0.1:{}", secret.port);
        let misnamed = RedisStore::builder(misnamed).root_certificate(secret.root.clone());
        let builders = [RedisStore::builder(secret.url()), stranger, misnamed];
        for store in builders.map(|builder| builder.deadline(PATIENT).start().unwrap()) {
            println!("{}", complaint(&store, &["certificate"]).await);
        }
        assert_eq!(secret.server.keys(), Vec::<Vec<u8>>::new());
    });
}

#[test]
fn what_is_to_be_secret_is_never_sent_in_the_open() {
    run(async {
        let secret = Secret::start();
        let open = format!("rediss://localhost:{}", secret.server.port());
        let hidden = format!("redis://localhost:{}", secret.port);
        for url in [open, hidden] {
            let builder = RedisStore::builder(url).root_certificate(secret.root.clone());
            let store = builder.deadline(PATIENT).start().unwrap();
            store.ready(millis(500)).await.unwrap_err();
            ask(&store, plenty(), "alice").await.unwrap_err();
        }
        assert_eq!(secret.server.keys(), Vec::<Vec<u8>>::new());
    });
}

#[test]
fn a_certificate_that_is_none_is_an_error() {
    run(async {
        let builder = RedisStore::builder("rediss://localhost").root_certificate("nonsense");
        let error = builder.start().unwrap_err();
        assert!(matches!(error, UrlError::Certificate(_)), "{error}");
    });
}
