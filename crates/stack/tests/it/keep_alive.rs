//! Peers that vanish from open connections.

use crate::world::{World, config, modern, pattern};
use hopline_core::{Duration, Instant};
use hopline_link::Emulation;
use hopline_stack::{ConnectionId, EndReason, KeepAlive, Stack, StackConfig};
use hopline_transport::tcp::State;

fn keep_alive() -> KeepAlive {
    KeepAlive::DEFAULT
        .with_idle(Duration::from_secs(60))
        .with_interval(Duration::from_secs(10))
        .with_probes(3)
}

fn world(keep_alive: Option<KeepAlive>) -> World {
    let of = |of| StackConfig { keep_alive, ..config(of, modern()) };
    World::new([of(0), of(1)], &Emulation::delay(Duration::from_millis(10)))
}

/// Lets time pass for the first stack alone, while all its packets are lost: to the end of the connection, or for a day. Returns the end, the
/// instant, and the packets.
fn run_without_peer(world: &mut World, id: ConnectionId) -> (Option<EndReason>, Instant, usize) {
    let stack = &mut world.stacks[0];
    let (mut now, mut sent) = (world.now, 0);
    let mut drain = |stack: &mut Stack, now| {
        while stack.poll_transmit(now, &mut Vec::new()) {
            sent += 1;
        }
    };
    drain(stack, now);
    while stack.status(id).unwrap().end.is_none() {
        match stack.poll_timeout() {
            Some(due) if due < world.now + Duration::from_secs(86_400) => now = now.max(due),
            _ => break,
        }
        stack.handle_timeout(now);
        drain(stack, now);
    }
    (stack.status(id).unwrap().end, now, sent)
}

#[test]
fn an_idle_connection_to_a_vanished_peer_times_out_after_the_probes() {
    let mut world = world(Some(keep_alive()));
    let ids = world.open();
    let (end, at, probes) = run_without_peer(&mut world, ids[0]);
    assert_eq!((end, probes), (Some(EndReason::TimedOut), 3));
    // The SYN-ACK arrived after one round trip of 20 ms.
    assert_eq!(at, Instant::from_millis(20 + 60_000 + 3 * 10_000));
    world.stacks[0].orphan(at, ids[0]);
    while world.stacks[0].poll_transmit(at, &mut Vec::new()) {}
    assert!(world.stacks[0].is_empty());
}

#[test]
fn a_peer_that_answers_probes_is_kept() {
    let mut world = world(Some(keep_alive()));
    let ids = world.open();
    let later = world.now + Duration::from_secs(3600);
    assert!(world.run_until(|world| world.now > later));
    assert_eq!([0, 1].map(|side| world.end(side, ids[side])), [None, None]);
    let probes = world.stacks[0].endpoint(ids[0]).unwrap().stats().keep_alives;
    assert!((58..=60).contains(&probes), "{probes} probes in an hour");
}

#[test]
fn a_peer_that_sends_is_not_probed() {
    let mut world = world(Some(keep_alive()));
    let ids = world.open();
    for _ in 0..100 {
        world.stacks[1].send(world.now, ids[1], b"x");
        world.flush();
        let later = world.now + Duration::from_secs(50);
        assert!(world.run_until(|world| world.now >= later || world.stacks[0].poll_timeout() > Some(later)));
        world.now = later;
    }
    for (side, id) in ids.into_iter().enumerate() {
        assert_eq!(world.stacks[side].endpoint(id).unwrap().stats().keep_alives, 0);
    }
}

#[test]
fn without_keep_alive_an_idle_connection_stays() {
    let mut world = world(None);
    let ids = world.open();
    assert_eq!(run_without_peer(&mut world, ids[0]), (None, world.now, 0));
}

#[test]
fn with_data_in_flight_the_retransmission_limit_applies_and_no_probe_is_sent() {
    let mut world = world(Some(keep_alive()));
    let ids = world.open();
    world.stacks[0].send(world.now, ids[0], &pattern(1, 100));
    let (end, ..) = run_without_peer(&mut world, ids[0]);
    assert_eq!(end, Some(EndReason::TimedOut));
    assert_eq!(world.stacks[0].endpoint(ids[0]).unwrap().stats().keep_alives, 0);
}

#[test]
fn a_peer_that_vanishes_before_its_fin_times_out() {
    let mut world = world(Some(keep_alive()));
    let ids = world.open();
    world.stacks[0].close(world.now, ids[0]);
    world.flush();
    assert!(world.run_until(|world| world.status(0, ids[0]).state == State::FinWait2));
    assert_eq!(run_without_peer(&mut world, ids[0]).0, Some(EndReason::TimedOut));
}
