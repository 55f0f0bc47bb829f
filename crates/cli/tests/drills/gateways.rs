//! A gateway and its exit as daemons, over a path of 40 ms: the duration of a new connection, the time to detect a dead
//! exit, and the data in clear while an attacker drops datagrams or forges ICMP.

use crate::drills::world::{StopOnDrop, now};
use crate::proxy::world::{Daemon, secret, shell, until_or};
use hopline_core::Duration as Span;
use hopline_link::{Emulation, Side};
use hopline_tools::link::NamespaceLink;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const QUERY: &[u8; 38] = b"the secret of an application, in clear";
const ANSWER: [u8; 9] = *b"an answer";
/// Number of queries for a median.
const QUERIES: usize = 9;
/// Time limit for detecting a dead exit.
const DETECTION_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for refusing a connection after the exit has become absent.
const REFUSAL_LIMIT: Duration = Duration::from_millis(3500);
/// Duration of each attack.
const ATTACK: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(30);

/// One-way delay from the gateway to its exit.
const DELAY: Duration = Duration::from_millis(40);

const ENTRY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

pub(crate) fn drill() {
    for (transport, most) in [("tpa", 1.1), ("tpa-wide", 0.8)] {
        let mut world = World::new(transport);
        let (directly, through) = world.queries();
        let ratio = through / directly;
        println!(
            "{transport}: a query over a new connection takes {:.0} ms directly, {:.0} ms through the trunk, {ratio:.2} times as long",
            directly * 1000.0,
            through * 1000.0
        );
        assert!(ratio <= most, "{transport}: {ratio:.2} times as long");
        let missed = world.time_to_reset();
        println!(
            "{transport}: connections of an exit that was killed are reset after {:.1} s at most",
            missed.as_secs_f64()
        );
        assert!(missed <= DETECTION_LIMIT, "{transport}: {missed:?}");
        if transport == "tpa-wide" {
            world.check_under_attack();
        }
    }
}

/// Client and gateway on A, exit and server on B.
struct World {
    link: NamespaceLink,
    folder: TempDir,
    entrance: Daemon,
    exit: Option<Daemon>,
    transport: &'static str,
    server: SocketAddr,
}

impl World {
    fn new(transport: &'static str) -> Self {
        let way = Emulation::delay(Span::from_millis(DELAY.as_millis() as u64)).with_rate(Some(20_000_000));
        let link = NamespaceLink::new(way.clone(), way, 7).unwrap();
        let folder = TempDir::new().unwrap();
        secret(&folder.path().join("key"), &"07".repeat(32));
        let b = IpAddr::V4(link.address_b());
        let listener = link.run_in_b(|| TcpListener::bind((b, 80)).unwrap());
        let serve = move || {
            while let Ok((stream, _)) = listener.accept() {
                thread::Builder::new().spawn(move || answer(stream)).unwrap();
            }
        };
        thread::Builder::new().spawn(serve).unwrap();
        let entrance = start(
            &link,
            Side::A,
            &folder,
            &format!(
                "kind = \"gateway\"\nexit = \"{b}:7172\"\nidentity = \"router\"\nforward = [\"{ENTRY} = {b}:80\"]\n\
                 key_file = \"{}\"\ntransport = \"{transport}\"\nfallback = \"refuse\"\n",
                folder.path().join("key").display()
            ),
        );
        let mut world = Self { link, folder, entrance, exit: None, transport, server: (b, 80).into() };
        world.start_exit();
        world
    }

    fn start_exit(&mut self) {
        let b = self.link.address_b();
        let text = format!(
            "kind = \"gateway-exit\"\nlisten = \"{b}:7172\"\nallowed = [\"{b} 80\"]\ntransport = \"{}\"\npeers = [\"router = {}\"]\n",
            self.transport,
            self.folder.path().join("key").display()
        );
        self.exit = Some(start(&self.link, Side::B, &self.folder, &text));
        self.await_exit(1);
        // Waits until the streams are ready too.
        thread::sleep(Duration::from_secs(1));
    }

    /// Waits until the gateway has an exit, or has none.
    fn await_exit(&self, present: u64) {
        until_or(
            || panic!("not {present}: {}", self.entrance.log_text()),
            || self.entrance.metric("gateway", "exit_present") == present,
        );
    }

    /// Returns median durations, directly and through the gateways, in seconds.
    fn queries(&self) -> (f64, f64) {
        let median = |to: SocketAddr| {
            let mut took: Vec<f64> = (0..QUERIES)
                .map(|_| {
                    thread::sleep(Duration::from_millis(200));
                    let began = now();
                    self.link.run_in_a(|| query(&mut TcpStream::connect(to).unwrap()));
                    began.elapsed().as_secs_f64()
                })
                .collect();
            took.sort_by(f64::total_cmp);
            took[QUERIES / 2]
        };
        (median(self.server), median(ENTRY))
    }

    /// Kills the exit. Returns the time until connections through it are reset.
    fn time_to_reset(&mut self) -> Duration {
        let mut open: Vec<TcpStream> = (0..3)
            .map(|_| {
                self.link.run_in_a(|| {
                    let mut stream = TcpStream::connect(ENTRY).unwrap();
                    query(&mut stream);
                    stream
                })
            })
            .collect();
        let mut exit = self.exit.take().unwrap();
        exit.process.kill().unwrap();
        let died = now();
        exit.process.wait().unwrap();
        for stream in &mut open {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let ended = stream.read(&mut [0; 1]).unwrap_err();
            assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
        }
        died.elapsed()
    }

    /// Checks the bytes of applications in clear, and the time until clients are refused, under attacks.
    fn check_under_attack(&mut self) {
        self.check_sniffer();
        // The host of the closed port answers by ICMP.
        self.attack("no exit, and ICMP that says so", |_| {});
        self.start_exit();
        shell(self.link.host(Side::A), "iptables -w -A OUTPUT -p udp -j DROP");
        self.attack("datagrams dropped", |_| {});
        shell(self.link.host(Side::A), "iptables -w -D OUTPUT -p udp -j DROP");
        self.await_exit(1);
        self.attack("forged ICMP", |stop| forge(&self.link, stop));
        self.await_exit(1);
        self.link.run_in_a(|| query(&mut TcpStream::connect(ENTRY).unwrap()));
    }

    /// Checks that the sniffer detects data in clear. Otherwise the counts below would show nothing.
    fn check_sniffer(&self) {
        let (stop, in_clear) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let sniff = || self.link.run_in_b(|| sniff(self.link.address_a(), &stop, &in_clear));
            thread::Builder::new().spawn_scoped(scope, sniff).unwrap();
            let _stops = StopOnDrop(&stop);
            let sender = self.link.run_in_a(|| UdpSocket::bind((self.link.address_a(), 0)).unwrap());
            let began = now();
            while in_clear.load(Relaxed) == 0 {
                assert!(began.elapsed() < PATIENCE, "a question in clear is not seen");
                sender.send_to(QUERY, (self.link.address_b(), 9)).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
            // Queries that are still in flight do not belong to a gateway.
            thread::sleep(10 * DELAY);
        });
    }

    fn attack(&self, name: &str, attack: impl FnOnce(&AtomicBool) + Send) {
        let (stop, in_clear) = (AtomicBool::new(false), AtomicU64::new(0));
        let (carried, refused, slowest) = thread::scope(|scope| {
            let sniff = || self.link.run_in_b(|| sniff(self.link.address_a(), &stop, &in_clear));
            thread::Builder::new().spawn_scoped(scope, sniff).unwrap();
            thread::Builder::new().spawn_scoped(scope, || attack(&stop)).unwrap();
            let _stops = StopOnDrop(&stop);
            let began = now();
            let (mut carried, mut refused, mut slowest) = (0, 0, Duration::ZERO);
            while began.elapsed() < ATTACK {
                let called = now();
                let is_answered = self.link.run_in_a(|| {
                    let mut stream = TcpStream::connect(ENTRY).unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    let asked = stream.write_all(QUERY);
                    asked.and_then(|()| stream.read_exact(&mut [0; ANSWER.len()])).is_ok()
                });
                if is_answered {
                    carried += 1;
                } else {
                    refused += 1;
                    // The first connection discovers that the exit is gone.
                    slowest = slowest.max(called.elapsed());
                }
                thread::sleep(Duration::from_millis(100));
            }
            (carried, refused, slowest)
        });
        let in_clear = in_clear.load(Relaxed);
        println!(
            "tpa-wide, {name}: {in_clear} packets with bytes in clear; {carried} connections carried, {refused} refused, within {:.1} s",
            slowest.as_secs_f64()
        );
        assert_eq!(in_clear, 0, "{name}");
        // Connections that had sent data when the exit vanished are reset with the rest.
        assert!(slowest <= REFUSAL_LIMIT.max(DETECTION_LIMIT), "{name}: {slowest:?}");
    }
}

fn start(link: &NamespaceLink, side: Side, folder: &TempDir, text: &str) -> Daemon {
    let name = if side == Side::A { "a" } else { "b" };
    let (file, state): (PathBuf, PathBuf) =
        (folder.path().join(name).with_extension("toml"), folder.path().join(name));
    fs::write(&file, format!("state_dir = \"{}\"\n[[proxy]]\n{text}", state.display())).unwrap();
    let mut daemon = Daemon::begin(link.host(side), &file, &state);
    daemon.wait_until("it runs", |status| status["proxies"][0]["state"] == "running");
    daemon
}

fn query(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(QUERY).unwrap();
    let mut answer = [0; ANSWER.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, ANSWER);
}

/// Answers queries until the client ends.
fn answer(mut stream: TcpStream) {
    let mut question = [0; QUERY.len()];
    while stream.read_exact(&mut question).is_ok() && stream.write_all(&ANSWER).is_ok() {}
}

/// Counts packets from `from` with a query in clear.
fn sniff(from: Ipv4Addr, stop: &AtomicBool, in_clear: &AtomicU64) {
    let sockets = [Protocol::TCP, Protocol::UDP].map(|protocol| {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(protocol)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    });
    let mut packet = [0; 65_536];
    while !stop.load(Relaxed) {
        for mut socket in &sockets {
            while let Ok(len) = socket.read(&mut packet) {
                let is_clear = packet[..len].windows(QUERY.len()).any(|part| part == QUERY);
                if packet[12..16] == from.octets() && is_clear {
                    in_clear.fetch_add(1, Relaxed);
                }
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Forges ICMP messages that nothing listens at the exit's port, repeatedly.
fn forge(link: &NamespaceLink, stop: &AtomicBool) {
    let (a, b) = (link.address_a(), link.address_b());
    // Local ports of UDP sockets, in hexadecimal digits.
    let ports: Vec<u16> = shell(link.host(Side::A), "cat /proc/net/udp")
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'))
        .filter_map(|(_, port)| u16::from_str_radix(port, 16).ok())
        .collect();
    assert!(!ports.is_empty());
    link.run_in_b(|| {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        while !stop.load(Relaxed) {
            for &port in &ports {
                let _ = socket.send_to(&unreachable(a, b, port), &SocketAddr::from((a, 0)).into());
            }
            thread::sleep(Duration::from_millis(2));
        }
    });
}

/// Returns an ICMP destination unreachable message, port unreachable (RFC 792), for a datagram from `from` at `port` to the
/// exit at `to`.
fn unreachable(from: Ipv4Addr, to: Ipv4Addr, port: u16) -> Vec<u8> {
    let mut message = vec![3, 3, 0, 0, 0, 0, 0, 0];
    message.extend([0x45, 0, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0]);
    message.extend(from.octets());
    message.extend(to.octets());
    message.extend([port.to_be_bytes(), 7172_u16.to_be_bytes(), 80_u16.to_be_bytes(), [0, 0]].concat());
    let sum: u32 = message.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}
