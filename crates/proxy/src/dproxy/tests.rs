//! Dialogues: both ends of a link, packets and losses on it, and the messages between the ends.

#![expect(unused_must_use, reason = "a dialogue says of most packets only that they pass by")]

use super::*;
use crate::QueuePosition;
use crate::table::TableLimits;
use hopline_core::{Duration, Length};
use hopline_wire::dproxy::Sealed;
use hopline_wire::dproxy::{Flow, Message, MessageKind, Range};
use hopline_wire::ip::{Header, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU8;

const SENDER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 80);
const RECEIVER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(10, 0, 9, 2)), 9);
const NEAR: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const FAR: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));
const KEY: Key = Key::new([7; 32]);
const LEN: u32 = 1000;
/// Sequence number before packet 0. Numbers wrap around with packet 2.
const START: Seq32 = Seq32(u32::MAX - 2 * LEN);

/// A packet as it is cached: a name, its flags, its length.
type StoredPacket = u32;

fn seq(n: u32) -> Seq32 {
    START + n * LEN
}

fn header((src, dst): (IpAddr, IpAddr)) -> Header {
    Header::new(src, dst, Protocol::Tcp)
}

fn data(n: u32) -> Segment<Length> {
    Segment {
        src_port: SENDER.1,
        dst_port: RECEIVER.1,
        seq: seq(n),
        ack: Seq32(77),
        flags: Flags::ACK,
        payload: Length(LEN.into()),
        ..Segment::default()
    }
}

fn ack(n: u32) -> Segment<Length> {
    Segment {
        src_port: RECEIVER.1,
        dst_port: SENDER.1,
        seq: Seq32(77),
        ack: seq(n),
        flags: Flags::ACK,
        ..Segment::default()
    }
}

fn flow() -> Flow {
    Flow { src: SENDER, dst: RECEIVER }
}

fn range(n: u32) -> Range {
    Range { seq: seq(n), len: LEN as u16 }
}

#[test]
fn replays_and_requests_use_the_configured_queue_position() {
    assert_eq!(
        config(NEAR, FAR).queue_position,
        QueuePosition::Back,
        "they were \"sitting in buffers\" (§III-C.2)"
    );
    for turn in [QueuePosition::Front, QueuePosition::Back] {
        let mut link = Link::started_with(|config| config.queue_position = turn);
        link.lose(1);
        let segment = data(2);
        link.send_from_near(&segment, 2);
        let ip = header((SENDER.0, RECEIVER.0));
        assert_eq!(link.far.pass_in(link.now(), Packet::new(&ip, &segment), || 2), Verdict::Delayed);
        let Some(DProxyAction::Send { queue_position: asked, sealed, .. }) = link.far.poll_action() else {
            panic!("it asks")
        };
        link.near.handle_message(link.now(), FAR, &sealed);
        assert_eq!((asked, link.near.poll_action()), (turn, Some(DProxyAction::Retransmit(turn, 1))));
    }
}

/// Both ends of a link. Data go from the near one to the far one.
struct Link {
    near: DProxy<StoredPacket>,
    far: DProxy<StoredPacket>,
    now_ms: u64,
    /// Packets forwarded by the far end.
    arrived: Vec<StoredPacket>,
    /// Messages of the far end.
    messages: Vec<Sealed>,
}

fn config(local: IpAddr, peer: IpAddr) -> Config {
    Config::new(local, peer, KEY)
}

impl Link {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl Fn(&mut Config)) -> Self {
        let end = |local, peer| {
            let mut config = config(local, peer);
            change(&mut config);
            DProxy::new(config)
        };
        Self {
            near: end(NEAR, FAR),
            far: end(FAR, NEAR),
            now_ms: 0,
            arrived: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Creates a link over which packet 0 has gone.
    fn started() -> Self {
        Self::started_with(|_| {})
    }

    fn started_with(change: impl Fn(&mut Config)) -> Self {
        let mut link = Self::with(change);
        link.deliver(0);
        link.arrived.clear();
        link
    }

    fn now(&self) -> Instant {
        Instant::from_millis(self.now_ms)
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now_ms = ms;
        self
    }

    fn send_from_near(&mut self, segment: &Segment<Length>, name: StoredPacket) {
        let ip = header((SENDER.0, RECEIVER.0));
        self.near.pass_out(self.now(), Packet::new(&ip, segment), || name);
    }

    fn receive_at_far(&mut self, segment: &Segment<Length>, name: StoredPacket) -> Verdict {
        let ip = header((SENDER.0, RECEIVER.0));
        let verdict = self.far.pass_in(self.now(), Packet::new(&ip, segment), || name);
        if verdict == Verdict::Forward {
            self.arrived.push(name);
        }
        self.drain_far();
        verdict
    }

    /// Records the actions of the far end.
    fn drain_far(&mut self) {
        while let Some(does) = self.far.poll_action() {
            match does {
                DProxyAction::Forward(name) => self.arrived.push(name),
                DProxyAction::Send { to, sealed, .. } => {
                    assert_eq!(to, NEAR);
                    self.messages.push(sealed);
                }
                DProxyAction::Retransmit(..) => panic!("nothing goes that way"),
            }
        }
    }

    fn deliver(&mut self, n: u32) {
        self.send_from_near(&data(n), n);
        self.receive_at_far(&data(n), n);
    }

    fn lose(&mut self, n: u32) {
        self.send_from_near(&data(n), n);
    }

    fn deliver_ack(&mut self, n: u32) {
        let (segment, ip) = (ack(n), header((RECEIVER.0, SENDER.0)));
        self.far.pass_out(self.now(), Packet::new(&ip, &segment), || n);
        assert_eq!(self.near.pass_in(self.now(), Packet::new(&ip, &segment), || n), Verdict::Forward);
    }

    /// Returns the messages of the far end.
    fn far_messages(&mut self) -> Vec<Sealed> {
        self.drain_far();
        core::mem::take(&mut self.messages)
    }

    /// Returns the packets that the far end requests.
    fn requested(&mut self) -> Vec<u32> {
        self.far_messages().iter().map(|sealed| number(sealed, MessageKind::Request)).collect()
    }

    /// Passes messages of the far end to the near end. Returns the replays and answers.
    fn deliver_to_near(&mut self, said: &[Sealed]) -> (Vec<StoredPacket>, Vec<Sealed>) {
        let (mut replays, mut answers) = (Vec::new(), Vec::new());
        for sealed in said {
            self.near.handle_message(self.now(), FAR, sealed);
            while let Some(does) = self.near.poll_action() {
                match does {
                    DProxyAction::Retransmit(_, name) => replays.push(name),
                    DProxyAction::Send { to, sealed, .. } => {
                        assert_eq!(to, FAR);
                        answers.push(sealed);
                    }
                    DProxyAction::Forward(_) => panic!("nothing waits there"),
                }
            }
        }
        (replays, answers)
    }

    /// Passes on all requests and replays at once. Returns the replayed packets.
    fn exchange_repairs(&mut self) -> Vec<StoredPacket> {
        let mut all = Vec::new();
        loop {
            let said = self.far_messages();
            if said.is_empty() {
                return all;
            }
            let (replays, answers) = self.deliver_to_near(&said);
            for name in &replays {
                self.receive_at_far(&data(*name), *name);
            }
            all.extend(replays);
            for sealed in answers {
                self.far.handle_message(self.now(), NEAR, &sealed);
            }
        }
    }

    /// Returns the requests of the far end by timers until then, with their times.
    fn timed_requests(&mut self, until_ms: u64) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        while let Some(at) = self.far.poll_timeout().filter(|at| *at <= Instant::from_millis(until_ms)) {
            self.now_ms = at.as_nanos().div_ceil(1_000_000);
            self.far.handle_timeout(self.now());
            let now_ms = self.now_ms;
            all.extend(self.requested().into_iter().map(|n| (now_ms, n)));
        }
        self.now_ms = until_ms;
        all
    }
}

fn number(sealed: &Sealed, says: MessageKind) -> u32 {
    assert_eq!((sealed.message.kind, sealed.message.flow), (says, flow()));
    (sealed.message.range.seq - START) / LEN
}

#[test]
fn in_order_packets_pass_without_messages() {
    let mut link = Link::new();
    (0..10).for_each(|n| link.deliver(n));
    assert_eq!(link.arrived, (0..10).collect::<Vec<_>>());
    assert_eq!((link.requested(), link.near.cached()), (vec![], 10));
}

#[test]
fn missing_packet_is_requested_and_later_ones_wait() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    link.deliver(3);
    assert_eq!((link.requested(), link.arrived.len(), link.far.waiting_packets()), (vec![1], 0, 2));
    link.at(4);
    assert_eq!(link.receive_at_far(&data(1), 1), Verdict::Forward);
    assert_eq!(link.requested(), []);
    assert_eq!((&link.arrived[..], link.far.waiting_packets()), (&[1, 2, 3][..], 0));
    assert_eq!(link.far.recovery_time(), Duration::from_micros(9_250), "7/8 of 10 ms and 1/8 of 4");
}

#[test]
fn request_replays_the_packet_unchanged() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    let said = link.far_messages();
    assert_eq!(said[0].message.range, range(1));
    assert_eq!(link.deliver_to_near(&said), (vec![1], vec![]));
    assert_eq!(link.near.stats().replayed, 1);
}

#[test]
fn gap_of_several_packets_has_one_request_each() {
    let mut link = Link::started();
    link.deliver(1);
    [2, 3].map(|n| link.lose(n));
    link.deliver(4);
    link.lose(5);
    link.deliver(6);
    assert_eq!(link.requested(), [2, 3, 5], "the example of §III-C.3");
}

#[test]
fn gap_is_divided_by_the_most_frequent_length() {
    let mut link = Link::started();
    [1, 2, 3].map(|n| link.deliver(n));
    let short = Segment { payload: Length(300), ..data(4) };
    link.receive_at_far(&short, 4);
    let later = Segment { seq: short.seq_end() + 2 * LEN + 500, ..data(0) };
    link.receive_at_far(&later, 5);
    let lens: Vec<_> = link.far_messages().iter().map(|sealed| sealed.message.range.len).collect();
    assert_eq!(lens, [1000, 1000, 500], "C14");
}

#[test]
fn requests_with_other_lengths_replay_each_packet_once() {
    let mut link = Link::started();
    [1, 2].map(|n| link.deliver(n));
    let mut at = seq(3);
    for (name, len) in [(3, 400), (4, 1000), (5, 600)] {
        let segment = Segment { seq: at, payload: Length(len), ..data(0) };
        link.send_from_near(&segment, name);
        at = segment.seq_end();
    }
    link.deliver(5);
    let said = link.far_messages();
    assert_eq!(said.len(), 2);
    assert_eq!(link.deliver_to_near(&said).0, [3, 4, 5]);
    // The packet that covers the beginning of this range was replayed for the first request.
    let middle = Message { range: Range { seq: seq(3) + 500, len: 100 }, ..said[0].message };
    let again = KEY.seal(FAR, Message { number: 99, ..middle });
    assert_eq!(link.deliver_to_near(&[again]), (vec![], vec![]));
    assert_eq!(link.near.stats().recently_replayed, 1);
}

#[test]
fn without_expansion_packets_are_requested_one_by_one() {
    let mut link = Link::started_with(|config| config.request_expansion = RequestExpansion::Off);
    [1, 2, 3].map(|n| link.lose(n));
    link.deliver(4);
    assert_eq!(link.requested(), [1]);
    link.receive_at_far(&data(1), 1);
    assert_eq!(link.requested(), [2]);
    link.receive_at_far(&data(2), 2);
    assert_eq!(link.requested(), [3]);
    link.receive_at_far(&data(3), 3);
    assert_eq!((link.requested(), &link.arrived[..]), (vec![], &[1, 2, 3, 4][..]));
}

#[test]
fn later_replay_repeats_the_earlier_request() {
    let mut link = Link::started();
    [1, 2].map(|n| link.lose(n));
    link.deliver(3);
    assert_eq!(link.requested(), [1, 2]);
    assert_eq!(link.at(4).receive_at_far(&data(2), 2), Verdict::Delayed);
    assert_eq!(link.requested(), [1]);
    link.at(8).receive_at_far(&data(1), 1);
    assert_eq!((link.requested(), &link.arrived[..]), (vec![], &[1, 2, 3][..]));
}

#[test]
fn unanswered_request_is_repeated_then_given_up() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    assert_eq!(link.requested(), [1]);
    assert_eq!(link.timed_requests(129), [(20, 1), (50, 1), (90, 1)]);
    assert_eq!(link.arrived, []);
    link.timed_requests(130);
    assert_eq!((&link.arrived[..], link.far.recovery().given_up), (&[2][..], 1));
    link.deliver(3);
    assert_eq!((link.requested(), &link.arrived[..]), (vec![], &[2, 3][..]), "it is not waited for again");
}

#[test]
fn packets_wait_at_most_max_wait() {
    let attempts = NonZeroU8::MAX;
    let mut link = Link::started_with(|config| config.recovery.max_timer_requests = attempts);
    link.lose(1);
    link.deliver(2);
    link.at(150).lose(3);
    link.deliver(4);
    link.timed_requests(199);
    assert_eq!(link.arrived, []);
    link.timed_requests(200);
    assert_eq!(link.arrived, [2]);
    link.timed_requests(350);
    assert_eq!(link.arrived, [2, 4]);
}

#[test]
fn waiting_packets_of_a_flow_are_limited() {
    let mut link = Link::started_with(|config| config.max_waiting_per_flow = 3);
    link.lose(1);
    [2, 3].map(|n| link.deliver(n));
    link.lose(4);
    [5, 6].map(|n| link.deliver(n));
    link.requested();
    assert_eq!(
        (&link.arrived[..], link.far.waiting_packets()),
        (&[2, 3][..], 2),
        "those behind 4 still wait"
    );
    assert_eq!(link.far.stats().overflowed, 1);
}

#[test]
fn waiting_packets_in_total_are_limited() {
    let mut link = Link::started_with(|config| config.max_waiting = 2);
    link.lose(1);
    [2, 3, 4].map(|n| link.deliver(n));
    link.requested();
    assert_eq!((&link.arrived[..], link.far.waiting_packets()), (&[2, 3, 4][..], 0));
}

#[test]
fn large_gap_is_left_to_tcp() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    link.deliver(70);
    link.deliver(71);
    assert_eq!(link.requested(), [1]);
    assert_eq!((&link.arrived[..], link.far.stats().excess_losses), (&[2, 70, 71][..], 1), "in order");
}

#[test]
fn uncached_packet_is_reported_and_skipped() {
    let mut link = Link::started();
    // Packet 1 was lost before the near end: congestion.
    link.deliver(2);
    let said = link.far_messages();
    let (replays, answers) = link.deliver_to_near(&said);
    assert_eq!((replays, answers.len(), link.near.stats().not_cached), (vec![], 1, 1));
    assert_eq!(number(&answers[0], MessageKind::NotCached), 1);
    link.far.handle_message(link.now(), NEAR, &answers[0]);
    assert_eq!((link.requested(), &link.arrived[..]), (vec![], &[2][..]));
}

#[test]
fn queue_drops_are_left_to_the_sender_or_replayed() {
    for (overflow, repaired) in
        [(QueueDropHandling::LeftToSender, vec![]), (QueueDropHandling::Replayed, vec![1])]
    {
        let mut link = Link::started_with(|config| config.overflow = overflow);
        link.lose(1);
        let ip = header((SENDER.0, RECEIVER.0));
        link.near.on_queue_drop(Packet::new(&ip, &data(1)));
        link.deliver(2);
        assert_eq!(link.exchange_repairs(), repaired);
        assert_eq!(link.near.stats().refused, 1 - repaired.len() as u64);
        assert_eq!(link.arrived.last(), Some(&2));
    }
}

#[test]
fn sender_retransmissions_do_not_wait() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    assert_eq!(link.receive_at_far(&data(0), 0), Verdict::Forward, "below");
    assert_eq!(link.receive_at_far(&data(2), 2), Verdict::Forward, "a copy of what waits");
    assert_eq!(link.receive_at_far(&data(1), 1), Verdict::Forward, "what is missing");
    link.requested();
    assert_eq!(link.arrived, [0, 2, 1, 2], "and what waited for it");
}

#[test]
fn out_of_order_delivery_forwards_at_once() {
    let mut link = Link::started_with(|config| config.hole_delivery = HoleDelivery::OutOfOrder);
    link.lose(1);
    [2, 3].map(|n| link.deliver(n));
    assert_eq!(link.exchange_repairs(), [1]);
    assert_eq!(link.arrived, [2, 3, 1]);
}

#[test]
fn reordering_threshold_prevents_requests() {
    let mut link = Link::started_with(|config| config.recovery.reordering_threshold = 1);
    link.receive_at_far(&data(2), 2);
    link.receive_at_far(&data(1), 1);
    assert_eq!((link.requested(), &link.arrived[..]), (vec![], &[1, 2][..]));
    link.receive_at_far(&data(4), 4);
    assert_eq!(link.requested(), []);
    link.receive_at_far(&data(5), 5);
    assert_eq!(link.requested(), [3]);
}

#[test]
fn acknowledged_packets_are_removed_from_the_cache() {
    let mut link = Link::new();
    (0..4).for_each(|n| link.deliver(n));
    link.deliver_ack(3);
    assert_eq!(link.near.cached(), 1);
    link.deliver_ack(9);
    assert_eq!((link.near.cached(), link.near.stats().invalid_acks), (1, 1), "that was never sent");
    link.deliver_ack(4);
    assert_eq!((link.near.cached(), link.near.poll_timeout()), (0, Some(Instant::from_secs(900))));
}

#[test]
fn cache_is_bounded_in_number_and_age() {
    let mut link = Link::with(|config| config.cache.packets_per_flow = 3);
    (0..5).for_each(|n| link.lose(n));
    assert_eq!((link.near.cached(), link.near.stats().evicted), (3, 2));
    let ask = |number, n| {
        KEY.seal(FAR, Message { number, flow: flow(), range: range(n), kind: MessageKind::Request })
    };
    assert_eq!(link.deliver_to_near(&[ask(1, 1)]).0, []);
    assert_eq!(link.deliver_to_near(&[ask(2, 2)]).0, [2], "first in, first out (C6)");
    assert_eq!(link.near.poll_timeout(), Some(Instant::from_secs(1)));
    link.at(1000).near.handle_timeout(Instant::from_secs(1));
    assert_eq!(link.near.cached(), 0);
    assert_eq!(link.deliver_to_near(&[ask(3, 4)]).0, []);
}

#[test]
fn replays_of_a_packet_are_limited() {
    let mut link = Link::started_with(|config| config.cache.max_replays = 3);
    link.lose(1);
    let mut number = 0;
    let mut ask = |link: &mut Link| {
        number += 1;
        let message = Message { number, flow: flow(), range: range(1), kind: MessageKind::Request };
        let (replays, answers) = link.deliver_to_near(&[KEY.seal(FAR, message)]);
        (replays.len(), answers.len())
    };
    for ms in 1..=3 {
        link.at(ms);
        assert_eq!(ask(&mut link), (1, 0));
        assert_eq!(ask(&mut link), (0, 0), "not twice at once");
    }
    link.at(4);
    assert_eq!(ask(&mut link), (0, 1), "and then it counts as not kept");
    link.lose(1);
    assert_eq!(ask(&mut link), (1, 0), "the sender has sent it again");
    assert_eq!((link.near.stats().exhausted, link.near.cached()), (1, 2));
}

#[test]
fn syn_sets_the_initial_sequence_number_once() {
    let mut link = Link::new();
    let syn = Segment { seq: seq(0) - 1, flags: Flags::SYN, payload: Length(0), ..data(0) };
    link.receive_at_far(&syn, 100);
    link.deliver(1);
    assert_eq!(link.requested(), [0], "the first packet is missing (C12)");
    link.receive_at_far(&syn, 100);
    link.receive_at_far(&data(0), 0);
    assert_eq!((link.requested(), &link.arrived[..]), (vec![], &[100, 100, 0, 1][..]));
}

#[test]
fn new_syn_flushes_the_queue_and_resets_state() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    let syn = Segment { seq: Seq32(5), flags: Flags::SYN, payload: Length(0), ..data(0) };
    assert_eq!(link.receive_at_far(&syn, 100), Verdict::Delayed);
    link.send_from_near(&syn, 100);
    assert_eq!(link.near.cached(), 0, "what was kept is of no use");
    assert_eq!(link.receive_at_far(&Segment { seq: Seq32(6), ..data(0) }, 101), Verdict::Forward);
    assert_eq!(link.arrived, [2, 100, 101]);
}

#[test]
fn lost_fin_is_repaired() {
    let mut link = Link::started();
    link.lose(1);
    let fin = Segment { flags: Flags::FIN | Flags::ACK, payload: Length(0), ..data(2) };
    link.send_from_near(&fin, 2);
    assert_eq!(link.receive_at_far(&fin, 2), Verdict::Delayed);
    assert_eq!(link.exchange_repairs(), [1]);
    assert_eq!(link.arrived, [1, 2]);
    link.deliver_ack(2);
    assert_eq!(link.near.cached(), 1, "the FIN");
}

#[test]
fn reset_flushes_the_queue_and_removes_state() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    let reset = Segment { flags: Flags::RST, payload: Length(0), ..data(3) };
    link.send_from_near(&reset, 3);
    assert_eq!(link.receive_at_far(&reset, 3), Verdict::Delayed);
    link.requested();
    assert_eq!(link.arrived, [2, 3]);
    assert_eq!((link.near.connections(), link.far.connections(), link.near.cached()), (0, 0, 0));
}

#[test]
fn a_keep_alive_passes_and_opens_no_hole() {
    let mut link = Link::started();
    let keep_alive = Segment { seq: seq(1) - 1, payload: Length(1), ..data(0) };
    link.send_from_near(&keep_alive, 100);
    assert_eq!(link.receive_at_far(&keep_alive, 100), Verdict::Forward);
    link.deliver(1);
    assert_eq!((link.requested(), &link.arrived[..]), (vec![], &[100, 1][..]));
}

#[test]
fn flow_without_syn_starts_at_its_first_packet() {
    let mut link = Link::new();
    assert_eq!(link.receive_at_far(&data(50), 50), Verdict::Forward);
    link.lose(51);
    link.deliver(52);
    assert_eq!(link.exchange_repairs(), [51]);
}

#[test]
fn segments_without_data_pass_and_are_not_cached() {
    let mut link = Link::new();
    link.deliver_ack(3);
    assert_eq!((link.near.connections(), link.far.connections()), (0, 0));
    link.deliver(0);
    link.deliver(2);
    let pure = Segment { payload: Length(0), ..data(3) };
    assert_eq!(link.receive_at_far(&pure, 100), Verdict::Forward);
}

#[test]
fn both_directions_are_repaired() {
    let mut link = Link::started();
    let back = |n: u32| Segment { payload: Length(LEN.into()), seq: Seq32(77) + n * LEN, ..ack(1) };
    let ip = header((RECEIVER.0, SENDER.0));
    for n in [0, 1, 2] {
        link.far.pass_out(link.now(), Packet::new(&ip, &back(n)), || n);
    }
    let passed = [0, 2].map(|n| link.near.pass_in(link.now(), Packet::new(&ip, &back(n)), || n));
    assert_eq!(passed, [Verdict::Forward, Verdict::Delayed]);
    let Some(DProxyAction::Send { to, queue_position: turn, sealed }) = link.near.poll_action() else {
        panic!("it asks")
    };
    assert_eq!(
        (to, turn, sealed.message.flow),
        (FAR, QueuePosition::Back, Flow { src: RECEIVER, dst: SENDER })
    );
    link.far.handle_message(link.now(), NEAR, &sealed);
    assert_eq!(link.far.poll_action(), Some(DProxyAction::Retransmit(QueuePosition::Back, 1)));
    assert_eq!(link.near.cached(), 0, "what comes back acknowledges");
}

#[test]
fn tail_probe_detects_a_lost_tail() {
    let mut link = Link::started_with(|config| config.tail_probe_delay = Some(Duration::from_millis(20)));
    [1, 2].map(|n| link.lose(n));
    let told: Vec<_> = [19, 20, 40, 60, 80, 100]
        .map(|ms| {
            link.at(ms).near.handle_timeout(Instant::from_millis(ms));
            core::iter::from_fn(|| link.near.poll_action()).collect::<Vec<_>>()
        })
        .into();
    assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 1, 1, 0, 0], "three times");
    let DProxyAction::Send { to, queue_position: turn, sealed } = &told[1][0] else { panic!("it tells") };
    assert_eq!((*to, *turn, number(sealed, MessageKind::Tail)), (FAR, QueuePosition::Back, 2));
    link.far.handle_message(link.now(), NEAR, sealed);
    assert_eq!(link.exchange_repairs(), [1, 2]);
    assert_eq!(link.arrived, [1, 2]);
}

#[test]
fn tail_probe_detects_a_lost_tail_of_a_translated_flow() {
    for (translation, found) in [(Translation::Absent, vec![]), (Translation::Possible, vec![1, 2])] {
        let mut link = Link::started_with(|config| config.translation = translation);
        [1, 2].map(|n| link.lose(n));
        let named = Flow { dst: PUBLIC, ..flow() };
        let elsewhere = Flow { src: (SENDER.0, SENDER.1 + 1), ..named };
        let tails = [(elsewhere, 2), (named, 1000), (named, 2)];
        for ((flow, n), number) in tails.into_iter().zip(1..) {
            assert_eq!(
                link.exchange_repairs(),
                Vec::<StoredPacket>::new(),
                "no endpoint in common, or another place"
            );
            let tail = KEY.seal(NEAR, Message { number, flow, range: range(n), kind: MessageKind::Tail });
            link.far.handle_message(link.now(), NEAR, &tail);
        }
        assert_eq!(link.exchange_repairs(), found);
    }
}

#[test]
fn acknowledged_tail_is_not_probed() {
    let mut link = Link::started_with(|config| config.tail_probe_delay = Some(Duration::from_millis(20)));
    link.deliver_ack(1);
    link.at(50).near.handle_timeout(Instant::from_millis(50));
    assert_eq!(link.near.poll_action(), None);
}

#[test]
fn hostile_messages_are_counted_and_ignored() {
    let mut link = Link::started();
    link.lose(1);
    let message = Message { number: 7, flow: flow(), range: range(1), kind: MessageKind::Request };
    let genuine = KEY.seal(FAR, message);
    let mut bytes = Vec::new();
    genuine.emit(&mut bytes);
    let hear = |link: &mut Link, from, bytes: &[u8]| {
        link.near.handle_datagram(link.now(), from, bytes);
        link.near.poll_action()
    };
    for cut in 0..bytes.len() {
        assert_eq!(hear(&mut link, FAR, &bytes[..cut]), None);
    }
    let other_version = [&[1], &bytes[1..]].concat();
    assert_eq!(hear(&mut link, FAR, &other_version), None);
    assert_eq!(link.near.stats().malformed, 45);
    assert_eq!(hear(&mut link, RECEIVER.0, &bytes), None);
    assert_eq!(link.near.stats().foreign, 1);
    for at in 2..bytes.len() {
        let mut forged = bytes.clone();
        forged[at] ^= 1;
        assert_eq!(hear(&mut link, FAR, &forged), None);
    }
    let wrong_key = Key::new([8; 32]).seal(FAR, message);
    let reflected = KEY.seal(NEAR, message);
    let (from, now) = (FAR, link.now());
    [wrong_key, reflected].map(|sealed| link.near.handle_message(now, from, &sealed));
    assert_eq!((link.near.poll_action(), link.near.stats().forged), (None, 44));
    assert_eq!(
        hear(&mut link, FAR, &bytes),
        Some(DProxyAction::Retransmit(QueuePosition::Back, 1)),
        "none of them has used up its number"
    );
    assert_eq!(hear(&mut link, FAR, &bytes), None);
    assert_eq!(link.near.stats().replays_refused, 1);
}

#[test]
fn request_for_an_unknown_flow_is_answered_not_cached() {
    let mut link = Link::new();
    let message = Message { number: 1, flow: flow(), range: range(1), kind: MessageKind::Request };
    let (replays, answers) = link.deliver_to_near(&[KEY.seal(FAR, message)]);
    assert_eq!((replays, answers.len()), (vec![], 1));
    for (number, says) in [(2, MessageKind::NotCached), (3, MessageKind::Tail)] {
        let about = Message { number, kind: says, ..message };
        assert_eq!(link.deliver_to_near(&[KEY.seal(FAR, about)]), (vec![], vec![]));
    }
    assert_eq!((link.near.stats().unknown_flows, link.near.connections()), (3, 0));
}

/// Address of the receiver on the link, after translation by a router.
const PUBLIC: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)), 40_000);

#[test]
fn request_with_a_translated_address_is_answered() {
    let named = Flow { dst: PUBLIC, ..flow() };
    let asks = |link: &mut Link, flow, n, number| {
        let message = Message { number, flow, range: range(n), kind: MessageKind::Request };
        link.at(u64::from(number as u32)).deliver_to_near(&[KEY.seal(FAR, message)]).0
    };
    let begun = |translation| {
        let mut link = Link::started_with(|config| config.translation = translation);
        link.lose(1);
        link
    };
    let mut link = begun(Translation::Absent);
    assert_eq!(asks(&mut link, named, 1, 1), Vec::<StoredPacket>::new());
    let mut link = begun(Translation::Possible);
    let elsewhere = Flow { src: (SENDER.0, SENDER.1 + 1), ..named };
    assert_eq!(asks(&mut link, elsewhere, 1, 1), Vec::<StoredPacket>::new(), "no endpoint in common");
    assert_eq!(asks(&mut link, named, 9, 3), Vec::<StoredPacket>::new(), "nothing of that range is kept");
    assert_eq!(asks(&mut link, named, 1, 5), [1]);
    link.lose(2);
    assert_eq!(asks(&mut link, named, 2, 6), [2], "the name is remembered");
}

#[test]
fn translated_flows_that_lose_at_the_same_instant_are_all_repaired() {
    let mut link = Link::started_with(|config| config.translation = Translation::Possible);
    let unresolvable = Flow { src: (SENDER.0, SENDER.1 + 1), dst: PUBLIC };
    let named = Flow { dst: PUBLIC, ..flow() };
    link.lose(1);
    let ask =
        |flow, number| KEY.seal(FAR, Message { number, flow, range: range(1), kind: MessageKind::Request });
    let asks = [ask(unresolvable, 1), ask(named, 2)];
    assert_eq!(link.deliver_to_near(&asks).0, [1]);
}

#[test]
fn reused_translated_address_refers_to_the_new_connection() {
    let mut names = TranslatedFlows::new(Translation::Possible);
    let mut table = Table::new(TableLimits::default());
    let named = Flow { dst: PUBLIC, ..flow() };
    let mut keeps = |port: u16, n: u32| {
        let connection = Connection { fixed: SENDER, mobile: (RECEIVER.0, port) };
        let mut tracked = ConnectionState::<StoredPacket>::new(Instant::ZERO);
        tracked.cached.push((seq(n), seq(n + 1)), n.into(), 16);
        table.insert(Instant::ZERO, connection, tracked).0
    };
    let (former, latter) = (keeps(1, 1), keeps(2, 2));
    let here = Connection { fixed: named.src, mobile: named.dst };
    let find = |names: &mut TranslatedFlows, n| {
        names.find(&table, named, here, |tracked| tracked.cached.contains(range(n)))
    };
    assert_eq!(find(&mut names, 1), Some(former));
    assert_eq!(find(&mut names, 2), Some(latter));
    assert_eq!(find(&mut names, 9), Some(latter), "nothing of that range is kept");
}

/// Session keys: of the near end, then of the far end.
const SESSION: [Key; 2] = [Key::new([1; 32]), Key::new([2; 32])];

#[test]
fn messages_of_a_new_peer_epoch_are_accepted_and_old_ones_rejected() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    let former = link.far_messages();
    assert_eq!(link.deliver_to_near(&former), (vec![1], vec![]));
    link.near.handle_peer_present(link.now(), SESSION);
    link.far.handle_peer_present(link.now(), [SESSION[1], SESSION[0]]);
    [0, 2].map(|n| link.at(1).deliver(n));
    link.lose(3);
    link.deliver(4);
    assert_eq!(link.exchange_repairs(), [3], "its numbers begin anew");
    let forged = link.near.stats().forged;
    assert_eq!(link.deliver_to_near(&former), (vec![], vec![]));
    assert_eq!(link.near.stats().forged, forged + 1);
}

#[test]
fn returning_peer_with_the_same_keys_continues_its_numbers() {
    let mut link = Link::started();
    link.near.handle_peer_present(link.now(), SESSION);
    link.far.handle_peer_present(link.now(), [SESSION[1], SESSION[0]]);
    link.deliver(0);
    link.lose(1);
    link.deliver(2);
    let recorded = link.far_messages();
    assert_eq!(link.deliver_to_near(&recorded), (vec![1], vec![]));
    let now = link.now();
    for (end, keys) in [(&mut link.near, SESSION), (&mut link.far, [SESSION[1], SESSION[0]])] {
        end.handle_peer_absent(now);
        end.handle_peer_present(now, keys);
    }
    link.deliver(2);
    link.lose(3);
    link.deliver(4);
    assert_eq!(link.deliver_to_near(&recorded), (vec![], vec![]), "what was recorded does not come again");
    assert_eq!(link.exchange_repairs(), [3]);
}

#[test]
fn without_peer_packets_pass_without_state() {
    let mut link = Link::started();
    link.lose(1);
    link.deliver(2);
    assert_eq!((link.requested(), link.far.waiting_packets()), (vec![1], 1));
    let now = link.now();
    link.far.handle_peer_absent(now);
    link.near.handle_peer_absent(now);
    link.drain_far();
    assert_eq!((&link.arrived[..], link.far.waiting_packets()), (&[2][..], 0), "what waited goes on");
    for n in [4, 6, 5, 3, 8] {
        link.deliver(n);
    }
    assert_eq!(link.requested(), []);
    assert_eq!(link.arrived[1..], [4, 6, 5, 3, 8]);
    for end in [&link.near, &link.far] {
        assert_eq!((end.connections(), end.cached()), (0, 0));
    }
    let (far, near) = (&mut link.far, &mut link.near);
    [far, near].map(|end| end.handle_peer_present(now, [KEY; 2]));
    link.deliver(9);
    link.lose(10);
    link.deliver(11);
    assert_eq!(link.exchange_repairs(), [10], "from the next packet on");
}

#[test]
fn idle_connections_expire() {
    let mut link = Link::started_with(|config| config.limits.idle_timeout = Duration::from_secs(5));
    link.lose(1);
    link.deliver(2);
    link.timed_requests(4_999);
    assert_eq!((&link.arrived[..], link.far.connections()), (&[2][..], 1));
    link.timed_requests(5_000);
    link.near.handle_timeout(Instant::from_secs(5));
    assert_eq!((link.near.connections(), link.far.connections(), link.near.cached()), (0, 0, 0));
    assert_eq!((link.far.stats().flows_expired, link.far.poll_timeout()), (1, None));
}

#[test]
fn flood_of_flows_is_bounded_and_evicted_queues_are_forwarded() {
    let bounds = TableLimits { max_connections: 100, ..TableLimits::default() };
    let mut config = Config { limits: bounds, max_waiting: 50, ..config(NEAR, FAR) };
    config.cache.packets = 80;
    let mut end = DProxy::new(config);
    let (mut held, mut released) = (0, 0);
    for n in 0..100_000u32 {
        let ip = header((Ipv4Addr::from_bits(n).into(), RECEIVER.0));
        let now = Instant::from_millis(u64::from(n) / 100);
        end.pass_out(now, Packet::new(&ip, &data(0)), || n);
        for packet in [0, 2] {
            let verdict = end.pass_in(now, Packet::new(&ip, &data(packet)), || n);
            held += u32::from(verdict == Verdict::Delayed);
        }
        while let Some(does) = end.poll_action() {
            released += u32::from(matches!(does, DProxyAction::Forward(_)));
        }
        assert!(end.connections() <= 100 && end.waiting_packets() <= 50 && end.cached() <= 80);
        assert_eq!(held, released + end.waiting_packets(), "none is forgotten");
    }
    assert_eq!((held, end.stats().flows_evicted), (100_000, 199_900));
}

/// Each node of a chain has a middlebox for its incoming link, and one for its outgoing link.
#[test]
fn a_chain_of_three_links_repairs_each_loss_where_it_happens() {
    let mut links = [Link::new(), Link::new(), Link::new()];
    let lost = [(0, 2), (1, 4), (1, 5), (2, 4), (2, 7)];
    let mut arrived = Vec::new();
    for n in 0..10 {
        let mut crossing = vec![n];
        for (at, link) in links.iter_mut().enumerate() {
            for name in crossing.drain(..) {
                link.send_from_near(&data(name), name);
                if !lost.contains(&(at, name)) {
                    link.receive_at_far(&data(name), name);
                }
                link.exchange_repairs();
            }
            crossing.append(&mut link.arrived);
        }
        arrived.append(&mut crossing);
    }
    assert_eq!(arrived, (0..10).collect::<Vec<_>>());
    let replayed = links.each_ref().map(|link| link.near.stats().replayed);
    assert_eq!(replayed, [1, 2, 2]);
    let asked = links.each_ref().map(|link| link.far.recovery().requests);
    assert_eq!(asked, [1, 2, 2], "nothing is asked for beyond the link that lost it");
}

#[test]
fn equal_inputs_give_equal_outputs() {
    let run = || {
        let mut link = Link::started();
        [1, 4].map(|n| link.lose(n));
        [2, 3, 5].map(|n| link.deliver(n));
        (link.far_messages(), link.arrived)
    };
    assert_eq!(run(), run());
}
