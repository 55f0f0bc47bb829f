//! AODV machine.

use super::{Choices, Life};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, Seq32, StateMachine};
use hopline_routing::aodv::config::{Hello, HelloSenders, LinkSensing, LocalRepair, ReplyAck, ReplyPolicy};
use hopline_routing::aodv::{Aodv, Config, Decision, Event, FailedContent, Origin, Received, Signal};
use hopline_wire::aodv::{Message, Rerr, Rrep, Rreq};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::num::NonZeroU16;

/// Drives an AODV machine with operations read from `data`.
///
/// # Panics
/// If the machine violates its contract: it panics, keeps or duplicates a packet, exceeds its limits, sets timers repeatedly
/// without progress in time, or routes to itself.
pub fn aodv_machine(data: &[u8]) {
    let mut choices = Choices(data);
    let mut node = Node::new(config(&mut choices));
    while !choices.is_over() {
        node.step(&mut choices);
        node.check();
    }
    node.end();
}

struct Node {
    aodv: Aodv<u32>,
    now: Instant,
    next_packet: u32,
    inside: BTreeSet<u32>,
}

impl Node {
    fn new(config: Config) -> Self {
        let stream = RandomStream::new(1, 1, NodeId(0), Purpose::Routing);
        let aodv = Aodv::new(config, NodeId(0).ipv4(), stream);
        Self { aodv, now: Instant::ZERO, next_packet: 0, inside: BTreeSet::new() }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 8 {
            0 => self.pass(Duration::from_millis(u64::from(choices.byte()) * 40)),
            1 | 2 => self.route(choices),
            3 => self.fail(choices),
            4 => {
                let neighbour = address(choices);
                self.aodv.handle_signal(self.now, Signal::NeighbourHeard { neighbour });
            }
            _ => self.hear(choices),
        }
        self.drain();
    }

    fn route(&mut self, choices: &mut Choices<'_>) {
        let packet = self.next_packet;
        self.next_packet += 1;
        let destination = address(choices);
        let origin = match choices.byte() % 2 {
            0 => Origin::Local,
            _ => Origin::Forwarded { previous_hop: address(choices), source: address(choices) },
        };
        match self.aodv.route(self.now, destination, origin, packet) {
            Decision::Accepted => assert!(self.inside.insert(packet)),
            Decision::Forward { next_hop } => assert_ne!(next_hop, self.aodv.address()),
            Decision::Dropped { .. } => {}
        }
    }

    fn fail(&mut self, choices: &mut Choices<'_>) {
        let neighbour = address(choices);
        let carried = match choices.byte() % 4 {
            0 => FailedContent::Other,
            1 => FailedContent::Reply,
            2 => FailedContent::Control,
            _ => {
                let packet = self.next_packet;
                self.next_packet += 1;
                self.inside.insert(packet);
                let (destination, source) = (address(choices), address(choices));
                FailedContent::Data { packet, destination, source, travelled: choices.byte() }
            }
        };
        self.aodv.handle_signal(self.now, Signal::LinkFailed { neighbour, content: carried });
    }

    fn hear(&mut self, choices: &mut Choices<'_>) {
        let message = message(choices);
        let to = if choices.byte().is_multiple_of(2) { Ipv4Addr::BROADCAST } else { self.aodv.address() };
        let received = Received { message, from: address(choices), to, ttl: choices.byte() };
        self.aodv.handle_packet(self.now, LinkId::ONLY, received);
    }

    fn drain(&mut self) {
        while let Some(sent) = self.aodv.poll_transmit(self.now) {
            assert_eq!(sent.source, self.aodv.address());
            assert_ne!(sent.next_hop, self.aodv.address());
        }
        while let Some(event) = self.aodv.poll_event() {
            match event {
                Event::Release { packet, next_hop } => {
                    assert_ne!(next_hop, self.aodv.address());
                    assert!(self.inside.remove(&packet), "packet {packet} came out twice");
                }
                Event::Drop { packet, .. } => {
                    assert!(self.inside.remove(&packet), "packet {packet} came out twice");
                }
                Event::RouteFound { .. } | Event::RouteLost { .. } | Event::PurgeQueue { .. } => {}
            }
        }
    }

    fn check(&self) {
        let limits = self.aodv.config().limits;
        assert!(self.aodv.routes(self.now).count() <= limits.routes as usize);
        assert!(self.aodv.buffered() <= usize::from(self.aodv.config().buffer_packets.get()));
        assert!(self.aodv.routes(self.now).all(|route| route.destination != self.aodv.address()));
    }

    /// Checks that no packet is left inside after the longest time limit.
    fn end(&mut self) {
        self.pass(Duration::from_secs(120));
        assert!(self.inside.is_empty(), "packets {:?} never came out", self.inside);
    }
}

impl Life for Node {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        self.aodv.poll_timeout().map(|(at, _)| at)
    }

    fn wake(&mut self) {
        self.aodv.handle_timeout(self.now);
        self.drain();
    }
}

fn config(choices: &mut Choices<'_>) -> Config {
    let choice = choices.byte();
    let mut config = if choice & 1 == 0 { Config::rfc3561() } else { Config::ns2_235() };
    let hello = Hello { senders: HelloSenders::Always, ..Hello::RFC3561 };
    match choice >> 1 & 3 {
        1 => config.link_sensing = LinkSensing::Hello(Hello::RFC3561),
        2 => config.link_sensing = LinkSensing::Both(hello),
        3 => config.link_sensing = LinkSensing::Hello(Hello::AODV_UU),
        _ => {}
    }
    if choice & 8 != 0 {
        config.local_repair = LocalRepair::Rfc { max_hops: 10, add_ttl: 2 };
    }
    if choice & 16 != 0 {
        config.reply_ack = ReplyAck::Always;
        config.reply_policy = ReplyPolicy::IntermediateGratuitous;
    }
    config.buffer_packets = NonZeroU16::new(4).expect("not zero");
    config.limits.routes = 10;
    config.limits.originators = 5;
    config.limits.searches = 3;
    config.limits.neighbours = 3;
    config.limits.departures = 4;
    config.limits.precursors = 2;
    config
}

fn message(choices: &mut Choices<'_>) -> Message {
    match choices.byte() % 4 {
        0 => Message::Rreq(Rreq {
            join: false,
            repair: false,
            gratuitous: choices.byte() & 1 != 0,
            destination_only: choices.byte() & 1 != 0,
            hop_count: choices.byte(),
            id: u32::from(choices.byte()),
            destination: address(choices),
            destination_seq: (choices.byte() & 1 != 0).then(|| seq(choices)),
            originator: address(choices),
            originator_seq: seq(choices),
        }),
        1 => Message::Rrep(Rrep {
            repair: false,
            ack_required: choices.byte() & 1 != 0,
            prefix_size: choices.byte(),
            hop_count: choices.byte(),
            destination: address(choices),
            destination_seq: seq(choices),
            originator: address(choices),
            lifetime: Duration::from_nanos(1 << (choices.byte() % 64)),
        }),
        2 => {
            let count = choices.byte() % 8;
            let unreachable = (0..count).map(|_| (address(choices), seq(choices))).collect();
            Message::Rerr(Rerr { no_delete: choices.byte() & 1 != 0, unreachable })
        }
        _ => Message::RrepAck,
    }
}

/// Returns mostly one of sixteen nodes, the machine's own among them.
fn address(choices: &mut Choices<'_>) -> Ipv4Addr {
    choices.address(16)
}

/// Returns a sequence number near others, around the wrap, or half the number space away.
fn seq(choices: &mut Choices<'_>) -> Seq32 {
    let byte = choices.byte();
    Seq32(u32::from(byte >> 4 & 3) << 30) + u32::from(byte & 15) - 8
}
