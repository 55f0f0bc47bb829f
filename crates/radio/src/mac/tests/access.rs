//! Medium access: DIFS, backoff, freezing, backoff after success (802.11-2020 §10.3.4.2, §10.3.4.3).

use super::*;
use crate::mac::config::FirstAccess;

/// ns-2 sends an RTS first; 2830 µs are CTS, data, ACK and three SIFS of [`packet`].
fn ns2() -> Config {
    Config { data_extra_bytes: 8, ..Config::ns2_wavelan() }
}

/// Delivers body 0 to the peer, beginning at 1000 µs: the ACK ends at 3506 µs.
fn with_success(station: &mut Station) -> &mut Station {
    station.send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    station.receive_frame(3202, 3506, ack(ME)).expect_event(Event::Sent(packet(0)))
}

#[test]
fn a_medium_idle_for_difs_is_accessed_at_once() {
    Station::new(dot11b()).send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
    Station::new(dot11b()).sense_energy(900, 950).send(1000, packet(0)).expect_frame(1000, data(ME, PEER, 0));
}

#[test]
fn a_medium_idle_for_less_is_accessed_once_difs_is_over() {
    Station::new(dot11b()).sense_energy(900, 980).send(990, packet(0)).expect_frame(1030, data(ME, PEER, 0));
    Station::new(dot11b()).send(0, packet(0)).expect_frame(50, data(ME, PEER, 0));
}

#[test]
fn a_medium_that_becomes_busy_within_difs_calls_for_backoff() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 3)]);
    station.sense_energy(900, 980).send(990, packet(0)).sense_energy(1020, 1100);
    station.expect_frame(1100 + 50 + 3 * 20, data(ME, PEER, 0));
}

#[test]
fn a_busy_medium_calls_for_backoff() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 5)]);
    station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
    station.expect_frame(2000 + 50 + 5 * 20, data(ME, PEER, 0));
}

#[test]
fn a_reserved_medium_calls_for_backoff() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 5)]);
    station.receive_frame(1000, 1352, rts(OTHER, PEER, 3000)).send(1500, packet(0));
    station.expect_frame(4352 + 50 + 5 * 20, data(ME, PEER, 0));
}

#[test]
fn a_backoff_of_no_slots_ends_with_difs() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 0)]);
    station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
    station.expect_frame(2050, data(ME, PEER, 0));
}

#[test]
fn the_largest_backoff_is_cw_by_the_standard_and_one_less_in_ns2() {
    let longest = |config: Config| {
        let mut latest = 0;
        for run in 0..400 {
            let stream = RandomStream::new(1, run, NodeId(0), Purpose::Backoff);
            let mut station = Station { mac: Mac::new(config.clone(), ME, stream), ..Station::new(dot11b()) };
            station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
            latest = latest.max((station.next_sent().0 - us(2050)).as_micros() / 20);
        }
        latest
    };
    assert_eq!((longest(dot11b()), longest(ns2())), (31, 30));
}

#[test]
fn ns2_draws_a_backoff_on_an_idle_medium_too() {
    let mut station = Station::with_backoffs(ns2(), &[(31, 4)]);
    station.send(1000, packet(0)).expect_frame(1000 + 50 + 4 * 20, rts(ME, PEER, 2830));
    Station::with_backoffs(ns2(), &[(31, 0)]).send(1000, packet(0)).expect_frame(1050, rts(ME, PEER, 2830));
}

#[test]
fn a_frozen_backoff_resumes_with_what_whole_slots_left() {
    for (busy_at, left) in [(2050, 5), (2069, 5), (2070, 4), (2097, 3), (2149, 1)] {
        let mut station = Station::with_backoffs(dot11b(), &[(31, 5)]);
        station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
        station.sense_energy(busy_at, 3000).expect_frame(3050 + left * 20, data(ME, PEER, 0));
    }
}

#[test]
fn a_medium_busy_within_difs_earns_no_slot_and_difs_starts_over() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 5)]);
    station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
    for n in 0..10 {
        station.sense_energy(2049 + 100 * n, 2100 + 100 * n);
    }
    station.expect_frame(3000 + 50 + 5 * 20, data(ME, PEER, 0));
}

#[test]
fn slots_add_up_over_several_pauses() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 7)]);
    station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
    // 2, then 4 slots pass; what had begun of the next is lost each time.
    station.sense_energy(2050 + 2 * 20 + 19, 3000).sense_energy(3050 + 4 * 20 + 1, 4000);
    station.expect_frame(4050 + 20, data(ME, PEER, 0));
}

#[test]
fn the_nav_freezes_backoff_and_difs_follows_it() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 6)]);
    station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
    station.receive_frame(2095, 2447, rts(OTHER, PEER, 3000));
    station.expect_frame(5447 + 50 + 4 * 20, data(ME, PEER, 0));
}

#[test]
fn answering_an_rts_freezes_backoff_until_difs_after_the_exchange() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 6)]);
    station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
    station.receive_frame(2095, 2447, rts(PEER, ME, 2830)).expect_frame(2457, cts(PEER, 2516));
    station.receive_frame(2771, 2771 + DATA_US, data(PEER, ME, 0)).expect_frame(4973, ack(PEER));
    station.expect_frame(4973 + CTS_US + 50 + 4 * 20, data(ME, PEER, 0));
}

/// Neither can sense the other in time: what both start in the same slot collides (802.11-2020 §10.3.7, aSlotTime).
#[test]
fn a_signal_that_begins_as_backoff_ends_is_not_sensed() {
    for late in [false, true] {
        let mut station = Station::with_backoffs(dot11b(), &[(31, 5)]);
        station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
        if late {
            station.run(us(2150));
        }
        station.carrier(2150, RadioState::Receiving).expect_frame(2150, data(ME, PEER, 0));
    }
}

#[test]
fn a_signal_that_begins_just_before_backoff_ends_is_sensed() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 5)]);
    station.carrier(900, RadioState::Sensing).send(1000, packet(0)).carrier(2000, RadioState::Idle);
    station.carrier(2149, RadioState::Receiving).expect_silence_until(9000);
}

#[test]
fn a_backoff_follows_every_success() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 7)]);
    with_success(&mut station).send(3506, packet(1)).expect_frame(3506 + 50 + 7 * 20, data(ME, PEER, 1));
}

#[test]
fn a_frame_that_arrives_during_the_backoff_after_a_success_uses_the_rest_of_it() {
    for config in [dot11b(), Config { rts_threshold_bytes: 2347, ..ns2() }] {
        let always = config.first_access != Config::dot11b().first_access;
        let draws = if always { vec![(31, 0), (31, 7)] } else { vec![(31, 7)] };
        let mut station = Station::with_backoffs(config, &draws);
        let start = if always { 950 } else { 1000 };
        station.send(start, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_frame(
            3202,
            3506,
            ack(ME),
        );
        station.send(3690, packet(1)).expect_frame(3506 + 50 + 7 * 20, data(ME, PEER, 1));
    }
}

#[test]
fn by_the_standard_a_frame_after_the_backoff_is_sent_at_once() {
    for at in [3696, 3697, 9000] {
        let mut station = Station::with_backoffs(dot11b(), &[(31, 7)]);
        with_success(&mut station).send(at, packet(1)).expect_frame(at, data(ME, PEER, 1));
    }
}

#[test]
fn in_ns2_a_frame_after_the_backoff_draws_again() {
    let mut station =
        Station::with_backoffs(Config { rts_threshold_bytes: 2347, ..ns2() }, &[(31, 0), (31, 7), (31, 2)]);
    station.send(950, packet(0)).expect_frame(1000, data(ME, PEER, 0)).receive_frame(3202, 3506, ack(ME));
    station.send(3700, packet(1)).expect_frame(3700 + 50 + 2 * 20, data(ME, PEER, 1));
}

#[test]
fn the_backoff_after_a_success_freezes_like_any_other() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 7)]);
    with_success(&mut station).sense_energy(3506 + 50 + 3 * 20 + 5, 5000).send(5010, packet(1));
    station.expect_frame(5000 + 50 + 4 * 20, data(ME, PEER, 1));
}

#[test]
fn an_expired_backoff_cannot_freeze() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 7)]);
    with_success(&mut station)
        .sense_energy(4000, 5000)
        .send(6000, packet(1))
        .expect_frame(6000, data(ME, PEER, 1));
}

#[test]
fn responding_to_another_station_leaves_no_backoff_pending() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1000 + DATA_US, data(PEER, ME, 0)).expect_frame(3202, ack(PEER));
    station.send(3300, packet(0)).expect_silence_until(3505);
    // The medium was busy with the own ACK when the frame arrived, so that it has a backoff to wait for.
    let (at, _) = station.next_sent();
    assert!(at >= us(3556), "{at}");
}

fn ns3() -> Config {
    Config { first_access: FirstAccess::IdleOnArrival, ..dot11b() }
}

#[test]
fn in_ns3_a_relay_forwards_difs_after_its_ack_without_backoff() {
    let mut station = Station::new(ns3());
    station.receive_frame(1000, 3192, data(PEER, ME, 0)).send(3192, packet(0)).expect_frame(3202, ack(PEER));
    station.expect_frame(3506 + 50, data(ME, PEER, 0));
    // By the standard the medium is busy with the exchange.
    let mut station = Station::with_backoffs(dot11b(), &[(31, 4)]);
    station.receive_frame(1000, 3192, data(PEER, ME, 0)).send(3192, packet(0)).expect_frame(3202, ack(PEER));
    station.expect_frame(3506 + 50 + 4 * 20, data(ME, PEER, 0));
}

#[test]
fn in_ns3_a_frame_that_found_the_medium_idle_never_draws_for_its_first_attempt() {
    let mut station = Station::new(ns3());
    station.sense_energy(900, 980).send(990, packet(0)).sense_energy(1020, 1100).sense_energy(1149, 1200);
    station.expect_frame(1250, data(ME, PEER, 0));
}

#[test]
fn in_ns3_a_frame_that_arrives_while_the_medium_is_busy_draws() {
    let mut station = Station::with_backoffs(ns3(), &[(31, 4)]);
    station.receive_frame(1000, 3192, data(PEER, ME, 0)).expect_frame(3202, ack(PEER)).send(3300, packet(0));
    station.expect_frame(3506 + 50 + 4 * 20, data(ME, PEER, 0));
    let mut station = Station::with_backoffs(ns3(), &[(31, 4)]);
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 3000)).send(1500, packet(0));
    station.expect_frame(4352 + 50 + 4 * 20, data(ME, PEER, 0));
}

#[test]
fn in_ns3_a_frame_that_arrives_during_the_backoff_after_a_success_uses_the_rest_of_it() {
    let mut station = Station::with_backoffs(ns3(), &[(31, 7)]);
    with_success(&mut station).send(3690, packet(1)).expect_frame(3506 + 50 + 7 * 20, data(ME, PEER, 1));
}
