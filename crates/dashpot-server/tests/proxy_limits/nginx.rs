//! nginx, as Debian has it, in front of a backend.

use dashpot_testkit::Nginx;

use crate::backend::Backend;

/// With these lines in `http`, and these in `server`, where `PASS` hands on to the backend.
pub(crate) fn nginx(backend: &Backend, http: &str, server: &str) -> Nginx {
    let pass = format!("proxy_pass {};", backend.url());
    Nginx::start(&format!("access_log off;\n{http}"), &server.replace("PASS", &pass))
}
