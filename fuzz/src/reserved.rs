//! Reservations: texts that callers keep and bring back to `POST /v1/settle`.

use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashpot::{Cost, Key, Policy, Reservation, Timestamp, Zone};

use crate::parts::split;
use crate::serve::reservation::{How, Part, Taken, Unknown, hex};
use crate::serve::secret::{SIGNATURE, Secret};

static OURS: LazyLock<Secret> = LazyLock::new(|| secret("redis://a"));
/// With the same token, of those who count elsewhere.
static THEIRS: LazyLock<Secret> = LazyLock::new(|| secret("redis://b"));

fn secret(place: &str) -> Secret {
    Secret::new(Some("token"), place).expect("a token needs no randomness")
}

const HOUR: Duration = Duration::from_secs(3600);
const PROCESS: u64 = 7;

/// What was taken, part by part; and the same bytes as a text, and as what is in one that is signed.
pub fn survives(data: &[u8]) {
    assert_eq!(Taken::open(&String::from_utf8_lossy(data), &OURS).err(), Some(Unknown::Foreign));
    signed(data);
    if let Ok(text) = str::from_utf8(data)
        && let Some(bytes) = hex::decode(text)
    {
        assert_eq!(hex::encode(&bytes), text.to_ascii_lowercase());
    }
    let taken: Vec<_> = data.split(|byte| *byte == 0).take(4).filter_map(reservation).collect();
    if !taken.is_empty() {
        is_kept(&taken, data);
    }
}

/// A line for each: name, limit, algorithm, zone, and numbers; then the key.
fn reservation(data: &[u8]) -> Option<(Reservation, How, bool)> {
    let mut rest = data;
    let mut line = || {
        let (line, after) = split(rest, b'\n');
        rest = after;
        str::from_utf8(line).ok()
    };
    let (name, quota, algorithm) = (line()?, line()?.parse().ok()?, line()?.parse().ok()?);
    let zone = line()?.parse().unwrap_or(Zone::UTC);
    let numbers: Vec<u64> = line()?.split(' ').filter_map(|number| number.parse().ok()).collect();
    let number = |place: usize| numbers.get(place).copied();
    let mut policy = Policy::builder(name, quota).algorithm(algorithm).zone(zone);
    if let Some(places) = number(5) {
        policy = policy.queue(places).undelayed(number(6).unwrap_or(0));
    }
    let percent = number(3).unwrap_or(100).to_le_bytes()[0];
    let (cost, at) = (Cost::new(number(0)?), Timestamp::from_nanos(number(1)?));
    let how = [How::Used, How::Whole, How::Release][number(4).unwrap_or(0) as usize % 3];
    let policy = policy.build().ok()?.reduced_to(percent);
    let taken = Reservation::new(policy, Key::new(rest), cost, at);
    let permit = number(2).unwrap_or(0);
    Some((taken.with_permit(permit), how, permit % 2 == 1))
}

/// Whoever gave it out reads what was taken, and nobody anything else.
fn is_kept(all: &[(Reservation, How, bool)], data: &[u8]) {
    let part = |(taken, how, local): &(Reservation, How, bool)| Part::new(taken, *how, *local);
    let taken = Taken::new(all.iter().map(part).collect(), PROCESS, HOUR);
    let text = taken.seal(&OURS);
    let opened = Taken::open(&text, &OURS).expect("it was just sealed");
    assert_eq!(written(&opened), written(&taken));
    assert_eq!(opened.parts(PROCESS).count(), all.len());
    // What one process counted by itself is no other's.
    let elsewhere = all.iter().filter(|(_, _, local)| !local).count();
    assert_eq!(opened.parts(PROCESS + 1).count(), elsewhere);
    assert_eq!(opened.is_local(), elsewhere == 0);
    for (part, (was, how, local)) in opened.parts(PROCESS).zip(all) {
        let read = part.reservation().expect("what was taken once is known");
        let (policy, meant) = (read.policy(), was.policy());
        assert!(policy.same_counters(meant), "{policy:?}, {meant:?}");
        assert_eq!((policy.name(), policy.quota()), (meant.name(), meant.quota()));
        assert_eq!((policy.queue(), policy.undelayed()), (meant.queue(), meant.undelayed()));
        assert_eq!((policy.percent(), policy.limit()), (meant.percent(), meant.limit()));
        assert_eq!(read.key().as_bytes(), was.key().as_bytes());
        assert_eq!((read.cost(), read.permit()), (was.cost(), was.permit()));
        assert_eq!(read.charged_at(), was.charged_at());
        assert_eq!((part.is_permit(), part.local), (*how == How::Release, *local));
        let charges = if *how == How::Used { Cost::new(3) } else { was.cost() };
        assert_eq!(part.charge(3), charges);
    }
    let is_foreign = |text: &str| Taken::open(text, &OURS).err() == Some(Unknown::Foreign);
    assert_eq!(Taken::open(&text, &THEIRS).err(), Some(Unknown::Foreign));
    // Others somewhere else in each input: all of them take too long.
    let (first, step) = (data.iter().map(|byte| usize::from(*byte)).sum::<usize>(), text.len() / 8);
    for place in (first % step..text.len()).step_by(step) {
        let (before, after) = text.split_at(place);
        for other in ["A", "_", "=", "\u{e9}", ""] {
            let changed = format!("{before}{other}{}", &after[1..]);
            assert!(changed == text || is_foreign(&changed), "{changed} is believed, as {text}");
        }
        assert!(is_foreign(before), "its beginning {before} is believed");
    }
    assert!(is_foreign(&format!("{text}A")) && is_foreign(&format!("{text}=")));
    let late = Taken::new(all.iter().map(part).collect(), PROCESS, Duration::ZERO);
    assert_eq!(Taken::open(&late.seal(&OURS), &OURS).err(), Some(Unknown::Late));
}

/// As an instance of another version may have signed it: it is understood, or none of ours.
fn signed(message: &[u8]) {
    let whole = [message, &OURS.sign(message)].concat();
    assert_eq!(whole.len(), message.len() + SIGNATURE);
    let Ok(taken) = Taken::open(&URL_SAFE_NO_PAD.encode(whole), &OURS) else { return };
    for part in taken.parts(PROCESS) {
        let charge = part.charge(1);
        assert!(part.reservation().is_none_or(|read| charge.units() <= read.cost().units().max(1)));
    }
    let again = Taken::open(&taken.seal(&OURS), &OURS).expect("it was just sealed");
    assert_eq!(written(&again), written(&taken));
}

fn written(taken: &Taken) -> String {
    serde_json::to_string(taken).expect("it is JSON")
}
