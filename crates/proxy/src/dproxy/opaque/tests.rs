//! Both ends of a link that loses frames and keeps the order of the remaining ones, except for those that go
//! first.

use super::*;
use crate::dproxy::RecoveryConfig;
use crate::pep::QueuePosition;
use core::num::NonZeroU8;
use hopline_core::Duration;
use hopline_core::{Purpose, RandomStream};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Delay of each direction.
const DELAY: Duration = Duration::from_millis(2);

/// A link between two ends.
struct Link {
    ends: [Opaque<u32>; 2],
    now: Instant,
    /// Transmission time of a packet (that of other frames is zero), and queue capacity.
    packet_time: Duration,
    queue_capacity: usize,
    queues: [VecDeque<(QueuePosition, Frame<u32>)>; 2],
    idle_at: [Instant; 2],
    /// Frames in flight: arrival time, receiving end, frame.
    in_flight: Vec<(Instant, usize, Frame<u32>)>,
    delivered: Vec<u32>,
    delivered_at: BTreeMap<u32, Instant>,
    refused: Vec<u32>,
    /// Frames that each end has sent.
    sent: [Vec<Frame<u32>>; 2],
    /// Copies of each packet that each end holds.
    held_copies: [BTreeMap<u32, i32>; 2],
}

impl Link {
    fn new(config: Config) -> Self {
        Self {
            ends: [Opaque::new(config, 1), Opaque::new(config, 2)],
            now: Instant::ZERO,
            packet_time: Duration::ZERO,
            queue_capacity: usize::MAX,
            queues: Default::default(),
            idle_at: [Instant::ZERO; 2],
            in_flight: Vec::new(),
            delivered: Vec::new(),
            delivered_at: BTreeMap::new(),
            refused: Vec::new(),
            sent: Default::default(),
            held_copies: Default::default(),
        }
    }

    fn send(
        &mut self,
        packets: impl IntoIterator<Item = u32>,
        loses: &mut impl FnMut(usize, &Frame<u32>) -> bool,
    ) {
        for packet in packets {
            self.adjust_held(0, packet, 1);
            self.ends[0].send(self.now, packet);
            self.process(loses);
        }
    }

    fn adjust_held(&mut self, end: usize, packet: u32, by: i32) {
        let held = self.held_copies[end].entry(packet).or_default();
        *held += by;
        assert!(*held >= 0, "{packet} is let go of too often");
    }

    fn process(&mut self, loses: &mut impl FnMut(usize, &Frame<u32>) -> bool) {
        for end in [0, 1] {
            while let Some(does) = self.ends[end].poll_action() {
                match does {
                    OpaqueAction::Send(turn, frame) => self.enqueue(end, turn, frame),
                    OpaqueAction::Deliver(packet) => {
                        self.adjust_held(end, packet, -1);
                        self.delivered.push(packet);
                        self.delivered_at.insert(packet, self.now);
                    }
                    OpaqueAction::ReportDrop(packet) => {
                        self.adjust_held(end, packet, -1);
                        self.refused.push(packet);
                    }
                    OpaqueAction::Release(packet) => self.adjust_held(end, packet, -1),
                }
            }
            self.transmit(end, loses);
        }
    }

    fn enqueue(&mut self, end: usize, turn: QueuePosition, frame: Frame<u32>) {
        for packet in frame.packets() {
            assert!(self.held_copies[end][packet] > 0, "{packet} is not there any more");
        }
        self.sent[end].push(frame.clone());
        let queue = &mut self.queues[end];
        if queue.len() < self.queue_capacity {
            let ahead = queue.iter().take_while(|(waits, _)| *waits == QueuePosition::Front).count();
            queue.insert(if turn == QueuePosition::Front { ahead } else { queue.len() }, (turn, frame));
        } else if let Frame::Data { number, .. } = frame {
            self.ends[end].on_queue_drop(number);
        }
    }

    fn transmit(&mut self, end: usize, loses: &mut impl FnMut(usize, &Frame<u32>) -> bool) {
        while self.idle_at[end] <= self.now
            && let Some((_, frame)) = self.queues[end].pop_front()
        {
            let takes = if frame.packets().next().is_some() { self.packet_time } else { Duration::ZERO };
            self.idle_at[end] = self.now + takes;
            if !loses(end, &frame) {
                self.in_flight.push((self.idle_at[end] + DELAY, 1 - end, frame));
            }
        }
    }

    /// Runs until nothing is in flight and no timer is set, or until this time.
    fn run(&mut self, until: Instant, loses: &mut impl FnMut(usize, &Frame<u32>) -> bool) {
        loop {
            let timers = self.ends.iter().filter_map(Opaque::poll_timeout);
            let waiting = (0..2).filter(|&end| !self.queues[end].is_empty()).map(|end| self.idle_at[end]);
            let arrivals = self.in_flight.iter().map(|(at, ..)| *at);
            let Some(at) = timers.chain(waiting).chain(arrivals).min().filter(|&at| at <= until) else {
                self.now = self.now.max(until.min(self.now + Duration::from_secs(10)));
                return;
            };
            self.now = self.now.max(at);
            if let Some(arrived) = self.in_flight.iter().position(|(arrival, ..)| *arrival == at) {
                let (_, end, frame) = self.in_flight.remove(arrived);
                frame.packets().for_each(|&packet| self.adjust_held(end, packet, 1));
                self.ends[end].handle_frame(self.now, frame);
            } else {
                self.ends.iter_mut().for_each(|end| end.handle_timeout(at));
            }
            self.process(loses);
        }
    }

    fn run_ms(&mut self, until_ms: u64, loses: &mut impl FnMut(usize, &Frame<u32>) -> bool) {
        self.run(Instant::from_millis(until_ms), loses);
    }

    fn requested(&self) -> Vec<Vec<u32>> {
        let numbers = |frame: &Frame<u32>| match frame {
            Frame::Request { numbers, .. } => Some(numbers.clone()),
            _ => None,
        };
        self.sent[1].iter().filter_map(numbers).collect()
    }

    fn probes(&self) -> usize {
        self.sent[0].iter().filter(|frame| matches!(frame, Frame::Tail { .. })).count()
    }
}

fn number(frame: &Frame<u32>) -> Option<u32> {
    if let Frame::Data { number, .. } = frame { Some(*number) } else { None }
}

/// Loses these packets of the first end the first time that they are sent.
fn lose_once(numbers: &'static [u32]) -> impl FnMut(usize, &Frame<u32>) -> bool {
    let mut left = numbers.to_vec();
    move |end, frame| {
        let at = left.iter().position(|&lost| end == 0 && number(frame) == Some(lost));
        at.map(|at| left.remove(at)).is_some()
    }
}

fn any_order() -> Config {
    Config { order: DeliveryMode::Any, ..Config::default() }
}

#[test]
fn missing_packets_are_requested_at_once_in_one_frame() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[1, 2, 4]));
    link.send(0..6, &mut loses);
    link.run_ms(2, &mut loses);
    assert_eq!(link.requested(), [vec![1, 2], vec![4]]);
    assert_eq!(link.delivered, [0]);
    link.run_ms(6, &mut loses);
    assert_eq!(link.delivered, [0, 1, 2, 3, 4, 5]);
    assert_eq!((link.ends[1].recovery().recovered, link.ends[0].stats().replayed), (3, 3));
}

#[test]
fn any_order_delivers_without_waiting() {
    let (mut link, mut loses) = (Link::new(any_order()), lose_once(&[1]));
    link.send(0..4, &mut loses);
    link.run_ms(6, &mut loses);
    assert_eq!(link.delivered, [0, 2, 3, 1]);
}

#[test]
fn lost_replay_is_requested_again_by_order_rule_or_timeout() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[1, 2, 1]));
    link.send(0..4, &mut loses);
    link.run_ms(100, &mut loses);
    assert_eq!(link.requested(), [vec![1, 2], vec![1]]);
    assert_eq!(link.delivered_at[&1], Instant::from_millis(10), "with the replay of 2, and 4 ms more");
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[1, 1]));
    link.send(0..3, &mut loses);
    link.run_ms(100, &mut loses);
    assert_eq!(link.delivered_at[&1], Instant::from_millis(26), "asked for at 2, twice 10 ms, and 4 ms more");
}

#[test]
fn tail_probes_detect_lost_tail() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[2, 3]));
    link.send(0..4, &mut loses);
    link.run_ms(100, &mut loses);
    assert_eq!(link.delivered, [0, 1, 2, 3]);
    assert_eq!(link.delivered_at[&3], Instant::from_millis(5 + 6), "half of 10 ms, then three ways");
    assert_eq!(link.probes(), 2, "at the first answer two packets were missing");

    let mut link = Link::new(Config::default());
    let mut lost = 0;
    let mut loses = |end: usize, frame: &Frame<u32>| {
        let loses = end == 0 && lost < 3 && (number(frame) == Some(3) || matches!(frame, Frame::Tail { .. }));
        lost += u32::from(loses);
        loses
    };
    link.send(0..4, &mut loses);
    link.run_ms(100, &mut loses);
    assert_eq!(link.delivered, [0, 1, 2, 3]);
}

#[test]
fn tail_probe_is_sent_once_if_answered() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[]));
    link.send(0..4, &mut loses);
    link.run_ms(100, &mut loses);
    assert_eq!((link.probes(), link.ends[0].poll_timeout()), (1, None));
    assert_eq!(link.held_copies[0].values().sum::<i32>(), 0, "what has arrived is not kept");
    link.send(4..5, &mut loses);
    link.run_ms(103, &mut loses);
    assert_eq!(link.probes(), 1);
    link.run_ms(104, &mut loses);
    assert_eq!(link.probes(), 2, "half a round trip would be 2 ms");
}

#[test]
fn unanswered_requests_are_given_up() {
    let recovery = RecoveryConfig { max_wait: Duration::from_millis(50), ..Config::default().recovery };
    let mut link = Link::new(Config { recovery, ..Config::default() });
    let mut loses = |end: usize, frame: &Frame<u32>| end == 0 && number(frame) == Some(1);
    link.send(0..4, &mut loses);
    link.run_ms(51, &mut loses);
    assert_eq!(link.delivered, [0]);
    link.run_ms(52, &mut loses);
    assert_eq!(link.delivered, [0, 2, 3]);
    assert_eq!(link.ends[1].recovery().given_up, 1);
}

#[test]
fn unanswered_tail_probe_is_sent_three_times() {
    let mut link = Link::new(Config::default());
    let mut loses = |_, _: &Frame<u32>| true;
    link.send(0..4, &mut loses);
    link.run_ms(499, &mut loses);
    assert_eq!((link.probes(), link.held_copies[0].values().sum::<i32>()), (3, 4));
    link.run_ms(500, &mut loses);
    assert_eq!((link.ends[0].poll_timeout(), link.held_copies[0].values().sum::<i32>()), (None, 0));
}

#[test]
fn uncached_packets_are_reported_and_skipped() {
    let (mut link, mut loses) =
        (Link::new(Config { max_cached_packets: 2, ..Config::default() }), lose_once(&[1]));
    link.send(0..5, &mut loses);
    link.run_ms(6, &mut loses);
    assert_eq!((&link.delivered[..], link.ends[0].stats().not_cached), (&[0, 2, 3, 4][..], 1));
    assert_eq!(link.ends[1].recovery().not_cached, 1);
}

#[test]
fn number_of_a_refused_packet_is_reused() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[]));
    link.send(0..1, &mut loses);
    link.queue_capacity = 0;
    link.send(1..3, &mut loses);
    link.queue_capacity = 9;
    link.send(3..4, &mut loses);
    link.run_ms(100, &mut loses);
    assert_eq!((&link.delivered[..], &link.refused[..]), (&[0, 3][..], &[1, 2][..]));
    assert_eq!((link.requested(), link.ends[0].stats().refused), (vec![], 2));
}

#[test]
fn packet_dropped_later_by_the_queue_is_not_repaired() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[1]));
    link.send(0..3, &mut loses);
    link.ends[0].on_queue_drop(1);
    link.run_ms(100, &mut loses);
    assert_eq!((&link.delivered[..], &link.refused[..]), (&[0, 2][..], &[1][..]));
}

#[test]
fn losses_beyond_the_limit_are_not_requested() {
    let mut link = Link::new(Config::default());
    let mut loses = |end: usize, frame: &Frame<u32>| {
        end == 0 && number(frame).is_some_and(|number| (1..400).contains(&number))
    };
    link.send(0..401, &mut loses);
    link.run_ms(100, &mut loses);
    assert_eq!((&link.delivered[..], link.ends[1].stats().excess_losses), (&[0, 400][..], 1));
    assert_eq!(link.requested().len(), 0);
}

#[test]
fn parity_restores_one_loss_and_adapts_to_the_loss_ratio() {
    let (least, most) = (NonZeroU8::new(2).unwrap(), NonZeroU8::new(20).unwrap());
    let mut link = Link::new(Config {
        parity: Parity::Adaptive { min_group: least, max_group: most },
        ..Config::default()
    });
    let mut random = RandomStream::keyed(1, 0, 0, Purpose::Emulation);
    let mut loses = move |end, _: &Frame<u32>| end == 0 && random.bernoulli(0.1);
    link.packet_time = Duration::from_micros(600);
    let mut clean = lose_once(&[]);
    for packet in 0..64 {
        link.send([packet], &mut clean);
        let until = link.now + link.packet_time;
        link.run(until, &mut clean);
    }
    assert_eq!(link.ends[0].stats().parity, 0, "nothing was lost yet");
    for packet in 64..1000 {
        link.send([packet], &mut loses);
        let until = link.now + link.packet_time;
        link.run(until, &mut loses);
    }
    link.run_ms(3_000, &mut loses);
    assert_eq!(link.delivered, (0..1000).collect::<Vec<_>>());
    let (parity, restored) = (link.ends[0].stats().parity, link.ends[1].stats().restored);
    assert!((80..300).contains(&parity) && restored > 20, "{parity} sent, {restored} restored");
}

#[test]
fn either_end_may_restart() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[]));
    link.send(0..25, &mut loses);
    link.run_ms(1_000, &mut loses);
    link.ends[1] = Opaque::new(Config::default(), 7);
    link.held_copies[1].clear();
    link.send(25..30, &mut loses);
    link.run_ms(2_000, &mut loses);
    link.ends[0] = Opaque::new(Config::default(), 8);
    link.held_copies[0].clear();
    link.send(30..35, &mut lose_once(&[0]));
    link.run_ms(3_000, &mut loses);
    assert_eq!(link.delivered, (0..35).collect::<Vec<_>>());
    assert_eq!(link.ends[1].stats().restarts, 1);
}

#[test]
fn restart_of_the_peer_flushes_the_queue_and_accepts_late_frames() {
    let mut end = Opaque::<u32>::new(Config::default(), 1);
    let data =
        |epoch, number| Frame::Data { epoch, number, sending: TransmissionKind::Original, packet: number };
    let mut take = |ms, frame| {
        end.handle_frame(Instant::from_millis(ms), frame);
        let delivers = |does| if let OpaqueAction::Deliver(packet) = does { Some(packet) } else { None };
        core::iter::from_fn(|| end.poll_action()).filter_map(delivers).collect::<Vec<_>>()
    };
    assert_eq!(take(0, data(5, 100)), [100]);
    assert_eq!(take(1, data(5, 102)), []);
    assert_eq!(take(2, data(6, 0)), [102, 0]);
    assert_eq!(take(3, data(5, 103)), [103]);
    assert_eq!(take(4, data(6, 1)), [1]);
    assert_eq!(take(1_500, data(5, 200)), [200], "that is a new life");
    assert_eq!(end.stats().restarts, 2);
}

#[test]
fn tail_probe_delay_follows_the_link_rate() {
    let ms = |rate_mbps: f64| tail_probe_delay(Some((rate_mbps * 1e6) as u64)).as_micros() as f64 / 1e3;
    assert_eq!([54.0, 24.0, 12.0, 6.0, 1.0, 0.1].map(ms), [4.0, 4.0, 8.0, 16.0, 96.0, 100.0]);
    assert_eq!(tail_probe_delay(None), Duration::from_millis(4));
}

#[test]
fn replays_may_be_queued_at_the_back() {
    for turn in [QueuePosition::Front, QueuePosition::Back] {
        let mut end = Opaque::<u32>::new(Config { queue_position: turn, ..Config::default() }, 1);
        end.send(Instant::ZERO, 7);
        end.handle_frame(Instant::ZERO, Frame::Request { epoch: 1, numbers: vec![0] });
        let again = Frame::Data { epoch: 1, number: 0, sending: TransmissionKind::Retransmission, packet: 7 };
        let sent = core::iter::from_fn(|| end.poll_action()).nth(1);
        assert_eq!(sent, Some(OpaqueAction::Send(turn, again)));
        for number in [0, 2] {
            let frame = Frame::Data { epoch: 5, number, sending: TransmissionKind::Original, packet: number };
            end.handle_frame(Instant::ZERO, frame);
        }
        let asks = OpaqueAction::Send(turn, Frame::Request { epoch: 5, numbers: vec![1] });
        assert!(core::iter::from_fn(|| end.poll_action()).any(|does| does == asks));
    }
}

#[test]
fn duplicates_are_discarded_and_numbers_wrap_around() {
    let mut end = Opaque::<u32>::new(Config::default(), 1);
    let mut take = |number: u32| {
        let frame = Frame::Data { epoch: 5, number, sending: TransmissionKind::Original, packet: number };
        end.handle_frame(Instant::ZERO, frame);
        core::iter::from_fn(|| end.poll_action()).collect::<Vec<_>>()
    };
    assert_eq!(take(u32::MAX - 1), [OpaqueAction::Deliver(u32::MAX - 1)]);
    assert_eq!(take(u32::MAX - 1), [OpaqueAction::Release(u32::MAX - 1)]);
    let asks = Frame::Request { epoch: 5, numbers: vec![u32::MAX, 0] };
    assert_eq!(take(1), [OpaqueAction::Send(QueuePosition::Front, asks)]);
    assert_eq!(take(1), [OpaqueAction::Release(1)]);
    take(0);
    assert_eq!(take(u32::MAX), [u32::MAX, 0, 1].map(OpaqueAction::Deliver));
}

#[test]
fn invalid_frames_are_ignored() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[]));
    link.send(0..3, &mut loses);
    let hostile = [
        Frame::Request { epoch: 9, numbers: vec![0] },
        Frame::Request { epoch: 1, numbers: vec![3, 4, u32::MAX] },
        Frame::Report { epoch: 1, next: 4 },
        Frame::Report { epoch: 9, next: 0 },
        Frame::Gone { epoch: 1, numbers: vec![1] },
    ];
    for frame in hostile {
        link.ends[0].handle_frame(link.now, frame);
    }
    assert_eq!((link.ends[0].poll_action(), link.ends[0].stats().invalid), (None, 7));
    link.run_ms(100, &mut loses);
    assert_eq!(link.delivered, [0, 1, 2]);
}

#[test]
fn frame_length_matches_wire_format() {
    let len = |frame: Frame<u32>| frame.len_bytes(|packet| *packet);
    let data = |sending| Frame::Data { epoch: 1, number: 0, sending, packet: 1500 };
    assert_eq!(
        (len(data(TransmissionKind::Original)), len(data(TransmissionKind::Retransmission))),
        (1508, 1508)
    );
    assert_eq!(len(Frame::Parity { epoch: 1, first: 0, of: vec![40, 1500] }), 1512);
    assert_eq!(len(Frame::Request { epoch: 1, numbers: vec![1, 2, 3] }), 16);
    assert_eq!((len(Frame::Tail { epoch: 1, last: 3 }), len(Frame::Report { epoch: 1, next: 3 })), (8, 8));
}

#[test]
fn frames_round_trip_and_parity_restores_the_missing_packet() {
    use bytes::Bytes;
    let packets: Vec<_> = (1u8..5).map(|n| Bytes::from(vec![n; usize::from(n) * 10])).collect();
    let frames = [
        Frame::Data {
            epoch: 3,
            number: 7,
            sending: TransmissionKind::Retransmission,
            packet: packets[0].clone(),
        },
        Frame::Parity { epoch: 3, first: 7, of: packets.clone() },
        Frame::Tail { epoch: 3, last: 9 },
        Frame::Gone { epoch: 3, numbers: vec![4, 5] },
        Frame::Request { epoch: 3, numbers: vec![4] },
        Frame::Report { epoch: 3, next: 4 },
    ];
    for lost in 7..11 {
        let arrived = |number: u32| (number != lost).then(|| packets[number as usize - 7].clone());
        for frame in &frames {
            let wire = frame.to_wire().expect("short enough");
            let len = frame.len_bytes(|packet| packet.len() as u32);
            assert_eq!(wire.wire_len(), len as usize);
            assert_eq!(Frame::from_wire(wire, arrived).as_ref(), Some(frame));
        }
    }
    let two_lost = |number: u32| (number > 8).then(|| packets[number as usize - 7].clone());
    assert_eq!(Frame::from_wire(frames[1].to_wire().unwrap(), two_lost), None);
    assert_eq!(Frame::<Bytes>::Request { epoch: 1, numbers: vec![] }.to_wire(), None);
}

/// Sends 3,000 packets at nine tenths of the rate of a link of 20 Mb/s that loses 5 % of all frames. Returns
/// the sorted delays beyond that of the link, of packets that were not lost and of packets that were.
fn delays(config: Config) -> [Vec<Duration>; 2] {
    let mut link = Link::new(config);
    link.packet_time = Duration::from_micros(600);
    let mut random = RandomStream::keyed(3, 0, 0, Purpose::Emulation);
    let mut lost = std::collections::BTreeSet::new();
    let mut sent_at = Vec::new();
    for packet in 0..3_000 {
        sent_at.push(link.now);
        let mut loses = |end, frame: &Frame<u32>| {
            let loses = random.bernoulli(0.05);
            if let (true, 0, Some(number)) = (loses, end, number(frame)) {
                lost.insert(number);
            }
            loses
        };
        link.send([packet], &mut loses);
        let until = sent_at[packet as usize] + Duration::from_micros(667);
        link.run(until, &mut loses);
    }
    let mut delays = [vec![], vec![]];
    for (packet, at) in &link.delivered_at {
        let delay = at.since(sent_at[*packet as usize]).saturating_sub(DELAY);
        delays[usize::from(lost.contains(packet))].push(delay);
    }
    delays.iter_mut().for_each(|delays| delays.sort_unstable());
    delays
}

#[test]
fn any_order_delays_only_lost_packets() {
    let [unharmed, harmed] = delays(any_order());
    let (pace, round_trip) = (Duration::from_micros(600), DELAY + DELAY);
    assert!(harmed.len() > 100 && unharmed.len() + harmed.len() >= 2_990);
    // Replays go ahead of a packet; it waits for nothing else.
    assert!(unharmed[unharmed.len() / 2] <= pace + pace, "{:?}", unharmed[unharmed.len() / 2]);
    assert!(harmed[harmed.len() / 2] <= round_trip + round_trip, "{:?}", harmed[harmed.len() / 2]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_crosses_once_whatever_is_lost(
        loss in 0.0f64..0.6,
        parity in prop::option::of(1u8..20),
        kept in any::<bool>(),
        grace in 0u8..3,
        bursts in prop::collection::vec((1u32..40, 0u64..50), 1..20),
        pace_us in 0u64..3_000,
        room in 1usize..100,
        seed in any::<u64>(),
    ) {
        let forever = Duration::from_secs(100_000);
        let recovery = RecoveryConfig { max_timer_requests: NonZeroU8::MAX, max_wait: forever, reordering_threshold: grace, ..RecoveryConfig::default() };
        let parity = parity.and_then(NonZeroU8::new);
        let config = Config {
            recovery,
            order: if kept { DeliveryMode::InOrder } else { DeliveryMode::Any },
            cache_lifetime: forever,
            max_replays: 255,
            parity: parity.map_or(Parity::Off, |least| Parity::Adaptive { min_group: least, max_group: least }),
            ..Config::default()
        };
        let mut random = RandomStream::keyed(seed, 0, 0, Purpose::Emulation);
        let mut loses = move |_, _: &Frame<u32>| random.bernoulli(loss);
        let mut link = Link::new(config);
        (link.packet_time, link.queue_capacity) = (Duration::from_micros(pace_us), room);
        // The first packet arrives: otherwise the receiver could not know the beginning of the epoch.
        link.send([0], &mut |_, _| false);
        let mut next = 1;
        for (count, pause_ms) in bursts {
            link.send(next..next + count, &mut loses);
            next += count;
            let until = link.now + Duration::from_millis(pause_ms);
            link.run(until, &mut loses);
        }
        // All three probes may be lost. The next packet reveals all holes.
        link.run(Instant::from_secs(1_000), &mut loses);
        (link.packet_time, link.queue_capacity) = (Duration::ZERO, usize::MAX);
        link.send([next], &mut |_, _| false);
        link.run(Instant::from_secs(300_000), &mut |_, _| false);
        // Parity may bring what the queue refused.
        link.refused.retain(|packet| !link.delivered.contains(packet));
        let mut expected: Vec<_> = (0..=next).filter(|packet| !link.refused.contains(packet)).collect();
        if !kept {
            link.delivered.sort_unstable();
            expected.sort_unstable();
        }
        prop_assert_eq!(&link.delivered, &expected);
        prop_assert!(link.held_copies.iter().all(|held| held.values().all(|&times| times == 0)));
        prop_assert_eq!(link.ends[0].poll_timeout(), None);
    }

    #[test]
    fn packets_wait_at_most_max_wait_and_arrive_once(
        loss in 0.0f64..0.9,
        bursts in prop::collection::vec((1u32..60, 0u64..50), 1..20),
        seed in any::<u64>(),
    ) {
        let mut random = RandomStream::keyed(seed, 0, 0, Purpose::Emulation);
        let mut loses = move |_, _: &Frame<u32>| random.bernoulli(loss);
        let mut link = Link::new(Config::default());
        let (mut next, mut sent_at) = (0, Vec::new());
        for (count, pause_ms) in bursts {
            sent_at.extend(core::iter::repeat_n(link.now, count as usize));
            link.send(next..next + count, &mut loses);
            next += count;
            let until = link.now + Duration::from_millis(pause_ms);
            link.run(until, &mut loses);
        }
        link.run(Instant::from_secs(100), &mut loses);
        prop_assert!(link.delivered.is_sorted_by(|a, b| a < b), "{:?}", link.delivered);
        prop_assert!(link.held_copies.iter().all(|held| held.values().all(|&times| times == 0)));
        prop_assert_eq!(link.ends.each_ref().map(Opaque::poll_timeout), [None, None]);
    }
}
