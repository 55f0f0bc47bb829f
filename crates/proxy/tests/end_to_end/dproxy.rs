//! D-Proxy at both ends of a link, in both modes, also while ends restart or one is absent.

use crate::end_to_end::support::{emulations, endpoints, header, transports, wire};
use bytes::Bytes;
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant};
use hopline_link::{Direction, Fate};
use hopline_proxy::dproxy::opaque::{self, Frame, Opaque, Order, Parity};
use hopline_proxy::dproxy::{Config, DProxy, Does, Expansion, Holding, Key, OrderRule, Timeouts, Verdict};
use hopline_proxy::{Packet as Passing, Turn};
use hopline_testkit::transfer::{Course, Transfer};
use hopline_testkit::{Emulation, Middle, Packet, Side, Station};
use hopline_transport::tcp;
use hopline_wire::tcp::Segment;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

type Wired = Segment<Bytes>;

/// The two ends of a link, by side.
trait Ends {
    /// Packet or frame that crosses the link.
    type Crossing: Clone;

    /// Sends a packet of the endpoint on this side across the link.
    fn enter(&mut self, now: Instant, side: usize, segment: Wired);
    /// Handles a packet or frame that has come over the link to this side.
    fn arrive(&mut self, now: Instant, side: usize, crossing: Self::Crossing);
    fn handle_timeout(&mut self, now: Instant);
    fn poll(&mut self, side: usize) -> Option<Out<Self::Crossing>>;
    /// Records that the link's queue has no room for this packet or frame.
    fn refused(&mut self, side: usize, crossing: &Self::Crossing);
    fn next_wake(&self) -> Option<Instant>;
    /// Restarts the end on this side without state.
    fn restart(&mut self, now: Instant, side: usize);
    fn len(crossing: &Self::Crossing) -> usize;
    /// Returns the packet or frame with a flipped bit, or `None` if it would be discarded.
    fn damaged(crossing: &Self::Crossing, direction: &mut Direction) -> Option<Self::Crossing>;
}

enum Out<C> {
    /// Send over the link.
    Crosses(Turn, C),
    /// Deliver to the endpoint on this side.
    Leaves(Wired),
}

/// A link with a middlebox at both ends that repairs its losses, between two wires.
struct Repaired<E: Ends> {
    ends: E,
    lanes: [Lane<E::Crossing>; 2],
    under_way: BTreeMap<(Instant, u64), (usize, E::Crossing)>,
    sent: u64,
    out: VecDeque<(Side, Wired)>,
    /// Interval at which the ends restart, by turns.
    restarts: Option<Duration>,
    restarted: (Instant, usize),
}

/// One direction of the link: a queue with priority, and the impairments.
struct Lane<C> {
    rate: Option<u64>,
    room: usize,
    queue: VecDeque<(Turn, C)>,
    free_at: Instant,
    beyond: Direction,
}

impl<C> Lane<C> {
    fn new(emulation: Emulation, seed: u64, owner: u64) -> Self {
        let (rate, room) = (emulation.rate, emulation.queue.unwrap_or(usize::MAX));
        let beyond = Direction::new(Emulation { rate: None, queue: None, ..emulation }, seed, owner);
        Self { rate, room, queue: VecDeque::new(), free_at: Instant::ZERO, beyond }
    }

    /// Returns when the first waiting packet can be sent.
    fn due(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.free_at)
    }
}

impl<E: Ends> Repaired<E> {
    fn new(ends: E, link: [Emulation; 2], restarts: Option<Duration>, seed: u64) -> Self {
        let mut owner = 8;
        let lanes = link.map(|emulation| {
            owner += 1;
            Lane::new(emulation, seed, owner)
        });
        let restarted = (Instant::ZERO, 0);
        Self { ends, lanes, under_way: BTreeMap::new(), sent: 0, out: VecDeque::new(), restarts, restarted }
    }

    fn settle(&mut self, now: Instant) {
        for side in [0, 1] {
            while let Some(out) = self.ends.poll(side) {
                match out {
                    Out::Crosses(turn, crossing) => self.enqueue(side, turn, crossing),
                    // Packets that leave on the side of B come from A.
                    Out::Leaves(segment) => self.out.push_back(([Side::B, Side::A][side], segment)),
                }
            }
            self.transmit(now, side);
        }
    }

    fn enqueue(&mut self, side: usize, turn: Turn, crossing: E::Crossing) {
        let Lane { room, queue, .. } = &mut self.lanes[side];
        if queue.len() >= *room {
            return self.ends.refused(side, &crossing);
        }
        let ahead = queue.iter().take_while(|(waits, _)| *waits == Turn::First).count();
        queue.insert(if turn == Turn::First { ahead } else { queue.len() }, (turn, crossing));
    }

    /// Sends waiting packets while the link is free.
    fn transmit(&mut self, now: Instant, side: usize) {
        let lane = &mut self.lanes[side];
        while lane.free_at <= now
            && let Some((_, crossing)) = lane.queue.pop_front()
        {
            let len = E::len(&crossing);
            lane.free_at =
                now + lane.rate.map_or(Duration::ZERO, |rate| Duration::of_bits(8 * len as u64, rate));
            for (at, fate) in lane.beyond.carry(lane.free_at, len).into_iter().flatten() {
                let copy = match fate {
                    Fate::Whole => Some(crossing.clone()),
                    Fate::Corrupt => E::damaged(&crossing, &mut lane.beyond),
                };
                if let Some(copy) = copy {
                    self.under_way.insert((at, self.sent), (1 - side, copy));
                    self.sent += 1;
                }
            }
        }
    }
}

impl<E: Ends> Station<Wired> for Repaired<E> {
    fn take(&mut self, now: Instant, from: Side, segment: Wired) {
        let (last, side) = self.restarted;
        if self.restarts.is_some_and(|every| now.since(last) >= every) {
            self.ends.restart(now, side);
            self.restarted = (now, 1 - side);
        }
        self.ends.enter(now, if from == Side::A { 0 } else { 1 }, segment);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let (side, crossing) = entry.remove();
            self.ends.arrive(now, side, crossing);
            self.settle(now);
        }
        self.ends.handle_timeout(now);
        self.settle(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Side, Wired)> {
        self.out.pop_front()
    }

    fn next_wake(&self) -> Option<Instant> {
        let arrival = self.under_way.keys().next().map(|(at, _)| *at);
        let lanes = self.lanes.iter().filter_map(Lane::due);
        self.ends.next_wake().into_iter().chain(arrival).chain(lanes).min()
    }
}

/// A packet or message between middleboxes that read TCP.
#[derive(Clone)]
enum Read {
    Packet(Wired),
    Message(Vec<u8>),
}

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];

/// Middleboxes that read TCP. `None`: there is none on that side, and all packets pass.
struct Reading {
    ends: [Option<DProxy<Wired>>; 2],
    /// Session key: a new one at each restart.
    key: Key,
    change: Box<dyn Fn(&mut Config)>,
    out: [VecDeque<Out<Read>>; 2],
}

impl Reading {
    fn new(present: [bool; 2], change: impl Fn(&mut Config) + 'static) -> Self {
        let mut reading = Self {
            ends: [None, None],
            key: Key::new([5; 32]),
            change: Box::new(change),
            out: Default::default(),
        };
        for side in [0, 1].into_iter().filter(|&side| present[side]) {
            reading.ends[side] = Some(reading.end(side));
        }
        reading
    }

    fn end(&self, side: usize) -> DProxy<Wired> {
        let mut config = Config::new(ADDRESSES[side], ADDRESSES[1 - side], self.key);
        (self.change)(&mut config);
        DProxy::new(config)
    }

    fn drain(&mut self, side: usize) {
        let Some(end) = &mut self.ends[side] else { return };
        while let Some(does) = end.poll() {
            self.out[side].push_back(match does {
                Does::Replays(turn, segment) => Out::Crosses(turn, Read::Packet(segment)),
                Does::Releases(segment) => Out::Leaves(segment),
                Does::Sends { to, turn, sealed } => {
                    assert_eq!(to, ADDRESSES[1 - side]);
                    let mut bytes = Vec::new();
                    sealed.emit(&mut bytes);
                    Out::Crosses(turn, Read::Message(bytes))
                }
            });
        }
    }
}

fn sides(side: usize) -> Side {
    [Side::A, Side::B][side]
}

impl Ends for Reading {
    type Crossing = Read;

    fn enter(&mut self, now: Instant, side: usize, segment: Wired) {
        if let Some(end) = &mut self.ends[side] {
            let ip = header(sides(side));
            end.pass_out(now, Passing::new(&ip, &segment), || segment.clone());
        }
        self.out[side].push_back(Out::Crosses(Turn::Last, Read::Packet(segment)));
        self.drain(side);
    }

    fn arrive(&mut self, now: Instant, side: usize, crossing: Read) {
        let verdict = match (&mut self.ends[side], &crossing) {
            (Some(end), Read::Packet(segment)) => {
                let ip = header(sides(1 - side));
                end.pass_in(now, Passing::new(&ip, segment), || segment.clone())
            }
            (Some(end), Read::Message(bytes)) => {
                end.handle_datagram(now, ADDRESSES[1 - side].into(), bytes);
                Verdict::Held
            }
            (None, Read::Packet(_)) => Verdict::Forward,
            (None, Read::Message(_)) => Verdict::Held,
        };
        if let (Verdict::Forward, Read::Packet(segment)) = (verdict, crossing) {
            self.out[side].push_back(Out::Leaves(segment));
        }
        self.drain(side);
    }

    fn handle_timeout(&mut self, now: Instant) {
        for side in [0, 1] {
            self.ends[side].iter_mut().for_each(|end| end.handle_timeout(now));
            self.drain(side);
        }
    }

    fn poll(&mut self, side: usize) -> Option<Out<Read>> {
        self.out[side].pop_front()
    }

    fn refused(&mut self, side: usize, crossing: &Read) {
        if let (Some(end), Read::Packet(segment)) = (&mut self.ends[side], crossing) {
            let ip = header(sides(side));
            end.refused(Passing::new(&ip, segment));
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.ends.iter().flatten().filter_map(DProxy::poll_timeout).min()
    }

    fn restart(&mut self, now: Instant, side: usize) {
        if self.ends[side].is_none() {
            return;
        }
        let mut life = [0; 32];
        life[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        self.key = Key::new(life);
        self.ends[side] = Some(self.end(side));
        if let Some(other) = &mut self.ends[1 - side] {
            other.peer_came(now, [self.key; 2]);
        }
        (0..2).for_each(|side| self.drain(side));
    }

    fn len(crossing: &Read) -> usize {
        match crossing {
            Read::Packet(segment) => segment.link_len(),
            Read::Message(bytes) => bytes.len() + 28,
        }
    }

    fn damaged(crossing: &Read, direction: &mut Direction) -> Option<Read> {
        match crossing {
            Read::Packet(segment) => segment.corrupted(&mut direction.random).map(Read::Packet),
            Read::Message(bytes) => {
                let mut bytes = bytes.clone();
                let at = direction.random.below(bytes.len() as u32) as usize;
                bytes[at] ^= 1 << direction.random.below(8);
                Some(Read::Message(bytes))
            }
        }
    }
}

/// Middleboxes that number packets.
struct Numbering {
    ends: [Opaque<Wired>; 2],
    config: opaque::Config,
    lives: u16,
}

impl Numbering {
    fn new(config: opaque::Config) -> Self {
        Self { ends: [Opaque::new(config, 1), Opaque::new(config, 2)], config, lives: 2 }
    }
}

impl Ends for Numbering {
    type Crossing = Frame<Wired>;

    fn enter(&mut self, now: Instant, side: usize, segment: Wired) {
        self.ends[side].send(now, segment);
    }

    fn arrive(&mut self, now: Instant, side: usize, crossing: Frame<Wired>) {
        self.ends[side].handle_frame(now, crossing);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }

    fn poll(&mut self, side: usize) -> Option<Out<Frame<Wired>>> {
        loop {
            match self.ends[side].poll()? {
                opaque::Does::Sends(turn, frame) => return Some(Out::Crosses(turn, frame)),
                opaque::Does::Delivers(segment) => return Some(Out::Leaves(segment)),
                opaque::Does::Loses(_) | opaque::Does::Discards(_) => {}
            }
        }
    }

    fn refused(&mut self, side: usize, crossing: &Frame<Wired>) {
        if let Frame::Data { number, .. } = crossing {
            self.ends[side].refused(*number);
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.ends.iter().filter_map(Opaque::poll_timeout).min()
    }

    fn restart(&mut self, _now: Instant, side: usize) {
        self.lives += 1;
        self.ends[side] = Opaque::new(self.config, self.lives);
    }

    fn len(crossing: &Frame<Wired>) -> usize {
        crossing.len_bytes(|segment| segment.link_len() as u32) as usize
    }

    /// A lower layer discards damaged frames.
    fn damaged(_: &Frame<Wired>, _: &mut Direction) -> Option<Frame<Wired>> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
struct Options {
    timeouts: Timeouts,
    order_rule: OrderRule,
    expansion: Expansion,
    holding: Holding,
    grace: u8,
    tail_probe: Option<Duration>,
    small: bool,
}

fn options() -> impl Strategy<Value = Options> {
    let timeouts = prop::sample::select(vec![Timeouts::Successive, Timeouts::Cumulative, Timeouts::Off]);
    let order_rule = prop::sample::select(vec![OrderRule::On, OrderRule::Off]);
    let expansion = prop::sample::select(vec![Expansion::On, Expansion::Off]);
    let holding = prop::sample::select(vec![Holding::InOrder, Holding::AsTheyCome]);
    let tail_probe = prop::option::of((5u64..50).prop_map(Duration::from_millis));
    (timeouts, order_rule, expansion, holding, 0u8..3, tail_probe, any::<bool>()).prop_map(
        |(timeouts, order_rule, expansion, holding, grace, tail_probe, small)| Options {
            timeouts,
            order_rule,
            expansion,
            holding,
            grace,
            tail_probe,
            small,
        },
    )
}

impl Options {
    fn put_into(self, config: &mut Config) {
        config.recovery.timeouts = self.timeouts;
        config.recovery.order_rule = self.order_rule;
        config.recovery.grace = self.grace;
        (config.expansion, config.holding, config.tail_probe) =
            (self.expansion, self.holding, self.tail_probe);
        if self.small {
            (config.held_packets, config.caching.packets_per_flow, config.caching.packets) = (3, 5, 8);
        }
    }
}

fn numberings() -> impl Strategy<Value = opaque::Config> {
    let order = prop::sample::select(vec![Order::Kept, Order::Any]);
    let parity = prop::option::of(1u8..10);
    (order, parity, 1u32..200, any::<bool>()).prop_map(|(order, parity, kept_packets, probes)| {
        let parity = parity.and_then(NonZeroU8::new);
        opaque::Config {
            order,
            kept_packets,
            tail_probe: probes.then_some(Duration::from_millis(1)),
            parity: parity.map_or(Parity::Off, |least| Parity::Adaptive { least, most: least }),
            ..opaque::Config::default()
        }
    })
}

/// Runs a transfer in both directions over a link with these ends, to its end.
fn completes<E: Ends>(
    station: Repaired<E>,
    ends: (tcp::Endpoint<Bytes>, tcp::Endpoint<Bytes>),
    totals: [u64; 2],
    seed: u64,
) {
    let middle = Middle::new(ends.0, station, ends.1, [wire(), wire()], [wire(), wire()], seed);
    let mut transfer = Transfer::of(middle, totals, |_| {});
    transfer.run(Instant::from_secs(9000));
    transfer.assert_complete();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_in_order_past_machines_that_read_tcp(
        options in options(),
        present in prop::sample::select(vec![[true, true], [true, true], [true, false], [false, true]]),
        tcp in transports(),
        link in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..200_000, 0u64..30_000],
        // Numbers wrap around in the middle.
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let ends = Reading::new(present, move |config| options.put_into(config));
        let restarts = restarts.map(Duration::from_millis);
        completes(Repaired::new(ends, link, restarts, seed), endpoints(tcp, isns), totals, seed);
    }

    #[test]
    fn every_byte_arrives_once_and_in_order_past_machines_that_number_packets(
        config in numberings(),
        tcp in transports(),
        link in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..200_000, 0u64..30_000],
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let restarts = restarts.map(Duration::from_millis);
        completes(Repaired::new(Numbering::new(config), link, restarts, seed), endpoints(tcp, isns), totals, seed);
    }
}

/// Returns the time in which ten megabytes arrive over a link of 20 Mb/s and 2 ms with this loss in each
/// direction.
fn time<E: Ends>(ends: E, loss: f64) -> Duration {
    const TOTAL: u64 = 10_000_000;
    let link =
        Emulation { loss, latency: Duration::from_millis(2), rate: Some(20_000_000), ..Emulation::default() };
    let tcp = tcp::Config { window_clamp: Some(200), ..tcp::Config::linux().with_sack() };
    let (a, b) = endpoints(tcp, [1, 2]);
    let station = Repaired::new(ends, [link.clone(), link], None, 5);
    let mut transfer =
        Transfer::of(Middle::new(a, station, b, [wire(), wire()], [wire(), wire()], 5), [TOTAL, 0], |_| {});
    while transfer.received()[0] < TOTAL {
        transfer.act();
        assert!(transfer.pair.step(Instant::from_secs(2000)));
    }
    transfer.pair.now().since(Instant::ZERO)
}

/// Returns the share of the link's capacity without losses that TCP gets with these ends.
fn share<E: Ends>(ends: E, loss: f64) -> f64 {
    let whole = time(Reading::new([false, false], |_| {}), 0.0);
    whole.as_secs_f64() / time(ends, loss).as_secs_f64() / (1.0 - loss)
}

#[test]
fn with_machines_in_either_mode_tcp_gets_what_a_link_that_loses_packets_can_carry() {
    for (loss, least) in [(0.01, 0.95), (0.05, 0.9), (0.1, 0.85)] {
        // As on Linux: replays go first.
        let read = share(Reading::new([true, true], |config| config.turn = Turn::First), loss);
        let numbered = share(Numbering::new(opaque::Config::default()), loss);
        assert!(read > least && numbered > least, "{read} and {numbered} of what is left of {loss} lost");
    }
    let plain = share(Reading::new([false, false], |_| {}), 0.01);
    assert!(plain < 0.2, "{plain} without");
}

#[test]
fn where_nothing_is_lost_neither_mode_costs_time() {
    let plain = time(Reading::new([false, false], |_| {}), 0.0);
    assert_eq!(time(Reading::new([true, true], |_| {}), 0.0), plain);
    let numbered = time(Numbering::new(opaque::Config::default()), 0.0);
    assert!(numbered.as_nanos() * 100 <= plain.as_nanos() * 102, "{numbered:?} with, {plain:?} without");
}

#[test]
fn a_transfer_survives_a_flood_of_other_flows_at_both_machines() {
    let link = Emulation { loss: 0.02, latency: Duration::from_millis(2), ..Emulation::default() };
    let (a, b) = endpoints(tcp::Config::linux().with_sack(), [1, 2]);
    let station = Repaired::new(Reading::new([true, true], |_| {}), [link.clone(), link], None, 7);
    let mut transfer = Transfer::of(
        Middle::new(a, station, b, [wire(), wire()], [wire(), wire()], 7),
        [500_000, 10_000],
        |_| {},
    );
    let mut strangers = 0u32;
    transfer.act();
    while transfer.pair.step(Instant::from_secs(2000)) {
        transfer.act();
        let now = transfer.pair.now();
        for _ in 0..100.min(100_000 - strangers) {
            strangers += 1;
            let ends = &mut transfer.pair.station.ends;
            for end in ends.ends.iter_mut().flatten() {
                flood(end, now, strangers);
                assert!(end.connections() <= 65_536 && end.held() <= 4096 && end.cached() <= 16_384);
            }
        }
    }
    assert_eq!(strangers, 100_000);
    transfer.assert_complete();
}

/// Passes packets of another connection, with one missing on the way back.
fn flood(end: &mut DProxy<Wired>, now: Instant, stranger: u32) {
    let mut ip = header(Side::A);
    ip.src = Ipv4Addr::from_bits(0x0b00_0000 + stranger);
    let mut segment =
        Wired { src_port: 1, dst_port: 2, payload: Bytes::from_static(b"hello"), ..Wired::default() };
    end.pass_out(now, Passing::new(&ip, &segment), || segment.clone());
    for _ in 0..2 {
        let _ = end.pass_in(now, Passing::new(&ip, &segment), || segment.clone());
        segment.seq += 2 * segment.payload.len() as u32;
    }
    // These get no answer.
    while end.poll().is_some() {}
}
