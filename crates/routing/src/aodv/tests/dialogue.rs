//! Scripted test of one machine: inputs at given times, and the outputs.

use crate::aodv::*;
pub(super) use crate::tests::{ms, n};
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId, Purpose, Seq32, Stream};
use hopline_wire::aodv::{Message, Rerr, Rrep, Rreq};
use std::net::Ipv4Addr;

pub(super) const ME: Ipv4Addr = n(0);

/// Node 0 and its clock.
pub(super) struct Node {
    pub(super) aodv: Aodv<u32>,
    pub(super) now: Instant,
}

impl Node {
    /// Creates a node that sends its own broadcasts without jitter, so that tests can predict the times.
    pub(super) fn new(config: Config) -> Self {
        Self::jittered(Config { originated_jitter: Duration::ZERO, ..config }, 0)
    }

    /// Makes a node with the jitter of `config`, and with the random numbers of node `number`.
    pub(super) fn jittered(config: Config, number: u32) -> Self {
        let aodv = Aodv::new(config, ME, Stream::new(1, 1, NodeId(number), Purpose::Routing));
        Self { aodv, now: Instant::from_secs(100) }
    }

    /// Advances the time; returns each transmission with its time.
    pub(super) fn pass(&mut self, time: Duration) -> Vec<(Instant, Transmit)> {
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
        self.pass(time);
        self.events();
    }

    pub(super) fn sent(&mut self) -> Vec<Transmit> {
        core::iter::from_fn(|| self.aodv.poll_transmit(self.now)).collect()
    }

    pub(super) fn events(&mut self) -> Vec<Event<u32>> {
        core::iter::from_fn(|| self.aodv.poll_event()).collect()
    }

    /// Delivers a broadcast message of neighbour `from`.
    pub(super) fn hear(&mut self, from: u32, ttl: u8, message: impl Into<Heard>) -> Vec<Transmit> {
        self.take(n(from), Ipv4Addr::BROADCAST, ttl, message.into().0)
    }

    /// Delivers a message that neighbour `from` sent to this node alone.
    pub(super) fn get(&mut self, from: u32, message: impl Into<Heard>) -> Vec<Transmit> {
        self.take(n(from), ME, 30, message.into().0)
    }

    pub(super) fn take(&mut self, from: Ipv4Addr, to: Ipv4Addr, ttl: u8, message: Message) -> Vec<Transmit> {
        self.aodv.handle_packet(self.now, LinkId::ONLY, Received { message, from, to, ttl });
        self.sent()
    }

    /// Sends a packet of this node's own.
    pub(super) fn send(&mut self, destination: u32, packet: u32) -> Decision {
        self.aodv.route(self.now, n(destination), Origin::Local, packet)
    }

    /// Forwards a packet of `source` that arrived over `previous_hop`.
    pub(super) fn forward(
        &mut self,
        source: u32,
        previous_hop: u32,
        destination: u32,
        packet: u32,
    ) -> Decision {
        let origin = Origin::Forwarded { previous_hop: n(previous_hop), source: n(source) };
        self.aodv.route(self.now, n(destination), origin, packet)
    }

    /// Reports a failed link to `neighbour`.
    pub(super) fn link_fails(&mut self, neighbour: u32, carried: Carried<u32>) -> Vec<Transmit> {
        self.aodv.handle_signal(self.now, Signal::LinkFailed { neighbour: n(neighbour), carried });
        self.sent()
    }

    pub(super) fn entry(&self, destination: u32) -> Option<RouteView> {
        self.aodv.routes(self.now).find(|route| route.destination == n(destination))
    }

    /// Next hop, hops and sequence number of a valid route.
    pub(super) fn valid(&self, destination: u32) -> Option<(Ipv4Addr, u8, Option<Seq32>)> {
        self.entry(destination)
            .filter(|route| route.state == RouteState::Valid)
            .map(|route| (route.next_hop, route.hops, route.seq))
    }
}

/// Any message that can be received.
pub(super) struct Heard(Message);

impl From<Rreq> for Heard {
    fn from(request: Rreq) -> Self {
        Self(Message::Rreq(request))
    }
}

impl From<Rrep> for Heard {
    fn from(reply: Rrep) -> Self {
        Self(Message::Rrep(reply))
    }
}

impl From<Message> for Heard {
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
        destination: n(destination),
        destination_seq: None,
        originator: n(originator),
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
        destination: n(destination),
        destination_seq: Seq32(seq),
        originator: n(originator),
        lifetime: Duration::from_secs(6),
    }
}

/// Returns a route error about these destinations.
pub(super) fn rerr(unreachable: &[(u32, u32)]) -> Message {
    let unreachable = unreachable.iter().map(|(node, seq)| (n(*node), Seq32(*seq))).collect();
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
