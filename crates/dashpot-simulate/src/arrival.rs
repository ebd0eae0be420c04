//! Somebody asks.

use std::iter::Peekable;

/// Somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in nanoseconds since the start.
    pub at: u64,
    /// Who, by number. 0 is whom pictures follow, and in made-up traffic the busiest.
    pub caller: u32,
    /// How many units.
    pub cost: u64,
}

/// Several kinds of traffic as one, in order.
pub fn together<'a>(
    parts: Vec<Box<dyn Iterator<Item = Arrival> + 'a>>,
) -> Box<dyn Iterator<Item = Arrival> + 'a> {
    let merge = |one: Box<dyn Iterator<Item = Arrival> + 'a>,
                 other|
     -> Box<dyn Iterator<Item = Arrival> + 'a> {
        Box::new(Merged { one: one.peekable(), other: Iterator::peekable(other) })
    };
    parts.into_iter().reduce(merge).unwrap_or_else(|| Box::new(std::iter::empty()))
}

struct Merged<'a> {
    one: Peekable<Box<dyn Iterator<Item = Arrival> + 'a>>,
    other: Peekable<Box<dyn Iterator<Item = Arrival> + 'a>>,
}

impl Iterator for Merged<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match (self.one.peek(), self.other.peek()) {
            (Some(one), Some(other)) if other.at < one.at => self.other.next(),
            (None, _) => self.other.next(),
            _ => self.one.next(),
        }
    }
}
