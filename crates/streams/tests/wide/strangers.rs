//! Permitted and rejected peers, and the information that rejected ones get.

use crate::wide::*;
use std::io::ErrorKind;

/// Connects a client with `ours` to a server with `theirs`. Returns the listener and the client's result.
fn connect_with(theirs: Credentials, ours: Credentials) -> (WideListener, std::io::Result<WideStream>) {
    let listener = WideListener::bind(ANY, &quick_with(theirs)).unwrap();
    let address = listener.local_addr().unwrap();
    let result = impatient().connect(address, &quick_with(ours), None);
    listener.set_nonblocking(true);
    (listener, result)
}

fn refused(theirs: Credentials, ours: Credentials) -> (ErrorKind, String) {
    let (listener, result) = connect_with(theirs, ours);
    let error = result.unwrap_err();
    assert_eq!(listener.accept().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
    (error.kind(), error.to_string())
}

#[test]
fn peers_with_known_keys_are_identified() {
    let (listener, client) = connect_with(knows(1, 2), knows(2, 1));
    let mut client = client.unwrap();
    client.write_all(b"it is me").unwrap();
    let mut server = None;
    until("it is accepted", || {
        server = listener.accept().ok();
        server.is_some()
    });
    let (mut server, _) = server.unwrap();
    server.set_nonblocking(false);
    let mut heard = [0; 8];
    server.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"it is me");
    assert_eq!(client.info().peer.key, Some(private(1).public()));
    assert_eq!(server.info().peer.fingerprint, Some(private(2).public().fingerprint()));
}

#[test]
fn with_a_shared_key_peers_are_not_identified() {
    let (client, server) = pair();
    assert_eq!([client.info().peer.key, server.info().peer.key], [None, None]);
}

#[test]
fn another_shared_key_gets_no_answer() {
    let (kind, text) = refused(shared_key(7), shared_key(8));
    assert_eq!(kind, ErrorKind::TimedOut);
    assert!(text.contains("the shared keys differ"), "{text}");
}

#[test]
fn a_shared_key_and_a_key_pair_do_not_match() {
    for (theirs, ours) in [(shared_key(7), knows(2, 1)), (knows(1, 2), shared_key(7))] {
        let (kind, text) = refused(theirs, ours);
        assert_eq!(kind, ErrorKind::ConnectionRefused);
        assert!(text.contains("one end has a shared key, the other a key of its own"), "{text}");
    }
}

#[test]
fn a_server_with_another_key_is_reported_by_its_fingerprint() {
    let (kind, text) = refused(key(1, Trust::Anyone), knows(2, 3));
    assert_eq!(kind, ErrorKind::PermissionDenied);
    assert!(text.contains(&private(1).public().fingerprint().to_string()), "{text}");
}

#[test]
fn a_client_with_another_key_is_counted_and_gets_a_hint() {
    let (listener, client) = connect_with(knows(1, 3), knows(2, 1));
    // A client may complete its part of the handshake before it learns that the server has not.
    let errors = match client {
        Err(error) => vec![error],
        Ok(mut client) => vec![client.read(&mut [0; 9]).unwrap_err(), client.write(b"x").unwrap_err()],
    };
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains("perhaps our key is none of those that it trusts"), "{error}");
    }
    assert!(listener.host().stats().untrusted_keys > 0);
    assert_eq!(listener.accept().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
}
