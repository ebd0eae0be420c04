//! A store, read back.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rapidhash::v3::RapidSecrets;

use super::error::{Fault, StateError};
use super::format::{CELL, END, Input, KEY, MAGIC, VERSION};
use super::write::KNOWN_KEY;
use crate::memory::kept::Kept;
use crate::memory::page::DEFINITION_BITS;
use crate::memory::{MemoryStore, MemoryStoreBuilder};
use crate::policy::Definition;
use crate::{Algorithm, Key, Policy, Quota, Timestamp, Zone};

/// Sees that a file may be written over: that there is none, or that it is one of ours.
pub(super) fn refuse_others(path: &Path) -> Result<(), StateError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StateError::read(path, error)),
    };
    match header(&mut Input::new(&mut file)) {
        // Whether all of it is right is not asked here: it is about to be replaced.
        Ok(_) | Err(Fault::Damaged(..)) => Ok(()),
        Err(fault) => Err(fault.at(path)),
    }
}

/// Sees that all of a file is right.
pub(super) fn verify(input: &mut impl Read) -> Result<(), Fault> {
    let mut input = Input::new(input);
    let Header { version, seed, mark } = header(&mut input)?;
    if MemoryStore::mark_by(&RapidSecrets::seed(seed), Key::new(KNOWN_KEY)) != mark {
        return Err(input.damaged("keys are hashed in another way"));
    }
    tables(&mut input, version, |_, _, _| ())?;
    input.finish()
}

/// The store in a file that is right.
pub(super) fn store(
    input: &mut impl Read,
    builder: MemoryStoreBuilder,
) -> Result<MemoryStore, Fault> {
    let mut input = Input::new(input);
    let Header { version, seed, .. } = header(&mut input)?;
    let store = builder.build_with(seed);
    tables(&mut input, version, |kind, mark, kept| {
        if !kept.is_idle(store.now()) {
            store.restore(kind == CELL, mark, kept);
        }
    })?;
    input.finish()?;
    Ok(store)
}

/// How a file begins.
struct Header {
    version: u32,
    seed: u64,
    /// What it made of the known key.
    mark: u64,
}

fn header(input: &mut Input<'_, impl Read>) -> Result<Header, Fault> {
    let mut magic = [0; MAGIC.len()];
    match input.fill(&mut magic) {
        Ok(()) if magic == MAGIC => {}
        Err(fault @ Fault::Read(_)) => return Err(fault),
        _ => return Err(Fault::Foreign),
    }
    let version = input.u32()?;
    if version > VERSION {
        return Err(Fault::Newer(version));
    }
    if version == 0 {
        return Err(input.damaged("there is no such version"));
    }
    Ok(Header { version, seed: input.u64()?, mark: input.u64()? })
}

fn tables(
    input: &mut Input<'_, impl Read>,
    version: u32,
    mut found: impl FnMut(u8, u64, Kept),
) -> Result<(), Fault> {
    for _ in 0..input.u32()? {
        let mut definitions = Vec::new();
        for _ in 0..input.u16()? {
            definitions.push(definition(input, version)?);
        }
        loop {
            match input.u8()? {
                END => break,
                kind @ (KEY | CELL) => {
                    let (mark, kept) = entry(input, &definitions)?;
                    if kind == KEY && mark & !DEFINITION_BITS != mark.max(DEFINITION_BITS + 1) {
                        return Err(input.damaged("no key has such a mark"));
                    }
                    found(kind, mark, kept);
                }
                _ => return Err(input.damaged("there is no such kind of entry")),
            }
        }
    }
    Ok(())
}

fn definition(input: &mut Input<'_, impl Read>, version: u32) -> Result<Arc<Definition>, Fault> {
    let name = input.text()?;
    let (algorithm, quota, zone) = (input.text()?, input.text()?, input.text()?);
    let (queue, undelayed) = (input.option()?, input.option()?);
    let any_window = version > 1 && input.bool()?;
    let parsed = || {
        let algorithm: Algorithm = algorithm.parse().ok()?;
        let (quota, zone): (Quota, Zone) = (quota.parse().ok()?, zone.parse().ok()?);
        let mut builder = Policy::builder(name, quota).algorithm(algorithm).zone(zone);
        builder = if let Some(places) = queue { builder.queue(places) } else { builder };
        builder = if let Some(places) = undelayed { builder.undelayed(places) } else { builder };
        builder = if any_window { builder.any_window() } else { builder };
        Some(builder.build().ok()?.definition().clone())
    };
    parsed().ok_or_else(|| input.damaged("there can be no such policy"))
}

fn entry(
    input: &mut Input<'_, impl Read>,
    definitions: &[Arc<Definition>],
) -> Result<(u64, Kept), Fault> {
    let mark = input.u64()?;
    let index = usize::from(input.u16()?);
    let blocked_until = Timestamp::from_nanos(input.u64()?);
    let mut words = Vec::new();
    for _ in 0..input.u16()? {
        words.push(input.u64()?);
    }
    let Some(definition) = definitions.get(index).cloned() else {
        return Err(input.damaged("there is no such definition"));
    };
    match definition.engine.restore(&words) {
        Some(state) => Ok((mark, Kept { definition, state, blocked_until })),
        None => Err(input.damaged("there can be no such state")),
    }
}
