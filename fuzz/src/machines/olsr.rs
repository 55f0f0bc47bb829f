//! OLSR machine.

use super::{Choices, Life};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, Seq16, StateMachine};
use hopline_routing::olsr::config::{Hysteresis, LinkSensing};
use hopline_routing::olsr::{Config, Event, LinkState, Olsr, Received, Signal};
use hopline_wire::olsr::{Body, CodedTime, Hello, LinkCode, LinkMessage, Message, Packet, Tc, Willingness};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Drives an OLSR machine with operations read from `data`.
///
/// # Panics
/// If the machine violates its contract: it panics, exceeds its limits, sets timers repeatedly without progress in time,
/// sends packets that do not parse, routes to itself or over a link that is not symmetric, reports routes that it does not
/// have, or keeps any after a long silence.
pub fn olsr_machine(data: &[u8]) {
    let mut choices = Choices(data);
    let mut node = Node::new(config(&mut choices));
    while !choices.is_over() {
        node.step(&mut choices);
        node.check();
    }
    node.end();
}

struct Node {
    olsr: Olsr,
    now: Instant,
    /// Destinations with a reported route.
    reported: BTreeSet<Ipv4Addr>,
}

impl Node {
    fn new(config: Config) -> Self {
        let stream = RandomStream::new(1, 1, NodeId(0), Purpose::Routing);
        let olsr = Olsr::new(config, NodeId(0).ipv4(), stream);
        Self { olsr, now: Instant::ZERO, reported: BTreeSet::new() }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 8 {
            0 => self.pass(Duration::from_millis(u64::from(choices.byte()) * 40)),
            // A late timer: the machine was due, and is not called yet.
            1 => self.now += Duration::from_millis(u64::from(choices.byte()) * 40),
            2 => {
                let neighbour = address(choices);
                self.olsr.handle_signal(self.now, Signal::LinkFailed { neighbour });
            }
            _ => {
                let packet = Arc::new(packet(choices));
                let received = Received { packet, from: address(choices) };
                self.olsr.handle_packet(self.now, LinkId::ONLY, received);
            }
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(sent) = self.olsr.poll_transmit(self.now) {
            assert_eq!(sent.source, self.olsr.address());
            let one = sent.packet.messages.len() == 1;
            assert!(one || sent.packet.wire_len() <= usize::from(self.olsr.config().max_packet_bytes));
            let mut bytes = Vec::new();
            sent.packet.emit(&mut bytes);
            assert_eq!(Packet::parse(&bytes), Ok(sent.packet));
        }
        while let Some(event) = self.olsr.poll_event() {
            match event {
                Event::RouteFound { destination, .. } => assert!(self.reported.insert(destination)),
                Event::RouteLost { destination } => assert!(self.reported.remove(&destination)),
            }
        }
    }

    fn check(&self) {
        let limits = self.olsr.config().limits;
        let [two_hops, topology, duplicates] = self.olsr.table_sizes();
        assert!(self.olsr.links(self.now).count() <= usize::from(limits.links));
        assert!(two_hops <= limits.two_hops as usize);
        assert!(topology <= limits.topology as usize);
        assert!(duplicates <= limits.duplicates as usize);
        assert!(self.olsr.routes().map(|(to, _)| to).eq(self.reported.iter().copied()));
        assert!(self.olsr.route(self.olsr.address()).is_none());
        for (to, route) in self.olsr.routes() {
            let next = self.olsr.route(route.next_hop).expect("the next hop has a route");
            assert_eq!((next.hops, next.next_hop), (1, route.next_hop), "on the way to {to}");
        }
    }

    /// Checks that all state has expired after a silence longer than any lifetime.
    fn end(&mut self) {
        self.pass(Duration::from_secs(60));
        assert_eq!(self.olsr.links(self.now).count(), 0);
        assert_eq!(self.olsr.routes().count(), 0);
        assert!(self.reported.is_empty());
        assert!(self.olsr.mprs().chain(self.olsr.selectors()).next().is_none());
        assert_eq!(self.olsr.table_sizes()[..2], [0, 0]);
        assert!(self.olsr.links(self.now).all(|link| link.state != LinkState::Symmetric));
    }
}

impl Life for Node {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        self.olsr.poll_timeout().map(|(at, _)| at)
    }

    fn wake(&mut self) {
        self.olsr.handle_timeout(self.now);
        self.drain();
    }
}

fn config(choices: &mut Choices<'_>) -> Config {
    let choice = choices.byte();
    let mut config = Config::rfc3626();
    if choice & 1 != 0 {
        config.hysteresis = Some(Hysteresis::RFC3626);
    }
    if choice & 2 != 0 {
        config.link_sensing = LinkSensing::HelloAndLinkLayer;
    }
    if choice & 4 != 0 {
        config.max_packet_bytes = 60;
    }
    config.willingness = Willingness::new(choice >> 5);
    config.limits.links = 5;
    config.limits.two_hops = 12;
    config.limits.topology = 12;
    config.limits.duplicates = 6;
    config.limits.departures = 4;
    config
}

fn packet(choices: &mut Choices<'_>) -> Packet {
    let count = 1 + choices.byte() % 3;
    Packet { seq: seq(choices), messages: (0..count).map(|_| message(choices)).collect() }
}

fn message(choices: &mut Choices<'_>) -> Message {
    Message {
        // 15.5 s at most, so that a minute of silence is longer.
        validity: CodedTime::from_bits(choices.byte() & 0xf7),
        originator: address(choices),
        ttl: choices.byte(),
        hop_count: choices.byte(),
        seq: seq(choices),
        body: match choices.byte() % 4 {
            0 | 1 => Body::Hello(hello(choices)),
            2 => Body::Tc(Tc { ansn: seq(choices), neighbours: addresses(choices) }),
            _ => Body::Unknown { kind: 200, bytes: vec![choices.byte()] },
        },
    }
}

fn hello(choices: &mut Choices<'_>) -> Hello {
    let count = choices.byte() % 4;
    let link = |choices: &mut Choices<'_>| {
        // Mostly codes with a meaning.
        let code = match choices.byte() {
            bits @ 200.. => LinkCode::from_bits(bits),
            bits => LinkCode::from_bits(bits % 12),
        };
        LinkMessage { code, neighbours: addresses(choices) }
    };
    Hello {
        interval: CodedTime::from_bits(choices.byte() & 0xf7),
        willingness: Willingness::new(choices.byte() % 8),
        links: (0..count).map(|_| link(choices)).collect(),
    }
}

/// Returns mostly one of eight nodes, the machine's own among them.
fn address(choices: &mut Choices<'_>) -> Ipv4Addr {
    choices.address(8)
}

fn addresses(choices: &mut Choices<'_>) -> Vec<Ipv4Addr> {
    let count = choices.byte() % 6;
    (0..count).map(|_| address(choices)).collect()
}

/// Returns a sequence number near others, around the wrap, or half the number space away.
fn seq(choices: &mut Choices<'_>) -> Seq16 {
    let byte = choices.byte();
    Seq16(u16::from(byte >> 4 & 3) << 14) + u16::from(byte & 15) - 8
}
