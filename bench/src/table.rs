//! Figures as text.

use crate::child::Medians;
use crate::results;

/// A markdown table.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![head.into_iter().map(Into::into).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Puts it into the report, under a heading, with a line or two on how to read it.
    pub(crate) fn print(&self, heading: &str, note: &str) {
        results::say(&self.text(heading, note));
    }

    /// The same, as text.
    pub(crate) fn text(&self, heading: &str, note: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(2)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();

        let mut text = format!("## {heading}\n\n{note}\n\n");
        for (index, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:>width$} |"));
            text.push_str(&format!("|{}\n", cells.collect::<String>()));
            if index == 0 {
                let rule = widths.iter().map(|width| format!("{}:|", "-".repeat(width + 1)));
                text.push_str(&format!("|{}\n", rule.collect::<String>()));
            }
        }
        text.push('\n');
        text
    }
}

/// The heads of one figure for every peer: dashpot's, then each other's with its ratio.
pub(crate) fn peer_heads(peers: &[&str]) -> Vec<String> {
    let mut heads = vec![peers[0].to_owned()];
    for peer in &peers[1..] {
        heads.extend([(*peer).to_owned(), "÷".to_owned()]);
    }
    heads
}

/// The cells under [`peer_heads`], for the figure of this number.
pub(crate) fn peer_cells(peers: &[Medians], figure: usize) -> Vec<String> {
    let own = peers[0].get(figure);
    let mut cells = vec![number(own)];
    for peer in &peers[1..] {
        cells.extend([number(peer.get(figure)), ratio(peer.get(figure), own)]);
    }
    cells
}

/// Three digits, or all of them before the point.
pub(crate) fn number(figure: f64) -> String {
    match figure {
        figure if figure.is_nan() => "–".to_owned(),
        figure if figure < 10.0 => format!("{figure:.2}"),
        figure if figure < 100.0 => format!("{figure:.1}"),
        figure => format!("{figure:.0}"),
    }
}

pub(crate) fn ratio(figure: f64, own: f64) -> String {
    let ratio = figure / own;
    if ratio.is_nan() { "–".to_owned() } else { format!("{ratio:.2}") }
}

/// A whole number with its thousands apart.
pub(crate) fn count(figure: f64) -> String {
    if figure.is_nan() {
        return "–".to_owned();
    }
    let digits = format!("{figure:.0}");
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(ascii).collect();
    groups.join(" ")
}

fn ascii(digits: &[u8]) -> &str {
    str::from_utf8(digits).expect("digits are text")
}

/// The most of all; not a number if one of them is none, or there are none.
pub(crate) fn most(figures: impl IntoIterator<Item = f64>) -> f64 {
    let larger = |one: f64, other: f64| if other > one || other.is_nan() { other } else { one };
    figures.into_iter().reduce(larger).unwrap_or(f64::NAN)
}

/// The least of all; not a number if one of them is none, or there are none.
pub(crate) fn least(figures: impl IntoIterator<Item = f64>) -> f64 {
    -most(figures.into_iter().map(|figure| -figure))
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}
