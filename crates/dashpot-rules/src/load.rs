//! From files to rules.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::live::Seen;
use crate::set::LoadError;
use crate::{RuleSet, Source};

pub(crate) fn load(path: &Path) -> Result<RuleSet, LoadError> {
    let (files, directory) = files(path)?;
    let (mut sources, mut seen) = (Vec::new(), Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).map_err(cannot_read(&file))?;
        sources.push(Source::new(file.display().to_string(), text.as_str()));
        seen.push(Seen::new(file, text.as_bytes()));
    }
    let mut set = RuleSet::from_sources(sources, &directory)?;
    seen.append(&mut set.files);
    set.files = seen;
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
        // Key files are read because rules name them; they are not rules.
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

fn cannot_read(path: &Path) -> impl Fn(io::Error) -> LoadError {
    move |error| LoadError::Read { path: path.to_owned(), error }
}
