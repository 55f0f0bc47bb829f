//! Transfers over links that lose, reorder and duplicate.

use crate::world::{ADDRESSES, PORT, V6_ADDRESSES, World, config, door, modern, pattern, wrapping};
use hopline_core::Duration;
use hopline_link::Emulation;
use hopline_stack::{ConnectError, EndReason, StackConfig};
use hopline_transport::tcp::{Config, State};

fn bad_link() -> Emulation {
    Emulation::delay(Duration::from_millis(10))
        .with_rate(Some(10_000_000))
        .with_loss(0.02)
        .with_reorder(0.05)
        .with_extra_delay(Duration::from_millis(20))
        .with_duplicate(0.02)
}

fn assert_transfer(mut world: World, len: usize) -> World {
    let ids = world.open();
    let (there, back) = (pattern(1, len), pattern(2, len));
    let [at_near, at_far] = world.exchange(ids, [&there, &back]);
    assert!(at_far == there && at_near == back, "{} and {} of {len} bytes", at_far.len(), at_near.len());
    for (side, id) in ids.into_iter().enumerate() {
        assert_eq!(world.end(side, id), Some(EndReason::Closed));
        world.stacks[side].orphan(world.now, id);
    }
    world.flush();
    assert!(world.run_until(|world| world.stacks.iter().all(|stack| stack.is_empty())));
    world
}

#[test]
fn data_and_fins_cross_a_clean_link_both_ways() {
    for tcp in [modern(), door(), Config::modern().with_newreno(), modern().with_rack()] {
        assert_transfer(World::with_tcp(tcp, &Emulation::delay(Duration::from_millis(10))), 300_000);
    }
}

#[test]
fn data_cross_a_link_that_loses_reorders_and_duplicates() {
    for tcp in [modern(), door(), modern().with_rack()] {
        let world = assert_transfer(World::with_tcp(tcp, &bad_link()), 300_000);
        assert!(world.stacks[0].stats().retransmissions > 0);
    }
}

#[test]
fn tcp_door_detects_reordering() {
    let link = bad_link().with_loss(0.0).with_duplicate(0.0);
    let world = assert_transfer(World::with_tcp(door(), &link), 300_000);
    assert!(world.stacks.iter().any(|stack| stack.stats().door_events > 0));
}

#[test]
fn sequence_numbers_wrap_around() {
    assert_transfer(World::new([0, 1].map(|of| wrapping(config(of, modern()))), &bad_link()), 300_000);
}

#[test]
fn transfers_work_over_ipv6() {
    let mut world = World::with_tcp(modern(), &bad_link());
    let near = world.connect(V6_ADDRESSES[1]);
    assert!(world.run_until(|world| !world.accepted.is_empty()));
    let ids = [near, world.accepted[0]];
    let data = pattern(1, 100_000);
    assert!(world.exchange(ids, [&data, &[]])[1] == data);
}

#[test]
fn a_slow_reader_closes_the_window_without_loss() {
    let tcp = modern().with_receive_buffer(20_000);
    let mut world = World::with_tcp(tcp, &Emulation::delay(Duration::from_millis(10)));
    let ids = world.open();
    let data = pattern(1, 100_000);
    let mut sent = world.stacks[0].send(world.now, ids[0], &data);
    world.flush();
    // Long enough for several window probes.
    let later = world.now + Duration::from_secs(30);
    assert!(world.run_until(|world| world.now > later));
    assert_eq!(world.stacks[0].endpoint(ids[0]).unwrap().peer_window(), 0);
    let mut got = Vec::new();
    while got.len() < data.len() {
        while let Some(piece) = world.stacks[1].receive(world.now, ids[1], 7000) {
            got.extend_from_slice(&piece);
        }
        sent += world.stacks[0].send(world.now, ids[0], &data[sent..]);
        world.flush();
        assert!(world.step());
    }
    assert!(got == data);
}

#[test]
fn an_abort_resets_the_peer() {
    let mut world = World::with_tcp(modern(), &Emulation::delay(Duration::from_millis(10)));
    let ids = world.open();
    world.stacks[0].abort(world.now, ids[0]);
    world.flush();
    assert!(world.stacks[0].is_empty());
    assert!(world.run_until(|world| world.end(1, ids[1]) == Some(EndReason::Reset)));
}

#[test]
fn connecting_to_a_closed_port_is_refused() {
    let mut world = World::with_tcp(modern(), &Emulation::delay(Duration::from_millis(10)));
    let remote = (ADDRESSES[1].parse::<std::net::IpAddr>().unwrap(), 81).into();
    let id = world.stacks[0].connect(world.now, remote).unwrap();
    world.flush();
    assert!(world.run_until(|world| world.end(0, id).is_some()));
    assert_eq!(world.end(0, id), Some(EndReason::Refused));
    assert_eq!(world.stacks[1].stats().resets_sent, 1);
}

#[test]
fn connecting_to_an_absent_peer_times_out() {
    let mut world = World::with_tcp(modern(), &Emulation::default().with_loss(1.0));
    let id = world.connect(ADDRESSES[1]);
    assert!(world.run_until(|world| world.end(0, id).is_some()));
    assert_eq!(world.end(0, id), Some(EndReason::TimedOut));
}

#[test]
fn connecting_to_invalid_addresses_is_refused() {
    let mut world = World::with_tcp(modern(), &Emulation::default());
    for (address, why) in [
        ("127.0.0.1:80", ConnectError::InvalidRemote),
        ("10.0.0.1:80", ConnectError::InvalidRemote),
        ("10.0.0.2:0", ConnectError::InvalidRemote),
        ("224.0.0.1:80", ConnectError::InvalidRemote),
        ("0.0.0.0:80", ConnectError::InvalidRemote),
    ] {
        assert_eq!(world.stacks[0].connect(world.now, address.parse().unwrap()), Err(why), "{address}");
    }
    let v4 = StackConfig { addresses: vec!["10.0.0.1".parse().unwrap()], ..config(0, modern()) };
    let mut stack = hopline_stack::Stack::new(v4).unwrap();
    let v6 = format!("[{}]:80", V6_ADDRESSES[1]).parse().unwrap();
    assert_eq!(stack.connect(world.now, v6), Err(ConnectError::NoAddress));
}

#[test]
fn a_connection_in_time_wait_is_replaced_by_a_new_one() {
    let small = |of| StackConfig { max_connections: 1, max_half_open: 1, ..config(of, modern()) };
    let mut world = World::new([small(0), small(1)], &Emulation::delay(Duration::from_millis(1)));
    let ids = world.open();
    let remote = (ADDRESSES[1].parse::<std::net::IpAddr>().unwrap(), PORT).into();
    assert_eq!(world.stacks[0].connect(world.now, remote), Err(ConnectError::TooManyConnections));
    for (side, id) in ids.into_iter().enumerate() {
        world.stacks[side].close(world.now, id);
        world.flush();
        world.run_until(|world| world.status(0, ids[0]).state > State::Established);
    }
    assert!(world.run_until(|world| world.status(0, ids[0]).state == State::TimeWait));
    for (side, id) in ids.into_iter().enumerate() {
        world.stacks[side].orphan(world.now, id);
    }
    world.flush();
    assert!(world.stacks[0].connect(world.now, remote).is_ok());
}
