//! Routes and policy routing rules, set by rtnetlink(7).

use crate::error::Error;
use crate::netlink::{RouteSocket, attribute, message};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// Routes of the namespace in which the value was created. Each change needs `CAP_NET_ADMIN`.
#[derive(Debug)]
pub struct Routes {
    socket: RouteSocket,
    /// Socket for looking up interfaces in the same namespace.
    lookup_socket: OwnedFd,
}

/// A default route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultRoute<'a> {
    /// Next hop.
    pub to: NextHop<'a>,
    /// Metric; the lowest wins.
    pub metric: u32,
    /// Routing table, 1 to 2³² − 1.
    pub table: u32,
}

/// Next hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop<'a> {
    /// A router on the link of an interface, whatever the router's address.
    Router {
        /// The interface.
        interface: &'a str,
        /// The router.
        router: Ipv4Addr,
        /// Source address of local packets.
        source: Ipv4Addr,
    },
    /// The destination itself, as a neighbour on this interface.
    Neighbours(&'a str),
    /// No next hop: packets are dropped.
    Unreachable,
}

/// A rule that selects a routing table for some packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// Selector of packets.
    pub selector: RuleSelector<'a>,
    /// Routing table.
    pub table: u32,
    /// Priority; the lowest number comes first.
    pub priority: u32,
}

/// Selector of a [`Rule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSelector<'a> {
    /// Packets that come by this interface, which need not exist.
    IncomingInterface(&'a str),
    /// Packets with this mark for a network, given as address and prefix length.
    Marked {
        /// The mark.
        mark: u32,
        /// The network.
        to: (Ipv4Addr, u8),
    },
}

/// The main routing table (rtnetlink(7)).
pub const MAIN: u32 = 254;
/// `RTNH_F_ONLINK` of linux/rtnetlink.h.
const ONLINK: u32 = 4;
/// `RTPROT_STATIC`: routes of an administrator.
const PROTOCOL: u8 = libc::RTPROT_STATIC;
/// `FR_ACT_TO_TBL` of linux/fib_rules.h.
const TO_TABLE: u8 = 1;

/// Attributes of rules (linux/fib_rules.h).
mod fra {
    pub(super) const DST: u16 = 1;
    pub(super) const IIFNAME: u16 = 3;
    pub(super) const PRIORITY: u16 = 6;
    pub(super) const FWMARK: u16 = 10;
    pub(super) const TABLE: u16 = 15;
}

impl Routes {
    /// Opens the sockets.
    ///
    /// # Errors
    /// If the system has no socket.
    pub fn open() -> Result<Self, Error> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        let any = any.map_err(|e| Error::new("opening a socket", e))?;
        let socket = RouteSocket::open().map_err(|e| Error::new("opening a netlink socket of routes", e))?;
        Ok(Self { socket, lookup_socket: any })
    }

    /// Sets a route, and replaces one with the same metric and table. Does nothing if it exists.
    pub fn replace(&mut self, route: &DefaultRoute<'_>) -> io::Result<()> {
        let request = route.message(
            libc::RTM_NEWROUTE,
            libc::NLM_F_CREATE | libc::NLM_F_REPLACE,
            &self.lookup_socket,
        )?;
        self.socket.request(&request)
    }

    /// Removes a route.
    pub fn remove(&mut self, route: &DefaultRoute<'_>) -> io::Result<()> {
        let request = route.message(libc::RTM_DELROUTE, 0, &self.lookup_socket)?;
        self.socket.request(&request)
    }

    /// Adds a rule unless it exists.
    pub fn add_rule(&mut self, rule: &Rule<'_>) -> io::Result<()> {
        match self.socket.request(&rule.message(libc::RTM_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_EXCL)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Removes a rule.
    pub fn remove_rule(&mut self, rule: &Rule<'_>) -> io::Result<()> {
        self.socket.request(&rule.message(libc::RTM_DELRULE, 0))
    }
}

impl DefaultRoute<'_> {
    fn message(&self, kind: u16, flags: i32, any: &OwnedFd) -> io::Result<Vec<u8>> {
        let (scope, of_route, onlink) = match self.to {
            NextHop::Router { .. } => (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST, ONLINK),
            NextHop::Neighbours(_) => (libc::RT_SCOPE_LINK, libc::RTN_UNICAST, 0),
            NextHop::Unreachable => (libc::RT_SCOPE_UNIVERSE, libc::RTN_BLACKHOLE, 0),
        };
        // `rtmsg`: the attribute overrides the table field of 8 bits.
        let mut body = vec![libc::AF_INET as u8, 0, 0, 0, 0, PROTOCOL, scope, of_route];
        body.extend(onlink.to_ne_bytes());
        body.extend(attribute(libc::RTA_PRIORITY, &self.metric.to_ne_bytes()));
        body.extend(attribute(libc::RTA_TABLE, &self.table.to_ne_bytes()));
        if let NextHop::Router { interface, .. } | NextHop::Neighbours(interface) = self.to {
            body.extend(attribute(libc::RTA_OIF, &name_to_index(any, interface)?.to_ne_bytes()));
        }
        if let NextHop::Router { router, source, .. } = self.to {
            body.extend(attribute(libc::RTA_GATEWAY, &router.octets()));
            body.extend(attribute(libc::RTA_PREFSRC, &source.octets()));
        }
        Ok(message(kind, flags, &body))
    }
}

impl Rule<'_> {
    fn message(&self, kind: u16, flags: i32) -> Vec<u8> {
        let (prefix, selectors) = match self.selector {
            RuleSelector::IncomingInterface(name) => {
                (0, attribute(fra::IIFNAME, &[name.as_bytes(), &[0]].concat()))
            }
            RuleSelector::Marked { mark, to: (network, prefix) } => {
                let network = if prefix == 0 { Vec::new() } else { attribute(fra::DST, &network.octets()) };
                (prefix, [attribute(fra::FWMARK, &mark.to_ne_bytes()), network].concat())
            }
        };
        // `fib_rule_hdr`.
        let mut body = vec![libc::AF_INET as u8, prefix, 0, 0, 0, 0, 0, TO_TABLE, 0, 0, 0, 0];
        body.extend(selectors);
        body.extend(attribute(fra::PRIORITY, &self.priority.to_ne_bytes()));
        body.extend(attribute(fra::TABLE, &self.table.to_ne_bytes()));
        message(kind, flags, &body)
    }
}
