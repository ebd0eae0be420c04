//! What a block of commands says.

/// One command, and what is said to come of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) command: String,
    /// 0, unless the comment behind it says: exits with 1.
    pub(crate) status: i32,
    /// Lines that it prints: a comment of nothing but numbers, or what comes after a line that begins with `$ `.
    pub(crate) prints: Vec<String>,
}

/// The commands of a block, in order.
pub(crate) fn lines_of(block: &str) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    let is_transcript = block.starts_with("$ ");
    for text in block.replace("\\\n", " ").lines() {
        let text = text.trim();
        match text.strip_prefix("$ ") {
            Some(command) => found.push(line_of(command)),
            None if is_transcript => found.last_mut().unwrap().prints.push(text.to_owned()),
            None if text.is_empty() || text.starts_with('#') => {}
            None => found.push(line_of(text)),
        }
    }
    found
}

fn line_of(text: &str) -> Line {
    let (command, comment) = text.split_once(" # ").unwrap_or((text, ""));
    let status = comment.split_once("exits with ").map_or("0", |(_, rest)| rest);
    let status: String = status.chars().take_while(char::is_ascii_digit).collect();
    let comment = comment.trim();
    let is_output = comment.starts_with(|c: char| c.is_ascii_digit())
        && comment.chars().all(|c| c.is_ascii_digit() || c == ' ');
    Line {
        command: command.trim().to_owned(),
        status: status.parse().unwrap(),
        prints: if is_output { vec![comment.to_owned()] } else { Vec::new() },
    }
}

/// Whether all that is shown was told, line by line and in this order; more may have been. `…` stands for anything,
/// and a time may have become shorter by what has passed since.
pub(crate) fn expected_of(shown: &str, told: &str) -> Result<(), String> {
    let mut lines = told.lines();
    for line in shown.lines().filter(|line| !line.trim().is_empty()) {
        if !lines.any(|told| is_like(line, told)) {
            return Err(format!("`{line}` is not told, or not there:\n{told}"));
        }
    }
    Ok(())
}

fn is_like(shown: &str, told: &str) -> bool {
    if shown.contains('…') {
        let mut rest = told;
        return shown.split('…').all(|part| {
            let found = rest.find(part.trim());
            rest = found.map_or("", |at| &rest[at + part.trim().len()..]);
            found.is_some()
        });
    }
    let (shown, told): (Vec<_>, Vec<_>) =
        (shown.split_whitespace().collect(), told.split_whitespace().collect());
    shown.len() == told.len()
        && shown.iter().zip(&told).all(|(shown, told)| {
            shown == told
                || seconds(shown)
                    .zip(seconds(told))
                    .is_some_and(|(shown, told)| (shown - 1.5..=shown).contains(&told))
        })
}

/// As in `2s`, `1.9s` and `950ms`.
fn seconds(word: &str) -> Option<f64> {
    if let Some(millis) = word.strip_suffix("ms") {
        return millis.parse::<f64>().ok().map(|millis| millis / 1000.0);
    }
    word.strip_suffix('s')?.parse().ok()
}

#[test]
fn lines_are_read_as_they_are_meant() {
    let block =
        "a \\\n  b &   # later\n\n# nothing\nc      # exits with 1, because\nd; echo   # 200 429\n";
    let line = |command: &str, status, prints: &[&str]| Line {
        command: command.to_owned(),
        status,
        prints: prints.iter().map(|&print| print.to_owned()).collect(),
    };
    let expected = [line("a    b &", 0, &[]), line("c", 1, &[]), line("d; echo", 0, &["200 429"])];
    assert_eq!(lines_of(block), expected);
    assert_eq!(lines_of("$ a\nb c\n"), [line("a", 0, &["b c"])]);
}

#[test]
fn what_is_shown_is_compared() {
    let told = "x\n  1  allow  1.998s\nend {\"a\":1,\"b\":2}\n";
    for fine in ["1 allow 2s\n", "x\n\n1  allow 2s\nend {…,\"b\":2}", "x\n"] {
        assert_eq!(expected_of(fine, told), Ok(()));
    }
    for wrong in ["1 allow 1s", "1 deny 2s", "1 allow 2s\nx", "end {…,\"c\"…}", "allow 2s"] {
        assert!(expected_of(wrong, told).is_err(), "{wrong}");
    }
}
