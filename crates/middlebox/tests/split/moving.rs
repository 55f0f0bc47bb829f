//! One socket that moves from a station to another, by the calls of `repair`.

use crate::split::daemon::PORT;
use crate::split::hosts::{assert_reset, bytes, exchange_and_end_after};
use crate::split::router::{Ip, served};
use crate::split::stations::Stations;
use hopline_linux::Namespace;
use hopline_linux::repair::{Dump, Frozen, Marking, Restored, probe_peer};
use hopline_linux::tcp;
use hopline_linux::transparent::{LegOptions, TransparentListener};
use hopline_testkit::streams::until;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::Duration;

/// Program of a station with one socket: it sends some bytes, and keeps those that come.
struct Talker {
    stream: TcpStream,
    /// Bytes that were not written.
    to_send: Vec<u8>,
    received: Vec<u8>,
}

impl Talker {
    /// Sends and receives until so many bytes have come, or the end.
    fn exchange(&mut self, wanted: usize) {
        until("the bytes have come", || {
            self.write();
            self.read() || self.received.len() >= wanted
        });
    }

    fn write(&mut self) {
        match self.stream.write(&self.to_send) {
            Ok(len) => drop(self.to_send.drain(..len)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    }

    /// `true` if the stream has ended.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 5000];
        match self.stream.read(&mut buffer) {
            Ok(len) => {
                self.received.extend_from_slice(&buffer[..len]);
                len == 0
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                false
            }
        }
    }

    /// Moves to another station.
    fn move_to(self, from: &Namespace, to: &Namespace) -> Self {
        let (local, peer) = (self.stream.local_addr().unwrap(), self.stream.peer_addr().unwrap());
        let freeze = || Frozen::freeze(self.stream).map_err(|(_, error)| error).unwrap();
        let (frozen, Dump { state, mut unsent }) = from.run(freeze).unwrap();
        let restore =
            || Restored::restore(local, peer, &state, &LegOptions::default(), Marking::FromOptions).unwrap();
        let restored = to.run(restore).unwrap();
        let clock = frozen.check().unwrap();
        assert_eq!(clock.is_some(), state.timestamp.is_some());
        let retired = frozen.retire();
        let stream = restored.activate(clock).unwrap();
        sleep(Duration::from_millis(20));
        drop(retired);
        unsent.extend_from_slice(&self.to_send);
        let mut moved = Self { stream, to_send: unsent, received: self.received };
        if !state.unread.is_empty() {
            moved.read();
        }
        probe_peer(&moved.stream).unwrap();
        moved
    }
}

/// A connection of the mobile host which ends at the first station.
fn connect(hosts: &Stations, ip: Ip) -> (TcpStream, TcpStream) {
    let here: SocketAddr = match ip {
        Ip::V4 => (Ipv4Addr::LOCALHOST, PORT).into(),
        Ip::V6 => (Ipv6Addr::LOCALHOST, PORT).into(),
    };
    let listener = hosts.stations[0].run(|| TransparentListener::bind(here).unwrap()).unwrap();
    let ours = hosts.mobile.run(|| TcpStream::connect(served(ip)).unwrap()).unwrap();
    let mut call = None;
    until("the call has come", || {
        call = listener.accept().unwrap();
        call.is_some()
    });
    (ours, call.unwrap().stream)
}

pub(crate) fn a_socket_moves_with_its_state_over_ipv4() {
    a_socket_moves_with_its_state(Ip::V4);
}

pub(crate) fn a_socket_moves_with_its_state_over_ipv6() {
    a_socket_moves_with_its_state(Ip::V6);
}

fn a_socket_moves_with_its_state(ip: Ip) {
    const LEN: usize = 400_000;
    let hosts = Stations::new();
    for host in [&hosts.mobile, &hosts.stations[0], &hosts.stations[1]] {
        Stations::lose(host, 2);
    }
    moves_back_and_forth(&hosts, ip, LEN);
}

pub(crate) fn a_packet_that_reaches_a_frozen_socket_is_detected() {
    let hosts = Stations::new();
    let (mut ours, theirs) = connect(&hosts, Ip::V4);
    let freeze = || Frozen::freeze(theirs).map_err(|(_, error)| error).unwrap();
    let (frozen, _) = hosts.stations[0].run(freeze).unwrap();
    assert!(frozen.check().is_ok());
    // As if the packet had been past the filter when it was set.
    SockRef::from(frozen.stream()).detach_filter().unwrap();
    ours.write_all(b"late").unwrap();
    until("the packet is noticed", || frozen.check().is_err_and(|e| e.kind() == ErrorKind::ResourceBusy));
    drop(frozen);
    assert_reset(&mut ours);
}

pub(crate) fn a_socket_moves_without_options() {
    let hosts = Stations::new();
    for option in ["timestamps", "sack", "window_scaling"] {
        let path = format!("/proc/sys/net/ipv4/tcp_{option}");
        hosts.mobile.run(|| std::fs::write(path, "0").unwrap()).unwrap();
    }
    moves_back_and_forth(&hosts, Ip::V4, 400_000);
}

/// Moves a socket twice, with bytes in both directions in all of its queues.
fn moves_back_and_forth(hosts: &Stations, ip: Ip, len: usize) {
    let (ours, theirs) = connect(hosts, ip);
    let (forth, back) = (bytes("forth", len), bytes("back", len));
    let back_hash = blake3::hash(&back);
    let mss = tcp::info(&theirs).unwrap().mss;
    // A socket with the end of its peer's stream is not established, and cannot move.
    let (moved, wait_for_moves) = mpsc::channel();
    let host = exchange_and_end_after(ours, forth.clone(), move || wait_for_moves.recv().unwrap());
    let mut talker = Talker { stream: theirs, to_send: back, received: Vec::new() };
    for (round, [from, to]) in [[0, 1], [1, 0]].into_iter().enumerate() {
        talker.exchange((round + 1) * len / 4);
        hosts.move_to(to);
        talker = talker.move_to(&hosts.stations[from], &hosts.stations[to]);
        // A kernel that speaks timestamps leaves room for them before it knows that the connection has none.
        let mss_there = tcp::info(&talker.stream).unwrap().mss;
        assert!((mss - 12..=mss).contains(&mss_there), "{mss_there}");
    }
    moved.send(()).unwrap();
    talker.exchange(usize::MAX);
    assert!(talker.received == forth, "{} bytes came, of {len}", talker.received.len());
    until("all was written", || {
        talker.write();
        talker.to_send.is_empty()
    });
    hopline_linux::transparent::close_cleanly(talker.stream).unwrap();
    assert_eq!(host.join().unwrap(), back_hash);
}

/// Nothing is on its way, and both hosts speak again later.
pub(crate) fn an_idle_socket_moves() {
    let hosts = Stations::new();
    let (mut ours, theirs) = connect(&hosts, Ip::V4);
    let mut talker = Talker { stream: theirs, to_send: Vec::new(), received: Vec::new() };
    ours.write_all(b"before").unwrap();
    talker.exchange(6);
    hosts.move_to(1);
    let mut talker = talker.move_to(&hosts.stations[0], &hosts.stations[1]);
    ours.write_all(b" and after").unwrap();
    talker.exchange(16);
    assert_eq!(talker.received, b"before and after");
    talker.stream.write_all(b"answer").unwrap();
    let mut answer = [0; 6];
    ours.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer");
}

pub(crate) fn a_frozen_socket_is_thawed_or_reset() {
    let hosts = Stations::new();
    let (mut ours, theirs) = connect(&hosts, Ip::V4);
    let freeze = |stream| Frozen::freeze(stream).map_err(|(_, error)| error).unwrap();
    let (frozen, dump) = hosts.stations[0].run(|| freeze(theirs)).unwrap();
    assert_eq!((&dump.state.unread[..], &dump.unsent[..]), (&b""[..], &b""[..]));
    ours.write_all(b"to the frozen").unwrap();
    sleep(Duration::from_millis(50));
    frozen.check().unwrap();
    let stream = frozen.thaw().unwrap();
    let mut talker = Talker { stream, to_send: b"thawed".to_vec(), received: Vec::new() };
    talker.exchange(13);
    let mut answer = [0; 6];
    ours.read_exact(&mut answer).unwrap();
    assert_eq!((&talker.received[..], &answer), (&b"to the frozen"[..], b"thawed"));
    // With bytes on their way, too, the reset has the number that the peer expects.
    ours.set_nonblocking(false).unwrap();
    talker.stream.write_all(&[7; 3000]).unwrap();
    let (frozen, _) = hosts.stations[0].run(|| freeze(talker.stream)).unwrap();
    drop(frozen);
    assert_reset(&mut ours);
}
