//! Path with a smaller MTU than it seems, and with losses.

use crate::drills::world::{BOTH, POLL_INTERVAL, TransportProtocol, World, now};
use hopline_core::Duration as Span;
use hopline_link::Emulation;
use hopline_tools::link::Setup;
use std::thread;
use std::time::Duration;

/// Longest duration of a transfer of 1 MB, which once hung.
const BOUND: Duration = Duration::from_secs(60);

pub(crate) fn drill() {
    BOTH.into_iter().for_each(transfer);
}

fn transfer(speaks: TransportProtocol) {
    let way = Emulation::delay(Span::from_millis(10))
        .with_rate(Some(10_000_000))
        .with_queue(Some(50))
        .with_loss(0.02);
    let setup = Setup { path_mtu: Some(1400), ..Setup::new(way.clone(), way, 1) };
    let mut world = World::new(speaks, setup, 1_000_000, Duration::from_secs(120));
    let began = now();
    world.start_receiver();
    world.start_sender();
    let (status, said) = loop {
        assert!(began.elapsed() < BOUND, "{speaks:?} hangs");
        if let Some(ended) = world.sender_ended() {
            break ended;
        }
        thread::sleep(POLL_INTERVAL);
    };
    assert_eq!(status.code(), Some(0), "{speaks:?}: {said}");
    let too_long = world.link.stats().all_drops().too_long;
    println!(
        "{speaks:?}: 1 MB past a router with an MTU of 1400: {:.1} s, {too_long} packets too long",
        began.elapsed().as_secs_f64()
    );
    world.check("a small MTU");
    world.check_receiver("a small MTU");
}
