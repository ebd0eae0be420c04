//! From files to rules.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::live::Seen;
use crate::set::LoadError;
use crate::{RuleSet, Source};

pub(crate) fn load(path: &Path) -> Result<RuleSet, LoadError> {
    let (files, directory) = files(path)?;
    let (mut texts, mut seen) = (Vec::new(), Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).map_err(cannot_read(&file))?;
        seen.push(Seen::new(file.clone(), text.as_bytes()));
        texts.push((file, text));
    }
    let named: Vec<_> = texts.iter().map(|(_, text)| names_keys(text, &directory)).collect();
    let mut sources = Vec::new();
    for ((file, text), names) in texts.iter().zip(&named) {
        // What names a file of keys is none.
        if names.is_some() || !named.iter().flatten().any(|keys| is_same(keys, file)) {
            sources.push(Source::new(file.display().to_string(), text.as_str()));
        }
    }
    let mut set = RuleSet::from_sources(sources, &directory)?;
    seen.append(&mut set.files);
    set.files = Seen::in_order(seen);
    Ok(set)
}

/// The files to read, in order, and where files they name are looked for.
pub(crate) fn files(path: &Path) -> Result<(Vec<PathBuf>, PathBuf), LoadError> {
    if !path.is_dir() {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        return Ok((vec![path.to_owned()], directory));
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(cannot_read(path))? {
        let file = entry.map_err(cannot_read(path))?.path();
        if file.extension().is_some_and(|kind| kind == "toml") && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(LoadError::Nothing(path.to_owned()));
    }
    files.sort();
    Ok((files, path.to_owned()))
}

/// The file of keys that a file of rules names, whatever is wrong with it otherwise.
fn names_keys(text: &str, directory: &Path) -> Option<PathBuf> {
    let (table, _) = DeTable::parse_recoverable(text);
    let identity = table.get_ref().get("identity")?.get_ref().as_table()?;
    let name = identity.get("api_keys_file")?.get_ref().as_str()?;
    Some(directory.join(name))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

fn cannot_read(path: &Path) -> impl Fn(io::Error) -> LoadError {
    move |error| LoadError::Read { path: path.to_owned(), error }
}
