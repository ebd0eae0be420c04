//! Questions as they arrive.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use dashpot_http::{Facts, Peer};
use dashpot_rules::Fact;
use http::header::{HOST, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Uri};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use crate::serve::limits::Written;
use crate::serve::text::{Lines, Object, Text};
use crate::serve::wrong::Wrong;

/// The longest key there may be, in bytes.
const KEY_MAX: usize = 1024;

/// The most checks in one question.
const CHECKS_MAX: usize = 64;

/// Any question: about one limit, several, or a request. Read as one, because that is faster than to
/// find out which it is, and mistakes are told better.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question<'a> {
    #[serde(borrow)]
    key: Option<Text<'a>>,
    #[serde(borrow)]
    limit: Option<Text<'a>>,
    #[serde(borrow)]
    algorithm: Option<Text<'a>>,
    queue: Option<u64>,
    undelayed: Option<u64>,
    #[serde(borrow)]
    zone: Option<Text<'a>>,
    pub(crate) cost: Option<u64>,
    #[serde(borrow)]
    checks: Option<Vec<Object<OneCheck<'a>>>>,
    #[serde(borrow)]
    request: Option<Object<AskedRequest<'a>>>,
    reserve: Option<bool>,
}

/// A limit that was made up on the spot, and who asks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneCheck<'a> {
    /// Who asks.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 1024))]
    pub(crate) key: Text<'a>,
    /// The limit: COUNT/WINDOW [burst N], `N concurrent` or `unlimited`.
    #[serde(borrow)]
    pub(crate) limit: Text<'a>,
    /// token-bucket, leaky-bucket, fixed-window, sliding-log, sliding-window or concurrency.
    #[serde(borrow)]
    pub(crate) algorithm: Option<Text<'a>>,
    /// Places in a leaky bucket's queue.
    pub(crate) queue: Option<u64>,
    /// Places of the queue that proceed at once.
    pub(crate) undelayed: Option<u64>,
    /// Time zone of a fixed window's days, weeks and months.
    #[serde(borrow)]
    pub(crate) zone: Option<Text<'a>>,
    /// How many units it takes; 0 only looks.
    pub(crate) cost: Option<u64>,
}

impl OneCheck<'_> {
    pub(crate) fn written(&self) -> Written<'_> {
        Written {
            limit: &self.limit,
            algorithm: self.algorithm.as_deref(),
            queue: self.queue,
            undelayed: self.undelayed,
            zone: self.zone.as_deref(),
        }
    }

    /// The same, if its key is one.
    pub(crate) fn sound(self, place: &str) -> Result<Self, Wrong> {
        match self.key.len() {
            1..=KEY_MAX => Ok(self),
            _ => {
                Err(Wrong::field(format!("{place}key"), format!("a key has 1 to {KEY_MAX} bytes")))
            }
        }
    }
}

/// What is asked, by its form.
#[derive(Debug)]
pub(crate) enum Form<'a> {
    One(OneCheck<'a>),
    Several(Vec<OneCheck<'a>>),
    Request(AskedRequest<'a>),
}

impl<'a> Question<'a> {
    pub(crate) fn reserves(&self) -> bool {
        self.reserve.unwrap_or(false)
    }

    /// What is asked, if that is clear.
    pub(crate) fn form(self) -> Result<Form<'a>, Wrong> {
        let Self { key, limit, algorithm, queue, undelayed, zone, cost, checks, request, .. } =
            self;
        let of_limit = [
            ("key", key.is_some()),
            ("limit", limit.is_some()),
            ("algorithm", algorithm.is_some()),
            ("queue", queue.is_some()),
            ("undelayed", undelayed.is_some()),
            ("zone", zone.is_some()),
        ];
        if let Some(Object(request)) = request {
            alone(&of_limit, "request")?;
            alone(&[("checks", checks.is_some())], "request")?;
            return Ok(Form::Request(request));
        }
        if let Some(checks) = checks {
            alone(&of_limit, "checks")?;
            alone(&[("cost", cost.is_some())], "checks")?;
            if !(1..=CHECKS_MAX).contains(&checks.len()) {
                return Err(Wrong::field("checks", format!("ask for 1 to {CHECKS_MAX} at once")));
            }
            let sound = |(number, Object(check)): (usize, Object<OneCheck<'a>>)| {
                check.sound(&format!("checks[{number}]."))
            };
            return Ok(Form::Several(
                checks.into_iter().enumerate().map(sound).collect::<Result<_, _>>()?,
            ));
        }
        let missing = |field: &str, example: &str| {
            Wrong::field(
                field,
                format!(
                    "missing; ask with `key` and `limit` as in {example}, with `checks`, or with `request`"
                ),
            )
        };
        let example = r#"{"key":"alice","limit":"10/s"}"#;
        let key = key.ok_or_else(|| missing("key", example))?;
        let limit = limit.ok_or_else(|| missing("limit", example))?;
        let check = OneCheck { key, limit, algorithm, queue, undelayed, zone, cost };
        Ok(Form::One(check.sound("")?))
    }
}

/// Fails if one of these is there, too.
pub(crate) fn alone(others: &[(&str, bool)], with: &str) -> Result<(), Wrong> {
    match others.iter().find(|(_, is_there)| *is_there) {
        Some((field, _)) => Err(Wrong::field(*field, format!("does not go with `{with}`"))),
        None => Ok(()),
    }
}

/// A request that somebody else got.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedRequest<'a> {
    /// Its method; GET if left out.
    #[serde(borrow)]
    pub(crate) method: Option<Text<'a>>,
    /// Its path, and query if there is one.
    #[serde(borrow)]
    #[schemars(regex(pattern = r"^/[!-~]*$"))]
    pub(crate) path: Text<'a>,
    /// The host it is for.
    #[serde(borrow)]
    pub(crate) host: Option<Text<'a>>,
    /// Who connected.
    pub(crate) ip: Option<IpAddr>,
    /// Its headers; several lines of one name are a list.
    #[serde(borrow, default)]
    pub(crate) headers: BTreeMap<Text<'a>, Lines<'a>>,
    /// Its body.
    #[serde(borrow)]
    pub(crate) body: Option<Text<'a>>,
    /// The user, if you know.
    #[serde(borrow)]
    pub(crate) user: Option<Text<'a>>,
    /// The API key, if you have checked it.
    #[serde(borrow)]
    pub(crate) api_key: Option<Text<'a>>,
    /// The tier, if you know.
    #[serde(borrow)]
    pub(crate) tier: Option<Text<'a>>,
    /// Facts of your own, which rules call `fact:NAME`.
    #[serde(borrow, default)]
    pub(crate) facts: BTreeMap<Text<'a>, Text<'a>>,
}

impl AskedRequest<'_> {
    /// The request it is about, and its body.
    pub(crate) fn build(&self) -> Result<(Request<()>, Option<Bytes>), Wrong> {
        let wrong = |field: &str, error: &dyn std::fmt::Display| {
            Wrong::field(format!("request.{field}"), error.to_string())
        };
        let mut request = Request::new(());
        if let Some(method) = &self.method {
            *request.method_mut() =
                method.parse::<Method>().map_err(|error| wrong("method", &error))?;
        }
        if !self.path.starts_with('/') {
            return Err(wrong("path", &"a path begins with `/`"));
        }
        *request.uri_mut() = self.path.parse::<Uri>().map_err(|error| wrong("path", &error))?;
        for (name, lines) in &self.headers {
            let field =
                |error: &dyn std::fmt::Display| wrong(&format!("headers.{}", &**name), error);
            let name: HeaderName = name.parse().map_err(|error| field(&error))?;
            for line in &lines.0 {
                let value = HeaderValue::from_str(line).map_err(|error| field(&error))?;
                request.headers_mut().try_append(&name, value).map_err(|error| field(&error))?;
            }
        }
        if let Some(host) = &self.host {
            let host: Authority = host.parse().map_err(|error| wrong("host", &error))?;
            let host =
                HeaderValue::from_str(host.as_str()).map_err(|error| wrong("host", &error))?;
            request.headers_mut().insert(HOST, host);
        }
        if let Some(ip) = self.ip {
            request.extensions_mut().insert(Peer(SocketAddr::new(ip, 0)));
        }
        if let Some(facts) = self.facts() {
            request.extensions_mut().insert(facts);
        }
        Ok((request, self.body.as_ref().map(|body| Bytes::copy_from_slice(body.as_bytes()))))
    }

    /// What whoever asks knows himself.
    fn facts(&self) -> Option<Facts> {
        let mut facts = Facts::new();
        let told =
            [(Fact::User, &self.user), (Fact::ApiKey, &self.api_key), (Fact::Tier, &self.tier)];
        for (fact, value) in told {
            // An empty one tells nobody apart.
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                facts = facts.with(fact, value);
            }
        }
        for (name, value) in &self.facts {
            facts = facts.set(&**name, &**value);
        }
        (facts != Facts::new()).then_some(facts)
    }
}

/// The forms of a [`Question`], one by one.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Forms<'a> {
    One(OneForm<'a>),
    Several(SeveralForm<'a>),
    ByRules(RequestForm<'a>),
}

/// About one limit.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct OneForm<'a> {
    #[serde(flatten)]
    check: OneCheck<'a>,
    /// Whether to get a reservation, to be settled.
    reserve: Option<bool>,
}

/// About several limits, all or nothing.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct SeveralForm<'a> {
    #[schemars(length(min = 1, max = 64))]
    checks: Vec<OneCheck<'a>>,
    /// Whether to get a reservation, to be settled.
    reserve: Option<bool>,
}

/// About a request, by the rules.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct RequestForm<'a> {
    request: AskedRequest<'a>,
    /// What the rules' costs are multiplied by; 0 only looks.
    cost: Option<u64>,
    /// Whether to get a reservation, to be settled.
    reserve: Option<bool>,
}

impl JsonSchema for Question<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Question".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Forms::json_schema(generator)
    }
}
