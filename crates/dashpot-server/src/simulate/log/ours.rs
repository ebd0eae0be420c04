//! `time ip method path version status bytes seconds`: the gateway's own log.

use super::{Entry, address, nanos, request, took};

pub(super) fn read(line: &str) -> Result<Entry, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [time, ip, method, path, _version, status, bytes, seconds] = &*words else {
        return Err(format!(
            "the gateway's log has 8 words in a line, and there are {}",
            words.len()
        ));
    };
    let at = time.parse().ok().and_then(nanos).ok_or("no time that can be read")?;
    Ok(Entry {
        at,
        request: request(method, path, address(ip)),
        status: status.parse().ok(),
        bytes: bytes.parse().ok(),
        took: seconds.parse().ok().and_then(took),
    })
}
