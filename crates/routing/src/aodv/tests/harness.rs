//! Scripted test of one machine: inputs at given times, and the outputs.

use crate::aodv::*;
pub(super) use crate::tests::{ms, node_address};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, Seq32, StateMachine};
use hopline_wire::aodv::{Message, Rerr, Rrep, Rreq};
use std::net::Ipv4Addr;

pub(super) const ME: Ipv4Addr = node_address(0);

/// Node 0 and its clock.
pub(super) struct TestNode {
    pub(super) aodv: Aodv<u32>,
    pub(super) now: Instant,
}

impl TestNode {
    /// Creates a node that sends its own broadcasts without jitter, so that tests can predict the times.
    pub(super) fn new(config: Config) -> Self {
        Self::with_jitter(Config { originated_jitter: Duration::ZERO, ..config }, 0)
    }

    /// Makes a node with the jitter of `config`, and with the random numbers of node `number`.
    pub(super) fn with_jitter(config: Config, number: u32) -> Self {
        let aodv = Aodv::new(config, ME, RandomStream::new(1, 1, NodeId(number), Purpose::Routing));
        Self { aodv, now: Instant::from_secs(100) }
    }

    /// Advances the time; returns each transmission with its time.
    pub(super) fn advance(&mut self, time: Duration) -> Vec<(Instant, Transmit)> {
        let end = self.now + time;
        let mut sent = Vec::new();
        while let Some((due, _)) = self.aodv.poll_timeout().filter(|(due, _)| *due <= end) {
            self.now = self.now.max(due);
            self.aodv.handle_timeout(self.now);
            sent.extend(self.sent().into_iter().map(|transmit| (self.now, transmit)));
        }
        self.now = end;
        sent
    }

    /// Advances the time and discards the outputs.
    pub(super) fn skip(&mut self, time: Duration) {
        self.advance(time);
        self.events();
    }

    pub(super) fn sent(&mut self) -> Vec<Transmit> {
        core::iter::from_fn(|| self.aodv.poll_transmit(self.now)).collect()
    }

    pub(super) fn events(&mut self) -> Vec<Event<u32>> {
        core::iter::from_fn(|| self.aodv.poll_event()).collect()
    }

    /// Delivers a broadcast message of neighbour `from`.
    pub(super) fn receive_broadcast(
        &mut self,
        from: u32,
        ttl: u8,
        message: impl Into<AnyMessage>,
    ) -> Vec<Transmit> {
        self.receive(node_address(from), Ipv4Addr::BROADCAST, ttl, message.into().0)
    }

    /// Delivers a message that neighbour `from` sent to this node alone.
    pub(super) fn receive_unicast(&mut self, from: u32, message: impl Into<AnyMessage>) -> Vec<Transmit> {
        self.receive(node_address(from), ME, 30, message.into().0)
    }

    pub(super) fn receive(
        &mut self,
        from: Ipv4Addr,
        to: Ipv4Addr,
        ttl: u8,
        message: Message,
    ) -> Vec<Transmit> {
        self.aodv.handle_packet(self.now, LinkId::ONLY, Received { message, from, to, ttl });
        self.sent()
    }

    /// Sends a packet of this node's own.
    pub(super) fn send(&mut self, destination: u32, packet: u32) -> Decision {
        self.aodv.route(self.now, node_address(destination), Origin::Local, packet)
    }

    /// Forwards a packet of `source` that arrived over `previous_hop`.
    pub(super) fn forward(
        &mut self,
        source: u32,
        previous_hop: u32,
        destination: u32,
        packet: u32,
    ) -> Decision {
        let origin =
            Origin::Forwarded { previous_hop: node_address(previous_hop), source: node_address(source) };
        self.aodv.route(self.now, node_address(destination), origin, packet)
    }

    /// Reports a failed link to `neighbour`.
    pub(super) fn fail_link(&mut self, neighbour: u32, carried: FailedContent<u32>) -> Vec<Transmit> {
        self.aodv.handle_signal(
            self.now,
            Signal::LinkFailed { neighbour: node_address(neighbour), content: carried },
        );
        self.sent()
    }

    pub(super) fn route_view(&self, destination: u32) -> Option<RouteView> {
        self.aodv.routes(self.now).find(|route| route.destination == node_address(destination))
    }

    /// Next hop, hops and sequence number of a valid route.
    pub(super) fn valid_route(&self, destination: u32) -> Option<(Ipv4Addr, u8, Option<Seq32>)> {
        self.route_view(destination)
            .filter(|route| route.state == RouteState::Valid)
            .map(|route| (route.next_hop, route.hops, route.seq))
    }
}

/// Any message that can be received.
pub(super) struct AnyMessage(Message);

impl From<Rreq> for AnyMessage {
    fn from(request: Rreq) -> Self {
        Self(Message::Rreq(request))
    }
}

impl From<Rrep> for AnyMessage {
    fn from(reply: Rrep) -> Self {
        Self(Message::Rrep(reply))
    }
}

impl From<Message> for AnyMessage {
    fn from(message: Message) -> Self {
        Self(message)
    }
}

/// Returns a request of `originator` for `destination`, `hops` hops from its origin. Sequence number: 9 + `id`.
pub(super) fn rreq(originator: u32, id: u32, destination: u32, hops: u8) -> Rreq {
    Rreq {
        join: false,
        repair: false,
        gratuitous: false,
        destination_only: false,
        hop_count: hops,
        id,
        destination: node_address(destination),
        destination_seq: None,
        originator: node_address(originator),
        originator_seq: Seq32(9 + id),
    }
}

/// Returns a reply for `originator` about `destination`, which is `hops` hops from the neighbour that sends it. Lifetime 6
/// s.
pub(super) fn rrep(originator: u32, destination: u32, seq: u32, hops: u8) -> Rrep {
    Rrep {
        repair: false,
        ack_required: false,
        prefix_size: 0,
        hop_count: hops,
        destination: node_address(destination),
        destination_seq: Seq32(seq),
        originator: node_address(originator),
        lifetime: Duration::from_secs(6),
    }
}

/// Returns a route error about these destinations.
pub(super) fn rerr(unreachable: &[(u32, u32)]) -> Message {
    let unreachable = unreachable.iter().map(|(node, seq)| (node_address(*node), Seq32(*seq))).collect();
    Message::Rerr(Rerr { no_delete: false, unreachable })
}

/// Returns the request in `sent`; panics unless that is one request and nothing else.
pub(super) fn only_request(sent: &[Transmit]) -> (&Rreq, u8) {
    match sent {
        [Transmit { message: Message::Rreq(request), next_hop: Ipv4Addr::BROADCAST, ttl, .. }] => {
            (request, *ttl)
        }
        other => panic!("expected one request, got {other:?}"),
    }
}

/// Returns the reply in `sent`, and its receiver.
pub(super) fn only_reply(sent: &[Transmit]) -> (&Rrep, Ipv4Addr) {
    match sent {
        [Transmit { message: Message::Rrep(reply), next_hop, .. }] => (reply, *next_hop),
        other => panic!("expected one reply, got {other:?}"),
    }
}

/// Returns the route error in `sent`, and its receiver.
pub(super) fn only_error(sent: &[Transmit]) -> (&Rerr, Ipv4Addr) {
    match sent {
        [Transmit { message: Message::Rerr(error), next_hop, ttl: 1, .. }] => (error, *next_hop),
        other => panic!("expected one route error, got {other:?}"),
    }
}
