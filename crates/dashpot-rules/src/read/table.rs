//! Tables that were written as one value.

use toml::de::DeValue;

/// How to write a value as the table that belongs here, if it can be told what was meant.
pub(super) fn as_table(key: &str, value: &DeValue<'_>) -> Option<String> {
    let table = match (key, value) {
        ("match", DeValue::String(path)) if path.starts_with('/') => {
            format!("match = {{ path = {path:?} }}")
        }
        ("match", DeValue::Array(_)) => "match = { path = […] }".to_owned(),
        ("match", _) => "match = { path = \"/login\" }".to_owned(),
        ("on_deny", DeValue::Integer(status)) => {
            format!("on_deny = {{ status = {} }}", status.as_str())
        }
        ("on_deny", DeValue::String(text)) => {
            let is_place = ["/", "http://", "https://"].iter().any(|start| text.starts_with(start));
            let key = if is_place { "redirect" } else { "body" };
            format!("on_deny = {{ {key} = {text:?} }}")
        }
        // It may hold a password.
        ("store", DeValue::String(_)) => "store = { url = \"redis://…\" }".to_owned(),
        ("header", _) => "header = { x-name = \"value\" }".to_owned(),
        ("fact", _) => "fact = { tier = \"pro\" }".to_owned(),
        ("tiers", _) => "tiers.free = [\"60/min\"]".to_owned(),
        ("allow" | "block", _) => format!("{key} = {{ ip = [\"203.0.113.7\"] }}"),
        _ => return None,
    };
    Some(format!("write {table}"))
}
