//! Fields on their way into a response.

use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, HeaderMap, HeaderName, HeaderValue};

/// Where fields are written.
pub(crate) trait Sink {
    /// In the place of what others said.
    fn set(&mut self, name: HeaderName, value: HeaderValue);
    /// In addition to it.
    fn append(&mut self, name: HeaderName, value: HeaderValue);
}

impl Sink for HeaderMap {
    fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.insert(name, value);
    }

    fn append(&mut self, name: HeaderName, value: HeaderValue) {
        Self::append(self, name, value);
    }
}

/// Fields for a response that is not there yet.
#[derive(Default)]
pub(crate) struct HeaderLines(Vec<(HeaderName, HeaderValue)>);

impl Sink for HeaderLines {
    fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.0.push((name, value));
    }

    fn append(&mut self, name: HeaderName, value: HeaderValue) {
        self.0.push((name, value));
    }
}

impl HeaderLines {
    pub(crate) fn into_inner(self) -> Vec<(HeaderName, HeaderValue)> {
        self.0
    }

    /// Writes them, unless somebody nearer to the work has told of limits: an inner layer, or the
    /// server behind a proxy. Its limit is the one that was reached, if one was.
    pub(crate) fn write(self, out: &mut HeaderMap) {
        let own = self.0.iter().filter(|(name, _)| *name != ACCESS_CONTROL_EXPOSE_HEADERS);
        // One of them would not go with what is there: all or none. Names are compared and not looked up, since a
        // response has few fields.
        let is_told = { own }.any(|(name, _)| out.keys().any(|told| told == name));
        for (name, value) in self.0 {
            if name == ACCESS_CONTROL_EXPOSE_HEADERS {
                out.append(name, value);
            } else if !is_told {
                out.insert(name, value);
            }
        }
    }
}
