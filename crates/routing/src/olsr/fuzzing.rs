//! Turns any bytes into a life for one machine and checks what must hold whatever neighbours do.

use super::config::{Hysteresis, LinkSensing};
use super::{Config, Event, LinkState, Olsr, Received, Signal};
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId, Purpose, Seq16, Stream};
use hopline_wire::olsr::{Body, CodedTime, Hello, LinkCode, LinkMessage, Message, Packet, Tc, Willingness};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// How often a machine may ask to be woken at one instant before that counts as standing still.
const MOST_WAKES_AT_ONCE: u32 = 100;

/// Drives a machine with operations read from `data`.
///
/// # Panics
/// If the machine breaks its contract: panics itself, grows beyond its limits, asks to be woken again and again without
/// time passing, sends what cannot be read, routes to itself or over a link that is not symmetric, reports routes that
/// it does not have, or keeps any after long silence.
pub fn drive(data: &[u8]) {
    let mut input = Input(data);
    let mut life = Life::new(config(&mut input));
    while !input.0.is_empty() {
        life.step(&mut input);
        life.check();
    }
    life.end();
}

struct Life {
    olsr: Olsr,
    now: Instant,
    /// Destinations that events say there are routes to.
    reported: BTreeSet<Ipv4Addr>,
}

impl Life {
    fn new(config: Config) -> Self {
        let stream = Stream::new(1, 1, NodeId(0), Purpose::Routing);
        let olsr = Olsr::new(config, NodeId(0).ipv4(), stream);
        Self { olsr, now: Instant::ZERO, reported: BTreeSet::new() }
    }

    fn step(&mut self, input: &mut Input) {
        match input.byte() % 8 {
            0 => self.pass(Duration::from_millis(u64::from(input.byte()) * 40)),
            // Late: the machine was due, and nobody has woken it.
            1 => self.now += Duration::from_millis(u64::from(input.byte()) * 40),
            2 => {
                let neighbour = input.address();
                self.olsr.handle_signal(self.now, Signal::LinkFailed { neighbour });
            }
            _ => {
                let packet = Arc::new(packet(input));
                let received = Received { packet, from: input.address() };
                self.olsr.handle_packet(self.now, LinkId::ONLY, received);
            }
        }
        self.drain();
    }

    /// Lets time pass, waking the machine whenever it wants.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut wakes = 0;
        while let Some((due, _)) = self.olsr.poll_timeout().filter(|(due, _)| *due <= end) {
            wakes = if due > self.now { 0 } else { wakes + 1 };
            assert!(wakes < MOST_WAKES_AT_ONCE, "time stands still at {due}");
            self.now = self.now.max(due);
            self.olsr.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
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
        let [two_hops, topology, duplicates] = self.olsr.entries();
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

    /// When nobody has said anything for longer than anything holds, nothing is known.
    fn end(&mut self) {
        self.pass(Duration::from_secs(60));
        assert_eq!(self.olsr.links(self.now).count(), 0);
        assert_eq!(self.olsr.routes().count(), 0);
        assert!(self.reported.is_empty());
        assert!(self.olsr.relays().chain(self.olsr.selectors()).next().is_none());
        assert_eq!(self.olsr.entries()[..2], [0, 0]);
        assert!(self.olsr.links(self.now).all(|link| link.state != LinkState::Symmetric));
    }
}

fn config(input: &mut Input) -> Config {
    let choice = input.byte();
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

fn packet(input: &mut Input) -> Packet {
    let count = 1 + input.byte() % 3;
    Packet { seq: input.seq(), messages: (0..count).map(|_| message(input)).collect() }
}

fn message(input: &mut Input) -> Message {
    Message {
        // 15.5 s at most, so that a minute of silence is long.
        validity: CodedTime::from_bits(input.byte() & 0xf7),
        originator: input.address(),
        ttl: input.byte(),
        hop_count: input.byte(),
        seq: input.seq(),
        body: match input.byte() % 4 {
            0 | 1 => Body::Hello(hello(input)),
            2 => Body::Tc(Tc { ansn: input.seq(), neighbours: input.addresses() }),
            _ => Body::Unknown { kind: 200, bytes: vec![input.byte()] },
        },
    }
}

fn hello(input: &mut Input) -> Hello {
    let count = input.byte() % 4;
    let link = |input: &mut Input| {
        // Mostly codes that mean something.
        let code = match input.byte() {
            bits @ 200.. => LinkCode::from_bits(bits),
            bits => LinkCode::from_bits(bits % 12),
        };
        LinkMessage { code, neighbours: input.addresses() }
    };
    Hello {
        interval: CodedTime::from_bits(input.byte() & 0xf7),
        willingness: Willingness::new(input.byte() % 8),
        links: (0..count).map(|_| link(input)).collect(),
    }
}

/// Bytes to draw from; zeros once they are used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Mostly one of eight nodes, the machine's own among them; sometimes no host at all.
    fn address(&mut self) -> Ipv4Addr {
        match self.byte() {
            255 => Ipv4Addr::BROADCAST,
            254 => Ipv4Addr::UNSPECIFIED,
            253 => Ipv4Addr::new(224, 0, 0, 1),
            byte => NodeId(u32::from(byte % 8)).ipv4(),
        }
    }

    fn addresses(&mut self) -> Vec<Ipv4Addr> {
        let count = self.byte() % 6;
        (0..count).map(|_| self.address()).collect()
    }

    /// Sequence numbers near each other, around the wrap, and half a circle away.
    fn seq(&mut self) -> Seq16 {
        let byte = self.byte();
        Seq16(u16::from(byte >> 4 & 3) << 14) + u16::from(byte & 15) - 8
    }
}
