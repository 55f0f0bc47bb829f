//! Classification of mobile hosts, and the socket options of connections to mobile and to fixed hosts.

use hopline_linux::route_lookup::{Route, Routes};
use hopline_linux::transparent::LegOptions;
use std::net::IpAddr;
use std::num::ParseIntError;
use std::str::FromStr;

/// Classification of hosts as mobile or fixed, with the socket options of each kind. The host at the end of a half decides
/// the options of that half.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegPolicy {
    /// Hosts that count as mobile. Default: none.
    pub mobile_hosts: MobileHosts,
    /// Socket options of a half that ends at a mobile host.
    pub mobile: LegOptions,
    /// Socket options of any other half.
    pub fixed: LegOptions,
}

/// Criterion that identifies mobile hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MobileHosts {
    /// The route to it leads through the interface of this name, which need not be there yet.
    ThroughInterface(String),
    /// It has an address in one of these networks.
    InNetworks(Vec<Network>),
}

/// Addresses with a prefix in common, such as `10.9.0.0/16` or `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Error of parsing a [`Network`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Not of this form.
    #[error(
        "`{0}` is no network: say an address, `/` and how many bits of it count, as in 10.9.0.0/16 or 2001:db8::/32"
    )]
    Form(String),
    /// More bits than an address has.
    #[error("`{text}` has no {prefix} bits that could count: at most {bits}")]
    Prefix {
        /// The text.
        text: String,
        /// Prefix length in the text, in bits.
        prefix: u8,
        /// Length of an address of this family, in bits.
        bits: u8,
    },
}

impl Default for MobileHosts {
    fn default() -> Self {
        Self::InNetworks(Vec::new())
    }
}

impl LegPolicy {
    /// Returns the socket options of a half that ends at `host`. `route` is the route to the host.
    pub(super) fn options_for(&self, host: IpAddr, route: Option<Route>, routes: &Routes) -> &LegOptions {
        let is_mobile = match &self.mobile_hosts {
            MobileHosts::InNetworks(networks) => networks.iter().any(|network| network.contains(host)),
            MobileHosts::ThroughInterface(name) => {
                routes.interface(name).is_some_and(|index| route == Some(Route::Remote(index)))
            }
        };
        if is_mobile { &self.mobile } else { &self.fixed }
    }
}

impl Network {
    /// Returns whether `address` is in the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ours, theirs, bits) = match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => (ours.to_bits().into(), theirs.to_bits().into(), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        let beside: u128 = ours ^ theirs;
        beside.checked_shr(bits - u32::from(self.prefix)).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    /// An address without a prefix is itself alone. Bits outside the prefix count for nothing.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let form = || NetworkError::Form(text.into());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| form())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(bits), str::parse).map_err(|_: ParseIntError| form())?;
        if prefix > bits {
            return Err(NetworkError::Prefix { text: text.into(), prefix, bits });
        }
        Ok(Self { address, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_contains_addresses_with_its_prefix() {
        assert!(contains("10.9.0.0/16", "10.9.255.1"));
        assert!(!contains("10.9.0.0/16", "10.10.0.1"));
        assert!(contains("10.9.3.7/16", "10.9.0.1"), "bits outside the prefix count for nothing");
        assert!(contains("10.9.0.1", "10.9.0.1"));
        assert!(!contains("10.9.0.1", "10.9.0.0"));
        assert!(contains("2001:db8::/32", "2001:db8:ffff::1"));
        assert!(!contains("2001:db8::/32", "2001:db9::1"));
    }

    #[test]
    fn a_network_with_an_empty_prefix_contains_its_whole_family() {
        assert!(contains("0.0.0.0/0", "255.1.2.3"));
        assert!(!contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "ffff::1"));
        assert!(!contains("::/0", "1.2.3.4"));
    }

    #[test]
    fn a_malformed_network_is_rejected_with_the_expected_form() {
        for text in ["", "10.9", "10.9.0.0/", "10.9.0.0/x", "10.9.0.0/-1", "10.9.0.0/999", "wlan0"] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains("as in 10.9.0.0/16"), "{error}");
        }
        let error = "10.9.0.0/33".parse::<Network>().unwrap_err().to_string();
        assert_eq!(error, "`10.9.0.0/33` has no 33 bits that could count: at most 32");
    }
}
