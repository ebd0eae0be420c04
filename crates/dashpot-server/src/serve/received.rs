//! Bodies as they come in.

use bytes::{Bytes, BytesMut};

/// A body as it comes in: mostly in one piece, which is not copied then.
pub(crate) enum Received {
    Nothing,
    One(Bytes),
    Several(BytesMut),
}

impl Received {
    pub(crate) fn with(self, data: Bytes) -> Self {
        match self {
            Self::Nothing => Self::One(data),
            Self::One(first) => {
                let mut all = BytesMut::with_capacity(first.len() + data.len());
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
                Self::Several(all)
            }
            Self::Several(mut all) => {
                all.extend_from_slice(&data);
                Self::Several(all)
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(data) => data.len(),
            Self::Several(all) => all.len(),
        }
    }

    pub(crate) fn whole(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(data) => data,
            Self::Several(all) => all.freeze(),
        }
    }
}
