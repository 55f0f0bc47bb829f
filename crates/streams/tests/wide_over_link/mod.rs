//! TPA-wide between separate hosts: over lossy links, small path MTUs, cables, and with changing addresses.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod cables;
mod measured;

use hopline_core::Duration as Span;
use hopline_harness::Test;
use hopline_link::{Emulation, NatPortPolicy, Side};
use hopline_linux::{Interface, Namespace};
use hopline_streams::wide::{Config, Credentials, Host, PrivateKey, Trust, WideListener, WideStream, config};
use hopline_tools::link::{NamespaceLink, Setup};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::thread;

/// Delay of the link, long enough for several packets in flight.
const DELAY: Span = Span::from_millis(10);
const PORT: u16 = 7174;

pub(crate) fn tests() -> Vec<Test> {
    let needs = [hopline_testkit::namespace::LINK];
    let tests = hopline_harness::tests!(needs;
        ten_megabytes_cross_a_link_with_5_percent_loss_each_way,
        a_path_with_a_smaller_mtu_carries_packets,
        a_sender_continues_after_its_nat_forgot_the_mapping,
        a_sender_continues_with_another_address,
    );
    let measured = [
        Test::new("trains", needs, measured::gso).long().alone(),
        Test::new("single_packets", needs, measured::single_packets).long().alone(),
    ];
    tests.into_iter().chain(measured).collect()
}

fn private(byte: u8) -> PrivateKey {
    PrivateKey::new([byte; 32])
}

/// Returns the configuration of the side with the key `own`, which permits only the peer with the key `peer`.
fn known(own: u8, peer: u8) -> Config {
    let trust = Trust::Only(vec![private(peer).public()]);
    let config = config(Credentials::Keys { private: private(own), trust });
    let transport = config
        .transport()
        .with_time_wait(Span::from_millis(20))
        .with_keep_alive(Some(Span::from_millis(200)));
    config.with_transport(transport)
}

fn listener(host: &Namespace, address: Ipv4Addr) -> WideListener {
    host.run(|| WideListener::bind((address, PORT), &known(2, 1)).unwrap()).unwrap()
}

fn caller(host: &Namespace) -> Host {
    host.run(|| Host::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()).unwrap()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// Returns both ends of a connection from `a` to `b`, which has the address `there`, and the listener.
fn connection([a, b]: [&Namespace; 2], there: Ipv4Addr) -> (WideStream, WideStream, WideListener) {
    let (listener, caller) = (listener(b, there), caller(a));
    let to = SocketAddr::from((there, PORT));
    let stream = caller.connect(to, &known(1, 2), None).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    (stream, accepted, listener)
}

/// Transfers `data`, and calls `meanwhile` when half of them have arrived.
fn transfer(from: &WideStream, to: &WideStream, data: &[u8], meanwhile: impl FnOnce()) {
    thread::scope(|scope| {
        scope.spawn(|| {
            { from }.write_all(data).unwrap();
            from.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = vec![0; data.len()];
        let (first, rest) = got.split_at_mut(data.len() / 2);
        { to }.read_exact(first).unwrap();
        meanwhile();
        { to }.read_exact(rest).unwrap();
        assert!(got == data);
        assert_eq!({ to }.read(&mut [0; 9]).unwrap(), 0);
    });
}

fn over(link: &NamespaceLink) -> (WideStream, WideStream, WideListener) {
    connection([link.host(Side::A), link.host(Side::B)], link.address_b())
}

fn ten_megabytes_cross_a_link_with_5_percent_loss_each_way() {
    let lossy = Emulation::delay(DELAY).with_loss(0.05);
    let link = NamespaceLink::new(lossy.clone(), lossy, 1).unwrap();
    let (from, to, _listener) = over(&link);
    transfer(&from, &to, &pattern(10_000_000), || {});
    let counts = link.stats().forward;
    assert!(from.info().stats.retransmissions > 100, "{counts:?}");
}

fn a_path_with_a_smaller_mtu_carries_packets() {
    let plain = Emulation::delay(DELAY);
    let setup = Setup { path_mtu: Some(1280), ..Setup::new(plain.clone(), plain, 2) };
    let link = NamespaceLink::with(setup).unwrap();
    let (from, to, _listener) = over(&link);
    transfer(&from, &to, &pattern(500_000), || {});
    assert_eq!(link.stats().all_drops().too_long, 0);
}

fn a_sender_continues_after_its_nat_forgot_the_mapping() {
    for sender in [Side::A, Side::B] {
        let plain = Emulation::delay(DELAY).with_rate(Some(50_000_000));
        let link = NamespaceLink::new(plain.clone(), plain, 3).unwrap();
        let (a, b, listener) = over(&link);
        let (from, to) = if sender == Side::A { (&a, &b) } else { (&b, &a) };
        let before = b.peer_addr();
        transfer(from, to, &pattern(5_000_000), || link.rebind(Side::A, NatPortPolicy::Forgotten));
        assert_ne!(b.peer_addr(), before, "{sender:?} sends");
        assert_eq!(listener.host().stats().sealed.moved, 1);
    }
}

fn a_sender_continues_with_another_address() {
    for sender in [Side::A, Side::B] {
        let hosts = cables::join(hopline_linux::veth::Offload::Gso);
        let (a, b, _listener) = connection([&hosts[0], &hosts[1]], cables::THERE);
        let (from, to) = if sender == Side::A { (&a, &b) } else { (&b, &a) };
        let moves = || {
            let elsewhere = Ipv4Addr::new(10, 2, 0, 77);
            hosts[0]
                .run(|| Interface::named(cables::NAME).unwrap().set_address(elsewhere, 24))
                .unwrap()
                .unwrap();
        };
        transfer(from, to, &pattern(50_000_000), moves);
        assert_eq!(b.peer_addr().ip(), Ipv4Addr::new(10, 2, 0, 77), "{sender:?} sends");
    }
}
