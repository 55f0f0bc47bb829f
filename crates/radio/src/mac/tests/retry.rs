//! Responses that do not come: when the station notices, how it retries, when it gives up; and how a receiver tells
//! a retry from news (802.11-2020 §10.3.2.9, §10.3.2.11, §10.3.2.14, §10.3.3, §10.3.4.4).

use super::*;

/// 500-byte frames in ns-2's preset too.
fn ns2() -> Config {
    Config { data_extra_bytes: 8, ..Config::ns2_wavelan() }
}

/// SIFS + slot + preamble.
const TIMEOUT_US: u64 = 10 + 20 + 192;
/// SIFS + CTS or ACK + 4 µs.
const NS2_TIMEOUT_US: u64 = 10 + 304 + 4;

#[test]
fn after_a_cts_timeout_backoff_begins_at_once_since_the_medium_has_been_idle() {
    let mut station = Station::with_backoffs(dot11b_with_rts(), &[(63, 11)]);
    station
        .send(1000, packet(0))
        .expect_frame(1000, rts(ME, PEER, 2830))
        .expect_silence_until(1352 + TIMEOUT_US - 1);
    assert_eq!(station.mac.stats().cts_timeouts, 0);
    station.expect_frame(1352 + TIMEOUT_US + 11 * 20, rts(ME, PEER, 2830));
    assert_eq!((station.mac.stats().cts_timeouts, station.mac.cw()), (1, 63));
}

#[test]
fn after_an_ack_timeout_backoff_begins_at_once_since_the_medium_has_been_idle() {
    let mut station = Station::with_backoffs(dot11b(), &[(63, 11)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    station.expect_frame(3192 + TIMEOUT_US + 11 * 20, as_retry(data(ME, PEER, 0)));
    assert_eq!((station.mac.stats().ack_timeouts, station.mac.stats().data_retries), (1, 1));
}

#[test]
fn a_backoff_of_no_slots_after_a_timeout_retries_at_the_timeout() {
    let mut station = Station::with_backoffs(dot11b_with_rts(), &[(63, 0)]);
    station
        .send(1000, packet(0))
        .expect_frame(1000, rts(ME, PEER, 2830))
        .expect_frame(1574, rts(ME, PEER, 2830));
}

#[test]
fn dot11a_timeouts() {
    let mut station = Station::with_backoffs(Config::dot11a(), &[(31, 3)]);
    // 500 bytes at 54 Mb/s: 96 µs. SIFS + slot + aPHY-RX-START-Delay = 16 + 9 + 20.
    station.send(1000, packet(0));
    assert_eq!(station.next_sent().0, us(1000));
    assert_eq!(station.next_sent().0, us(1000 + 96 + 45 + 3 * 9));
}

#[test]
fn ns2_waits_for_the_whole_response_and_counts_difs_from_there() {
    let mut station = Station::with_backoffs(ns2(), &[(31, 0), (63, 11)]);
    station.send(1000, packet(0)).expect_frame(1050, rts(ME, PEER, 2830));
    station.expect_frame(1402 + NS2_TIMEOUT_US + 50 + 11 * 20, rts(ME, PEER, 2830));
    let mut station = Station::with_backoffs(ns2(), &[(31, 0), (63, 11)]);
    station.send(1000, packet(0)).expect_frame(1050, rts(ME, PEER, 2830)).receive_frame(
        1412,
        1716,
        cts(ME, 2516),
    );
    station.expect_frame(1726, data(ME, PEER, 0));
    station.expect_frame(1726 + DATA_US + NS2_TIMEOUT_US + 50 + 11 * 20, rts(ME, PEER, 2830));
}

#[test]
fn a_response_that_has_begun_before_the_timeout_decides_at_its_end() {
    let mut station = Station::new(dot11b_with_rts());
    station.send(1000, packet(0)).expect_frame(1000, rts(ME, PEER, 2830));
    station.receive_frame(1573, 1877, cts(ME, 2516)).expect_frame(1887, data(ME, PEER, 0));
    station.receive_frame(4300, 4604, ack(ME)).expect_event(Event::Sent(packet(0)));
}

#[test]
fn another_frame_in_place_of_the_response_is_a_failure_at_its_end() {
    for other in [data(OTHER, PEER, 0), ack(OTHER), ack(ME), no_nav(data(OTHER, MacAddr::BROADCAST, 3))] {
        let mut station = Station::with_backoffs(dot11b_with_rts(), &[(63, 2)]);
        station
            .send(1000, packet(0))
            .expect_frame(1000, rts(ME, PEER, 2830))
            .receive_frame(1500, 2500, other);
        assert_eq!(station.mac.stats().cts_timeouts, 1);
        let idle = if let Frame::Data { duration_us: 314, .. } = other { 2814 } else { 2500 };
        station.expect_frame(idle + 50 + 2 * 20, rts(ME, PEER, 2830));
    }
}

fn no_nav(frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::Data { ra, ta, sequence, retry, body, .. } => {
            Frame::Data { duration_us: 0, ra, ta, sequence, retry, body }
        }
        other => other,
    }
}

#[test]
fn data_in_place_of_the_response_are_received_all_the_same() {
    let mut station = Station::with_backoffs(dot11b_with_rts(), &[(63, 2)]);
    station.send(1000, packet(0)).expect_frame(1000, rts(ME, PEER, 2830));
    station.receive_frame(1400, 3592, data(OTHER, ME, 8)).expect_frame(3602, ack(OTHER));
    station.expect_event(Event::Deliver { body: 8, from: OTHER, to: ME });
    station.expect_frame(3602 + 304 + 50 + 2 * 20, rts(ME, PEER, 2830));
}

#[test]
fn a_damaged_frame_in_place_of_the_response_is_a_failure_at_its_end_and_eifs_follows() {
    let mut station = Station::with_backoffs(dot11b(), &[(63, 2)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_damaged(3202, 3506);
    station.expect_frame(3506 + 364 + 2 * 20, as_retry(data(ME, PEER, 0)));
}

/// There is no PHY-RXSTART without a frame.
#[test]
fn energy_alone_does_not_prolong_the_wait() {
    let mut station = Station::with_backoffs(dot11b_with_rts(), &[(63, 2)]);
    station.send(1000, packet(0)).expect_frame(1000, rts(ME, PEER, 2830)).carrier(1400, RadioState::Sensing);
    station.expect_silence_until(1352 + TIMEOUT_US);
    assert_eq!(station.mac.stats().cts_timeouts, 1);
    station.carrier(9000, RadioState::Idle).expect_frame(9000 + 50 + 2 * 20, rts(ME, PEER, 2830));
}

#[test]
fn a_reception_that_yields_no_frame_ends_the_prolonged_wait() {
    let mut station = Station::with_backoffs(dot11b_with_rts(), &[(63, 2)]);
    station
        .send(1000, packet(0))
        .expect_frame(1000, rts(ME, PEER, 2830))
        .carrier(1400, RadioState::Receiving);
    station.expect_silence_until(4999).carrier(5000, RadioState::Idle);
    station.expect_frame(5000 + 50 + 2 * 20, rts(ME, PEER, 2830));
}

#[test]
fn in_ns2_other_frames_do_not_end_the_wait_for_a_response() {
    let mut station = Station::with_backoffs(ns2(), &[(31, 0), (63, 2)]);
    station.send(1000, packet(0)).expect_frame(1050, rts(ME, PEER, 2830)).receive_damaged(1410, 1500);
    assert_eq!(station.mac.stats().cts_timeouts, 0);
    // The response timer runs on to 1720; the EIFS of the damaged frame, as NAV, to 1864.
    station.expect_frame(1864 + 50 + 2 * 20, rts(ME, PEER, 2830));
    // What is still in the air at the timeout delays the next attempt, not the verdict.
    let mut station = Station::with_backoffs(ns2(), &[(31, 0), (63, 2)]);
    station
        .send(1000, packet(0))
        .expect_frame(1050, rts(ME, PEER, 2830))
        .carrier(1700, RadioState::Receiving);
    station.run(us(1720));
    assert_eq!(station.mac.stats().cts_timeouts, 1);
    station.receive(2004, Reception::Frame(cts(ME, 2516))).carrier(2004, RadioState::Idle);
    station.expect_frame(2004 + 50 + 2 * 20, rts(ME, PEER, 2830));
}

/// The contention window at each attempt until the station gives up, and the number of attempts by frame type.
fn give_up(config: Config, clear: bool) -> (Vec<u16>, u64, u64) {
    let mut station = Station::new(config);
    station.send(1000, packet(0));
    let mut windows = Vec::new();
    while station.events.is_empty() {
        let (at, transmission) = station.next_sent();
        windows.push(station.mac.cw());
        if clear && matches!(transmission.frame, Frame::Rts { .. }) {
            let from = at.as_nanos() / 1000 + RTS_US + 10;
            station.receive_frame(from, from + CTS_US, cts(ME, 2516));
            let (_, transmission) = station.next_sent();
            let Frame::Data { retry, .. } = transmission.frame else { panic!("{transmission:?}") };
            assert_eq!(retry, windows.len() > 1);
        }
        let next = station.next_own().unwrap();
        station.run(next);
        station.run(next + micros(NS2_TIMEOUT_US));
    }
    station.expect_event(Event::Failed(packet(0))).expect_no_event();
    assert!(station.mac.is_ready());
    assert_eq!(station.mac.cw(), 31, "the window is reset when the station gives up");
    assert_eq!(station.mac.stats().failed, 1);
    (windows, station.mac.stats().rts_sent, station.mac.stats().data_sent)
}

#[test]
fn the_seventh_rts_without_cts_is_the_last() {
    for config in [dot11b_with_rts(), ns2()] {
        assert_eq!(give_up(config, false), (vec![31, 63, 127, 255, 511, 1023, 1023], 7, 0));
    }
}

#[test]
fn the_fourth_long_frame_without_ack_is_the_last_and_each_cts_resets_the_short_count() {
    for config in [dot11b_with_rts(), ns2()] {
        assert_eq!(give_up(config, true), (vec![31, 63, 127, 255], 4, 4));
    }
}

#[test]
fn the_seventh_short_frame_without_ack_is_the_last() {
    assert_eq!(give_up(dot11b(), false), (vec![31, 63, 127, 255, 511, 1023, 1023], 0, 7));
}

#[test]
fn a_cts_between_resets_the_count_of_rts_but_not_the_window() {
    let mut station = Station::new(dot11b_with_rts());
    station.send(1000, packet(0));
    for _ in 0..6 {
        station.next_sent();
    }
    let (at, _) = station.next_sent();
    let from = at.as_nanos() / 1000 + RTS_US + 10;
    station.receive_frame(from, from + CTS_US, cts(ME, 2516)).next_sent();
    assert_eq!(station.mac.cw(), 1023);
    // Without the ACK seven more RTS follow.
    let mut rts_sent = 0;
    while station.events.is_empty() {
        let next = station.next_own().unwrap();
        station.step(next);
        rts_sent += station.sent.drain(..).count();
    }
    station.expect_event(Event::Failed(packet(0)));
    assert_eq!(rts_sent, 7);
}

#[test]
fn a_success_resets_the_window() {
    let mut station = Station::with_backoffs(dot11b(), &[(63, 1), (127, 2), (31, 5)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    station.expect_frame(3192 + TIMEOUT_US + 20, as_retry(data(ME, PEER, 0)));
    let second = 3192 + TIMEOUT_US + 20 + DATA_US + TIMEOUT_US + 40;
    station.expect_frame(second, as_retry(data(ME, PEER, 0)));
    let end = second + DATA_US + 10 + 304;
    station.receive_frame(second + DATA_US + 10, end, ack(ME)).expect_event(Event::Sent(packet(0)));
    assert_eq!(station.mac.cw(), 31);
    station.send(end, packet(1)).expect_frame(end + 50 + 5 * 20, data(ME, PEER, 1));
}

#[test]
fn a_backoff_follows_giving_up() {
    let mut config = dot11b();
    config.short_retry_limit = 1;
    let mut station = Station::with_backoffs(config, &[(31, 6)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0)).run(us(3192 + TIMEOUT_US));
    station.expect_event(Event::Failed(packet(0)));
    station.send(3192 + TIMEOUT_US, packet(1)).expect_frame(3192 + TIMEOUT_US + 6 * 20, data(ME, PEER, 1));
}

#[test]
fn each_msdu_has_its_own_counts_and_sequence_number() {
    let mut config = dot11b();
    config.short_retry_limit = 2;
    let mut station = Station::new(config);
    for body in 0..3 {
        station.send(100_000 * u64::from(body + 1), packet(body));
        assert_eq!(station.next_sent().1.frame, data(ME, PEER, body));
        assert_eq!(station.next_sent().1.frame, as_retry(data(ME, PEER, body)));
        station.run(us(100_000 * u64::from(body + 1) + 99_999)).expect_event(Event::Failed(packet(body)));
    }
}

#[test]
fn an_ack_after_the_retry_delivers_late() {
    let mut station = Station::with_backoffs(dot11b(), &[(63, 3)]);
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    let retry = 3192 + TIMEOUT_US + 60;
    station.expect_frame(retry, as_retry(data(ME, PEER, 0)));
    station
        .receive_frame(retry + DATA_US + 10, retry + DATA_US + 314, ack(ME))
        .expect_event(Event::Sent(packet(0)));
}

#[test]
fn a_duplicate_is_acknowledged_and_not_delivered() {
    for config in [dot11b(), ns2()] {
        let mut station = Station::new(config);
        station.receive_frame(1000, 3192, data(PEER, ME, 9)).expect_frame(3202, ack(PEER));
        station.expect_event(Event::Deliver { body: 9, from: PEER, to: ME });
        station
            .receive_frame(5000, 7192, as_retry(data(PEER, ME, 9)))
            .expect_frame(7202, ack(PEER))
            .expect_no_event();
        assert_eq!(station.mac.stats().duplicates, 1);
    }
}

#[test]
fn a_retry_of_a_frame_never_received_is_delivered() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 3192, as_retry(data(PEER, ME, 9))).expect_frame(3202, ack(PEER));
    station.expect_event(Event::Deliver { body: 9, from: PEER, to: ME });
    station.receive_frame(5000, 7192, as_retry(data(PEER, ME, 10))).expect_frame(7202, ack(PEER));
    station.expect_event(Event::Deliver { body: 10, from: PEER, to: ME });
}

#[test]
fn an_equal_number_without_the_retry_bit_or_from_another_sender_is_delivered() {
    let mut station = Station::new(dot11b());
    for (at, from, frame) in [
        (10_000, PEER, data(PEER, ME, 9)),
        (20_000, PEER, data(PEER, ME, 9)),
        (30_000, OTHER, as_retry(data(OTHER, ME, 9))),
    ] {
        station.receive_frame(at, at + 2192, frame).expect_frame(at + 2202, ack(from));
        station.expect_event(Event::Deliver { body: 9, from, to: ME });
    }
    assert_eq!(station.mac.stats().duplicates, 0);
}

#[test]
fn senders_are_distinguished_with_bounded_memory() {
    let mut station = Station::new(dot11b());
    for n in 0..500u32 {
        let from = MacAddr::of_node(NodeId(n + 10));
        let at = 10_000 * u64::from(n + 1);
        station.receive_frame(at, at + 2192, as_retry(data(from, ME, 1))).expect_frame(at + 2202, ack(from));
        station.expect_event(Event::Deliver { body: 1, from, to: ME });
    }
    // The sender heard last is still known.
    let last = MacAddr::of_node(NodeId(509));
    station
        .receive_frame(6_000_000, 6_002_192, as_retry(data(last, ME, 1)))
        .expect_frame(6_002_202, ack(last))
        .expect_no_event();
}
