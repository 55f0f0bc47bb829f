//! Transfers through a receiver under a flood, and through one without.

use crate::drills::world::{BOTH, KEY, StopOnDrop, TransportProtocol, ended, now};
use bytes::Bytes;
use hopline_linux::Namespace;
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, PreSharedKey, Wide};
use hopline_streams::{Host, Protocol as Transport};
use hopline_wire::tpa::{Ack, Control, Opening, Segment, SegmentPosition, Tag};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const PORT: u16 = 7172;
const BYTES: usize = 20_000_000;
/// Rate of a flood, datagrams per second.
const RATE: u64 = 80_000;
/// Number of runs for a median.
const RUNS: usize = 5;
/// Largest ratio of the durations with and without a flood.
const BOUND: f64 = 2.0;

/// Content of a flood.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flood {
    Nothing,
    /// Handshakes from unused addresses, each rejected by ICMP; for TPA-wide, a recorded first message.
    Calls,
    /// Segments of connections that do not exist.
    GuessedTags,
    /// Segments of connections that do not exist, with data; for TPA alone, which may send data with its first segment.
    FirstSegments,
    Garbage,
    /// Real connections without data, from this address.
    Handshakes,
}

const FLOODS: [Flood; 5] =
    [Flood::Calls, Flood::GuessedTags, Flood::FirstSegments, Flood::Garbage, Flood::Handshakes];

fn floods_of(speaks: TransportProtocol) -> impl Iterator<Item = Flood> {
    FLOODS.into_iter().filter(move |&flood| speaks == TransportProtocol::Tpa || flood != Flood::FirstSegments)
}

pub(crate) fn drill() {
    let host = Namespace::new().unwrap();
    host.run(|| {
        let worst = BOTH.map(slowdown_under_floods);
        assert!(worst.iter().all(|&worst| worst <= BOUND), "{worst:.2?} times as long, {BOUND} are allowed");
    })
    .unwrap();
}

/// Returns the ratio of the durations with and without the worst flood.
fn slowdown_under_floods(speaks: TransportProtocol) -> f64 {
    println!(
        "{speaks:?}: 20 MB through a receiver that is flooded, and by turns through one that is left alone:"
    );
    let longer = floods_of(speaks).map(|flood| {
        // In turn, so that other load of the machine affects both.
        let runs: Vec<_> = (0..RUNS).map(|_| (run(speaks, Flood::Nothing), run(speaks, flood))).collect();
        let (alone, _) = median(runs.iter().map(|(alone, _)| *alone));
        let (took, rate) = median(runs.iter().map(|(_, flooded)| *flooded));
        println!(
            "  with {rate:.0} {flood:?} a second: {took:.2} s, alone {alone:.2} s, {:.2} times as long",
            took / alone
        );
        took / alone
    });
    longer.fold(0.0, f64::max)
}

/// Returns the median of the seconds, and of the flood's results per second.
fn median(runs: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let mut runs: Vec<_> = runs.collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs[runs.len() / 2]
}

fn run(speaks: TransportProtocol, flood: Flood) -> (f64, f64) {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("to")).unwrap();
    let data: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
    fs::write(folder.path().join("f"), &data).unwrap();
    let mut recv = speaks.receiver(folder.path(), &["--bind", "127.0.0.1"]);
    let mut receiver = recv.arg("-o").arg(folder.path().join("to")).spawn().unwrap();
    thread::sleep(Duration::from_millis(200));
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let took = thread::scope(|scope| {
        if flood != Flood::Nothing {
            let pour = || send_flood(speaks, flood, &stop, &sent);
            thread::Builder::new().spawn_scoped(scope, pour).unwrap();
            thread::sleep(Duration::from_millis(500));
        }
        let _stops = StopOnDrop(&stop);
        let (began, before) = (now(), sent.load(Relaxed));
        let mut send = speaks.hopline(folder.path(), &["send", "-q"]);
        let mut sender = send.arg(folder.path().join("f")).arg("127.0.0.1").spawn().unwrap();
        let status = ended(&mut sender, Duration::from_secs(60));
        let took = began.elapsed().as_secs_f64();
        if status.is_none() {
            let _ = sender.kill();
        }
        assert_eq!(status.and_then(|status| status.code()), Some(0), "{speaks:?}, {flood:?}");
        (took, (sent.load(Relaxed) - before) as f64 / took)
    });
    assert!(fs::read(folder.path().join("to/f")).unwrap() == data, "{flood:?}: not the bytes that were sent");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    took
}

fn send_flood(speaks: TransportProtocol, flood: Flood, stop: &AtomicBool, sent: &AtomicU64) {
    if flood == Flood::Handshakes {
        return match speaks {
            TransportProtocol::Tpa => connect_repeatedly::<Tpa>(&tpa::config(3), stop, sent),
            TransportProtocol::TpaWide => connect_repeatedly::<Wide>(&with_the_key(), stop, sent),
        };
    }
    let opening = recorded_first_message();
    // A raw socket can send from any source address.
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)).into();
    let began = now();
    for number in 1_u64.. {
        if stop.load(Relaxed) {
            return;
        }
        let _ = socket.send_to(&packet(number, &contents(speaks, flood, number, &opening)), &to);
        sent.store(number, Relaxed);
        if number % 64 == 0 {
            let due = Duration::from_nanos(number * 1_000_000_000 / RATE);
            thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
}

fn connect_repeatedly<P: Transport>(config: &P::Config, stop: &AtomicBool, sent: &AtomicU64) {
    let host = Host::<P>::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = (Ipv4Addr::LOCALHOST, PORT).into();
    let mut held = std::collections::VecDeque::new();
    while !stop.load(Relaxed) {
        held.extend(host.connect(to, config, Some(Duration::from_millis(500))));
        sent.fetch_add(1, Relaxed);
        if held.len() > 1500 {
            held.pop_front();
        }
    }
}

fn with_the_key() -> wide::Config {
    wide::config(Credentials::Shared(PreSharedKey::new(KEY)))
}

/// Returns the first message of an initiator with the key.
fn recorded_first_message() -> Vec<u8> {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let host = Host::<Wide>::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = server.local_addr().unwrap();
    // No responder answers.
    let _ = host.connect(to, &with_the_key(), Some(Duration::from_millis(50)));
    let mut opening = vec![0; 2048];
    let len = server.recv(&mut opening).unwrap();
    opening.truncate(len);
    opening
}

/// Spreads numbers over the whole range.
fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn contents(speaks: TransportProtocol, flood: Flood, number: u64, opening: &[u8]) -> Vec<u8> {
    match (speaks, flood) {
        (TransportProtocol::Tpa, _) => of_tpa(flood, number),
        (TransportProtocol::TpaWide, Flood::Calls) => opening.to_vec(),
        // Connection ID and number; the content opens with no key.
        (TransportProtocol::TpaWide, Flood::GuessedTags) => {
            [&scattered(number).to_be_bytes()[..], &[7; 1000]].concat()
        }
        (TransportProtocol::TpaWide, _) => vec![0xff; 200],
    }
}

fn of_tpa(flood: Flood, number: u64) -> Vec<u8> {
    let tag = NonZeroU64::new(scattered(number) | 1).map(Tag);
    let opening = Some(Opening { tag, mss: 1448, block_segments: 12, cwnd_max: 12 });
    let data = Segment { ack: Some(Ack::default()), tag, ..Segment::<Bytes>::default() };
    let segment = match flood {
        Flood::Calls => Segment { control: Control::Syn, opening, ..Segment::default() },
        Flood::FirstSegments => Segment {
            opening,
            position: Some(SegmentPosition { position: 0, is_last: false }),
            payload: Bytes::from_static(&[7; 1000]),
            ..data
        },
        Flood::GuessedTags => data,
        Flood::Garbage | Flood::Handshakes | Flood::Nothing => return vec![0xff; 200],
    };
    let mut out = Vec::new();
    segment.emit_udp(&mut out);
    out
}

/// Returns a datagram from an unused address in 127.0.0.0/8.
fn packet(number: u64, contents: &[u8]) -> Vec<u8> {
    let [.., a, b, c] = (scattered(number) >> 20).to_be_bytes();
    let port = 1024 + (number % 60_000) as u16;
    let len = 28 + contents.len() as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 127, a, b, c | 2, 127, 0, 0, 1];
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    for field in [port, PORT, len - 20, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(contents);
    packet
}
