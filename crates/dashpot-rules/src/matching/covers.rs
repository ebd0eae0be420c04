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

impl Condition {
    /// Whether no request matches both, as far as can be told.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        let methods = match (&self.methods, &other.methods) {
            (Some(mine), Some(others)) => {
                !others.names().iter().any(|name| mine.contains(name))
                    && !mine.names().iter().any(|name| others.contains(name))
            }
            _ => false,
        };
        let paths = are_apart(&self.paths, &other.paths, PathPattern::meets);
        let hosts =
            are_apart(&self.hosts, &other.hosts, |one, two| one.covers(two) || two.covers(one));
        let contradicts = |one: &Self, two: &Self| {
            one.facts.iter().any(|(fact, wanted)| {
                let differs = |(known, value): &(_, Wanted)| {
                    known == fact
                        && matches!((value, wanted), (Wanted::Value(a), Wanted::Value(b)) if a != b)
                };
                two.without.contains(fact) || two.facts.iter().any(differs)
            })
        };
        methods || paths || hosts || contradicts(self, other) || contradicts(other, self)
    }
}

/// Whether none of these meets one of those. None at all are all there are.
fn are_apart<T>(these: &[T], those: &[T], meet: impl Fn(&T, &T) -> bool) -> bool {
    let meets_one = |this: &T| those.iter().any(|that| meet(this, that));
    !these.is_empty() && !those.is_empty() && !these.iter().any(meets_one)
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
    /// Whether some path matches both.
    fn meets(&self, other: &Self) -> bool {
        let fits = |(mine, theirs): (&Segment, &Segment)| match (mine, theirs) {
            (Segment::Is(mine), Segment::Is(theirs)) => mine == theirs,
            _ => true,
        };
        let long_enough =
            |one: &Self, two: &Self| one.below || one.segments.len() >= two.segments.len();
        long_enough(self, other)
            && long_enough(other, self)
            && self.segments.iter().zip(&other.segments).all(fits)
    }

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
    fn paths_meet_or_not() {
        for (one, two, meet) in [
            ("/a", "/a", true),
            ("/a/*", "/a", true),
            ("/a/*", "/a/b/c", true),
            ("/{x}/b", "/a/{y}", true),
            ("/{x}/b/*", "/a/*", true),
            ("/a/*", "/b/*", false),
            ("/a", "/a/b", false),
            ("/{x}/b", "/a/c", false),
            ("/a/b/*", "/a", false),
        ] {
            assert_eq!(path(one).meets(&path(two)), meet, "{one} {two}");
            assert_eq!(path(two).meets(&path(one)), meet, "{two} {one}");
        }
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
