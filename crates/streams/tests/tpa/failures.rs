//! Failures and the errors that report them.

use crate::both::failures::kind;
use crate::tpa::*;
use std::io::ErrorKind::ConnectionRefused;

#[test]
fn without_a_listener_connections_are_refused() {
    let host = Host::bind(ANY).unwrap();
    assert_eq!(kind(TpaStream::connect(host.local_addr().unwrap(), &quick())), ConnectionRefused);
    assert_eq!(host.stats().refused, 1);
}

#[test]
fn with_a_full_accept_queue_connections_are_refused_until_one_is_accepted() {
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
fn an_abandoned_connection_with_a_live_peer_is_given_up() {
    let (listener, address) = listener();
    let limited = quick().with_silence_limit(Some(Span::from_millis(300)));
    let client = TpaStream::connect(address, &limited).unwrap();
    let host = client.host().clone();
    let _server_that_never_closes = listener.accept().unwrap();
    drop(client);
    until("it is given up", || host.stats().connections == 0);
}
