//! IPv4 and IPv6 networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// IPv4 or IPv6 network: address and prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// First address of the network.
    pub address: IpAddr,
    /// Prefix length in bits: 0–32 for IPv4, 0–128 for IPv6.
    pub prefix: u8,
}

impl Network {
    /// Returns whether `address` belongs to the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && first(address, self.prefix) == self.address
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || String::from("a network is an address and its common bits: 10.9.0.0/24, fd09::/64");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.parse().ok().filter(|&prefix: &u8| prefix <= bits).ok_or_else(wrong)?;
        match first(address, prefix) {
            network if network == address => Ok(Self { address, prefix }),
            network => Err(format!("{address} is an address of the network {network}/{prefix}")),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Returns the first address of the network with a prefix of `prefix` bits that contains `address`.
fn first(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_round_trip() {
        for text in ["10.9.0.0/24", "0.0.0.0/0", "192.0.2.7/32", "fd09::/64", "::/0", "fd09::1/128"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        let network: Network = "10.9.0.0/24".parse().unwrap();
        assert!(network.contains([10, 9, 0, 255].into()) && !network.contains([10, 9, 1, 0].into()));
        assert!(!network.contains(Ipv6Addr::LOCALHOST.into()));
    }

    #[test]
    fn a_malformed_network_is_rejected_with_the_expected_form() {
        for wrong in ["", "10.9.0.0", "10.9.0.0/33", "10.9.0/24", "fd09::/129", "x/8", "10.9.0.0/-1"] {
            assert!(wrong.parse::<Network>().unwrap_err().starts_with("a network is"), "{wrong}");
        }
        assert_eq!(
            "10.9.0.7/24".parse::<Network>(),
            Err("10.9.0.7 is an address of the network 10.9.0.0/24".into())
        );
    }
}
