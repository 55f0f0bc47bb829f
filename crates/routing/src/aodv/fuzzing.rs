//! Turns any bytes into a life for one machine and checks what must hold whatever neighbours do.

use super::config::{Answering, Hello, HelloWhen, LinkSensing, LocalRepair, ReplyAck};
use super::{Aodv, Carried, Config, Decision, Event, Origin, Received, Signal};
use core::num::NonZeroU16;
use hopline_core::{Duration, Instant, LinkId, Machine, NodeId, Purpose, Seq32, Stream};
use hopline_wire::aodv::{Message, Rerr, Rrep, Rreq};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// How often a machine may ask to be woken at one instant before that counts as standing still.
const MOST_WAKES_AT_ONCE: u32 = 100;

/// Drives a machine with operations read from `data`.
///
/// # Panics
/// If the machine breaks its contract: panics itself, keeps or doubles a packet, grows beyond its limits, asks to be
/// woken again and again without time passing, or routes to itself.
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
    aodv: Aodv<u32>,
    now: Instant,
    next_packet: u32,
    inside: BTreeSet<u32>,
}

impl Life {
    fn new(config: Config) -> Self {
        let stream = Stream::new(1, 1, NodeId(0), Purpose::Routing);
        let aodv = Aodv::new(config, NodeId(0).ipv4(), stream);
        Self { aodv, now: Instant::ZERO, next_packet: 0, inside: BTreeSet::new() }
    }

    fn step(&mut self, input: &mut Input) {
        match input.byte() % 8 {
            0 => self.pass(Duration::from_millis(u64::from(input.byte()) * 40)),
            1 | 2 => self.route(input),
            3 => self.fail(input),
            4 => {
                let neighbour = input.address();
                self.aodv.handle_signal(self.now, Signal::NeighbourHeard { neighbour });
            }
            _ => self.hear(input),
        }
        self.drain();
    }

    /// Lets time pass, waking the machine whenever it wants.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut wakes = 0;
        while let Some((due, _)) = self.aodv.poll_timeout().filter(|(due, _)| *due <= end) {
            wakes = if due > self.now { 0 } else { wakes + 1 };
            assert!(wakes < MOST_WAKES_AT_ONCE, "time stands still at {due}");
            self.now = self.now.max(due);
            self.aodv.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn route(&mut self, input: &mut Input) {
        let packet = self.next_packet;
        self.next_packet += 1;
        let destination = input.address();
        let origin = match input.byte() % 2 {
            0 => Origin::Local,
            _ => Origin::Forwarded { previous_hop: input.address(), source: input.address() },
        };
        match self.aodv.route(self.now, destination, origin, packet) {
            Decision::Buffered => assert!(self.inside.insert(packet)),
            Decision::Forward { next_hop } => assert_ne!(next_hop, self.aodv.address()),
            Decision::Dropped { .. } => {}
        }
    }

    fn fail(&mut self, input: &mut Input) {
        let neighbour = input.address();
        let carried = match input.byte() % 4 {
            0 => Carried::Nothing,
            1 => Carried::Reply,
            2 => Carried::Control,
            _ => {
                let packet = self.next_packet;
                self.next_packet += 1;
                self.inside.insert(packet);
                let (destination, source) = (input.address(), input.address());
                Carried::Data { packet, destination, source, travelled: input.byte() }
            }
        };
        self.aodv.handle_signal(self.now, Signal::LinkFailed { neighbour, carried });
    }

    fn hear(&mut self, input: &mut Input) {
        let message = message(input);
        let to = if input.byte().is_multiple_of(2) { Ipv4Addr::BROADCAST } else { self.aodv.address() };
        let received = Received { message, from: input.address(), to, ttl: input.byte() };
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

    /// After the longest patience of all, no packet is left inside.
    fn end(&mut self) {
        self.pass(Duration::from_secs(120));
        assert!(self.inside.is_empty(), "packets {:?} never came out", self.inside);
    }
}

fn config(input: &mut Input) -> Config {
    let choice = input.byte();
    let mut config = if choice & 1 == 0 { Config::rfc3561() } else { Config::ns2_235() };
    let hello = Hello { when: HelloWhen::Always, ..Hello::RFC3561 };
    match choice >> 1 & 3 {
        1 => config.link_sensing = LinkSensing::Hello(Hello::RFC3561),
        2 => config.link_sensing = LinkSensing::Both(hello),
        _ => {}
    }
    if choice & 8 != 0 {
        config.local_repair = LocalRepair::Rfc { max_hops: 10, add_ttl: 2 };
    }
    if choice & 16 != 0 {
        config.reply_ack = ReplyAck::Always;
        config.answering = Answering::RelaysGratuitous;
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

fn message(input: &mut Input) -> Message {
    match input.byte() % 4 {
        0 => Message::Rreq(Rreq {
            join: false,
            repair: false,
            gratuitous: input.byte() & 1 != 0,
            destination_only: input.byte() & 1 != 0,
            hop_count: input.byte(),
            id: u32::from(input.byte()),
            destination: input.address(),
            destination_seq: (input.byte() & 1 != 0).then(|| input.seq()),
            originator: input.address(),
            originator_seq: input.seq(),
        }),
        1 => Message::Rrep(Rrep {
            repair: false,
            ack_required: input.byte() & 1 != 0,
            prefix_size: input.byte(),
            hop_count: input.byte(),
            destination: input.address(),
            destination_seq: input.seq(),
            originator: input.address(),
            lifetime: Duration::from_nanos(1 << (input.byte() % 64)),
        }),
        2 => {
            let count = input.byte() % 8;
            let unreachable = (0..count).map(|_| (input.address(), input.seq())).collect();
            Message::Rerr(Rerr { no_delete: input.byte() & 1 != 0, unreachable })
        }
        _ => Message::RrepAck,
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

    /// Mostly one of sixteen nodes, the machine's own among them; sometimes no host at all.
    fn address(&mut self) -> Ipv4Addr {
        match self.byte() {
            255 => Ipv4Addr::BROADCAST,
            254 => Ipv4Addr::UNSPECIFIED,
            253 => Ipv4Addr::new(224, 0, 0, 1),
            byte => NodeId(u32::from(byte % 16)).ipv4(),
        }
    }

    /// Sequence numbers near each other, around the wrap, and half a circle away.
    fn seq(&mut self) -> Seq32 {
        let byte = self.byte();
        Seq32(u32::from(byte >> 4 & 3) << 30) + u32::from(byte & 15) - 8
    }
}
