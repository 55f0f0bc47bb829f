//! Failures and the errors that report them.

use crate::tpa::relay::Relay;
use crate::wide::*;
use std::io::ErrorKind::{self, ConnectionRefused, ConnectionReset, InvalidInput, TimedOut};
use std::io::Result;
use std::net::UdpSocket;

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.map(|_| ()).unwrap_err().kind()
}

#[test]
fn where_nobody_listens_nobody_answers() {
    let host = Host::bind(ANY).unwrap();
    let address = host.local_addr().unwrap();
    assert_eq!(kind(impatient().connect(address, &quick(), None)), TimedOut);
}

#[test]
fn where_there_is_no_socket_connections_are_refused() {
    let address = UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    assert_eq!(kind(WideStream::connect(address, &quick())), ConnectionRefused);
}

#[test]
fn when_the_accept_queue_is_full_who_calls_gets_in_once_one_is_accepted() {
    let server = Host::bind(ANY).unwrap();
    let listener = server.listen(&quick(), 2).unwrap();
    let address = server.local_addr().unwrap();
    let _waiting = [(); 2].map(|()| WideStream::connect(address, &quick()).unwrap());
    until("both wait", || server.stats().sealed.waiting == 2);
    let third = Host::bind(ANY).unwrap();
    let limit = Some(Duration::from_millis(100));
    assert_eq!(kind(third.connect(address, &quick(), limit)), TimedOut);
    assert_eq!(server.stats().connections, 2);
    let _accepted = listener.accept().unwrap();
    let _third = third.connect(address, &quick(), None).unwrap();
}

#[test]
fn who_was_never_accepted_is_reset() {
    let (listener, address) = listener();
    let mut client = WideStream::connect(address, &quick()).unwrap();
    let host = listener.host().clone();
    until("it waits", || host.stats().connections == 1);
    drop(listener);
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
    assert_eq!(kind(client.write(b"x")), ConnectionReset);
    until("it is forgotten", || host.stats().connections == 0);
    assert_eq!(host.stats().sealed.waiting, 0);
}

#[test]
fn a_host_may_listen_again_once_its_listener_is_gone() {
    let host = Host::bind(ANY).unwrap();
    let listener = host.listen(&quick(), 1).unwrap();
    assert_eq!(kind(host.listen(&quick(), 1)), ErrorKind::AddrInUse);
    drop(listener);
    let listener = host.listen(&quick(), 1).unwrap();
    let _client = WideStream::connect(host.local_addr().unwrap(), &quick()).unwrap();
    listener.accept().unwrap();
}

#[test]
fn an_aborted_connection_is_reset() {
    let (mut client, server) = pair();
    server.abort();
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
}

#[test]
fn what_was_received_and_never_read_resets_the_connection() {
    let (mut client, server) = pair();
    client.write_all(b"important").unwrap();
    until("it arrived", || server.info().stats.bytes_received == 9);
    drop(server);
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
}

#[test]
fn a_reset_is_told_after_what_came_before_it() {
    let (mut client, mut server) = pair();
    server.write_all(b"last words").unwrap();
    until("they arrived", || client.info().stats.bytes_received == 10);
    server.abort();
    let mut got = [0; 10];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"last words");
    assert_eq!(kind(client.read(&mut got)), ConnectionReset);
}

#[test]
fn who_does_not_answer_is_waited_for_as_long_as_was_said() {
    let silent = UdpSocket::bind(ANY).unwrap();
    let address = silent.local_addr().unwrap();
    let timeout = Duration::from_millis(100);
    assert_eq!(kind(WideStream::connect_timeout(address, &quick(), timeout)), TimedOut);
    assert_eq!(kind(impatient().connect(address, &quick(), None)), TimedOut);
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let mut reading = WideStream::connect(relay.address, &given_up_after(Span::from_millis(400))).unwrap();
    let _server = listener.accept().unwrap();
    relay.cut();
    assert_eq!(kind(reading.read(&mut [0; 9])), TimedOut);
    assert_eq!(kind(reading.write(b"x")), TimedOut);
    assert_eq!(kind(reading.close()), TimedOut);
}

#[test]
fn an_abandoned_connection_whose_peer_is_gone_is_given_up() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let mut client = WideStream::connect(relay.address, &given_up_after(Span::from_millis(300))).unwrap();
    let host = client.host().clone();
    let _server = listener.accept().unwrap();
    relay.cut();
    client.write_all(b"nobody hears this").unwrap();
    drop(client);
    assert_eq!(host.stats().connections, 1);
    until("it is given up", || host.stats().connections == 0);
}

#[test]
fn a_listener_that_was_made_anew_tells_those_who_hold_its_connections() {
    let theirs = || quick_with(key(1, Trust::Anyone));
    let (first, second) = (Host::bind(ANY).unwrap(), Host::bind(ANY).unwrap());
    let listener = first.listen(&theirs(), 4).unwrap();
    let address = first.local_addr().unwrap();
    let relay = Relay::to(address);
    let mut client = WideStream::connect(relay.address, &quick_with(knows(2, 1))).unwrap();
    let _server = listener.accept().unwrap();
    // Another port implies another key for stateless resets: its resets are ignored.
    let elsewhere = second.listen(&theirs(), 4).unwrap();
    relay.lead_to(second.local_addr().unwrap());
    client.write_all(b"who are you?").unwrap();
    until("it was told", || second.stats().sealed.gone > 0);
    client.set_read_timeout(Some(Duration::from_millis(100)));
    assert_eq!(kind(client.read(&mut [0; 9])), ErrorKind::WouldBlock);
    drop(elsewhere);
    relay.lead_to(address);
    until("what was written arrives", || client.info().unacknowledged == 0);
}

#[test]
fn parameters_out_of_range_are_named() {
    let mut bad = quick();
    bad.transport.mss = 1;
    let error = WideListener::bind(ANY, &bad).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("mss")), (InvalidInput, true), "{error}");
    assert_eq!(kind(WideStream::connect("127.0.0.1:9", &bad)), InvalidInput);
}

#[test]
fn a_host_that_is_full_says_so() {
    let config = hopline_streams::wide::HostConfig { connections: 1, ..Wide::host_config().unwrap() };
    let host = Host::bind_with(ANY, Wide::with(config).unwrap()).unwrap();
    let (_listener, address) = listener();
    let _one = host.connect(address, &quick(), None).unwrap();
    assert_eq!(kind(host.connect(address, &quick(), None)), ErrorKind::ResourceBusy);
}
