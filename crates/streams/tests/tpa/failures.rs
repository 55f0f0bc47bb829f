//! Failures and the errors that report them.

use crate::tpa::relay::Relay;
use crate::tpa::*;
use std::io::ErrorKind::{self, ConnectionRefused, ConnectionReset, InvalidInput, TimedOut};
use std::io::Result;
use std::net::UdpSocket;

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.map(|_| ()).unwrap_err().kind()
}

#[test]
fn where_nobody_listens_connections_are_refused() {
    let host = Host::bind(ANY).unwrap();
    assert_eq!(kind(TpaStream::connect(host.local_addr().unwrap(), &quick())), ConnectionRefused);
    assert_eq!(host.stats().refused, 1);
}

#[test]
fn where_there_is_no_socket_connections_are_refused() {
    let address = UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    assert_eq!(kind(TpaStream::connect(address, &quick())), ConnectionRefused);
}

#[test]
fn when_the_accept_queue_is_full_connections_are_refused_until_one_is_accepted() {
    let server = Host::bind(ANY).unwrap();
    let listener = server.listen(&quick(), 2).unwrap();
    let connect = || TpaStream::connect(server.local_addr().unwrap(), &quick());
    let _waiting = [connect().unwrap(), connect().unwrap()];
    until("both wait", || server.stats().connections == 2);
    assert_eq!(kind(connect()), ConnectionRefused);
    let _accepted = listener.accept().unwrap();
    let _third = connect().unwrap();
}

#[test]
fn who_was_never_accepted_is_reset() {
    let (listener, address) = listener();
    let mut client = TpaStream::connect(address, &quick()).unwrap();
    let host = listener.host().clone();
    until("it waits", || host.stats().connections == 1);
    drop(listener);
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
    assert_eq!(kind(client.write(b"x")), ConnectionReset);
    until("it is forgotten", || host.stats().connections == 0);
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
    client.flush().unwrap();
    until("it arrived", || server.info().stats.bytes_received == 9);
    drop(server);
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
}

#[test]
fn a_reset_is_told_after_what_came_before_it() {
    let (mut client, mut server) = pair();
    server.write_all(b"last words").unwrap();
    server.flush().unwrap();
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
    assert_eq!(kind(TpaStream::connect_timeout(address, &quick(), timeout)), TimedOut);
    let mut impatient = Config { syn_retries: Some(2), ..quick() };
    impatient.rto.initial = Span::from_millis(20);
    impatient.rto.min = Span::from_millis(20);
    assert_eq!(kind(TpaStream::connect(address, &impatient)), TimedOut);
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let limited = Config {
        silence_limit: Some(Span::from_millis(400)),
        keep_alive: Some(Span::from_millis(100)),
        ..quick()
    };
    let mut reading = TpaStream::connect(relay.address, &limited).unwrap();
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
    let limited = Config { silence_limit: Some(Span::from_millis(300)), keep_alive: None, ..quick() };
    let mut client = TpaStream::connect(relay.address, &limited).unwrap();
    let host = client.host().clone();
    let _server = listener.accept().unwrap();
    relay.cut();
    client.write_all(b"nobody hears this").unwrap();
    drop(client);
    assert_eq!(host.stats().connections, 1);
    until("it is given up", || host.stats().connections == 0);
}

#[test]
fn an_abandoned_connection_whose_peer_lives_on_is_given_up() {
    let (listener, address) = listener();
    let limited = Config { silence_limit: Some(Span::from_millis(300)), ..quick() };
    let client = TpaStream::connect(address, &limited).unwrap();
    let host = client.host().clone();
    let _server_that_never_closes = listener.accept().unwrap();
    drop(client);
    until("it is given up", || host.stats().connections == 0);
}

#[test]
fn parameters_out_of_range_are_named() {
    let bad = Config { cwnd_max: 0, ..quick() };
    let error = TpaListener::bind(ANY, &bad).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("cwnd_max")), (InvalidInput, true));
    assert_eq!(kind(TpaStream::connect("127.0.0.1:9", &bad)), InvalidInput);
}

#[test]
fn a_host_has_one_listener() {
    let (host, _listener, _) = hosts();
    assert_eq!(kind(host.listen(&quick(), 1)), ErrorKind::AddrInUse);
}
