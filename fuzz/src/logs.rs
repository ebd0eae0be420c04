//! Access logs, line by line.

use super::log::{Entry, lines, read};

/// A log: each line is seen once, and read or left out with a reason that does not fill the screen.
pub fn survives(data: &[u8]) {
    let (mut seen, mut bytes) = (0, 0);
    let all = lines(data, |number, line, length| {
        seen += 1;
        bytes += length;
        assert_eq!(number, seen);
        line.into_iter().for_each(survives_line);
    });
    assert!(all.is_ok() && bytes == data.len(), "each byte belongs to a line");
    assert!(seen <= data.iter().filter(|byte| **byte == b'\n').count() as u64 + 1);
}

fn survives_line(line: &str) {
    match read(line) {
        Err(why) => assert!(!why.is_empty() && why.len() <= line.len() + 200, "{why}"),
        Ok(entry) => {
            let Entry { status, took, .. } = &entry;
            assert!(
                status.is_none_or(|status| line.contains(&status.to_string()))
                    || line.starts_with('{')
            );
            assert!(took.is_none_or(|took| took.as_secs_f64().is_finite()));
            assert!(line.len() < 2 || entry.request.path.len() <= line.len());
            if let Ok((request, _)) = entry.request.build() {
                // Rules are about paths.
                assert!(request.uri().path().starts_with('/'));
            }
        }
    }
}
