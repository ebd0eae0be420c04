//! `GET /openapi.json`: what there is, for machines. Made of the table of routes and the types they
//! read and write.

use std::sync::LazyLock;

use bytes::Bytes;
use http::Method;
use http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json as value};

use super::{ROUTES, Route, text};
use crate::serve::metrics::Door;
use crate::serve::wrong::Problem;

pub(crate) const ROUTE: Route = Route {
    method: Method::GET,
    path: "/openapi.json",
    door: Door::Other,
    handle: |_, _| Box::pin(async { text(StatusCode::OK, "application/json", DOCUMENT.clone()) }),
    documented: || Documented::new("This, for machines").gives_any(200, "The document"),
};

/// It is always the same.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

/// What one way in takes and gives.
pub(crate) struct Documented {
    pub(crate) summary: &'static str,
    takes: Option<Content>,
    query: Option<(&'static str, &'static str)>,
    gives: Vec<(u16, &'static str, Content)>,
    admin: bool,
}

/// What a body is.
struct Content {
    kind: &'static str,
    schema: fn(&mut SchemaGenerator) -> Value,
}

impl Content {
    fn json<T: JsonSchema>(kind: &'static str) -> Self {
        Self { kind, schema: |generator| generator.subschema_for::<T>().to_value() }
    }

    fn text(kind: &'static str) -> Self {
        Self { kind, schema: |_| value!({ "type": "string" }) }
    }

    fn document(&self, generator: &mut SchemaGenerator) -> Value {
        value!({ self.kind: { "schema": (self.schema)(generator) } })
    }
}

const PROBLEM: &str = "application/problem+json";

impl Documented {
    pub(crate) const fn new(summary: &'static str) -> Self {
        Self { summary, takes: None, query: None, gives: Vec::new(), admin: false }
    }

    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.takes = Some(Content::json::<T>("application/json"));
        self
    }

    pub(crate) fn takes_text(mut self, kind: &'static str) -> Self {
        self.takes = Some(Content::text(kind));
        self
    }

    pub(crate) const fn query(mut self, name: &'static str, about: &'static str) -> Self {
        self.query = Some((name, about));
        self
    }

    pub(crate) fn gives<T: JsonSchema>(mut self, status: u16, when: &'static str) -> Self {
        self.gives.push((status, when, Content::json::<T>("application/json")));
        self
    }

    pub(crate) fn gives_text(
        mut self,
        status: u16,
        when: &'static str,
        kind: &'static str,
    ) -> Self {
        self.gives.push((status, when, Content::text(kind)));
        self
    }

    pub(crate) fn gives_any(mut self, status: u16, when: &'static str) -> Self {
        let schema = |_: &mut SchemaGenerator| value!({ "type": "object" });
        self.gives.push((status, when, Content { kind: "application/json", schema }));
        self
    }

    pub(crate) fn wrong(mut self, status: u16, when: &'static str) -> Self {
        self.gives.push((status, when, Content::json::<Problem<'_>>(PROBLEM)));
        self
    }

    /// What several have in common.
    pub(crate) fn with(self, more: fn(Self) -> Self) -> Self {
        more(self)
    }

    /// For administrators.
    pub(crate) fn admin(mut self) -> Self {
        self.admin = true;
        self.wrong(401, "Without the admin token")
            .wrong(403, "Without a token, not from this machine")
    }

    fn operation(&self, generator: &mut SchemaGenerator) -> Value {
        let mut operation = Map::new();
        operation.insert("summary".into(), self.summary.into());
        if let Some(takes) = &self.takes {
            let body = value!({ "required": true, "content": takes.document(generator) });
            operation.insert("requestBody".into(), body);
        }
        if let Some((name, about)) = self.query {
            let parameter = value!({
                "name": name, "in": "query", "required": false, "description": about,
                "schema": { "type": "integer", "minimum": 1, "maximum": 1000 },
            });
            operation.insert("parameters".into(), value!([parameter]));
        }
        let mut responses = Map::new();
        for (status, when, content) in &self.gives {
            let response = value!({ "description": when, "content": content.document(generator) });
            responses.insert(status.to_string(), response);
        }
        operation.insert("responses".into(), responses.into());
        if self.admin {
            operation.insert("security".into(), value!([{ "admin": [] }, {}]));
        }
        operation.into()
    }
}

/// What can be wrong with every body.
pub(crate) fn limited() -> fn(Documented) -> Documented {
    |documented| {
        documented
            .wrong(400, "The question is wrong; `field` names the place")
            .wrong(413, "The body is longer than 64 KiB")
            .wrong(415, "The body is compressed")
    }
}

fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in ROUTES {
        let operation = (route.documented)().operation(&mut generator);
        let path = paths.entry(route.path).or_insert_with(|| value!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    paths.insert(super::forward_auth::PATH.into(), super::forward_auth::document());
    value!({
        "openapi": "3.1.0",
        "info": {
            "title": "dashpot",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Ask whether something may be done now.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "admin": { "type": "http", "scheme": "bearer" } },
        },
    })
}
