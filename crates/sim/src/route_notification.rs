//! Explicit link failure notification (ELFN): the network layer notifies the transport endpoints of a node of the loss and
//! of the return of the route to their peer (Holland and Vaidya, MobiCom 1999; TPA §3.3).
//!
//! - AODV: the agent of the source reports a broken link, a route error, or a discovery without an answer (RFC 3561 §6.3).
//!   It also reports a new route of any origin. A route that expired unused has not failed, nor has one under local repair.
//!   The agent discovers a route only for a packet, so an endpoint that waits silently may wait forever.
//! - DSR: the agent of the source reports the loss of its last path to a peer, and a new one.
//! - OLSR: the agent of each node knows all routes.
//! - Static routes: the node that gives up a packet notifies the source by ICMP Destination Unreachable, which travels as
//!   any packet does. Nothing reports the return.

mod delivery;

use crate::forwarding::Forwarding;
use crate::ids::Side;
use crate::spec::{FailureNotification, Spec};
use core::num::NonZeroU16;
use hopline_core::RateLimit;
use std::net::Ipv4Addr;

/// Most ICMP errors a node sends in a second (RFC 1812 §4.3.2.8 asks for a limit; RFC 4443 §2.4 (f) suggests 10 for
/// small devices).
const ICMP_ERRORS_PER_SECOND: NonZeroU16 = NonZeroU16::new(10).expect("not zero");

/// State that the nodes need for notifications.
#[derive(Debug)]
pub(crate) struct RouteNotifier {
    /// Notification state, by node.
    by_node: Vec<NodeNotifications>,
}

/// Notification state of one node.
#[derive(Debug)]
struct NodeNotifications {
    /// Ends of flows here.
    ends: Vec<FlowEnd>,
    /// Destinations of routes that the agent reported lost; the ends concerned are to be notified.
    pending_losses: Vec<Ipv4Addr>,
    /// Destinations of routes with ends that were notified of the loss, and not yet of the return.
    reported_losses: Vec<Ipv4Addr>,
    icmp_limit: RateLimit,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug)]
struct FlowEnd {
    /// The other end.
    peer: Ipv4Addr,
    /// Node to which the agent here routes packets for the peer, if an agent does.
    routed_destination: Option<Ipv4Addr>,
    flow: u32,
    side: Side,
}

impl RouteNotifier {
    /// Returns `None` if no end is to be notified.
    pub(crate) fn new(spec: &Spec, forwarding: &Forwarding) -> Option<Box<Self>> {
        if spec.failure_notification == FailureNotification::None {
            return None;
        }
        let fresh = || NodeNotifications {
            ends: Vec::new(),
            pending_losses: Vec::new(),
            reported_losses: Vec::new(),
            icmp_limit: RateLimit::new(Some(ICMP_ERRORS_PER_SECOND)),
        };
        let mut nodes: Vec<NodeNotifications> = spec.nodes.iter().map(|_| fresh()).collect();
        for (flow, ends) in (0..).zip(&spec.flows) {
            for (node, peer, side) in [(ends.src, ends.dst, Side::Source), (ends.dst, ends.src, Side::Sink)] {
                let peer = peer.ipv4();
                let towards = forwarding.destination(node, peer);
                nodes[node.index()].ends.push(FlowEnd { peer, routed_destination: towards, flow, side });
            }
        }
        Some(Box::new(Self { by_node: nodes }))
    }
}
