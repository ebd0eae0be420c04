//! `GET /`: the dashboard, for browsers; a list of what there is, for everybody else.

use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, StatusCode};

use super::openapi::Documented;
use super::{Answered, Call, Route, text};
use crate::serve::metrics::Door;

const PAGE: &str = include_str!("../dashboard/index.html");
const SCRIPT: &str = include_str!("../dashboard/app.js");
const STYLE: &str = include_str!("../dashboard/style.css");

const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Nothing from elsewhere, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) const INDEX: Route = Route {
    method: Method::GET,
    path: "/",
    door: Door::Other,
    handle: |_, call| Box::pin(async { index(call) }),
    documented: || {
        Documented::new("The dashboard, for browsers; for others what there is").gives_text(
            200,
            "A page, or a list",
            PLAIN,
        )
    },
};

pub(crate) const APP: Route = Route {
    method: Method::GET,
    path: "/dashboard/app.js",
    door: Door::Other,
    handle: |_, _| Box::pin(async { part(JAVASCRIPT, SCRIPT) }),
    documented: || {
        Documented::new("A part of the dashboard").gives_text(200, "A script", JAVASCRIPT)
    },
};

pub(crate) const LOOK: Route = Route {
    method: Method::GET,
    path: "/dashboard/style.css",
    door: Door::Other,
    handle: |_, _| Box::pin(async { part(CSS, STYLE) }),
    documented: || Documented::new("A part of the dashboard").gives_text(200, "A style", CSS),
};

fn index(call: &Call) -> Answered {
    // Browsers ask for it by name; those who take anything want to read it in a terminal.
    let is_browser = { call.head.headers.get_all(ACCEPT).iter() }
        .filter_map(|accept| accept.to_str().ok())
        .any(|accept| accept.to_ascii_lowercase().contains("text/html"));
    let mut response = match is_browser {
        true => part(HTML, PAGE)?,
        false => text(StatusCode::OK, PLAIN, list())?,
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// A part of the dashboard, which changes with the program.
fn part(kind: &'static str, body: &'static str) -> Answered {
    let mut response = text(StatusCode::OK, kind, body)?;
    let said: [(HeaderName, &str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    for (name, value) in said {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

fn list() -> String {
    let mut lines = "dashpot\n\n".to_owned();
    for route in super::ROUTES {
        let about = (route.documented)().summary;
        lines.push_str(&format!("{:<4} {:<20} {about}\n", route.method.as_str(), route.path));
    }
    lines.push_str("any  /v1/forward-auth     A gateway asks about a request\n");
    lines
}
