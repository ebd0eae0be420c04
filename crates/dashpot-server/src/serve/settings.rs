//! What the service is told: by flags, by the environment, by the rule file, in this order.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use dashpot::Algorithm;
use dashpot_rules::{Listen, RuleSet};

use crate::serve::common::{Common, Failure, said_or_read};
use crate::serve::envoy::{LiveLimits, Terms};
use crate::serve::resp::Resp;
use crate::serve::tls::Tls;

const USUAL_GRPC_PORT: u16 = 8081;
const USUAL_RESP_PORT: u16 = 6380;
const USUAL_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Answer whoever asks whether something may be done now.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot serve
  dashpot serve --config dashpot.toml
  dashpot serve --listen 0.0.0.0:8080 --admin-token-file /run/secrets/dashpot
  dashpot serve --store redis://127.0.0.1:6379
  dashpot serve --envoy-config config/

It counts in memory unless told otherwise, reads ./dashpot.toml if there is one, and again when it changes or on
SIGHUP. On SIGTERM it first says so at /readyz, then stops accepting, ends what is under way, and saves its
counts if there is a state file.")]
pub(crate) struct Args {
    /// Where to listen; 127.0.0.1:8080 if the file does not say. 0.0.0.0:8080 is for everybody
    #[arg(long, env = "DASHPOT_LISTEN")]
    listen: Option<SocketAddr>,

    /// Where to listen for gRPC, or `off`; 127.0.0.1:8081 if the file does not say
    #[arg(long, env = "DASHPOT_GRPC_LISTEN", value_name = "ADDRESS")]
    grpc_listen: Option<Listen>,

    /// Where to listen for Redis's protocol, or `off`; 127.0.0.1:6380 if the file does not say
    #[arg(
        long,
        visible_alias = "resp",
        env = "DASHPOT_RESP_LISTEN",
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:6380"
    )]
    resp_listen: Option<Listen>,

    /// The password that clients of Redis's say; without one, everybody is let in who reaches the address
    #[arg(
        long,
        env = "DASHPOT_RESP_PASSWORD",
        hide_env_values = true,
        value_name = "PASSWORD",
        conflicts_with = "resp_password_file"
    )]
    resp_password: Option<String>,

    /// A file with that password, which others then do not see in the list of processes
    #[arg(long, env = "DASHPOT_RESP_PASSWORD_FILE", value_name = "FILE")]
    resp_password_file: Option<PathBuf>,

    /// envoyproxy/ratelimit's YAML: a directory of *.yaml, or a file
    #[arg(long, env = "DASHPOT_ENVOY_CONFIG", value_name = "DIR")]
    envoy_config: Option<PathBuf>,

    /// How its limits are counted: fixed-window, sliding-window, sliding-log, token-bucket or leaky-bucket
    #[arg(long, env = "DASHPOT_ENVOY_ALGORITHM", default_value = "fixed-window", value_parser = rate)]
    envoy_algorithm: Algorithm,

    /// Count each descriptor for itself, and what is denied as well, as envoyproxy/ratelimit does
    #[arg(long, env = "DASHPOT_ENVOY_COUNT_DENIED")]
    envoy_count_denied: bool,

    /// The certificate and those it is signed by (PEM): then HTTPS is served
    #[arg(long, env = "DASHPOT_TLS_CERTIFICATE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// The certificate's private key (PEM)
    #[arg(long, env = "DASHPOT_TLS_KEY", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// An algorithm that needs nobody to say when something is over.
fn rate(text: &str) -> Result<Algorithm, String> {
    match text.parse() {
        Ok(Algorithm::Concurrency) => Err("Envoy does not say when a request is over".to_owned()),
        Ok(algorithm) => Ok(algorithm),
        Err(error) => Err(error.to_string()),
    }
}

impl Args {
    pub(crate) fn listen(&self, rules: &RuleSet) -> SocketAddr {
        self.listen.or(rules.serve().listen).unwrap_or(USUAL_ADDRESS)
    }

    pub(crate) fn grpc_listen(&self, rules: &RuleSet) -> Listen {
        let usual = Listen::At(SocketAddr::new(USUAL_ADDRESS.ip(), USUAL_GRPC_PORT));
        self.grpc_listen.or(rules.serve().grpc_listen).unwrap_or(usual)
    }

    pub(crate) fn resp_listen(&self, rules: &RuleSet) -> Listen {
        let usual = Listen::At(SocketAddr::new(USUAL_ADDRESS.ip(), USUAL_RESP_PORT));
        self.resp_listen.or(rules.serve().resp_listen).unwrap_or(usual)
    }

    /// What clients of Redis's are told by.
    pub(crate) fn resp(&self, rules: &RuleSet) -> Result<Resp, Failure> {
        let file = self.resp_password_file.as_ref().or(rules.serve().resp_password_file.as_ref());
        let password = said_or_read(self.resp_password.as_ref(), file)?;
        if password.as_ref().is_some_and(String::is_empty) {
            // It would be everybody's.
            let place = file.filter(|_| self.resp_password.is_none()).map(|file| file.display());
            let place = place.map_or("--resp-password".to_owned(), |file| file.to_string());
            return Err(Failure::usage(format!("{place}: a password has at least one character")));
        }
        Ok(Resp::new(password))
    }

    /// envoyproxy/ratelimit's YAML, if there is any, and how its limits are counted.
    pub(crate) fn envoy(&self, rules: &RuleSet) -> Result<LiveLimits, Failure> {
        let terms = Terms {
            algorithm: self.envoy_algorithm,
            on_store_error: rules.store().on_error,
            on_redis: !self.common.urls(rules).is_empty(),
        };
        LiveLimits::load(self.envoy_config.clone(), terms, self.envoy_count_denied)
            .map_err(|problems| Failure::usage(problems.to_string()))
    }

    pub(crate) fn tls(&self, rules: &RuleSet) -> Result<Option<Tls>, Failure> {
        let written = rules.serve();
        Tls::load_if_any(
            self.tls_certificate.as_ref().or(written.tls_certificate.as_ref()),
            self.tls_key.as_ref().or(written.tls_key.as_ref()),
        )
    }
}
