//! The memory of all connections together.

use crate::world::{ADDRESSES, PORT, World, config, modern, pattern};
use hopline_core::Duration;
use hopline_link::Emulation;
use hopline_stack::{ConnectError, ConnectionId, StackConfig};

const LIMIT: u64 = 4 << 20;
/// Memory that each connection has for certain, as [`StackConfig::max_memory`] says.
const MIN_CONNECTION_MEMORY: u64 = 64 << 10;

/// The second stack has little memory.
fn world() -> World {
    let small = StackConfig { max_memory: LIMIT, ..config(1, modern()) };
    let large = StackConfig { max_memory: 1 << 30, ..config(0, modern()) };
    World::new([large, small], &Emulation::delay(Duration::from_millis(10)))
}

fn window(world: &World, of: usize, id: ConnectionId) -> u64 {
    world.stacks[of].endpoint(id).unwrap().peer_window()
}

#[test]
fn a_flood_of_unread_connections_stays_within_the_memory_limit() {
    let mut world = world();
    let honest = world.open();
    let flood: Vec<_> = (0..200)
        .map(|_| {
            let id = world.connect(ADDRESSES[1]);
            let later = world.now + Duration::from_millis(30);
            world.run_until(|world| world.now >= later);
            id
        })
        .collect();
    let unread = pattern(1, 400_000);
    for _ in 0..60 {
        for &id in &flood {
            world.stacks[0].send(world.now, id, &unread);
        }
        world.flush();
        let later = world.now + Duration::from_secs(1);
        let bounded = |world: &World| world.stacks[1].memory() <= LIMIT;
        assert!(world.run_until(|world| world.now > later || !bounded(world)) && bounded(&world));
    }
    let held: u64 =
        world.accepted.iter().map(|&id| world.stacks[1].endpoint(id).unwrap().received_unread()).sum();
    assert!((LIMIT / 8..=LIMIT).contains(&held), "{held} bytes");
    // There is room for as many as have their least, and no more.
    assert!(
        world.accepted.len() >= (LIMIT / MIN_CONNECTION_MEMORY / 2) as usize
            && world.accepted.len() < (LIMIT / MIN_CONNECTION_MEMORY) as usize + 2
    );
    assert!(world.stacks[1].stats().refused_for_memory > 0);
    let data = pattern(2, 200_000);
    assert!(world.exchange(honest, [&data, &data])[1] == data);
}

#[test]
fn connect_fails_without_memory() {
    let mut world = world();
    let remote = (ADDRESSES[0].parse::<std::net::IpAddr>().unwrap(), PORT).into();
    let all: Vec<_> = (0..100).map(|_| world.stacks[1].connect(world.now, remote)).collect();
    let made = all.iter().filter(|result| result.is_ok()).count();
    assert!(made as u64 >= LIMIT / MIN_CONNECTION_MEMORY / 2, "{made}");
    assert_eq!(all.last(), Some(&Err(ConnectError::OutOfMemory)));
    assert_eq!(world.stacks[1].stats().refused_for_memory, (100 - made) as u64);
}

#[test]
fn memory_is_released_when_a_connection_ends() {
    let mut world = world();
    let before = world.stacks[1].memory();
    for _ in 0..300 {
        let ids = world.open();
        world.stacks[0].send(world.now, ids[0], &pattern(1, 50_000));
        world.flush();
        assert!(
            world.run_until(|world| world.stacks[1].endpoint(ids[1]).unwrap().received_unread() == 50_000)
        );
        assert!(world.stacks[1].memory() >= before + 50_000);
        world.stacks[0].abort(world.now, ids[0]);
        world.flush();
        assert!(world.run_until(|world| world.end(1, ids[1]).is_some()));
        world.stacks[1].orphan(world.now, ids[1]);
        world.flush();
    }
    assert_eq!((before, world.stacks[1].memory(), world.stacks[1].stats().refused_for_memory), (0, 0, 0));
}

#[test]
fn a_receive_window_grows_only_with_reads() {
    let mut world = world();
    let ids = world.open();
    assert_eq!(window(&world, 0, ids[0]), 0xffff);
    world.stacks[0].send(world.now, ids[0], &pattern(1, 1_000_000));
    world.flush();
    let later = world.now + Duration::from_secs(5);
    assert!(world.run_until(|world| world.now > later));
    let unread = world.stacks[1].endpoint(ids[1]).unwrap().received_unread();
    assert!((60_000..=0xffff).contains(&unread), "{unread}");
    let mut read = 0;
    while read < 1_000_000 {
        assert!(world.step());
        while let Some(piece) = world.stacks[1].receive(world.now, ids[1], 65_536) {
            read += piece.len();
        }
        world.flush();
    }
    let later = world.now + Duration::from_secs(1);
    assert!(world.run_until(|world| world.now > later || world.stacks[0].poll_timeout().is_none()));
    assert!(window(&world, 0, ids[0]) > 1_000_000, "{}", window(&world, 0, ids[0]));
    // One connection has at most half of the memory.
    assert!(world.stacks[1].memory() <= LIMIT / 2);
}

#[test]
fn a_sender_over_the_memory_limit_waits() {
    let send_buffer = Some(LIMIT);
    let tcp = modern().with_send_buffer(send_buffer);
    let small = StackConfig { max_memory: LIMIT, ..config(0, tcp) };
    let mut world = World::new([small, config(1, modern())], &Emulation::delay(Duration::from_millis(10)));
    let ids = [0; 20].map(|_| world.open());
    let data = pattern(1, LIMIT as usize);
    let mut sent = Vec::new();
    for id in ids {
        assert!(world.status(0, id[0]).capacity >= 16 << 10);
        sent.push(world.stacks[0].send(world.now, id[0], &data));
        assert!(world.stacks[0].memory() <= LIMIT);
    }
    assert!(sent.iter().all(|&sent| sent >= 16 << 10), "{sent:?}");
    for (id, sent) in ids.into_iter().zip(sent) {
        world.stacks[0].close(world.now, id[0]);
        assert!(world.exchange(id, [&[], b"x"])[1] == data[..sent]);
    }
}
