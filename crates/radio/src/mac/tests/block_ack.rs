//! Block acknowledgment, sender and receiver. A frame of [`packet`] takes 2200 µs, a BlockAckReq 384 µs and a BlockAck
//! 448 µs.

use super::cell::Cell;
use super::*;
use crate::mac::config::AckPolicy;
use hopline_wire::dot11::{Bitmap, QosAck};

pub(super) const QOS_US: u64 = 2200;
pub(super) const BAR_US: u64 = 384;
pub(super) const BA_US: u64 = 448;
/// SIFS, BlockAckReq, SIFS, BlockAck.
const TAIL_US: u64 = 10 + BAR_US + 10 + BA_US;

pub(super) fn blocks() -> Config {
    Config { ack_policy: AckPolicy::block_ack(), ..dot11b() }
}

fn blocks_of(block_size: u8) -> Config {
    Config { ack_policy: AckPolicy::BlockAck { block_size, txop_limit: None }, ..dot11b() }
}

fn to_other(body: u32) -> Msdu<u32> {
    Msdu { to: OTHER, ..packet(body) }
}

/// A first transmission within a block; `after` more frames of the kind follow it.
pub(super) fn qos(ta: MacAddr, ra: MacAddr, number: u16, after: u64) -> Frame<u32> {
    let duration_us = (after * (10 + QOS_US) + TAIL_US) as u16;
    let (sequence, body) = (Seq16(number % 4096), u32::from(number));
    Frame::QosData { duration_us, ra, ta, sequence, retry: false, tid: 0, ack: QosAck::BlockAck, body }
}

pub(super) fn once_more(frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::QosData { duration_us, ra, ta, sequence, tid, ack, body, .. } => {
            Frame::QosData { duration_us, ra, ta, sequence, retry: true, tid, ack, body }
        }
        other => other,
    }
}

pub(super) fn bar(ta: MacAddr, ra: MacAddr, start: u16) -> Frame<u32> {
    Frame::BlockAckReq { duration_us: (10 + BA_US) as u16, ra, ta, tid: 0, start: Seq16(start) }
}

pub(super) fn ba(ta: MacAddr, ra: MacAddr, start: u16, bits: u64) -> Frame<u32> {
    let bitmap = Bitmap::from_bits(bits);
    Frame::BlockAck { duration_us: 0, ra, ta, tid: 0, start: Seq16(start), bitmap }
}

pub(super) fn held(body: u32) -> Event<u32> {
    Event::Held { body }
}

pub(super) fn deliver(body: u32) -> Event<u32> {
    Event::Deliver { body, from: PEER, to: ME }
}

pub(super) fn deliver_held(body: u32) -> Event<u32> {
    Event::DeliverHeld { body, from: PEER }
}

impl Station {
    /// Hands over several MSDUs at one instant.
    pub(super) fn offer(&mut self, at_us: u64, msdus: impl IntoIterator<Item = Msdu<u32>>) -> &mut Self {
        self.run_before(us(at_us));
        for msdu in msdus {
            assert!(self.mac.is_ready());
            self.mac.send(self.now, msdu);
        }
        self.drain();
        self
    }

    /// The peer hears the BlockAckReq that was sent at this time, and answers.
    fn is_answered(&mut self, bar_at_us: u64, frame: Frame<u32>) -> &mut Self {
        let from = bar_at_us + BAR_US + 10;
        self.hears(from, from + BA_US, frame)
    }

    /// A whole block from `first` on, all of it acknowledged. Returns when it is over.
    fn carries(&mut self, at_us: u64, first: u16, count: u16) -> u64 {
        let mut at = self.sent.front().map_or(at_us, |(at, _)| at.as_nanos() / 1000);
        for i in 0..count {
            self.sends(at, qos(ME, PEER, first + i, u64::from(count - 1 - i)));
            at += QOS_US + 10;
        }
        let start = first % 4096;
        self.sends(at, bar(ME, PEER, start));
        self.is_answered(at, ba(PEER, ME, start, u64::MAX));
        for i in 0..count {
            self.reports(Event::Sent(packet(u32::from(first + i))));
        }
        at + BAR_US + 10 + BA_US
    }
}

#[test]
fn a_block_goes_out_sifs_spaced_and_is_asked_about_once() {
    let mut station = Station::new(blocks());
    station.offer(1000, [0, 1, 2].map(packet));
    station.sends(1000, qos(ME, PEER, 0, 2));
    station.sends(3210, qos(ME, PEER, 1, 1));
    station.sends(5420, qos(ME, PEER, 2, 0));
    station.sends(7630, bar(ME, PEER, 0)).reports_nothing();
    station.is_answered(7630, ba(PEER, ME, 0, 0b111));
    for body in [0, 1, 2] {
        station.reports(Event::Sent(packet(body)));
    }
    station.reports_nothing().is_silent_until(99_999);
    let stats = station.mac.stats();
    assert_eq!((stats.data_sent, stats.data_retries, stats.block_ack_reqs_sent), (3, 0, 1));
}

#[test]
fn a_block_goes_with_what_there_is_and_the_rest_joins_the_next() {
    let mut station = Station::drawing(blocks(), &[(31, 4)]);
    station.offer(1000, [packet(0)]).sends(1000, qos(ME, PEER, 0, 0));
    station.offer(2000, [1, 2].map(packet));
    station.sends(3210, bar(ME, PEER, 0)).is_answered(3210, ba(PEER, ME, 0, 1));
    station.reports(Event::Sent(packet(0)));
    let end = 3210 + BAR_US + 10 + BA_US;
    station.carries(end + 50 + 4 * 20, 1, 2);
}

#[test]
fn the_mac_takes_as_many_msdus_as_a_block_holds() {
    let mut station = Station::new(blocks_of(3));
    station.offer(1000, [0, 1, 2].map(packet));
    assert!(!station.mac.is_ready());
    station.carries(1000, 0, 3);
    assert!(station.mac.is_ready());
    // Without blocks it takes one.
    let mut station = Station::new(dot11b());
    station.offer(1000, [packet(0)]);
    assert!(!station.mac.is_ready());
}

#[test]
fn rts_and_cts_reserve_the_whole_block() {
    let mut station = Station::new(Config { rts_threshold_bytes: 501, ..blocks() });
    let block = 2 * (10 + QOS_US) + TAIL_US;
    station.offer(1000, [0, 1].map(packet));
    station.sends(1000, rts(ME, PEER, (10 + CTS_US + block) as u16));
    station.hears(1362, 1666, cts(ME, block as u16));
    station.carries(1676, 0, 2);
    // A frame of 502 bytes is not above a threshold of 502; one larger frame makes the difference for all.
    let config = Config { rts_threshold_bytes: 502, ..blocks() };
    Station::new(config.clone()).offer(1000, [0, 1].map(packet)).sends(1000, qos(ME, PEER, 0, 1));
    let mut station = Station::new(config);
    station.offer(1000, [packet(0), Msdu { len_bytes: 465, ..packet(1) }]);
    assert!(matches!(station.next_sent().1.frame, Frame::Rts { .. }));
}

#[test]
fn what_the_block_ack_does_not_name_is_sent_again_with_what_is_new() {
    let mut station = Station::drawing(blocks(), &[(31, 5)]);
    station.offer(1000, [0, 1, 2].map(packet));
    for (n, at) in [(0, 1000), (1, 3210), (2, 5420)] {
        station.sends(at, qos(ME, PEER, n, 2 - u64::from(n)));
    }
    station.offer(6000, [packet(3)]);
    station.sends(7630, bar(ME, PEER, 0)).is_answered(7630, ba(PEER, ME, 0, 0b101));
    station.reports(Event::Sent(packet(0))).reports(Event::Sent(packet(2))).reports_nothing();
    // DIFS and a backoff from the smallest window: the block has been answered.
    let next = 7630 + BAR_US + 10 + BA_US + 50 + 5 * 20;
    station.sends(next, once_more(qos(ME, PEER, 1, 1))).sends(next + 2210, qos(ME, PEER, 3, 0));
    station.sends(next + 4420, bar(ME, PEER, 1)).is_answered(next + 4420, ba(PEER, ME, 1, 0b101));
    station.reports(Event::Sent(packet(1))).reports(Event::Sent(packet(3))).reports_nothing();
    assert_eq!(station.mac.stats().data_retries, 1);
}

#[test]
fn without_a_block_ack_the_request_is_repeated_and_the_data_are_not() {
    let mut station = Station::drawing(blocks(), &[(63, 9), (127, 11)]);
    station.offer(1000, [0, 1].map(packet)).sends(1000, qos(ME, PEER, 0, 1)).sends(3210, qos(ME, PEER, 1, 0));
    station.sends(5420, bar(ME, PEER, 0));
    // The request got lost: nothing has begun after SIFS, a slot and a preamble. DIFS counts from the end of the frame.
    let difs_over = 5420 + BAR_US + 50;
    let timeout = 5420 + BAR_US + 10 + 20 + 192;
    let second = timeout.max(difs_over) + 9 * 20;
    station.sends(second, bar(ME, PEER, 0));
    // The answer got lost.
    station.hears_damaged(second + BAR_US + 10, second + BAR_US + 10 + BA_US);
    let third = second + BAR_US + 10 + BA_US + 364 + 11 * 20;
    station.sends(third, bar(ME, PEER, 0)).reports_nothing().is_answered(third, ba(PEER, ME, 0, 0b11));
    station.reports(Event::Sent(packet(0))).reports(Event::Sent(packet(1)));
    assert_eq!((station.mac.stats().block_ack_timeouts, station.mac.stats().data_sent), (2, 2));
    assert_eq!(station.mac.cw(), 31);
}

#[test]
fn a_link_that_answers_no_request_has_failed_with_all_that_was_sent() {
    let mut station = Station::new(blocks());
    station.offer(1000, [0, 1].map(packet));
    station.next_sent();
    station.offer(2000, [packet(2)]);
    station.next_sent();
    for _ in 0..7 {
        assert_eq!(station.reports_nothing().next_sent().1.frame, bar(ME, PEER, 0));
    }
    // What was never sent gets its own chance.
    let (_, next) = station.next_sent();
    assert_eq!(next.frame, qos(ME, PEER, 2, 0));
    station.reports(Event::Failed(packet(0))).reports(Event::Failed(packet(1))).reports_nothing();
    assert_eq!((station.mac.stats().failed, station.mac.stats().block_ack_timeouts), (2, 7));
}

#[test]
fn a_link_that_answers_no_rts_has_failed_with_the_burst() {
    let mut station = Station::new(Config { rts_threshold_bytes: 0, ..blocks() });
    station.offer(1000, [0, 1].map(packet));
    for _ in 0..7 {
        assert!(matches!(station.reports_nothing().next_sent().1.frame, Frame::Rts { .. }));
    }
    station.is_silent_until(1_000_000);
    station.reports(Event::Failed(packet(0))).reports(Event::Failed(packet(1))).reports_nothing();
    assert_eq!((station.mac.stats().failed, station.mac.stats().cts_timeouts), (2, 7));
    assert!(station.mac.is_ready());
}

#[test]
fn an_msdu_that_is_lost_too_often_is_given_up_and_the_receiver_is_told() {
    let mut station = Station::new(Config { short_retry_limit: 2, ..blocks() });
    station.offer(1000, [0, 1].map(packet)).next_sent();
    station.next_sent();
    let answer = |station: &mut Station, start, bits| {
        let (at, sent) = station.next_sent();
        assert_eq!(sent.frame, bar(ME, PEER, start));
        station.is_answered(at.as_nanos() / 1000, ba(PEER, ME, start, bits));
    };
    answer(&mut station, 0, 0b10);
    station.reports(Event::Sent(packet(1)));
    assert_eq!(station.next_sent().1.frame, once_more(qos(ME, PEER, 0, 0)));
    answer(&mut station, 0, 0b10);
    station.reports(Event::Failed(packet(0)));
    // The receiver still holds 1 for it: a request without data moves its window on.
    answer(&mut station, 2, 0);
    station.reports_nothing().is_silent_until(1_000_000);
    assert_eq!(station.mac.stats().failed, 1);
}

#[test]
fn frames_above_the_rts_threshold_have_the_long_retry_limit() {
    let run = |config: Config| {
        let mut station = Station::new(config);
        station.offer(1000, [packet(0)]);
        let mut sent = 0;
        while station.events.is_empty() {
            let (at, transmission) = station.next_sent();
            let end = (at + transmission.airtime).as_nanos() / 1000;
            match transmission.frame {
                Frame::Rts { .. } => drop(station.hears(end + 10, end + 10 + CTS_US, cts(ME, 9999))),
                Frame::QosData { .. } => sent += 1,
                _ => drop(station.hears(end + 10, end + 10 + BA_US, ba(PEER, ME, 0, 0))),
            }
        }
        station.reports(Event::Failed(packet(0)));
        sent
    };
    assert_eq!(run(blocks()), 7);
    assert_eq!(run(Config { rts_threshold_bytes: 0, ..blocks() }), 4);
}

#[test]
fn others_wait_until_the_block_is_over_and_are_numbered_by_themselves() {
    let mut station = Station::drawing(blocks(), &[(31, 1), (31, 2), (31, 3)]);
    station.offer(1000, [packet(0), packet(1), to_other(0)]);
    assert!(!station.mac.is_ready());
    let end = station.carries(1000, 0, 2);
    // Now the other receiver has its turn, and a group frame waits in its turn.
    let second = end + 50 + 20;
    station.offer(end + 1, [Msdu { to: MacAddr::BROADCAST, ..packet(9) }]);
    station.sends(second, qos(ME, OTHER, 0, 0)).sends(second + 2210, bar(ME, OTHER, 0));
    station.is_answered(second + 2210, ba(OTHER, ME, 0, 1)).reports(Event::Sent(to_other(0)));
    let end = second + 2210 + BAR_US + 10 + BA_US;
    let (at, broadcast) = station.next_sent();
    assert_eq!(at, us(end + 50 + 2 * 20));
    assert!(matches!(broadcast.frame, Frame::Data { ra: MacAddr::BROADCAST, duration_us: 0, body: 9, .. }));
    station.run(at + broadcast.airtime).reports(Event::Sent(Msdu { to: MacAddr::BROADCAST, ..packet(9) }));
    // And the first receiver goes on where it was.
    let again = (at + broadcast.airtime).as_nanos() / 1000;
    station.offer(again + 1, [packet(2)]);
    station.sends(again + 50 + 3 * 20, qos(ME, PEER, 2, 0));
}

#[test]
fn sequence_numbers_wrap_at_4096_within_a_block() {
    // 69 blocks of 60: the last one but one straddles the end.
    let config = Config { data_rate: Rate::Cck11, ..blocks_of(60) };
    let mut station = Station::new(config);
    let mut expected = 0;
    for block in 0..69 {
        let offered = (0..60).map(|i| Msdu { len_bytes: 100, ..packet(60 * block + i) });
        station.offer(station.now.as_nanos() / 1000 + 1, offered);
        let mut first = None;
        loop {
            let (at, Transmission { frame, airtime, .. }) = station.next_sent();
            match frame {
                Frame::QosData { sequence, .. } => {
                    assert_eq!(sequence, Seq16(expected % 4096));
                    first.get_or_insert(sequence);
                    expected += 1;
                }
                Frame::BlockAckReq { start, .. } => {
                    assert_eq!(Some(start), first);
                    let end = (at + airtime).as_nanos() / 1000;
                    station.hears(end + 11, end + 11 + BA_US, ba(PEER, ME, start.0, (1 << 60) - 1));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(station.events.drain(..).filter(|e| matches!(e, Event::Sent(_))).count(), 60);
    }
    assert_eq!(expected, 4140);
}

#[test]
fn a_burst_ends_where_the_txop_limit_or_the_duration_field_does() {
    let two_frames = 10 * 3 + 2 * QOS_US + BAR_US + BA_US;
    let limited = |limit| {
        let ack_policy = AckPolicy::BlockAck { block_size: 12, txop_limit: Some(micros(limit)) };
        let mut station = Station::new(Config { ack_policy, ..blocks() });
        station.offer(1000, (0..5).map(packet));
        let burst: Vec<_> = core::iter::repeat_with(|| station.next_sent().1.frame)
            .take_while(|frame| matches!(frame, Frame::QosData { .. }))
            .collect();
        burst.len()
    };
    // The first frame counts without the SIFS before it, which planning allows for all the same.
    assert_eq!((limited(two_frames + 9), limited(two_frames + 10), limited(1)), (1, 2, 1));
    // 1500 bytes at 2 Mb/s take 6.3 ms: four of them and the BlockAck are what a Duration field can reserve.
    let mut station = Station::new(blocks());
    station.offer(1000, (0..12).map(|body| Msdu { len_bytes: 1500, ..packet(body) }));
    let burst: Vec<_> = core::iter::repeat_with(|| station.next_sent().1.frame)
        .take_while(|frame| matches!(frame, Frame::QosData { .. }))
        .collect();
    assert_eq!(burst.len(), 4);
}

#[test]
fn a_receiver_delivers_in_order_and_answers_a_request_after_sifs() {
    let mut station = Station::new(blocks());
    station.hears(1000, 1384, bar(PEER, ME, 5)).sends(1394, ba(ME, PEER, 5, 0));
    station.hears(2000, 4200, qos(PEER, ME, 5, 2)).reports(deliver(5));
    station.hears(4210, 6410, qos(PEER, ME, 7, 0)).reports(held(7)).reports_nothing();
    station.hears(6420, 6804, bar(PEER, ME, 5)).reports_nothing();
    station.sends(6814, ba(ME, PEER, 5, 0b101));
    station.hears(9000, 11_200, once_more(qos(PEER, ME, 6, 0)));
    station.reports(deliver(6)).reports(deliver_held(7)).reports_nothing();
    station.hears(11_210, 11_594, bar(PEER, ME, 6)).sends(11_604, ba(ME, PEER, 6, 0b11));
}

#[test]
fn a_request_releases_what_waited_for_an_msdu_given_up() {
    let mut station = Station::new(blocks());
    station.hears(1000, 1384, bar(PEER, ME, 0)).sends(1394, ba(ME, PEER, 0, 0));
    station.hears(2000, 4200, qos(PEER, ME, 1, 0)).reports(held(1));
    station.hears(5000, 7200, qos(PEER, ME, 3, 0)).reports(held(3));
    station.hears(8000, 8384, bar(PEER, ME, 2)).reports(deliver_held(1)).reports_nothing();
    station.sends(8394, ba(ME, PEER, 2, 0b10));
    // The next one releases the rest.
    station.hears(9000, 9384, bar(PEER, ME, 4)).reports(deliver_held(3)).sends(9394, ba(ME, PEER, 4, 0));
    // Too late: their turn is over.
    station.hears(10_000, 12_200, qos(PEER, ME, 2, 0)).reports_nothing();
    assert_eq!(station.mac.stats().duplicates, 1);
}

#[test]
fn the_first_request_tells_where_a_new_agreement_begins() {
    let mut station = Station::new(blocks());
    // The first frame of the first block is lost. The recipient does not know yet that there was one.
    station.hears(1000, 3200, qos(PEER, ME, 1, 1)).reports(held(1));
    station.hears(3210, 5410, qos(PEER, ME, 2, 0)).reports(held(2)).reports_nothing();
    station.hears(5420, 5804, bar(PEER, ME, 0)).reports_nothing().sends(5814, ba(ME, PEER, 0, 0b110));
    station.hears(8000, 10_200, once_more(qos(PEER, ME, 0, 0)));
    station.reports(deliver(0)).reports(deliver_held(1)).reports(deliver_held(2)).reports_nothing();
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_repeated_data_are_dropped() {
    let mut station = Station::new(blocks());
    station.hears(1000, 1384, bar(PEER, ME, 0)).sends(1394, ba(ME, PEER, 0, 0));
    station.hears(2000, 4200, qos(PEER, ME, 0, 1)).hears(4210, 6410, qos(PEER, ME, 1, 0));
    station.reports(deliver(0)).reports(deliver(1));
    for at in [6420, 10_000] {
        station.hears(at, at + BAR_US, bar(PEER, ME, 0)).sends(at + BAR_US + 10, ba(ME, PEER, 0, 0b11));
    }
    station.hears(20_000, 22_200, once_more(qos(PEER, ME, 1, 0)));
    station.hears(22_210, 24_410, qos(PEER, ME, 3, 0)).reports(held(3));
    station.hears(24_420, 26_620, once_more(qos(PEER, ME, 3, 0))).reports_nothing();
    assert_eq!(station.mac.stats().duplicates, 2);
}

#[test]
fn a_frame_beyond_the_window_moves_it_on() {
    let mut station = Station::new(blocks());
    station.hears(1000, 1384, bar(PEER, ME, 0)).sends(1394, ba(ME, PEER, 0, 0));
    station.hears(2000, 4200, qos(PEER, ME, 3, 0)).reports(held(3));
    // The window is 0 to 63; then 7 to 70.
    station.hears(5000, 7200, qos(PEER, ME, 70, 0)).reports(deliver_held(3)).reports(held(70));
    station.hears(8000, 10_200, qos(PEER, ME, 6, 0)).reports_nothing();
    station.hears(11_000, 13_200, qos(PEER, ME, 7, 0)).reports(deliver(7)).reports_nothing();
    station.hears(14_000, 14_384, bar(PEER, ME, 7)).sends(14_394, ba(ME, PEER, 7, 1 << 63 | 1));
}

#[test]
fn the_receivers_window_wraps_at_4096() {
    let mut station = Station::new(blocks());
    station.hears(1000, 1384, bar(PEER, ME, 4094)).sends(1394, ba(ME, PEER, 4094, 0));
    station.hears(2000, 4200, qos(PEER, ME, 4096, 0)).reports(held(4096));
    station.hears(5000, 7200, qos(PEER, ME, 4095, 0)).reports(held(4095));
    station.hears(8000, 8384, bar(PEER, ME, 4094)).sends(8394, ba(ME, PEER, 4094, 0b110));
    station.hears(9000, 11_200, qos(PEER, ME, 4094, 0));
    station.reports(deliver(4094)).reports(deliver_held(4095)).reports(deliver_held(4096));
    station.hears(12_000, 12_384, bar(PEER, ME, 1)).sends(12_394, ba(ME, PEER, 1, 0)).reports_nothing();
}

#[test]
fn the_agreement_that_began_first_makes_room_for_the_65th() {
    let mut station = Station::new(blocks());
    let sender = |n| MacAddr::of_node(NodeId(10 + n));
    let at = |n: u32| 10_000 * u64::from(n);
    for n in 0..64 {
        station.hears(at(n), at(n) + QOS_US, qos(sender(n), ME, 3, 0)).reports(held(3));
    }
    station.hears(at(64), at(64) + QOS_US, qos(sender(64), ME, 4, 0));
    station.reports(Event::DeliverHeld { body: 3, from: sender(0) }).reports(held(4)).reports_nothing();
}

#[test]
fn requests_and_answers_from_nobody_change_nothing() {
    // A request about nothing is answered with nothing.
    let mut station = Station::new(blocks());
    station.hears(1000, 1384, bar(OTHER, ME, 77)).sends(1394, ba(ME, OTHER, 77, 0)).reports_nothing();
    station.hears(3000, 3448, ba(OTHER, ME, 0, u64::MAX)).reports_nothing();
    // An answer from another station is no answer.
    station.offer(5000, [packet(0)]).sends(5000, qos(ME, PEER, 0, 0)).sends(7210, bar(ME, PEER, 0));
    station.is_answered(7210, ba(OTHER, ME, 0, 1)).reports_nothing();
    assert_eq!(station.mac.stats().block_ack_timeouts, 1);
    assert_eq!(station.next_sent().1.frame, bar(ME, PEER, 0));
    // Another traffic identifier belongs to no block of this station, nor does QoS data with another policy.
    let mut station = Station::new(blocks());
    let Frame::QosData { duration_us, ra, ta, sequence, retry, body, .. } = qos(PEER, ME, 0, 0) else {
        panic!()
    };
    for (tid, ack) in [(1, QosAck::BlockAck), (0, QosAck::Normal), (0, QosAck::NoAck)] {
        let at = station.now.as_nanos() / 1000 + 1000;
        let frame = Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack, body };
        station.hears(at, at + QOS_US, frame).reports_nothing();
    }
    station.is_silent_until(999_999);
    // A station that does without blocks has no agreement.
    let mut station = Station::new(dot11b());
    station.hears(1000, 3200, qos(PEER, ME, 0, 0)).hears(3210, 3594, bar(PEER, ME, 0));
    station.reports_nothing().is_silent_until(999_999);
}

#[test]
fn blocks_for_others_set_the_nav_for_all_that_follows() {
    let mut station = Station::new(blocks());
    station.hears(1000, 3200, qos(PEER, OTHER, 0, 2));
    assert_eq!(station.mac.nav_until(), us(3200 + 2 * 2210 + TAIL_US));
}

#[test]
fn ns2s_readings_carry_a_block_too() {
    let ns2 = Config { ack_policy: AckPolicy::block_ack(), ..Config::ns2_wavelan() };
    // 464 bytes make a frame of 500: 2192 µs.
    let block = 2 * (10 + DATA_US) + TAIL_US;
    let mut station = Station::drawing(ns2.clone(), &[(31, 0), (31, 6)]);
    station.offer(1000, [0, 1].map(packet)).sends(1050, rts(ME, PEER, (10 + CTS_US + block) as u16));
    station.hears(1412, 1716, cts(ME, block as u16));
    for at in [1726, 1726 + DATA_US + 10] {
        let (sent_at, transmission) = station.next_sent();
        assert_eq!((sent_at, transmission.airtime), (us(at), micros(DATA_US)));
    }
    let bar_at = 1726 + 2 * (DATA_US + 10);
    station.sends(bar_at, bar(ME, PEER, 0)).is_answered(bar_at, ba(PEER, ME, 0, 0b11));
    station.reports(Event::Sent(packet(0))).reports(Event::Sent(packet(1)));

    // The receiver waits for the data that it has cleared, through the whole block.
    let mut station = Station::new(ns2);
    station
        .hears(1000, 1352, rts(PEER, ME, (10 + CTS_US + block) as u16))
        .sends(1362, cts(PEER, block as u16));
    station.hears(1676, 3868, qos(PEER, ME, 0, 1)).hears(3878, 6070, qos(PEER, ME, 1, 0));
    assert_eq!(station.mac.state(), crate::mac::State::AwaitData);
    station.hears(6080, 6464, bar(PEER, ME, 0)).sends(6474, ba(ME, PEER, 0, 0b11));
    station.run(us(99_999));
    assert_eq!(station.mac.state(), crate::mac::State::Idle);
}

#[test]
fn on_a_link_that_loses_every_fifth_frame_everything_arrives_in_order() {
    for config in [
        blocks(),
        blocks_of(64),
        Config { rts_threshold_bytes: 0, ..blocks() },
        Config { ack_policy: AckPolicy::block_ack(), ..Config::ns2_wavelan() },
    ] {
        // So many tries that nothing is ever given up.
        let config = Config { short_retry_limit: 40, long_retry_limit: 40, ..config };
        let mut cell = Cell::one_way(&config, 464, 0.2);
        cell.run(Instant::from_secs(60));
        let received = cell.received(1);
        assert!(received.len() > 5000, "{}", received.len());
        assert!(received.iter().copied().eq(0..received.len() as u32));
        assert_eq!(cell.total(|s| s.failed), 0);
    }
}

#[test]
fn on_a_link_that_loses_most_frames_nothing_is_out_of_order_or_doubled() {
    let mut cell = Cell::one_way(&Config { short_retry_limit: 3, ..blocks() }, 464, 0.5);
    cell.run(Instant::from_secs(120));
    assert!(cell.received(1).is_sorted_by(|a, b| a < b));
    assert!(cell.total(|s| s.failed) > 100 && cell.delivered() > 1000);
}

/// At no loss a block of n costs DIFS, 15.5 slots in the mean, n frames and a request with its answer; without blocks each
/// frame costs that with an ACK.
#[test]
fn the_gain_of_blocks_is_that_of_the_airtime() {
    let us = |d: Duration| d.as_nanos() as f64 / 1e3;
    let carried = |config: &Config| {
        let mut cell = Cell::one_way(config, 1500, 0.0);
        cell.run(Instant::from_secs(20));
        cell.delivered() as f64
    };
    // At 2 Mb/s the Duration field holds four frames.
    for (single, n) in [(dot11b(), 4.0), (Config::dot11b(), 12.0), (Config::dot11a(), 12.0)] {
        let blocks = Config { ack_policy: AckPolicy::block_ack(), ..single.clone() };
        let measured = carried(&blocks) / carried(&single);
        let access = us(single.difs()) + f64::from(single.cw_min) / 2.0 * us(single.slot);
        let sifs = us(single.sifs);
        let data = |bytes| us(single.data_rate.airtime(bytes, single.preamble));
        let answer = |bytes| sifs + us(single.control_airtime(bytes));
        let one = access + data(1536) + answer(14);
        let block = access + n * data(1538) + (n - 1.0) * sifs + answer(24) + answer(32);
        let expected = n * one / block;
        assert!((measured / expected - 1.0).abs() < 0.01, "{measured} {expected}");
    }
}
