//! `Forwarded`, as RFC 7239 has it: `for="[2001:db8::17]:4711";proto=https, for=203.0.113.7`.

use std::borrow::Cow;
use std::net::IpAddr;

use super::entry::parse_entry;

/// Splits off the last element of a line: what is before its comma, if there is one, and itself.
///
/// It is read from the right, because that is the end that trusted proxies wrote. An attacker's
/// quotation mark further left cannot swallow what they added.
pub(super) fn last_element(line: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let mut end = line.len();
    while let Some((rest, byte)) = line.get(..end).and_then(|line| line.split_last().map(swap)) {
        end = match byte {
            b',' => return (Some(rest), line.get(end..).unwrap_or_default()),
            b'"' => opening_quote(rest).unwrap_or(0),
            _ => rest.len(),
        };
    }
    (None, line)
}

fn swap<'a>((byte, rest): (&'a u8, &'a [u8])) -> (&'a [u8], u8) {
    (rest, *byte)
}

/// Where the quoted string begins that ends here: at the first quotation mark to the left that is
/// not escaped.
fn opening_quote(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    loop {
        let quote = text.get(..end)?.iter().rposition(|byte| *byte == b'"')?;
        let before = text.get(..quote)?;
        let kept = before.iter().rposition(|byte| *byte != b'\\').map_or(0, |last| last + 1);
        if (quote - kept).is_multiple_of(2) {
            return Some(quote);
        }
        end = kept;
    }
}

/// The address that an element says the request is for. `None` for `unknown`, hidden names, and
/// elements that say nothing of it or are broken.
pub(super) fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    let mut said = None;
    let mut rest = element;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'=' | b';')).unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end)?;
        let name = name.trim_ascii();
        let Some(value) = after.strip_prefix(b"=") else {
            // Nothing between two semicolons is allowed, a name without a value is not.
            if !name.is_empty() {
                return None;
            }
            rest = after.strip_prefix(b";").unwrap_or_default();
            continue;
        };
        let (value, after) = split_value(value)?;
        if name.eq_ignore_ascii_case(b"for") && said.replace(value).is_some() {
            return None; // Said twice: whom to believe?
        }
        rest = after;
    }
    parse_entry(&said?)
}

/// A value, plain or quoted, and what follows its semicolon.
fn split_value(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let text = text.trim_ascii_start();
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
        let (value, after) = text.split_at_checked(end)?;
        let is_plain = !value.contains(&b'"');
        return is_plain.then_some((value.into(), after.strip_prefix(b";").unwrap_or_default()));
    };
    let mut escaped = false;
    let end = quoted.iter().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => *byte == b'"',
    })?;
    let (value, after) = quoted.split_at_checked(end)?;
    let after = after.strip_prefix(b"\"")?.trim_ascii_start();
    let after = match after.split_first() {
        None => after,
        Some((b';', after)) => after,
        Some(_) => return None,
    };
    Some((unescape(value), after))
}

fn unescape(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\\') {
        return value.into();
    }
    let mut plain = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        plain.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<&str> {
        let mut rest = Some(line.as_bytes());
        let mut elements = Vec::new();
        while let Some(line) = rest {
            let (before, element) = last_element(line);
            elements.push(str::from_utf8(element).unwrap().trim());
            rest = before;
        }
        elements
    }

    #[test]
    fn elements_are_split_from_the_right() {
        assert_eq!(split("for=a, for=b;by=c"), ["for=b;by=c", "for=a"]);
        assert_eq!(split(r#"for="a,b";by="c\",d", for=e"#), ["for=e", r#"for="a,b";by="c\",d""#]);
        assert_eq!(split(r#"for="a\\", for=b"#), ["for=b", r#"for="a\\""#]);
        assert_eq!(split(""), [""]);
        assert_eq!(split("a,"), ["", "a"]);
    }

    #[test]
    fn a_quotation_mark_of_an_attacker_swallows_nothing() {
        assert_eq!(split(r#"for=", for=b"#).first(), Some(&"for=b"));
        assert_eq!(split(r#"for="x, for="[::1]:2""#).first(), Some(&r#"for="[::1]:2""#));
        assert_eq!(split(r#"for=\, for="b\\""#).first(), Some(&r#"for="b\\""#));
    }

    #[test]
    fn an_element_says_for_whom() {
        let read = |text: &str| forwarded_for(text.as_bytes()).map(|address| address.to_string());
        for text in [
            "for=203.0.113.7",
            "For=203.0.113.7;proto=http;by=203.0.113.43",
            "proto=http; FOR=\"203.0.113.7:4711\" ;host=\"a;for=1.1.1.1\"",
            r#"host="\";for=1.1.1.1";for="203.0.\113.7""#,
            ";;for=203.0.113.7;",
        ] {
            assert_eq!(read(text).as_deref(), Some("203.0.113.7"), "{text}");
        }
        assert_eq!(read(r#"for="[2001:db8::17]:4711""#).as_deref(), Some("2001:db8::17"));
        for text in [
            "",
            "for",
            "for=",
            "for=unknown",
            "for=_hidden",
            "by=1.1.1.1",
            "for=1.1.1.1;for=2.2.2.2",
            "for=\"1.1.1.1",
            "for=1.1.1.1\"",
            "for=\"1.1.1.1\"x",
            "for=\"1.1.1.1\\\"",
            "1.1.1.1",
            "xfor=1.1.1.1",
            "for=1.1.1.1;x",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
