//! Who asks: the caller's address, seen through the proxies that are trusted.

mod entry;
mod evidence;
mod forwarded;
mod text;

use std::net::{IpAddr, Ipv6Addr};

use dashpot_rules::{Identity, Trust};
use http::HeaderMap;

use entry::parse_entry;
pub use evidence::AddressEvidence;
use forwarded::{forwarded_for, last_element};
pub use text::{AddressText, address_text};

/// The most entries that are looked at, from the right. Nobody has so many proxies, and who sends
/// more wants to keep us busy.
const ENTRIES_MAX: u8 = 64;

/// The caller's address, and why we think so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientAddress<'a> {
    /// The address. One of IPv4 is told as such, also if it came mapped into IPv6.
    pub address: IpAddr,
    /// How it was found.
    pub why: AddressEvidence<'a>,
}

/// The caller's address: the peer, or whom trusted proxies say that they speak for. `None` only if
/// there is no peer with an address, as on a Unix socket.
///
/// Nothing is read of what an untrusted peer says.
#[must_use]
pub fn client_address<'a>(
    identity: &'a Identity,
    peer: Option<IpAddr>,
    headers: &'a HeaderMap,
) -> Option<ClientAddress<'a>> {
    address_by(&identity.trust, identity, peer, headers)
}

/// The same, if these are trusted.
pub(crate) fn address_by<'a>(
    trust: &Trust,
    identity: &'a Identity,
    peer: Option<IpAddr>,
    headers: &'a HeaderMap,
) -> Option<ClientAddress<'a>> {
    let peer = peer?.to_canonical();
    let header = identity.client_ip_header.as_str();
    let found = match trust {
        Trust::Nobody => ClientAddress { address: peer, why: AddressEvidence::NobodyTrusted },
        Trust::Proxies(_) if !is_trusted(trust, Some(peer)) => {
            ClientAddress { address: peer, why: AddressEvidence::PeerUntrusted { header } }
        }
        Trust::Proxies(_) => {
            let is_proxy = |address| is_trusted(trust, Some(address));
            past_proxies(peer, header, entries(header, headers), is_proxy)
        }
        Trust::Hops(hops) => hops_back(peer, header, entries(header, headers), hops.get()),
    };
    Some(found)
}

/// Whether the peer's word about others counts.
#[must_use]
pub fn is_trusted(trust: &Trust, peer: Option<IpAddr>) -> bool {
    let Some(peer) = peer else { return false };
    match trust {
        Trust::Nobody => false,
        Trust::Proxies(networks) => {
            let peer = peer.to_canonical();
            networks.iter().any(|network| network.contains(&peer))
        }
        Trust::Hops(_) => true,
    }
}

/// One entry of the header as it was written, and the address in it.
type Entry<'a> = (&'a [u8], Option<IpAddr>);

/// The entries of all lines of the header, the last one first.
fn entries<'a>(header: &str, headers: &'a HeaderMap) -> impl Iterator<Item = Entry<'a>> {
    let is_forwarded = header == "forwarded";
    let lines = headers.get_all(header).into_iter().rev();
    lines.flat_map(move |line| {
        // A line that ends in a comma has an empty last entry, and so does an empty line.
        let mut rest = Some(line.as_bytes());
        std::iter::from_fn(move || {
            let (before, last) = match rest? {
                line if is_forwarded => last_element(line),
                line => match line.iter().rposition(|byte| *byte == b',') {
                    Some(comma) => {
                        let (before, last) = line.split_at(comma);
                        (Some(before), last.get(1..).unwrap_or_default())
                    }
                    None => (None, line),
                },
            };
            rest = before;
            let last = last.trim_ascii();
            let address = if is_forwarded { forwarded_for(last) } else { parse_entry(last) };
            Some((last, address))
        })
    })
}

/// Walks left past proxies, to the first that is none.
fn past_proxies<'a>(
    peer: IpAddr,
    header: &'a str,
    entries: impl Iterator<Item = Entry<'a>>,
    is_proxy: impl Fn(IpAddr) -> bool,
) -> ClientAddress<'a> {
    let (mut address, mut place) = (peer, 0);
    for (seen, (written, said)) in (0..).zip(entries) {
        if seen == ENTRIES_MAX {
            return ClientAddress { address, why: AddressEvidence::TooMany { place, header } };
        }
        match said {
            // Lists may have empty entries, which mean nothing.
            None if written.is_empty() => {}
            None => {
                let why = AddressEvidence::Unreadable { place, header, written };
                return ClientAddress { address, why };
            }
            Some(said) => {
                (address, place) = (said, place + 1);
                if !is_proxy(address) {
                    return ClientAddress {
                        address,
                        why: AddressEvidence::Entry { place, header },
                    };
                }
            }
        }
    }
    ClientAddress { address, why: AddressEvidence::OnlyProxies { place, header } }
}

/// Goes so many entries to the left. What is in between does not matter: proxies may hide.
fn hops_back<'a>(
    peer: IpAddr,
    header: &'a str,
    entries: impl Iterator<Item = Entry<'a>>,
    hops: u8,
) -> ClientAddress<'a> {
    let (mut address, mut place, mut passed) = (peer, 0, 0);
    for (seen, (written, said)) in (0..).zip(entries) {
        if seen == ENTRIES_MAX {
            return ClientAddress { address, why: AddressEvidence::TooMany { place, header } };
        }
        if written.is_empty() {
            continue;
        }
        passed += 1;
        if let Some(said) = said {
            (address, place) = (said, passed);
        }
        if passed == hops {
            let why = match said {
                Some(_) => AddressEvidence::Hop { place, header },
                None => AddressEvidence::Unreadable { place, header, written },
            };
            return ClientAddress { address, why };
        }
    }
    ClientAddress { address, why: AddressEvidence::FewerHops { place, header, passed, hops } }
}

/// The network that the address is counted as. IPv4 addresses stay as they are, also those that
/// come mapped into IPv6.
#[must_use]
pub fn mask(address: IpAddr, ipv6_prefix: u8) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let dropped = 128_u32.saturating_sub(ipv6_prefix.into());
            let kept = u128::MAX.checked_shl(dropped).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests;
