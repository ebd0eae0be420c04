//! Whether one condition holds wherever another does.

use super::path::Segment;
use super::{Condition, HostPattern, PathPattern, Wanted};

impl Condition {
    /// Whether every request that matches `other` matches this, as far as can be told.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let methods = match (&self.methods, &other.methods) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(mine), Some(others)) => others.names().iter().all(|name| mine.contains(name)),
        };
        let paths = self.paths.is_empty()
            || (self.paths.iter().any(PathPattern::is_everything))
            || (!other.paths.is_empty()
                && other.paths.iter().all(|path| self.paths.iter().any(|mine| mine.covers(path))));
        let hosts = self.hosts.is_empty()
            || (!other.hosts.is_empty()
                && other.hosts.iter().all(|host| self.hosts.iter().any(|mine| mine.covers(host))));
        let facts = self.facts.iter().all(|(fact, wanted)| {
            let same = |(known, value): &(_, Wanted)| {
                known == fact && (value == wanted || *wanted == Wanted::Any)
            };
            other.facts.iter().any(same)
        });
        let without = self.without.iter().all(|fact| other.without.contains(fact));
        methods && paths && hosts && facts && without
    }
}

impl HostPattern {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(mine), Self::Is(host) | Self::Below(host)) => host.ends_with(mine),
            (Self::Is(mine), Self::Is(host)) => mine == host,
            (Self::Is(_), Self::Below(_)) => false,
        }
    }
}

impl PathPattern {
    fn covers(&self, other: &Self) -> bool {
        let fits = |(mine, theirs): (&Segment, &Segment)| match (mine, theirs) {
            (Segment::Any(_), _) => true,
            (Segment::Is(mine), Segment::Is(theirs)) => mine == theirs,
            (Segment::Is(_), Segment::Any(_)) => false,
        };
        let enough = if self.below {
            self.segments.len() <= other.segments.len()
        } else {
            self.segments.len() == other.segments.len() && !other.below
        };
        enough && self.segments.iter().zip(&other.segments).all(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PathPattern {
        text.parse().ok().unwrap()
    }

    #[test]
    fn a_path_covers_what_is_below_it() {
        for (wide, narrow) in [
            ("/*", "/a/b"),
            ("/a/*", "/a/b"),
            ("/a/*", "/a"),
            ("/a/*", "/a/b/*"),
            ("/a/{x}", "/a/b"),
            ("/{x}/b", "/a/b"),
            ("/a", "/a"),
        ] {
            assert!(path(wide).covers(&path(narrow)), "{wide} {narrow}");
        }
        for (one, two) in [("/a/*", "/b"), ("/a", "/a/*"), ("/a/b", "/a/{x}"), ("/a/b/*", "/a")] {
            assert!(!path(one).covers(&path(two)), "{one} {two}");
        }
    }
}
