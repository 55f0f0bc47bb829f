//! Outages in real time, with the default time limits.

use crate::drills::world::{BOTH, POLL_INTERVAL, TransportProtocol, World, now, processor};
use hopline_core::{Duration as Span, Instant as Moment};
use hopline_link::Emulation;
use hopline_tools::link::Setup;
use std::thread;
use std::time::Duration;

/// Default of `--silence` of `send` and `recv`.
const SILENCE: Duration = Duration::from_secs(120);
/// Shorter than the limit, just longer, and much longer; seconds.
const OUTAGES_S: [u64; 3] = [60, 140, 200];
/// Longest duration of a transfer after the end of an outage, seconds.
const BOUND_S: u64 = 45;

pub(crate) fn drill() {
    thread::scope(|scope| {
        for (speaks, seconds) in BOTH.into_iter().flat_map(|speaks| OUTAGES_S.map(|s| (speaks, s))) {
            thread::Builder::new()
                .spawn_scoped(scope, move || transfer_through_outage(speaks, seconds))
                .unwrap();
        }
    });
}

fn transfer_through_outage(speaks: TransportProtocol, seconds: u64) {
    let outage = (Moment::from_secs(2), Moment::from_secs(2 + seconds));
    let way = Emulation::delay(Span::from_millis(10))
        .with_rate(Some(2_000_000))
        .with_queue(Some(50))
        .with_blackouts(vec![outage]);
    let mut world = World::new(speaks, Setup::new(way.clone(), way, seconds), 2_000_000, SILENCE);
    world.start_receiver();
    world.start_sender();
    let pids = [&world.sender, &world.receiver].map(|child| child.as_ref().unwrap().id());
    let began = now();
    thread::sleep(Duration::from_secs(10));
    let before = pids.map(processor);
    thread::sleep(Duration::from_secs(seconds - 15));
    let used = pids.map(processor);
    for (used, before) in used.into_iter().zip(before) {
        let share = (used - before) / (seconds - 15) as f64;
        assert!(
            share < 0.02,
            "{speaks:?}: an outage of {seconds} s takes {:.1} % of a processor",
            share * 100.0
        );
    }
    let (status, said) = loop {
        let late = began.elapsed() > Duration::from_secs(2 + seconds + BOUND_S);
        assert!(!late, "{speaks:?}: an outage of {seconds} s: nothing moves afterwards");
        if let Some(ended) = world.sender_ended() {
            break ended;
        }
        thread::sleep(POLL_INTERVAL);
    };
    assert_eq!(status.code(), Some(0), "{speaks:?}: an outage of {seconds} s: {said}");
    let after = began.elapsed().as_secs_f64() - (2 + seconds) as f64;
    println!("{speaks:?}: an outage of {seconds} s: all is there {after:.1} s after its end");
    world.check("outage");
    world.check_receiver("outage");
}
