//! Structured fields (RFC 9651), as far as RateLimit and RateLimit-Policy use them, read strictly.

use std::collections::BTreeMap;

/// An item of a list: `"name";q=60;w=60`.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    parameters: BTreeMap<String, String>,
}

impl Item {
    /// A parameter that is a whole number of at most 15 digits.
    #[track_caller]
    pub(crate) fn number(&self, name: &str) -> u64 {
        let text = self.parameters.get(name).unwrap_or_else(|| panic!("no `{name}`: {self:?}"));
        assert!(text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit()), "{self:?}");
        text.parse().unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }
}

/// Reads a list of quoted strings with parameters. What is not one panics.
#[track_caller]
pub(crate) fn list(text: &str) -> Vec<Item> {
    let mut rest = text;
    let mut items = Vec::new();
    loop {
        let (name, after) = quoted(rest).unwrap_or_else(|| panic!("no string at {rest:?}: {text}"));
        rest = after;
        let mut parameters = BTreeMap::new();
        while let Some(after) = rest.strip_prefix(';') {
            let (key, value) = after.split_once('=').unwrap_or_else(|| panic!("{text}"));
            assert!(key.bytes().all(|b| b.is_ascii_lowercase()) && !key.is_empty(), "{text}");
            let (value, after) = match quoted(value) {
                Some(both) => both,
                None => {
                    let end = value.find([';', ',', ' ']).unwrap_or(value.len());
                    (value[..end].to_owned(), &value[end..])
                }
            };
            assert!(parameters.insert(key.to_owned(), value).is_none(), "`{key}` twice: {text}");
            rest = after;
        }
        items.push(Item { name, parameters });
        if rest.is_empty() {
            return items;
        }
        let after =
            rest.strip_prefix(',').unwrap_or_else(|| panic!("no comma at {rest:?}: {text}"));
        rest = after.trim_start_matches(' ');
    }
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let inside = text.strip_prefix('"')?;
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((name, &inside[at + 1..])),
            '\\' => name.push(characters.next().filter(|(_, c)| matches!(c, '"' | '\\'))?.1),
            ' '..='~' => name.push(character),
            _ => return None,
        }
    }
    None
}
