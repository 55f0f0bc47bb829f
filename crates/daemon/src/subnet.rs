//! Subnet of hosts.

use ipnet::IpNet;
use std::net::IpAddr;
use std::str::FromStr;

/// Subnet, without bits beyond the prefix. A bare address is a subnet of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet(pub IpNet);

impl FromStr for Subnet {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let net =
            text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| ())?;
        if net.trunc() == net { Ok(Self(net)) } else { Err(()) }
    }
}

impl Subnet {
    /// Returns whether it is an IPv4 subnet.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        matches!(self.0, IpNet::V4(_))
    }
}
