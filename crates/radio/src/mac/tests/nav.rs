//! Virtual carrier sense and what follows a frame that could not be decoded (802.11-2020 §10.3.2.3.7, §10.3.2.4).

use super::*;
use crate::mac::config::{NavReset, Reservation};

fn ns2() -> Config {
    Config { data_extra_bytes: 8, ..Config::ns2_wavelan() }
}

#[test]
fn the_duration_of_every_frame_between_others_sets_the_nav() {
    for frame in [rts(PEER, OTHER, 700), cts(OTHER, 700), Frame::Ack { duration_us: 700, ra: OTHER }] {
        let mut station = Station::new(dot11b());
        station.receive_frame(1000, 1300, frame);
        assert_eq!(station.mac.nav_until(), us(2000));
    }
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 3192, data(PEER, OTHER, 0));
    assert_eq!(station.mac.nav_until(), us(3192 + 314));
}

#[test]
fn frames_for_the_station_itself_do_not_set_the_nav() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1352, rts(PEER, ME, 2830)).expect_frame(1362, cts(PEER, 2516));
    station.receive_frame(1676, 3868, data(PEER, ME, 0)).expect_frame(3878, ack(PEER)).receive_frame(
        9000,
        9304,
        cts(ME, 500),
    );
    assert_eq!(station.mac.nav_until(), Instant::ZERO);
}

#[test]
fn the_nav_never_shrinks() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 9000)).receive_frame(1362, 1666, cts(PEER, 10));
    station.receive_frame(2000, 2304, ack(OTHER)).receive_damaged(2400, 2500);
    assert_eq!(station.mac.nav_until(), us(10_352));
}

/// 802.11-2020 §9.2.4.2: with bit 15 set the field is no duration.
#[test]
fn a_duration_field_beyond_32767_is_not_a_duration() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 32_768)).receive_frame(
        1400,
        1704,
        cts(PEER, u16::MAX),
    );
    assert_eq!(station.mac.nav_until(), Instant::ZERO);
    station.receive_frame(2000, 2352, rts(PEER, OTHER, 32_767));
    assert_eq!(station.mac.nav_until(), us(2352 + 32_767));
}

#[test]
fn by_the_standard_no_cts_is_given_while_the_nav_is_set() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 2000)).receive_frame(3000, 3351, rts(PEER, ME, 2830));
    station.expect_silence_until(9999);
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 2000)).receive_frame(3000, 3352, rts(PEER, ME, 2830));
    station.expect_frame(3362, cts(PEER, 2516));
}

#[test]
fn ns2_checks_nav_and_carrier_when_the_cts_is_due() {
    // The NAV ends within the SIFS before the CTS.
    let mut station = Station::new(ns2());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 2010)).receive_frame(3000, 3352, rts(PEER, ME, 2830));
    station.expect_frame(3362, cts(PEER, 2516));
    let mut station = Station::new(ns2());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 2011)).receive_frame(3000, 3352, rts(PEER, ME, 2830));
    station.expect_silence_until(99_999);
    // The carrier becomes busy within that SIFS.
    let mut station = Station::new(ns2());
    station
        .receive_frame(3000, 3352, rts(PEER, ME, 2830))
        .carrier(3361, RadioState::Receiving)
        .expect_silence_until(99_999);
    // By the standard it does not matter any more.
    let mut station = Station::new(dot11b());
    station.receive_frame(3000, 3352, rts(PEER, ME, 2830)).carrier(3361, RadioState::Receiving);
    station.expect_frame(3362, cts(PEER, 2516));
}

#[test]
fn an_ack_is_sent_whatever_nav_and_carrier_say() {
    for config in [dot11b(), ns2()] {
        let mut station = Station::new(config);
        station.receive_frame(1000, 1352, rts(PEER, OTHER, 30_000)).receive_frame(
            3000,
            5192,
            data(PEER, ME, 0),
        );
        station.carrier(5195, RadioState::Receiving).expect_frame(5202, ack(PEER));
    }
}

#[test]
fn by_the_standard_data_follow_a_cts_whatever_nav_and_carrier_say() {
    let mut station = Station::new(dot11b_with_rts());
    station.send(1000, packet(0)).expect_frame(1000, rts(ME, PEER, 2830)).receive_frame(
        1362,
        1666,
        cts(ME, 2516),
    );
    station.carrier(1670, RadioState::Receiving).expect_frame(1676, data(ME, PEER, 0));
}

#[test]
fn ns2_contends_again_with_a_doubled_window_when_data_may_not_follow_a_cts() {
    let mut station = Station::with_backoffs(ns2(), &[(31, 0), (63, 9)]);
    station.send(1000, packet(0)).expect_frame(1050, rts(ME, PEER, 2830)).receive_frame(
        1412,
        1716,
        cts(ME, 2516),
    );
    station.sense_energy(1720, 2000).expect_frame(2000 + 50 + 9 * 20, rts(ME, PEER, 2830));
    assert_eq!(station.mac.stats().cts_timeouts, 0, "it is no failed attempt");
    assert_eq!(station.mac.cw(), 63);
}

#[test]
fn ns2_contends_again_when_a_captured_frame_has_set_the_nav_before_data() {
    let mut station = Station::with_backoffs(ns2(), &[(31, 0), (63, 9)]);
    station
        .send(1000, packet(0))
        .expect_frame(1050, rts(ME, PEER, 2830))
        .carrier(1412, RadioState::Receiving);
    station.run_before(us(1500)).signal(Signal::Captured { until: us(1600) });
    station.receive(1716, Reception::Frame(cts(ME, 2516))).carrier(1716, RadioState::Idle);
    station.expect_frame(1600 + 364 + 50 + 9 * 20, rts(ME, PEER, 2830));
}

#[test]
fn eifs_takes_the_place_of_difs_after_a_frame_that_could_not_be_decoded() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 2)]);
    station.carrier(1000, RadioState::Receiving).send(1100, packet(0)).receive(2000, Reception::Errored);
    station.carrier(2000, RadioState::Idle).expect_frame(2000 + 364 + 2 * 20, data(ME, PEER, 0));
    // Without pending backoff likewise.
    Station::new(dot11b())
        .receive_damaged(1000, 2000)
        .send(2100, packet(0))
        .expect_frame(2364, data(ME, PEER, 0));
    Station::new(dot11b())
        .receive_damaged(1000, 2000)
        .send(2364, packet(0))
        .expect_frame(2364, data(ME, PEER, 0));
}

#[test]
fn eifs_of_dot11a() {
    let mut station = Station::new(Config::dot11a());
    let (at, _) = station.receive_damaged(1000, 2000).send(2001, packet(0)).next_sent();
    assert_eq!(at, us(2000 + 94));
}

#[test]
fn eifs_begins_when_the_medium_becomes_idle() {
    let mut station = Station::new(dot11b());
    station.carrier(1000, RadioState::Receiving).receive(2000, Reception::Errored);
    station.carrier(2000, RadioState::Sensing).carrier(5000, RadioState::Idle);
    station.send(5001, packet(0)).expect_frame(5364, data(ME, PEER, 0));
}

#[test]
fn energy_during_eifs_neither_ends_nor_restarts_it() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 0)]);
    station
        .receive_damaged(1000, 2000)
        .send(2010, packet(0))
        .sense_energy(2100, 2150)
        .expect_frame(2364, data(ME, PEER, 0));
    let mut station = Station::with_backoffs(dot11b(), &[(31, 0)]);
    station
        .receive_damaged(1000, 2000)
        .send(2010, packet(0))
        .sense_energy(2100, 2350)
        .expect_frame(2400, data(ME, PEER, 0));
}

#[test]
fn a_correct_frame_ends_eifs() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 2)]);
    station.receive_damaged(1000, 2000).send(2001, packet(0)).receive_frame(2010, 2314, ack(OTHER));
    station.expect_frame(2314 + 50 + 2 * 20, data(ME, PEER, 0));
}

#[test]
fn eifs_and_nav_run_side_by_side() {
    let mut station = Station::with_backoffs(dot11b(), &[(31, 2)]);
    station
        .receive_frame(1000, 1352, rts(PEER, OTHER, 1000))
        .receive_damaged(1400, 2000)
        .send(2100, packet(0));
    station.expect_frame(2352 + 50 + 2 * 20, data(ME, PEER, 0));
    let mut station = Station::with_backoffs(dot11b(), &[(31, 2)]);
    station
        .receive_frame(1000, 1352, rts(PEER, OTHER, 900))
        .receive_damaged(1400, 2000)
        .send(2100, packet(0));
    station.expect_frame(2364 + 2 * 20, data(ME, PEER, 0));
}

#[test]
fn by_the_standard_an_rts_is_answered_during_eifs() {
    let mut station = Station::new(dot11b());
    station
        .receive_damaged(1000, 2000)
        .receive_frame(2010, 2362, rts(PEER, ME, 2830))
        .expect_frame(2372, cts(PEER, 2516));
}

#[test]
fn in_ns2_eifs_is_a_nav_that_difs_follows() {
    let mut station = Station::with_backoffs(ns2(), &[(31, 2)]);
    station
        .receive_damaged(1000, 2000)
        .send(2001, packet(0))
        .expect_frame(2000 + 364 + 50 + 2 * 20, rts(ME, PEER, 2830));
    assert_eq!(station.mac.nav_until(), us(2364));
}

#[test]
fn in_ns2_a_correct_frame_does_not_end_eifs_and_an_rts_is_not_answered_during_it() {
    let mut station = Station::with_backoffs(ns2(), &[(31, 2)]);
    station.receive_damaged(1000, 2000).send(2001, packet(0)).receive_frame(2005, 2309, ack(OTHER));
    station.expect_frame(2364 + 50 + 2 * 20, rts(ME, PEER, 2830));
    let mut station = Station::new(ns2());
    station
        .receive_damaged(1000, 2000)
        .receive_frame(2001, 2353, rts(PEER, ME, 2830))
        .expect_silence_until(99_999);
    let mut station = Station::new(ns2());
    station
        .receive_damaged(1000, 2000)
        .receive_frame(2002, 2354, rts(PEER, ME, 2830))
        .expect_frame(2364, cts(PEER, 2516));
}

#[test]
fn in_ns2_a_captured_frame_sets_the_nav_to_eifs_after_its_end() {
    let masked = |config: Config, frame: Frame<u32>| {
        let mut station = Station::new(config);
        station
            .carrier(1000, RadioState::Receiving)
            .run_before(us(1100))
            .signal(Signal::Captured { until: us(2000) });
        station.receive(1352, Reception::Frame(frame)).carrier(1352, RadioState::Idle);
        station
    };
    let mut station = masked(ns2(), rts(PEER, ME, 2830));
    station.expect_silence_until(9999);
    assert_eq!(station.mac.nav_until(), us(2000 + 364));
    masked(ns2(), data(PEER, ME, 0)).expect_frame(1362, ack(PEER));
    let mut station = masked(dot11b(), rts(PEER, ME, 2830));
    station.expect_frame(1362, cts(PEER, 2516));
    assert_eq!(station.mac.nav_until(), Instant::ZERO);
}

fn resetting() -> Config {
    Config { nav_reset: NavReset::AfterSilentRts, ..dot11b() }
}

/// 2·SIFS + CTS + preamble + 2·slot.
const NAV_TIMEOUT_US: u64 = 20 + 304 + 192 + 40;

#[test]
fn the_nav_of_an_rts_that_nothing_follows_is_dropped() {
    let mut station = Station::with_backoffs(resetting(), &[(31, 4)]);
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 9000)).send(1400, packet(0));
    station.expect_frame(1352 + NAV_TIMEOUT_US + 50 + 4 * 20, data(ME, PEER, 0));
    let mut station = Station::with_backoffs(dot11b(), &[(31, 4)]);
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 9000)).send(1400, packet(0));
    station.expect_frame(10_352 + 50 + 4 * 20, data(ME, PEER, 0));
}

#[test]
fn a_station_with_nothing_to_send_drops_the_nav_too() {
    let mut station = Station::new(resetting());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 9000)).run(us(1352 + NAV_TIMEOUT_US));
    station.receive_frame(2000, 2352, rts(PEER, ME, 2830)).expect_frame(2362, cts(PEER, 2516));
}

#[test]
fn the_nav_stays_when_a_frame_follows_the_rts() {
    let mut station = Station::new(resetting());
    station
        .receive_frame(1000, 1352, rts(PEER, OTHER, 9000))
        .receive_frame(1676, 3868, data(PEER, OTHER, 0))
        .run(us(9999));
    assert_eq!(station.mac.nav_until(), us(10_352));
    // Also when energy hid its beginning.
    let mut station = Station::new(resetting());
    station.carrier(1000, RadioState::Receiving).receive(1352, Reception::Frame(rts(PEER, OTHER, 9000)));
    station.carrier(1352, RadioState::Sensing).carrier(1400, RadioState::Receiving).run(us(9999));
    assert_eq!(station.mac.nav_until(), us(10_352));
}

#[test]
fn only_the_nav_that_the_rts_itself_set_is_dropped() {
    let mut station = Station::new(resetting());
    station
        .receive_frame(1000, 1304, cts(OTHER, 9000))
        .receive_frame(1400, 1752, rts(PEER, OTHER, 3000))
        .run(us(9999));
    assert_eq!(station.mac.nav_until(), us(10_304));
}

#[test]
fn reservation_presets_differ() {
    assert_eq!(dot11b().reservation, Reservation::Standard);
    assert_eq!(ns2().reservation, Reservation::MediumIdle);
}
