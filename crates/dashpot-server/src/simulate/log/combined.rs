//! `ip - user [time] "GET / HTTP/1.1" status bytes "referer" "agent"`: what nginx and Apache write, with or without the last
//! two, and with a host in front or without.

use super::{Entry, address, clf_time, owned, request, request_line};
use crate::serve::text::Lines;

pub(super) fn read(line: &str) -> Result<Entry, String> {
    let (before, rest) = line.split_once(" [").ok_or("no time in brackets")?;
    let (time, rest) = rest.split_once(']').ok_or("no time in brackets")?;
    let at = clf_time(time).ok_or_else(|| format!("`{time}` is no time"))?;
    let mut words = before.split_ascii_whitespace();
    // A host may stand before the address.
    let ip = words.by_ref().take(2).find_map(address);
    let ip = ip.ok_or("no address: names of hosts say nothing to a rule")?;
    let user = words.nth(1).filter(|user| *user != "-");
    let mut quoted = Quoted(rest);
    let line = quoted.next().ok_or("no request in quotes")?;
    let (method, path) = request_line(&line).ok_or_else(|| format!("`{line}` is no request"))?;
    let mut numbers = quoted.0.split_ascii_whitespace();
    let (status, bytes) = (numbers.next(), numbers.next());
    let mut request = request(method, path, Some(ip));
    request.user = user.map(owned);
    for name in ["referer", "user-agent"] {
        if let Some(value) = quoted.next().filter(|value| value != "-") {
            request.headers.insert(owned(name), Lines(vec![owned(&value)]));
        }
    }
    Ok(Entry {
        at,
        request,
        status: status.and_then(|status| status.parse().ok()),
        bytes: bytes.and_then(|bytes| bytes.parse().ok()),
        took: None,
    })
}

/// Texts in quotes, one after another; what is between them stays until the next is asked for.
struct Quoted<'a>(&'a str);

impl Iterator for Quoted<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let from = self.0.find('"')?;
        let mut text = String::new();
        let mut letters = self.0.get(from + 1..)?.char_indices();
        while let Some((place, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = self.0.get(from + 1 + place + 1..)?;
                    return Some(text);
                }
                // Apache writes \" and nginx \x22.
                '\\' => match letters.next()?.1 {
                    'x' => {
                        let digits: String =
                            letters.by_ref().take(2).map(|(_, digit)| digit).collect();
                        let byte = u8::from_str_radix(&digits, 16).unwrap_or(b'?');
                        // What is not ASCII cannot be told byte by byte.
                        text.push(if byte.is_ascii() { char::from(byte) } else { '?' });
                    }
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        None
    }
}
