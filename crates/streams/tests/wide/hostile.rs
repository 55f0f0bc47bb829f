//! Datagrams of attackers.

use crate::tpa::relay::Relay;
use crate::wide::*;
use hopline_core::{Purpose, RandomStream as Random};
use std::io::ErrorKind::WouldBlock;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn a_transfer_continues_under_a_flood_of_forged_datagrams() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let client = WideStream::connect(relay.address, &quick()).unwrap();
    let (server, _) = listener.accept().unwrap();
    let data = pattern(1, 3_000_000);
    let over = AtomicBool::new(false);
    let back = thread::scope(|scope| {
        scope.spawn(|| flood(&relay, address, &over));
        scope.spawn(|| echo(&server));
        let back = through_echo(&client, &data);
        // On a busy host the transfer may end before the flood has really begun.
        until("a thousand were dropped", || listener.host().stats().sealed.drops.total() > 1000);
        over.store(true, Relaxed);
        back
    });
    assert!(back == data);
    let stats = listener.host().stats();
    assert_eq!((stats.accepted, stats.sealed.moved), (1, 0));
    listener.set_nonblocking(true);
    assert_eq!(listener.accept().unwrap_err().kind(), WouldBlock);
}

/// Sends noise, and datagrams of the client with a few flipped bits, from another address.
fn flood(relay: &Relay, to: SocketAddr, over: &AtomicBool) {
    let socket = UdpSocket::bind(ANY).unwrap();
    let mut random = Random::global(7, 1, Purpose::Errors);
    while !over.load(Relaxed) {
        for mut forged in relay.recorded(5) {
            let at = random.below(forged.len() as u32) as usize;
            forged[at] ^= 1 << random.below(8);
            socket.send_to(&forged, to).unwrap();
            let noise: Vec<u8> = (0..random.below(1500)).map(|_| random.below(256) as u8).collect();
            socket.send_to(&noise, to).unwrap();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn replayed_datagrams_have_no_effect() {
    let (listener, address) = listener();
    let relay = Relay::to(address);
    let mut client = WideStream::connect(relay.address, &quick()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"once").unwrap();
    let mut heard = [0; 4];
    server.read_exact(&mut heard).unwrap();
    let before = listener.host().stats().received;
    let again = relay.replay(address) as u64;
    until("all has come", || listener.host().stats().received >= before + again);
    server.set_read_timeout(Some(Duration::from_millis(100)));
    assert_eq!(server.read(&mut heard).unwrap_err().kind(), WouldBlock);
    listener.set_nonblocking(true);
    assert_eq!(listener.accept().unwrap_err().kind(), WouldBlock);
    client.write_all(b"more").unwrap();
    server.set_read_timeout(None);
    server.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"more");
}

#[test]
fn a_flood_of_handshakes_leaves_no_state_and_admits_others() {
    let (listener, address) = listener();
    listener.set_nonblocking(true);
    // Record connection attempts of clients with another key.
    let deaf = UdpSocket::bind(ANY).unwrap();
    let relay = Relay::to(deaf.local_addr().unwrap());
    let callers: Vec<_> = (0..20).map(|_| Host::bind(ANY).unwrap()).collect();
    let limit = Some(Duration::from_millis(20));
    for caller in &callers {
        caller.connect(relay.address, &quick_with(shared_key(8)), limit).map(drop).unwrap_err();
    }
    for _ in 0..100 {
        relay.replay(address);
    }
    until("they were read", || listener.host().stats().received >= 2000);
    let stats = listener.host().stats();
    assert_eq!((stats.connections, stats.accepted), (0, 0));
    let _client = WideStream::connect(address, &quick()).unwrap();
    until("a client gets in", || listener.accept().is_ok());
}
