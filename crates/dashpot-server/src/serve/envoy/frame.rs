//! How a message is framed in gRPC: before it come whether it is compressed, and how long it is.

use std::cmp::Ordering;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

/// What comes before a message, in bytes.
pub(crate) const PREFIX: usize = 5;

/// Why a body is not one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// There is nothing, or not even all that comes before a message.
    Nothing,
    /// It would have to be inflated, and a few bytes can be a gigabyte.
    Compressed,
    /// It says that it is longer than messages may be.
    TooLong,
    /// It says that it is longer than what came.
    Early,
    /// There is more than it says.
    Several,
}

/// A message with what comes before it.
pub(crate) fn pack(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX + length);
    framed.put_u8(0);
    // Nothing that we say is that long.
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut framed);
    framed.freeze()
}

/// Takes off what comes before a message of at most so many bytes; copies nothing, and believes no length.
pub(crate) fn unpack(mut body: Bytes, most: usize) -> Result<Bytes, FrameError> {
    if body.len() < PREFIX {
        return Err(FrameError::Nothing);
    }
    let is_compressed = body.get_u8() != 0;
    let length = body.get_u32();
    if is_compressed {
        return Err(FrameError::Compressed);
    }
    match usize::try_from(length) {
        Ok(length) if length <= most => match length.cmp(&body.len()) {
            Ordering::Equal => Ok(body),
            Ordering::Greater => Err(FrameError::Early),
            Ordering::Less => Err(FrameError::Several),
        },
        _ => Err(FrameError::TooLong),
    }
}
