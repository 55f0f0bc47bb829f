//! Split connections with a call to the server before the client is answered.

use crate::proxy::floods::syns;
use crate::proxy::transfer::{in_a_thread, run_transfer};
use crate::proxy::world::{Daemon, Ground, MOBILE, PATIENCE, SERVER, Version, now, shell, until_or};
use hopline_testkit::namespace::host::open_with_retries;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Configuration that splits all connections.
const SPLIT: &str = "[[proxy]]\nkind = \"split\"\ninterface = \"mobile\"\n";
const PORT: u16 = 5002;
/// Port on which nothing listens.
const CLOSED: u16 = 5999;
/// IPv6 address of the server.
const SERVER_V6: &str = Version::V6.server();

fn split(ground: &Ground) -> Daemon {
    ground.start(SPLIT)
}

/// Connects to a server from the mobile host.
fn call(ground: &Ground, server: &str, port: u16) -> io::Result<TcpStream> {
    let to = SocketAddr::new(server.parse().unwrap(), port);
    ground.mobile.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap()
}

/// Connects in another thread.
fn connect_in_thread(ground: &Ground, server: &str, port: u16) -> JoinHandle<io::Result<TcpStream>> {
    let to = SocketAddr::new(server.parse().unwrap(), port);
    let (begun, begins) = std::sync::mpsc::channel();
    let mobile = ground.mobile.run(|| {
        in_a_thread(move || {
            begun.send(()).unwrap();
            TcpStream::connect_timeout(&to, PATIENCE)
        })
    });
    begins.recv().unwrap();
    mobile.unwrap()
}

fn refused(ground: &Ground, server: &str, port: u16) -> Option<ErrorKind> {
    call(ground, server, port).err().map(|error| error.kind())
}

/// Drops segments for a port of the server.
fn drop_segments_to(ground: &Ground, port: u16, way: &str) {
    shell(&ground.server, &format!("iptables -w {way} INPUT -p tcp --dport {port} -j DROP"));
}

pub(crate) fn a_closed_port_is_refused() {
    let ground = Ground::new();
    let before = ground.listing();
    let mut daemon = split(&ground);
    for server in [SERVER, SERVER_V6] {
        assert_eq!(refused(&ground, server, CLOSED), Some(ErrorKind::ConnectionRefused), "{server}");
        // The port can be reused at once.
        run_transfer([&ground.mobile, &ground.server], (server, PORT), 100_000);
    }
    // Towards the mobile host too.
    let to = SocketAddr::new(MOBILE.parse().unwrap(), CLOSED);
    let called = ground.server.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap();
    assert_eq!(called.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let names = ["connections_ended", "failed_refused_connects", "unheld_connects", "calls_held"];
    let as_expected = || names.map(|name| daemon.metric("split", name)) == [2, 3, 0, 0];
    until_or(|| panic!("{}", daemon.status()), as_expected);
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "ended");
}

pub(crate) fn an_unreachable_network_is_reported() {
    let ground = Ground::new();
    let daemon = split(&ground);
    shell(
        &ground.router,
        "ip route add unreachable 10.7.0.0/16; ip -6 route add unreachable fd07::/16; ip -6 route add prohibit fd06::/16",
    );
    for (server, says) in [
        ("10.7.0.1", ErrorKind::HostUnreachable),
        ("fd07::1", ErrorKind::NetworkUnreachable),
        ("fd06::1", ErrorKind::PermissionDenied),
    ] {
        assert_eq!(refused(&ground, server, PORT), Some(says), "{server}");
    }
    // This router has answered by itself, since it never holds packets that it cannot forward. Here a router farther away
    // answers.
    for (reject, says) in [
        ("icmp-net-unreachable", ErrorKind::NetworkUnreachable),
        ("icmp-host-unreachable", ErrorKind::HostUnreachable),
    ] {
        let rule = format!("INPUT -p tcp --dport {CLOSED} -j REJECT --reject-with {reject}");
        shell(&ground.server, &format!("iptables -w -A {rule}"));
        assert_eq!(refused(&ground, SERVER, CLOSED), Some(says), "{reject}");
        shell(&ground.server, &format!("iptables -w -D {rule}"));
    }
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "failed_unreachable_connects") == 2);
    assert_eq!(daemon.metric("split", "connections_accepted"), 0);
}

pub(crate) fn a_slow_server_is_connected_once() {
    let ground = Ground::new();
    let daemon = split(&ground);
    let listener = open_with_retries(&ground.server, || TcpListener::bind((SERVER, PORT)));
    drop_segments_to(&ground, PORT, "-A");
    let call = connect_in_thread(&ground, SERVER, PORT);
    let retransmitted = || shell(&ground.mobile, "ss -tino state syn-sent").contains("backoff:1");
    until_or(|| panic!("the mobile host does not ask again"), retransmitted);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "calls_held") == 1);
    drop_segments_to(&ground, PORT, "-D");
    let stream = call.join().unwrap().unwrap();
    let (_theirs, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), MOBILE);
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "there is one connection");
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "connections_accepted") == 1);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "calls_held") == 0);
    drop(stream);
}

pub(crate) fn connections_to_black_holes_delay_no_other() {
    const FLOOD: u32 = 3_000;
    let ground = Ground::new();
    let daemon = ground.start(&format!("{SPLIT}max_connections = 64\n"));
    drop_segments_to(&ground, CLOSED, "-A");
    let before = daemon.resident();
    // From the address of the served host, which may use half of the places.
    syns(&ground.mobile, MOBILE.parse().unwrap(), SERVER.parse().unwrap(), CLOSED, FLOOD);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "dropped_held_connects") > 1000);
    assert!(daemon.metric("split", "calls_held") <= 32, "{}", daemon.status());
    run_transfer([&ground.server, &ground.mobile], (MOBILE, PORT), 100_000);
    run_transfer([&ground.mobile, &ground.server], (SERVER, PORT), 100_000);
    assert!(daemon.resident() < before + (8 << 20), "{} bytes, {before} before", daemon.resident());
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "connections_accepted") == 2);
}

pub(crate) fn forged_connections_that_servers_answer_delay_no_other() {
    /// Network of the forged addresses, and of a mobile host that connects.
    const FORGED: [u8; 3] = [10, 77, 0];
    const NEIGHBOUR: &str = "10.77.0.250";
    let ground = Ground::new();
    // Of the 64 connections that the listener can queue, 48 are distributed in shares. SYN-ACKs for the forged addresses
    // vanish at the mobile host.
    let forged = format!("echo 64 > /proc/sys/net/core/somaxconn; ip route add 10.77.0.0/24 via {MOBILE}");
    shell(&ground.router, &forged);
    shell(&ground.mobile, &format!("ip addr add {NEIGHBOUR}/32 dev mobile"));
    let daemon = split(&ground);
    let busy = open_with_retries(&ground.server, || TcpListener::bind((SERVER, CLOSED)));
    in_a_thread(move || while busy.accept().is_ok() {});
    let flood = || {
        for host in 1..=10 {
            let from = [FORGED[0], FORGED[1], FORGED[2], host].into();
            syns(&ground.mobile, from, SERVER.parse().unwrap(), CLOSED, 100);
        }
    };
    flood();
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "unsplit_connects") > 500);
    run_transfer([&ground.mobile, &ground.server], (SERVER, PORT), 100_000);
    let listener = open_with_retries(&ground.server, || TcpListener::bind((SERVER, PORT + 1)));
    let (of_neighbour, to) = (format!("{NEIGHBOUR}:0"), format!("{SERVER}:{}", PORT + 1));
    flood();
    let neighbour = ground.mobile.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&of_neighbour.parse::<SocketAddr>().unwrap().into()).unwrap();
        socket.connect_timeout(&to.parse::<SocketAddr>().unwrap().into(), PATIENCE)
    });
    neighbour.unwrap().unwrap();
    listener.accept().unwrap();
    // Both are split: neither had a waiting call.
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "connections_accepted") == 2);
}

pub(crate) fn a_daemon_killed_with_pending_connections_leaves_nothing_and_they_reach_the_server() {
    let ground = Ground::new();
    let before = ground.listing();
    let mut daemon = ground.start(SPLIT);
    let listener = open_with_retries(&ground.server, || TcpListener::bind((SERVER, PORT)));
    drop_segments_to(&ground, PORT, "-A");
    let call = connect_in_thread(&ground, SERVER, PORT);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "calls_held") == 1);
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    ground.is_as_before(&before, "killed");
    drop_segments_to(&ground, PORT, "-D");
    // The client retransmits its SYN, and nothing splits the connection.
    let _stream = call.join().unwrap().unwrap();
    listener.accept().unwrap();
}

pub(crate) fn client_first_order_answers_before_connecting() {
    let ground = Ground::new();
    let daemon = ground.start(&format!("{SPLIT}onward = \"after\"\n"));
    run_transfer([&ground.mobile, &ground.server], (SERVER, PORT), 100_000);
    // Reset before or after the handshake with the client.
    assert_ne!(refused(&ground, SERVER, CLOSED), Some(ErrorKind::ConnectionRefused));
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "failed_refused_connects") == 1);
    until_or(|| panic!("{}", daemon.status()), || daemon.metric("split", "connections_accepted") == 2);
}

/// Connections of a round, and pairs of rounds.
const CONNECTIONS: usize = 200;
const PAIRS: usize = 7;
/// Bytes of a transfer.
const BYTES: usize = 50_000_000;

/// Cost of a way to connect in one round: medians in microseconds, and Mb/s.
#[derive(Clone, Copy)]
struct Cost {
    connected: f64,
    answered: f64,
    goodput: f64,
}

/// Prints the cost of connecting to the server first. It asserts nothing, because a busy machine would decide.
pub(crate) fn cost_of_server_first_order() {
    let ground = Ground::new();
    let round = |onward: &str| {
        let mut daemon = ground.start(&format!("{SPLIT}onward = \"{onward}\"\n"));
        let cost = measured(&ground);
        assert!(daemon.ended_by("TERM").success());
        cost
    };
    round("first");
    let pairs: Vec<[Cost; 2]> = (0..PAIRS).map(|_| ["after", "first"].map(round)).collect();
    for (what, of) in [
        ("connect(), us", (|cost: &Cost| cost.connected) as fn(&Cost) -> f64),
        ("connect() to the first answer, us", |cost| cost.answered),
        ("goodput, Mb/s", |cost| cost.goodput),
    ] {
        let [after, first] = [0, 1].map(|way| median(pairs.iter().map(|pair| of(&pair[way])).collect()));
        let mut ratios: Vec<f64> = pairs.iter().map(|pair| of(&pair[1]) / of(&pair[0])).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "{what}: after {after:.0}, first {first:.0}, ratio {:.2} [{:.2}, {:.2}]",
            ratios[PAIRS / 2],
            ratios[0],
            ratios[PAIRS - 1]
        );
    }
}

fn measured(ground: &Ground) -> Cost {
    let listener = open_with_retries(&ground.server, || TcpListener::bind((SERVER, PORT)));
    let serve = in_a_thread(move || {
        for _ in 0..CONNECTIONS {
            let (mut stream, _) = listener.accept().unwrap();
            let mut word = [0; 64];
            stream.read_exact(&mut word).unwrap();
            stream.write_all(&word).unwrap();
        }
    });
    let ask = || {
        let began = now();
        let mut stream = TcpStream::connect((SERVER, PORT)).unwrap();
        let connected = began.elapsed();
        stream.write_all(&[7; 64]).unwrap();
        stream.read_exact(&mut [0; 64]).unwrap();
        [connected, began.elapsed()].map(|time| time.as_secs_f64() * 1e6)
    };
    let times: Vec<[f64; 2]> = ground.mobile.run(|| (0..CONNECTIONS).map(|_| ask()).collect()).unwrap();
    serve.join().unwrap();
    let began = now();
    run_transfer([&ground.mobile, &ground.server], (SERVER, PORT + 1), BYTES);
    let goodput = BYTES as f64 * 8e-6 / began.elapsed().as_secs_f64();
    let [connected, answered] = [0, 1].map(|of| median(times.iter().map(|times| times[of]).collect()));
    Cost { connected, answered, goodput }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
