//! Bodies of JSON: what they say, or which field is wrong.

use http::StatusCode;
use serde::Deserialize;

use crate::serve::text::Object;
use crate::serve::wrong::Wrong;

/// Reads a body; if it is not what it should be, the field is named.
pub(crate) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Wrong> {
    match serde_json::from_slice(body) {
        Ok(Object(read)) => Ok(read),
        // Read again to see where: that takes longer, and only who is wrong waits for it.
        Err(_) => Err(mistake::<T>(body)),
    }
}

#[cold]
fn mistake<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Wrong {
    if body.is_empty() {
        return Wrong::new(StatusCode::BAD_REQUEST, "there is no body; send JSON");
    }
    let reader = &mut serde_json::Deserializer::from_slice(body);
    match serde_path_to_error::deserialize::<_, Object<T>>(reader) {
        Err(error) => {
            let detail = in_our_words(&error.inner().to_string());
            // Where nothing could be read there is no place.
            let path = error.path().to_string().replace('?', ".");
            match missing_or_unknown(&detail) {
                Some(field) if path == "." => Wrong::field(field.to_owned(), detail),
                Some(field) if !path.ends_with(field) => {
                    Wrong::field(format!("{path}.{field}"), detail)
                }
                _ if path == "." => Wrong::new(StatusCode::BAD_REQUEST, detail),
                _ => Wrong::field(path, detail),
            }
        }
        Ok(_) => Wrong::new(StatusCode::BAD_REQUEST, "there is something after the JSON"),
    }
}

/// What the library says, to those who do not know what it is written in.
fn in_our_words(detail: &str) -> String {
    let words = [
        ("invalid type: map", "invalid type: object"),
        ("invalid type: sequence", "invalid type: list"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
    ];
    words.iter().fold(detail.to_owned(), |detail, (theirs, ours)| detail.replace(theirs, ours))
}

/// The field that is missing or unknown, which a path does not tell.
fn missing_or_unknown(detail: &str) -> Option<&str> {
    let rest = detail
        .strip_prefix("missing field `")
        .or_else(|| detail.strip_prefix("unknown field `"))?;
    Some(rest.split_once('`')?.0)
}
