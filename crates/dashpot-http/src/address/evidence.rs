//! Why an address is taken for the caller's, in words for whoever has to find out.

use std::fmt;

/// Why an address is taken for the caller's. As text, it is a sentence for people.
///
/// A `place` counts the entries of the header from the right; 0 is the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressEvidence<'a> {
    /// The peer: no proxies are configured.
    NobodyTrusted,
    /// The peer: it is no trusted proxy.
    PeerUntrusted {
        /// The header that was not read.
        header: &'a str,
    },
    /// The first entry that is no trusted proxy.
    Entry {
        /// Which one.
        place: u8,
        /// The header.
        header: &'a str,
    },
    /// There are only trusted proxies: the leftmost of them, or the peer.
    OnlyProxies {
        /// Which one.
        place: u8,
        /// The header.
        header: &'a str,
    },
    /// As many hops away as there are proxies.
    Hop {
        /// Which one.
        place: u8,
        /// The header.
        header: &'a str,
    },
    /// There are fewer entries than proxies: the leftmost address, or the peer.
    FewerHops {
        /// Which one.
        place: u8,
        /// The header.
        header: &'a str,
        /// How many entries there are.
        passed: u8,
        /// How many there should be.
        hops: u8,
    },
    /// The last good one before an entry that is no address.
    Unreadable {
        /// Which one.
        place: u8,
        /// The header.
        header: &'a str,
        /// What is no address.
        written: &'a [u8],
    },
    /// The last good one before we stopped reading.
    TooMany {
        /// Which one.
        place: u8,
        /// The header.
        header: &'a str,
    },
}

impl fmt::Display for AddressEvidence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NobodyTrusted => {
                f.write_str("the peer; no proxy is trusted, so no header was read")
            }
            Self::PeerUntrusted { header } => {
                write!(f, "the peer; it is no trusted proxy, so {header} was not read")
            }
            Self::Entry { place, header } => {
                write!(f, "{}, the first that is no trusted proxy", Place(place, header))
            }
            Self::OnlyProxies { place: 0, header } => {
                write!(f, "the peer; it is a trusted proxy, but {header} names nobody")
            }
            Self::OnlyProxies { place, header } => {
                write!(f, "{}, the leftmost; all are trusted proxies", Place(place, header))
            }
            Self::Hop { place, header } => {
                write!(f, "{}, as many as there are proxies", Place(place, header))
            }
            Self::FewerHops { place, header, passed, hops } => {
                write!(
                    f,
                    "{}; {hops} proxies are configured, but it names {passed}",
                    Place(place, header)
                )
            }
            Self::Unreadable { place, header, written } => {
                let (written, more) = match written.get(..40) {
                    Some(start) => (start, "…"),
                    None => (written, ""),
                };
                let written = written.escape_ascii();
                let place = Place(place, header);
                write!(f, "{place}; stopped at `{written}{more}`, which is no address")
            }
            Self::TooMany { place, header } => {
                write!(f, "{}; stopped there, for it has too many entries", Place(place, header))
            }
        }
    }
}

/// `2nd from the right in x-forwarded-for`.
struct Place<'a>(u8, &'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(place, header) = *self;
        let ending = match (place % 10, place % 100) {
            (1, teen) if teen != 11 => "st",
            (2, teen) if teen != 12 => "nd",
            (3, teen) if teen != 13 => "rd",
            _ => "th",
        };
        match place {
            0 => write!(f, "the peer, for lack of a better one in {header}"),
            1 => write!(f, "the last in {header}"),
            _ => write!(f, "{place}{ending} from the right in {header}"),
        }
    }
}
