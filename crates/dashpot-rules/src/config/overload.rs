//! What a rule may say about times of stress, as it is written.

use std::str::FromStr;
use std::time::Duration;

use dashpot::{Band, Class, ParsePercentError, Percent};

use crate::read::{Mistake, Reader, section, texts, words};
use crate::source::Span;

section! {
    /// How limits shrink while the service suffers.
    AdaptiveSection requires [] {
        /// How busy the machine's processors are: below is healthy, above is stressed. `off` does not look.
        cpu: BandText,
        /// How many requests end with a 5xx, or without an answer: below is healthy, above is stressed. `off` does not look.
        errors: BandText,
        /// How long requests may take until the answer begins: stressed if more than a tenth take longer.
        latency: Duration,
        /// The least factor.
        floor: Percent,
        /// What the factor is multiplied by under stress.
        down: Percent,
        /// What the factor is multiplied by in health.
        up: Percent,
        /// How often it is looked at.
        tick: Duration,
    }

    /// How many requests this process takes at once.
    CapacitySection requires ["limit"] {
        /// How many at once; with `latency`, where it begins.
        limit: u64,
        /// How long a request may take until its answer begins. If it is said, the limit adapts.
        latency: Duration,
        /// How many may fail before that is overload, too.
        errors: Percent,
        /// The least the limit becomes.
        min: u64,
        /// The most the limit becomes.
        max: u64,
        /// For how long requests are admitted before it is judged how they fared.
        tick: Duration,
        /// How many may wait.
        places: u64,
        /// How long they may wait.
        wait: Duration,
    }

    /// How much of a limit each class may fill.
    ClassesSection requires [] {
        /// What is neither critical nor background.
        normal: Percent,
        /// What can wait.
        background: Percent,
    }
}

words! {
    Class, "a class", Self::ALL.map(|class| (class.name(), class)).into();
}

texts! {
    Percent, "a part, as in \"80%\"", "80%", "0.5%";
    BandText, "a band, as in \"50%..80%\", or \"off\"", "50%..80%", "off";
}

/// A band, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BandText(pub(crate) Option<Band>);

/// A text is no band.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParseBandError;

impl FromStr for BandText {
    type Err = ParseBandError;

    fn from_str(text: &str) -> Result<Self, ParseBandError> {
        if text == "off" {
            return Ok(Self(None));
        }
        let (healthy, stressed) = text.split_once("..").ok_or(ParseBandError)?;
        let end = |end: &str| end.trim().parse::<Percent>().map_err(|_| ParseBandError);
        Ok(Self(Some(Band::new(end(healthy)?, end(stressed)?))))
    }
}

impl Mistake for ParseBandError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        let message = format!("`{text}` is not a band");
        let hint = "write where healthy ends and stressed begins, as in \"50%..80%\", or \"off\"";
        reader.problems.error(span, message).hint(hint);
    }
}

impl Mistake for ParsePercentError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        let message = format!("`{text}` is not a part");
        reader.problems.error(span, message).hint("write it in percent, as in \"80%\" or \"0.5%\"");
    }
}
