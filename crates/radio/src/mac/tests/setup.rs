//! Set-up of block acknowledgment. At 1 Mb/s an ADDBA frame takes 488 µs, a DELBA 464 µs. Other frames and times as in
//! [`super::block_ack`].

use super::block_ack::{
    BA_US, BAR_US, QOS_US, as_retry, block_ack, block_ack_config, block_ack_req, buffered_event,
    deliver_buffered_event, deliver_event, qos_frame,
};
use super::cell::Cell;
use super::*;
use crate::mac::State;
use crate::mac::config::{AckPolicy, BlockAckSetup};
use hopline_wire::dot11::{
    BlockAckAction, BlockAckPolicy, BlockAckSide, REASON_TIMEOUT, REASON_UNKNOWN_BA, STATUS_REQUEST_DECLINED,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const ADDBA_US: u64 = 488;
const DELBA_US: u64 = 464;
/// Time from the start of a request to the end of its ACK.
const REQUEST_EXCHANGE_US: u64 = ADDBA_US + 10 + CTS_US;
/// Timeout of a response: 100 TU.
const RESPONSE_TIMEOUT_US: u64 = 102_400;
/// Pause after a receiver has not agreed.
const PAUSE_US: u64 = 1_000_000;

fn addba() -> Config {
    Config { block_ack_setup: BlockAckSetup::Addba, ..block_ack_config() }
}

/// The same with backoffs of no slots, as long as nothing fails.
fn station() -> Station {
    Station::with_backoffs(addba(), &[(31, 0); 3])
}

fn with_inactivity_timeout(timeout_us: u64) -> Config {
    Config { block_ack_timeout: Some(micros(timeout_us)), ..addba() }
}

fn action(ta: MacAddr, ra: MacAddr, sequence: u16, action: BlockAckAction) -> Frame<u32> {
    Frame::Action { duration_us: 314, ra, ta, sequence: Seq16(sequence), retry: false, action }
}

fn action_as_retry(frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::Action { duration_us, ra, ta, sequence, action, .. } => {
            Frame::Action { duration_us, ra, ta, sequence, retry: true, action }
        }
        other => other,
    }
}

fn addba_request(dialog_token: u8, start: u16, timeout_tu: u16) -> BlockAckAction {
    let (kind, start) = (BlockAckPolicy::Immediate, Seq16(start));
    BlockAckAction::AddbaRequest { dialog_token, policy: kind, tid: 0, buffer_size: 64, timeout_tu, start }
}

fn addba_response(dialog_token: u8, status: u16, buffer_size: u16, timeout_tu: u16) -> BlockAckAction {
    let kind = BlockAckPolicy::Immediate;
    BlockAckAction::AddbaResponse { dialog_token, status, policy: kind, tid: 0, buffer_size, timeout_tu }
}

fn positive_response(dialog_token: u8) -> BlockAckAction {
    addba_response(dialog_token, 0, 64, 0)
}

fn delba(side: BlockAckSide, reason: u16) -> BlockAckAction {
    BlockAckAction::Delba { side, tid: 0, reason }
}

/// A first transmission that is acknowledged by itself.
fn single_frame(sequence: u16, body: u32) -> Frame<u32> {
    Frame::Data { duration_us: 314, ra: PEER, ta: ME, sequence: Seq16(sequence), retry: false, body }
}

impl Station {
    /// The station's frame ended at this time, and the peer acknowledges it. Returns the end of the ACK.
    fn receive_ack_for(&mut self, ended_us: u64) -> u64 {
        self.receive_frame(ended_us + 10, ended_us + 10 + CTS_US, ack(ME));
        ended_us + 10 + CTS_US
    }

    /// The peer sends an action frame, which the station acknowledges. Returns the end of the ACK.
    fn receive_action(&mut self, at_us: u64, frame: Frame<u32>) -> u64 {
        let Frame::Action { action, ta, .. } = frame else { panic!("an action frame") };
        let end = at_us + 192 + 8 * action.frame_len() as u64;
        self.receive_frame(at_us, end, frame).expect_frame(end + 10, ack(ta));
        end + 10 + CTS_US
    }

    /// Sends a request and has it acknowledged. Returns the end of the ACK.
    fn expect_request(&mut self, at_us: u64, sequence: u16, action_sent: BlockAckAction) -> u64 {
        self.expect_frame(at_us, action(ME, PEER, sequence, action_sent));
        self.receive_ack_for(at_us + ADDBA_US)
    }

    /// Expects one MSDU that is sent alone and acknowledged. Returns the end of the ACK.
    fn expect_single_at(&mut self, at_us: u64, sequence: u16, body: u32) -> u64 {
        self.expect_frame(at_us, single_frame(sequence, body));
        let end = self.receive_ack_for(at_us + DATA_US);
        self.expect_event(Event::Sent(packet(body)));
        end
    }

    /// Expects the same as [`Station::expect_single_at`], at the end of the backoff.
    fn expect_single(&mut self, sequence: u16, body: u32) {
        let (at, transmission) = self.next_sent();
        assert_eq!(transmission.frame, single_frame(sequence, body));
        self.receive_ack_for(at.as_nanos() / 1000 + DATA_US);
        self.expect_event(Event::Sent(packet(body)));
    }

    /// Up to an agreement that stands, from 1000 on and with [`station`]'s backoffs; three packets wait. Returns when a
    /// burst may begin.
    fn establish_agreement(&mut self, says: BlockAckAction) -> u64 {
        self.offer(1000, [0, 1, 2].map(packet));
        let Frame::Action { action: asked, .. } = self.next_sent().1.frame else { panic!("a request") };
        assert!(matches!(asked, BlockAckAction::AddbaRequest { dialog_token: 1, .. }));
        let end = self.receive_ack_for(1000 + ADDBA_US);
        self.receive_action(end + 20, action(PEER, ME, 0, says)) + 50
    }

    /// The peer answers the BlockAckReq that was sent at this time. Returns the end of the BlockAck.
    fn receive_block_ack_for(&mut self, bar_at_us: u64, start: u16, bits: u64) -> u64 {
        let from = bar_at_us + BAR_US + 10;
        self.receive_frame(from, from + BA_US, block_ack(PEER, ME, start, bits));
        from + BA_US
    }

    /// The two of a burst of two arrive. Returns the end of the BlockAck.
    fn transfer_two(&mut self, at_us: u64, first: u16) -> u64 {
        self.expect_frame(at_us, qos_frame(ME, PEER, first, 1))
            .expect_frame(at_us + QOS_US + 10, qos_frame(ME, PEER, first + 1, 0));
        let asked_at = at_us + 2 * (QOS_US + 10);
        self.expect_frame(asked_at, block_ack_req(ME, PEER, first));
        self.receive_block_ack_for(asked_at, first, 0b11)
    }
}

#[test]
fn a_station_requests_an_agreement_before_its_first_burst() {
    let mut station = station();
    station.offer(1000, [0, 1, 2].map(packet));
    let asked = station.expect_request(1000, 0, addba_request(1, 0, 0));
    assert_eq!(asked, 1000 + REQUEST_EXCHANGE_US);
    let end = station.receive_action(asked + 20, action(PEER, ME, 0, positive_response(1)));
    station.expect_frame(end + 50, qos_frame(ME, PEER, 0, 2)).expect_no_event();
    let stats = station.mac.stats();
    assert_eq!((stats.actions_sent, stats.actions_failed, stats.actions_ignored), (1, 0, 0));
}

#[test]
fn a_request_is_sent_at_the_basic_rate() {
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
fn packets_are_acknowledged_singly_until_the_response() {
    let mut station = station();
    station.offer(1000, [0, 1, 2].map(packet));
    let asked = station.expect_request(1000, 0, addba_request(1, 0, 0));
    let end = station.expect_single_at(asked + 50, 1, 0);
    let end = station.receive_action(end + 20, action(PEER, ME, 0, positive_response(1)));
    // The request named 0 as the first, and it is: what went by itself has taken no number of the block's.
    let frame = |number: u16, body: u32, after| match qos_frame(ME, PEER, number, after) {
        Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack, .. } => {
            Frame::QosData { duration_us, ra, ta, sequence, retry, tid, ack, body }
        }
        other => other,
    };
    station.expect_frame(end + 50, frame(0, 1, 1)).expect_frame(end + 50 + QOS_US + 10, frame(1, 2, 0));
    station.expect_no_event();
}

#[test]
fn a_request_without_an_ack_is_repeated_like_data() {
    let mut station = Station::with_backoffs(addba(), &[(63, 3), (31, 0)]);
    station.offer(1000, [packet(0)]).expect_frame(1000, action(ME, PEER, 0, addba_request(1, 0, 0)));
    let (at, second) = station.next_sent();
    assert_eq!(second.frame, action_as_retry(action(ME, PEER, 0, addba_request(1, 0, 0))));
    // SIFS, slot and preamble for the ACK; then DIFS and the backoff.
    assert_eq!(at, us(1000 + ADDBA_US + 10 + 20 + 192 + 3 * 20));
    let end = at.as_nanos() / 1000 + ADDBA_US;
    station.receive_ack_for(end);
    assert_eq!((station.mac.stats().ack_timeouts, station.mac.cw()), (1, 31));
}

#[test]
fn a_response_replaces_the_ack_of_its_request() {
    let mut station = Station::with_backoffs(addba(), &[(63, 40)]);
    station.offer(1000, [packet(0)]).expect_frame(1000, action(ME, PEER, 0, addba_request(1, 0, 0)));
    station.receive_action(1800, action(PEER, ME, 0, positive_response(1)));
    assert_eq!(station.next_sent().1.frame, qos_frame(ME, PEER, 0, 0));
    assert_eq!(station.mac.stats().actions_sent, 1);
}

#[test]
fn an_unresponsive_receiver_gets_three_requests_and_then_a_pause() {
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
        station.receive_ack_for(at_us + transmission.airtime.as_nanos() / 1000);
    }
    let tokens: Vec<_> = requests.iter().map(|&(_, token)| token).collect();
    assert_eq!(tokens[..6], [1, 2, 3, 4, 5, 6]);
    let gap = |i: usize| requests[i + 1].0 - requests[i].0;
    // Each time at the first chance, which may be one frame and a backoff late.
    let chance = 5_000;
    for i in [0, 1, 3, 4] {
        assert!(
            (RESPONSE_TIMEOUT_US..RESPONSE_TIMEOUT_US + chance).contains(&(gap(i) - REQUEST_EXCHANGE_US)),
            "{}",
            gap(i)
        );
    }
    let pause = gap(2) - REQUEST_EXCHANGE_US - RESPONSE_TIMEOUT_US;
    assert!((PAUSE_US..PAUSE_US + 2 * chance).contains(&pause), "{pause}");
    assert!(body > 800, "nothing stalls: {body}");
}

#[test]
fn requests_and_packets_have_their_own_retry_counts() {
    let mut station = Station::new(addba());
    station.offer(1000, [packet(0)]).run(us(1_000_000));
    station.expect_event(Event::Failed(packet(0))).expect_no_event();
    let stats = station.mac.stats();
    assert_eq!((stats.actions_sent, stats.actions_failed, stats.data_sent), (7, 1, 7));
}

#[test]
fn after_a_refusal_frames_are_acknowledged_singly_until_the_next_request() {
    // Refused explicitly, and by a receiver without buffers.
    for says in [addba_response(1, STATUS_REQUEST_DECLINED, 64, 0), addba_response(1, 0, 0, 0)] {
        let mut station = Station::new(addba());
        let at = station.establish_agreement(says);
        let refused = at - 50 - CTS_US - 10;
        assert_eq!(station.mac.stats().actions_ignored, 0);
        for (sequence, body) in [(1, 0), (2, 1), (3, 2)] {
            station.expect_single(sequence, body);
        }
        station.offer(refused + PAUSE_US - 1, [packet(3)]).expect_single(4, 3);
        station.offer(refused + PAUSE_US + 10_000, [packet(4)]);
        assert_eq!(station.next_sent().1.frame, action(ME, PEER, 5, addba_request(2, 0, 0)));
    }
}

#[test]
fn a_response_to_another_request_is_ignored() {
    let of_another_tid = BlockAckAction::AddbaResponse {
        dialog_token: 1,
        status: 0,
        policy: BlockAckPolicy::Immediate,
        tid: 3,
        buffer_size: 64,
        timeout_tu: 0,
    };
    for says in [
        positive_response(2),
        positive_response(0),
        of_another_tid,
        delba(BlockAckSide::Recipient, REASON_TIMEOUT),
    ] {
        let mut station = station();
        let at = station.establish_agreement(says);
        station.expect_single_at(at, 1, 0);
        assert_eq!(station.mac.stats().actions_ignored, 1, "{says:?}");
    }
    // Nor is a response from another station, nor one without a request.
    let mut station = station();
    station.offer(1000, [packet(0)]);
    let asked = station.expect_request(1000, 0, addba_request(1, 0, 0));
    let end = station.receive_action(asked + 20, action(OTHER, ME, 0, positive_response(1)));
    let end = station.expect_single_at(end + 50, 1, 0);
    station.receive_action(end + 20_000, action(PEER, ME, 0, positive_response(1)));
    station.receive_action(end + 30_000, action(PEER, ME, 1, positive_response(1)));
    assert_eq!(station.mac.stats().actions_ignored, 2);
}

#[test]
fn the_receivers_buffer_bounds_the_burst() {
    let mut station = station();
    let at = station.establish_agreement(addba_response(1, 0, 2, 0));
    station.transfer_two(at, 0);
}

#[test]
fn a_request_is_acknowledged_and_answered_after_a_backoff() {
    let mut station = Station::with_backoffs(with_inactivity_timeout(50_000), &[(31, 6)]);
    let end = station.receive_action(1000, action(PEER, ME, 0, addba_request(9, 4094, 0)));
    // 50 ms are 48.8 TU.
    station.expect_frame(end + 50 + 6 * 20, action(ME, PEER, 0, addba_response(9, 0, 64, 49)));
    station.receive_ack_for(end + 170 + ADDBA_US);
    // The agreement begins where the request says: nothing waits for a BlockAckReq.
    station
        .receive_frame(10_000, 10_000 + QOS_US, qos_frame(PEER, ME, 4094, 1))
        .expect_event(deliver_event(4094));
    station
        .receive_frame(20_000, 20_000 + QOS_US, qos_frame(PEER, ME, 4096, 0))
        .expect_event(buffered_event(4096));
    station.receive_frame(30_000, 30_000 + BAR_US, block_ack_req(PEER, ME, 4094));
    station.expect_frame(30_010 + BAR_US, block_ack(ME, PEER, 4094, 0b101));
}

#[test]
fn unsupported_requests_are_declined() {
    let with = |kind, tid| BlockAckAction::AddbaRequest {
        dialog_token: 5,
        policy: kind,
        tid,
        buffer_size: 16,
        timeout_tu: 7,
        start: Seq16(0),
    };
    for (kind, tid) in [(BlockAckPolicy::Delayed, 0), (BlockAckPolicy::Immediate, 1)] {
        let mut station = Station::with_backoffs(addba(), &[(31, 0)]);
        let end = station.receive_action(1000, action(PEER, ME, 0, with(kind, tid)));
        let (dialog_token, status) = (5, STATUS_REQUEST_DECLINED);
        let answer = BlockAckAction::AddbaResponse {
            dialog_token,
            status,
            policy: kind,
            tid,
            buffer_size: 16,
            timeout_tu: 0,
        };
        station.expect_frame(end + 50, action(ME, PEER, 0, answer));
        station.receive_ack_for(end + 50 + ADDBA_US);
        station.receive_frame(10_000, 10_000 + QOS_US, qos_frame(PEER, ME, 0, 0)).expect_no_event();
        assert_eq!(station.mac.stats().without_agreement, 1);
    }
}

#[test]
fn a_repeated_request_is_acknowledged_and_answered_once() {
    let mut station = Station::with_backoffs(addba(), &[(31, 0)]);
    let request = action(PEER, ME, 7, addba_request(1, 0, 0));
    let end = station.receive_action(1000, request);
    let end = station.receive_action(end + 20, action_as_retry(request));
    station.expect_frame(end + 50, action(ME, PEER, 0, positive_response(1)));
    station.receive_ack_for(end + 50 + ADDBA_US);
    station.expect_silence_until(999_999);
    assert_eq!((station.mac.stats().duplicates, station.mac.stats().actions_sent), (1, 1));
}

#[test]
fn an_unacknowledged_response_is_dropped_and_the_agreement_stands() {
    let mut station = Station::new(addba());
    station.receive_action(1000, action(PEER, ME, 0, addba_request(1, 0, 0)));
    station.run(us(500_000)).sent.clear();
    assert_eq!((station.mac.stats().actions_sent, station.mac.stats().actions_failed), (7, 1));
    station
        .receive_frame(500_000, 500_000 + QOS_US, qos_frame(PEER, ME, 0, 0))
        .expect_event(deliver_event(0));
}

#[test]
fn a_block_without_an_agreement_is_dropped_with_a_delba() {
    let mut station = Station::with_backoffs(addba(), &[(31, 2)]);
    station.receive_frame(1000, 1000 + QOS_US, qos_frame(PEER, ME, 0, 0));
    // Still within the block: the NAV is for others, but SIFS is shorter than DIFS.
    station.receive_frame(3210, 3210 + BAR_US, block_ack_req(PEER, ME, 0));
    station.expect_frame(
        3210 + BAR_US + 50 + 2 * 20,
        action(ME, PEER, 0, delba(BlockAckSide::Recipient, REASON_UNKNOWN_BA)),
    );
    station.receive_ack_for(3210 + BAR_US + 90 + DELBA_US);
    station.expect_no_event().expect_silence_until(999_999);
    assert_eq!(station.mac.stats().without_agreement, 2);
}

#[test]
fn after_a_delba_the_station_requests_again_and_retransmits() {
    let mut station = Station::with_backoffs(addba(), &[(31, 0), (63, 31)]);
    let at = station.establish_agreement(positive_response(1));
    for (n, after) in [(0, 2), (1, 1), (2, 0)] {
        station.expect_frame(at + u64::from(n) * 2210, qos_frame(ME, PEER, n, after));
    }
    let bar_at = at + 3 * 2210;
    station.expect_frame(bar_at, block_ack_req(ME, PEER, 0));
    let over = delba(BlockAckSide::Recipient, REASON_UNKNOWN_BA);
    station.receive_action(bar_at + BAR_US + 300, action(PEER, ME, 1, over));
    assert!(
        matches!(station.next_sent().1.frame, Frame::Action { action, .. } if action == addba_request(2, 0, 0))
    );
    station.expect_no_event();
    assert_eq!(station.mac.pending_msdus().count(), 3);
}

#[test]
fn an_agreement_is_renewed_after_inactivity() {
    // 10 TU, from the recipient.
    let mut station = Station::with_backoffs(addba(), &[(31, 0); 3]);
    let at = station.establish_agreement(addba_response(1, 0, 64, 10));
    for (n, after) in [(0, 2), (1, 1), (2, 0)] {
        station.expect_frame(at + u64::from(n) * 2210, qos_frame(ME, PEER, n, after));
    }
    let bar_at = at + 3 * 2210;
    let heard =
        station.expect_frame(bar_at, block_ack_req(ME, PEER, 0)).receive_block_ack_for(bar_at, 0, 0b111);
    // Within the time; then as soon as it is over.
    station.offer(heard + 10_239, [packet(3)]).expect_frame(heard + 10_239, qos_frame(ME, PEER, 3, 0));
    let bar_at = heard + 10_239 + QOS_US + 10;
    let heard = station.expect_frame(bar_at, block_ack_req(ME, PEER, 3)).receive_block_ack_for(bar_at, 3, 1);
    station.offer(heard + 10_240, [packet(4)]);
    station.expect_frame(heard + 10_240, action(ME, PEER, 1, addba_request(2, 4, 0)));
}

#[test]
fn the_recipient_ends_an_inactive_agreement_and_delivers_buffered_msdus() {
    let mut station = Station::with_backoffs(with_inactivity_timeout(50_000), &[(31, 0); 3]);
    let end = station.receive_action(1000, action(PEER, ME, 0, addba_request(1, 0, 0)));
    station.expect_frame(end + 50, action(ME, PEER, 0, addba_response(1, 0, 64, 49)));
    station.receive_ack_for(end + 50 + ADDBA_US);
    station.receive_frame(10_000, 12_200, qos_frame(PEER, ME, 1, 0)).expect_event(buffered_event(1));
    station.run(us(62_199)).expect_no_event();
    station.expect_frame(62_200, action(ME, PEER, 1, delba(BlockAckSide::Recipient, REASON_TIMEOUT)));
    station.expect_event(deliver_buffered_event(1)).expect_no_event();
    station.receive_ack_for(62_200 + DELBA_US);
    // Another begins where the next request says.
    station.receive_action(70_000, action(PEER, ME, 1, addba_request(2, 5, 0)));
    let (at, answer) = station.next_sent();
    assert_eq!(answer.frame, action(ME, PEER, 2, addba_response(2, 0, 64, 49)));
    station.receive_ack_for(at.as_nanos() / 1000 + ADDBA_US);
    station
        .receive_frame(80_000, 82_200, qos_frame(PEER, ME, 5, 0))
        .expect_event(deliver_event(5))
        .expect_no_event();
}

#[test]
fn buffered_msdus_are_delivered_before_single_ones() {
    let agreed = |station: &mut Station| {
        let end = station.receive_action(1000, action(PEER, ME, 0, addba_request(1, 0, 0)));
        station.expect_frame(end + 50, action(ME, PEER, 0, positive_response(1)));
        station.receive_ack_for(end + 50 + ADDBA_US);
        station.receive_frame(10_000, 12_200, qos_frame(PEER, ME, 1, 0)).expect_event(buffered_event(1));
    };
    let drawing = || Station::with_backoffs(addba(), &[(31, 0); 2]);
    let mut station = drawing();
    agreed(&mut station);
    station
        .receive_frame(20_000, 20_000 + DATA_US, data(PEER, ME, 9))
        .expect_frame(20_010 + DATA_US, ack(PEER));
    station.expect_event(deliver_buffered_event(1)).expect_event(deliver_event(9));
    // A new request, and the sender's end of the agreement.
    for says in [addba_request(2, 7, 0), delba(BlockAckSide::Originator, 1)] {
        let mut station = drawing();
        agreed(&mut station);
        station.receive_action(20_000, action(PEER, ME, 1, says));
        station.expect_event(deliver_buffered_event(1)).expect_no_event();
        assert_eq!(station.mac.stats().actions_ignored, 0);
    }
    let mut station = drawing();
    agreed(&mut station);
    station.receive_frame(20_000, 22_200, as_retry(qos_frame(PEER, ME, 0, 0)));
    station.expect_event(deliver_event(0)).expect_event(deliver_buffered_event(1));
}

#[test]
fn a_response_goes_before_the_stations_own_data() {
    let mut station = Station::with_backoffs(addba(), &[(31, 3)]);
    station.receive_frame(1000, 1000 + ADDBA_US, action(PEER, ME, 0, addba_request(1, 0, 0)));
    station.offer(1000 + ADDBA_US + 5, [packet(0)]).expect_frame(1000 + ADDBA_US + 10, ack(PEER));
    let at = 1000 + ADDBA_US + 10 + CTS_US + 50 + 3 * 20;
    station.expect_frame(at, action(ME, PEER, 0, positive_response(1)));
    station.receive_ack_for(at + ADDBA_US);
    assert!(
        matches!(station.next_sent().1.frame, Frame::Action { action, .. } if action == addba_request(1, 0, 0))
    );
}

#[test]
fn a_station_without_block_ack_acknowledges_requests_without_response() {
    for config in [dot11b(), block_ack_config()] {
        let mut station = Station::new(config);
        station.receive_action(1000, action(PEER, ME, 0, addba_request(1, 0, 0)));
        station.expect_silence_until(999_999).expect_no_event();
        assert_eq!(station.mac.stats().actions_ignored, 1);
    }
}

#[test]
fn groups_get_no_requests() {
    let mut station = Station::new(addba());
    let group = Msdu { to: MacAddr::BROADCAST, ..packet(0) };
    station.send(1000, group);
    assert!(matches!(station.next_sent().1.frame, Frame::Data { .. }));
    station.run(us(99_999)).expect_event(Event::Sent(group)).expect_silence_until(999_999);
    let wishes = action(PEER, MacAddr::BROADCAST, 0, addba_request(1, 0, 0));
    station.receive_frame(1_000_000, 1_000_488, wishes).expect_silence_until(1_999_999);
}

#[test]
fn a_flood_of_requests_queues_at_most_64_responses() {
    let mut station = Station::new(addba());
    // So close to one another that the station never gets a word in.
    for n in 0..200 {
        let from = MacAddr::of_node(NodeId(10 + n));
        station.receive_action(
            1000 + u64::from(n) * (REQUEST_EXCHANGE_US + 20),
            action(from, ME, 0, addba_request(1, 0, 0)),
        );
    }
    station.run(us(60_000_000));
    assert_eq!(station.mac.stats().actions_failed, 64);
    assert_eq!(station.next_own(), None);
}

/// The whole set-up costs one request and one response with their ACKs, and for what it takes one frame or two by themselves.
#[test]
fn the_setup_has_negligible_cost_in_a_long_run() {
    let carried = |config: &Config| {
        let mut cell = Cell::one_way(config, 1500, 0.0);
        cell.run(Instant::from_secs(20));
        assert!(cell.received(1).iter().copied().eq(0..cell.delivered() as u32));
        (cell.delivered() as f64, cell.total(|s| s.actions_sent))
    };
    let ((before, none), (after, two)) = (carried(&block_ack_config()), carried(&addba()));
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
    fn despite_losses_packets_arrive_in_order_without_duplicates_unless_an_agreement_expires(
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
        let timeouts = cell.total(|s| s.agreements_expired) as usize;
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
