//! Both ends of a link that loses frames and keeps the order of the remaining ones.

use super::*;
use crate::pep::QueuePosition;
use core::num::NonZeroU8;
use hopline_core::Duration;
use hopline_core::{Purpose, RandomStream};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A link between two ends, in both directions 2 ms long.
struct Link {
    ends: [Arq<u32>; 2],
    now: Instant,
    /// Transmission time of a frame, and queue capacity.
    frame_time: Duration,
    queue_capacity: usize,
    /// Queue at each end, and the time at which its link is free again.
    queues: [VecDeque<(QueuePosition, Frame<u32>)>; 2],
    idle_at: [Instant; 2],
    /// Frames in flight: arrival time, receiving end, frame.
    in_flight: Vec<(Instant, usize, Frame<u32>)>,
    delivered: Vec<u32>,
    refused: Vec<u32>,
    /// Frames that the first end has sent.
    sent: Vec<Frame<u32>>,
    /// Copies of each packet that each end holds.
    held_copies: [BTreeMap<u32, i32>; 2],
}

const DELAY: Duration = Duration::from_millis(2);

impl Link {
    fn new(config: Config) -> Self {
        Self {
            ends: [Arq::new(config, 1), Arq::new(config, 2)],
            now: Instant::ZERO,
            frame_time: Duration::ZERO,
            queue_capacity: usize::MAX,
            queues: Default::default(),
            idle_at: [Instant::ZERO; 2],
            in_flight: Vec::new(),
            delivered: Vec::new(),
            refused: Vec::new(),
            sent: Vec::new(),
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
                    ArqAction::Send(turn, frame) => self.enqueue(end, turn, frame),
                    ArqAction::Deliver(packet) => {
                        self.adjust_held(end, packet, -1);
                        self.delivered.push(packet);
                    }
                    ArqAction::Refuse(packet) => {
                        self.adjust_held(end, packet, -1);
                        self.refused.push(packet);
                    }
                    ArqAction::ReportDrop(packet) | ArqAction::Release(packet) => {
                        self.adjust_held(end, packet, -1)
                    }
                }
            }
            self.transmit(end, loses);
        }
    }

    fn enqueue(&mut self, end: usize, turn: QueuePosition, frame: Frame<u32>) {
        for packet in frame.packets() {
            assert!(self.held_copies[end][packet] > 0, "{packet} is not there any more");
        }
        if end == 0 {
            self.sent.push(frame.clone());
        }
        let queue = &mut self.queues[end];
        if queue.len() < self.queue_capacity {
            let ahead = queue.iter().take_while(|(waits, _)| *waits == QueuePosition::Front).count();
            queue.insert(if turn == QueuePosition::Front { ahead } else { queue.len() }, (turn, frame));
        } else if let Frame::Data { number, content, .. } = frame {
            let before = self.ends[end].stats().refused;
            self.ends[end].on_queue_drop(number);
            if self.ends[end].stats().refused > before {
                self.refused.extend(content);
            }
        }
    }

    /// Sends waiting frames while the link is free.
    fn transmit(&mut self, end: usize, loses: &mut impl FnMut(usize, &Frame<u32>) -> bool) {
        while self.idle_at[end] <= self.now
            && let Some((_, frame)) = self.queues[end].pop_front()
        {
            self.idle_at[end] = self.now + self.frame_time;
            if !loses(end, &frame) {
                self.in_flight.push((self.idle_at[end] + DELAY, 1 - end, frame));
            }
        }
    }

    /// Runs until nothing is in flight and no timer is set, or until this time.
    fn run(&mut self, until: Instant, loses: &mut impl FnMut(usize, &Frame<u32>) -> bool) {
        loop {
            let timers = self.ends.iter().filter_map(Arq::poll_timeout);
            let waiting = (0..2).filter(|&end| !self.queues[end].is_empty()).map(|end| self.idle_at[end]);
            let arrivals = self.in_flight.iter().map(|(at, ..)| *at);
            let Some(at) = timers.chain(waiting).chain(arrivals).min().filter(|&at| at <= until) else {
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

    /// Returns whether no end holds a packet any more.
    fn is_empty(&self) -> bool {
        self.held_copies.iter().all(|held| held.values().all(|&times| times == 0))
    }
}

fn number(frame: &Frame<u32>) -> Option<u16> {
    if let Frame::Data { number, .. } = frame { Some(number.0) } else { None }
}

fn secs(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

/// Loses these frames of the first end the first time that they are sent.
fn lose_once(numbers: &'static [u16]) -> impl FnMut(usize, &Frame<u32>) -> bool {
    let mut left: Vec<u16> = numbers.to_vec();
    move |end, frame| {
        let at = left.iter().position(|&lost| end == 0 && number(frame) == Some(lost));
        at.map(|at| left.remove(at)).is_some()
    }
}

#[test]
fn what_is_lost_goes_again_as_soon_as_something_later_arrives() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[1, 2]));
    link.send(0..5, &mut loses);
    link.run(Instant::from_millis(4), &mut loses);
    let again: Vec<_> = link.sent[5..].iter().filter_map(number).collect();
    assert_eq!(again, [1, 2], "with the ACK of 3, and not again with that of 4");
    assert_eq!(link.delivered, [0], "the others wait");
    link.run(secs(9), &mut loses);
    assert_eq!(link.delivered, [0, 1, 2, 3, 4]);
    assert_eq!(link.ends[0].stats().retransmitted, 2);
}

#[test]
fn what_overtakes_others_says_nothing_of_them() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[0]));
    link.frame_time = Duration::from_millis(1);
    link.send(0..20, &mut loses);
    link.run(secs(9), &mut loses);
    assert_eq!(link.delivered, (0..20).collect::<Vec<_>>());
    assert_eq!(
        link.ends[0].stats().retransmitted,
        1,
        "what waits behind a frame that goes again is not lost"
    );
}

#[test]
fn a_frame_that_goes_again_and_finds_no_room_goes_once_more() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[0]));
    link.send(0..2, &mut loses);
    link.run(Instant::from_millis(3), &mut loses);
    link.queue_capacity = 0;
    link.run(Instant::from_millis(4), &mut loses);
    assert_eq!((link.sent.len(), link.in_flight.len()), (3, 0));
    link.queue_capacity = 1;
    link.run(secs(9), &mut loses);
    assert_eq!((link.delivered.as_slice(), link.ends[0].stats().refused), (&[0, 1][..], 0));
}

#[test]
fn where_order_does_not_matter_nobody_waits() {
    let config = Config { order: DeliveryMode::Any, ..Config::default() };
    let (mut link, mut loses) = (Link::new(config), lose_once(&[1]));
    link.send(0..4, &mut loses);
    link.run(secs(9), &mut loses);
    assert_eq!(link.delivered, [0, 2, 3, 1]);
}

#[test]
fn a_lost_tail_goes_again_by_the_timer() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[0]));
    link.send(0..1, &mut loses);
    link.run(secs(9), &mut loses);
    assert_eq!((link.delivered.as_slice(), link.ends[0].stats().timeouts), (&[0][..], 1));
    assert_eq!(link.now, Instant::from_millis(104), "nothing is known of the link yet: 100 ms");
    assert_eq!(link.ends[0].poll_timeout(), None, "and then it rests");
}

#[test]
fn a_packet_that_is_lost_too_often_is_given_up_and_holds_up_nobody() {
    let config = Config { max_transmissions: NonZeroU8::new(3).unwrap(), ..Config::default() };
    let mut link = Link::new(config);
    let mut loses = |end, frame: &Frame<u32>| {
        end == 0 && number(frame) == Some(1) && matches!(frame, Frame::Data { content: Some(_), .. })
    };
    link.send(0..4, &mut loses);
    link.run(secs(9), &mut loses);
    assert_eq!(link.delivered, [0, 2, 3]);
    assert_eq!((link.ends[0].stats().given_up, link.ends[0].poll_timeout()), (1, None));
}

#[test]
fn what_the_queue_refuses_stays_refused_and_holds_up_nobody() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[1]));
    link.send(0..2, &mut loses);
    link.ends[0].on_queue_drop(Seq16(1));
    link.send(2..4, &mut loses);
    link.run(secs(9), &mut loses);
    assert_eq!(link.delivered, [0, 2, 3]);
    assert_eq!((link.ends[0].stats().refused, link.ends[0].stats().given_up), (1, 0));
}

#[test]
fn one_loss_in_a_group_is_made_good_by_parity_and_two_are_not() {
    let config = Config { parity_interval: NonZeroU8::new(3), ..Config::default() };
    let (mut link, mut loses) = (Link::new(config), lose_once(&[1, 3, 4]));
    link.send(0..6, &mut loses);
    link.run(secs(9), &mut loses);
    assert_eq!(link.delivered, [0, 1, 2, 3, 4, 5]);
    assert_eq!(link.ends[1].stats().restored, 1);
    assert!(link.ends[0].stats().retransmitted >= 2);
}

#[test]
fn more_than_the_window_is_refused() {
    let mut link = Link::new(Config::default());
    let mut loses = |_, _: &Frame<u32>| true;
    link.send(0..300, &mut loses);
    assert_eq!(link.refused, (256..300).collect::<Vec<_>>());
}

#[test]
fn either_end_may_start_again() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[]));
    link.send(0..5, &mut loses);
    link.run(secs(1), &mut loses);
    link.ends[1] = Arq::new(Config::default(), 7);
    link.send(5..10, &mut loses);
    link.run(secs(2), &mut loses);
    link.ends[0] = Arq::new(Config::default(), 8);
    link.send(10..15, &mut loses);
    link.run(secs(3), &mut loses);
    assert_eq!(link.delivered, (0..15).collect::<Vec<_>>());
}

#[test]
fn frames_are_as_long_as_they_say() {
    let len = |frame: Frame<u32>| frame.len_bytes(|packet| *packet);
    let data = |content| Frame::Data { epoch: 1, first: Seq16(0), number: Seq16(0), content };
    assert_eq!((len(data(Some(1500))), len(data(None))), (1508, 8));
    assert_eq!(len(Frame::Parity { epoch: 1, of: vec![(Seq16(0), 40), (Seq16(1), 1500)] }), 1512);
    let ack = |beyond| Frame::Ack { epoch: 1, next: Seq16(0), beyond };
    assert_eq!((len(ack([0; 4])), len(ack([1, 0, 0, 0])), len(ack([0, 0, 1, 0]))), (8, 16, 32));
}

#[test]
fn hostile_acknowledgments_free_nothing() {
    let (mut link, mut loses) = (Link::new(Config::default()), lose_once(&[]));
    link.send(0..3, &mut loses);
    for (epoch, next) in [(1, 4), (1, 40_000), (9, 2)] {
        link.ends[0].handle_frame(link.now, Frame::Ack { epoch, next: Seq16(next), beyond: [u64::MAX; 4] });
    }
    link.run(secs(9), &mut loses);
    assert_eq!((link.delivered.as_slice(), link.ends[0].stats().invalid), (&[0, 1, 2][..], 2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_crosses_once_whatever_is_lost(
        loss in 0.0f64..0.6,
        parity in prop::option::of(1u8..20),
        kept in any::<bool>(),
        bursts in prop::collection::vec((1u32..40, 0u64..50), 1..20),
        pace_us in 0u64..3_000,
        room in 1usize..100,
        seed in any::<u64>(),
    ) {
        let order = if kept { DeliveryMode::InOrder } else { DeliveryMode::Any };
        let attempts = NonZeroU8::MAX;
        let config = Config { order, max_transmissions: attempts, parity_interval: parity.and_then(NonZeroU8::new), ..Config::default() };
        let mut random = RandomStream::keyed(seed, 0, 0, Purpose::Emulation);
        let mut loses = move |_, _: &Frame<u32>| random.bernoulli(loss);
        let mut link = Link::new(config);
        (link.frame_time, link.queue_capacity) = (Duration::from_micros(pace_us), room);
        let mut next = 0;
        for (count, pause_ms) in bursts {
            link.send(next..next + count, &mut loses);
            next += count;
            let until = link.now + Duration::from_millis(pause_ms);
            link.run(until, &mut loses);
        }
        link.run(secs(1_000_000), &mut loses);
        // Parity may bring what the queue refused.
        link.refused.retain(|packet| !link.delivered.contains(packet));
        let mut expected: Vec<_> = (0..next).filter(|packet| !link.refused.contains(packet)).collect();
        if !kept {
            link.delivered.sort_unstable();
            expected.sort_unstable();
        }
        prop_assert_eq!(&link.delivered, &expected);
        prop_assert!(link.is_empty());
        prop_assert_eq!(link.ends[0].poll_timeout(), None);
    }
}
