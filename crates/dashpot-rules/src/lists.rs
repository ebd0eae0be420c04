//! Who is never limited, and who is always refused.

use std::borrow::Cow;
use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::secret::hexadecimal;
use crate::{Descriptor, Fact};

/// Networks, and values of facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) networks: Networks,
    pub(crate) values: Vec<(Fact, HashSet<Vec<u8>>)>,
}

impl Lists {
    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.values.is_empty()
    }

    /// The fact by which the request is on the list, if it is. The path is a normal one.
    pub(crate) fn find(&self, request: &impl Descriptor, path: &str) -> Option<&Fact> {
        if !self.networks.is_empty()
            && request.address().is_some_and(|address| self.networks.contains(address))
        {
            return Some(&Fact::Ip);
        }
        let listed = |(fact, values): &&(Fact, HashSet<Vec<u8>>)| {
            let value = match fact {
                Fact::Path => Some(Cow::Borrowed(path.as_bytes())),
                _ => request.fact(fact),
            };
            let Some(value) = value else { return false };
            if fact.is_secret() {
                values.contains(hexadecimal(&value).as_bytes())
            } else {
                values.contains(value.as_ref())
            }
        };
        self.values.iter().find(listed).map(|(fact, _)| fact)
    }
}

/// A network as addresses are looked up: IPv4 that is written as IPv6 is IPv4.
pub(crate) fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let mapped = v6.addr().to_ipv4_mapped();
    let length = v6.prefix_len().checked_sub(96);
    let v4 = mapped.zip(length).and_then(|(address, length)| Ipv4Net::new(address, length).ok());
    v4.map_or(network, IpNet::V4)
}

/// Networks that do not overlap, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Networks {
    v4: Vec<Ipv4Net>,
    v6: Vec<Ipv6Net>,
}

impl Networks {
    pub(crate) fn new(networks: &[IpNet]) -> Self {
        let mut all = Self::default();
        for network in IpNet::aggregate(&networks.to_vec()) {
            match network {
                IpNet::V4(network) => all.v4.push(network),
                IpNet::V6(network) => all.v6.push(network),
            }
        }
        all.v4.sort();
        all.v6.sort();
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        // The last network that begins at or before it is the only one it can be in.
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let after = self.v4.partition_point(|network| network.network() <= address);
                self.v4.get(..after).and_then(<[_]>::last).is_some_and(|net| net.contains(&address))
            }
            IpAddr::V6(address) => {
                let after = self.v6.partition_point(|network| network.network() <= address);
                self.v6.get(..after).and_then(<[_]>::last).is_some_and(|net| net.contains(&address))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_the_same_in_either_notation() {
        for (written, meant) in [
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:192.0.2.7/128", "192.0.2.7/32"),
            ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
            // More than IPv4.
            ("::/0", "::/0"),
            ("::ffff:0:0/95", "::ffff:0:0/95"),
            ("2001:db8::/104", "2001:db8::/104"),
            ("10.0.0.0/8", "10.0.0.0/8"),
        ] {
            let network = |text: &str| text.parse::<IpNet>().unwrap();
            assert_eq!(canonical(network(written)), network(meant), "{written}");
        }
    }

    #[test]
    fn an_address_is_in_a_network_or_not() {
        let networks = ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.7/32", "2001:db8::/32"];
        let networks: Vec<IpNet> = networks.iter().map(|text| text.parse().unwrap()).collect();
        let all = Networks::new(&networks);
        for address in ["10.0.0.0", "10.255.255.255", "192.0.2.7", "2001:db8::1", "::ffff:10.1.2.3"]
        {
            assert!(all.contains(address.parse().unwrap()), "{address}");
        }
        for address in ["9.255.255.255", "11.0.0.0", "192.0.2.6", "192.0.2.8", "2001:db9::", "::1"]
        {
            assert!(!all.contains(address.parse().unwrap()), "{address}");
        }
    }
}
