//! Block acknowledgment, sender and receiver. A frame of [`packet`] takes 2200 µs, a BlockAckReq 384 µs and a BlockAck
//! 448 µs.

use super::cell::Cell;
use super::*;
use crate::mac::config::AckPolicy;
use hopline_wire::dot11::{Bitmap, QosAckPolicy};

pub(super) const QOS_US: u64 = 2200;
pub(super) const BAR_US: u64 = 384;
pub(super) const BA_US: u64 = 448;
/// SIFS, BlockAckReq, SIFS, BlockAck.
const TAIL_US: u64 = 10 + BAR_US + 10 + BA_US;

pub(super) fn block_ack_config() -> Config {
    Config { ack_policy: AckPolicy::block_ack(), ..dot11b() }
}

fn block_ack_config_of(block_size: u8) -> Config {
    Config { ack_policy: AckPolicy::BlockAck { block_size, txop_limit: None }, ..dot11b() }
}

fn to_other(body: u32) -> Msdu<u32> {
    Msdu { to: OTHER, ..packet(body) }
}

/// A first transmission within a block; `after` more frames of the kind follow it.
pub(super) fn qos_frame(ta: MacAddr, ra: MacAddr, number: u16, after: u64) -> Frame<u32> {
    let duration_us = (after * (10 + QOS_US) + TAIL_US) as u16;
    let (sequence, body) = (Seq16(number % 4096), u32::from(number));
    Frame::QosData { duration_us, ra, ta, sequence, retry: false, tid: 0, ack: QosAckPolicy::BlockAck, body }
}

pub(super) fn as_retry(frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::QosData { duration_us, ra, ta, sequence, tid, ack, body, .. } => {
            Frame::QosData { duration_us, ra, ta, sequence, retry: true, tid, ack, body }
        }
        other => other,
    }
}

pub(super) fn block_ack_req(ta: MacAddr, ra: MacAddr, start: u16) -> Frame<u32> {
    Frame::BlockAckReq { duration_us: (10 + BA_US) as u16, ra, ta, tid: 0, start: Seq16(start) }
}

pub(super) fn block_ack(ta: MacAddr, ra: MacAddr, start: u16, bits: u64) -> Frame<u32> {
    let bitmap = Bitmap::from_bits(bits);
    Frame::BlockAck { duration_us: 0, ra, ta, tid: 0, start: Seq16(start), bitmap }
}

pub(super) fn buffered_event(body: u32) -> Event<u32> {
    Event::Buffered { body }
}

pub(super) fn deliver_event(body: u32) -> Event<u32> {
    Event::Deliver { body, from: PEER, to: ME }
}

pub(super) fn deliver_buffered_event(body: u32) -> Event<u32> {
    Event::DeliverBuffered { body, from: PEER }
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
    fn receive_block_ack(&mut self, bar_at_us: u64, frame: Frame<u32>) -> &mut Self {
        let from = bar_at_us + BAR_US + 10;
        self.receive_frame(from, from + BA_US, frame)
    }

    /// A whole block from `first` on, all of it acknowledged. Returns when it is over.
    fn transfer_block(&mut self, at_us: u64, first: u16, count: u16) -> u64 {
        let mut at = self.sent.front().map_or(at_us, |(at, _)| at.as_nanos() / 1000);
        for i in 0..count {
            self.expect_frame(at, qos_frame(ME, PEER, first + i, u64::from(count - 1 - i)));
            at += QOS_US + 10;
        }
        let start = first % 4096;
        self.expect_frame(at, block_ack_req(ME, PEER, start));
        self.receive_block_ack(at, block_ack(PEER, ME, start, u64::MAX));
        for i in 0..count {
            self.expect_event(Event::Sent(packet(u32::from(first + i))));
        }
        at + BAR_US + 10 + BA_US
    }
}

#[test]
fn a_block_is_sent_sifs_apart_with_one_block_ack_req() {
    let mut station = Station::new(block_ack_config());
    station.offer(1000, [0, 1, 2].map(packet));
    station.expect_frame(1000, qos_frame(ME, PEER, 0, 2));
    station.expect_frame(3210, qos_frame(ME, PEER, 1, 1));
    station.expect_frame(5420, qos_frame(ME, PEER, 2, 0));
    station.expect_frame(7630, block_ack_req(ME, PEER, 0)).expect_no_event();
    station.receive_block_ack(7630, block_ack(PEER, ME, 0, 0b111));
    for body in [0, 1, 2] {
        station.expect_event(Event::Sent(packet(body)));
    }
    station.expect_no_event().expect_silence_until(99_999);
    let stats = station.mac.stats();
    assert_eq!((stats.data_sent, stats.data_retries, stats.block_ack_reqs_sent), (3, 0, 1));
}

#[test]
fn a_block_contains_the_waiting_msdus_and_later_ones_join_the_next() {
    let mut station = Station::with_backoffs(block_ack_config(), &[(31, 4)]);
    station.offer(1000, [packet(0)]).expect_frame(1000, qos_frame(ME, PEER, 0, 0));
    station.offer(2000, [1, 2].map(packet));
    station.expect_frame(3210, block_ack_req(ME, PEER, 0)).receive_block_ack(3210, block_ack(PEER, ME, 0, 1));
    station.expect_event(Event::Sent(packet(0)));
    let end = 3210 + BAR_US + 10 + BA_US;
    station.transfer_block(end + 50 + 4 * 20, 1, 2);
}

#[test]
fn the_mac_takes_as_many_msdus_as_a_block_holds() {
    let mut station = Station::new(block_ack_config_of(3));
    station.offer(1000, [0, 1, 2].map(packet));
    assert!(!station.mac.is_ready());
    station.transfer_block(1000, 0, 3);
    assert!(station.mac.is_ready());
    // Without blocks it takes one.
    let mut station = Station::new(dot11b());
    station.offer(1000, [packet(0)]);
    assert!(!station.mac.is_ready());
}

#[test]
fn rts_and_cts_reserve_the_whole_block() {
    let mut station = Station::new(Config { rts_threshold_bytes: 501, ..block_ack_config() });
    let block = 2 * (10 + QOS_US) + TAIL_US;
    station.offer(1000, [0, 1].map(packet));
    station.expect_frame(1000, rts(ME, PEER, (10 + CTS_US + block) as u16));
    station.receive_frame(1362, 1666, cts(ME, block as u16));
    station.transfer_block(1676, 0, 2);
    // A frame of 502 bytes is not above a threshold of 502; one larger frame makes the difference for all.
    let config = Config { rts_threshold_bytes: 502, ..block_ack_config() };
    Station::new(config.clone())
        .offer(1000, [0, 1].map(packet))
        .expect_frame(1000, qos_frame(ME, PEER, 0, 1));
    let mut station = Station::new(config);
    station.offer(1000, [packet(0), Msdu { len_bytes: 465, ..packet(1) }]);
    assert!(matches!(station.next_sent().1.frame, Frame::Rts { .. }));
}

#[test]
fn unacknowledged_msdus_are_retransmitted_with_new_ones() {
    let mut station = Station::with_backoffs(block_ack_config(), &[(31, 5)]);
    station.offer(1000, [0, 1, 2].map(packet));
    for (n, at) in [(0, 1000), (1, 3210), (2, 5420)] {
        station.expect_frame(at, qos_frame(ME, PEER, n, 2 - u64::from(n)));
    }
    station.offer(6000, [packet(3)]);
    station
        .expect_frame(7630, block_ack_req(ME, PEER, 0))
        .receive_block_ack(7630, block_ack(PEER, ME, 0, 0b101));
    station.expect_event(Event::Sent(packet(0))).expect_event(Event::Sent(packet(2))).expect_no_event();
    // DIFS and a backoff from the smallest window: the block has been answered.
    let next = 7630 + BAR_US + 10 + BA_US + 50 + 5 * 20;
    station
        .expect_frame(next, as_retry(qos_frame(ME, PEER, 1, 1)))
        .expect_frame(next + 2210, qos_frame(ME, PEER, 3, 0));
    station
        .expect_frame(next + 4420, block_ack_req(ME, PEER, 1))
        .receive_block_ack(next + 4420, block_ack(PEER, ME, 1, 0b101));
    station.expect_event(Event::Sent(packet(1))).expect_event(Event::Sent(packet(3))).expect_no_event();
    assert_eq!(station.mac.stats().data_retries, 1);
}

#[test]
fn without_a_block_ack_only_the_request_is_retransmitted() {
    let mut station = Station::with_backoffs(block_ack_config(), &[(63, 9), (127, 11)]);
    station
        .offer(1000, [0, 1].map(packet))
        .expect_frame(1000, qos_frame(ME, PEER, 0, 1))
        .expect_frame(3210, qos_frame(ME, PEER, 1, 0));
    station.expect_frame(5420, block_ack_req(ME, PEER, 0));
    // The request got lost: nothing has begun after SIFS, a slot and a preamble. DIFS counts from the end of the frame.
    let difs_over = 5420 + BAR_US + 50;
    let timeout = 5420 + BAR_US + 10 + 20 + 192;
    let second = timeout.max(difs_over) + 9 * 20;
    station.expect_frame(second, block_ack_req(ME, PEER, 0));
    // The answer got lost.
    station.receive_damaged(second + BAR_US + 10, second + BAR_US + 10 + BA_US);
    let third = second + BAR_US + 10 + BA_US + 364 + 11 * 20;
    station
        .expect_frame(third, block_ack_req(ME, PEER, 0))
        .expect_no_event()
        .receive_block_ack(third, block_ack(PEER, ME, 0, 0b11));
    station.expect_event(Event::Sent(packet(0))).expect_event(Event::Sent(packet(1)));
    assert_eq!((station.mac.stats().block_ack_timeouts, station.mac.stats().data_sent), (2, 2));
    assert_eq!(station.mac.cw(), 31);
}

#[test]
fn unanswered_block_ack_reqs_fail_all_sent_msdus() {
    let mut station = Station::new(block_ack_config());
    station.offer(1000, [0, 1].map(packet));
    station.next_sent();
    station.offer(2000, [packet(2)]);
    station.next_sent();
    for _ in 0..7 {
        assert_eq!(station.expect_no_event().next_sent().1.frame, block_ack_req(ME, PEER, 0));
    }
    // What was never sent gets its own chance.
    let (_, next) = station.next_sent();
    assert_eq!(next.frame, qos_frame(ME, PEER, 2, 0));
    station.expect_event(Event::Failed(packet(0))).expect_event(Event::Failed(packet(1))).expect_no_event();
    assert_eq!((station.mac.stats().failed, station.mac.stats().block_ack_timeouts), (2, 7));
}

#[test]
fn unanswered_rts_fail_the_burst() {
    let mut station = Station::new(Config { rts_threshold_bytes: 0, ..block_ack_config() });
    station.offer(1000, [0, 1].map(packet));
    for _ in 0..7 {
        assert!(matches!(station.expect_no_event().next_sent().1.frame, Frame::Rts { .. }));
    }
    station.expect_silence_until(1_000_000);
    station.expect_event(Event::Failed(packet(0))).expect_event(Event::Failed(packet(1))).expect_no_event();
    assert_eq!((station.mac.stats().failed, station.mac.stats().cts_timeouts), (2, 7));
    assert!(station.mac.is_ready());
}

#[test]
fn an_msdu_above_the_retry_limit_is_dropped_and_reported_by_a_block_ack_req() {
    let mut station = Station::new(Config { short_retry_limit: 2, ..block_ack_config() });
    station.offer(1000, [0, 1].map(packet)).next_sent();
    station.next_sent();
    let answer = |station: &mut Station, start, bits| {
        let (at, sent) = station.next_sent();
        assert_eq!(sent.frame, block_ack_req(ME, PEER, start));
        station.receive_block_ack(at.as_nanos() / 1000, block_ack(PEER, ME, start, bits));
    };
    answer(&mut station, 0, 0b10);
    station.expect_event(Event::Sent(packet(1)));
    assert_eq!(station.next_sent().1.frame, as_retry(qos_frame(ME, PEER, 0, 0)));
    answer(&mut station, 0, 0b10);
    station.expect_event(Event::Failed(packet(0)));
    // The receiver still holds 1 for it: a request without data moves its window on.
    answer(&mut station, 2, 0);
    station.expect_no_event().expect_silence_until(1_000_000);
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
                Frame::Rts { .. } => drop(station.receive_frame(end + 10, end + 10 + CTS_US, cts(ME, 9999))),
                Frame::QosData { .. } => sent += 1,
                _ => drop(station.receive_frame(end + 10, end + 10 + BA_US, block_ack(PEER, ME, 0, 0))),
            }
        }
        station.expect_event(Event::Failed(packet(0)));
        sent
    };
    assert_eq!(run(block_ack_config()), 7);
    assert_eq!(run(Config { rts_threshold_bytes: 0, ..block_ack_config() }), 4);
}

#[test]
fn msdus_for_other_receivers_wait_and_have_their_own_sequence_numbers() {
    let mut station = Station::with_backoffs(block_ack_config(), &[(31, 1), (31, 2), (31, 3)]);
    station.offer(1000, [packet(0), packet(1), to_other(0)]);
    assert!(!station.mac.is_ready());
    let end = station.transfer_block(1000, 0, 2);
    // Now the other receiver has its turn, and a group frame waits in its turn.
    let second = end + 50 + 20;
    station.offer(end + 1, [Msdu { to: MacAddr::BROADCAST, ..packet(9) }]);
    station
        .expect_frame(second, qos_frame(ME, OTHER, 0, 0))
        .expect_frame(second + 2210, block_ack_req(ME, OTHER, 0));
    station
        .receive_block_ack(second + 2210, block_ack(OTHER, ME, 0, 1))
        .expect_event(Event::Sent(to_other(0)));
    let end = second + 2210 + BAR_US + 10 + BA_US;
    let (at, broadcast) = station.next_sent();
    assert_eq!(at, us(end + 50 + 2 * 20));
    assert!(matches!(broadcast.frame, Frame::Data { ra: MacAddr::BROADCAST, duration_us: 0, body: 9, .. }));
    station
        .run(at + broadcast.airtime)
        .expect_event(Event::Sent(Msdu { to: MacAddr::BROADCAST, ..packet(9) }));
    // And the first receiver goes on where it was.
    let again = (at + broadcast.airtime).as_nanos() / 1000;
    station.offer(again + 1, [packet(2)]);
    station.expect_frame(again + 50 + 3 * 20, qos_frame(ME, PEER, 2, 0));
}

#[test]
fn sequence_numbers_wrap_at_4096_within_a_block() {
    // 69 blocks of 60: the last one but one straddles the end.
    let config = Config { data_rate: Rate::Cck11, ..block_ack_config_of(60) };
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
                    station.receive_frame(
                        end + 11,
                        end + 11 + BA_US,
                        block_ack(PEER, ME, start.0, (1 << 60) - 1),
                    );
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
fn a_burst_is_bounded_by_the_txop_limit_and_the_duration_field() {
    let two_frames = 10 * 3 + 2 * QOS_US + BAR_US + BA_US;
    let limited = |limit| {
        let ack_policy = AckPolicy::BlockAck { block_size: 12, txop_limit: Some(micros(limit)) };
        let mut station = Station::new(Config { ack_policy, ..block_ack_config() });
        station.offer(1000, (0..5).map(packet));
        let burst: Vec<_> = core::iter::repeat_with(|| station.next_sent().1.frame)
            .take_while(|frame| matches!(frame, Frame::QosData { .. }))
            .collect();
        burst.len()
    };
    // The first frame counts without the SIFS before it, which planning allows for all the same.
    assert_eq!((limited(two_frames + 9), limited(two_frames + 10), limited(1)), (1, 2, 1));
    // 1500 bytes at 2 Mb/s take 6.3 ms: four of them and the BlockAck are what a Duration field can reserve.
    let mut station = Station::new(block_ack_config());
    station.offer(1000, (0..12).map(|body| Msdu { len_bytes: 1500, ..packet(body) }));
    let burst: Vec<_> = core::iter::repeat_with(|| station.next_sent().1.frame)
        .take_while(|frame| matches!(frame, Frame::QosData { .. }))
        .collect();
    assert_eq!(burst.len(), 4);
}

#[test]
fn a_receiver_delivers_in_order_and_answers_a_request_after_sifs() {
    let mut station = Station::new(block_ack_config());
    station
        .receive_frame(1000, 1384, block_ack_req(PEER, ME, 5))
        .expect_frame(1394, block_ack(ME, PEER, 5, 0));
    station.receive_frame(2000, 4200, qos_frame(PEER, ME, 5, 2)).expect_event(deliver_event(5));
    station
        .receive_frame(4210, 6410, qos_frame(PEER, ME, 7, 0))
        .expect_event(buffered_event(7))
        .expect_no_event();
    station.receive_frame(6420, 6804, block_ack_req(PEER, ME, 5)).expect_no_event();
    station.expect_frame(6814, block_ack(ME, PEER, 5, 0b101));
    station.receive_frame(9000, 11_200, as_retry(qos_frame(PEER, ME, 6, 0)));
    station.expect_event(deliver_event(6)).expect_event(deliver_buffered_event(7)).expect_no_event();
    station
        .receive_frame(11_210, 11_594, block_ack_req(PEER, ME, 6))
        .expect_frame(11_604, block_ack(ME, PEER, 6, 0b11));
}

#[test]
fn a_block_ack_req_releases_msdus_behind_a_dropped_one() {
    let mut station = Station::new(block_ack_config());
    station
        .receive_frame(1000, 1384, block_ack_req(PEER, ME, 0))
        .expect_frame(1394, block_ack(ME, PEER, 0, 0));
    station.receive_frame(2000, 4200, qos_frame(PEER, ME, 1, 0)).expect_event(buffered_event(1));
    station.receive_frame(5000, 7200, qos_frame(PEER, ME, 3, 0)).expect_event(buffered_event(3));
    station
        .receive_frame(8000, 8384, block_ack_req(PEER, ME, 2))
        .expect_event(deliver_buffered_event(1))
        .expect_no_event();
    station.expect_frame(8394, block_ack(ME, PEER, 2, 0b10));
    // The next one releases the rest.
    station
        .receive_frame(9000, 9384, block_ack_req(PEER, ME, 4))
        .expect_event(deliver_buffered_event(3))
        .expect_frame(9394, block_ack(ME, PEER, 4, 0));
    // Too late: their turn is over.
    station.receive_frame(10_000, 12_200, qos_frame(PEER, ME, 2, 0)).expect_no_event();
    assert_eq!(station.mac.stats().duplicates, 1);
}

#[test]
fn the_first_block_ack_req_sets_the_start_of_a_new_agreement() {
    let mut station = Station::new(block_ack_config());
    // The first frame of the first block is lost. The recipient does not know yet that there was one.
    station.receive_frame(1000, 3200, qos_frame(PEER, ME, 1, 1)).expect_event(buffered_event(1));
    station
        .receive_frame(3210, 5410, qos_frame(PEER, ME, 2, 0))
        .expect_event(buffered_event(2))
        .expect_no_event();
    station
        .receive_frame(5420, 5804, block_ack_req(PEER, ME, 0))
        .expect_no_event()
        .expect_frame(5814, block_ack(ME, PEER, 0, 0b110));
    station.receive_frame(8000, 10_200, as_retry(qos_frame(PEER, ME, 0, 0)));
    station
        .expect_event(deliver_event(0))
        .expect_event(deliver_buffered_event(1))
        .expect_event(deliver_buffered_event(2))
        .expect_no_event();
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_repeated_data_are_dropped() {
    let mut station = Station::new(block_ack_config());
    station
        .receive_frame(1000, 1384, block_ack_req(PEER, ME, 0))
        .expect_frame(1394, block_ack(ME, PEER, 0, 0));
    station.receive_frame(2000, 4200, qos_frame(PEER, ME, 0, 1)).receive_frame(
        4210,
        6410,
        qos_frame(PEER, ME, 1, 0),
    );
    station.expect_event(deliver_event(0)).expect_event(deliver_event(1));
    for at in [6420, 10_000] {
        station
            .receive_frame(at, at + BAR_US, block_ack_req(PEER, ME, 0))
            .expect_frame(at + BAR_US + 10, block_ack(ME, PEER, 0, 0b11));
    }
    station.receive_frame(20_000, 22_200, as_retry(qos_frame(PEER, ME, 1, 0)));
    station.receive_frame(22_210, 24_410, qos_frame(PEER, ME, 3, 0)).expect_event(buffered_event(3));
    station.receive_frame(24_420, 26_620, as_retry(qos_frame(PEER, ME, 3, 0))).expect_no_event();
    assert_eq!(station.mac.stats().duplicates, 2);
}

#[test]
fn a_frame_beyond_the_window_advances_it() {
    let mut station = Station::new(block_ack_config());
    station
        .receive_frame(1000, 1384, block_ack_req(PEER, ME, 0))
        .expect_frame(1394, block_ack(ME, PEER, 0, 0));
    station.receive_frame(2000, 4200, qos_frame(PEER, ME, 3, 0)).expect_event(buffered_event(3));
    // The window is 0 to 63; then 7 to 70.
    station
        .receive_frame(5000, 7200, qos_frame(PEER, ME, 70, 0))
        .expect_event(deliver_buffered_event(3))
        .expect_event(buffered_event(70));
    station.receive_frame(8000, 10_200, qos_frame(PEER, ME, 6, 0)).expect_no_event();
    station
        .receive_frame(11_000, 13_200, qos_frame(PEER, ME, 7, 0))
        .expect_event(deliver_event(7))
        .expect_no_event();
    station
        .receive_frame(14_000, 14_384, block_ack_req(PEER, ME, 7))
        .expect_frame(14_394, block_ack(ME, PEER, 7, 1 << 63 | 1));
}

#[test]
fn the_receivers_window_wraps_at_4096() {
    let mut station = Station::new(block_ack_config());
    station
        .receive_frame(1000, 1384, block_ack_req(PEER, ME, 4094))
        .expect_frame(1394, block_ack(ME, PEER, 4094, 0));
    station.receive_frame(2000, 4200, qos_frame(PEER, ME, 4096, 0)).expect_event(buffered_event(4096));
    station.receive_frame(5000, 7200, qos_frame(PEER, ME, 4095, 0)).expect_event(buffered_event(4095));
    station
        .receive_frame(8000, 8384, block_ack_req(PEER, ME, 4094))
        .expect_frame(8394, block_ack(ME, PEER, 4094, 0b110));
    station.receive_frame(9000, 11_200, qos_frame(PEER, ME, 4094, 0));
    station
        .expect_event(deliver_event(4094))
        .expect_event(deliver_buffered_event(4095))
        .expect_event(deliver_buffered_event(4096));
    station
        .receive_frame(12_000, 12_384, block_ack_req(PEER, ME, 1))
        .expect_frame(12_394, block_ack(ME, PEER, 1, 0))
        .expect_no_event();
}

#[test]
fn the_oldest_agreement_is_evicted_for_the_65th() {
    let mut station = Station::new(block_ack_config());
    let sender = |n| MacAddr::of_node(NodeId(10 + n));
    let at = |n: u32| 10_000 * u64::from(n);
    for n in 0..64 {
        station
            .receive_frame(at(n), at(n) + QOS_US, qos_frame(sender(n), ME, 3, 0))
            .expect_event(buffered_event(3));
    }
    station.receive_frame(at(64), at(64) + QOS_US, qos_frame(sender(64), ME, 4, 0));
    station
        .expect_event(Event::DeliverBuffered { body: 3, from: sender(0) })
        .expect_event(buffered_event(4))
        .expect_no_event();
}

#[test]
fn unexpected_block_ack_reqs_and_block_acks_change_nothing() {
    // A request about nothing is answered with nothing.
    let mut station = Station::new(block_ack_config());
    station
        .receive_frame(1000, 1384, block_ack_req(OTHER, ME, 77))
        .expect_frame(1394, block_ack(ME, OTHER, 77, 0))
        .expect_no_event();
    station.receive_frame(3000, 3448, block_ack(OTHER, ME, 0, u64::MAX)).expect_no_event();
    // An answer from another station is no answer.
    station
        .offer(5000, [packet(0)])
        .expect_frame(5000, qos_frame(ME, PEER, 0, 0))
        .expect_frame(7210, block_ack_req(ME, PEER, 0));
    station.receive_block_ack(7210, block_ack(OTHER, ME, 0, 1)).expect_no_event();
    assert_eq!(station.mac.stats().block_ack_timeouts, 1);
    assert_eq!(station.next_sent().1.frame, block_ack_req(ME, PEER, 0));
    // Another traffic identifier belongs to no block of this station, nor does QoS data with another policy.
    let mut station = Station::new(block_ack_config());
    let Frame::QosData { duration_us, ra, ta, sequence, retry, body, .. } = qos_frame(PEER, ME, 0, 0) else {
        panic!()
    };
    for (tid, ack) in [(1, QosAckPolicy::BlockAck), (0, QosAckPolicy::Normal), (0, QosAckPolicy::NoAck)] {
        let at = station.now.as_nanos() / 1000 + 1000;
        let frame = Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack, body };
        station.receive_frame(at, at + QOS_US, frame).expect_no_event();
    }
    station.expect_silence_until(999_999);
    // A station that does without blocks has no agreement.
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 3200, qos_frame(PEER, ME, 0, 0)).receive_frame(
        3210,
        3594,
        block_ack_req(PEER, ME, 0),
    );
    station.expect_no_event().expect_silence_until(999_999);
}

#[test]
fn blocks_for_other_stations_set_the_nav_for_the_whole_burst() {
    let mut station = Station::new(block_ack_config());
    station.receive_frame(1000, 3200, qos_frame(PEER, OTHER, 0, 2));
    assert_eq!(station.mac.nav_until(), us(3200 + 2 * 2210 + TAIL_US));
}

#[test]
fn blocks_work_with_the_rules_of_ns2() {
    let ns2 = Config { ack_policy: AckPolicy::block_ack(), ..Config::ns2_wavelan() };
    // 464 bytes make a frame of 500: 2192 µs.
    let block = 2 * (10 + DATA_US) + TAIL_US;
    let mut station = Station::with_backoffs(ns2.clone(), &[(31, 0), (31, 6)]);
    station.offer(1000, [0, 1].map(packet)).expect_frame(1050, rts(ME, PEER, (10 + CTS_US + block) as u16));
    station.receive_frame(1412, 1716, cts(ME, block as u16));
    for at in [1726, 1726 + DATA_US + 10] {
        let (sent_at, transmission) = station.next_sent();
        assert_eq!((sent_at, transmission.airtime), (us(at), micros(DATA_US)));
    }
    let bar_at = 1726 + 2 * (DATA_US + 10);
    station
        .expect_frame(bar_at, block_ack_req(ME, PEER, 0))
        .receive_block_ack(bar_at, block_ack(PEER, ME, 0, 0b11));
    station.expect_event(Event::Sent(packet(0))).expect_event(Event::Sent(packet(1)));

    // The receiver waits for the data that it has cleared, through the whole block.
    let mut station = Station::new(ns2);
    station
        .receive_frame(1000, 1352, rts(PEER, ME, (10 + CTS_US + block) as u16))
        .expect_frame(1362, cts(PEER, block as u16));
    station.receive_frame(1676, 3868, qos_frame(PEER, ME, 0, 1)).receive_frame(
        3878,
        6070,
        qos_frame(PEER, ME, 1, 0),
    );
    assert_eq!(station.mac.state(), crate::mac::State::AwaitData);
    station
        .receive_frame(6080, 6464, block_ack_req(PEER, ME, 0))
        .expect_frame(6474, block_ack(ME, PEER, 0, 0b11));
    station.run(us(99_999));
    assert_eq!(station.mac.state(), crate::mac::State::Idle);
}

#[test]
fn with_20_percent_loss_all_msdus_arrive_in_order() {
    for config in [
        block_ack_config(),
        block_ack_config_of(64),
        Config { rts_threshold_bytes: 0, ..block_ack_config() },
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
fn with_heavy_loss_msdus_are_in_order_without_duplicates() {
    let mut cell = Cell::one_way(&Config { short_retry_limit: 3, ..block_ack_config() }, 464, 0.5);
    cell.run(Instant::from_secs(120));
    assert!(cell.received(1).is_sorted_by(|a, b| a < b));
    assert!(cell.total(|s| s.failed) > 100 && cell.delivered() > 1000);
}

/// At no loss a block of n costs DIFS, 15.5 slots in the mean, n frames and a request with its answer; without blocks each
/// frame costs that with an ACK.
#[test]
fn the_throughput_gain_of_blocks_follows_from_airtime() {
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
