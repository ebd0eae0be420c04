//! Which calls share a line.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use dashpot::{Key, KeyBuf};
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{Extensions, HeaderMap, Method, Uri};

use crate::Pace;

/// A call that is about to be made, as far as [lanes](Lane) are about it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'c> {
    /// The method.
    pub method: &'c Method,
    /// Where to.
    pub uri: &'c Uri,
    /// Its headers.
    pub headers: &'c HeaderMap,
    /// What was said about it: the request's extensions.
    pub extensions: &'c Extensions,
}

impl<'c> Call<'c> {
    /// A call with these parts.
    #[must_use]
    pub const fn new(
        method: &'c Method,
        uri: &'c Uri,
        headers: &'c HeaderMap,
        extensions: &'c Extensions,
    ) -> Self {
        Self { method, uri, headers, extensions }
    }

    pub(crate) const fn of(head: &'c Parts) -> Self {
        Self::new(&head.method, &head.uri, &head.headers, &head.extensions)
    }

    /// The host it goes to, in lower case: of the URI, or of the header `Host` if the URI has none.
    #[must_use]
    pub fn host(&self) -> String {
        self.server().as_ref().map(|server| server.host().to_ascii_lowercase()).unwrap_or_default()
    }

    /// The lane of all calls to this server: scheme, host and port.
    #[must_use]
    pub fn lane(&self) -> Lane {
        let scheme = self.uri.scheme_str().unwrap_or("http");
        let usual = if scheme == "https" { 443 } else { 80 };
        let port = self.server().and_then(|server| server.port_u16()).filter(|port| *port != usual);
        let host = self.host();
        match port {
            Some(port) => Lane::named(format!("{scheme}://{host}:{port}")),
            None => Lane::named(format!("{scheme}://{host}")),
        }
    }

    fn server(&self) -> Option<Cow<'_, Authority>> {
        let of_uri = self.uri.authority().map(Cow::Borrowed);
        of_uri.or_else(|| {
            let host = self.headers.get(HOST)?.as_bytes();
            Authority::try_from(host).ok().map(Cow::Owned)
        })
    }
}

/// Calls that share a line: they go in order, wait together when the server says so, and share a [`Pace`].
///
/// A server counts by something: an address, an account, a route. Calls that it counts together belong into one lane, and
/// calls that it counts apart into several. Left alone, all calls to a server are in one.
///
/// ```
/// use dashpot_client::{Manners, Pace};
///
/// let search = Pace::at_most("30/min burst 5".parse()?);
/// let manners = Manners::builder()
///     .lanes(move |call| {
///         // Each account by itself, and the search, which is counted apart.
///         let lane = call.lane().and_header(call, "authorization");
///         match call.uri.path().starts_with("/search/") {
///             true => lane.and("search").pace(&search),
///             false => lane,
///         }
///     })
///     .build();
/// # Ok::<(), dashpot::ParseQuotaError>(())
/// ```
#[derive(Clone)]
pub struct Lane {
    /// What it is known by: may hold secrets, and is never shown.
    key: KeyBuf,
    name: Arc<str>,
    pace: Option<Pace>,
}

impl Lane {
    /// A lane by a name, which is shown in logs.
    #[must_use]
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        let (name, mut key) = (name.into(), KeyBuf::new());
        key.push(&*name);
        Self { key, name, pace: None }
    }

    /// One of several lanes of that name, told apart by this. It is not shown anywhere.
    #[must_use]
    pub fn and(mut self, value: impl AsRef<[u8]>) -> Self {
        self.key.push(value);
        self
    }

    /// The same, by a header of the call. Those without it are together.
    #[must_use]
    pub fn and_header(self, call: &Call<'_>, name: &str) -> Self {
        let value = call.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        self.and(value)
    }

    /// Goes at this pace, and not at that of all [others](crate::MannersBuilder::pace). It is looked at when the lane is
    /// first used. Make it once, and not for each call: two are counted apart.
    #[must_use]
    pub fn pace(mut self, pace: &Pace) -> Self {
        self.pace = Some(pace.clone());
        self
    }

    pub(crate) fn key(&self) -> Key<'_> {
        self.key.as_key()
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn take_pace(&mut self) -> Option<Pace> {
        self.pace.take()
    }
}

impl fmt::Debug for Lane {
    /// Without what may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("name", &self.name)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}
