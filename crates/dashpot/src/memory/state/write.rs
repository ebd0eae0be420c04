//! A store, written down.

use std::io::{self, Write};
use std::sync::Arc;

use super::format::{CELL, END, KEY, MAGIC, Output, VERSION};
use crate::memory::MemoryStore;
use crate::memory::kept::Kept;
use crate::memory::table::Table;
use crate::policy::Definition;
use crate::{Key, Timestamp};

/// A key whose mark tells whether marks are still made as they were.
pub(super) const KNOWN_KEY: &[u8] = b"which hash is this?";

/// Writes everything that is not as good as new, and says how many keys that are.
pub(super) fn store(store: &MemoryStore, out: &mut impl Write) -> io::Result<u64> {
    let mut out = Output::new(out);
    out.bytes(&MAGIC)?;
    out.bytes(&VERSION.to_le_bytes())?;
    out.bytes(&store.seed.to_le_bytes())?;
    out.bytes(&store.mark(Key::new(KNOWN_KEY)).to_le_bytes())?;
    let tables = store.tables.read().all().to_vec();
    let count = u32::try_from(tables.len()).map_err(io::Error::other)?;
    out.bytes(&count.to_le_bytes())?;
    let mut keys = 0;
    for table in &tables {
        keys += self::table(store, table, &mut out)?;
    }
    out.finish()?;
    Ok(keys)
}

fn table(store: &MemoryStore, table: &Table, out: &mut Output<'_, impl Write>) -> io::Result<u64> {
    // Definitions may be added meanwhile; states under those are written under the first.
    let definitions = table.known_definitions();
    let count = u16::try_from(definitions.len()).map_err(io::Error::other)?;
    out.bytes(&count.to_le_bytes())?;
    for definition in &definitions {
        self::definition(definition, out)?;
    }
    let mut keys = 0;
    let mut cursor = Some(0);
    // A page at a time: nobody who wants to add a key waits longer than it takes to copy one.
    let mut page = Vec::new();
    while let Some(mark) = cursor {
        page.clear();
        let now = store.now();
        cursor = table.visit(mark, &mut |mark, kept: &Kept| {
            if !kept.is_idle(now) {
                keys += 1;
                entry(KEY, mark, kept, &definitions, now, &mut page);
            }
        });
        out.bytes(&page)?;
    }
    page.clear();
    let now = store.now();
    store.overflow.visit(table.number(), |cell, kept| {
        if !kept.is_idle(now) {
            entry(CELL, cell.into(), kept, &definitions, now, &mut page);
        }
    });
    out.bytes(&page)?;
    out.bytes(&[END])?;
    Ok(keys)
}

fn definition(definition: &Definition, out: &mut Output<'_, impl Write>) -> io::Result<()> {
    let written = &definition.written;
    out.text(written.name())?;
    out.text(written.algorithm.name())?;
    out.text(&written.quota.to_string())?;
    out.text(written.zone.name())?;
    out.option(written.queue)?;
    out.option(written.undelayed)?;
    out.bytes(&[u8::from(written.any_window)])
}

fn entry(
    kind: u8,
    mark: u64,
    kept: &Kept,
    definitions: &[Arc<Definition>],
    now: Timestamp,
    out: &mut Vec<u8>,
) {
    let known =
        |kept: &Kept| definitions.iter().position(|known| known.keeps_alike(&kept.definition));
    let (index, converted);
    let (index, kept) = match known(kept) {
        Some(index) => (index, kept),
        // A copy of it, under a definition that is in the file. What is kept stays as it is.
        None => {
            let Some(first) = definitions.first() else {
                return; // There always is.
            };
            (index, converted) = (0, kept.under(first, now));
            (index, &converted)
        }
    };
    let Ok(index) = u16::try_from(index) else {
        return; // There are never so many definitions.
    };
    let words = kept.definition.engine.save(&kept.state);
    let Ok(count) = u16::try_from(words.len()) else {
        return; // No state is so long.
    };
    out.push(kind);
    out.extend(mark.to_le_bytes());
    out.extend(index.to_le_bytes());
    out.extend(kept.blocked_until.as_nanos().to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}
