//! What the gateway is told: by flags, by the environment, by the rule file, in this order.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use dashpot::Quota;
use dashpot_rules::{
    AccessLog, Listen, LiveRules, LoadError, MaxBody, Reload, RuleSet, Upstream, Watch,
};

use crate::limit;
use crate::proxy::gateway::Settings;
use crate::proxy::progress::Patience;
use crate::serve::common::{Common, Failure};
use crate::serve::tls::Tls;

const USUAL_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);
const USUAL_ADMIN_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
const USUAL_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const USUAL_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
const USUAL_CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
const USUAL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const USUAL_TUNNEL_TIMEOUT: Duration = Duration::from_secs(3600);
const USUAL_MAX_BODY: MaxBody = MaxBody::Bytes(16 * 1024 * 1024);

/// Limit requests, and pass on to a backend those that may go.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot proxy --upstream http://127.0.0.1:3000 --limit 100/min --by ip
  dashpot proxy --upstream http://127.0.0.1:3000 --limit 10/s --limit 1000/day --by 'header:x-api-key | ip'
  dashpot proxy --config dashpot.toml
  dashpot proxy --upstream http://127.0.0.1:3000 --listen 0.0.0.0:443 --tls-certificate cert.pem --tls-key key.pem

It counts in memory unless told otherwise, reads ./dashpot.toml if there is one, and again when it changes or on
SIGHUP. Metrics and the admin API are at --admin-listen. On SIGTERM it ends what is under way.")]
pub(crate) struct Args {
    /// The backend, as in http://127.0.0.1:3000
    #[arg(long, env = "DASHPOT_UPSTREAM", value_name = "URL")]
    upstream: Option<Upstream>,

    /// Where to listen; 127.0.0.1:8000 if the file does not say. 0.0.0.0:8000 is for everybody
    #[arg(long, env = "DASHPOT_PROXY_LISTEN", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// A limit, without a rule file: COUNT/WINDOW [burst N] or `N concurrent`; may be repeated
    #[arg(long, env = "DASHPOT_PROXY_LIMIT", value_parser = limit::quota, value_delimiter = ',')]
    limit: Vec<Quota>,

    /// What it is counted by: ip, path, header:x-api-key …; `a | b` is the first that is present
    #[arg(
        long,
        env = "DASHPOT_PROXY_BY",
        value_name = "FACTS",
        value_delimiter = ',',
        requires = "limit"
    )]
    by: Vec<String>,

    /// Where metrics and the admin API are, or `off`; 127.0.0.1:8090 if the file does not say
    #[arg(long, env = "DASHPOT_ADMIN_LISTEN", value_name = "ADDRESS")]
    admin_listen: Option<Listen>,

    /// The certificate and those it is signed by (PEM): then HTTPS is served
    #[arg(long, env = "DASHPOT_TLS_CERTIFICATE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, env = "DASHPOT_TLS_KEY", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    /// How long the backend may take to accept a connection; 5s if the file does not say
    #[arg(long, env = "DASHPOT_CONNECT_TIMEOUT", value_parser = limit::time, value_name = "TIME")]
    connect_timeout: Option<Duration>,

    /// How long the backend may take to begin its answer, and to go on with it; 60s
    #[arg(long, env = "DASHPOT_RESPONSE_TIMEOUT", value_parser = limit::time, value_name = "TIME")]
    response_timeout: Option<Duration>,

    /// How long a caller may take for the head of a request, and to go on with it; 30s
    #[arg(long, env = "DASHPOT_CLIENT_TIMEOUT", value_parser = limit::time, value_name = "TIME")]
    client_timeout: Option<Duration>,

    /// How long a caller's connection may be without a request; 60s
    #[arg(long, env = "DASHPOT_IDLE_TIMEOUT", value_parser = limit::time, value_name = "TIME")]
    idle_timeout: Option<Duration>,

    /// How long an upgraded connection may be silent; 1h
    #[arg(long, env = "DASHPOT_TUNNEL_TIMEOUT", value_parser = limit::time, value_name = "TIME")]
    tunnel_timeout: Option<Duration>,

    /// The longest body of a request, in bytes, or `unlimited`; 16777216
    #[arg(long, env = "DASHPOT_MAX_BODY", value_name = "BYTES")]
    max_body: Option<MaxBody>,

    /// Where requests are noted: a file, `-` for the standard output, or `off`
    #[arg(long, env = "DASHPOT_ACCESS_LOG", value_name = "FILE", allow_hyphen_values = true)]
    access_log: Option<AccessLog>,

    #[command(flatten)]
    pub(crate) common: Common,
}

impl Args {
    /// The rules: those of the file, or the one that flags make.
    pub(crate) fn rules(
        &self,
        report: impl FnMut(Result<Reload, LoadError>) + Send + 'static,
    ) -> Result<(LiveRules, Option<PathBuf>, Option<Watch>), Failure> {
        if self.limit.is_empty() {
            return self.common.rules(report);
        }
        if let Some(file) = self.common.file() {
            let message = format!(
                "--limit goes without a rule file, and {} is one; write there: [[rule]] limits = …",
                file.display()
            );
            return Err(Failure::usage(message));
        }
        let rules = RuleSet::parse(&limit::as_file(&self.limit, &self.by));
        let rules = rules.map_err(|errors| {
            Failure::usage(format!("--limit and --by make no rule:\n{errors}"))
        })?;
        Ok((LiveRules::new(rules), None, None))
    }

    pub(crate) fn listen(&self, rules: &RuleSet) -> SocketAddr {
        self.listen.or(rules.proxy().listen).unwrap_or(USUAL_ADDRESS)
    }

    pub(crate) fn admin_listen(&self, rules: &RuleSet) -> Listen {
        let usual = Listen::At(USUAL_ADMIN_ADDRESS);
        self.admin_listen.or(rules.proxy().admin_listen).unwrap_or(usual)
    }

    pub(crate) fn access_log(&self, rules: &RuleSet) -> AccessLog {
        let written = self.access_log.as_ref().or(rules.proxy().access_log.as_ref());
        written.cloned().unwrap_or(AccessLog::Off)
    }

    pub(crate) fn tls(&self, rules: &RuleSet) -> Result<Option<Tls>, Failure> {
        let written = rules.proxy();
        Tls::load_if_any(
            self.tls_certificate.as_ref().or(written.tls_certificate.as_ref()),
            self.tls_key.as_ref().or(written.tls_key.as_ref()),
        )
    }

    pub(crate) fn settings(&self, rules: &RuleSet) -> Result<Settings, Failure> {
        let written = rules.proxy();
        let Some(upstream) = self.upstream.as_ref().or(written.upstream.as_ref()) else {
            return Err(Failure::usage(
                "there is no backend; say which: --upstream http://127.0.0.1:3000, or [proxy] upstream",
            ));
        };
        let either =
            |flag: Option<Duration>, file: Option<Duration>, usual| flag.or(file).unwrap_or(usual);
        Ok(Settings {
            upstream: upstream.clone(),
            connect_timeout: either(
                self.connect_timeout,
                written.connect_timeout,
                USUAL_CONNECT_TIMEOUT,
            ),
            tunnel_timeout: either(
                self.tunnel_timeout,
                written.tunnel_timeout,
                USUAL_TUNNEL_TIMEOUT,
            ),
            patience: Patience {
                idle: either(self.idle_timeout, written.idle_timeout, USUAL_IDLE_TIMEOUT),
                client: either(self.client_timeout, written.client_timeout, USUAL_CLIENT_TIMEOUT),
                response: either(
                    self.response_timeout,
                    written.response_timeout,
                    USUAL_RESPONSE_TIMEOUT,
                ),
            },
            max_body: self.max_body.or(written.max_body).unwrap_or(USUAL_MAX_BODY),
        })
    }
}
