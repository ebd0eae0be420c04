//! The word that was probably meant.

use strsim::{damerau_levenshtein, jaro_winkler};

/// Asks whether a known word was meant, if one is near.
pub(crate) fn did_you_mean<'w>(
    word: &str,
    known: impl IntoIterator<Item = &'w str>,
) -> Option<String> {
    nearest(word, known).map(|word| format!("did you mean `{word}`?"))
}

/// The known word that is near enough for nobody to laugh at it.
pub(crate) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if word.len() > WORD_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let measured = known.into_iter().filter_map(|candidate| {
        let distance = damerau_levenshtein(&lower, candidate);
        // The end of a word may be another one: `trusted_proxy`, `status_code`.
        let is_alike = lower.len() > LONG && jaro_winkler(&lower, candidate) > 0.9;
        (is_slip(&lower, candidate, distance) || is_alike).then_some((distance, candidate))
    });
    measured.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// What is longer than this, in bytes, is no word.
const WORD_MAX: usize = 64;

/// Words with more letters than this may have two slips in them.
const LONG: usize = 5;

/// Whether one was written for the other by a slip of the fingers.
fn is_slip(word: &str, known: &str, distance: usize) -> bool {
    if distance == 0 {
        return true;
    }
    let shorter = word.chars().count().min(known.chars().count());
    if shorter < 2 || distance > if shorter > LONG { 2 } else { 1 } {
        return false;
    }
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    // A letter for another makes a word of two letters another word, and nobody errs in the first.
    let is_added = word.len() != known.len();
    let begins_alike = shorter > 2 && word.chars().next() == known.chars().next();
    is_added || begins_alike || sorted(word) == sorted(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: [&str; 9] =
        ["ip", "user", "api_key", "tier", "method", "path", "host", "header", "form"];

    #[test]
    fn slips_are_seen_through() {
        for (word, meant) in [
            ("IP", "ip"),
            ("pi", "ip"),
            ("ips", "ip"),
            ("usr", "user"),
            ("User", "user"),
            ("user_id", "user"),
            ("apikey", "api_key"),
            ("from", "form"),
            ("headers", "header"),
            ("mehtod", "method"),
        ] {
            assert_eq!(nearest(word, FACTS), Some(meant), "{word}");
        }
        assert_eq!(nearest("ulr", ["url", "deadline"]), Some("url"));
        assert_eq!(nearest("trusted_proxy", ["trusted_proxies", "tier"]), Some("trusted_proxies"));
    }

    #[test]
    fn other_words_stay_other_words() {
        for word in ["", "i", "id", "zzz", "post", "cost", "time", "claim", "body", "session", "ü"]
        {
            assert_eq!(nearest(word, FACTS), None, "{word}");
        }
    }
}
