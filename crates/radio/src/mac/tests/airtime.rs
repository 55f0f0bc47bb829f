//! The five radio-state clocks in scripted scenes.

use super::*;
use crate::mac::Airtime;

#[test]
fn every_microsecond_is_counted_in_one_of_five_states() {
    let mut station = Station::new(dot11b());
    // 1000 idle, 352 receiving, 648 NAV.
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 648));
    // 1000 idle, 500 sensing, 2192 receiving, 10 idle, 304 transmitting.
    station
        .sense_energy(3000, 3500)
        .receive_frame(3500, 5692, data(PEER, ME, 0))
        .expect_frame(5702, ack(PEER));
    // 1994 idle, then 2192 transmitting: a signal that begins and ends meanwhile costs nothing more.
    station.send(8000, packet(0)).expect_frame(8000, data(ME, PEER, 0)).sense_energy(8100, 8200);
    // One that outlasts the own frame is sensed from its end on.
    station.carrier(9000, RadioState::Sensing).carrier(10_292, RadioState::Idle);
    let expected = Airtime {
        transmitting: micros(304 + 2192),
        receiving: micros(352 + 2192),
        sensing: micros(500 + 100),
        nav: micros(648),
        idle: micros(1000 + 1000 + 10 + 1994 + 8),
        addressed: micros(2192),
    };
    assert_eq!(station.mac.airtime(us(10_300)), expected);
}

#[test]
fn reading_the_totals_does_not_change_them() {
    let mut station = Station::new(dot11b());
    station.receive_frame(1000, 1352, rts(PEER, OTHER, 648));
    for t in 1352..2500 {
        let total = station.mac.airtime(us(t));
        assert_eq!(sum(&total), micros(t));
        assert_eq!(total.nav, micros((t - 1352).min(648)));
    }
}

#[test]
fn a_nav_over_several_idle_periods_is_counted_in_each() {
    let mut station = Station::new(dot11b());
    station
        .receive_frame(1000, 1352, rts(PEER, OTHER, 5000))
        .sense_energy(2000, 2500)
        .sense_energy(6000, 7000);
    let total = station.mac.airtime(us(8000));
    assert_eq!((total.nav, total.sensing), (micros(648 + 3500), micros(1500)));
    assert_eq!(sum(&total), micros(8000));
}

pub(super) fn sum(total: &Airtime) -> Duration {
    total.transmitting + total.receiving + total.sensing + total.nav + total.idle
}
