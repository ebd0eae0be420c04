//! A `dashpot serve` somewhere, as the other commands ask it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::uri::Scheme;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::Exit;

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// A server that may be named.
#[derive(Debug, clap::Args)]
pub(crate) struct AnyServer {
    /// The service to ask, as in http://127.0.0.1:8080
    #[arg(long, env = "DASHPOT_SERVER")]
    server: Option<Uri>,

    /// Its admin token
    #[arg(long, env = "DASHPOT_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
}

/// A server that may be named instead of a file; by the flag alone, so that a file that is named is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct InsteadOfFile {
    /// The service to ask instead, as in http://127.0.0.1:8080
    #[arg(long)]
    server: Option<Uri>,

    /// Its admin token
    #[arg(long, env = "DASHPOT_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
}

impl InsteadOfFile {
    /// The server, if there is one.
    pub(crate) fn open(&self) -> Result<Option<Server>, Exit> {
        open(self.server.as_ref(), self.admin_token.as_ref())
    }
}

/// The server of this URL, if there is one.
fn open(url: Option<&Uri>, token: Option<&String>) -> Result<Option<Server>, Exit> {
    url.map(|url| Server::new(url.clone(), token.cloned())).transpose()
}

/// A server that has to be named.
#[derive(Debug, clap::Args)]
pub(crate) struct OneServer {
    /// The service to ask, as in http://127.0.0.1:8080
    #[arg(long, env = "DASHPOT_SERVER", default_value = "http://127.0.0.1:8080")]
    server: Uri,

    /// Its admin token
    #[arg(long, env = "DASHPOT_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
}

impl AnyServer {
    /// The server, if there is one.
    pub(crate) fn open(&self) -> Result<Option<Server>, Exit> {
        open(self.server.as_ref(), self.admin_token.as_ref())
    }

    pub(crate) const fn is_named(&self) -> bool {
        self.server.is_some()
    }
}

impl OneServer {
    pub(crate) fn open(&self) -> Result<Server, Exit> {
        Server::new(self.server.clone(), self.admin_token.clone())
    }
}

/// A server, to be asked.
#[derive(Debug)]
pub(crate) struct Server {
    url: Uri,
    token: Option<String>,
    runtime: Runtime,
}

impl Server {
    fn new(url: Uri, token: Option<String>) -> Result<Self, Exit> {
        let known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)];
        let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if !known.contains(&url.scheme()) || url.host().is_none() || has_user {
            eprintln!(
                "error: a server is a http:// or https:// URL without a user, as in http://127.0.0.1:8080"
            );
            return Err(Exit::Usage);
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| crate::limit::unreachable(&error))?;
        Ok(Self { url, token, runtime })
    }

    /// Asks a question, and reads the answer.
    pub(crate) fn ask<T: DeserializeOwned>(&self, path: &str, question: &Value) -> Result<T, Exit> {
        self.read(Method::POST, path, question.to_string().into(), "application/json")
    }

    /// Sends a text, and reads the answer.
    pub(crate) fn send<T: DeserializeOwned>(&self, path: &str, text: String) -> Result<T, Exit> {
        self.read(Method::POST, path, text.into(), "application/toml")
    }

    /// Reads what there is.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Exit> {
        self.read(Method::GET, path, Bytes::new(), "application/json")
    }

    fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        kind: &'static str,
    ) -> Result<T, Exit> {
        // A timer belongs to a runtime, so it is made there.
        let answered = self
            .runtime
            .block_on(async { timeout(PATIENCE, self.call(method, path, body, kind)).await });
        let (status, body) = match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(wrong)) => return Err(self.fail(&wrong, Exit::Store)),
            Err(_) => return Err(self.fail("no answer in time", Exit::Store)),
        };
        if let (200..300 | 429, Ok(read)) = (status.as_u16(), serde_json::from_slice(&body)) {
            return Ok(read);
        }
        // A check that is denied because the store does not answer is an answer as well.
        if status == StatusCode::SERVICE_UNAVAILABLE
            && let Ok(read) = serde_json::from_slice(&body)
        {
            return Ok(read);
        }
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let detail = problem.get("detail").and_then(Value::as_str);
        let detail = detail.unwrap_or("no answer that is known here");
        let told = match problem.get("field").and_then(Value::as_str) {
            Some(field) => format!("{status}: {field}: {detail}"),
            None => format!("{status}: {detail}"),
        };
        let exit = if status.is_server_error() { Exit::Store } else { Exit::Usage };
        Err(self.fail(&told, exit))
    }

    fn fail(&self, why: &str, exit: Exit) -> Exit {
        eprintln!("error: {}: {why}", self.url);
        exit
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        kind: &'static str,
    ) -> Result<(StatusCode, Bytes), String> {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let host = self.url.host().unwrap_or_default();
        let is_secure = self.url.scheme() == Some(&Scheme::HTTPS);
        let port = self.url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((name, port)).await.map_err(|error| told(&error))?;
        let base = self.url.path().trim_end_matches('/');
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() =
            format!("{base}{path}").parse::<Uri>().map_err(|error| told(&error))?;
        let authority = self.url.authority().map_or(host, |authority| authority.as_str());
        let host = HeaderValue::from_str(authority).map_err(|error| told(&error))?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(token) = &self.token {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the admin token has characters that no header takes".to_owned())?;
            bearer.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        if !is_secure {
            return exchange(stream, request).await;
        }
        let server = ServerName::try_from(name.to_owned()).map_err(|error| told(&error))?;
        let connected =
            TlsConnector::from(Arc::new(trusting_the_system()?)).connect(server, stream);
        exchange(connected.await.map_err(|error| told(&error))?, request).await
    }
}

fn trusting_the_system() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let (_, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
    let driven = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| told(&error))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX);
    let body = body.collect().await.map_err(|error| told(&error))?.to_bytes();
    driven.abort();
    Ok((status, body))
}
