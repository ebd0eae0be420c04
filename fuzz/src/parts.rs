//! An input's parts.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

/// Lines `name: value`, as a map; what cannot be a header is left out.
#[must_use]
pub fn headers(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let (name, value) = split(line, b':');
        let name = HeaderName::from_bytes(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.trim_ascii())) {
            headers.append(name, value);
        }
    }
    headers
}

/// A first line of method and target, headers, an empty line, and a body. `None` if hyper would not have it either.
#[must_use]
pub fn request(data: &[u8]) -> Option<(Request<()>, &[u8])> {
    let end = data.windows(2).position(|two| two == b"\n\n");
    let (head, body) = end.map_or((data, &b""[..]), |end| (&data[..end], &data[end + 2..]));
    let (line, lines) = split(head, b'\n');
    let (method, target) = split(line, b' ');
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(method).ok()?;
    *request.uri_mut() = Uri::try_from(target).ok()?;
    *request.headers_mut() = headers(lines);
    Some((request, body))
}

/// Splits at the first of these bytes; without one, all of it is the first part.
#[must_use]
pub fn split(data: &[u8], at: u8) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == at) {
        Some(place) => (&data[..place], &data[place + 1..]),
        None => (data, &[]),
    }
}
