//! Network namespaces at the ends of a link: their interfaces, addresses and routes.

use super::{CABLE, INTERFACE, Setup, Stands};
use crate::network::Network;
use crate::veth::{self, Trains};
use crate::{Error, Interface, Namespace, Tun};
use hopline_link::Side;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Common bits of the networks of a link: each has its own third octet, or fourth group.
const PREFIX4: u8 = 24;
const PREFIX6: u8 = 64;

/// One of the networks that a link makes.
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

    /// Host `host` of the network.
    const fn v4(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 80, self.number(), host)
    }

    /// The same in IPv6: unique local addresses (RFC 4193).
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

/// Numbers of a router and of the host behind it, in the network between them.
const ROUTER: u8 = 1;
const HOST: u8 = 2;

/// Versions of IP that a link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Versions {
    V4,
    Both,
}

/// Hosts of one end.
#[derive(Debug)]
pub(super) struct End {
    /// The namespace in which the link ends.
    pub(super) end: Namespace,
    /// The host behind it, where it is a router.
    pub(super) behind: Option<Namespace>,
    pub(super) versions: Versions,
}

/// Number of an end in the network between both.
const fn number(side: Side) -> u8 {
    match side {
        Side::A => 1,
        Side::B => 2,
    }
}

/// IPv4 address of an end of a link.
pub(super) const fn end_v4(side: Side) -> Ipv4Addr {
    Lan::Link.v4(number(side))
}

/// IPv6 address of an end of a link.
pub(super) const fn end_v6(side: Side) -> Ipv6Addr {
    Lan::Link.v6(number(side))
}

/// Addresses of the host behind a router.
pub(super) fn behind(side: Side) -> (Ipv4Addr, Ipv6Addr) {
    let lan = Lan::Behind(side);
    (lan.v4(HOST), lan.v6(HOST))
}

impl End {
    /// Makes the hosts of `side`, and the interface by which they reach the link.
    pub(super) fn new(side: Side, setup: &Setup) -> Result<(Self, Tun), Error> {
        let end = Namespace::new()?;
        let (tun, versions) = end.run(|| interface(side, setup))??;
        let here = &setup.ends[side as usize];
        let behind = match here.stands {
            Stands::Host => None,
            Stands::Router => Some(host_behind(&end, side, versions)?),
        };
        if behind.is_some() || !here.networks.is_empty() {
            end.run(|| forward(versions))??;
        }
        Ok((Self { end, behind, versions }, tun))
    }

    /// The host on which programs of this end run.
    pub(super) fn host(&self) -> &Namespace {
        self.behind.as_ref().unwrap_or(&self.end)
    }
}

/// The interface of `side`, with routes to what is behind the other one, and the versions of IP that it has: IPv6 if
/// the kernel does and the MTU is 1280 at least (RFC 8200 §5).
fn interface(side: Side, setup: &Setup) -> Result<(Tun, Versions), Error> {
    let tun = Tun::open(INTERFACE)?;
    let interface = Interface::named(tun.name())?;
    interface.set_mtu(setup.mtu)?;
    // An idle link is to stay idle, and IPv6 is left out where it could not.
    let silent = interface.without_generated_address().is_ok();
    interface.set_address(end_v4(side), PREFIX4)?;
    interface.up()?;
    let v6 = silent && interface.add_address(end_v6(side).into(), PREFIX6).is_ok();
    let versions = if v6 { Versions::Both } else { Versions::V4 };
    let there = &setup.ends[side.other() as usize];
    let lan = match there.stands {
        Stands::Host => None,
        Stands::Router => Some(Lan::Behind(side.other()).networks()),
    };
    for network in lan.iter().flatten().chain(&there.networks) {
        if network.address.is_ipv4() || versions == Versions::Both {
            interface.route(*network, None)?;
        }
    }
    Ok((tun, versions))
}

/// A host behind the router `router`, with routes to everything through it.
fn host_behind(router: &Namespace, side: Side, versions: Versions) -> Result<Namespace, Error> {
    let host = Namespace::new()?;
    veth::join([router, &host], CABLE, Trains::Never)?;
    let lan = Lan::Behind(side);
    let interface = |number| -> Result<Interface, Error> {
        let interface = Interface::named(CABLE)?;
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

/// Has this host pass packets on.
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

/// Packets that the interface of the calling thread's host dropped instead of handing them to the link.
pub(super) fn dropped_by_interface() -> u64 {
    // A kernel without this file counts nothing.
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    dropped(&text).unwrap_or(0)
}

/// Of the interface's line: eight columns of what was received, then bytes, packets, errors, and packets dropped of what was sent.
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
