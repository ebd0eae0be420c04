//! Facts of which one is enough: `user | ip`.

use std::ops::Range;
use std::str::FromStr;

use crate::read::{Mistake, Reader};
use crate::source::Span;
use crate::{Fact, ParseFactError};

/// Facts of which the first that is present counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternatives(pub(crate) Vec<Alternative>);

/// One of them, and which bytes of the text it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alternative {
    pub(crate) fact: Fact,
    pub(crate) part: Range<usize>,
}

/// Why a text is not [`Alternatives`], and which part of it.
pub(crate) struct AlternativesError {
    part: Range<usize>,
    error: ParseFactError,
}

impl FromStr for Alternatives {
    type Err = AlternativesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut facts = Vec::new();
        let mut at = 0;
        for written in text.split('|') {
            let start = at + (written.len() - written.trim_start().len());
            let part = start..start + written.trim().len();
            match written.trim().parse() {
                Ok(fact) => facts.push(Alternative { fact, part }),
                Err(error) => return Err(AlternativesError { part, error }),
            }
            at += written.len() + 1;
        }
        Ok(Self(facts))
    }
}

impl Mistake for AlternativesError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        let span = span.part(self.part.clone());
        let part = text.get(self.part.clone()).unwrap_or_default();
        match as_list(text) {
            Some(list) => {
                let message = format!("`{part}` is not a fact");
                reader.problems.error(&span, message).hint(format!("write {list}"));
            }
            None => self.error.tell(part, &span, reader),
        }
    }
}

/// Facts in one text, but for these signs between them, as the list that was meant.
fn as_list(text: &str) -> Option<String> {
    let items: Vec<&str> =
        text.split([',', '+', '&']).map(str::trim).filter(|item| !item.is_empty()).collect();
    let all = items.iter().all(|item| item.parse::<Alternatives>().is_ok());
    (all && items.len() > 1).then(|| format!("{items:?}"))
}
