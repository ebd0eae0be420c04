//! Paths.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::config::Wrong;

/// The most segments of a pattern: the index is as deep.
const SEGMENTS_MAX: usize = 64;

/// A path with places left open: `/users/{id}/posts`, `/api/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    pub(crate) segments: Vec<Segment>,
    /// Whether everything below is covered, too; and the path itself.
    pub(crate) below: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Is(String),
    /// Anything, by this name if it has one.
    Any(Option<String>),
}

impl PathPattern {
    pub(crate) fn is_everything(&self) -> bool {
        self.segments.is_empty() && self.below
    }

    /// Whether it is one path.
    pub(crate) fn is_exact(&self) -> bool {
        !self.below && self.segments.iter().all(|segment| matches!(segment, Segment::Is(_)))
    }

    /// What stands in the place of this name, if the path matches. The path is a normal one.
    pub(crate) fn param<'p>(&self, name: &str, path: &'p str) -> Option<&'p str> {
        let mut parts = segments(path);
        let mut found = None;
        for segment in &self.segments {
            let part = parts.next()?;
            match segment {
                Segment::Is(text) if text != part => return None,
                Segment::Any(Some(known)) if known == name => found = Some(part),
                _ => {}
            }
        }
        if !self.below && parts.next().is_some() {
            return None;
        }
        found
    }

    pub(crate) fn params(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Any(name) => name.as_deref(),
            Segment::Is(_) => None,
        })
    }
}

/// The segments of a normal path. That of the root has none.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').skip(1).filter(|part| !part.is_empty())
}

impl FromStr for PathPattern {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |message: &str| Err(Wrong(message.to_owned()));
        if !text.starts_with('/') {
            return wrong("a path begins with `/`");
        }
        if text.contains(['?', '#']) {
            return wrong("a path is matched without its query; leave out what begins with `?`");
        }
        let path = normal_but(text, |byte| is_plain(byte) && byte != b'*');
        let mut parts: Vec<_> = segments(&path).collect();
        if parts.len() > SEGMENTS_MAX {
            return wrong("a path has at most 64 segments");
        }
        let below = parts.last() == Some(&"*");
        if below {
            parts.pop();
        }
        let mut segments = Vec::new();
        for part in parts {
            let name = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            segments.push(match (part, name) {
                ("*", _) => Segment::Any(None),
                (_, Some(name)) if is_name(name) => Segment::Any(Some(name.to_owned())),
                (_, Some(_)) => return wrong("`{}` holds a name of letters, digits and `_`"),
                _ if part.contains(['*', '{', '}']) => {
                    return wrong(
                        "`*` and `{name}` stand for a whole segment: `/files/*`, not `/files/a*`",
                    );
                }
                // Only what was escaped is left of stars.
                _ => Segment::Is(part.replace("%2A", "*")),
            });
        }
        Ok(Self { segments, below })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Is(text) => write!(f, "/{}", text.replace('*', "%2A"))?,
                Segment::Any(None) => f.write_str("/*")?,
                Segment::Any(Some(name)) => write!(f, "/{{{name}}}")?,
            }
        }
        match (self.below, self.segments.is_empty()) {
            (true, _) => f.write_str("/*"),
            (false, true) => f.write_str("/"),
            (false, false) => Ok(()),
        }
    }
}

/// The one way to write a path, so that no other way of writing it is a way around a rule: letters
/// that were escaped without need, doubled and trailing slashes, `.` and `..`.
pub(crate) fn normal(path: &str) -> Cow<'_, str> {
    normal_but(path, is_plain)
}

/// The same with `.` and `..` left where they are, if there are any: there are servers that take them
/// for names, and their files are where they say.
pub(crate) fn unresolved(path: &str) -> Option<String> {
    let plain = unescape(path, is_plain);
    let segments = || plain.split('/').filter(|segment| !segment.is_empty());
    let has_dots = segments().any(|segment| matches!(segment, "." | ".."));
    has_dots.then(|| format!("/{}", segments().collect::<Vec<_>>().join("/")))
}

/// [`normal`], with only those escapes undone that `needs_none`.
fn normal_but(path: &str, needs_none: fn(u8) -> bool) -> Cow<'_, str> {
    if is_normal(path) {
        return Cow::Borrowed(path);
    }
    let plain = unescape(path, needs_none);
    let mut kept: Vec<&str> = Vec::new();
    for segment in plain.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    Cow::Owned(format!("/{}", kept.join("/")))
}

fn is_normal(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_an_end = path.len() == 1 || bytes.last() != Some(&b'/');
    (has_an_end || !path.starts_with('/'))
        && bytes.iter().enumerate().all(|(index, byte)| match byte {
            // What begins with a dot might be `.` or `..`; it costs little to look.
            b'/' => !matches!(bytes.get(index + 1), Some(b'/' | b'.')),
            b'%' => false,
            // Written as it is, it is escaped on the wire.
            b'!'..=b'~' => true,
            _ => false,
        })
}

/// Writes a part without escapes as it goes over the wire.
fn escape(part: &str, plain: &mut String) {
    for byte in part.bytes() {
        if byte.is_ascii_graphic() {
            plain.push(char::from(byte));
        } else {
            plain.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// Whether a byte means the same with and without an escape: what a segment may have in it by RFC
/// 3986, but for `;`, which begins parameters to some servers.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte)
}

/// Puts characters that need no escape in the place of their escapes; others are written in capitals.
fn unescape(path: &str, needs_none: fn(u8) -> bool) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        escape(before, &mut plain);
        let code = after.get(..2).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok().map(|byte| (code, byte))) {
            Some((code, byte)) => {
                if needs_none(byte) {
                    plain.push(char::from(byte));
                } else {
                    plain.push('%');
                    plain.push_str(&code.to_ascii_uppercase());
                }
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                plain.push('%');
                rest = after;
            }
        }
    }
    escape(rest, &mut plain);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_way_to_write_a_path() {
        for path in [
            "/login",
            "//login",
            "/login/",
            "/./login",
            "/a/../login",
            "/%6Cogin",
            "/%6cogin//",
            "/../login",
        ] {
            assert_eq!(normal(path), "/login", "{path}");
        }
        assert_eq!(normal("/"), "/");
        assert_eq!(normal("//"), "/");
        assert_eq!(normal("/a%2fb"), "/a%2Fb");
        assert_eq!(normal("/a%2Fb/"), "/a%2Fb");
        assert_eq!(normal("/100%"), "/100%");
        assert_eq!(normal("/%zz/%4"), "/%zz/%4");
        assert_eq!(normal("*"), "*");
        assert_eq!(normal("/.well-known/x"), "/.well-known/x");
        assert_eq!(normal("/%252e"), "/%252e");
        assert_eq!(normal("/%40me/a%3ab%2Bc%2A"), "/@me/a:b+c*");
        // These are not what they stand for.
        assert_eq!(normal("/%3b%3F%23%5c%25%2f%20"), "/%3B%3F%23%5C%25%2F%20");
    }

    #[test]
    fn dots_may_also_be_names() {
        assert_eq!(unresolved("/api/../x"), Some("/api/../x".into()));
        assert_eq!(unresolved("/api//%2e%2e/x/"), Some("/api/../x".into()));
        assert_eq!(unresolved("/./x"), Some("/./x".into()));
        for path in ["/", "/x", "//x/", "/.well-known", "/%61", "/a..b"] {
            assert_eq!(unresolved(path), None, "{path}");
        }
    }

    #[test]
    fn patterns_read_as_they_are_written() {
        for text in ["/", "/*", "/login", "/users/{id}", "/users/*/posts", "/api/*", "/a/{b}/*"] {
            let pattern = text.parse::<PathPattern>().ok().unwrap();
            assert_eq!(pattern.to_string(), text);
        }
        for (text, star) in [("/a/%2A", "/a/*"), ("/a/%2ab", "/a/*b")] {
            let pattern = text.parse::<PathPattern>().ok().unwrap();
            assert!(pattern.is_exact(), "{text}");
            assert_eq!(pattern.segments.last(), Some(&Segment::Is(star[3..].to_owned())));
            assert_eq!(pattern.to_string(), text.replace("%2a", "%2A"));
        }
        for text in ["", "login", "/a*", "/{}", "/{a-b}", "/x{id}", "/a?b=c", "/**"] {
            assert!(text.parse::<PathPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn parameters_are_what_stands_in_their_place() {
        let pattern = "/users/{id}/*".parse::<PathPattern>().ok().unwrap();
        assert_eq!(pattern.param("id", "/users/7/posts/1"), Some("7"));
        assert_eq!(pattern.param("id", "/users/7"), Some("7"));
        assert_eq!(pattern.param("id", "/users"), None);
        assert_eq!(pattern.param("name", "/users/7"), None);
        assert_eq!(pattern.param("id", "/groups/7"), None);
    }
}
