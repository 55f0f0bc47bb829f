//! TPA, or TCP where the peer does not answer TPA, over a link of 100 ms: filters, losses, a translator of addresses.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod measured;

use hopline_core::Duration as Span;
use hopline_harness::{Need, Test};
use hopline_link::{Emulation, Side};
use hopline_linux::Namespace;
use hopline_streams::fallback::{Config, Connector, Listener, Port, Stream};
use hopline_streams::tpa::TpaListener;
use hopline_testkit::namespace::host::succeed;
use hopline_testkit::namespace::{LINK, unless_late};
use hopline_tools::link::{EndConfig, EndRole, NamespaceLink, Setup};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One way.
const DELAY: Span = Span::from_millis(50);
const PORT: u16 = 7176;
const HUNG: Duration = Duration::from_secs(60);
const NEEDS: [Need; 2] = [LINK, Need::Program("iptables")];

pub(crate) fn tests() -> Vec<Test> {
    let tests = hopline_harness::tests!(NEEDS;
        a_peer_with_both_costs_a_round_trip,
        a_path_without_udp_costs_another_round_trip_twice,
        a_path_without_tcp_costs_nothing,
        a_peer_that_answers_over_neither_is_given_up,
        a_client_behind_nat_is_served,
        losses_neither_duplicate_nor_drop_a_byte,
    );
    let drill = Test::new("fallback_over_link", NEEDS, measured::drill).long().alone();
    tests.into_iter().chain([drill]).collect()
}

/// Transports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerTransports {
    Both,
    Tpa,
    Tcp,
}

/// Packets that the server's host drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DroppedPackets {
    Nothing,
    Udp,
    Tcp,
}

/// A client on host A, and on host B a server that sends back what it has received, to its end.
struct World {
    link: NamespaceLink,
    server: Server,
    to: SocketAddr,
}

/// A thread that accepts connections, and what it has counted.
struct Server {
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Connections that a server has accepted, and those of them that ended without any data.
#[derive(Debug, Default)]
struct Counts {
    tpa: AtomicU64,
    tcp: AtomicU64,
    empty: AtomicU64,
}

enum Listening {
    Both(Listener),
    Tpa(TpaListener),
    Tcp(TcpListener),
}

impl World {
    fn new(serves: ServerTransports, dropped: DroppedPackets, loss: f64) -> Self {
        Self::with(Setup::new(delayed(loss), delayed(loss), 7), serves, dropped)
    }

    fn with(setup: Setup, serves: ServerTransports, dropped: DroppedPackets) -> Self {
        let link = NamespaceLink::with(setup).unwrap();
        let to = SocketAddr::new(IpAddr::V4(link.host_v4(Side::B)), PORT);
        let server = link.run_in_b(|| Server::start(to, serves));
        match dropped {
            DroppedPackets::Nothing => {}
            DroppedPackets::Udp => drop_at(link.host(Side::B), "udp"),
            DroppedPackets::Tcp => drop_at(link.host(Side::B), "tcp"),
        }
        Self { link, server, to }
    }

    /// A connection, and the time until it was there.
    fn connect(&self, connector: &Connector, config: &Config) -> io::Result<(Stream, Duration)> {
        self.link.run_in_a(|| {
            let began = now();
            let stream = connector.begin(None, self.to, config)?.wait(Some(HUNG))?;
            Ok((stream, began.elapsed()))
        })
    }

    /// Connections of one client after the other, with an echo over each: whether they went over TPA, and the time until they were there.
    fn connections(&self, count: usize) -> Vec<(bool, Duration)> {
        let connector = Connector::default();
        let connection = |_| {
            let (stream, took) = self.connect(&connector, &config()).unwrap();
            through_echo(&stream, 1000);
            (matches!(stream, Stream::Tpa(_)), took)
        };
        (0..count).map(connection).collect()
    }
}

fn delayed(loss: f64) -> Emulation {
    Emulation::delay(DELAY).with_loss(loss)
}

fn drop_at(host: &Namespace, protocol: &str) {
    succeed(host, "iptables", &format!("-w -A INPUT -p {protocol} --dport {PORT} -j DROP"));
}

impl Server {
    fn start(at: SocketAddr, serves: ServerTransports) -> Self {
        let config = config();
        let listening = match serves {
            ServerTransports::Both => Listening::Both(Port::bind(at).unwrap().listen(&config, 64).unwrap()),
            ServerTransports::Tpa => Listening::Tpa(TpaListener::bind(at, &config.tpa()).unwrap()),
            ServerTransports::Tcp => Listening::Tcp(TcpListener::bind(at).unwrap()),
        };
        listening.set_nonblocking();
        let (counts, stop) = (Arc::<Counts>::default(), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (Arc::clone(&counts), Arc::clone(&stop));
        let run = move || {
            while !stopped.load(Relaxed) {
                match listening.accept() {
                    Ok(stream) => counted.serve(stream),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        thread::sleep(Duration::from_millis(1));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let thread = thread::Builder::new().name("server".into()).spawn(run).unwrap();
        Self { counts, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // Its panic is on stderr already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Listening {
    fn set_nonblocking(&self) {
        match self {
            Self::Both(listener) => listener.set_nonblocking(true),
            Self::Tpa(listener) => listener.set_nonblocking(true),
            Self::Tcp(listener) => listener.set_nonblocking(true).unwrap(),
        }
    }

    fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Both(listener) => listener.accept()?.0,
            Self::Tpa(listener) => Stream::Tpa(listener.accept()?.0),
            Self::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
        })
    }
}

impl Counts {
    /// On a thread of its own.
    fn serve(self: &Arc<Self>, stream: Stream) {
        let count = if matches!(stream, Stream::Tpa(_)) { &self.tpa } else { &self.tcp };
        count.fetch_add(1, Relaxed);
        let counts = Arc::clone(self);
        let echo = move || {
            let mut got = Vec::new();
            let read = (&stream).read_to_end(&mut got);
            if got.is_empty() {
                counts.empty.fetch_add(1, Relaxed);
            }
            // A client that has lost interest is the client's affair.
            if read.is_ok() && (&stream).write_all(&got).is_ok() {
                let _ = stream.close_within(HUNG);
            }
        };
        thread::Builder::new().name("echo".into()).spawn(echo).unwrap();
    }

    fn read(&self) -> [u64; 3] {
        [&self.tpa, &self.tcp, &self.empty].map(|count| count.load(Relaxed))
    }
}

/// The usual parameters, but nothing lingers.
fn config() -> Config {
    let mut config = Config::default();
    config = config
        .with_tpa(config.tpa().with_time_wait(Span::from_millis(20)).with_block_fill(Span::from_millis(5)));
    config
}

#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
fn now() -> Instant {
    Instant::now()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// Sends so many bytes, and compares what comes back.
fn through_echo(stream: &Stream, len: usize) {
    let (mut sender, mut receiver, data) = (stream, stream, pattern(len));
    sender.write_all(&data).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    receiver.read_to_end(&mut got).unwrap();
    assert!(got == data, "{} bytes came back of {len}", got.len());
}

fn is_about(took: Duration, round_trips: f64) -> bool {
    (took.as_secs_f64() - round_trips * 0.1).abs() < 0.03
}

fn a_peer_with_both_costs_a_round_trip() {
    let world = World::new(ServerTransports::Both, DroppedPackets::Nothing, 0.0);
    let took = world.connections(3);
    unless_late(&world.link, "a connection", || {
        assert!(took.iter().all(|&(over_tpa, took)| over_tpa && is_about(took, 1.0)), "{took:?}");
        assert_eq!(world.server.counts.read(), [3, 0, 0], "TCP that has lost is not seen");
    });
}

fn a_path_without_udp_costs_another_round_trip_twice() {
    let world = World::new(ServerTransports::Both, DroppedPackets::Udp, 0.0);
    let took = world.connections(4);
    assert_eq!(world.server.counts.read(), [0, 4, 0]);
    unless_late(&world.link, "a connection", || {
        let round_trips = [2.0, 2.0, 1.0, 1.0];
        assert!(took.iter().zip(round_trips).all(|(&(_, took), n)| is_about(took, n)), "{took:?}");
    });
}

fn a_path_without_tcp_costs_nothing() {
    let world = World::new(ServerTransports::Both, DroppedPackets::Tcp, 0.0);
    let (stream, _) = world.connect(&Connector::default(), &config()).unwrap();
    through_echo(&stream, 1000);
    assert_eq!(world.server.counts.read(), [1, 0, 0]);
}

fn a_peer_that_answers_over_neither_is_given_up() {
    let world = World::new(ServerTransports::Tcp, DroppedPackets::Tcp, 0.0);
    drop_at(world.link.host(Side::B), "udp");
    let limit = Some(Duration::from_millis(700));
    let silent = world.link.run_in_a(|| Connector::default().connect(world.to, &config(), limit));
    assert_eq!(silent.unwrap_err().kind(), ErrorKind::TimedOut);
}

/// Both attempts of a client come from other ports than it has.
fn a_client_behind_nat_is_served() {
    let mut setup = Setup::new(delayed(0.0), delayed(0.0), 7);
    setup.ends[0] = EndConfig { role: EndRole::Router, ..EndConfig::default() };
    for (dropped, expected) in [(DroppedPackets::Nothing, [1, 0, 0]), (DroppedPackets::Udp, [0, 1, 0])] {
        let world = World::with(setup.clone(), ServerTransports::Both, dropped);
        let router = world.link.router(Side::A).unwrap();
        succeed(router, "iptables", "-w -t nat -A POSTROUTING -j MASQUERADE --random");
        let (stream, _) = world.connect(&Connector::default(), &config()).unwrap();
        through_echo(&stream, 10_000);
        assert_eq!(world.server.counts.read(), expected);
    }
}

fn losses_neither_duplicate_nor_drop_a_byte() {
    let world = World::new(ServerTransports::Both, DroppedPackets::Nothing, 0.1);
    let connector = Connector::default();
    let client = || {
        let (stream, _) = world.connect(&connector, &config()).unwrap();
        through_echo(&stream, 20_000);
        matches!(stream, Stream::Tpa(_))
    };
    let over_tpa = thread::scope(|scope| {
        let clients: Vec<_> = (0..10).map(|_| scope.spawn(client)).collect();
        clients.into_iter().filter_map(|client| client.join().unwrap().then_some(())).count()
    });
    let [tpa, tcp, empty] = world.server.counts.read();
    assert_eq!((tpa as usize, tpa + tcp, empty), (over_tpa, 10, 0));
}
