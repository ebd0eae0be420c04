//! What is wrong with a file, and where.

use std::fmt;

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    file: String,
    /// Line and column.
    place: Option<(u64, u64)>,
    message: String,
}

impl Problem {
    pub(super) fn new(file: &str, place: Option<(u64, u64)>, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), place, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// Everything that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problems(pub(super) Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
