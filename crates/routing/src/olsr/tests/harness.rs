//! Scripted test of one machine: inputs at given times, and the outputs.

use crate::olsr::*;
pub(super) use crate::tests::{ms, node_address};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, Seq16, StateMachine};
use hopline_wire::olsr::{
    Body, CodedTime, Hello, LinkCode, LinkMessage, LinkType, Message, NeighbourType, Packet, Tc, Willingness,
};
use std::net::Ipv4Addr;
use std::sync::Arc;

pub(super) const ME: Ipv4Addr = node_address(0);
pub(super) const ASYMMETRIC: LinkCode = code(LinkType::Asymmetric, NeighbourType::NotNeighbour);
pub(super) const SYMMETRIC: LinkCode = code(LinkType::Symmetric, NeighbourType::Symmetric);
pub(super) const MPR: LinkCode = code(LinkType::Symmetric, NeighbourType::Mpr);
pub(super) const LOST: LinkCode = code(LinkType::Lost, NeighbourType::NotNeighbour);

const fn code(link: LinkType, neighbour: NeighbourType) -> LinkCode {
    LinkCode::Valid { link, neighbour }
}

/// The nodes of these addresses.
pub(super) fn indices(addresses: impl IntoIterator<Item = Ipv4Addr>) -> Vec<u32> {
    addresses.into_iter().map(|address| NodeId::from_ipv4(address).unwrap().0).collect()
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Returns a configuration without jitter, so that tests can count seconds.
pub(super) fn without_jitter() -> Config {
    Config { max_jitter: Some(Duration::ZERO), ..Config::rfc3626() }
}

/// Node 0 and its clock. Its neighbours number their packets and messages as one.
pub(super) struct TestNode {
    pub(super) olsr: Olsr,
    pub(super) now: Instant,
    pub(super) seq: Seq16,
}

impl TestNode {
    pub(super) fn new(config: Config) -> Self {
        let olsr = Olsr::new(config, ME, RandomStream::new(1, 1, NodeId(0), Purpose::Routing));
        let mut node = Self { olsr, now: Instant::ZERO, seq: Seq16(0) };
        // Past the random phase of the first messages.
        node.skip(secs(100));
        node
    }

    /// Advances the time; returns each message with its time.
    pub(super) fn advance(&mut self, time: Duration) -> Vec<(Instant, Message)> {
        let end = self.now + time;
        let mut sent = Vec::new();
        while let Some((due, _)) = self.olsr.poll_timeout().filter(|(due, _)| *due <= end) {
            self.now = self.now.max(due);
            self.olsr.handle_timeout(self.now);
            sent.extend(self.sent().into_iter().map(|message| (self.now, message)));
        }
        self.now = end;
        sent
    }

    /// Advances the time and discards the outputs.
    pub(super) fn skip(&mut self, time: Duration) {
        self.advance(time);
        self.events();
    }

    pub(super) fn packets(&mut self) -> Vec<Packet> {
        core::iter::from_fn(|| self.olsr.poll_transmit(self.now)).map(|transmit| transmit.packet).collect()
    }

    fn sent(&mut self) -> Vec<Message> {
        self.packets().into_iter().flat_map(|packet| packet.messages).collect()
    }

    pub(super) fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.olsr.poll_event()).collect()
    }

    /// Delivers a message of neighbour `from`, in a packet of its own.
    pub(super) fn receive(&mut self, from: Ipv4Addr, message: Message) {
        let packet = Arc::new(Packet { seq: message.seq, messages: vec![message] });
        self.olsr.handle_packet(self.now, LinkId::ONLY, Received { packet, from });
    }

    pub(super) fn message(&mut self, originator: u32, validity: Duration, body: Body) -> Message {
        self.seq += 1;
        let validity = CodedTime::at_least(validity);
        Message { validity, originator: node_address(originator), ttl: 9, hop_count: 2, seq: self.seq, body }
    }

    /// Delivers a HELLO of neighbour `from` with these links.
    pub(super) fn receive_hello(&mut self, from: u32, links: &[(LinkCode, &[u32])]) {
        self.receive_hello_with_willingness(from, Willingness::DEFAULT, links);
    }

    pub(super) fn receive_hello_with_willingness(
        &mut self,
        from: u32,
        willingness: Willingness,
        links: &[(LinkCode, &[u32])],
    ) {
        let link = |(code, nodes): &(LinkCode, &[u32])| LinkMessage {
            code: *code,
            neighbours: nodes.iter().map(|node| node_address(*node)).collect(),
        };
        let interval = CodedTime::at_least(secs(2));
        let body = Body::Hello(Hello { interval, willingness, links: links.iter().map(link).collect() });
        let message = self.message(from, secs(6), body);
        self.receive(node_address(from), message);
    }

    /// Delivers a TC message of `originator`, forwarded by neighbour `from`.
    pub(super) fn receive_tc(&mut self, from: u32, originator: u32, ansn: u16, neighbours: &[u32]) {
        let message = self.tc(originator, ansn, neighbours);
        self.receive(node_address(from), message);
    }

    pub(super) fn tc(&mut self, originator: u32, ansn: u16, neighbours: &[u32]) -> Message {
        let neighbours = neighbours.iter().map(|node| node_address(*node)).collect();
        self.message(originator, secs(15), Body::Tc(Tc { ansn: Seq16(ansn), neighbours }))
    }

    /// Next hop and hops to `destination`.
    pub(super) fn route(&self, destination: u32) -> Option<(u32, u8)> {
        let route = self.olsr.route(node_address(destination))?;
        Some((NodeId::from_ipv4(route.next_hop).unwrap().0, route.hops))
    }

    /// State of the link to `neighbour`.
    pub(super) fn link(&self, neighbour: u32) -> Option<LinkState> {
        self.olsr
            .links(self.now)
            .find(|link| link.neighbour == node_address(neighbour))
            .map(|link| link.state)
    }

    /// Returns the content of the next HELLO: code and node.
    pub(super) fn next_hello(&mut self) -> Vec<(LinkCode, u32)> {
        let sent = self.advance(secs(2));
        let hello = sent.iter().find_map(|(_, message)| match &message.body {
            Body::Hello(hello) => Some(hello),
            _ => None,
        });
        let links = &hello.expect("a HELLO every two seconds").links;
        links
            .iter()
            .flat_map(|link| indices(link.neighbours.clone()).into_iter().map(|node| (link.code, node)))
            .collect()
    }

    pub(super) fn mprs(&self) -> Vec<u32> {
        indices(self.olsr.mprs())
    }

    pub(super) fn selectors(&self) -> Vec<u32> {
        indices(self.olsr.selectors())
    }

    pub(super) fn ignored(&self, reason: IgnoredReason) -> u64 {
        self.olsr.stats().ignored(reason)
    }
}

/// Returns the TC messages of node 0 in `sent`: time, ANSN, neighbours.
pub(super) fn tcs(sent: &[(Instant, Message)]) -> Vec<(Instant, u16, Vec<u32>)> {
    let own = sent.iter().filter(|(_, message)| message.originator == ME);
    own.filter_map(|(at, message)| match &message.body {
        Body::Tc(tc) => Some((*at, tc.ansn.0, indices(tc.neighbours.clone()))),
        _ => None,
    })
    .collect()
}
