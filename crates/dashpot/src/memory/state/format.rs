//! The file, word by word. All numbers are little-endian.
//!
//! ```text
//! magic            8 bytes
//! version          u32
//! seed             u64      of the marks
//! check            u64      the mark of a known key, by which a changed hash is noticed
//! tables           u32
//! each table:
//!   definitions    u16      each: name, algorithm, quota, zone (u16 + text); queue, undelayed
//!                           (u8 0, or u8 1 + u64); any window (u8 0 or 1; not in version 1)
//!   entries, until one of kind 0:
//!     kind         u8       1: a key; 2: an overflow cell
//!     mark         u64      of a cell: its number
//!     definition   u16      the index above
//!     blocked      u64      until then, in nanoseconds since the Unix epoch; 0 if not
//!     words        u16 + u64 each
//! checksum         u64      XXH3 of all that precedes
//! ```

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use super::error::Fault;

pub(super) const MAGIC: [u8; 8] = *b"dashpot\x1a";
pub(super) const VERSION: u32 = 2;

pub(super) const END: u8 = 0;
pub(super) const KEY: u8 = 1;
pub(super) const CELL: u8 = 2;

/// Writes, and sums up what it wrote.
pub(super) struct Output<'w, W> {
    out: &'w mut W,
    sum: Xxh3,
}

impl<'w, W: Write> Output<'w, W> {
    pub(super) fn new(out: &'w mut W) -> Self {
        Self { out, sum: Xxh3::new() }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.out.write_all(bytes)
    }

    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        let length = u16::try_from(text.len()).map_err(io::Error::other)?;
        self.bytes(&length.to_le_bytes())?;
        self.bytes(text.as_bytes())
    }

    pub(super) fn option(&mut self, number: Option<u64>) -> io::Result<()> {
        match number {
            None => self.bytes(&[0]),
            Some(number) => {
                self.bytes(&[1])?;
                self.bytes(&number.to_le_bytes())
            }
        }
    }

    /// Ends the file with the sum.
    pub(super) fn finish(self) -> io::Result<()> {
        self.out.write_all(&self.sum.digest().to_le_bytes())
    }
}

/// Reads, and sums up what it read.
pub(super) struct Input<'r, R> {
    input: &'r mut R,
    sum: Xxh3,
    offset: u64,
}

impl<'r, R: Read> Input<'r, R> {
    pub(super) fn new(input: &'r mut R) -> Self {
        Self { input, sum: Xxh3::new(), offset: 0 }
    }

    pub(super) fn damaged(&self, what: &'static str) -> Fault {
        Fault::Damaged(self.offset, what)
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        match self.input.read_exact(bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("it ends here"))
            }
            Err(error) => Err(Fault::Read(error)),
            Ok(()) => {
                self.sum.update(bytes);
                self.offset += bytes.len() as u64;
                Ok(())
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(super) fn bool(&mut self) -> Result<bool, Fault> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.damaged("neither yes nor no")),
        }
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn text(&mut self) -> Result<String, Fault> {
        let mut bytes = vec![0; self.u16()?.into()];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.damaged("no text"))
    }

    pub(super) fn option(&mut self) -> Result<Option<u64>, Fault> {
        self.bool()?.then(|| self.u64()).transpose()
    }

    /// Reads the sum at the end, and sees that it is the end.
    pub(super) fn finish(mut self) -> Result<(), Fault> {
        let sum = self.sum.digest();
        if self.u64()? != sum {
            return Err(self.damaged("the checksum is another"));
        }
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("more follows")),
            Err(error) => Err(Fault::Read(error)),
        }
    }
}
