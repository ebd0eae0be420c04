//! What all connections of a thread use in turn, so that a quiet one needs nearly nothing.

use std::cell::Cell;

use dashpot_resp::{Policies, Reader};

use crate::serve::metrics::THROTTLE;

/// How much is read at once.
const ROOM: usize = 64 * 1024;

/// How much room for answers is kept.
const KEPT: usize = 256 * 1024;

/// What a connection uses while it is its turn.
pub(super) struct Desk {
    /// What was read just now.
    pub(super) input: Box<[u8]>,
    /// Answers that are not written yet.
    pub(super) output: Vec<u8>,
    pub(super) reader: Reader,
    pub(super) policies: Policies,
}

impl Desk {
    fn new() -> Box<Self> {
        Box::new(Self {
            input: vec![0; ROOM].into(),
            output: Vec::new(),
            reader: Reader::default(),
            policies: Policies::new(THROTTLE),
        })
    }
}

thread_local! {
    /// None before the first, and while somebody is there.
    static DESK: Cell<Option<Box<Desk>>> = const { Cell::new(None) };
}

/// Lets one connection do something there. Nobody waits at it, and whoever panics leaves nothing behind.
pub(super) fn at_desk<T>(act: impl FnOnce(&mut Desk) -> T) -> T {
    let mut desk = DESK.take().unwrap_or_else(Desk::new);
    let done = act(&mut desk);
    desk.output.clear();
    desk.output.shrink_to(KEPT);
    desk.reader.shrink(KEPT);
    DESK.set(Some(desk));
    done
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn who_panics_leaves_nothing_behind() {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            at_desk(|desk| {
                desk.input = Box::default();
                desk.output.extend_from_slice(b"a secret");
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        at_desk(|desk| {
            assert_eq!(desk.input.len(), ROOM);
            assert!(desk.output.is_empty());
        });
    }
}
