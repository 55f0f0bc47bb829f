//! Path of a packet according to its source route.

use super::types::Packet;
use crate::is_host;
use hopline_wire::dsr::{Addresses, DsrOption, Header};
use std::net::Ipv4Addr;

/// Path of a packet on the air: the nodes that had it and those that will have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourcePath {
    /// Nodes from the one that gave the packet its route to its destination.
    nodes: Addresses,
    /// Position of the node that transmits it.
    transmitter_index: usize,
}

impl SourcePath {
    /// Returns the path of a packet; `None` for an invalid header. A packet without a source route goes straight to its
    /// destination.
    pub(super) fn of_packet<M>(packet: &Packet<M>) -> Option<Self> {
        let mut routes = packet.header.options.iter().filter_map(|option| match option {
            DsrOption::SourceRoute(route) => Some(route),
            _ => None,
        });
        let (route, second) = (routes.next(), routes.next());
        if second.is_some() || !is_host(packet.source) || !is_host(packet.destination) {
            return None;
        }
        let mut nodes = Addresses::new();
        let Some(route) = route else {
            nodes.extend([packet.source, packet.destination]);
            return (packet.source != packet.destination).then_some(Self { nodes, transmitter_index: 0 });
        };
        let mut at = route.path.len().checked_sub(usize::from(route.segments_left))?;
        if route.salvage == 0 {
            nodes.push(packet.source);
        } else {
            // RFC 4728 §8.1.4: the first address is the node that salvaged the packet.
            at = at.checked_sub(1)?;
        }
        let ahead = nodes.len();
        nodes.extend_from_slice(&route.path);
        nodes.push(packet.destination);
        // The source may be on a route that another node gave the packet.
        are_distinct_hosts(&nodes[ahead..]).then_some(Self { nodes, transmitter_index: at })
    }

    /// Returns all nodes of the path, in order.
    pub(super) fn nodes(&self) -> &[Ipv4Addr] {
        &self.nodes
    }

    /// Returns the node that gave the packet its route: its source, or the last node that salvaged it.
    pub(super) fn start(&self) -> Ipv4Addr {
        self.nodes[0]
    }

    pub(super) fn transmitter(&self) -> Ipv4Addr {
        self.nodes[self.transmitter_index]
    }

    pub(super) fn receiver(&self) -> Ipv4Addr {
        self.nodes[self.transmitter_index + 1]
    }

    /// Hops from start to destination.
    pub(super) fn hops(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Returns the nodes from the start to the transmitter.
    pub(super) fn travelled(&self) -> &[Ipv4Addr] {
        &self.nodes[..=self.transmitter_index]
    }

    /// Returns the nodes from the receiver to the destination.
    pub(super) fn remaining(&self) -> &[Ipv4Addr] {
        &self.nodes[self.transmitter_index + 1..]
    }
}

/// Returns the number of times a packet was salvaged.
pub(super) fn salvage_count(header: &Header) -> u8 {
    let count = header.options.iter().find_map(|option| match option {
        DsrOption::SourceRoute(route) => Some(route.salvage),
        _ => None,
    });
    count.unwrap_or(0)
}

/// Returns whether `nodes` can be the nodes of a path. Paths are short: comparing all pairs is the fastest way.
pub(super) fn are_distinct_hosts(nodes: &[Ipv4Addr]) -> bool {
    nodes.iter().enumerate().all(|(i, node)| is_host(*node) && !nodes[..i].contains(node))
}

/// Returns `nodes` in reverse order.
pub(super) fn reversed(nodes: &[Ipv4Addr]) -> Addresses {
    nodes.iter().rev().copied().collect()
}
