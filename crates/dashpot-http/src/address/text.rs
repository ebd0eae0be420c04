//! An address as part of a key.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::str;

use super::mask;
use crate::text::Text;

/// An address as it stands in keys; see [`address_text`].
pub struct AddressText(Text<48>); // The longest is `ffff:…:ffff/127`.

impl AddressText {
    /// The text, in plain ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.0.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Debug for AddressText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressText({self})")
    }
}

impl fmt::Display for AddressText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The network that the address is counted as, written down: `203.0.113.7`, `2001:db8::/64`.
#[must_use]
pub fn address_text(address: IpAddr, ipv6_prefix: u8) -> AddressText {
    let mut text = Text::new();
    match mask(address, ipv6_prefix) {
        IpAddr::V4(address) => {
            // In one piece: this is done for nearly every request.
            let mut digits = [0; 15];
            let mut room = digits.iter_mut();
            let mut length = 0;
            let mut push = |byte: u8| {
                if let Some(place) = room.next() {
                    *place = byte;
                    length += 1;
                }
            };
            for (index, octet) in address.octets().into_iter().enumerate() {
                if index > 0 {
                    push(b'.');
                }
                if octet >= 100 {
                    push(b'0' + octet / 100);
                }
                if octet >= 10 {
                    push(b'0' + octet / 10 % 10);
                }
                push(b'0' + octet % 10);
            }
            text.push(digits.get(..length).unwrap_or_default());
        }
        IpAddr::V6(address) => {
            let _ = write!(text, "{address}"); // Writing to memory does not fail.
            if ipv6_prefix < 128 {
                text.push(b"/");
                text.push_number(ipv6_prefix.into());
            }
        }
    }
    AddressText(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_its_network() {
        let written = |address: &str, prefix| {
            address_text(address.parse().unwrap(), prefix).as_str().to_owned()
        };
        assert_eq!(written("203.0.113.70", 64), "203.0.113.70");
        assert_eq!(written("::ffff:0.10.255.1", 64), "0.10.255.1");
        assert_eq!(written("2001:db8:1:2:3:4:5:6", 64), "2001:db8:1:2::/64");
        assert_eq!(written("2001:db8:1:2:3:4:5:6", 128), "2001:db8:1:2:3:4:5:6");
        assert_eq!(written("2001:db8:1:2:3:4:5:6", 0), "::/0");
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(written(longest, 127), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127");
    }
}
