//! `RateLimit` and `RateLimit-Policy`, of the current IETF draft and of draft 07.

use std::time::Duration;

use http::HeaderMap;
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

use super::{Allowance, LONGEST, Refill, Unit};

/// Longer names are somebody's idea of a joke.
const NAME_MAX: usize = 128;

/// Reads what is there.
pub(super) fn read(headers: &HeaderMap, out: &mut Vec<Allowance>) {
    let Some(state) = joined(headers, "ratelimit") else { return };
    if let Ok(state) = Parser::new(&state).parse::<List>()
        && state.iter().all(|entry| name(entry).is_some())
    {
        let policies = joined(headers, "ratelimit-policy").unwrap_or_default();
        let policies: List = Parser::new(&policies).parse().unwrap_or_default();
        for told in state.iter().filter_map(|entry| current(entry, &policies)) {
            // One policy may be told of by its parts: the part of which least is left counts.
            match out.iter_mut().find(|known| known.name == told.name) {
                Some(known) if known.remaining > told.remaining => *known = told,
                Some(_) => {}
                None => out.push(told),
            }
        }
    } else if let Ok(state) = Parser::new(&state).parse::<Dictionary>() {
        out.extend(draft_07(&state));
    }
}

/// `"burst";r=50;t=30`, and what the policy of that name says: `"burst";q=100;w=60;qu="requests"`.
fn current(state: &ListEntry, policies: &List) -> Option<Allowance> {
    let name = name(state).filter(|name| name.len() <= NAME_MAX)?;
    let remaining = integer(state, "r")?;
    let policy = policies.iter().find(|policy| self::name(policy) == Some(name));
    let of_policy = |key| policy.and_then(|policy| integer(policy, key));
    let unit = policy.and_then(|policy| parameter(policy, "qu"));
    let unit = match unit.and_then(BareItem::as_string).map(|unit| unit.as_str()) {
        None | Some("requests") => Unit::Requests,
        // There is nothing to wait for but an answer, and the server will say so.
        Some("concurrent-requests") => return None,
        Some("tokens") => Unit::Tokens,
        Some(_) => Unit::Other,
    };
    Some(Allowance {
        name: name.into(),
        unit,
        limit: of_policy("q"),
        remaining: Some(remaining),
        // After a whole window, everything is back for sure.
        reset_after: integer(state, "t").or_else(|| of_policy("w")).map(seconds),
        refill: Refill::AtOnce,
    })
}

/// `limit=100, remaining=75, reset=30`.
fn draft_07(state: &Dictionary) -> Option<Allowance> {
    let number = |key| match state.get(key)? {
        ListEntry::Item(item) => whole(&item.bare_item),
        ListEntry::InnerList(_) => None,
    };
    let remaining = number("remaining")?;
    Some(Allowance {
        name: "ratelimit".into(),
        unit: Unit::Requests,
        limit: number("limit"),
        remaining: Some(remaining),
        reset_after: number("reset").map(seconds),
        refill: Refill::AtOnce,
    })
}

fn name(entry: &ListEntry) -> Option<&str> {
    match entry {
        ListEntry::Item(Item { bare_item: BareItem::String(name), .. }) => Some(name.as_str()),
        _ => None,
    }
}

fn parameter<'e>(entry: &'e ListEntry, key: &str) -> Option<&'e BareItem> {
    match entry {
        ListEntry::Item(item) => item.params.get(key),
        ListEntry::InnerList(_) => None,
    }
}

fn integer(entry: &ListEntry, key: &str) -> Option<u64> {
    whole(parameter(entry, key)?)
}

fn whole(item: &BareItem) -> Option<u64> {
    u64::try_from(i64::from(item.as_integer()?)).ok()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(LONGEST)
}

/// All lines of a field, as the one it stands for.
fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().ok());
    let lines: Vec<&str> = lines.collect::<Option<_>>()?;
    (!lines.is_empty()).then(|| lines.join(", "))
}
