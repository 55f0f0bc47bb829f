//! Explicit link failure notification (ELFN): the network layer tells the transport endpoints of a node that the way to
//! their peer is gone, and that there is one again (Holland and Vaidya, MobiCom 1999; TPA §3.3).
//!
//! Where AODV routes, the source's own routing agent knows: its link broke, a route error came, or nobody answered its
//! search (RFC 3561 §6.3: the application is to be told). It also knows of the return, however it came about. A route
//! that expired unused has not failed, and one that is being repaired elsewhere not yet. An agent looks for a route
//! when there is a packet to send, so an endpoint that only waits for the return may wait forever. DSR's agent tells the
//! same of its last path to a peer. Where OLSR routes, the agent of every node knows all routes that there are.
//!
//! Static routes know nothing of the link layer. There the node that gives up a packet tells its source by ICMP
//! Destination Unreachable, which travels as any packet does. Of a return nobody tells.

use crate::flow::Side;
use crate::packet::{Account, Body, Handle, Packet};
use crate::spec::{FailureNotification, Spec};
use crate::stack::header;
use crate::trace::{Tracer, emit};
use crate::world::World;
use core::num::NonZeroU16;
use hopline_core::{Instant, NodeId, RateLimit};
use hopline_transport::Signal;
use hopline_wire::icmp::{Reason, Unreachable};
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use std::net::Ipv4Addr;

/// Most ICMP errors a node sends in a second (RFC 1812 §4.3.2.8 asks for a limit; RFC 4443 §2.4 (f) suggests 10 for
/// small devices).
const ICMP_ERRORS_PER_SECOND: NonZeroU16 = NonZeroU16::new(10).expect("not zero");

/// What the nodes need in order to tell.
#[derive(Debug)]
pub(crate) struct Notifier {
    /// By node.
    nodes: Vec<Bulletin>,
}

/// Of one node.
#[derive(Debug)]
struct Bulletin {
    /// Ends of flows here, each with its peer.
    ends: Vec<(Ipv4Addr, u32, Side)>,
    /// Peers to which the agent reported the route lost; their ends are to be told.
    broken: Vec<Ipv4Addr>,
    /// Peers whose ends were told so, and not yet of the return.
    lost: Vec<Ipv4Addr>,
    icmp: RateLimit,
}

impl Notifier {
    /// `None` if nobody is to be told anything.
    pub(crate) fn new(spec: &Spec) -> Option<Box<Self>> {
        if spec.failure_notification == FailureNotification::None {
            return None;
        }
        let fresh = || Bulletin {
            ends: Vec::new(),
            broken: Vec::new(),
            lost: Vec::new(),
            icmp: RateLimit::new(Some(ICMP_ERRORS_PER_SECOND)),
        };
        let mut nodes: Vec<Bulletin> = spec.nodes.iter().map(|_| fresh()).collect();
        for (flow, ends) in (0..).zip(&spec.flows) {
            nodes[ends.src.index()].ends.push((ends.dst.ipv4(), flow, Side::Source));
            nodes[ends.dst.index()].ends.push((ends.src.ipv4(), flow, Side::Sink));
        }
        Some(Box::new(Self { nodes }))
    }
}

impl<T: Tracer> World<T> {
    /// The agent of `node` has no route to `peer` any more. Its ends are told once the agent is drained, each time: an end that
    /// had nothing in flight when it was told first has not heeded it, and one that has heeded it does nothing.
    pub(crate) fn note_broken_route(&mut self, node: u32, peer: Ipv4Addr) {
        if let Some(notifier) = &mut self.notifier {
            let bulletin = &mut notifier.nodes[node as usize];
            let concerns_us = bulletin.ends.iter().any(|(other, ..)| *other == peer);
            if concerns_us && !bulletin.broken.contains(&peer) {
                bulletin.broken.push(peer);
            }
        }
    }

    /// The agent of `node` has just been drained: tells the ends here what has changed.
    #[inline]
    pub(crate) fn tell_of_routes(&mut self, node: u32) {
        if self.notifier.is_some() {
            self.tell_of_losses(node);
            self.tell_of_returns(node);
        }
    }

    fn tell_of_losses(&mut self, node: u32) {
        while let Some(bulletin) = self.bulletin(node)
            && let Some(peer) = bulletin.broken.pop()
        {
            if !bulletin.lost.contains(&peer) {
                bulletin.lost.push(peer);
            }
            self.tell(node, peer, Signal::RouteLost);
        }
    }

    fn tell_of_returns(&mut self, node: u32) {
        let now = self.now;
        loop {
            let Some(notifier) = &mut self.notifier else { return };
            let lost = &mut notifier.nodes[node as usize].lost;
            let Some(agent) = &self.nodes[node as usize].agent else { return };
            let Some(at) = lost.iter().position(|peer| agent.machine.has_route(now, *peer)) else { return };
            let peer = lost.remove(at);
            self.tell(node, peer, Signal::RouteFound);
        }
    }

    fn tell(&mut self, node: u32, peer: Ipv4Addr, signal: Signal) {
        let mut next = 0;
        // By index: whoever is told may send, and the list is the world's.
        while let Some(bulletin) = self.bulletin(node)
            && let Some(&(other, flow, side)) = bulletin.ends.get(next)
        {
            next += 1;
            if other == peer {
                self.signal(flow, side, signal);
            }
        }
    }

    /// `node`, which has no routing agent, cannot pass on a packet that it still holds: tells the packet's source.
    pub(crate) fn report_unreachable(&mut self, node: u32, handle: Handle, reason: Reason) {
        if self.notifier.is_none() {
            return;
        }
        let packet = self.packets.get(handle);
        // RFC 1812 §4.3.2.7: nothing is said about ICMP errors. What is of no flow has nobody to tell.
        let (source, Some(flow)) = (packet.ip.src, packet.account.flow()) else { return };
        if source == NodeId(node).ipv4() {
            let side = self.flows[flow.index()].side_of(source);
            self.signal(flow.0, side, Signal::RouteLost);
            return;
        }
        let now = self.now;
        if self.bulletin(node).is_none_or(|bulletin| bulletin.icmp.take(now).is_err()) {
            return;
        }
        let mut bytes = Vec::new();
        emit(self.packets.view(handle), &mut bytes);
        if let Ok(report) = Unreachable::about(reason, &bytes) {
            self.send_report(node, source, report, now);
        }
    }

    fn send_report(&mut self, node: u32, to: Ipv4Addr, report: Unreachable, now: Instant) {
        let packet = Packet {
            ip: header(NodeId(node).ipv4(), to, Protocol::Icmp),
            body: Body::Icmp(report),
            len_bytes: (HEADER_LEN + Unreachable::LEN) as u32 + self.extra_header_bytes,
            account: Account::Control,
            made: now,
            serial: 0,
        };
        self.originate(NodeId(node), packet);
    }

    /// `node` is told that a packet it sent did not arrive: its end that sent it learns so (RFC 1122 §4.2.3.9).
    pub(crate) fn receive_report(&mut self, node: u32, report: &Unreachable) {
        let Some(ports) = report.ports() else { return };
        if report.ip.src != NodeId(node).ipv4() {
            return;
        }
        let Some(notifier) = &self.notifier else { return };
        let sender = notifier.nodes[node as usize].ends.iter().find(|(peer, flow, side)| {
            *peer == report.ip.dst && self.flows[*flow as usize].ports_from(*side) == ports
        });
        if let Some(&(_, flow, side)) = sender {
            self.signal(flow, side, Signal::RouteLost);
        }
    }

    fn bulletin(&mut self, node: u32) -> Option<&mut Bulletin> {
        self.notifier.as_mut().map(|notifier| &mut notifier.nodes[node as usize])
    }
}
