//! Datagrams for which the socket has no room, behind an interface with a low rate, over a protocol without
//! retransmission.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

#[path = "streams/toy.rs"]
mod toy;

use hopline_harness::{Need, Test};
use hopline_linux::veth::{self, Offload};
use hopline_linux::{Interface, Namespace};
use hopline_streams::{Host, Listener, Stream};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;
use toy::{ANSWER, CALL, DATA, Toy, WINDOW};

/// Streams with a window each. Together they exceed the capacity of a socket.
const STREAMS: u8 = 100;
const EACH: usize = 60_000;
/// Timeout, far longer than the test takes.
const PATIENCE: Duration = Duration::from_secs(20);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);

pub(crate) fn tests() -> Vec<Test> {
    let needs = [hopline_testkit::namespace::LINK, Need::Program("tc")];
    hopline_harness::tests!(needs;
        no_data_are_lost_for_lack_of_room,
        datagrams_without_room_leave_once_there_is_room,
    )
    .into()
}

/// Returns two hosts connected by a cable, on which the first sends at 50 Mb/s.
fn slow_cable(trains: Offload) -> [Namespace; 2] {
    let hosts = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    veth::join([&hosts[0], &hosts[1]], "cable", trains).unwrap();
    for (host, address) in hosts.iter().zip([Ipv4Addr::new(10, 2, 0, 1), THERE]) {
        host.run(|| {
            let interface = Interface::named("cable").unwrap();
            interface.set_address(address, 24).unwrap();
            interface.up().unwrap();
        })
        .unwrap();
    }
    let mut tc = Command::new("tc");
    tc.args("qdisc add dev cable root tbf rate 50mbit burst 100000 limit 100000000".split(' '));
    assert!(hosts[0].spawn(tc).unwrap().wait().unwrap().success());
    hosts
}

fn no_data_are_lost_for_lack_of_room() {
    for trains in [Offload::Gso, Offload::SinglePackets] {
        let [a, b] = slow_cable(trains);
        let listener = b.run(|| Listener::<Toy>::bind((THERE, 5000), &()).unwrap()).unwrap();
        let host = a.run(|| Host::<Toy>::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()).unwrap();
        let connect = |_| host.connect((THERE, 5000).into(), &(), None).unwrap();
        let near: Vec<Stream<Toy>> = (0..STREAMS).map(connect).collect();
        thread::scope(|scope| {
            for (number, stream) in (0..STREAMS).zip(&near) {
                let far = listener.accept().unwrap().0;
                stream.set_write_timeout(Some(PATIENCE));
                far.set_read_timeout(Some(PATIENCE));
                scope.spawn(move || {
                    { stream }.write_all(&[number; EACH]).unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(move || {
                    let mut got = Vec::new();
                    { &far }.read_to_end(&mut got).unwrap();
                    assert!(got == [number; EACH], "{trains:?}: stream {number}, {} bytes", got.len());
                });
            }
        });
        assert_eq!(host.stats().send_failures, 0, "{trains:?}");
    }
}

/// No peer answers, no timer is due, and the thread of the host sleeps when the socket fills.
fn datagrams_without_room_leave_once_there_is_room() {
    let [a, b] = slow_cable(Offload::Gso);
    let peer = b.run(|| UdpSocket::bind((THERE, 5000)).unwrap()).unwrap();
    SockRef::from(&peer).set_recv_buffer_size(1 << 22).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let host = a.run(|| Host::<Toy>::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()).unwrap();
    let heard = thread::scope(|scope| {
        let heard = scope.spawn(|| hear(&peer));
        let connect = |_| host.connect((THERE, 5000).into(), &(), None).unwrap();
        let near: Vec<Stream<Toy>> = (0..STREAMS).map(connect).collect();
        near.iter().for_each(|mut stream| stream.write_all(&[7; WINDOW as usize]).unwrap());
        heard.join().unwrap()
    });
    assert_eq!(heard, u64::from(STREAMS) * WINDOW);
}

/// Answers connection attempts, and counts data bytes until all have arrived, or none arrives for a while.
fn hear(peer: &UdpSocket) -> u64 {
    let (mut buffer, mut heard) = ([0; 2000], 0);
    while heard < u64::from(STREAMS) * WINDOW
        && let Ok((len, from)) = peer.recv_from(&mut buffer)
    {
        match toy::open(&mut buffer[..len]).unwrap() {
            (_, caller, CALL, _) => {
                peer.send_to(&toy::datagram(caller, 1, ANSWER, &[]), from).unwrap();
            }
            (_, _, DATA, payload) => heard += payload.len() as u64,
            other => panic!("{other:?}"),
        }
    }
    heard
}
