//! Routes, and the rules that say which of them count, asked of rtnetlink(7).

use crate::error::Error;
use crate::netlink::{RouteSocket, attribute, message};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// Routes of the namespace in which the value was made. Changing them takes `CAP_NET_ADMIN`, each time.
#[derive(Debug)]
pub(crate) struct Routes {
    socket: RouteSocket,
    /// Interfaces are looked for by it, in the same namespace.
    any: OwnedFd,
}

/// Everything without a better route goes this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DefaultRoute<'a> {
    /// Where it leads.
    pub(crate) to: To<'a>,
    /// The lowest wins.
    pub(crate) metric: u32,
    /// In this table, 1 to 2³² − 1.
    pub(crate) table: u32,
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To<'a> {
    /// To a router at the other end of an interface, whatever the router's address.
    Router {
        /// The interface.
        interface: &'a str,
        /// The router.
        router: Ipv4Addr,
        /// Source address of what is sent from here.
        source: Ipv4Addr,
    },
    /// To whoever a packet is for: they are at the other end of this interface.
    Neighbours(&'a str),
    /// Nowhere: packets are dropped.
    Nowhere,
}

/// Some packets have a table of routes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule<'a> {
    /// Which.
    pub(crate) concerned: Concerned<'a>,
    /// The table.
    pub(crate) table: u32,
    /// The lowest is looked at first.
    pub(crate) priority: u32,
}

/// Which packets a [`Rule`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concerned<'a> {
    /// What comes by this interface, whether there is one or not.
    ComesBy(&'a str),
    /// What has this mark, and goes to a network of which so many bits are common.
    Marked {
        /// The mark.
        mark: u32,
        /// The network.
        to: (Ipv4Addr, u8),
    },
}

/// The main table of routes (rtnetlink(7)).
pub(crate) const MAIN: u32 = 254;
/// `RTNH_F_ONLINK` of linux/rtnetlink.h.
const ONLINK: u32 = 4;
/// `RTPROT_STATIC`: an administrator's.
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
    pub(crate) fn open() -> Result<Self, Error> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        let any = any.map_err(|e| Error::new("opening a socket", e))?;
        let socket = RouteSocket::open().map_err(|e| Error::new("opening a netlink socket of routes", e))?;
        Ok(Self { socket, any })
    }

    /// From now on there is this route, in place of one with the same metric and table. If it is there already, nothing happens.
    pub(crate) fn replace(&mut self, route: &DefaultRoute<'_>) -> io::Result<()> {
        let request =
            route.message(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &self.any)?;
        self.socket.ask(&request)
    }

    /// The route is no more.
    pub(crate) fn remove(&mut self, route: &DefaultRoute<'_>) -> io::Result<()> {
        let request = route.message(libc::RTM_DELROUTE, 0, &self.any)?;
        self.socket.ask(&request)
    }

    /// From now on there is this rule, once.
    pub(crate) fn add_rule(&mut self, rule: &Rule<'_>) -> io::Result<()> {
        match self.socket.ask(&rule.message(libc::RTM_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_EXCL)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// The rule is no more.
    pub(crate) fn remove_rule(&mut self, rule: &Rule<'_>) -> io::Result<()> {
        self.socket.ask(&rule.message(libc::RTM_DELRULE, 0))
    }
}

impl DefaultRoute<'_> {
    fn message(&self, kind: u16, flags: i32, any: &OwnedFd) -> io::Result<Vec<u8>> {
        let (scope, of_route, onlink) = match self.to {
            To::Router { .. } => (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST, ONLINK),
            To::Neighbours(_) => (libc::RT_SCOPE_LINK, libc::RTN_UNICAST, 0),
            To::Nowhere => (libc::RT_SCOPE_UNIVERSE, libc::RTN_BLACKHOLE, 0),
        };
        // `rtmsg`: the table of 8 bits is of no account beside the attribute.
        let mut body = vec![libc::AF_INET as u8, 0, 0, 0, 0, PROTOCOL, scope, of_route];
        body.extend(onlink.to_ne_bytes());
        body.extend(attribute(libc::RTA_PRIORITY, &self.metric.to_ne_bytes()));
        body.extend(attribute(libc::RTA_TABLE, &self.table.to_ne_bytes()));
        if let To::Router { interface, .. } | To::Neighbours(interface) = self.to {
            body.extend(attribute(libc::RTA_OIF, &name_to_index(any, interface)?.to_ne_bytes()));
        }
        if let To::Router { router, source, .. } = self.to {
            body.extend(attribute(libc::RTA_GATEWAY, &router.octets()));
            body.extend(attribute(libc::RTA_PREFSRC, &source.octets()));
        }
        Ok(message(kind, flags, &body))
    }
}

impl Rule<'_> {
    fn message(&self, kind: u16, flags: i32) -> Vec<u8> {
        let (prefix, selectors) = match self.concerned {
            Concerned::ComesBy(name) => (0, attribute(fra::IIFNAME, &[name.as_bytes(), &[0]].concat())),
            Concerned::Marked { mark, to: (network, prefix) } => {
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
