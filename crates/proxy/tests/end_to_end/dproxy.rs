//! D-Proxy at both ends of a link, in both modes, also while ends restart or one is absent.

use crate::end_to_end::support::{emulations, endpoints, header, transports, wire};
use bytes::Bytes;
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant};
use hopline_link::{CopyState, Direction};
use hopline_proxy::dproxy::opaque::{self, DeliveryMode, Frame, Opaque, Parity};
use hopline_proxy::dproxy::{
    Config, DProxy, DProxyAction, HoleDelivery, Key, OrderRule, RequestExpansion, TimeoutRule, Verdict,
};
use hopline_proxy::{Packet as Passing, QueuePosition};
use hopline_testkit::transfer::{EndpointPair, Transfer};
use hopline_testkit::{Emulation, Packet, Side, Station, TwoLinks};
use hopline_transport::tcp;
use hopline_wire::tcp::Segment;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

type Wired = Segment<Bytes>;

/// The two ends of a link, by side.
trait LinkEnds {
    /// Packet or frame that crosses the link.
    type LinkPacket: Clone;

    /// Sends a packet of the endpoint on this side across the link.
    fn handle_outgoing(&mut self, now: Instant, side: usize, segment: Wired);
    /// Handles a packet or frame that has come over the link to this side.
    fn handle_incoming(&mut self, now: Instant, side: usize, crossing: Self::LinkPacket);
    fn handle_timeout(&mut self, now: Instant);
    fn poll(&mut self, side: usize) -> Option<LinkOutput<Self::LinkPacket>>;
    /// Records that the link's queue has no room for this packet or frame.
    fn on_queue_drop(&mut self, side: usize, crossing: &Self::LinkPacket);
    fn poll_timeout(&self) -> Option<Instant>;
    /// Restarts the end on this side without state.
    fn restart(&mut self, now: Instant, side: usize);
    fn len(crossing: &Self::LinkPacket) -> usize;
    /// Returns the packet or frame with a flipped bit, or `None` if it would be discarded.
    fn corrupt(crossing: &Self::LinkPacket, direction: &mut Direction) -> Option<Self::LinkPacket>;
}

enum LinkOutput<C> {
    /// Send over the link.
    SendOverLink(QueuePosition, C),
    /// Deliver to the endpoint on this side.
    Deliver(Wired),
}

/// A link with a middlebox at both ends that repairs its losses, between two wires.
struct RepairedLink<E: LinkEnds> {
    ends: E,
    lanes: [LinkDirection<E::LinkPacket>; 2],
    in_flight: BTreeMap<(Instant, u64), (usize, E::LinkPacket)>,
    sent: u64,
    out: VecDeque<(Side, Wired)>,
    /// Interval at which the ends restart, by turns.
    restart_interval: Option<Duration>,
    last_restart: (Instant, usize),
}

/// One direction of the link: a queue with priority, and the impairments.
struct LinkDirection<C> {
    rate: Option<u64>,
    queue_capacity: usize,
    queue: VecDeque<(QueuePosition, C)>,
    idle_at: Instant,
    impairments: Direction,
}

impl<C> LinkDirection<C> {
    fn new(emulation: Emulation, seed: u64, owner: u64) -> Self {
        let (rate, room) = (emulation.rate(), emulation.queue().unwrap_or(usize::MAX));
        let beyond = Direction::new(emulation.with_rate(None).with_queue(None), seed, owner);
        Self {
            rate,
            queue_capacity: room,
            queue: VecDeque::new(),
            idle_at: Instant::ZERO,
            impairments: beyond,
        }
    }

    /// Returns when the first waiting packet can be sent.
    fn next_transmission(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.idle_at)
    }
}

impl<E: LinkEnds> RepairedLink<E> {
    fn new(ends: E, link: [Emulation; 2], restarts: Option<Duration>, seed: u64) -> Self {
        let mut owner = 8;
        let lanes = link.map(|emulation| {
            owner += 1;
            LinkDirection::new(emulation, seed, owner)
        });
        let restarted = (Instant::ZERO, 0);
        Self {
            ends,
            lanes,
            in_flight: BTreeMap::new(),
            sent: 0,
            out: VecDeque::new(),
            restart_interval: restarts,
            last_restart: restarted,
        }
    }

    fn process(&mut self, now: Instant) {
        for side in [0, 1] {
            while let Some(out) = self.ends.poll(side) {
                match out {
                    LinkOutput::SendOverLink(turn, crossing) => self.enqueue(side, turn, crossing),
                    // Packets that leave on the side of B come from A.
                    LinkOutput::Deliver(segment) => self.out.push_back(([Side::B, Side::A][side], segment)),
                }
            }
            self.transmit(now, side);
        }
    }

    fn enqueue(&mut self, side: usize, turn: QueuePosition, crossing: E::LinkPacket) {
        let LinkDirection { queue_capacity: room, queue, .. } = &mut self.lanes[side];
        if queue.len() >= *room {
            return self.ends.on_queue_drop(side, &crossing);
        }
        let ahead = queue.iter().take_while(|(waits, _)| *waits == QueuePosition::Front).count();
        queue.insert(if turn == QueuePosition::Front { ahead } else { queue.len() }, (turn, crossing));
    }

    /// Sends waiting packets while the link is free.
    fn transmit(&mut self, now: Instant, side: usize) {
        let lane = &mut self.lanes[side];
        while lane.idle_at <= now
            && let Some((_, crossing)) = lane.queue.pop_front()
        {
            let len = E::len(&crossing);
            lane.idle_at =
                now + lane.rate.map_or(Duration::ZERO, |rate| Duration::of_bits(8 * len as u64, rate));
            for (at, fate) in lane.impairments.transmit(lane.idle_at, len).into_iter().flatten() {
                let copy = match fate {
                    CopyState::Intact => Some(crossing.clone()),
                    CopyState::Corrupted => E::corrupt(&crossing, &mut lane.impairments),
                };
                if let Some(copy) = copy {
                    self.in_flight.insert((at, self.sent), (1 - side, copy));
                    self.sent += 1;
                }
            }
        }
    }
}

impl<E: LinkEnds> Station<Wired> for RepairedLink<E> {
    fn handle_packet(&mut self, now: Instant, from: Side, segment: Wired) {
        let (last, side) = self.last_restart;
        if self.restart_interval.is_some_and(|every| now.since(last) >= every) {
            self.ends.restart(now, side);
            self.last_restart = (now, 1 - side);
        }
        self.ends.handle_outgoing(now, if from == Side::A { 0 } else { 1 }, segment);
        self.process(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= now) {
            let (side, crossing) = entry.remove();
            self.ends.handle_incoming(now, side, crossing);
            self.process(now);
        }
        self.ends.handle_timeout(now);
        self.process(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Wired)> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        let lanes = self.lanes.iter().filter_map(LinkDirection::next_transmission);
        self.ends.poll_timeout().into_iter().chain(arrival).chain(lanes).min()
    }
}

/// A packet or message between middleboxes that read TCP.
#[derive(Clone)]
enum DProxyPacket {
    Packet(Wired),
    Message(Vec<u8>),
}

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)];

/// Middleboxes that read TCP. `None`: there is none on that side, and all packets pass.
struct DProxyEnds {
    ends: [Option<DProxy<Wired>>; 2],
    /// Session key: a new one at each restart.
    key: Key,
    change: Box<dyn Fn(&mut Config)>,
    out: [VecDeque<LinkOutput<DProxyPacket>>; 2],
}

impl DProxyEnds {
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
        while let Some(does) = end.poll_action() {
            self.out[side].push_back(match does {
                DProxyAction::Retransmit(turn, segment) => {
                    LinkOutput::SendOverLink(turn, DProxyPacket::Packet(segment))
                }
                DProxyAction::Forward(segment) => LinkOutput::Deliver(segment),
                DProxyAction::Send { to, queue_position: turn, sealed } => {
                    assert_eq!(to, ADDRESSES[1 - side]);
                    let mut bytes = Vec::new();
                    sealed.emit(&mut bytes);
                    LinkOutput::SendOverLink(turn, DProxyPacket::Message(bytes))
                }
            });
        }
    }
}

fn sides(side: usize) -> Side {
    [Side::A, Side::B][side]
}

impl LinkEnds for DProxyEnds {
    type LinkPacket = DProxyPacket;

    fn handle_outgoing(&mut self, now: Instant, side: usize, segment: Wired) {
        if let Some(end) = &mut self.ends[side] {
            let ip = header(sides(side));
            end.pass_out(now, Passing::new(&ip, &segment), || segment.clone());
        }
        self.out[side]
            .push_back(LinkOutput::SendOverLink(QueuePosition::Back, DProxyPacket::Packet(segment)));
        self.drain(side);
    }

    fn handle_incoming(&mut self, now: Instant, side: usize, crossing: DProxyPacket) {
        let verdict = match (&mut self.ends[side], &crossing) {
            (Some(end), DProxyPacket::Packet(segment)) => {
                let ip = header(sides(1 - side));
                end.pass_in(now, Passing::new(&ip, segment), || segment.clone())
            }
            (Some(end), DProxyPacket::Message(bytes)) => {
                end.handle_datagram(now, ADDRESSES[1 - side].into(), bytes);
                Verdict::Delayed
            }
            (None, DProxyPacket::Packet(_)) => Verdict::Forward,
            (None, DProxyPacket::Message(_)) => Verdict::Delayed,
        };
        if let (Verdict::Forward, DProxyPacket::Packet(segment)) = (verdict, crossing) {
            self.out[side].push_back(LinkOutput::Deliver(segment));
        }
        self.drain(side);
    }

    fn handle_timeout(&mut self, now: Instant) {
        for side in [0, 1] {
            self.ends[side].iter_mut().for_each(|end| end.handle_timeout(now));
            self.drain(side);
        }
    }

    fn poll(&mut self, side: usize) -> Option<LinkOutput<DProxyPacket>> {
        self.out[side].pop_front()
    }

    fn on_queue_drop(&mut self, side: usize, crossing: &DProxyPacket) {
        if let (Some(end), DProxyPacket::Packet(segment)) = (&mut self.ends[side], crossing) {
            let ip = header(sides(side));
            end.on_queue_drop(Passing::new(&ip, segment));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
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
            other.handle_peer_present(now, [self.key; 2]);
        }
        (0..2).for_each(|side| self.drain(side));
    }

    fn len(crossing: &DProxyPacket) -> usize {
        match crossing {
            DProxyPacket::Packet(segment) => segment.link_len(),
            DProxyPacket::Message(bytes) => bytes.len() + 28,
        }
    }

    fn corrupt(crossing: &DProxyPacket, direction: &mut Direction) -> Option<DProxyPacket> {
        match crossing {
            DProxyPacket::Packet(segment) => {
                segment.corrupted(&mut direction.random).map(DProxyPacket::Packet)
            }
            DProxyPacket::Message(bytes) => {
                let mut bytes = bytes.clone();
                let at = direction.random.below(bytes.len() as u32) as usize;
                bytes[at] ^= 1 << direction.random.below(8);
                Some(DProxyPacket::Message(bytes))
            }
        }
    }
}

/// Middleboxes that number packets.
struct OpaqueEnds {
    ends: [Opaque<Wired>; 2],
    config: opaque::Config,
    epochs: u16,
}

impl OpaqueEnds {
    fn new(config: opaque::Config) -> Self {
        Self { ends: [Opaque::new(config, 1), Opaque::new(config, 2)], config, epochs: 2 }
    }
}

impl LinkEnds for OpaqueEnds {
    type LinkPacket = Frame<Wired>;

    fn handle_outgoing(&mut self, now: Instant, side: usize, segment: Wired) {
        self.ends[side].send(now, segment);
    }

    fn handle_incoming(&mut self, now: Instant, side: usize, crossing: Frame<Wired>) {
        self.ends[side].handle_frame(now, crossing);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }

    fn poll(&mut self, side: usize) -> Option<LinkOutput<Frame<Wired>>> {
        loop {
            match self.ends[side].poll_action()? {
                opaque::OpaqueAction::Send(turn, frame) => {
                    return Some(LinkOutput::SendOverLink(turn, frame));
                }
                opaque::OpaqueAction::Deliver(segment) => return Some(LinkOutput::Deliver(segment)),
                opaque::OpaqueAction::ReportDrop(_) | opaque::OpaqueAction::Release(_) => {}
            }
        }
    }

    fn on_queue_drop(&mut self, side: usize, crossing: &Frame<Wired>) {
        if let Frame::Data { number, .. } = crossing {
            self.ends[side].on_queue_drop(*number);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ends.iter().filter_map(Opaque::poll_timeout).min()
    }

    fn restart(&mut self, _now: Instant, side: usize) {
        self.epochs += 1;
        self.ends[side] = Opaque::new(self.config, self.epochs);
    }

    fn len(crossing: &Frame<Wired>) -> usize {
        crossing.len_bytes(|segment| segment.link_len() as u32) as usize
    }

    /// A lower layer discards damaged frames.
    fn corrupt(_: &Frame<Wired>, _: &mut Direction) -> Option<Frame<Wired>> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
struct Options {
    timeouts: TimeoutRule,
    order_rule: OrderRule,
    expansion: RequestExpansion,
    holding: HoleDelivery,
    grace: u8,
    tail_probe: Option<Duration>,
    small: bool,
}

fn options() -> impl Strategy<Value = Options> {
    let timeouts =
        prop::sample::select(vec![TimeoutRule::Successive, TimeoutRule::Cumulative, TimeoutRule::Off]);
    let order_rule = prop::sample::select(vec![OrderRule::On, OrderRule::Off]);
    let expansion = prop::sample::select(vec![RequestExpansion::On, RequestExpansion::Off]);
    let holding = prop::sample::select(vec![HoleDelivery::InOrder, HoleDelivery::OutOfOrder]);
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
        config.recovery.timeout_rule = self.timeouts;
        config.recovery.order_rule = self.order_rule;
        config.recovery.reordering_threshold = self.grace;
        (config.request_expansion, config.hole_delivery, config.tail_probe_delay) =
            (self.expansion, self.holding, self.tail_probe);
        if self.small {
            (config.max_waiting_per_flow, config.cache.packets_per_flow, config.cache.packets) = (3, 5, 8);
        }
    }
}

fn numberings() -> impl Strategy<Value = opaque::Config> {
    let order = prop::sample::select(vec![DeliveryMode::InOrder, DeliveryMode::Any]);
    let parity = prop::option::of(1u8..10);
    (order, parity, 1u32..200, any::<bool>()).prop_map(|(order, parity, kept_packets, probes)| {
        let parity = parity.and_then(NonZeroU8::new);
        opaque::Config {
            order,
            max_cached_packets: kept_packets,
            tail_probe_delay: probes.then_some(Duration::from_millis(1)),
            parity: parity
                .map_or(Parity::Off, |least| Parity::Adaptive { min_group: least, max_group: least }),
            ..opaque::Config::default()
        }
    })
}

/// Runs a transfer in both directions over a link with these ends, to its end.
fn completes<E: LinkEnds>(
    station: RepairedLink<E>,
    ends: (tcp::Endpoint<Bytes>, tcp::Endpoint<Bytes>),
    totals: [u64; 2],
    seed: u64,
) {
    let middle = TwoLinks::new(ends.0, station, ends.1, [wire(), wire()], [wire(), wire()], seed);
    let mut transfer = Transfer::of(middle, totals, |_| {});
    transfer.run(Instant::from_secs(9000));
    transfer.assert_complete();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn transfer_completes_over_dproxies(
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
        let ends = DProxyEnds::new(present, move |config| options.put_into(config));
        let restarts = restarts.map(Duration::from_millis);
        completes(RepairedLink::new(ends, link, restarts, seed), endpoints(tcp, isns), totals, seed);
    }

    #[test]
    fn transfer_completes_over_opaque_ends(
        config in numberings(),
        tcp in transports(),
        link in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..200_000, 0u64..30_000],
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let restarts = restarts.map(Duration::from_millis);
        completes(RepairedLink::new(OpaqueEnds::new(config), link, restarts, seed), endpoints(tcp, isns), totals, seed);
    }
}

/// Returns the time in which ten megabytes arrive over a link of 20 Mb/s and 2 ms with this loss in each
/// direction.
fn transfer_time<E: LinkEnds>(ends: E, loss: f64) -> Duration {
    const TOTAL: u64 = 10_000_000;
    let link = Emulation::default()
        .with_loss(loss)
        .with_latency(Duration::from_millis(2))
        .with_rate(Some(20_000_000));
    let tcp = tcp::Config::linux().with_sack().with_window_clamp(Some(200));
    let (a, b) = endpoints(tcp, [1, 2]);
    let station = RepairedLink::new(ends, [link.clone(), link], None, 5);
    let mut transfer =
        Transfer::of(TwoLinks::new(a, station, b, [wire(), wire()], [wire(), wire()], 5), [TOTAL, 0], |_| {});
    while transfer.received()[0] < TOTAL {
        transfer.run_users();
        assert!(transfer.pair.step(Instant::from_secs(2000)));
    }
    transfer.pair.now().since(Instant::ZERO)
}

/// Returns the share of the link's capacity without losses that TCP gets with these ends.
fn capacity_share<E: LinkEnds>(ends: E, loss: f64) -> f64 {
    let whole = transfer_time(DProxyEnds::new([false, false], |_| {}), 0.0);
    whole.as_secs_f64() / transfer_time(ends, loss).as_secs_f64() / (1.0 - loss)
}

#[test]
fn both_modes_fill_a_lossy_link() {
    for (loss, least) in [(0.01, 0.95), (0.05, 0.9), (0.1, 0.85)] {
        // As on Linux: replays go first.
        let read = capacity_share(
            DProxyEnds::new([true, true], |config| config.queue_position = QueuePosition::Front),
            loss,
        );
        let numbered = capacity_share(OpaqueEnds::new(opaque::Config::default()), loss);
        assert!(read > least && numbered > least, "{read} and {numbered} of what is left of {loss} lost");
    }
    let plain = capacity_share(DProxyEnds::new([false, false], |_| {}), 0.01);
    assert!(plain < 0.2, "{plain} without");
}

#[test]
fn both_modes_add_no_delay_without_losses() {
    let plain = transfer_time(DProxyEnds::new([false, false], |_| {}), 0.0);
    assert_eq!(transfer_time(DProxyEnds::new([true, true], |_| {}), 0.0), plain);
    let numbered = transfer_time(OpaqueEnds::new(opaque::Config::default()), 0.0);
    assert!(numbered.as_nanos() * 100 <= plain.as_nanos() * 102, "{numbered:?} with, {plain:?} without");
}

#[test]
fn transfer_survives_a_flood_of_other_flows() {
    let link = Emulation::default().with_loss(0.02).with_latency(Duration::from_millis(2));
    let (a, b) = endpoints(tcp::Config::linux().with_sack(), [1, 2]);
    let station = RepairedLink::new(DProxyEnds::new([true, true], |_| {}), [link.clone(), link], None, 7);
    let mut transfer = Transfer::of(
        TwoLinks::new(a, station, b, [wire(), wire()], [wire(), wire()], 7),
        [500_000, 10_000],
        |_| {},
    );
    let mut strangers = 0u32;
    transfer.run_users();
    while transfer.pair.step(Instant::from_secs(2000)) {
        transfer.run_users();
        let now = transfer.pair.now();
        for _ in 0..100.min(100_000 - strangers) {
            strangers += 1;
            let ends = &mut transfer.pair.station.ends;
            for end in ends.ends.iter_mut().flatten() {
                flood(end, now, strangers);
                assert!(
                    end.connections() <= 65_536 && end.waiting_packets() <= 4096 && end.cached() <= 16_384
                );
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
    while end.poll_action().is_some() {}
}
