//! Life cycle of connections: they are opened, closed and forgotten.

use super::net::{A, App, B, Net, address, bytes, exchange, transport};
use super::{keys, private, shared};
use crate::{
    CloseReason, ConnectError, ConnectionKey, Dropped, Event, HostConfig, HostEvent, Path, ResetKey, State,
    TransportConfig,
};
use hopline_core::{Duration, Instant};
use hopline_link::Emulation;

fn with_keep_alives() -> TransportConfig {
    transport()
        .with_keep_alive(Some(Duration::from_secs(5)))
        .with_silence_limit(Some(Duration::from_secs(20)))
}

fn of_delay(count: usize, config: &HostConfig) -> Net {
    Net::new(count, config, &Emulation::delay(Duration::from_millis(20)), 1)
}

fn closed(key: ConnectionKey, reason: CloseReason) -> Option<HostEvent> {
    Some(HostEvent::Connection(key, Event::Closed(reason)))
}

/// All nodes but B call B.
fn connect_all(net: &mut Net) -> Vec<(usize, ConnectionKey)> {
    let callers = (0..net.nodes.len()).filter(|at| *at != B);
    let now = net.now;
    let call = |at: usize| {
        let host = &mut net.nodes[at].host;
        (at, host.connect(now, Path::to(address(B)), shared()[A].clone(), with_keep_alives()).unwrap())
    };
    callers.map(call).collect()
}

fn accepted(net: &Net) -> Vec<ConnectionKey> {
    let key = |(_, event): &(usize, HostEvent)| match event {
        HostEvent::Accepted(key) => Some(*key),
        _ => None,
    };
    net.events.iter().filter_map(key).collect()
}

#[test]
fn no_more_connections_wait_than_the_backlog_allows() {
    let mut net = of_delay(6, &HostConfig::default());
    net.nodes[B].host.listen(shared()[B].clone(), with_keep_alives(), 3).unwrap();
    connect_all(&mut net);
    net.run_for(Duration::from_secs(4));
    let first = accepted(&net);
    assert_eq!((first.len(), net.nodes[B].host.stats().backlog), (3, 3));
    assert!(net.nodes[B].host.stats().drops.of(Dropped::Backlog) > 0);
    // Two are picked; the rest get in by themselves when they try again.
    net.conn(B, first[0]);
    assert!(net.nodes[B].host.remove(first[1]));
    net.run_for(Duration::from_secs(10));
    assert_eq!((accepted(&net).len(), net.nodes[B].host.stats().backlog), (5, 3));
}

#[test]
fn a_hundred_connections_carry_their_data_at_once() {
    let mut net = of_delay(101, &HostConfig::default());
    net.nodes[B].host.listen(shared()[B].clone(), with_keep_alives(), 100).unwrap();
    let callers = connect_all(&mut net);
    let mut apps: Vec<App> = callers.iter().map(|(at, key)| App::new(*at, *key, 20_000)).collect();
    let mut known = 0;
    let limit = Instant::from_secs(30);
    let done = net.run_while(limit, |net| {
        let all = accepted(net);
        apps.extend(all[known..].iter().map(|key| App::new(B, *key, 10_000)));
        known = all.len();
        apps.iter_mut().for_each(|app| app.step(net));
        apps.len() < 200 || !apps.iter().all(|app| app.is_done(net))
    });
    assert!(done, "{} of {} are done", apps.iter().filter(|app| app.is_done(&net)).count(), apps.len());
    for app in &apps {
        assert_eq!(app.got.received(), if app.node == B { 20_000 } else { 10_000 });
        net.nodes[app.node].host.remove(app.key);
    }
    net.run_for(Duration::from_secs(30));
    assert!(net.nodes.iter().all(|node| node.host.stats().connections == 0));
    assert_eq!(net.next_time(), None);
}

#[test]
fn connections_of_a_host_take_turns_and_each_sends_a_burst() {
    let config = HostConfig { burst: 4, ..HostConfig::default() };
    let mut net = of_delay(2, &config);
    net.nodes[B].host.listen(shared()[B].clone(), with_keep_alives(), 16).unwrap();
    let keys = [0, 1, 2].map(|_| net.connect(&shared(), with_keep_alives()));
    net.run_for(Duration::from_millis(200));
    let now = net.now;
    for key in keys {
        net.conn(A, key).send(now, vec![1; 12_000].into()).unwrap();
    }
    let (mut buffer, mut order) = (Vec::new(), Vec::new());
    while let Some(transmit) = net.nodes[A].host.poll_transmit(now, &mut buffer) {
        order.push(transmit.key.expect("of a connection"));
    }
    assert!(buffer.len() > 30_000, "one behind the other");
    let mut turns: Vec<(ConnectionKey, usize)> = Vec::new();
    for key in order {
        match turns.last_mut() {
            Some((last, count)) if *last == key => *count += 1,
            _ => turns.push((key, 1)),
        }
    }
    assert_eq!(turns[..3].iter().map(|(_, count)| *count).collect::<Vec<_>>(), [4, 4, 4]);
    assert_eq!(turns[..3].iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys);
}

#[test]
fn a_lost_peer_is_detected_without_data_and_then_forgotten() {
    let mut net = Net::pair(&keys(), with_keep_alives());
    let [at_a, at_b] = net.open(&keys(), with_keep_alives());
    net.run_for(Duration::from_secs(300));
    assert_eq!(
        (net.conn(A, at_a).state(), net.conn(B, at_b).state()),
        (State::Established, State::Established)
    );
    net.change_link(A, Emulation::default().with_loss(1.0));
    net.change_link(B, Emulation::default().with_loss(1.0));
    net.run_for(Duration::from_secs(30));
    for (node, key) in [(A, at_a), (B, at_b)] {
        assert_eq!(net.end_of(node, key), closed(key, CloseReason::TimedOut));
        assert!(net.nodes[node].host.remove(key) && !net.nodes[node].host.remove(key));
        assert!(net.nodes[node].host.connection_mut(key).is_none());
    }
    net.run_for(Duration::from_secs(30));
    assert!(net.nodes.iter().all(|node| node.host.stats().connections == 0));
    assert_eq!(net.next_time(), None);
}

#[test]
fn releasing_an_open_connection_ends_it_for_the_peer() {
    let mut net = Net::pair(&keys(), with_keep_alives());
    let [at_a, at_b] = net.open(&keys(), with_keep_alives());
    assert!(net.nodes[A].host.remove(at_a));
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.end_of(B, at_b), closed(at_b, CloseReason::Reset));
    assert!(net.end_of(A, at_a).is_none(), "nothing is told of what was let go");
}

#[test]
fn a_closed_connection_that_is_released_still_delivers_its_data() {
    let mut net = Net::pair(&keys(), with_keep_alives());
    let [at_a, at_b] = net.open(&keys(), with_keep_alives());
    let now = net.now;
    net.conn(A, at_a).send(now, vec![5; 100_000].into()).unwrap();
    net.conn(A, at_a).close(now).unwrap();
    assert!(net.nodes[A].host.remove(at_a));
    let mut app = App::new(B, at_b, 0);
    let read = |net: &mut Net| -> usize {
        let conn = net.conn(B, at_b);
        std::iter::from_fn(|| conn.recv()).map(|data| data.len()).sum()
    };
    let mut received = 0;
    net.run_while(Instant::from_secs(20), |net| {
        received += read(net);
        received < 100_000
    });
    app.step(&mut net);
    net.run_for(Duration::from_secs(30));
    assert_eq!(net.end_of(B, at_b), closed(at_b, CloseReason::Finished));
    assert_eq!(net.nodes[A].host.stats().connections, 0);
}

#[test]
fn a_released_connection_that_does_not_end_is_aborted() {
    let mut net = Net::pair(&keys(), with_keep_alives());
    let [at_a, at_b] = net.open(&keys(), with_keep_alives());
    let now = net.now;
    net.conn(A, at_a).close(now).unwrap();
    net.nodes[A].host.remove(at_a);
    net.run_for(Duration::from_secs(100));
    assert_eq!(net.end_of(B, at_b), closed(at_b, CloseReason::Reset));
    assert_eq!(net.nodes[A].host.stats().connections, 0);
}

#[test]
fn the_number_of_connections_is_limited() {
    let config = HostConfig { connections: 2, ..HostConfig::default() };
    let mut net = of_delay(4, &config);
    net.nodes[B].host.listen(shared()[B].clone(), with_keep_alives(), 16).unwrap();
    connect_all(&mut net);
    net.run_for(Duration::from_secs(5));
    let all = accepted(&net);
    assert_eq!((all.len(), net.nodes[B].host.stats().connections), (2, 2));
    assert!(net.nodes[B].host.stats().drops.of(Dropped::Connections) > 0);
    net.nodes[A]
        .host
        .connect(net.now, Path::to(address(B)), shared()[A].clone(), with_keep_alives())
        .unwrap();
    let again =
        net.nodes[A].host.connect(net.now, Path::to(address(B)), shared()[A].clone(), with_keep_alives());
    assert_eq!(again, Err(ConnectError::Full(2)));
    // What is only kept to tell its peer that it is over makes room.
    net.nodes[B].host.remove(all[0]);
    net.run_for(Duration::from_secs(9));
    assert_eq!(accepted(&net).len(), 3);
}

#[test]
fn a_restarted_peer_with_the_reset_key_sends_a_stateless_reset() {
    for (node, other) in [(A, B), (B, A)] {
        let mut net = of_delay(2, &HostConfig::default());
        for node in [A, B] {
            let resets = Some(ResetKey::derive(&private(node as u8 + 1), address(node), b""));
            net.configure(node, HostConfig { reset_key: resets, ..HostConfig::default() });
        }
        net.nodes[B].host.listen(keys()[B].clone(), with_keep_alives(), 16).unwrap();
        let at = net.open(&keys(), with_keep_alives());
        net.restart(node);
        let now = net.now;
        net.conn(other, at[other]).send(now, bytes("are you there?")).unwrap();
        net.run_for(Duration::from_millis(100));
        assert_eq!(net.end_of(other, at[other]), closed(at[other], CloseReason::Reset), "after a round trip");
        assert_eq!(net.nodes[node].host.stats().resets_sent, 1);
    }
}

#[test]
fn a_reused_connection_id_does_not_hide_a_stateless_reset() {
    const TWIN: usize = 2;
    let mut net = of_delay(3, &HostConfig::default());
    let resets = Some(ResetKey::new([1; 32]));
    net.configure(A, HostConfig { reset_key: resets, ..HostConfig::default() });
    net.nodes[B].host.listen(keys()[B].clone(), with_keep_alives(), 16).unwrap();
    net.twin(TWIN, A);
    let at = net.open(&keys(), with_keep_alives());
    let path = Path::to(address(B));
    net.nodes[TWIN].host.connect(net.now, path, keys()[A].clone(), with_keep_alives()).unwrap();
    net.run_for(Duration::from_millis(500));
    assert_eq!(net.nodes[B].host.stats().accepted, 2, "both with the same id, which the peers have chosen");
    net.restart(A);
    let now = net.now;
    net.conn(B, at[B]).send(now, bytes("are you there?")).unwrap();
    net.run_for(Duration::from_millis(100));
    assert_eq!(net.end_of(B, at[B]), closed(at[B], CloseReason::Reset));
}

#[test]
fn a_restarted_peer_without_the_reset_key_is_detected_by_its_silence() {
    for node in [A, B] {
        let mut net = Net::pair(&shared(), with_keep_alives());
        let at = net.open(&shared(), with_keep_alives());
        net.restart(node);
        let other = 1 - node;
        net.run_for(Duration::from_secs(32));
        assert_eq!(net.end_of(other, at[other]), closed(at[other], CloseReason::TimedOut));
    }
}

#[test]
fn a_restarted_initiator_can_connect_beside_its_old_connection() {
    let mut net = Net::pair(&keys(), with_keep_alives());
    let [_, old] = net.open(&keys(), with_keep_alives());
    net.restart(A);
    let [at_a, at_b] = net.open(&keys(), with_keep_alives());
    assert_ne!(at_b, old);
    let mut apps = [App::new(A, at_a, 5000), App::new(B, at_b, 5000)];
    assert!(exchange(&mut net, &mut apps, Instant::from_secs(10)));
    net.run_for(Duration::from_secs(32));
    assert_eq!(net.end_of(B, old), closed(old, CloseReason::TimedOut));
}
