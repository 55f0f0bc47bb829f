//! Frame exchanges to the microsecond: interframe spaces, airtimes, duration fields, responses.

use super::*;
use crate::mac::config::{AckPolicy, Tap};

/// 1500 bytes as ns-2's TCP packets and as the largest of Ethernet.
fn large(body: u32) -> Msdu<u32> {
    Msdu { body, len_bytes: 1500, to: PEER }
}

fn group(body: u32) -> Msdu<u32> {
    Msdu { body, len_bytes: 464, to: MacAddr::BROADCAST }
}

fn no_duration(frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::Data { ra, ta, sequence, retry, body, .. } => {
            Frame::Data { duration_us: 0, ra, ta, sequence, retry, body }
        }
        other => other,
    }
}

fn with_duration(duration_us: u16, frame: Frame<u32>) -> Frame<u32> {
    match frame {
        Frame::Data { ra, ta, sequence, retry, body, .. } => {
            Frame::Data { duration_us, ra, ta, sequence, retry, body }
        }
        other => other,
    }
}

#[test]
fn dot11b_exchange_of_the_sender() {
    let mut station = Station::new(dot11b_with_rts());
    station.send(1000, packet(0)).expect_frame(1000, rts(ME, PEER, 3 * 10 + 304 + 2192 + 304));
    station.receive_frame(1362, 1666, cts(ME, 2516)).expect_frame(1676, data(ME, PEER, 0)).expect_no_event();
    station
        .receive_frame(3878, 4182, ack(ME))
        .expect_event(Event::Sent(packet(0)))
        .expect_silence_until(99_999);
    assert_eq!((station.mac.stats().rts_sent, station.mac.stats().data_sent), (1, 1));
}

#[test]
fn dot11b_exchange_of_the_receiver() {
    let mut station = Station::new(dot11b_with_rts());
    station.receive_frame(1000, 1352, rts(PEER, ME, 2830)).expect_frame(1362, cts(PEER, 2830 - 10 - 304));
    station.receive_frame(1676, 3868, data(PEER, ME, 0)).expect_frame(3878, ack(PEER));
    station.expect_event(Event::Deliver { body: 0, from: PEER, to: ME }).expect_silence_until(99_999);
}

#[test]
fn dot11b_at_11_mbps_rounds_airtimes_up_to_a_microsecond() {
    let mut station = Station::new(Config { rts_threshold_bytes: 0, ..Config::dot11b() });
    // 500 bytes take 192 µs and 363.636… µs, which counts as 364.
    station.send(1000, packet(0)).expect_frame(1000, rts(ME, PEER, 30 + 304 + 556 + 304));
    station.receive_frame(1362, 1666, cts(ME, 880));
    let (at, transmission) = station.next_sent();
    assert_eq!((at, transmission.airtime), (us(1676), Duration::from_micros(556)));
    assert_eq!((transmission.rate, transmission.len_bytes), (Rate::Cck11, 500));
}

#[test]
fn dot11a_exchange_of_both_sides() {
    let config = Config { rts_threshold_bytes: 0, ..Config::dot11a() };
    let mut sender = Station::new(config.clone());
    // 1500 bytes at 54 Mb/s: 244 µs; RTS 52 µs, CTS and ACK 44 µs at 6 Mb/s.
    let msdu = Msdu { len_bytes: 1464, ..packet(0) };
    sender.send(1000, msdu).expect_frame(1000, rts(ME, PEER, 3 * 16 + 44 + 244 + 44));
    sender.receive_frame(1068, 1112, cts(ME, 320)).expect_frame(1128, with_duration(60, data(ME, PEER, 0)));
    sender.receive_frame(1388, 1432, ack(ME)).expect_event(Event::Sent(msdu));

    let mut receiver = Station::new(config);
    receiver.receive_frame(1000, 1052, rts(PEER, ME, 380)).expect_frame(1068, cts(PEER, 320));
    receiver.receive_frame(1128, 1372, data(PEER, ME, 0)).expect_frame(1388, ack(PEER));
}

#[test]
fn ns2_exchange_of_both_sides() {
    let mut sender = Station::with_backoffs(Config::ns2_wavelan(), &[(31, 0)]);
    sender.send(1000, large(0)).expect_frame(1050, rts(ME, PEER, 30 + 304 + 6328 + 304));
    sender.receive_frame(1412, 1716, cts(ME, 6652)).expect_frame(1726, data(ME, PEER, 0));
    sender.receive_frame(8064, 8368, ack(ME)).expect_event(Event::Sent(large(0)));

    let mut receiver = Station::new(Config::ns2_wavelan());
    receiver.receive_frame(1050, 1402, rts(PEER, ME, 6966)).expect_frame(1412, cts(PEER, 6652));
    receiver.receive_frame(1726, 8054, data(PEER, ME, 0)).expect_frame(8064, ack(PEER));
    receiver.expect_event(Event::Deliver { body: 0, from: PEER, to: ME });
}

#[test]
fn ns2_airtime_of_a_tcp_ack_packet() {
    let mut station = Station::with_backoffs(Config::ns2_wavelan(), &[(31, 0)]);
    station
        .send(1000, Msdu { len_bytes: 40, ..packet(0) })
        .expect_frame(1050, rts(ME, PEER, 30 + 304 + 488 + 304));
}

#[test]
fn frames_above_the_rts_threshold_use_rts() {
    let config = Config { rts_threshold_bytes: 500, ..dot11b() };
    Station::new(config.clone()).send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    let longer = Msdu { len_bytes: 465, ..packet(0) };
    Station::new(config).send(1000, longer).expect_frame(1000, rts(ME, PEER, 30 + 304 + 2196 + 304));
}

#[test]
fn a_group_frame_goes_once_at_the_basic_rate_without_rts_and_duration() {
    let mut station = Station::with_backoffs(dot11b_with_rts(), &[(31, 3)]);
    station.send(1000, group(0));
    let (at, transmission) = station.next_sent();
    assert_eq!((at, transmission.frame), (us(1000), no_duration(data(ME, MacAddr::BROADCAST, 0))));
    assert_eq!((transmission.rate, transmission.airtime), (Rate::Dsss1, micros(192 + 4000)));
    station.expect_no_event().run(us(5192));
    station.expect_event(Event::Sent(group(0)));
    // The same backoff as after an acknowledged frame.
    station
        .send(5192, group(1))
        .expect_frame(5192 + 50 + 3 * 20, no_duration(data(ME, MacAddr::BROADCAST, 1)));
}

#[test]
fn a_group_frame_is_delivered_and_not_answered() {
    let mut station = Station::new(dot11b());
    let frame = no_duration(data(PEER, MacAddr::BROADCAST, 7));
    station.receive_frame(1000, 5192, frame).expect_silence_until(99_999);
    station.expect_event(Event::Deliver { body: 7, from: PEER, to: MacAddr::BROADCAST }).expect_no_event();
    // It is no part of duplicate detection either.
    station.receive_frame(100_000, 104_192, as_retry(frame));
    station.expect_event(Event::Deliver { body: 7, from: PEER, to: MacAddr::BROADCAST });
}

#[test]
fn no_ack_sends_once_without_rts_and_completes_at_once() {
    let config = Config { ack_policy: AckPolicy::NoAck, ..dot11b_with_rts() };
    let mut station = Station::with_backoffs(config, &[(31, 2)]);
    station.send(1000, packet(0)).expect_frame(1000, no_duration(data(ME, PEER, 0))).expect_no_event();
    station.run(us(1000 + DATA_US)).expect_event(Event::Sent(packet(0)));
    station.send(3200, packet(1)).expect_frame(3192 + 50 + 2 * 20, no_duration(data(ME, PEER, 1)));
}

#[test]
fn no_ack_does_not_answer_data() {
    let mut station = Station::new(Config { ack_policy: AckPolicy::NoAck, ..dot11b() });
    station.receive_frame(1000, 3192, no_duration(data(PEER, ME, 4))).expect_silence_until(99_999);
    station.expect_event(Event::Deliver { body: 4, from: PEER, to: ME });
}

#[test]
fn sequence_numbers_count_msdus_modulo_4096() {
    let mut station = Station::new(Config { ack_policy: AckPolicy::NoAck, ..dot11b() });
    for n in 0..4100u32 {
        station.send(10_000 * u64::from(n), packet(n));
        let (_, transmission) = station.next_sent();
        let Frame::Data { sequence, .. } = transmission.frame else { panic!("{transmission:?}") };
        assert_eq!(u32::from(sequence.0), n % 4096);
    }
}

#[test]
fn frames_between_others_are_reported_to_a_promiscuous_station_only() {
    let overheard = Event::Overheard { body: 5, from: PEER, to: OTHER };
    let mut station = Station::new(Config { tap: Tap::Promiscuous, ..dot11b() });
    station
        .receive_frame(1000, 3192, data(PEER, OTHER, 5))
        .expect_event(overheard)
        .expect_silence_until(99_999);
    station
        .receive_frame(100_000, 100_304, ack(PEER))
        .receive_frame(200_000, 200_352, rts(PEER, OTHER, 0))
        .expect_no_event();
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 3192, data(PEER, OTHER, 5)).expect_no_event().expect_silence_until(99_999);
}

#[test]
fn an_unexpected_cts_or_ack_changes_nothing() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1304, cts(ME, 500)).receive_frame(2000, 2304, ack(ME));
    station.send(3000, packet(0)).expect_frame(3000, data(ME, PEER, 0)).expect_no_event();
    // Nor does a CTS end the wait for an ACK well.
    station.receive_frame(5202, 5506, cts(ME, 500)).expect_no_event();
    assert_eq!(station.mac.stats().ack_timeouts, 1);
}

#[test]
fn a_station_in_an_exchange_does_not_answer_an_rts() {
    for config in [dot11b_with_rts(), Config::ns2_wavelan()] {
        let mut station = Station::new(config);
        station.receive_frame(1000, 3192, data(PEER, ME, 0));
        // Only a receiver gone wrong could hear this within SIFS; the ACK goes out all the same.
        station.receive(3195, Reception::Frame(rts(OTHER, ME, 2830))).expect_frame(3202, ack(PEER));
        station.expect_silence_until(99_999);
    }
}

#[test]
fn ns2_answers_no_rts_while_it_waits_for_data_it_has_cleared() {
    let mut station = Station::new(Config::ns2_wavelan());
    // The CTS ends at 1716, the wait for 6328 µs of data at 1716 + 10 + 6328 + 4.
    station.receive_frame(1050, 1402, rts(PEER, ME, 6966)).expect_frame(1412, cts(PEER, 6652));
    station.receive_frame(7000, 7352, rts(OTHER, ME, 6966)).expect_silence_until(8058);
    station.receive_frame(8100, 8452, rts(OTHER, ME, 6966)).expect_frame(8462, cts(OTHER, 6652));
    // By the standard the CTS binds only the other stations.
    let mut station = Station::new(dot11b_with_rts());
    station.receive_frame(1000, 1352, rts(PEER, ME, 2830)).expect_frame(1362, cts(PEER, 2516));
    station.receive_frame(1700, 2052, rts(OTHER, ME, 2830)).expect_frame(2062, cts(OTHER, 2516));
}

#[test]
fn ns2_counts_difs_from_the_end_of_the_wait_for_data() {
    let mut station = Station::with_backoffs(Config::ns2_wavelan(), &[(31, 3)]);
    station.receive_frame(1050, 1402, rts(PEER, ME, 6966)).expect_frame(1412, cts(PEER, 6652));
    station.send(2000, large(0)).expect_frame(8058 + 50 + 3 * 20, rts(ME, PEER, 6966));
    // By the standard backoff goes on DIFS after the CTS.
    let mut station = Station::with_backoffs(dot11b_with_rts(), &[(31, 3)]);
    station.receive_frame(1000, 1352, rts(PEER, ME, 2830)).expect_frame(1362, cts(PEER, 2516));
    station.send(1400, packet(0)).expect_frame(1666 + 50 + 3 * 20, rts(ME, PEER, 2830));
}
