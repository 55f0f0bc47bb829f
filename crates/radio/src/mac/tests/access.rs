//! Medium access: DIFS, backoff, freezing, backoff after success (802.11-2020 §10.3.4.2, §10.3.4.3).

use super::*;
use crate::mac::config::FirstAccess;

/// ns-2 sends an RTS first; 2830 µs are CTS, data, ACK and three SIFS of [`packet`].
fn ns2() -> Config {
    Config { data_extra_bytes: 8, ..Config::ns2_wavelan() }
}

/// Delivers body 0 to the peer, beginning at 1000 µs: the ACK ends at 3506 µs.
fn after_a_success(station: &mut Station) -> &mut Station {
    station.send(1000, packet(0)).sends(1000, data(ME, PEER, 0));
    station.hears(3202, 3506, ack(ME)).reports(Event::Sent(packet(0)))
}

#[test]
fn a_medium_idle_for_difs_is_accessed_at_once() {
    Station::new(dot11b()).send(1000, packet(0)).sends(1000, data(ME, PEER, 0));
    Station::new(dot11b()).senses(900, 950).send(1000, packet(0)).sends(1000, data(ME, PEER, 0));
}

#[test]
fn a_medium_idle_for_less_is_accessed_once_difs_is_over() {
    Station::new(dot11b()).senses(900, 980).send(990, packet(0)).sends(1030, data(ME, PEER, 0));
    Station::new(dot11b()).send(0, packet(0)).sends(50, data(ME, PEER, 0));
}

#[test]
fn a_medium_that_becomes_busy_within_difs_calls_for_backoff() {
    let mut station = Station::drawing(dot11b(), &[(31, 3)]);
    station.senses(900, 980).send(990, packet(0)).senses(1020, 1100);
    station.sends(1100 + 50 + 3 * 20, data(ME, PEER, 0));
}

#[test]
fn a_busy_medium_calls_for_backoff() {
    let mut station = Station::drawing(dot11b(), &[(31, 5)]);
    station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
    station.sends(2000 + 50 + 5 * 20, data(ME, PEER, 0));
}

#[test]
fn a_reserved_medium_calls_for_backoff() {
    let mut station = Station::drawing(dot11b(), &[(31, 5)]);
    station.hears(1000, 1352, rts(OTHER, PEER, 3000)).send(1500, packet(0));
    station.sends(4352 + 50 + 5 * 20, data(ME, PEER, 0));
}

#[test]
fn a_backoff_of_no_slots_ends_with_difs() {
    let mut station = Station::drawing(dot11b(), &[(31, 0)]);
    station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
    station.sends(2050, data(ME, PEER, 0));
}

#[test]
fn the_largest_backoff_is_cw_by_the_standard_and_one_less_in_ns2() {
    let longest = |config: Config| {
        let mut latest = 0;
        for run in 0..400 {
            let stream = Stream::new(1, run, NodeId(0), Purpose::Backoff);
            let mut station = Station { mac: Mac::new(config.clone(), ME, stream), ..Station::new(dot11b()) };
            station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
            latest = latest.max((station.next_sent().0 - us(2050)).as_micros() / 20);
        }
        latest
    };
    assert_eq!((longest(dot11b()), longest(ns2())), (31, 30));
}

#[test]
fn ns2_draws_a_backoff_on_an_idle_medium_too() {
    let mut station = Station::drawing(ns2(), &[(31, 4)]);
    station.send(1000, packet(0)).sends(1000 + 50 + 4 * 20, rts(ME, PEER, 2830));
    Station::drawing(ns2(), &[(31, 0)]).send(1000, packet(0)).sends(1050, rts(ME, PEER, 2830));
}

#[test]
fn a_frozen_backoff_resumes_with_what_whole_slots_left() {
    for (busy_at, left) in [(2050, 5), (2069, 5), (2070, 4), (2097, 3), (2149, 1)] {
        let mut station = Station::drawing(dot11b(), &[(31, 5)]);
        station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
        station.senses(busy_at, 3000).sends(3050 + left * 20, data(ME, PEER, 0));
    }
}

#[test]
fn a_medium_busy_within_difs_earns_no_slot_and_difs_starts_over() {
    let mut station = Station::drawing(dot11b(), &[(31, 5)]);
    station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
    for n in 0..10 {
        station.senses(2049 + 100 * n, 2100 + 100 * n);
    }
    station.sends(3000 + 50 + 5 * 20, data(ME, PEER, 0));
}

#[test]
fn slots_add_up_over_several_pauses() {
    let mut station = Station::drawing(dot11b(), &[(31, 7)]);
    station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
    // 2, then 4 slots pass; what had begun of the next is lost each time.
    station.senses(2050 + 2 * 20 + 19, 3000).senses(3050 + 4 * 20 + 1, 4000);
    station.sends(4050 + 20, data(ME, PEER, 0));
}

#[test]
fn the_nav_freezes_backoff_and_difs_follows_it() {
    let mut station = Station::drawing(dot11b(), &[(31, 6)]);
    station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
    station.hears(2095, 2447, rts(OTHER, PEER, 3000));
    station.sends(5447 + 50 + 4 * 20, data(ME, PEER, 0));
}

#[test]
fn answering_an_rts_freezes_backoff_until_difs_after_the_exchange() {
    let mut station = Station::drawing(dot11b(), &[(31, 6)]);
    station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
    station.hears(2095, 2447, rts(PEER, ME, 2830)).sends(2457, cts(PEER, 2516));
    station.hears(2771, 2771 + DATA_US, data(PEER, ME, 0)).sends(4973, ack(PEER));
    station.sends(4973 + CTS_US + 50 + 4 * 20, data(ME, PEER, 0));
}

/// Neither can sense the other in time: what both start in the same slot collides (802.11-2020 §10.3.7, aSlotTime).
#[test]
fn a_signal_that_begins_as_backoff_ends_is_not_noticed() {
    for late in [false, true] {
        let mut station = Station::drawing(dot11b(), &[(31, 5)]);
        station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
        if late {
            station.run(us(2150));
        }
        station.carrier(2150, Activity::Receiving).sends(2150, data(ME, PEER, 0));
    }
}

#[test]
fn a_signal_that_begins_just_before_backoff_ends_is_noticed() {
    let mut station = Station::drawing(dot11b(), &[(31, 5)]);
    station.carrier(900, Activity::Sensing).send(1000, packet(0)).carrier(2000, Activity::Quiet);
    station.carrier(2149, Activity::Receiving).is_silent_until(9000);
}

#[test]
fn a_backoff_follows_every_success() {
    let mut station = Station::drawing(dot11b(), &[(31, 7)]);
    after_a_success(&mut station).send(3506, packet(1)).sends(3506 + 50 + 7 * 20, data(ME, PEER, 1));
}

#[test]
fn a_frame_that_arrives_during_the_backoff_after_a_success_uses_the_rest_of_it() {
    for config in [dot11b(), Config { rts_threshold_bytes: 2347, ..ns2() }] {
        let always = config.first_access != Config::dot11b().first_access;
        let draws = if always { vec![(31, 0), (31, 7)] } else { vec![(31, 7)] };
        let mut station = Station::drawing(config, &draws);
        let start = if always { 950 } else { 1000 };
        station.send(start, packet(0)).sends(1000, data(ME, PEER, 0)).hears(3202, 3506, ack(ME));
        station.send(3690, packet(1)).sends(3506 + 50 + 7 * 20, data(ME, PEER, 1));
    }
}

#[test]
fn a_frame_that_arrives_after_it_goes_at_once_by_the_standard() {
    for at in [3696, 3697, 9000] {
        let mut station = Station::drawing(dot11b(), &[(31, 7)]);
        after_a_success(&mut station).send(at, packet(1)).sends(at, data(ME, PEER, 1));
    }
}

#[test]
fn a_frame_that_arrives_after_it_draws_again_in_ns2() {
    let mut station =
        Station::drawing(Config { rts_threshold_bytes: 2347, ..ns2() }, &[(31, 0), (31, 7), (31, 2)]);
    station.send(950, packet(0)).sends(1000, data(ME, PEER, 0)).hears(3202, 3506, ack(ME));
    station.send(3700, packet(1)).sends(3700 + 50 + 2 * 20, data(ME, PEER, 1));
}

#[test]
fn the_backoff_after_a_success_freezes_like_any_other() {
    let mut station = Station::drawing(dot11b(), &[(31, 7)]);
    after_a_success(&mut station).senses(3506 + 50 + 3 * 20 + 5, 5000).send(5010, packet(1));
    station.sends(5000 + 50 + 4 * 20, data(ME, PEER, 1));
}

#[test]
fn a_backoff_that_has_run_out_leaves_nothing_to_freeze() {
    let mut station = Station::drawing(dot11b(), &[(31, 7)]);
    after_a_success(&mut station).senses(4000, 5000).send(6000, packet(1)).sends(6000, data(ME, PEER, 1));
}

#[test]
fn no_backoff_of_its_own_is_pending_after_answering_another() {
    let mut station = Station::new(dot11b());
    station.hears(1000, 1000 + DATA_US, data(PEER, ME, 0)).sends(3202, ack(PEER));
    station.send(3300, packet(0)).is_silent_until(3505);
    // The medium was busy with the own ACK when the frame arrived, so that it has a backoff to wait for.
    let (at, _) = station.next_sent();
    assert!(at >= us(3556), "{at}");
}

fn ns3() -> Config {
    Config { first_access: FirstAccess::IdleOnArrival, ..dot11b() }
}

#[test]
fn in_ns3_a_relay_passes_on_what_it_receives_difs_after_its_ack_without_backoff() {
    let mut station = Station::new(ns3());
    station.hears(1000, 3192, data(PEER, ME, 0)).send(3192, packet(0)).sends(3202, ack(PEER));
    station.sends(3506 + 50, data(ME, PEER, 0));
    // By the standard the medium is busy with the exchange.
    let mut station = Station::drawing(dot11b(), &[(31, 4)]);
    station.hears(1000, 3192, data(PEER, ME, 0)).send(3192, packet(0)).sends(3202, ack(PEER));
    station.sends(3506 + 50 + 4 * 20, data(ME, PEER, 0));
}

#[test]
fn in_ns3_a_frame_that_found_the_medium_idle_never_draws_for_its_first_attempt() {
    let mut station = Station::new(ns3());
    station.senses(900, 980).send(990, packet(0)).senses(1020, 1100).senses(1149, 1200);
    station.sends(1250, data(ME, PEER, 0));
}

#[test]
fn in_ns3_a_frame_that_arrives_while_the_medium_is_busy_draws() {
    let mut station = Station::drawing(ns3(), &[(31, 4)]);
    station.hears(1000, 3192, data(PEER, ME, 0)).sends(3202, ack(PEER)).send(3300, packet(0));
    station.sends(3506 + 50 + 4 * 20, data(ME, PEER, 0));
    let mut station = Station::drawing(ns3(), &[(31, 4)]);
    station.hears(1000, 1352, rts(PEER, OTHER, 3000)).send(1500, packet(0));
    station.sends(4352 + 50 + 4 * 20, data(ME, PEER, 0));
}

#[test]
fn in_ns3_a_frame_that_arrives_during_the_backoff_after_a_success_uses_the_rest_of_it() {
    let mut station = Station::drawing(ns3(), &[(31, 7)]);
    after_a_success(&mut station).send(3690, packet(1)).sends(3506 + 50 + 7 * 20, data(ME, PEER, 1));
}
