//! What all connections of a thread use in turn, so that a quiet one needs nearly nothing.

use std::cell::RefCell;

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

thread_local! {
    static DESK: RefCell<Desk> = RefCell::new(Desk {
        input: vec![0; ROOM].into(),
        output: Vec::new(),
        reader: Reader::default(),
        policies: Policies::new(THROTTLE),
    });
}

/// Lets one connection do something there. Nobody waits at it.
pub(super) fn at_desk<T>(act: impl FnOnce(&mut Desk) -> T) -> T {
    DESK.with_borrow_mut(|desk| {
        let done = act(desk);
        desk.output.clear();
        desk.output.shrink_to(KEPT);
        desk.reader.shrink(KEPT);
        done
    })
}
