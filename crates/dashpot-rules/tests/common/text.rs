//! Files written inside tests, without the indentation they have there.

pub(crate) fn dedent(text: &str) -> String {
    let lines = || text.trim_end().lines().skip_while(|line| line.trim().is_empty());
    let indent = |line: &str| line.len() - line.trim_start().len();
    let margin = lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let lines: Vec<_> = lines().map(|line| line.get(margin..).unwrap_or_default()).collect();
    lines.join("\n") + "\n"
}
