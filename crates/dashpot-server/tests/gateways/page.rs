//! What a page of the documentation shows.

/// The first fenced block of a kind.
pub(crate) fn block(page: &str, kind: &str) -> String {
    blocks(page, kind).into_iter().next().unwrap_or_else(|| panic!("no block of {kind}"))
}

/// All fenced blocks of a kind.
pub(crate) fn blocks(page: &str, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(told) = line.strip_prefix("```") else { continue };
        let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        if told == kind {
            found.push(text.join("\n") + "\n");
        }
    }
    found
}

/// Another text in place of one that must be there once.
pub(crate) fn changed(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from:?} is to be there once in\n{text}");
    text.replace(from, to)
}

/// The ports of the documentation, and those to use instead.
pub(crate) fn with_ports(text: &str, ports: &[(&str, u16)]) -> String {
    let mut text = text.to_owned();
    // In two steps: one of the new ports may have the digits of an old one in it.
    for (index, (documented, _)) in ports.iter().enumerate() {
        text = text.replace(documented, &format!("<{index}>"));
    }
    for (index, (_, port)) in ports.iter().enumerate() {
        text = text.replace(&format!("<{index}>"), &port.to_string());
    }
    text
}
