//! The kernel's own bridge, group memberships and neighbours.

use crate::handoff::hostile::many;
use crate::handoff::stream::Stream;
use crate::handoff::transfer::transfer;
use crate::handoff::world::{RADIO, STATIONS, World, print_uncaptured};
use hopline_core::Duration as Span;
use hopline_middlebox::handoff::{HandoffRule, Scheme, SignalSource};
use hopline_testkit::namespace::host::ip;
use hopline_testkit::streams::until;
use std::fs;
use std::time::{Duration, Instant};

pub(crate) fn no_packet_is_lost_between_two_radios() {
    let world = World::of_cables();
    let mut all = world.deployment(Scheme::Multicast, Span::from_millis(300));
    until("a first station", || world.default_route().is_some());
    let begun = Instant::now();
    let stream = Stream::run(&world, || begun.elapsed() > Duration::from_millis(3200));
    all.end();
    let handoffs = all.mobile.metric("handoffs");
    print_uncaptured(&format!(
        "over cables: {handoffs} handoffs, {:.1} ms the longest pause, {} of {} lost, {} twice",
        stream.longest_pause(),
        stream.lost().len(),
        stream.sent,
        stream.duplicates(),
    ));
    assert!(handoffs >= 8, "{handoffs}");
    stream.assert_complete("cables");
}

pub(crate) fn a_non_member_receives_nothing() {
    let world = World::of_cables();
    let home = world.home_agent(Scheme::Multicast);
    let mut stations = [0, 1].map(|number| world.station(number));
    let _mobile = world.mobile_host(|config| {
        (config.buffering_stations, config.decide) = (0, HandoffRule::Periodic(Span::from_secs(99)))
    });
    until("a first station", || world.default_route().is_some());
    let stream = Stream::run(&world, many(100));
    let mut tunnelled = stations.each_mut().map(|station| {
        station.end();
        station.metric("tunnelled_packets")
    });
    tunnelled.sort_unstable();
    stream.assert_complete("cables");
    assert_eq!(tunnelled, [0, stream.sent.into()]);
    drop(home);
}

pub(crate) fn a_radio_that_goes_down_is_left() {
    let world = World::of_cables();
    let _all = world.deployment(Scheme::Multicast, Span::from_secs(99));
    until("a first station", || world.default_route().is_some());
    let first =
        STATIONS.iter().position(|station| Some(station.to_string()) == world.default_route()).unwrap();
    let begun = Instant::now();
    let mut is_down = false;
    let stream = Stream::run(&world, || {
        if !is_down && begun.elapsed() > Duration::from_millis(300) {
            ip(&world.mobile, &format!("link set r{first} down"));
            is_down = true;
        }
        begun.elapsed() > Duration::from_millis(2200)
    });
    assert_eq!(world.default_route(), Some(STATIONS[1 - first].to_string()));
    assert_eq!(stream.arrived.last().unwrap().1, stream.sent - 1, "packets come again, to the end");
}

pub(crate) fn the_stronger_station_serves() {
    let world = World::of_cables();
    let _home = world.home_agent(Scheme::Multicast);
    let _stations = [0, 1].map(|number| world.station(number));
    let file = tempfile::NamedTempFile::new().unwrap();
    let hear = |dbm: [i32; 2]| {
        fs::write(&file, format!("{} {}\n{} {}\n", STATIONS[0], dbm[0], STATIONS[1], dbm[1])).unwrap();
    };
    hear([-60, -80]);
    let _mobile = world.mobile_host(|config| config.signals = SignalSource::File(file.path().into()));
    for (dbm, station) in [([-60, -80], 0), ([-80, -60], 1), ([-63, -60], 1), ([-50, -60], 0)] {
        hear(dbm);
        until("the stronger station", || world.default_route() == Some(STATIONS[station].to_string()));
    }
    let stream = Stream::run(&world, many(50));
    stream.assert_complete("cables");
}

/// A segment of 1460 bytes is too long for the tunnel: the home agent's kernel says so to the sender.
pub(crate) fn senders_reduce_packets_that_are_too_long_for_the_tunnel() {
    let world = World::of_cables();
    let mut all = world.deployment(Scheme::Multicast, Span::from_secs(99));
    until("a first station", || world.default_route().is_some());
    let transfer = transfer(&world, 1_000_000);
    all.end();
    assert_eq!(transfer.mss, 1480 - 52);
    assert_eq!(all.home.metric("too_long_packets"), 0);
}

/// The kernel drops the routes of an interface that goes down.
pub(crate) fn interfaces_that_were_down_are_used_again() {
    let world = World::of_cables();
    let _all = world.deployment(Scheme::Multicast, Span::from_secs(99));
    until("a first station", || world.default_route().is_some());
    let first =
        STATIONS.iter().position(|station| Some(station.to_string()) == world.default_route()).unwrap();
    for (host, interface) in [(&world.mobile, format!("r{first}")), (&world.stations[first], RADIO.into())] {
        ip(host, &format!("link set {interface} down"));
        ip(host, &format!("link set {interface} up"));
    }
    until("a route", || world.default_route().is_some());
    let begun = Instant::now();
    let stream = Stream::run(&world, || begun.elapsed() > Duration::from_millis(600));
    assert_eq!(stream.arrived.last().unwrap().1, stream.sent - 1, "packets come again, to the end");
}

/// One that was killed has removed neither its rules nor its routes.
pub(crate) fn rules_left_by_a_killed_station_do_not_interfere() {
    let world = World::of_cables();
    for station in &world.stations {
        ip(station, "route add blackhole default table 1021 metric 4294967295");
        ip(station, &format!("route add default dev {RADIO} table 1021"));
        ip(station, "rule add iif cell0 lookup 1021 priority 1021");
    }
    let _all = world.deployment(Scheme::Multicast, Span::from_secs(99));
    until("a first station", || world.default_route().is_some());
    let stream = Stream::run(&world, many(50));
    stream.assert_complete("cables");
}
