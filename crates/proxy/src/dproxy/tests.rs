//! Dialogues: both ends of a link, packets and losses on it, and the messages between the ends.

#![expect(unused_must_use, reason = "a dialogue says of most packets only that they pass by")]

use super::*;
use crate::Turn;
use crate::table::Bounds;
use hopline_core::{Duration, Length};
use hopline_wire::dproxy::Sealed;
use hopline_wire::dproxy::{Flow, Message, Range, Says};
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
type Name = u32;

fn seq(n: u32) -> Seq32 {
    START + n * LEN
}

fn header((src, dst): (IpAddr, IpAddr)) -> Header {
    Header::between(src, dst, Protocol::Tcp)
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
fn replays_and_requests_wait_for_their_turn_unless_they_are_to_go_first() {
    assert_eq!(config(NEAR, FAR).turn, Turn::Last, "they were \"sitting in buffers\" (§III-C.2)");
    for turn in [Turn::First, Turn::Last] {
        let mut link = Link::begun_with(|config| config.turn = turn);
        link.is_lost(1);
        let segment = data(2);
        link.goes_out(&segment, 2);
        let ip = header((SENDER.0, RECEIVER.0));
        assert_eq!(link.far.pass_in(link.now(), Packet::new(&ip, &segment), || 2), Verdict::Held);
        let Some(Does::Sends { turn: asked, sealed, .. }) = link.far.poll() else { panic!("it asks") };
        link.near.handle_message(link.now(), FAR, &sealed);
        assert_eq!((asked, link.near.poll()), (turn, Some(Does::Replays(turn, 1))));
    }
}

/// Both ends of a link. Data go from the near one to the far one.
struct Link {
    near: DProxy<Name>,
    far: DProxy<Name>,
    now_ms: u64,
    /// Packets forwarded by the far end.
    arrived: Vec<Name>,
    /// Messages of the far end.
    said: Vec<Sealed>,
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
        Self { near: end(NEAR, FAR), far: end(FAR, NEAR), now_ms: 0, arrived: Vec::new(), said: Vec::new() }
    }

    /// Creates a link over which packet 0 has gone.
    fn begun() -> Self {
        Self::begun_with(|_| {})
    }

    fn begun_with(change: impl Fn(&mut Config)) -> Self {
        let mut link = Self::with(change);
        link.crosses(0);
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

    fn goes_out(&mut self, segment: &Segment<Length>, name: Name) {
        let ip = header((SENDER.0, RECEIVER.0));
        self.near.pass_out(self.now(), Packet::new(&ip, segment), || name);
    }

    fn comes_in(&mut self, segment: &Segment<Length>, name: Name) -> Verdict {
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
        while let Some(does) = self.far.poll() {
            match does {
                Does::Releases(name) => self.arrived.push(name),
                Does::Sends { to, sealed, .. } => {
                    assert_eq!(to, NEAR);
                    self.said.push(sealed);
                }
                Does::Replays(..) => panic!("nothing goes that way"),
            }
        }
    }

    fn crosses(&mut self, n: u32) {
        self.goes_out(&data(n), n);
        self.comes_in(&data(n), n);
    }

    fn is_lost(&mut self, n: u32) {
        self.goes_out(&data(n), n);
    }

    fn ack_crosses(&mut self, n: u32) {
        let (segment, ip) = (ack(n), header((RECEIVER.0, SENDER.0)));
        self.far.pass_out(self.now(), Packet::new(&ip, &segment), || n);
        assert_eq!(self.near.pass_in(self.now(), Packet::new(&ip, &segment), || n), Verdict::Forward);
    }

    /// Returns the messages of the far end.
    fn far_says(&mut self) -> Vec<Sealed> {
        self.drain_far();
        core::mem::take(&mut self.said)
    }

    /// Returns the packets that the far end requests.
    fn asked(&mut self) -> Vec<u32> {
        self.far_says().iter().map(|sealed| number(sealed, Says::Request)).collect()
    }

    /// Passes messages of the far end to the near end. Returns the replays and answers.
    fn near_hears(&mut self, said: &[Sealed]) -> (Vec<Name>, Vec<Sealed>) {
        let (mut replays, mut answers) = (Vec::new(), Vec::new());
        for sealed in said {
            self.near.handle_message(self.now(), FAR, sealed);
            while let Some(does) = self.near.poll() {
                match does {
                    Does::Replays(_, name) => replays.push(name),
                    Does::Sends { to, sealed, .. } => {
                        assert_eq!(to, FAR);
                        answers.push(sealed);
                    }
                    Does::Releases(_) => panic!("nothing waits there"),
                }
            }
        }
        (replays, answers)
    }

    /// Passes on all requests and replays at once. Returns the replayed packets.
    fn repairs(&mut self) -> Vec<Name> {
        let mut all = Vec::new();
        loop {
            let said = self.far_says();
            if said.is_empty() {
                return all;
            }
            let (replays, answers) = self.near_hears(&said);
            for name in &replays {
                self.comes_in(&data(*name), *name);
            }
            all.extend(replays);
            for sealed in answers {
                self.far.handle_message(self.now(), NEAR, &sealed);
            }
        }
    }

    /// Returns the requests of the far end by timers until then, with their times.
    fn waits(&mut self, until_ms: u64) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        while let Some(at) = self.far.poll_timeout().filter(|at| *at <= Instant::from_millis(until_ms)) {
            self.now_ms = at.as_nanos().div_ceil(1_000_000);
            self.far.handle_timeout(self.now());
            let now_ms = self.now_ms;
            all.extend(self.asked().into_iter().map(|n| (now_ms, n)));
        }
        self.now_ms = until_ms;
        all
    }
}

fn number(sealed: &Sealed, says: Says) -> u32 {
    assert_eq!((sealed.message.says, sealed.message.flow), (says, flow()));
    (sealed.message.range.seq - START) / LEN
}

#[test]
fn what_comes_in_order_passes_and_nothing_is_said() {
    let mut link = Link::new();
    (0..10).for_each(|n| link.crosses(n));
    assert_eq!(link.arrived, (0..10).collect::<Vec<_>>());
    assert_eq!((link.asked(), link.near.cached()), (vec![], 10));
}

#[test]
fn what_is_missing_is_asked_for_at_once_and_what_came_meanwhile_waits_for_it() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    link.crosses(3);
    assert_eq!((link.asked(), link.arrived.len(), link.far.held()), (vec![1], 0, 2));
    link.at(4);
    assert_eq!(link.comes_in(&data(1), 1), Verdict::Forward);
    assert_eq!(link.asked(), []);
    assert_eq!((&link.arrived[..], link.far.held()), (&[1, 2, 3][..], 0));
    assert_eq!(link.far.recovery_time(), Duration::from_micros(9_250), "7/8 of 10 ms and 1/8 of 4");
}

#[test]
fn a_request_brings_the_packet_again_as_it_was() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    let said = link.far_says();
    assert_eq!(said[0].message.range, range(1));
    assert_eq!(link.near_hears(&said), (vec![1], vec![]));
    assert_eq!(link.near.stats().replayed, 1);
}

#[test]
fn a_gap_of_several_packets_has_a_request_for_each_in_order() {
    let mut link = Link::begun();
    link.crosses(1);
    [2, 3].map(|n| link.is_lost(n));
    link.crosses(4);
    link.is_lost(5);
    link.crosses(6);
    assert_eq!(link.asked(), [2, 3, 5], "the example of §III-C.3");
}

#[test]
fn a_gap_is_cut_by_the_most_frequent_recent_length_and_its_rest_is_a_packet() {
    let mut link = Link::begun();
    [1, 2, 3].map(|n| link.crosses(n));
    let short = Segment { payload: Length(300), ..data(4) };
    link.comes_in(&short, 4);
    let later = Segment { seq: short.seq_end() + 2 * LEN + 500, ..data(0) };
    link.comes_in(&later, 5);
    let lens: Vec<_> = link.far_says().iter().map(|sealed| sealed.message.range.len).collect();
    assert_eq!(lens, [1000, 1000, 500], "C14");
}

#[test]
fn where_lengths_differ_a_request_brings_what_begins_in_its_range_and_no_packet_twice() {
    let mut link = Link::begun();
    [1, 2].map(|n| link.crosses(n));
    let mut at = seq(3);
    for (name, len) in [(3, 400), (4, 1000), (5, 600)] {
        let segment = Segment { seq: at, payload: Length(len), ..data(0) };
        link.goes_out(&segment, name);
        at = segment.seq_end();
    }
    link.crosses(5);
    let said = link.far_says();
    assert_eq!(said.len(), 2);
    assert_eq!(link.near_hears(&said).0, [3, 4, 5]);
    // The packet that covers the beginning of this range was replayed for the first request.
    let middle = Message { range: Range { seq: seq(3) + 500, len: 100 }, ..said[0].message };
    let again = KEY.seal(FAR, Message { number: 99, ..middle });
    assert_eq!(link.near_hears(&[again]), (vec![], vec![]));
    assert_eq!(link.near.stats().under_way, 1);
}

#[test]
fn without_expansion_one_packet_is_asked_for_after_the_other() {
    let mut link = Link::begun_with(|config| config.expansion = Expansion::Off);
    [1, 2, 3].map(|n| link.is_lost(n));
    link.crosses(4);
    assert_eq!(link.asked(), [1]);
    link.comes_in(&data(1), 1);
    assert_eq!(link.asked(), [2]);
    link.comes_in(&data(2), 2);
    assert_eq!(link.asked(), [3]);
    link.comes_in(&data(3), 3);
    assert_eq!((link.asked(), &link.arrived[..]), (vec![], &[1, 2, 3, 4][..]));
}

#[test]
fn a_replay_for_a_later_hole_has_the_earlier_one_asked_for_again() {
    let mut link = Link::begun();
    [1, 2].map(|n| link.is_lost(n));
    link.crosses(3);
    assert_eq!(link.asked(), [1, 2]);
    assert_eq!(link.at(4).comes_in(&data(2), 2), Verdict::Held);
    assert_eq!(link.asked(), [1]);
    link.at(8).comes_in(&data(1), 1);
    assert_eq!((link.asked(), &link.arrived[..]), (vec![], &[1, 2, 3][..]));
}

#[test]
fn when_nothing_comes_the_request_is_repeated_and_then_what_waits_goes_on() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    assert_eq!(link.asked(), [1]);
    assert_eq!(link.waits(129), [(20, 1), (50, 1), (90, 1)]);
    assert_eq!(link.arrived, []);
    link.waits(130);
    assert_eq!((&link.arrived[..], link.far.recovery().given_up), (&[2][..], 1));
    link.crosses(3);
    assert_eq!((link.asked(), &link.arrived[..]), (vec![], &[2, 3][..]), "it is not waited for again");
}

#[test]
fn nothing_waits_longer_than_patience() {
    let attempts = NonZeroU8::MAX;
    let mut link = Link::begun_with(|config| config.recovery.attempts = attempts);
    link.is_lost(1);
    link.crosses(2);
    link.at(150).is_lost(3);
    link.crosses(4);
    link.waits(199);
    assert_eq!(link.arrived, []);
    link.waits(200);
    assert_eq!(link.arrived, [2]);
    link.waits(350);
    assert_eq!(link.arrived, [2, 4]);
}

#[test]
fn more_than_a_flow_may_have_wait_let_the_first_go_on() {
    let mut link = Link::begun_with(|config| config.held_packets = 3);
    link.is_lost(1);
    [2, 3].map(|n| link.crosses(n));
    link.is_lost(4);
    [5, 6].map(|n| link.crosses(n));
    link.asked();
    assert_eq!((&link.arrived[..], link.far.held()), (&[2, 3][..], 2), "those behind 4 still wait");
    assert_eq!(link.far.stats().overflowed, 1);
}

#[test]
fn more_than_may_wait_in_all_lets_a_flow_wait_for_nothing() {
    let mut link = Link::begun_with(|config| config.held_in_all = 2);
    link.is_lost(1);
    [2, 3, 4].map(|n| link.crosses(n));
    link.asked();
    assert_eq!((&link.arrived[..], link.far.held()), (&[2, 3, 4][..], 0));
}

#[test]
fn a_gap_of_more_packets_than_are_asked_for_is_left_to_tcp() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    link.crosses(70);
    link.crosses(71);
    assert_eq!(link.asked(), [1]);
    assert_eq!((&link.arrived[..], link.far.stats().too_many), (&[2, 70, 71][..], 1), "in order");
}

#[test]
fn what_is_not_kept_is_said_so_and_nobody_waits_for_it() {
    let mut link = Link::begun();
    // Packet 1 was lost before the near end: congestion.
    link.crosses(2);
    let said = link.far_says();
    let (replays, answers) = link.near_hears(&said);
    assert_eq!((replays, answers.len(), link.near.stats().not_kept), (vec![], 1, 1));
    assert_eq!(number(&answers[0], Says::NotCached), 1);
    link.far.handle_message(link.now(), NEAR, &answers[0]);
    assert_eq!((link.asked(), &link.arrived[..]), (vec![], &[2][..]));
}

#[test]
fn what_the_queue_refuses_is_left_to_the_sender_or_repaired() {
    for (overflow, repaired) in [(Overflow::LeftToSender, vec![]), (Overflow::Repaired, vec![1])] {
        let mut link = Link::begun_with(|config| config.overflow = overflow);
        link.is_lost(1);
        let ip = header((SENDER.0, RECEIVER.0));
        link.near.refused(Packet::new(&ip, &data(1)));
        link.crosses(2);
        assert_eq!(link.repairs(), repaired);
        assert_eq!(link.near.stats().refused, 1 - repaired.len() as u64);
        assert_eq!(link.arrived.last(), Some(&2));
    }
}

#[test]
fn a_retransmission_of_the_sender_is_never_held() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    assert_eq!(link.comes_in(&data(0), 0), Verdict::Forward, "below");
    assert_eq!(link.comes_in(&data(2), 2), Verdict::Forward, "a copy of what waits");
    assert_eq!(link.comes_in(&data(1), 1), Verdict::Forward, "what is missing");
    link.asked();
    assert_eq!(link.arrived, [0, 2, 1, 2], "and what waited for it");
}

#[test]
fn without_holding_packets_go_on_as_they_come() {
    let mut link = Link::begun_with(|config| config.holding = Holding::AsTheyCome);
    link.is_lost(1);
    [2, 3].map(|n| link.crosses(n));
    assert_eq!(link.repairs(), [1]);
    assert_eq!(link.arrived, [2, 3, 1]);
}

#[test]
fn with_grace_what_was_only_overtaken_is_not_asked_for() {
    let mut link = Link::begun_with(|config| config.recovery.grace = 1);
    link.comes_in(&data(2), 2);
    link.comes_in(&data(1), 1);
    assert_eq!((link.asked(), &link.arrived[..]), (vec![], &[1, 2][..]));
    link.comes_in(&data(4), 4);
    assert_eq!(link.asked(), []);
    link.comes_in(&data(5), 5);
    assert_eq!(link.asked(), [3]);
}

#[test]
fn what_is_acknowledged_is_not_kept() {
    let mut link = Link::new();
    (0..4).for_each(|n| link.crosses(n));
    link.ack_crosses(3);
    assert_eq!(link.near.cached(), 1);
    link.ack_crosses(9);
    assert_eq!((link.near.cached(), link.near.stats().senseless_acks), (1, 1), "that was never sent");
    link.ack_crosses(4);
    assert_eq!((link.near.cached(), link.near.poll_timeout()), (0, Some(Instant::from_secs(900))));
}

#[test]
fn what_is_kept_is_bounded_in_number_and_age() {
    let mut link = Link::with(|config| config.caching.packets_per_flow = 3);
    (0..5).for_each(|n| link.is_lost(n));
    assert_eq!((link.near.cached(), link.near.stats().evicted), (3, 2));
    let ask =
        |number, n| KEY.seal(FAR, Message { number, flow: flow(), range: range(n), says: Says::Request });
    assert_eq!(link.near_hears(&[ask(1, 1)]).0, []);
    assert_eq!(link.near_hears(&[ask(2, 2)]).0, [2], "first in, first out (C6)");
    assert_eq!(link.near.poll_timeout(), Some(Instant::from_secs(1)));
    link.at(1000).near.handle_timeout(Instant::from_secs(1));
    assert_eq!(link.near.cached(), 0);
    assert_eq!(link.near_hears(&[ask(3, 4)]).0, []);
}

#[test]
fn a_packet_goes_again_so_often_and_no_oftener() {
    let mut link = Link::begun_with(|config| config.caching.replays = 3);
    link.is_lost(1);
    let mut number = 0;
    let mut ask = |link: &mut Link| {
        number += 1;
        let message = Message { number, flow: flow(), range: range(1), says: Says::Request };
        let (replays, answers) = link.near_hears(&[KEY.seal(FAR, message)]);
        (replays.len(), answers.len())
    };
    for ms in 1..=3 {
        link.at(ms);
        assert_eq!(ask(&mut link), (1, 0));
        assert_eq!(ask(&mut link), (0, 0), "not twice at once");
    }
    link.at(4);
    assert_eq!(ask(&mut link), (0, 1), "and then it counts as not kept");
    link.is_lost(1);
    assert_eq!(ask(&mut link), (1, 0), "the sender has sent it again");
    assert_eq!((link.near.stats().exhausted, link.near.cached()), (1, 2));
}

#[test]
fn a_syn_sets_the_first_number_and_its_copies_do_not() {
    let mut link = Link::new();
    let syn = Segment { seq: seq(0) - 1, flags: Flags::SYN, payload: Length(0), ..data(0) };
    link.comes_in(&syn, 100);
    link.crosses(1);
    assert_eq!(link.asked(), [0], "the first packet is missing (C12)");
    link.comes_in(&syn, 100);
    link.comes_in(&data(0), 0);
    assert_eq!((link.asked(), &link.arrived[..]), (vec![], &[100, 100, 0, 1][..]));
}

#[test]
fn a_new_connection_on_the_same_ports_begins_anew_behind_what_waited() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    let syn = Segment { seq: Seq32(5), flags: Flags::SYN, payload: Length(0), ..data(0) };
    assert_eq!(link.comes_in(&syn, 100), Verdict::Held);
    link.goes_out(&syn, 100);
    assert_eq!(link.near.cached(), 0, "what was kept is of no use");
    assert_eq!(link.comes_in(&Segment { seq: Seq32(6), ..data(0) }, 101), Verdict::Forward);
    assert_eq!(link.arrived, [2, 100, 101]);
}

#[test]
fn a_fin_takes_a_number_and_is_repaired() {
    let mut link = Link::begun();
    link.is_lost(1);
    let fin = Segment { flags: Flags::FIN | Flags::ACK, payload: Length(0), ..data(2) };
    link.goes_out(&fin, 2);
    assert_eq!(link.comes_in(&fin, 2), Verdict::Held);
    assert_eq!(link.repairs(), [1]);
    assert_eq!(link.arrived, [1, 2]);
    link.ack_crosses(2);
    assert_eq!(link.near.cached(), 1, "the FIN");
}

#[test]
fn a_reset_ends_it_behind_what_waited() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    let reset = Segment { flags: Flags::RST, payload: Length(0), ..data(3) };
    link.goes_out(&reset, 3);
    assert_eq!(link.comes_in(&reset, 3), Verdict::Held);
    link.asked();
    assert_eq!(link.arrived, [2, 3]);
    assert_eq!((link.near.connections(), link.far.connections(), link.near.cached()), (0, 0, 0));
}

#[test]
fn a_keep_alive_passes_and_opens_no_hole() {
    let mut link = Link::begun();
    let keep_alive = Segment { seq: seq(1) - 1, payload: Length(1), ..data(0) };
    link.goes_out(&keep_alive, 100);
    assert_eq!(link.comes_in(&keep_alive, 100), Verdict::Forward);
    link.crosses(1);
    assert_eq!((link.asked(), &link.arrived[..]), (vec![], &[100, 1][..]));
}

#[test]
fn a_flow_seen_first_in_its_midst_begins_there() {
    let mut link = Link::new();
    assert_eq!(link.comes_in(&data(50), 50), Verdict::Forward);
    link.is_lost(51);
    link.crosses(52);
    assert_eq!(link.repairs(), [51]);
}

#[test]
fn what_has_no_data_waits_for_nothing_and_is_not_remembered() {
    let mut link = Link::new();
    link.ack_crosses(3);
    assert_eq!((link.near.connections(), link.far.connections()), (0, 0));
    link.crosses(0);
    link.crosses(2);
    let pure = Segment { payload: Length(0), ..data(3) };
    assert_eq!(link.comes_in(&pure, 100), Verdict::Forward);
}

#[test]
fn both_directions_are_repaired_by_the_same_two_machines() {
    let mut link = Link::begun();
    let back = |n: u32| Segment { payload: Length(LEN.into()), seq: Seq32(77) + n * LEN, ..ack(1) };
    let ip = header((RECEIVER.0, SENDER.0));
    for n in [0, 1, 2] {
        link.far.pass_out(link.now(), Packet::new(&ip, &back(n)), || n);
    }
    let passed = [0, 2].map(|n| link.near.pass_in(link.now(), Packet::new(&ip, &back(n)), || n));
    assert_eq!(passed, [Verdict::Forward, Verdict::Held]);
    let Some(Does::Sends { to, turn, sealed }) = link.near.poll() else { panic!("it asks") };
    assert_eq!((to, turn, sealed.message.flow), (FAR, Turn::Last, Flow { src: RECEIVER, dst: SENDER }));
    link.far.handle_message(link.now(), NEAR, &sealed);
    assert_eq!(link.far.poll(), Some(Does::Replays(Turn::Last, 1)));
    assert_eq!(link.near.cached(), 0, "what comes back acknowledges");
}

#[test]
fn a_lost_tail_is_found_when_the_near_end_tells_of_it() {
    let mut link = Link::begun_with(|config| config.tail_probe = Some(Duration::from_millis(20)));
    [1, 2].map(|n| link.is_lost(n));
    let told: Vec<_> = [19, 20, 40, 60, 80, 100]
        .map(|ms| {
            link.at(ms).near.handle_timeout(Instant::from_millis(ms));
            core::iter::from_fn(|| link.near.poll()).collect::<Vec<_>>()
        })
        .into();
    assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 1, 1, 0, 0], "three times");
    let Does::Sends { to, turn, sealed } = &told[1][0] else { panic!("it tells") };
    assert_eq!((*to, *turn, number(sealed, Says::Tail)), (FAR, Turn::Last, 2));
    link.far.handle_message(link.now(), NEAR, sealed);
    assert_eq!(link.repairs(), [1, 2]);
    assert_eq!(link.arrived, [1, 2]);
}

#[test]
fn the_lost_tail_of_a_translated_flow_is_found() {
    for (translation, found) in [(Translation::Absent, vec![]), (Translation::Possible, vec![1, 2])] {
        let mut link = Link::begun_with(|config| config.translation = translation);
        [1, 2].map(|n| link.is_lost(n));
        let named = Flow { dst: PUBLIC, ..flow() };
        let elsewhere = Flow { src: (SENDER.0, SENDER.1 + 1), ..named };
        let tails = [(elsewhere, 2), (named, 1000), (named, 2)];
        for ((flow, n), number) in tails.into_iter().zip(1..) {
            assert_eq!(link.repairs(), Vec::<Name>::new(), "no endpoint in common, or another place");
            let tail = KEY.seal(NEAR, Message { number, flow, range: range(n), says: Says::Tail });
            link.far.handle_message(link.now(), NEAR, &tail);
        }
        assert_eq!(link.repairs(), found);
    }
}

#[test]
fn nobody_is_told_of_a_tail_that_is_acknowledged() {
    let mut link = Link::begun_with(|config| config.tail_probe = Some(Duration::from_millis(20)));
    link.ack_crosses(1);
    link.at(50).near.handle_timeout(Instant::from_millis(50));
    assert_eq!(link.near.poll(), None);
}

#[test]
fn hostile_messages_are_counted_and_bring_nothing() {
    let mut link = Link::begun();
    link.is_lost(1);
    let message = Message { number: 7, flow: flow(), range: range(1), says: Says::Request };
    let genuine = KEY.seal(FAR, message);
    let mut bytes = Vec::new();
    genuine.emit(&mut bytes);
    let hear = |link: &mut Link, from, bytes: &[u8]| {
        link.near.handle_datagram(link.now(), from, bytes);
        link.near.poll()
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
    assert_eq!((link.near.poll(), link.near.stats().forged), (None, 44));
    assert_eq!(
        hear(&mut link, FAR, &bytes),
        Some(Does::Replays(Turn::Last, 1)),
        "none of them has used up its number"
    );
    assert_eq!(hear(&mut link, FAR, &bytes), None);
    assert_eq!(link.near.stats().replays_refused, 1);
}

#[test]
fn requests_for_strangers_bring_an_answer_and_nothing_else() {
    let mut link = Link::new();
    let message = Message { number: 1, flow: flow(), range: range(1), says: Says::Request };
    let (replays, answers) = link.near_hears(&[KEY.seal(FAR, message)]);
    assert_eq!((replays, answers.len()), (vec![], 1));
    for (number, says) in [(2, Says::NotCached), (3, Says::Tail)] {
        let about = Message { number, says, ..message };
        assert_eq!(link.near_hears(&[KEY.seal(FAR, about)]), (vec![], vec![]));
    }
    assert_eq!((link.near.stats().unknown_flows, link.near.connections()), (3, 0));
}

/// Address of the receiver on the link, after translation by a router.
const PUBLIC: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)), 40_000);

#[test]
fn a_request_that_names_a_translated_address_brings_the_packet() {
    let named = Flow { dst: PUBLIC, ..flow() };
    let asks = |link: &mut Link, flow, n, number| {
        let message = Message { number, flow, range: range(n), says: Says::Request };
        link.at(u64::from(number as u32)).near_hears(&[KEY.seal(FAR, message)]).0
    };
    let begun = |translation| {
        let mut link = Link::begun_with(|config| config.translation = translation);
        link.is_lost(1);
        link
    };
    let mut link = begun(Translation::Absent);
    assert_eq!(asks(&mut link, named, 1, 1), Vec::<Name>::new());
    let mut link = begun(Translation::Possible);
    let elsewhere = Flow { src: (SENDER.0, SENDER.1 + 1), ..named };
    assert_eq!(asks(&mut link, elsewhere, 1, 1), Vec::<Name>::new(), "no endpoint in common");
    assert_eq!(asks(&mut link, named, 9, 3), Vec::<Name>::new(), "nothing of that range is kept");
    assert_eq!(asks(&mut link, named, 1, 5), [1]);
    link.is_lost(2);
    assert_eq!(asks(&mut link, named, 2, 6), [2], "the name is remembered");
}

#[test]
fn translated_flows_that_lose_at_the_same_instant_are_all_repaired() {
    let mut link = Link::begun_with(|config| config.translation = Translation::Possible);
    let unresolvable = Flow { src: (SENDER.0, SENDER.1 + 1), dst: PUBLIC };
    let named = Flow { dst: PUBLIC, ..flow() };
    link.is_lost(1);
    let ask = |flow, number| KEY.seal(FAR, Message { number, flow, range: range(1), says: Says::Request });
    let asks = [ask(unresolvable, 1), ask(named, 2)];
    assert_eq!(link.near_hears(&asks).0, [1]);
}

#[test]
fn a_name_that_the_router_gives_to_another_connection_means_that_one() {
    let mut names = Names::new(Translation::Possible);
    let mut table = Table::new(Bounds::default());
    let named = Flow { dst: PUBLIC, ..flow() };
    let mut keeps = |port: u16, n: u32| {
        let connection = Connection { fixed: SENDER, mobile: (RECEIVER.0, port) };
        let mut tracked = Tracked::<Name>::new(Instant::ZERO);
        tracked.kept.push((seq(n), seq(n + 1)), n.into(), 16);
        table.insert(Instant::ZERO, connection, tracked).0
    };
    let (former, latter) = (keeps(1, 1), keeps(2, 2));
    let here = Connection { fixed: named.src, mobile: named.dst };
    let find = |names: &mut Names, n| names.find(&table, named, here, |tracked| tracked.kept.has(range(n)));
    assert_eq!(find(&mut names, 1), Some(former));
    assert_eq!(find(&mut names, 2), Some(latter));
    assert_eq!(find(&mut names, 9), Some(latter), "nothing of that range is kept");
}

/// Session keys: of the near end, then of the far end.
const SESSION: [Key; 2] = [Key::new([1; 32]), Key::new([2; 32])];

#[test]
fn another_incarnation_of_the_other_end_is_heard_from_its_first_message_on_and_the_former_one_not_at_all() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    let former = link.far_says();
    assert_eq!(link.near_hears(&former), (vec![1], vec![]));
    link.near.peer_came(link.now(), SESSION);
    link.far.peer_came(link.now(), [SESSION[1], SESSION[0]]);
    [0, 2].map(|n| link.at(1).crosses(n));
    link.is_lost(3);
    link.crosses(4);
    assert_eq!(link.repairs(), [3], "its numbers begin anew");
    let forged = link.near.stats().forged;
    assert_eq!(link.near_hears(&former), (vec![], vec![]));
    assert_eq!(link.near.stats().forged, forged + 1);
}

#[test]
fn an_end_that_comes_back_as_it_was_goes_on_with_its_numbers() {
    let mut link = Link::begun();
    link.near.peer_came(link.now(), SESSION);
    link.far.peer_came(link.now(), [SESSION[1], SESSION[0]]);
    link.crosses(0);
    link.is_lost(1);
    link.crosses(2);
    let recorded = link.far_says();
    assert_eq!(link.near_hears(&recorded), (vec![1], vec![]));
    let now = link.now();
    for (end, keys) in [(&mut link.near, SESSION), (&mut link.far, [SESSION[1], SESSION[0]])] {
        end.peer_left(now);
        end.peer_came(now, keys);
    }
    link.crosses(2);
    link.is_lost(3);
    link.crosses(4);
    assert_eq!(link.near_hears(&recorded), (vec![], vec![]), "what was recorded does not come again");
    assert_eq!(link.repairs(), [3]);
}

#[test]
fn without_the_other_end_packets_pass_as_they_come_and_nothing_is_asked_kept_or_remembered() {
    let mut link = Link::begun();
    link.is_lost(1);
    link.crosses(2);
    assert_eq!((link.asked(), link.far.held()), (vec![1], 1));
    let now = link.now();
    link.far.peer_left(now);
    link.near.peer_left(now);
    link.drain_far();
    assert_eq!((&link.arrived[..], link.far.held()), (&[2][..], 0), "what waited goes on");
    for n in [4, 6, 5, 3, 8] {
        link.crosses(n);
    }
    assert_eq!(link.asked(), []);
    assert_eq!(link.arrived[1..], [4, 6, 5, 3, 8]);
    for end in [&link.near, &link.far] {
        assert_eq!((end.connections(), end.cached()), (0, 0));
    }
    let (far, near) = (&mut link.far, &mut link.near);
    [far, near].map(|end| end.peer_came(now, [KEY; 2]));
    link.crosses(9);
    link.is_lost(10);
    link.crosses(11);
    assert_eq!(link.repairs(), [10], "from the next packet on");
}

#[test]
fn a_connection_of_which_nothing_passes_for_long_is_forgotten() {
    let mut link = Link::begun_with(|config| config.bounds.idle = Duration::from_secs(5));
    link.is_lost(1);
    link.crosses(2);
    link.waits(4_999);
    assert_eq!((&link.arrived[..], link.far.connections()), (&[2][..], 1));
    link.waits(5_000);
    link.near.handle_timeout(Instant::from_secs(5));
    assert_eq!((link.near.connections(), link.far.connections(), link.near.cached()), (0, 0, 0));
    assert_eq!((link.far.stats().flows_expired, link.far.poll_timeout()), (1, None));
}

#[test]
fn a_flood_of_flows_is_bounded_and_what_waits_in_them_goes_on() {
    let bounds = Bounds { connections: 100, ..Bounds::default() };
    let mut config = Config { bounds, held_in_all: 50, ..config(NEAR, FAR) };
    config.caching.packets = 80;
    let mut end = DProxy::new(config);
    let (mut held, mut released) = (0, 0);
    for n in 0..100_000u32 {
        let ip = header((Ipv4Addr::from_bits(n).into(), RECEIVER.0));
        let now = Instant::from_millis(u64::from(n) / 100);
        end.pass_out(now, Packet::new(&ip, &data(0)), || n);
        for packet in [0, 2] {
            let verdict = end.pass_in(now, Packet::new(&ip, &data(packet)), || n);
            held += u32::from(verdict == Verdict::Held);
        }
        while let Some(does) = end.poll() {
            released += u32::from(matches!(does, Does::Releases(_)));
        }
        assert!(end.connections() <= 100 && end.held() <= 50 && end.cached() <= 80);
        assert_eq!(held, released + end.held(), "none is forgotten");
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
                link.goes_out(&data(name), name);
                if !lost.contains(&(at, name)) {
                    link.comes_in(&data(name), name);
                }
                link.repairs();
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
        let mut link = Link::begun();
        [1, 4].map(|n| link.is_lost(n));
        [2, 3, 5].map(|n| link.crosses(n));
        (link.far_says(), link.arrived)
    };
    assert_eq!(run(), run());
}
