//! Set-up of block acknowledgment. At 1 Mb/s an ADDBA frame takes 488 µs, a DELBA 464 µs. Other frames and times as in
//! [`super::block_ack`].

use super::block_ack::{BA_US, BAR_US, QOS_US, ba, bar, blocks, deliver, deliver_held, held, once_more, qos};
use super::cell::Cell;
use super::*;
use crate::mac::State;
use crate::mac::config::{AckPolicy, BlockAckSetup};
use hopline_wire::dot11::{
    BlockAckAction, BlockAckKind, BlockAckSide, REASON_TIMEOUT, REASON_UNKNOWN_BA, STATUS_REQUEST_DECLINED,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const ADDBA_US: u64 = 488;
const DELBA_US: u64 = 464;
/// Time from the start of a request to the end of its ACK.
const ASKED_US: u64 = ADDBA_US + 10 + CTS_US;
/// Timeout of a response: 100 TU.
const PATIENCE_US: u64 = 102_400;
/// Pause after a receiver has not agreed.
const PAUSE_US: u64 = 1_000_000;

fn addba() -> Config {
    Config { block_ack_setup: BlockAckSetup::Addba, ..blocks() }
}

/// The same with backoffs of no slots, as long as nothing fails.
fn station() -> Station {
    Station::drawing(addba(), &[(31, 0); 3])
}

fn forgetting(timeout_us: u64) -> Config {
    Config { block_ack_timeout: Some(micros(timeout_us)), ..addba() }
}

fn action(ta: MacAddr, ra: MacAddr, sequence: u16, action: BlockAckAction) -> Frame<u32> {
    Frame::Action { duration_us: 314, ra, ta, sequence: Seq16(sequence), retry: false, action }
}

fn repeated(frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::Action { duration_us, ra, ta, sequence, action, .. } => {
            Frame::Action { duration_us, ra, ta, sequence, retry: true, action }
        }
        other => other,
    }
}

fn wish(dialog_token: u8, start: u16, timeout_tu: u16) -> BlockAckAction {
    let (kind, start) = (BlockAckKind::Immediate, Seq16(start));
    BlockAckAction::AddbaRequest { dialog_token, kind, tid: 0, buffer_size: 64, timeout_tu, start }
}

fn verdict(dialog_token: u8, status: u16, buffer_size: u16, timeout_tu: u16) -> BlockAckAction {
    let kind = BlockAckKind::Immediate;
    BlockAckAction::AddbaResponse { dialog_token, status, kind, tid: 0, buffer_size, timeout_tu }
}

fn consent(dialog_token: u8) -> BlockAckAction {
    verdict(dialog_token, 0, 64, 0)
}

fn delba(side: BlockAckSide, reason: u16) -> BlockAckAction {
    BlockAckAction::Delba { side, tid: 0, reason }
}

/// A first transmission that is acknowledged by itself.
fn single(sequence: u16, body: u32) -> Frame<u32> {
    Frame::Data { duration_us: 314, ra: PEER, ta: ME, sequence: Seq16(sequence), retry: false, body }
}

impl Station {
    /// The station's frame ended at this time, and the peer acknowledges it. Returns the end of the ACK.
    fn gets_ack(&mut self, ended_us: u64) -> u64 {
        self.hears(ended_us + 10, ended_us + 10 + CTS_US, ack(ME));
        ended_us + 10 + CTS_US
    }

    /// The peer sends an action frame, which the station acknowledges. Returns the end of the ACK.
    fn is_told(&mut self, at_us: u64, frame: Frame<u32>) -> u64 {
        let Frame::Action { action, ta, .. } = frame else { panic!("an action frame") };
        let end = at_us + 192 + 8 * action.frame_len() as u64;
        self.hears(at_us, end, frame).sends(end + 10, ack(ta));
        end + 10 + CTS_US
    }

    /// Sends a request and has it acknowledged. Returns the end of the ACK.
    fn asks(&mut self, at_us: u64, sequence: u16, action_sent: BlockAckAction) -> u64 {
        self.sends(at_us, action(ME, PEER, sequence, action_sent));
        self.gets_ack(at_us + ADDBA_US)
    }

    /// Expects one MSDU that is sent alone and acknowledged. Returns the end of the ACK.
    fn sends_alone(&mut self, at_us: u64, sequence: u16, body: u32) -> u64 {
        self.sends(at_us, single(sequence, body));
        let end = self.gets_ack(at_us + DATA_US);
        self.reports(Event::Sent(packet(body)));
        end
    }

    /// Expects the same as [`Station::sends_alone`], at the end of the backoff.
    fn goes_alone(&mut self, sequence: u16, body: u32) {
        let (at, transmission) = self.next_sent();
        assert_eq!(transmission.frame, single(sequence, body));
        self.gets_ack(at.as_nanos() / 1000 + DATA_US);
        self.reports(Event::Sent(packet(body)));
    }

    /// Up to an agreement that stands, from 1000 on and with [`station`]'s backoffs; three packets wait. Returns when a
    /// burst may begin.
    fn agrees(&mut self, says: BlockAckAction) -> u64 {
        self.offer(1000, [0, 1, 2].map(packet));
        let Frame::Action { action: asked, .. } = self.next_sent().1.frame else { panic!("a request") };
        assert!(matches!(asked, BlockAckAction::AddbaRequest { dialog_token: 1, .. }));
        let end = self.gets_ack(1000 + ADDBA_US);
        self.is_told(end + 20, action(PEER, ME, 0, says)) + 50
    }

    /// The peer answers the BlockAckReq that was sent at this time. Returns the end of the BlockAck.
    fn answers(&mut self, bar_at_us: u64, start: u16, bits: u64) -> u64 {
        let from = bar_at_us + BAR_US + 10;
        self.hears(from, from + BA_US, ba(PEER, ME, start, bits));
        from + BA_US
    }

    /// The two of a burst of two arrive. Returns the end of the BlockAck.
    fn carries_two(&mut self, at_us: u64, first: u16) -> u64 {
        self.sends(at_us, qos(ME, PEER, first, 1)).sends(at_us + QOS_US + 10, qos(ME, PEER, first + 1, 0));
        let asked_at = at_us + 2 * (QOS_US + 10);
        self.sends(asked_at, bar(ME, PEER, first));
        self.answers(asked_at, first, 0b11)
    }
}

#[test]
fn a_station_asks_before_its_first_burst_and_then_bursts() {
    let mut station = station();
    station.offer(1000, [0, 1, 2].map(packet));
    let asked = station.asks(1000, 0, wish(1, 0, 0));
    assert_eq!(asked, 1000 + ASKED_US);
    let end = station.is_told(asked + 20, action(PEER, ME, 0, consent(1)));
    station.sends(end + 50, qos(ME, PEER, 0, 2)).reports_nothing();
    let stats = station.mac.stats();
    assert_eq!((stats.actions_sent, stats.actions_failed, stats.actions_ignored), (1, 0, 0));
}

#[test]
fn a_request_takes_its_time_on_the_air_at_the_basic_rate() {
    let mut station = station();
    station.offer(1000, [packet(0)]);
    let (_, transmission) = station.next_sent();
    assert_eq!((transmission.rate, transmission.len_bytes), (Rate::Dsss1, 37));
    assert_eq!(transmission.airtime, micros(ADDBA_US));
    station.run(us(1000 + ADDBA_US));
    assert_eq!(station.mac.airtime(station.now).transmitting, micros(ADDBA_US));
    assert_eq!(station.mac.state(), State::AwaitActionAck);
}

#[test]
fn packets_go_with_an_ack_each_until_the_response_is_here() {
    let mut station = station();
    station.offer(1000, [0, 1, 2].map(packet));
    let asked = station.asks(1000, 0, wish(1, 0, 0));
    let end = station.sends_alone(asked + 50, 1, 0);
    let end = station.is_told(end + 20, action(PEER, ME, 0, consent(1)));
    // The request named 0 as the first, and it is: what went by itself has taken no number of the block's.
    let frame = |number: u16, body: u32, after| match qos(ME, PEER, number, after) {
        Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack, .. } => {
            Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack, body }
        }
        other => other,
    };
    station.sends(end + 50, frame(0, 1, 1)).sends(end + 50 + QOS_US + 10, frame(1, 2, 0));
    station.reports_nothing();
}

#[test]
fn a_request_without_an_ack_is_repeated_like_data() {
    let mut station = Station::drawing(addba(), &[(63, 3), (31, 0)]);
    station.offer(1000, [packet(0)]).sends(1000, action(ME, PEER, 0, wish(1, 0, 0)));
    let (at, second) = station.next_sent();
    assert_eq!(second.frame, repeated(action(ME, PEER, 0, wish(1, 0, 0))));
    // SIFS, slot and preamble for the ACK; then DIFS and the backoff.
    assert_eq!(at, us(1000 + ADDBA_US + 10 + 20 + 192 + 3 * 20));
    let end = at.as_nanos() / 1000 + ADDBA_US;
    station.gets_ack(end);
    assert_eq!((station.mac.stats().ack_timeouts, station.mac.cw()), (1, 31));
}

#[test]
fn a_response_makes_up_for_the_ack_of_its_request() {
    let mut station = Station::drawing(addba(), &[(63, 40)]);
    station.offer(1000, [packet(0)]).sends(1000, action(ME, PEER, 0, wish(1, 0, 0)));
    station.is_told(1800, action(PEER, ME, 0, consent(1)));
    assert_eq!(station.next_sent().1.frame, qos(ME, PEER, 0, 0));
    assert_eq!(station.mac.stats().actions_sent, 1);
}

#[test]
fn a_receiver_that_never_answers_is_asked_three_times_and_then_left_alone_for_a_second() {
    let mut station = Station::new(addba());
    let mut requests = Vec::new();
    let (mut body, mut given) = (0, 0);
    station.offer(1000, [packet(0)]);
    // The peer acknowledges everything and says nothing.
    while station.now < us(3_000_000) {
        while station.mac.is_ready() && given < 10_000 {
            given += 1;
            station.mac.send(station.now, packet(given));
        }
        let (at, transmission) = station.next_sent();
        let at_us = at.as_nanos() / 1000;
        match transmission.frame {
            Frame::Action { action: BlockAckAction::AddbaRequest { dialog_token, .. }, .. } => {
                requests.push((at_us, dialog_token));
            }
            Frame::Data { body: sent, .. } => {
                assert_eq!(sent, body);
                body += 1;
            }
            other => panic!("{other:?}"),
        }
        station.gets_ack(at_us + transmission.airtime.as_nanos() / 1000);
    }
    let tokens: Vec<_> = requests.iter().map(|&(_, token)| token).collect();
    assert_eq!(tokens[..6], [1, 2, 3, 4, 5, 6]);
    let gap = |i: usize| requests[i + 1].0 - requests[i].0;
    // Each time at the first chance, which may be one frame and a backoff late.
    let chance = 5_000;
    for i in [0, 1, 3, 4] {
        assert!((PATIENCE_US..PATIENCE_US + chance).contains(&(gap(i) - ASKED_US)), "{}", gap(i));
    }
    let pause = gap(2) - ASKED_US - PATIENCE_US;
    assert!((PAUSE_US..PAUSE_US + 2 * chance).contains(&pause), "{pause}");
    assert!(body > 800, "nothing stalls: {body}");
}

#[test]
fn a_receiver_out_of_reach_costs_the_request_its_tries_and_the_packet_its_own() {
    let mut station = Station::new(addba());
    station.offer(1000, [packet(0)]).run(us(1_000_000));
    station.reports(Event::Failed(packet(0))).reports_nothing();
    let stats = station.mac.stats();
    assert_eq!((stats.actions_sent, stats.actions_failed, stats.data_sent), (7, 1, 7));
}

#[test]
fn a_refusal_means_an_ack_for_each_frame_and_another_request_after_a_second() {
    // Refused explicitly, and by a receiver without buffers.
    for says in [verdict(1, STATUS_REQUEST_DECLINED, 64, 0), verdict(1, 0, 0, 0)] {
        let mut station = Station::new(addba());
        let at = station.agrees(says);
        let refused = at - 50 - CTS_US - 10;
        assert_eq!(station.mac.stats().actions_ignored, 0);
        for (sequence, body) in [(1, 0), (2, 1), (3, 2)] {
            station.goes_alone(sequence, body);
        }
        station.offer(refused + PAUSE_US - 1, [packet(3)]).goes_alone(4, 3);
        station.offer(refused + PAUSE_US + 10_000, [packet(4)]);
        assert_eq!(station.next_sent().1.frame, action(ME, PEER, 5, wish(2, 0, 0)));
    }
}

#[test]
fn a_response_to_another_request_is_none() {
    let of_another_tid = BlockAckAction::AddbaResponse {
        dialog_token: 1,
        status: 0,
        kind: BlockAckKind::Immediate,
        tid: 3,
        buffer_size: 64,
        timeout_tu: 0,
    };
    for says in [consent(2), consent(0), of_another_tid, delba(BlockAckSide::Recipient, REASON_TIMEOUT)] {
        let mut station = station();
        let at = station.agrees(says);
        station.sends_alone(at, 1, 0);
        assert_eq!(station.mac.stats().actions_ignored, 1, "{says:?}");
    }
    // Nor is a response from another station, nor one without a request.
    let mut station = station();
    station.offer(1000, [packet(0)]);
    let asked = station.asks(1000, 0, wish(1, 0, 0));
    let end = station.is_told(asked + 20, action(OTHER, ME, 0, consent(1)));
    let end = station.sends_alone(end + 50, 1, 0);
    station.is_told(end + 20_000, action(PEER, ME, 0, consent(1)));
    station.is_told(end + 30_000, action(PEER, ME, 1, consent(1)));
    assert_eq!(station.mac.stats().actions_ignored, 2);
}

#[test]
fn the_receivers_buffer_bounds_the_burst() {
    let mut station = station();
    let at = station.agrees(verdict(1, 0, 2, 0));
    station.carries_two(at, 0);
}

#[test]
fn a_request_is_acknowledged_and_answered_after_a_backoff() {
    let mut station = Station::drawing(forgetting(50_000), &[(31, 6)]);
    let end = station.is_told(1000, action(PEER, ME, 0, wish(9, 4094, 0)));
    // 50 ms are 48.8 TU.
    station.sends(end + 50 + 6 * 20, action(ME, PEER, 0, verdict(9, 0, 64, 49)));
    station.gets_ack(end + 170 + ADDBA_US);
    // The agreement begins where the request says: nothing waits for a BlockAckReq.
    station.hears(10_000, 10_000 + QOS_US, qos(PEER, ME, 4094, 1)).reports(deliver(4094));
    station.hears(20_000, 20_000 + QOS_US, qos(PEER, ME, 4096, 0)).reports(held(4096));
    station.hears(30_000, 30_000 + BAR_US, bar(PEER, ME, 4094));
    station.sends(30_010 + BAR_US, ba(ME, PEER, 4094, 0b101));
}

#[test]
fn a_request_for_what_a_station_does_not_do_is_declined() {
    let with = |kind, tid| BlockAckAction::AddbaRequest {
        dialog_token: 5,
        kind,
        tid,
        buffer_size: 16,
        timeout_tu: 7,
        start: Seq16(0),
    };
    for (kind, tid) in [(BlockAckKind::Delayed, 0), (BlockAckKind::Immediate, 1)] {
        let mut station = Station::drawing(addba(), &[(31, 0)]);
        let end = station.is_told(1000, action(PEER, ME, 0, with(kind, tid)));
        let (dialog_token, status) = (5, STATUS_REQUEST_DECLINED);
        let answer =
            BlockAckAction::AddbaResponse { dialog_token, status, kind, tid, buffer_size: 16, timeout_tu: 0 };
        station.sends(end + 50, action(ME, PEER, 0, answer));
        station.gets_ack(end + 50 + ADDBA_US);
        station.hears(10_000, 10_000 + QOS_US, qos(PEER, ME, 0, 0)).reports_nothing();
        assert_eq!(station.mac.stats().unagreed, 1);
    }
}

#[test]
fn a_repeated_request_is_acknowledged_and_answered_once() {
    let mut station = Station::drawing(addba(), &[(31, 0)]);
    let request = action(PEER, ME, 7, wish(1, 0, 0));
    let end = station.is_told(1000, request);
    let end = station.is_told(end + 20, repeated(request));
    station.sends(end + 50, action(ME, PEER, 0, consent(1)));
    station.gets_ack(end + 50 + ADDBA_US);
    station.is_silent_until(999_999);
    assert_eq!((station.mac.stats().duplicates, station.mac.stats().actions_sent), (1, 1));
}

#[test]
fn a_response_that_nobody_acknowledges_is_given_up_and_the_agreement_stands_all_the_same() {
    let mut station = Station::new(addba());
    station.is_told(1000, action(PEER, ME, 0, wish(1, 0, 0)));
    station.run(us(500_000)).sent.clear();
    assert_eq!((station.mac.stats().actions_sent, station.mac.stats().actions_failed), (7, 1));
    station.hears(500_000, 500_000 + QOS_US, qos(PEER, ME, 0, 0)).reports(deliver(0));
}

#[test]
fn a_block_without_an_agreement_is_dropped_and_its_sender_told() {
    let mut station = Station::drawing(addba(), &[(31, 2)]);
    station.hears(1000, 1000 + QOS_US, qos(PEER, ME, 0, 0));
    // Still within the block: the NAV is for others, but SIFS is shorter than DIFS.
    station.hears(3210, 3210 + BAR_US, bar(PEER, ME, 0));
    station.sends(
        3210 + BAR_US + 50 + 2 * 20,
        action(ME, PEER, 0, delba(BlockAckSide::Recipient, REASON_UNKNOWN_BA)),
    );
    station.gets_ack(3210 + BAR_US + 90 + DELBA_US);
    station.reports_nothing().is_silent_until(999_999);
    assert_eq!(station.mac.stats().unagreed, 2);
}

#[test]
fn a_station_without_an_agreement_any_more_asks_again_and_sends_what_was_not_acknowledged() {
    let mut station = Station::drawing(addba(), &[(31, 0), (63, 31)]);
    let at = station.agrees(consent(1));
    for (n, after) in [(0, 2), (1, 1), (2, 0)] {
        station.sends(at + u64::from(n) * 2210, qos(ME, PEER, n, after));
    }
    let bar_at = at + 3 * 2210;
    station.sends(bar_at, bar(ME, PEER, 0));
    let over = delba(BlockAckSide::Recipient, REASON_UNKNOWN_BA);
    station.is_told(bar_at + BAR_US + 300, action(PEER, ME, 1, over));
    assert!(matches!(station.next_sent().1.frame, Frame::Action { action, .. } if action == wish(2, 0, 0)));
    station.reports_nothing();
    assert_eq!(station.mac.held().count(), 3);
}

#[test]
fn an_agreement_is_set_up_anew_after_silence() {
    // 10 TU, from the recipient.
    let mut station = Station::drawing(addba(), &[(31, 0); 3]);
    let at = station.agrees(verdict(1, 0, 64, 10));
    for (n, after) in [(0, 2), (1, 1), (2, 0)] {
        station.sends(at + u64::from(n) * 2210, qos(ME, PEER, n, after));
    }
    let bar_at = at + 3 * 2210;
    let heard = station.sends(bar_at, bar(ME, PEER, 0)).answers(bar_at, 0, 0b111);
    // Within the time; then as soon as it is over.
    station.offer(heard + 10_239, [packet(3)]).sends(heard + 10_239, qos(ME, PEER, 3, 0));
    let bar_at = heard + 10_239 + QOS_US + 10;
    let heard = station.sends(bar_at, bar(ME, PEER, 3)).answers(bar_at, 3, 1);
    station.offer(heard + 10_240, [packet(4)]);
    station.sends(heard + 10_240, action(ME, PEER, 1, wish(2, 4, 0)));
}

#[test]
fn the_recipient_ends_a_silent_agreement_and_delivers_what_waits() {
    let mut station = Station::drawing(forgetting(50_000), &[(31, 0); 3]);
    let end = station.is_told(1000, action(PEER, ME, 0, wish(1, 0, 0)));
    station.sends(end + 50, action(ME, PEER, 0, verdict(1, 0, 64, 49)));
    station.gets_ack(end + 50 + ADDBA_US);
    station.hears(10_000, 12_200, qos(PEER, ME, 1, 0)).reports(held(1));
    station.run(us(62_199)).reports_nothing();
    station.sends(62_200, action(ME, PEER, 1, delba(BlockAckSide::Recipient, REASON_TIMEOUT)));
    station.reports(deliver_held(1)).reports_nothing();
    station.gets_ack(62_200 + DELBA_US);
    // Another begins where the next request says.
    station.is_told(70_000, action(PEER, ME, 1, wish(2, 5, 0)));
    let (at, answer) = station.next_sent();
    assert_eq!(answer.frame, action(ME, PEER, 2, verdict(2, 0, 64, 49)));
    station.gets_ack(at.as_nanos() / 1000 + ADDBA_US);
    station.hears(80_000, 82_200, qos(PEER, ME, 5, 0)).reports(deliver(5)).reports_nothing();
}

#[test]
fn what_waits_at_the_recipient_is_delivered_before_what_comes_by_other_means() {
    let agreed = |station: &mut Station| {
        let end = station.is_told(1000, action(PEER, ME, 0, wish(1, 0, 0)));
        station.sends(end + 50, action(ME, PEER, 0, consent(1)));
        station.gets_ack(end + 50 + ADDBA_US);
        station.hears(10_000, 12_200, qos(PEER, ME, 1, 0)).reports(held(1));
    };
    let drawing = || Station::drawing(addba(), &[(31, 0); 2]);
    let mut station = drawing();
    agreed(&mut station);
    station.hears(20_000, 20_000 + DATA_US, data(PEER, ME, 9)).sends(20_010 + DATA_US, ack(PEER));
    station.reports(deliver_held(1)).reports(deliver(9));
    // A new request, and the sender's end of the agreement.
    for says in [wish(2, 7, 0), delba(BlockAckSide::Originator, 1)] {
        let mut station = drawing();
        agreed(&mut station);
        station.is_told(20_000, action(PEER, ME, 1, says));
        station.reports(deliver_held(1)).reports_nothing();
        assert_eq!(station.mac.stats().actions_ignored, 0);
    }
    let mut station = drawing();
    agreed(&mut station);
    station.hears(20_000, 22_200, once_more(qos(PEER, ME, 0, 0)));
    station.reports(deliver(0)).reports(deliver_held(1));
}

#[test]
fn a_response_goes_before_the_stations_own_data() {
    let mut station = Station::drawing(addba(), &[(31, 3)]);
    station.hears(1000, 1000 + ADDBA_US, action(PEER, ME, 0, wish(1, 0, 0)));
    station.offer(1000 + ADDBA_US + 5, [packet(0)]).sends(1000 + ADDBA_US + 10, ack(PEER));
    let at = 1000 + ADDBA_US + 10 + CTS_US + 50 + 3 * 20;
    station.sends(at, action(ME, PEER, 0, consent(1)));
    station.gets_ack(at + ADDBA_US);
    assert!(matches!(station.next_sent().1.frame, Frame::Action { action, .. } if action == wish(1, 0, 0)));
}

#[test]
fn a_station_without_blocks_acknowledges_a_request_and_says_nothing() {
    for config in [dot11b(), blocks()] {
        let mut station = Station::new(config);
        station.is_told(1000, action(PEER, ME, 0, wish(1, 0, 0)));
        station.is_silent_until(999_999).reports_nothing();
        assert_eq!(station.mac.stats().actions_ignored, 1);
    }
}

#[test]
fn groups_are_asked_for_nothing() {
    let mut station = Station::new(addba());
    let group = Msdu { to: MacAddr::BROADCAST, ..packet(0) };
    station.send(1000, group);
    assert!(matches!(station.next_sent().1.frame, Frame::Data { .. }));
    station.run(us(99_999)).reports(Event::Sent(group)).is_silent_until(999_999);
    let wishes = action(PEER, MacAddr::BROADCAST, 0, wish(1, 0, 0));
    station.hears(1_000_000, 1_000_488, wishes).is_silent_until(1_999_999);
}

#[test]
fn a_flood_of_requests_is_answered_64_at_a_time() {
    let mut station = Station::new(addba());
    // So close to one another that the station never gets a word in.
    for n in 0..200 {
        let from = MacAddr::of_node(NodeId(10 + n));
        station.is_told(1000 + u64::from(n) * (ASKED_US + 20), action(from, ME, 0, wish(1, 0, 0)));
    }
    station.run(us(60_000_000));
    assert_eq!(station.mac.stats().actions_failed, 64);
    assert_eq!(station.next_own(), None);
}

/// The whole set-up costs one request and one response with their ACKs, and for what it takes one frame or two by themselves.
#[test]
fn in_a_long_run_the_set_up_costs_next_to_nothing() {
    let carried = |config: &Config| {
        let mut cell = Cell::one_way(config, 1500, 0.0);
        cell.run(Instant::from_secs(20));
        assert!(cell.received(1).iter().copied().eq(0..cell.delivered() as u32));
        (cell.delivered() as f64, cell.total(|s| s.actions_sent))
    };
    let ((before, none), (after, two)) = (carried(&blocks()), carried(&addba()));
    assert_eq!((none, two), (0, 2));
    assert!((after / before - 1.0).abs() < 0.005, "{before} {after}");
}

fn lossy_config() -> impl Strategy<Value = Config> {
    let presets = prop_oneof![Just(dot11b()), Just(Config::dot11a()), Just(Config::ns2_wavelan())];
    (presets, 1..=64u8, any::<bool>(), prop::option::of(300_000..2_000_000u64)).prop_map(
        |(preset, block_size, rts, timeout)| Config {
            ack_policy: AckPolicy::BlockAck { block_size, txop_limit: None },
            block_ack_setup: BlockAckSetup::Addba,
            block_ack_timeout: timeout.map(micros),
            rts_threshold_bytes: if rts { 0 } else { preset.rts_threshold_bytes },
            ..preset
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn whatever_is_lost_packets_arrive_in_order_and_none_twice_unless_an_agreement_times_out(
        config in lossy_config(),
        loss in 0.0..0.6f64,
        patient in any::<bool>(),
    ) {
        let retries = if patient { 60 } else { 3 };
        let config = Config { short_retry_limit: retries, long_retry_limit: retries, ..config };
        let mut cell = Cell::one_way(&config, 464, loss);
        cell.run(Instant::from_secs(10));
        let received = cell.received(1);
        // With RTS, six of ten frames lost and back-offs of 10 ms a packet takes a third of a second.
        prop_assert!(received.len() > 10, "{}", received.len());
        let timeouts = cell.total(|s| s.inactive) as usize;
        if timeouts == 0 {
            prop_assert!(received.is_sorted_by(|a, b| a < b));
        }
        // §10.25.5: a receiver that gives an agreement up delivers what waits. What was not acknowledged goes again.
        let AckPolicy::BlockAck { block_size, .. } = config.ack_policy else { unreachable!("lossy_config has blocks") };
        let once: BTreeSet<u32> = received.iter().copied().collect();
        prop_assert!(received.len() - once.len() <= timeouts * usize::from(block_size));
        if cell.total(|s| s.failed) == 0 {
            let last = once.last().copied().unwrap_or_default() as usize;
            prop_assert!(last + 1 - once.len() <= timeouts * usize::from(block_size), "gaps are what is under way");
        }
    }
}
