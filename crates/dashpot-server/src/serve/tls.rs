//! TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::serve::common::Failure;
use crate::serve::connection::Protocol;

/// A certificate and its key, which may be replaced while they are used.
#[derive(Debug)]
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Configs>,
}

/// What is served by, for each protocol.
#[derive(Debug)]
struct Configs {
    http: Arc<ServerConfig>,
    grpc: Arc<ServerConfig>,
    resp: Arc<ServerConfig>,
    proxy: Arc<ServerConfig>,
}

impl Tls {
    /// Reads them.
    fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let config = RwLock::new(read(certificate, key)?);
        Ok(Self { certificate: certificate.to_owned(), key: key.to_owned(), config })
    }

    /// Reads them, if there are any.
    pub(crate) fn load_if_any(
        certificate: Option<&PathBuf>,
        key: Option<&PathBuf>,
    ) -> Result<Option<Self>, Failure> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => {
                Self::load(certificate, key).map(Some).map_err(Failure::usage)
            }
            _ => Ok(None),
        }
    }

    /// Reads them again; if they are wrong, the last good ones stay.
    pub(crate) fn reload(&self) -> Result<(), String> {
        *self.config.write() = read(&self.certificate, &self.key)?;
        Ok(())
    }

    pub(crate) fn acceptor(&self, protocol: Protocol) -> TlsAcceptor {
        let configs = self.config.read();
        let config = match protocol {
            Protocol::Http => &configs.http,
            Protocol::Grpc => &configs.grpc,
            Protocol::Resp => &configs.resp,
            Protocol::Proxy => &configs.proxy,
        };
        TlsAcceptor::from(config.clone())
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Configs, String> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"there is no certificate in it (PEM)"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let mut http = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(certificate, &error))?;
    let resp = http.clone();
    let (mut grpc, mut proxy) = (http.clone(), http.clone());
    http.alpn_protocols = vec![b"http/1.1".to_vec()];
    grpc.alpn_protocols = vec![b"h2".to_vec()];
    proxy.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let [http, grpc, resp, proxy] = [http, grpc, resp, proxy].map(Arc::new);
    Ok(Configs { http, grpc, resp, proxy })
}
