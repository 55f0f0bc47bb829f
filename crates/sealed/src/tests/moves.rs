//! Peers that are somewhere else all of a sudden.

use super::net::{A, App, B, Net, address, bytes, exchange, transport};
use super::{keys, shared};
use crate::{ConnectionKey, HostConfig, HostEvent, Path, TransportConfig};
use hopline_core::{Duration, Instant};
use hopline_link::{Emulation, NatPortPolicy};

fn with_keep_alives() -> TransportConfig {
    transport().with_keep_alive(Some(Duration::from_secs(2)))
}

/// Two ends over 4 Mb/s, 20 ms each way.
fn open() -> (Net, [ConnectionKey; 2]) {
    let emulation =
        Emulation::delay(Duration::from_millis(20)).with_rate(Some(4_000_000)).with_queue(Some(50));
    let mut net = Net::new(2, &HostConfig::default(), &emulation, 1);
    net.nodes[B].host.listen(keys()[B].clone(), with_keep_alives(), 16).unwrap();
    let keys = net.open(&keys(), with_keep_alives());
    (net, keys)
}

#[test]
fn either_end_may_change_its_address_while_it_sends_or_receives() {
    for node in [A, B] {
        for old in [NatPortPolicy::Kept, NatPortPolicy::Forgotten] {
            for sender in [A, B] {
                let (mut net, at) = open();
                let totals = if sender == A { [1_000_000, 0] } else { [0, 1_000_000] };
                let mut apps = [App::new(A, at[A], totals[A]), App::new(B, at[B], totals[B])];
                let limit = net.now + Duration::from_millis(800);
                assert!(!exchange(&mut net, &mut apps, limit), "too early");
                let before = net.nodes[node].public;
                net.rebind(node, old);
                let limit = net.now + Duration::from_secs(20);
                assert!(exchange(&mut net, &mut apps, limit), "{node} {old:?}, {sender} sends");
                assert_eq!(apps[1 - sender].got.received(), 1_000_000);
                let now = net.nodes[node].public;
                assert_ne!(now, before);
                // The initiator leaves from whichever address its system chooses.
                let local = (node == A).then(|| address(B).ip());
                let path = Path { peer: now, local };
                assert_eq!(net.conn(1 - node, at[1 - node]).path(), path);
                assert!(net.events.contains(&(1 - node, HostEvent::Moved(at[1 - node], path))));
            }
        }
    }
}

#[test]
fn a_move_while_data_flow_costs_little_time() {
    let time = |moves: bool| {
        let (mut net, at) = open();
        let start = net.now;
        let mut apps = [App::new(A, at[A], 1_000_000), App::new(B, at[B], 0)];
        exchange(&mut net, &mut apps, start + Duration::from_secs(1));
        if moves {
            net.rebind(A, NatPortPolicy::Forgotten);
        }
        assert!(exchange(&mut net, &mut apps, start + Duration::from_secs(60)));
        net.now - start
    };
    let (still, moved) = (time(false), time(true));
    assert!(moved < still + Duration::from_secs(2), "{moved}, and {still} without a move");
}

#[test]
fn the_rate_is_reset_on_another_path_and_kept_if_only_the_port_changes() {
    let rates = |elsewhere: bool| {
        let (mut net, at) = open();
        let mut apps = [App::new(A, at[A], 0), App::new(B, at[B], 4_000_000)];
        let limit = net.now + Duration::from_secs(4);
        exchange(&mut net, &mut apps, limit);
        if elsewhere {
            net.nodes[A].public = core::net::SocketAddr::from(([10, 9, 9, 9], 9));
        } else {
            net.rebind(A, NatPortPolicy::Forgotten);
        }
        let (mut before, mut after) = (None, None);
        let limit = net.now + Duration::from_secs(4);
        net.run_while(limit, |net| {
            apps.iter_mut().for_each(|app| app.step(net));
            let rate = net.nodes[B].host.connection(at[B]).and_then(|conn| conn.endpoint().rate());
            let moved = net.nodes[B].host.stats().moved > 0;
            *(if moved { &mut after } else { &mut before }) = rate;
            !moved
        });
        (before.expect("known"), after.expect("moved"))
    };
    let (before, after) = rates(true);
    assert!(before > 3e6 && after < 0.6 * before, "{before} {after}");
    let (before, after) = rates(false);
    assert!(before > 3e6 && after > 0.9 * before, "{before} {after}");
}

#[test]
fn two_alternating_addresses_neither_end_nor_stall_a_connection() {
    let (mut net, at) = open();
    let mut apps = [App::new(A, at[A], 2_000_000), App::new(B, at[B], 100_000)];
    let mut moves = 0;
    let other = core::net::SocketAddr::from(([10, 9, 9, 9], 9));
    net.rebind(A, NatPortPolicy::Kept);
    let addresses = [net.nodes[A].public, other];
    net.also(A, other);
    loop {
        let limit = net.now + Duration::from_millis(150);
        if exchange(&mut net, &mut apps, limit) {
            break;
        }
        moves += 1;
        net.nodes[A].public = addresses[moves % 2];
        net.also(A, addresses[(moves + 1) % 2]);
        assert!(net.now < Instant::from_secs(120), "{apps:?}");
    }
    assert!(moves > 10);
    assert_eq!(apps.map(|app| app.got.received()), [100_000, 2_000_000]);
}

#[test]
fn copies_sent_by_an_attacker_from_elsewhere_do_not_move_a_connection() {
    let mut net = Net::pair(&shared(), with_keep_alives());
    let [at_a, at_b] = net.open(&shared(), with_keep_alives());
    net.log = Some(Vec::new());
    let thief = core::net::SocketAddr::from(([10, 6, 6, 6], 666));
    for round in 0..50 {
        let now = net.now;
        net.conn(A, at_a).send(now, bytes("word")).unwrap();
        let before = net.log.as_ref().unwrap().len();
        net.settle();
        // The copy overtakes what it is a copy of.
        let copies = net.log.as_ref().unwrap()[before..].to_vec();
        assert!(!copies.is_empty(), "round {round}");
        copies.iter().for_each(|copy| net.inject(thief, copy.to, &copy.bytes));
        net.run_for(Duration::from_millis(200));
        assert_eq!(net.conn(B, at_b).path().peer, address(A));
    }
    net.run_for(Duration::from_secs(5));
    let to_thief: usize =
        net.log.unwrap().iter().filter(|sent| sent.to == thief).map(|sent| sent.bytes.len()).sum();
    assert!(to_thief <= 3 * 50 * 40, "{to_thief} bytes went to the thief");
    let received: usize = core::iter::from_fn(|| net.nodes[B].host.connection_mut(at_b).unwrap().recv())
        .map(|data| data.len())
        .sum();
    assert_eq!(received, 200);
}
