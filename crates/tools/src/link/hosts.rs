//! Network namespaces at the ends of a link: their interfaces, addresses and routes.

use super::{EndRole, INTERFACE, LAN_INTERFACE, Setup};
use hopline_link::Side;
use hopline_linux::Network;
use hopline_linux::veth::{self, Offload};
use hopline_linux::{Error, Interface, Namespace, Tun};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Prefix length of the networks of a link: each has its own third octet, or fourth group.
const PREFIX4: u8 = 24;
const PREFIX6: u8 = 64;

/// A network of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lan {
    /// Between the two ends.
    Link,
    /// Between an end that is a router and the host behind it.
    Behind(Side),
}

impl Lan {
    const fn number(self) -> u8 {
        match self {
            Self::Link => 0,
            Self::Behind(Side::A) => 1,
            Self::Behind(Side::B) => 2,
        }
    }

    /// Returns the address of host `host` in the network.
    const fn v4(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 80, self.number(), host)
    }

    /// Returns its IPv6 address: a unique local one (RFC 4193).
    const fn v6(self, host: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xfd80, 0, 0, self.number() as u16, 0, 0, 0, host as u16)
    }

    fn networks(self) -> [Network; 2] {
        [
            Network { address: self.v4(0).into(), prefix: PREFIX4 },
            Network { address: self.v6(0).into(), prefix: PREFIX6 },
        ]
    }
}

/// Host numbers of a router and of the host behind it, in the network between them.
const ROUTER: u8 = 1;
const HOST: u8 = 2;

/// IP versions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    V4,
    Both,
}

/// Hosts at one end.
#[derive(Debug)]
pub(super) struct End {
    /// The namespace in which the link ends.
    pub(super) end: Namespace,
    /// The host behind it, if the end is a router.
    pub(super) behind: Option<Namespace>,
    pub(super) versions: Versions,
}

/// Returns the host number of an end in the network between both.
const fn number(side: Side) -> u8 {
    match side {
        Side::A => 1,
        Side::B => 2,
    }
}

/// Returns the IPv4 address of an end of a link.
pub(super) const fn end_v4(side: Side) -> Ipv4Addr {
    Lan::Link.v4(number(side))
}

/// Returns the IPv6 address of an end of a link.
pub(super) const fn end_v6(side: Side) -> Ipv6Addr {
    Lan::Link.v6(number(side))
}

/// Returns the addresses of the host behind a router.
pub(super) fn behind(side: Side) -> (Ipv4Addr, Ipv6Addr) {
    let lan = Lan::Behind(side);
    (lan.v4(HOST), lan.v6(HOST))
}

impl End {
    /// Creates the hosts of `side`, and their interface to the link.
    pub(super) fn new(side: Side, setup: &Setup) -> Result<(Self, Tun), Error> {
        let end = Namespace::new()?;
        let (tun, versions) = end.run(|| interface(side, setup))??;
        let here = &setup.ends[side as usize];
        let behind = match here.role {
            EndRole::Host => None,
            EndRole::Router => Some(host_behind(&end, side, versions)?),
        };
        if behind.is_some() || !here.networks.is_empty() {
            end.run(|| forward(versions))??;
        }
        Ok((Self { end, behind, versions }, tun))
    }

    /// Returns the host on which programs of this end run.
    pub(super) fn host(&self) -> &Namespace {
        self.behind.as_ref().unwrap_or(&self.end)
    }
}

/// Creates the interface of `side`, with routes to the networks behind the other end. Also returns its IP versions: IPv6
/// needs kernel support and an MTU of at least 1280 (RFC 8200 §5).
fn interface(side: Side, setup: &Setup) -> Result<(Tun, Versions), Error> {
    let tun = Tun::open(INTERFACE)?;
    let interface = Interface::named(tun.name())?;
    interface.set_mtu(setup.mtu)?;
    // An idle link must carry no packets; IPv6 is omitted if that is impossible.
    let silent = interface.disable_ipv6_autoconfiguration().is_ok();
    interface.set_address(end_v4(side), PREFIX4)?;
    interface.up()?;
    let v6 = silent && interface.add_address(end_v6(side).into(), PREFIX6).is_ok();
    let versions = if v6 { Versions::Both } else { Versions::V4 };
    let there = &setup.ends[side.other() as usize];
    let lan = match there.role {
        EndRole::Host => None,
        EndRole::Router => Some(Lan::Behind(side.other()).networks()),
    };
    for network in lan.iter().flatten().chain(&there.networks) {
        if network.address.is_ipv4() || versions == Versions::Both {
            interface.route(*network, None)?;
        }
    }
    Ok((tun, versions))
}

/// Creates a host behind the router `router`, with a default route through it.
fn host_behind(router: &Namespace, side: Side, versions: Versions) -> Result<Namespace, Error> {
    let host = Namespace::new()?;
    veth::join([router, &host], LAN_INTERFACE, Offload::SinglePackets)?;
    let lan = Lan::Behind(side);
    let interface = |number| -> Result<Interface, Error> {
        let interface = Interface::named(LAN_INTERFACE)?;
        interface.set_address(lan.v4(number), PREFIX4)?;
        interface.up()?;
        if versions == Versions::Both {
            interface.add_address(lan.v6(number).into(), PREFIX6)?;
        }
        Ok(interface)
    };
    router.run(|| interface(ROUTER))??;
    host.run(|| -> Result<(), Error> {
        let interface = interface(HOST)?;
        let all = |address| Network { address, prefix: 0 };
        interface.route(all(Ipv4Addr::UNSPECIFIED.into()), Some(lan.v4(ROUTER).into()))?;
        if versions == Versions::Both {
            interface.route(all(Ipv6Addr::UNSPECIFIED.into()), Some(lan.v6(ROUTER).into()))?;
        }
        Ok(())
    })??;
    Ok(host)
}

/// Enables forwarding on this host.
fn forward(versions: Versions) -> Result<(), Error> {
    write("/proc/sys/net/ipv4/ip_forward", "1")?;
    if versions == Versions::Both {
        write("/proc/sys/net/ipv6/conf/all/forwarding", "1")?;
    }
    Ok(())
}

fn write(path: &str, value: &str) -> Result<(), Error> {
    fs::write(path, value).map_err(|e| Error::new(format!("writing {path}"), e))
}

/// Returns the packets dropped by the interface of the calling thread's host on sending.
pub(super) fn dropped_by_interface() -> u64 {
    // Without this file, the kernel counts nothing.
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    dropped(&text).unwrap_or(0)
}

/// Parses the interface's line: eight columns about received packets, then bytes, packets, errors and drops of sent ones.
fn dropped(text: &str) -> Option<u64> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, columns) = lines.into_iter().find(|(name, _)| name.trim() == INTERFACE)?;
    columns.split_whitespace().nth(8 + 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_line_of_the_interface() {
        let text = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo \
                    frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    link01: 1 2 3 4 5 6 7 8 9 10 11 13 13 14 15 16\n link0: 21 22 23 24 25 26 27 28 29 30 31 450 33 34 35 36\n";
        assert_eq!(dropped(text), Some(450));
        assert_eq!((dropped(""), dropped("link0: 1 2 3\n")), (None, None));
    }
}
