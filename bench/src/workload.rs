//! Who asks, and in which order. Made before the clock starts, and the same for every peer.

use std::fmt::Write;

/// How the keys lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In the order of their numbers: whoever asks fetches a key from anywhere before it can look
    /// it up. This cost is the same for all peers and brings their figures closer together.
    Scattered,
    /// In the order in which they are asked about: a key is at hand, as one is that was just parsed
    /// out of a request, and only the limiter's own memory is far.
    AtHand,
}

impl Layout {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Scattered => "scattered",
            Self::AtHand => "at hand",
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        if name == Self::AtHand.name() { Self::AtHand } else { Self::Scattered }
    }
}

pub(crate) struct Workload {
    pub(crate) keys: Vec<String>,
    /// For each thread, which key is next.
    pub(crate) streams: Vec<Vec<u32>>,
    /// Which key is inserted next: an order of its own, lest a peer's memory lie in the order of a
    /// stream.
    pub(crate) insertion: Vec<u32>,
}

/// Long enough that going round again is not noticed.
const SHORTEST_STREAM: usize = 1 << 16;

impl Workload {
    pub(crate) fn new(keys: usize, threads: usize, layout: Layout) -> Self {
        let count = u32::try_from(keys).expect("fewer keys than that");
        let named = |number: u32| key(u64::from(number));
        let stream = |thread: usize| match layout {
            _ if keys < SHORTEST_STREAM => picked(count, thread as u64),
            Layout::Scattered => shuffled(count, thread as u64),
            Layout::AtHand => {
                let start = count / threads as u32 * thread as u32;
                (start..count).chain(0..start).collect()
            }
        };
        Self {
            keys: match layout {
                Layout::Scattered => (0..count).map(named).collect(),
                Layout::AtHand => shuffled(count, 1 << 32).into_iter().map(named).collect(),
            },
            streams: (0..threads).map(stream).collect(),
            insertion: shuffled(count, 1 << 33),
        }
    }
}

/// Keys that never came before, made a batch at a time so that they take no memory to speak of.
pub(crate) struct Newcomers {
    next: u64,
    batch: Vec<String>,
}

const BATCH: usize = 4096;

impl Newcomers {
    pub(crate) fn new() -> Self {
        Self { next: 0, batch: vec![String::with_capacity(16); BATCH] }
    }

    /// The same keys again, from the first.
    pub(crate) fn restart(&mut self) {
        self.next = 0;
    }

    /// The next batch.
    pub(crate) fn next(&mut self) -> &[String] {
        for key in &mut self.batch {
            key.clear();
            write_key(key, self.next);
            self.next += 1;
        }
        &self.batch
    }
}

/// `user-00001234`.
pub(crate) fn key(number: u64) -> String {
    let mut key = String::with_capacity(13);
    write_key(&mut key, number);
    key
}

fn write_key(key: &mut String, number: u64) {
    write!(key, "user-{number:08}").expect("a string takes any text");
}

fn picked(count: u32, seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    (0..SHORTEST_STREAM).map(|_| random.below(count)).collect()
}

fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut random = Random(seed);
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last as usize, random.below(last + 1) as usize);
    }
    order
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = (word ^ (word >> 31)) >> 32;
        ((high * u64::from(bound)) >> 32) as u32
    }
}
