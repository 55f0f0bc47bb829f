//! Versions of IP, as the programs that set up rules call them, and which of them this machine has.

use crate::subnet::Subnet;
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Family {
    V4,
    V6,
}

/// State of IPv6 on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ipv6Support {
    /// The kernel has none: it was built without, or started with `ipv6.disable=1`. Or no interface has an address: all have
    /// `disable_ipv6`, as in many containers.
    Absent,
    /// The kernel has it, and there is no program that makes chains for it.
    WithoutChains,
    /// There is all that rules need.
    Present,
}

impl Family {
    /// Returns whether a subnet is of this version.
    pub(crate) const fn has(self, subnet: &Subnet) -> bool {
        subnet.is_ipv4() == matches!(self, Self::V4)
    }

    /// Returns the option of ip(8).
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    pub(crate) const fn iptables(self) -> &'static str {
        match self {
            Self::V4 => "iptables",
            Self::V6 => "ip6tables",
        }
    }

    pub(super) const fn restore(self) -> &'static str {
        match self {
            Self::V4 => "iptables-restore",
            Self::V6 => "ip6tables-restore",
        }
    }

    /// Returns the protocol of nft's `meta nfproto`.
    pub(super) const fn protocol(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }

    /// Returns the name of its header in nft.
    pub(super) const fn header(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
        }
    }

    /// Returns the loopback address.
    const fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Self::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        }
    }

    /// Returns the address at which a proxy accepts connections that rules divert to it: no other host can address it.
    pub(crate) const fn listener(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.loopback(), port)
    }
}

impl Ipv6Support {
    /// Inspects this machine.
    pub(crate) fn detect() -> Self {
        let is_there = |family: Family| {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| folder.join(family.restore()).is_file())
        };
        // Without either program, the error is about that of IPv4.
        match fs::read_to_string("/proc/net/if_inet6").unwrap_or_default().is_empty() {
            true => Self::Absent,
            false if is_there(Family::V4) && !is_there(Family::V6) => Self::WithoutChains,
            false => Self::Present,
        }
    }

    /// Returns the IP versions for which chains of iptables can be made.
    pub(crate) const fn families_of_chains(self) -> &'static [Family] {
        match self {
            Self::Absent | Self::WithoutChains => &[Family::V4],
            Self::Present => &[Family::V4, Family::V6],
        }
    }

    /// Returns the IP versions of this machine.
    pub(crate) const fn families(self) -> &'static [Family] {
        match self {
            Self::Absent => &[Family::V4],
            Self::WithoutChains | Self::Present => &[Family::V4, Family::V6],
        }
    }
}
