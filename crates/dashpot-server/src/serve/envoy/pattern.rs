//! Values with `*` in them.

/// A value with `*` in it, each of which stands for any text, none included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    first: String,
    middle: Vec<String>,
    last: String,
}

impl Pattern {
    /// Reads it; `None` if there is no `*` in it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once('*')?;
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let middle = middle.split('*').filter(|part| !part.is_empty()).map(str::to_owned);
        Some(Self { first: first.to_owned(), middle: middle.collect(), last: last.to_owned() })
    }

    /// Each part as early as it can be: what comes after has the most room then.
    pub(super) fn matches(&self, value: &str) -> bool {
        let rest = value.strip_prefix(&*self.first);
        let Some(mut rest) = rest.and_then(|rest| rest.strip_suffix(&*self.last)) else {
            return false;
        };
        for part in &self.middle {
            match rest.split_once(&**part) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_star_is_any_text() {
        let cases = [
            ("value*", "value", true),
            ("value*", "value1", true),
            ("value*", "valu", false),
            ("/api/*/action", "/api/123/action", true),
            ("/api/*/action", "/api/action", false),
            ("/api/*/action", "/api/123/other", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "", true),
            ("*b*", "abc", true),
            ("*b*", "ac", false),
            ("a*b*b", "ab", false),
            ("a*b*b", "abb", true),
            ("/x/*/y/*/z", "/x/1/y/2/z", true),
            ("/x/*/y/*/z", "/x/1/2/z", false),
            ("**", "anything", true),
            ("ü*", "über", true),
        ];
        for (pattern, value, matches) in cases {
            let read = Pattern::read(pattern).unwrap();
            assert_eq!(read.matches(value), matches, "{pattern} and {value}");
        }
        assert_eq!(Pattern::read("plain"), None);
    }
}
