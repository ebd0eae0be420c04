//! What a rule file may say, for editors.

use serde_json::Value;

use crate::config::Config;
use crate::read::Read;

/// The JSON Schema of a rule file.
///
/// Editors that know it complete keys and point at mistakes while a file is written.
#[must_use]
pub fn schema() -> Value {
    let mut schema = Config::schema();
    if let Some(schema) = schema.as_object_mut() {
        let draft = "https://json-schema.org/draft/2020-12/schema";
        schema.insert("$schema".to_owned(), draft.into());
        schema.insert("title".to_owned(), "dashpot rule file".into());
    }
    schema
}
