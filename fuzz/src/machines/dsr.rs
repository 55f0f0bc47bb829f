//! DSR machine.

use super::{Choices, Life};
use core::num::{NonZeroU8, NonZeroU16};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, StateMachine};
use hopline_routing::dsr::config::{
    CachedReplies, GratuitousReplies, NoCache, NoCacheJitter, NoCacheRelays, NoCacheSalvage, NoCacheSearches,
    PathCache, RouteCache, Tap, TargetReplies,
};
use hopline_routing::dsr::{Config, Dsr, Event, Flow, Packet, Received, Receiver, Signal, Transmit};
use hopline_wire::dsr::{
    Ack, AckRequest, Addresses, DsrOption, ErrorKind, FirstHop, Header, LastHop, RouteError, RouteReply,
    RouteRequest, SourceRoute,
};
use hopline_wire::ipv4::Protocol;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Drives a DSR machine with operations read from `data`.
///
/// # Panics
/// If the machine violates its contract: it panics, loses or duplicates a data packet, exceeds its limits, sets timers
/// repeatedly without progress in time, sends packets that do not parse or contradict their route, or keeps a packet for
/// ever.
pub fn dsr_machine(data: &[u8]) {
    let mut choices = Choices(data);
    let mut node = Node::new(config(&mut choices));
    while !choices.is_over() {
        node.step(&mut choices);
        node.check();
    }
    node.end();
}

struct Node {
    dsr: Dsr<u32>,
    now: Instant,
    next_packet: u32,
    inside: BTreeSet<u32>,
    /// Latest packets that it sent; their transmission may still fail.
    sent: Vec<Transmit<u32>>,
}

impl Node {
    fn new(config: Config) -> Self {
        let stream = RandomStream::new(1, 1, NodeId(0), Purpose::Routing);
        let dsr = Dsr::new(config, NodeId(0).ipv4(), stream);
        Self { dsr, now: Instant::ZERO, next_packet: 0, inside: BTreeSet::new(), sent: Vec::new() }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 8 {
            0 => self.pass(Duration::from_millis(u64::from(choices.byte()) * 40)),
            // A late timer: the machine was due, and is not called yet.
            1 => self.now += Duration::from_millis(u64::from(choices.byte()) * 40),
            2 => {
                let packet = self.packet_in();
                self.dsr.send(self.now, address(choices), choices.byte(), Protocol::Tcp, packet);
            }
            3 => self.fail(choices),
            _ => self.hear(choices),
        }
        self.drain();
    }

    fn packet_in(&mut self) -> u32 {
        self.next_packet += 1;
        self.inside.insert(self.next_packet);
        self.next_packet
    }

    /// The link layer reports a failed transmission, of a sent packet or of any other.
    fn fail(&mut self, choices: &mut Choices<'_>) {
        let Transmit { packet, next_hop } =
            match self.sent.pop().filter(|_| !choices.byte().is_multiple_of(4)) {
                Some(sent) => sent,
                None => Transmit { packet: packet(choices), next_hop: address(choices) },
            };
        let carried = packet.header.next.map(|_| self.packet_in());
        let packet = Packet { payload: carried, ..packet };
        self.dsr.handle_signal(self.now, Signal::LinkFailed { neighbour: next_hop, packet });
    }

    fn hear(&mut self, choices: &mut Choices<'_>) {
        let packet = packet(choices);
        let to = match choices.byte() % 4 {
            0 => Receiver::Other(address(choices)),
            _ => Receiver::ThisNode,
        };
        let carries = to == Receiver::ThisNode && packet.header.next.is_some();
        let carried = carries.then(|| self.packet_in());
        // Mostly from the node that the packet names, if it is a request or has travelled one hop.
        let from = match packet.header.options.first() {
            Some(DsrOption::Request(request)) => request.path.last().copied().unwrap_or(packet.source),
            Some(DsrOption::SourceRoute(route)) => route
                .path
                .len()
                .checked_sub(usize::from(route.segments_left) + 1)
                .and_then(|at| at.checked_sub(1))
                .map_or(packet.source, |at| route.path[at]),
            _ => address(choices),
        };
        let received = Received { packet: Packet { payload: carried, ..packet }, from, to };
        self.dsr.handle_packet(self.now, LinkId::ONLY, received);
    }

    fn drain(&mut self) {
        while let Some(sent) = self.dsr.poll_transmit(self.now) {
            self.check_sent(&sent);
            if let Some(packet) = sent.packet.payload {
                assert!(self.inside.remove(&packet), "packet {packet} came out twice");
            }
            self.sent.push(sent);
            if self.sent.len() > 8 {
                self.sent.remove(0);
            }
        }
        while let Some(event) = self.dsr.poll_event() {
            match event {
                Event::Deliver { packet, .. } | Event::Drop { packet, .. } => {
                    assert!(self.inside.remove(&packet), "packet {packet} came out twice");
                }
                Event::RouteFound { destination, hops } => {
                    assert!(destination != self.dsr.address() && hops > 0);
                }
                Event::RouteLost { .. } | Event::PurgeQueue { .. } => {}
            }
        }
    }

    fn check_sent(&self, sent: &Transmit<u32>) {
        let Transmit { packet, next_hop } = sent;
        assert_ne!(*next_hop, self.dsr.address());
        assert_eq!(next_hop.is_broadcast(), packet.destination.is_broadcast());
        assert!(packet.payload.is_none() || packet.header.next.is_some());
        for option in &packet.header.options {
            if let DsrOption::SourceRoute(route) = option {
                assert_eq!(route.next_hop(packet.destination), *next_hop);
            }
        }
        let mut bytes = Vec::new();
        packet.header.emit(&mut bytes);
        assert_eq!(Header::parse(&bytes), Ok(((*packet.header).clone(), bytes.len())));
    }

    fn check(&self) {
        let config = self.dsr.config();
        let capacity = match &config.cache {
            RouteCache::Paths(cache) => usize::from(cache.capacity.get()),
            RouteCache::Off(_) => 0,
        };
        assert!(self.dsr.routes(self.now).count() <= capacity);
        assert!(self.dsr.buffered() <= usize::from(config.buffer_packets.get()));
        assert!(self.dsr.search_count() <= config.limits.request_table as usize);
        for path in self.dsr.routes(self.now) {
            let nodes: BTreeSet<_> = path.iter().collect();
            assert!(!path.is_empty() && nodes.len() == path.len() && !nodes.contains(&self.dsr.address()));
            assert!(path.len() <= usize::from(config.max_path.get()) + 1);
        }
    }

    /// Checks that no packet is left inside after the longest time limit.
    fn end(&mut self) {
        self.pass(Duration::from_secs(60));
        assert!(self.inside.is_empty(), "packets {:?} never came out", self.inside);
        assert_eq!(self.dsr.buffered(), 0);
        assert_eq!(self.dsr.poll_timeout(), None, "nothing is left to do");
    }
}

impl Life for Node {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        self.dsr.poll_timeout().map(|(at, _)| at)
    }

    fn wake(&mut self) {
        self.dsr.handle_timeout(self.now);
        self.drain();
    }
}

fn uncached(choice: u8) -> NoCache {
    let relays = [NoCacheRelays::Search, NoCacheRelays::Follow];
    let searches = [NoCacheSearches::Shared, NoCacheSearches::PerPacket];
    let salvage = [NoCacheSalvage::SourceOnly, NoCacheSalvage::Everywhere];
    let bit = |n: u8| usize::from(choice >> n & 1);
    let jitter = [NoCacheJitter::Fresh, NoCacheJitter::ByTimeSlot];
    NoCache {
        relays: relays[bit(1)],
        searches: searches[bit(2)],
        salvage: salvage[bit(4)],
        jitter: jitter[bit(5)],
    }
}

fn config(choices: &mut Choices<'_>) -> Config {
    let choice = choices.byte();
    let mut config = if choice & 1 == 0 { Config::rfc4728() } else { Config::ns2() };
    let mut cache = PathCache { capacity: NonZeroU16::new(5).expect("not zero"), ..PathCache::RFC4728 };
    if choice & 2 != 0 {
        cache.tap = Tap::Off;
        cache.gratuitous_replies = GratuitousReplies::Off;
    }
    if choice & 4 != 0 {
        cache.cached_replies = CachedReplies::Off;
    }
    config.cache = RouteCache::Paths(cache);
    if choice & 8 != 0 {
        config.cache = RouteCache::Off(uncached(choice));
    }
    if choice & 16 != 0 {
        config.target_replies = TargetReplies::First;
    }
    config.max_path = NonZeroU8::new(if choice & 32 == 0 { 3 } else { 255 }).expect("not zero");
    config.max_request_retries = NonZeroU8::new(4).expect("not zero");
    config.max_salvage = choice >> 6;
    config.request_ids = NonZeroU8::new(2).expect("not zero");
    config.buffer_packets = NonZeroU16::new(4).expect("not zero");
    config.limits.request_table = 3;
    config.limits.departures = 4;
    config.limits.gratuitous_table = 2;
    config
}

/// Returns a request, or a packet with a source route of which this node is mostly the next hop.
fn packet(choices: &mut Choices<'_>) -> Packet<u32> {
    let kind = choices.byte();
    let first = match kind % 4 {
        0 => DsrOption::Request(RouteRequest {
            id: u16::from(choices.byte() % 4),
            target: address(choices),
            path: addresses(choices),
        }),
        1 => option(choices),
        _ => source_route(choices),
    };
    let broadcast = kind.is_multiple_of(4) && kind < 240;
    let further = kind >> 4 & 3;
    let options = core::iter::once(first).chain((0..further).map(|_| option(choices))).collect();
    let next = (kind & 8 != 0).then_some(Protocol::Udp);
    Packet {
        source: address(choices),
        destination: if broadcast { Ipv4Addr::BROADCAST } else { address(choices) },
        ttl: choices.byte(),
        header: Arc::new(Header { next, options }),
        payload: None,
        flow: if kind & 4 == 0 { Flow::Announced } else { Flow::Established },
    }
}

fn source_route(choices: &mut Choices<'_>) -> DsrOption {
    let mut path = addresses(choices);
    let byte = choices.byte();
    let mut segments_left = byte % 8;
    if byte < 200 && !path.is_empty() {
        // Addressed to this node.
        let at = usize::from(byte) % path.len();
        path[at] = NodeId(0).ipv4();
        segments_left = (path.len() - at) as u8;
    }
    let salvage = choices.byte() % 16;
    DsrOption::SourceRoute(SourceRoute {
        first: FirstHop::Ordinary,
        last: LastHop::Ordinary,
        salvage: salvage / 8,
        segments_left,
        path,
    })
}

fn option(choices: &mut Choices<'_>) -> DsrOption {
    match choices.byte() % 7 {
        0 => {
            let mut path = addresses(choices);
            path.push(address(choices));
            DsrOption::Reply(RouteReply { last: LastHop::Ordinary, path })
        }
        1 | 2 => {
            let kind = match choices.byte() {
                250.. => ErrorKind::Other { kind: 3, data: [choices.byte()].into_iter().collect() },
                _ => ErrorKind::NodeUnreachable(address(choices)),
            };
            let salvage = choices.byte() % 16;
            DsrOption::Error(RouteError {
                salvage,
                source: address(choices),
                destination: address(choices),
                kind,
            })
        }
        3 => DsrOption::AckRequest(AckRequest { id: u16::from(choices.byte()) }),
        4 => DsrOption::Ack(Ack { id: 0, source: address(choices), destination: address(choices) }),
        5 => source_route(choices),
        _ => {
            let kind = choices.pick(&[0x10, 0x30, 0x50, 0x70, 0x90, 0xb0, 0xd0, 0xf0]);
            DsrOption::Unknown {
                kind,
                data: [choices.byte()].into_iter().take(usize::from(kind >> 5)).collect(),
            }
        }
    }
}

/// Returns mostly one of eight nodes, the machine's own among them.
fn address(choices: &mut Choices<'_>) -> Ipv4Addr {
    choices.address(8)
}

/// Returns mostly distinct addresses, few or very many.
fn addresses(choices: &mut Choices<'_>) -> Addresses {
    let byte = choices.byte();
    let count = if byte >= 250 { 61 } else { byte % 6 };
    let first = choices.byte();
    let step = if byte & 64 == 0 { 1 } else { choices.byte() };
    (0..count).map(|i| NodeId(u32::from(first.wrapping_add(step.wrapping_mul(i)) % 64)).ipv4()).collect()
}
