//! Failures and the errors that report them.

use super::{ANY, Transport, connections, listener, over_both, pair};
use crate::tpa::relay::Relay;
use hopline_core::Duration as Span;
use hopline_streams::{Host, Listener, Stream};
use hopline_testkit::streams::until;
use std::io::ErrorKind::{self, AddrInUse, ConnectionRefused, ConnectionReset, InvalidInput, TimedOut};
use std::io::{Read, Result, Write};
use std::net::UdpSocket;
use std::time::Duration;

over_both!(
    a_port_without_a_socket_refuses_connections,
    a_connection_that_was_not_accepted_is_reset,
    a_host_has_one_listener_at_a_time,
    an_aborted_connection_is_reset,
    unread_data_reset_the_connection,
    data_before_a_reset_are_read_first,
    a_silent_responder_times_out,
    a_peer_that_falls_silent_is_given_up,
    an_abandoned_connection_without_a_peer_is_given_up,
    parameters_out_of_range_are_named,
);

/// Returns the kind of an error.
pub(crate) fn kind<T>(result: Result<T>) -> ErrorKind {
    result.map(|_| ()).unwrap_err().kind()
}

fn a_port_without_a_socket_refuses_connections<T: Transport>() {
    let address = UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    assert_eq!(kind(Stream::<T>::connect(address, &T::quick())), ConnectionRefused);
}

fn a_connection_that_was_not_accepted_is_reset<T: Transport>() {
    let (listener, address) = listener::<T>();
    let mut client = Stream::<T>::connect(address, &T::quick()).unwrap();
    let host = listener.host().clone();
    until("it waits", || connections(&host) == 1);
    drop(listener);
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
    assert_eq!(kind(client.write(b"x")), ConnectionReset);
    until("it is forgotten", || connections(&host) == 0);
}

fn a_host_has_one_listener_at_a_time<T: Transport>() {
    let host = Host::<T>::bind(ANY).unwrap();
    let listener = host.listen(&T::quick(), 1).unwrap();
    assert_eq!(kind(host.listen(&T::quick(), 1)), AddrInUse);
    drop(listener);
    let listener = host.listen(&T::quick(), 1).unwrap();
    let _client = Stream::<T>::connect(host.local_addr().unwrap(), &T::quick()).unwrap();
    listener.accept().unwrap();
}

fn an_aborted_connection_is_reset<T: Transport>() {
    let (mut client, server) = pair::<T>();
    server.abort();
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
}

fn unread_data_reset_the_connection<T: Transport>() {
    let (mut client, server) = pair::<T>();
    client.write_all(b"important").unwrap();
    client.flush().unwrap();
    until("it arrived", || T::bytes(&server.info()).1 == 9);
    drop(server);
    assert_eq!(kind(client.read(&mut [0; 9])), ConnectionReset);
}

fn data_before_a_reset_are_read_first<T: Transport>() {
    let (mut client, mut server) = pair::<T>();
    server.write_all(b"last words").unwrap();
    server.flush().unwrap();
    until("they arrived", || T::bytes(&client.info()).1 == 10);
    server.abort();
    let mut got = [0; 10];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"last words");
    assert_eq!(kind(client.read(&mut got)), ConnectionReset);
}

fn a_silent_responder_times_out<T: Transport>() {
    let silent = UdpSocket::bind(ANY).unwrap();
    let address = silent.local_addr().unwrap();
    let timeout = Duration::from_millis(100);
    assert_eq!(kind(Stream::<T>::connect_timeout(address, &T::quick(), timeout)), TimedOut);
    assert_eq!(kind(T::connect_impatiently(address)), TimedOut);
}

fn a_peer_that_falls_silent_is_given_up<T: Transport>() {
    let (listener, address) = listener::<T>();
    let relay = Relay::to(address);
    let limited = T::given_up_after(Span::from_millis(400), Some(Span::from_millis(100)));
    let mut reading = Stream::<T>::connect(relay.address, &limited).unwrap();
    let _server = listener.accept().unwrap();
    relay.drop_all();
    assert_eq!(kind(reading.read(&mut [0; 9])), TimedOut);
    assert_eq!(kind(reading.write(b"x")), TimedOut);
    assert_eq!(kind(reading.close()), TimedOut);
}

fn an_abandoned_connection_without_a_peer_is_given_up<T: Transport>() {
    for keep_alive in [None, Some(Span::from_millis(100))] {
        let (listener, address) = listener::<T>();
        let relay = Relay::to(address);
        let limited = T::given_up_after(Span::from_millis(300), keep_alive);
        let mut client = Stream::<T>::connect(relay.address, &limited).unwrap();
        let host = client.host().clone();
        let _server = listener.accept().unwrap();
        relay.drop_all();
        client.write_all(b"sent to no one").unwrap();
        drop(client);
        assert_eq!(connections(&host), 1);
        until("it is given up", || connections(&host) == 0);
    }
}

fn parameters_out_of_range_are_named<T: Transport>() {
    let (bad, parameter) = T::out_of_range();
    let error = Listener::<T>::bind(ANY, &bad).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains(parameter)), (InvalidInput, true), "{error}");
    assert_eq!(kind(Stream::<T>::connect("127.0.0.1:9", &bad)), InvalidInput);
}
