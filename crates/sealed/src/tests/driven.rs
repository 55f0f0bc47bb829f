//! Guarantees of a host for a program that drives it on behalf of users.

use super::net::{A, B, Net, address, bytes, transport};
use super::{keys, shared};
use crate::{
    CloseReason, ConnectionKey, Dropped, Event, HostEvent, ListenError, Path, SendError, State,
    TransportConfig,
};
use hopline_core::Duration;

fn open(config: TransportConfig) -> (Net, [ConnectionKey; 2]) {
    let mut net = Net::pair(&shared(), config);
    let keys = net.open(&shared(), config);
    net.told.clear();
    (net, keys)
}

fn told(net: &Net, node: usize) -> Vec<HostEvent> {
    net.told.iter().filter(|(at, _)| *at == node).map(|(_, event)| *event).collect()
}

#[test]
fn that_the_peer_has_our_end_is_told() {
    let (mut net, [at_a, _]) = open(transport());
    let now = net.now;
    net.conn(A, at_a).close(now).unwrap();
    net.nodes[A].host.touch(at_a);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(A, at_a).state(), State::FinWait2);
    assert_eq!(told(&net, A), [HostEvent::Changed(at_a)]);
}

#[test]
fn that_there_is_room_again_is_told_though_nothing_was_refused() {
    let (mut net, [at_a, _]) = open(transport().with_send_buffer(Some(5)));
    let now = net.now;
    net.conn(A, at_a).send(now, bytes("hello")).unwrap();
    net.nodes[A].host.touch(at_a);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(A, at_a).send_capacity(), 5);
    assert_eq!(told(&net, A), [HostEvent::Changed(at_a)]);
    let now = net.now;
    net.conn(A, at_a).send(now, bytes("hello")).unwrap();
    assert_eq!(net.conn(A, at_a).send(now, bytes("more")), Err(SendError::Full { free: 0 }));
}

#[test]
fn whoever_looks_at_a_connection_does_not_take_it() {
    let config = transport();
    let mut net = Net::pair(&shared(), config);
    net.connect(&shared(), config);
    net.run_for(Duration::from_secs(1));
    let at_b = net.accepted(B).unwrap();
    let host = &mut net.nodes[B].host;
    assert_eq!(host.endpoint(at_b).map(|conn| conn.state()), Some(State::Established));
    host.touch(at_b);
    assert_eq!(host.stats().waiting, 1);
    for _ in 0..2 {
        host.picked(at_b);
        assert_eq!(host.stats().waiting, 0);
    }
    assert!(host.remove(at_b) && host.endpoint(at_b).is_none());
    host.picked(at_b);
    host.touch(at_b);
    assert_eq!((host.stats().waiting, host.connections().count()), (0, 0));
}

#[test]
fn what_is_done_to_a_connection_leaves_once_it_is_touched() {
    let (mut net, [at_a, at_b]) = open(transport());
    let now = net.now;
    net.nodes[A].host.endpoint(at_a).unwrap().send(now, bytes("hello")).unwrap();
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(B, at_b).recv(), None);
    net.nodes[A].host.touch(at_a);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(B, at_b).recv(), Some(bytes("hello")));
}

#[test]
fn who_listens_no_more_keeps_what_it_has_and_takes_nothing_new() {
    for credentials in [shared(), keys()] {
        let mut net = Net::pair(&credentials, transport());
        let [at_a, at_b] = net.open(&credentials, transport());
        let under_way = net.connect(&credentials, transport());
        net.run_for(Duration::from_millis(30));
        assert!(net.nodes[B].host.unlisten() && !net.nodes[B].host.unlisten());
        assert_eq!(net.nodes[B].host.stats().half_open, 0);
        let now = net.now;
        net.conn(A, at_a).send(now, bytes("hello")).unwrap();
        let late = net.connect(&credentials, transport());
        net.run_for(Duration::from_secs(40));
        assert_eq!(net.conn(B, at_b).recv(), Some(bytes("hello")));
        assert!([under_way, late].into_iter().all(|key| net.end_of(A, key).is_some()));
        assert!(net.nodes[B].host.stats().drops.of(Dropped::NotListening) > 0);
        net.nodes[B].host.listen(credentials[B].clone(), transport(), 16).unwrap();
        let again = net.nodes[B].host.listen(credentials[B].clone(), transport(), 16);
        assert_eq!(again, Err(ListenError::AlreadyListening));
        let before = net.nodes[B].host.stats().accepted;
        net.open(&credentials, transport());
        assert_eq!(net.nodes[B].host.stats().accepted, before + 1);
    }
}

#[test]
fn who_opened_without_an_address_of_its_own_leaves_from_any() {
    let config = transport();
    for local in [None, Some(address(A).ip())] {
        let mut net = Net::pair(&shared(), config);
        let path = Path { peer: address(B), local };
        let now = net.now;
        let key = net.nodes[A].host.connect(now, path, shared()[A].clone(), config).unwrap();
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.conn(A, key).path().local, local);
        let at_b = net.accepted(B).unwrap();
        assert_eq!(net.conn(B, at_b).path().local, Some(address(B).ip()));
    }
}

#[test]
fn behind_the_end_of_a_connection_nothing_is_told() {
    let (mut net, [at_a, at_b]) = open(transport());
    let now = net.now;
    net.conn(A, at_a).send(now, bytes("hello")).unwrap();
    net.conn(B, at_b).abort(now);
    net.run_for(Duration::from_secs(30));
    let end = HostEvent::Connection(at_a, Event::Closed(CloseReason::Reset));
    assert_eq!(told(&net, A).last(), Some(&end));
}
