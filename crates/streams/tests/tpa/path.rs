//! Paths that have less room than they seem, and hosts that have forgotten their connections.

use crate::tpa::relay::Relay;
use crate::tpa::*;
use std::io::ErrorKind;

/// Sends `data` and reads it at the other end.
fn transfer(near: &TpaStream, far: &TpaStream, data: &[u8]) {
    thread::scope(|scope| {
        scope.spawn(|| {
            { near }.write_all(data).unwrap();
            { near }.flush().unwrap();
        });
        let mut got = vec![0; data.len()];
        { far }.read_exact(&mut got).unwrap();
        assert!(got == data);
    });
}

#[test]
fn segments_grow_to_the_path_mtu() {
    let (near, far) = pair();
    assert_eq!(near.info().mss, 1160, "1200 bytes of UDP pass nearly everywhere (RFC 8899)");
    transfer(&near, &far, &pattern(1, 300_000));
    assert_eq!(near.info().mss, 1448);
    assert_eq!(far.info().mss, 1160, "who sends nothing does not ask");
}

#[test]
fn where_long_datagrams_vanish_shorter_ones_are_sent() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    relay.narrow(1300);
    let near = TpaStream::connect(relay.address, &quick()).unwrap();
    let far = listener.accept().unwrap().0;
    transfer(&near, &far, &pattern(2, 1_000_000));
    assert!((1160..=1276).contains(&near.info().mss), "{}", near.info().mss);
}

#[test]
fn a_host_without_the_connection_resets_it() {
    // The server is started anew: the same port, another process.
    let (server, port) = {
        let (listener, address) = listener();
        (listener, address.port())
    };
    let mut near = TpaStream::connect((Ipv4Addr::LOCALHOST, port), &quick()).unwrap();
    let relay = Relay::to((Ipv4Addr::LOCALHOST, port).into());
    let mut through = TpaStream::connect(relay.address, &quick()).unwrap();
    drop(server.accept().unwrap());
    let _kept = server.accept().unwrap();
    assert_eq!(near.read(&mut [0; 1]).unwrap(), 0);
    let (_other, elsewhere) = listener();
    relay.replace_server(elsewhere);
    through.write_all(b"are you there?").unwrap();
    through.flush().unwrap();
    let error = through.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
