//! Packets and connections that rules divert to proxies, and the interfaces of rules.

use super::family::Family;
use crate::subnet::Subnet;
use hopline_middlebox::announce::Role;

/// Mark and routing table that divert forwarded packets to sockets of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiversionMark {
    /// Mark, in the upper half of 32 bits.
    pub mark: u16,
    /// Routing table that delivers marked packets to this machine.
    pub table: u32,
}

/// Packets in a queue that wait for the verdict of a middlebox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) queue: u16,
    /// Interface that leads to the mobile hosts.
    pub(crate) interface: String,
    /// IP versions that the middlebox reads.
    pub(crate) versions: Versions,
    /// Served mobile hosts; empty: all.
    pub(crate) subnets: Vec<Subnet>,
    /// Served ports of fixed hosts; empty: all.
    pub(crate) ports: Vec<u16>,
    pub(crate) hooks: Hooks,
    /// Mark of packets that the middlebox sends by itself.
    pub(crate) mark: u32,
}

/// IP versions that a middlebox reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// IPv4 alone.
    V4,
    /// IPv4 and IPv6.
    Both,
}

/// Hooks at which packets are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// On a router: forwarded packets.
    Forward,
    /// At an end of a link: packets of and for this host, except retransmitted ones.
    Local,
}

/// Interface with all packets in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FullyQueuedInterface {
    pub(crate) queue: u16,
    pub(crate) interface: String,
}

/// Interface with TCP handshakes in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandshakeQueue {
    pub(crate) queue: u16,
    pub(crate) interface: String,
    /// Role in the handshakes. A caller queues those of this host; a called host also those of hosts behind it.
    pub(crate) role: Role,
}

/// Interface with this maximum rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShapedInterface {
    pub(crate) interface: String,
    pub(crate) rate_bps: u64,
}

/// Connections that a listener of this machine terminates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DivertedConnections {
    /// Port of the listener, for both IP versions.
    pub(crate) port: u16,
    pub(crate) connections: ConnectionMatch,
    /// Destination ports; empty: all.
    pub(crate) ports: Vec<u16>,
    /// Queue of their SYNs after the firewall.
    pub(crate) queue: u16,
}

/// Packets of TCP connections of mobile hosts that are not forwarded: at a station between which and others connections move, a packet
/// without a socket belongs to a connection that is at another station. Its other half would take it for its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnforwardedPackets {
    /// The interface that leads to the mobile hosts.
    pub(crate) interface: String,
    /// Network of all mobile hosts. Connections between two of them are neither split nor dropped.
    pub(crate) network: Subnet,
    /// The mobile hosts; at least one subnet.
    pub(crate) hosts: Vec<Subnet>,
    /// The ports that are called; empty: all.
    pub(crate) ports: Vec<u16>,
}

/// Captured connections. Empty subnets: all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionMatch {
    /// Connections that arrive on an interface.
    ArrivingOn { interface: String, sources: Vec<Subnet>, destinations: Vec<Subnet> },
    /// Connections that would leave by an interface.
    LeavingBy { interface: String, destinations: Vec<Subnet> },
}

impl ConnectionMatch {
    /// Returns the subnets; a connection has its source or destination in one of them.
    pub(crate) fn subnets(&self) -> impl Iterator<Item = &Subnet> {
        let (sources, destinations) = match self {
            Self::ArrivingOn { sources, destinations, .. } => (sources.as_slice(), destinations),
            Self::LeavingBy { destinations, .. } => (&[][..], destinations),
        };
        sources.iter().chain(destinations)
    }
}

impl Queued {
    /// Returns whether forwarded packets are queued.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.hooks == Hooks::Forward
    }

    /// Returns whether it applies to packets of an IP version: subnets of the other version alone mean none of this one.
    pub(crate) fn applies_to(&self, family: Family) -> bool {
        let is_read = self.versions == Versions::Both || family == Family::V4;
        is_read && (self.subnets.is_empty() || self.subnets.iter().any(|subnet| family.has(subnet)))
    }
}
