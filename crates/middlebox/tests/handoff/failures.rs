//! Stations and home agents that die.

use crate::handoff::stream::Stream;
use crate::handoff::world::{BEACON, Deployment, Reception, STATIONS, World, print_uncaptured};
use hopline_core::Duration as Span;
use hopline_middlebox::handoff::{HandoffRule, Scheme};
use hopline_testkit::streams::until;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn a_host_whose_station_dies_switches_to_the_other_one() {
    let world = World::new(Reception::CurrentStation);
    let (home, stations) = (world.home_agent(Scheme::Multicast), [0, 1].map(|number| world.station(number)));
    let mobile = world.mobile_host(|config| {
        (config.lifetime, config.decide) =
            (BEACON.saturating_mul(3), HandoffRule::Periodic(Span::from_secs(3600)));
    });
    let mut all = Deployment { home, stations, mobile };
    until("a first station", || world.air.station().is_some());
    let first = world.air.station().unwrap();
    let (begun, mut killed) = (Instant::now(), None);
    let stream = Stream::run(&world, || {
        if killed.is_none() && begun.elapsed() > Duration::from_millis(300) {
            all.stations[first].end();
            killed = Some(Instant::now());
        }
        begun.elapsed() > Duration::from_millis(1500)
    });
    let pause_ms = stream.longest_pause();
    print_uncaptured(&format!(
        "a station dies: {pause_ms:.0} ms without a packet, beacons every {} ms",
        BEACON.as_millis()
    ));
    assert_eq!(world.air.station(), Some(1 - first));
    let last = stream.arrived.last().unwrap().1;
    assert_eq!(last, stream.sent - 1, "packets come again, to the end");
    assert_eq!(world.default_route().as_deref(), Some(&*STATIONS[1 - first].to_string()));
    all.end();
    assert_eq!(world.default_route(), None, "it goes with the host");
    assert_eq!(all.stations[1 - first].metric("taken_over"), 1);
}

pub(crate) fn a_host_without_a_station_waits_for_its_return() {
    let world = World::new(Reception::CurrentStation);
    let mut all = world.deployment(Scheme::Multicast, Span::from_secs(3600));
    until("a first station", || world.default_route().is_some());
    all.stations.iter_mut().for_each(hopline_testkit::namespace::RunningService::end);
    until("no station", || world.default_route().is_none());
    all.stations[1] = world.station(1);
    until("a station", || world.default_route() == Some(STATIONS[1].to_string()));
    let stream = Stream::run(&world, crate::handoff::hostile::many(100));
    stream.assert_complete("failures");
}

pub(crate) fn hosts_register_again_after_the_home_agent_was_restarted() {
    thread::scope(|scope| {
        for scheme in [Scheme::Multicast, Scheme::Registration] {
            scope.spawn(move || kill_home_agent(scheme));
        }
    });
}

fn kill_home_agent(scheme: Scheme) {
    let world = World::new(Reception::CurrentStation);
    let Deployment { mut home, stations: _stations, mobile: _mobile } =
        world.deployment(scheme, Span::from_secs(3600));
    until("a first station", || world.air.station().is_some());
    let (begun, mut died, mut back) = (Instant::now(), None, None);
    let stream = Stream::run(&world, || {
        if died.is_none() && begun.elapsed() > Duration::from_millis(300) {
            home.end();
            died = Some(Instant::now());
        } else if back.is_none() && begun.elapsed() > Duration::from_millis(600) {
            home = world.home_agent(scheme);
            back = Some(Instant::now());
        }
        begun.elapsed() > Duration::from_millis(1500)
    });
    let resumed = stream.arrived.iter().find(|(at, _)| Some(*at) > back).unwrap().0;
    let took = resumed.duration_since(back.unwrap()).as_secs_f64() * 1e3;
    print_uncaptured(&format!("a home agent starts again, {scheme:?}: packets come after {took:.0} ms"));
    assert_eq!(stream.arrived.last().unwrap().1, stream.sent - 1, "packets come again, to the end");
}
