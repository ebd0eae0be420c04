//! The facts of an HTTP request, and whom to believe.

mod why;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Once;

use bytes::Bytes;
use dashpot_rules::{
    Claims, Descriptor, Fact, Facts, Identity, KeyHolder, RuleSet, TokenRefusal, Trust,
};
use http::header::{AUTHORIZATION, HOST};
use http::{Extensions, HeaderMap, Method, Request, Uri};
use serde_json::Value;

use crate::address::{AddressText, ClientAddress, address_by, address_text, is_trusted};
use crate::fields::{self, ContentKind};

/// Who connected: for servers that know it and are neither axum nor tonic. To be put into a
/// request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// It is said once: a server that lacks it lacks it for every request.
static NO_PEER: Once = Once::new();

/// The facts of an HTTP request.
///
/// `user`, `api_key` and `tier` are there only if there is a reason to believe them: the application
/// said so ([`Facts`] in the request's extensions), the key is in the key file, a token was verified,
/// or the peer is a trusted proxy.
pub struct HttpDescriptor<'r> {
    rules: &'r RuleSet,
    trust: &'r Trust,
    method: &'r Method,
    uri: &'r Uri,
    headers: &'r HeaderMap,
    extensions: &'r Extensions,
    /// What the application says.
    told: Option<&'r Facts>,
    /// Who connected, if the connection says so.
    peer: Option<IpAddr>,
    body: Option<&'r Bytes>,
    document: OnceCell<Option<Value>>,
    address: OnceCell<Option<ClientAddress<'r>>>,
    address_text: OnceCell<AddressText>,
    holder: OnceCell<Option<&'r KeyHolder>>,
    claims: OnceCell<Option<Result<Claims, TokenRefusal>>>,
}

impl<'r> HttpDescriptor<'r> {
    /// The facts of this request; of its body, if that was read.
    // It is long: made where it is used, and not moved there.
    #[must_use]
    #[inline(always)]
    pub fn new<B>(rules: &'r RuleSet, request: &'r Request<B>, body: Option<&'r Bytes>) -> Self {
        Self {
            rules,
            trust: &rules.identity().trust,
            method: request.method(),
            uri: original_uri(request),
            headers: request.headers(),
            extensions: request.extensions(),
            told: request.extensions().get(),
            peer: None,
            body,
            document: OnceCell::new(),
            address: OnceCell::new(),
            address_text: OnceCell::new(),
            holder: OnceCell::new(),
            claims: OnceCell::new(),
        }
    }

    /// The same, if these are believed instead of those the rules name: for a front door that has
    /// reasons of its own.
    #[must_use]
    pub const fn trusting(mut self, trust: &'r Trust) -> Self {
        self.trust = trust;
        self
    }

    /// The same, if it is known who connected.
    #[must_use]
    #[inline(always)]
    pub const fn connected_by(mut self, peer: Option<IpAddr>) -> Self {
        self.peer = peer;
        self
    }

    fn identity(&self) -> &'r Identity {
        self.rules.identity()
    }

    /// Who connected.
    fn peer(&self) -> Option<IpAddr> {
        let told = || self.extensions.get::<Peer>().map(|peer| peer.0.ip());
        let peer = self.peer.or_else(told);
        #[cfg(feature = "axum")]
        let peer = peer.or_else(|| {
            let info = self.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>()?;
            Some(info.0.ip())
        });
        #[cfg(feature = "tonic")]
        let peer = peer.or_else(|| {
            let info = self.extensions.get::<tonic::transport::server::TcpConnectInfo>()?;
            Some(info.remote_addr()?.ip())
        });
        peer
    }

    /// Whether who connected is believed about others.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        is_trusted(self.trust, self.peer())
    }

    fn client(&self) -> Option<ClientAddress<'r>> {
        *self.address.get_or_init(|| {
            let peer = self.peer();
            if peer.is_none() {
                NO_PEER.call_once(|| {
                    tracing::warn!(
                        "a rule counts by `ip`, and nobody says who connected: all callers count \
                         as one. With axum, serve by \
                         `into_make_service_with_connect_info::<SocketAddr>()`; elsewhere, put a \
                         `dashpot_http::Peer` into the request's extensions"
                    );
                });
            }
            address_by(self.trust, self.identity(), peer, self.headers)
        })
    }

    /// Whose key it is that the request came with, if it was handed out.
    fn holder(&self) -> Option<&'r KeyHolder> {
        *self.holder.get_or_init(|| {
            let identity = self.identity();
            if identity.keys.is_empty() {
                return None;
            }
            identity.keys.holder(&self.raw(identity.api_key.as_ref()?)?)
        })
    }

    /// What the token says, if there is one.
    fn claims(&self) -> Option<&Result<Claims, TokenRefusal>> {
        let verify = || {
            let tokens = self.rules.tokens()?;
            let source = &self.identity().token;
            let token = self.raw(source)?;
            let token = std::str::from_utf8(&token).ok()?;
            let is_bearer = *source == Fact::Header(AUTHORIZATION.as_str().to_owned());
            let token = if is_bearer { bearer(token)? } else { token };
            Some(tokens.claims(token))
        };
        self.claims.get_or_init(verify).as_ref()
    }

    /// What a part of the request says, whoever wrote it.
    fn raw(&self, fact: &Fact) -> Option<Cow<'r, [u8]>> {
        match fact {
            Fact::Method => Some(Cow::Borrowed(self.method.as_str().as_bytes())),
            Fact::Path => Some(Cow::Borrowed(self.uri.path().as_bytes())),
            Fact::Host => self.host(),
            Fact::Header(name) => header(self.headers, name),
            Fact::Cookie(name) => fields::cookie_field(self.headers, name).map(borrowed),
            Fact::Query(name) => fields::query_field(self.uri.query()?, name).map(bytes),
            Fact::Json(name) => {
                fields::json_field(self.document()?, name).map(|text| bytes(Cow::Owned(text)))
            }
            Fact::Form(name) if self.kind() == ContentKind::Form => {
                fields::form_field(self.body?, name).map(|text| bytes(Cow::Owned(text)))
            }
            _ => None,
        }
    }

    /// The body, if it is JSON. Read once, however many fields are asked for.
    fn document(&self) -> Option<&Value> {
        let read = || {
            let body = self.body.filter(|_| self.kind() == ContentKind::Json)?;
            serde_json::from_slice(body).ok()
        };
        self.document.get_or_init(read).as_ref()
    }

    fn kind(&self) -> ContentKind {
        fields::content_kind(self.headers)
    }

    /// The host that was asked for, without port and the dot of the root, in lower case.
    fn host(&self) -> Option<Cow<'r, [u8]>> {
        // What the request is addressed to comes first; only if that says nothing is there a header.
        let host = match self.uri.host() {
            Some(host) => host,
            None => {
                let host = self.headers.get(HOST)?.to_str().ok()?;
                let port =
                    host.rfind(':').filter(|colon| !host.get(*colon..).is_some_and(in_brackets));
                port.and_then(|colon| host.get(..colon)).unwrap_or(host)
            }
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Some(Cow::Owned(host.to_ascii_lowercase().into_bytes()));
        }
        Some(borrowed(host))
    }

    /// A fact that needs a reason to be believed, where it is told.
    fn believed(&self, source: Option<&Fact>) -> Option<Cow<'_, [u8]>> {
        match source? {
            Fact::Jwt(claim) => self.claim(claim),
            source if self.is_trusted() => self.raw(source).filter(|value| !value.is_empty()),
            _ => None,
        }
    }

    fn claim(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let claims = self.claims()?.as_ref().ok()?;
        claims.get(name).map(bytes)
    }
}

impl fmt::Debug for HttpDescriptor<'_> {
    /// What everybody may know of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, path) = (self.method, self.uri.path());
        f.debug_struct("HttpDescriptor")
            .field("method", method)
            .field("path", &path)
            .finish_non_exhaustive()
    }
}

impl Descriptor for HttpDescriptor<'_> {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn path(&self) -> &str {
        self.uri.path()
    }

    fn fact(&self, fact: &Fact) -> Option<Cow<'_, [u8]>> {
        if let Some(told) = self.told
            && let Some(value) = told.get(fact)
            // An address is counted by its network, whoever says what it is.
            && !(*fact == Fact::Ip && told.address().is_some())
        {
            return Some(borrowed(value));
        }
        let identity = self.identity();
        match fact {
            Fact::Ip => {
                let address = self.address()?;
                let write = || address_text(address, identity.ipv6_prefix);
                Some(Cow::Borrowed(self.address_text.get_or_init(write).as_bytes()))
            }
            Fact::User => {
                let user = self.believed(identity.user.as_ref());
                user.or_else(|| self.holder()?.user.as_deref().map(borrowed))
            }
            Fact::Tier => {
                let tier = self.believed(identity.tier.as_ref());
                let tier = tier.or_else(|| self.holder()?.tier.as_deref().map(borrowed));
                tier.or_else(|| identity.default_tier.as_deref().map(borrowed))
            }
            Fact::ApiKey => match self.holder() {
                Some(_) => self.raw(identity.api_key.as_ref()?),
                None => self.believed(identity.api_key.as_ref()),
            },
            Fact::Jwt(claim) => self.claim(claim),
            Fact::Json(_) | Fact::Form(_) => {
                let folded = fields::fold(&String::from_utf8_lossy(&self.raw(fact)?))?;
                Some(Cow::Owned(folded.into_bytes()))
            }
            _ => self.raw(fact),
        }
    }

    fn address(&self) -> Option<IpAddr> {
        let told = self.told.and_then(Descriptor::address);
        told.or_else(|| Some(self.client()?.address))
    }

    fn why(&self, fact: &Fact) -> String {
        self.reason(fact)
    }
}

/// The URI that was asked for. A nested router sees only its own part of it, and rules are about the
/// whole.
fn original_uri<B>(request: &Request<B>) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(original) = request.extensions().get::<axum::extract::OriginalUri>() {
        return &original.0;
    }
    request.uri()
}

fn borrowed(text: &str) -> Cow<'_, [u8]> {
    Cow::Borrowed(text.as_bytes())
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// A header; several lines are one, as everywhere.
fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, [u8]>> {
    let mut lines = headers.get_all(name).iter();
    let first = lines.next()?.as_bytes();
    let Some(second) = lines.next() else { return Some(Cow::Borrowed(first)) };
    let mut all = first.to_vec();
    for line in [second].into_iter().chain(lines) {
        all.extend_from_slice(b", ");
        all.extend_from_slice(line.as_bytes());
    }
    Some(Cow::Owned(all))
}

fn in_brackets(rest: &str) -> bool {
    rest.contains(']')
}

/// The token after `Bearer`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
