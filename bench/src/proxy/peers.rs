//! Gateways, and how each is told the same.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use dashpot_testkit::process::start;

use crate::servers::{Running, at, program, wait_for};

/// What each key may do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Whatever it likes, but it is counted.
    Generous,
    /// Nothing after the first.
    Strict,
    /// 100 a second.
    PerSecond,
    /// 50 a second, and a burst of as many.
    Fifty,
    /// Nobody counts.
    None,
}

/// A gateway: run in a directory, on a port, for a backend on another.
pub(crate) struct Gateway {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Path, u16, u16, Limit) -> Option<Running>,
}

pub(crate) const SUBJECTS: [Gateway; 4] = [
    Gateway { name: "nginx", run: nginx },
    Gateway { name: "dashpot", run: dashpot },
    Gateway { name: "HAProxy", run: haproxy },
    Gateway { name: "Envoy", run: envoy },
];

/// Debian has some commands where only root looks for them.
fn find(name: &str) -> Option<PathBuf> {
    let here = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&here).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(name)).find(|path| path.exists())
}

fn run(program: &Path, arguments: &[&str], port: u16) -> Option<Running> {
    let child = start(program.to_str()?, |command| {
        command.args(arguments).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
    });
    wait_for(port);
    Some(Running(child))
}

fn written(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).expect("a configuration");
    path.display().to_string()
}

const NGINX: &str = "worker_processes 1; daemon off; pid {dir}/{name}.pid; error_log {dir}/{name}.err crit;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 100000000; client_body_temp_path {dir}/{name}-b; proxy_temp_path {dir}/{name}-p;
  fastcgi_temp_path {dir}/{name}-f; uwsgi_temp_path {dir}/{name}-u; scgi_temp_path {dir}/{name}-s;
";

fn nginx_head(directory: &Path, name: &str) -> String {
    NGINX.replace("{dir}", &directory.display().to_string()).replace("{name}", name)
}

/// What is behind all of them.
pub(crate) fn backend(directory: &Path, port: u16) -> Running {
    let head = nginx_head(directory, "backend");
    let text = format!(
        "{head} server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 \"hello\\n\"; }} }} }}"
    );
    let file = written(directory, "backend.conf", &text);
    let nginx = find("nginx").expect("nginx, which is a package of Debian's");
    run(&nginx, &["-c", &file], port).expect("a backend")
}

fn nginx(directory: &Path, port: u16, backend: u16, limit: Limit) -> Option<Running> {
    let (zone, line) = match limit {
        Limit::Generous => ("rate=1000000r/s", "limit_req zone=a burst=100000 nodelay;"),
        Limit::Strict => ("rate=1r/m", "limit_req zone=a;"),
        Limit::PerSecond => ("rate=100r/s", "limit_req zone=a burst=100 nodelay;"),
        // One is served, and so many may come at once besides.
        Limit::Fifty => ("rate=50r/s", "limit_req zone=a burst=49 nodelay;"),
        Limit::None => ("rate=1r/s", ""),
    };
    let head = nginx_head(directory, "gateway");
    let text = format!(
        "{head} limit_req_zone $http_x_key zone=a:50m {zone}; limit_req_status 429;
  upstream b {{ server 127.0.0.1:{backend}; keepalive 128; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{
    proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Real-IP $remote_addr; {line} }} }} }}"
    );
    let file = written(directory, "gateway.conf", &text);
    run(&find("nginx")?, &["-c", &file], port)
}

fn dashpot(directory: &Path, port: u16, backend: u16, limit: Limit) -> Option<Running> {
    let limits = match limit {
        Limit::Generous => "1000000/s burst 1000000",
        Limit::Strict => "1/min burst 1",
        Limit::PerSecond => "100/s burst 101",
        Limit::Fifty => "50/s burst 50",
        Limit::None => "",
    };
    let mut text = format!(
        "[proxy]\nupstream = \"http://127.0.0.1:{backend}\"\nlisten = \"{}\"\nadmin_listen = \"off\"\n",
        at(port)
    );
    if limit != Limit::None {
        text.push_str(&format!(
            "[[rule]]\nname = \"key\"\nby = [\"header:x-key\"]\nlimits = [\"{limits}\"]\n"
        ));
    }
    let file = written(directory, "dashpot.toml", &text);
    run(&program(), &["proxy", "--log-level", "off", "--threads", "1", "--config", &file], port)
}

fn haproxy(directory: &Path, port: u16, backend: u16, limit: Limit) -> Option<Running> {
    let (window, most) = match limit {
        Limit::Generous => ("1s", "1000000000"),
        Limit::Strict => ("60s", "1"),
        Limit::PerSecond => ("1s", "100"),
        Limit::Fifty => ("1s", "50"),
        Limit::None => ("1s", ""),
    };
    let rules = match limit {
        Limit::None => String::new(),
        _ => format!(
            "  stick-table type string len 32 size 1m expire 60s store http_req_rate({window})
  http-request track-sc0 req.hdr(x-key)
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {most} }}\n"
        ),
    };
    let text = format!(
        "global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
frontend f
  bind 127.0.0.1:{port}
{rules}  default_backend b
backend b
  http-reuse always
  server s 127.0.0.1:{backend}\n"
    );
    let file = written(directory, "haproxy.cfg", &text);
    let Some(haproxy) = find("haproxy") else {
        eprintln!("haproxy is not there: it is a package of Debian's");
        return None;
    };
    run(&haproxy, &["-db", "-f", &file], port)
}

fn envoy(directory: &Path, port: u16, backend: u16, limit: Limit) -> Option<Running> {
    let tokens = match limit {
        Limit::Generous => "max_tokens: 1000000000, tokens_per_fill: 1000000000, fill_interval: 1s",
        Limit::Strict => "max_tokens: 1, tokens_per_fill: 1, fill_interval: 3600s",
        Limit::Fifty => "max_tokens: 50, tokens_per_fill: 50, fill_interval: 1s",
        // One bucket for all is another question.
        Limit::PerSecond => return None,
        Limit::None => "",
    };
    let filter = match limit {
        Limit::None => String::new(),
        _ => format!(
            "          - name: envoy.filters.http.local_ratelimit
            typed_config:
              '@type': type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: l
              token_bucket: {{ {tokens} }}
              filter_enabled: {{ default_value: {{ numerator: 100, denominator: HUNDRED }} }}
              filter_enforced: {{ default_value: {{ numerator: 100, denominator: HUNDRED }} }}\n"
        ),
    };
    let text = format!(
        "static_resources:
  listeners:
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: h
          generate_request_id: false
          http_filters:
{filter}          - name: envoy.filters.http.router
            typed_config: {{ '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}
          route_config:
            virtual_hosts:
            - name: v
              domains: ['*']
              routes: [{{ match: {{ prefix: / }}, route: {{ cluster: b }} }}]
  clusters:
  - name: b
    load_assignment:
      cluster_name: b
      endpoints: [{{ lb_endpoints: [{{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {backend} }} }} }} }}] }}]\n"
    );
    let file = written(directory, "envoy.yaml", &text);
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/gateways/bin/envoy");
    if !installed.exists() {
        eprintln!("Envoy is not there: scripts/gateways installs it");
        return None;
    }
    run(
        &installed,
        &["-c", &file, "--concurrency", "1", "-l", "off", "--disable-hot-restart"],
        port,
    )
}
