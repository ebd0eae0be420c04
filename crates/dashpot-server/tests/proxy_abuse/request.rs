//! Requests: those that a backend gets, read strictly; and those that a caller sends, read as they
//! can be meant.

use crate::wire::{Message, Read, Reader, Stop, is_printed, is_token, number, wrong};

/// The first of these bytes, and how many of them it has. Nothing in it may be read in two ways.
pub(crate) fn strict(bytes: &[u8]) -> Read<(Message, usize)> {
    let mut reader = Reader::strict(bytes);
    let mut request = head(&mut reader)?;
    if request.word(2) != "HTTP/1.1" {
        return wrong(format!("another version: {}", request.line));
    }
    match request.all("host")[..] {
        [host] if is_host(host) => {}
        _ => return wrong(format!("no host, or not one: {:?}", request.fields)),
    }
    match (&request.all("content-length")[..], &request.all("transfer-encoding")[..]) {
        ([], []) => {}
        ([length], []) => match number(length, 10) {
            Some(length) => request.body = reader.exactly(length)?,
            None => return wrong(format!("not a length: {}", length.escape_ascii())),
        },
        ([], [coding]) if coding == b"chunked" => {
            (request.body, request.trailers) = reader.chunks()?;
        }
        other => return wrong(format!("lengths and codings: {other:?}")),
    }
    Ok((request, reader.at))
}

/// All that a caller asks for, as a generous reader takes it, and what is the matter with the rest.
pub(crate) fn meant(bytes: &[u8]) -> (Vec<Message>, Stop) {
    let mut requests = Vec::new();
    let mut reader = Reader { bytes, at: 0, lenient: true };
    loop {
        match generous(&mut reader) {
            Ok((request, last)) => {
                requests.push(request);
                if last {
                    return (requests, Stop::Wrong("closed".to_owned()));
                }
            }
            Err(stop) => return (requests, stop),
        }
    }
}

/// The next one, and whether the connection is closed after it.
fn generous(reader: &mut Reader<'_>) -> Read<(Message, bool)> {
    while matches!(reader.bytes.get(reader.at..), Some([b'\r', b'\n', ..] | [b'\n', ..])) {
        reader.line()?;
    }
    let mut request = head(reader)?;
    let old = request.word(2) == "HTTP/1.0";
    // A host may be in the request line instead.
    let hosts = request.all("host").len();
    let named = hosts == 1 || hosts == 0 && request.word(1).contains("://");
    if !old && (request.word(2) != "HTTP/1.1" || !named) {
        return wrong("another version, or no host");
    }
    let mut last = request.says("connection", "close");
    last |= old && !request.says("connection", "keep-alive");
    let lengths: Vec<_> = request.all("content-length").concat_lists();
    if let Some(coding) = request.all("transfer-encoding").concat_lists().last() {
        if !coding.eq_ignore_ascii_case(b"chunked") || old {
            return wrong("a coding that is not chunked");
        }
        last |= !lengths.is_empty();
        (request.body, request.trailers) = reader.chunks()?;
    } else if let Some(first) = lengths.first() {
        match number(first, 10) {
            Some(length) if lengths.iter().all(|other| other == first) => {
                request.body = reader.exactly(length)?;
            }
            _ => return wrong("a length that is none"),
        }
    }
    request.line = format!("{} {} HTTP/1.1", request.word(0), path(request.word(1)));
    Ok((request, last))
}

fn head(reader: &mut Reader<'_>) -> Read<Message> {
    let line = reader.line()?;
    let words: Vec<_> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else {
        return wrong(format!("not a request line: {}", line.escape_ascii()));
    };
    let method = !method.is_empty() && method.iter().all(|byte| is_token(*byte));
    let target = !target.is_empty() && target.iter().all(|byte| is_printed(*byte));
    if !method || !target || !version.starts_with(b"HTTP/1.") {
        return wrong(format!("not a request line: {}", line.escape_ascii()));
    }
    let line = String::from_utf8_lossy(line).into_owned();
    Ok(Message { line, fields: reader.fields()?, ..Message::default() })
}

/// A name or an address, and perhaps a port; or nothing at all.
fn is_host(host: &[u8]) -> bool {
    host.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(byte))
}

/// What a request line asks for, whether it names a host or not.
fn path(target: &str) -> String {
    let target = target.split('#').next().unwrap_or_default();
    let Some((_, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) else {
        return target.to_owned();
    };
    match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('/') => rest[at..].to_owned(),
        Some(at) => format!("/{}", &rest[at..]),
        None => "/".to_owned(),
    }
}

trait Lists {
    /// The elements of all lists, without empty ones.
    fn concat_lists(&self) -> Vec<Vec<u8>>;
}

impl Lists for Vec<&[u8]> {
    fn concat_lists(&self) -> Vec<Vec<u8>> {
        let all = self.iter().flat_map(|list| list.split(|byte| *byte == b','));
        all.map(|one| one.trim_ascii().to_vec()).filter(|one| !one.is_empty()).collect()
    }
}
