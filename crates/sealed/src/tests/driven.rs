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
    net.events.clear();
    (net, keys)
}

fn events_of(net: &Net, node: usize) -> Vec<HostEvent> {
    net.events.iter().filter(|(at, _)| *at == node).map(|(_, event)| *event).collect()
}

#[test]
fn the_acknowledgment_of_our_end_is_reported() {
    let (mut net, [at_a, _]) = open(transport());
    let now = net.now;
    net.conn(A, at_a).close(now).unwrap();
    net.nodes[A].host.handle_user_call(at_a);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(A, at_a).state(), State::FinWait2);
    assert_eq!(events_of(&net, A), [HostEvent::Changed(at_a)]);
}

#[test]
fn free_room_is_reported_even_if_no_send_was_refused() {
    let (mut net, [at_a, _]) = open(transport().with_send_buffer(Some(5)));
    let now = net.now;
    net.conn(A, at_a).send(now, bytes("hello")).unwrap();
    net.nodes[A].host.handle_user_call(at_a);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(A, at_a).send_capacity(), 5);
    assert_eq!(events_of(&net, A), [HostEvent::Changed(at_a)]);
    let now = net.now;
    net.conn(A, at_a).send(now, bytes("hello")).unwrap();
    assert_eq!(net.conn(A, at_a).send(now, bytes("more")), Err(SendError::Full { free: 0 }));
}

#[test]
fn reading_a_connection_does_not_pick_it() {
    let config = transport();
    let mut net = Net::pair(&shared(), config);
    net.connect(&shared(), config);
    net.run_for(Duration::from_secs(1));
    let at_b = net.accepted(B).unwrap();
    let host = &mut net.nodes[B].host;
    assert_eq!(host.endpoint(at_b).map(|conn| conn.state()), Some(State::Established));
    host.handle_user_call(at_b);
    assert_eq!(host.stats().backlog, 1);
    for _ in 0..2 {
        host.mark_accepted(at_b);
        assert_eq!(host.stats().backlog, 0);
    }
    assert!(host.remove(at_b) && host.endpoint(at_b).is_none());
    host.mark_accepted(at_b);
    host.handle_user_call(at_b);
    assert_eq!((host.stats().backlog, host.connections().count()), (0, 0));
}

#[test]
fn changes_to_a_connection_are_sent_once_it_is_touched() {
    let (mut net, [at_a, at_b]) = open(transport());
    let now = net.now;
    net.nodes[A].host.endpoint(at_a).unwrap().send(now, bytes("hello")).unwrap();
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(B, at_b).recv(), None);
    net.nodes[A].host.handle_user_call(at_a);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.conn(B, at_b).recv(), Some(bytes("hello")));
}

#[test]
fn a_host_that_stops_listening_keeps_its_connections_and_accepts_no_new_ones() {
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
fn a_connection_without_a_local_address_sends_from_any() {
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
fn nothing_is_reported_after_the_end_of_a_connection() {
    let (mut net, [at_a, at_b]) = open(transport());
    let now = net.now;
    net.conn(A, at_a).send(now, bytes("hello")).unwrap();
    net.conn(B, at_b).abort(now);
    net.run_for(Duration::from_secs(30));
    let end = HostEvent::Connection(at_a, Event::Closed(CloseReason::Reset));
    assert_eq!(events_of(&net, A).last(), Some(&end));
}
