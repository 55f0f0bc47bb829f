//! Split connections that move between the proxies of two stations.

use crate::split::daemon::Daemon;
use crate::split::hosts::{assert_reset, bytes, echo, fill, meanwhile, print_uncaptured, read_to_end};
use crate::split::relay::{self, Relay};
use crate::split::router::{CLIENT, Ip, served};
use crate::split::stations::{MOVES, Stations};
use hopline_testkit::namespace::host::ip as ip_on;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest wait of a host.
const PATIENCE: Duration = Duration::from_secs(20);

struct Ground {
    hosts: Stations,
    proxies: [Daemon; 2],
}

impl Ground {
    fn new(of_second: &[(&str, &str)]) -> Self {
        let hosts = Stations::new();
        let first = Daemon::start(&hosts.stations[0], &[("moves", MOVES[0])]);
        let settings = [&[("moves", MOVES[1])], of_second].concat();
        let second = Daemon::start(&hosts.stations[1], &settings);
        Self { hosts, proxies: [first, second] }
    }

    fn listen(&self, ip: Ip) -> TcpListener {
        self.hosts.server.run(|| TcpListener::bind(served(ip)).unwrap()).unwrap()
    }

    /// A connection, from both ends.
    fn connect(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let to = listener.local_addr().unwrap();
        let ours = self.hosts.mobile.run(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        for stream in [&ours, &theirs] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
        }
        (ours, theirs)
    }

    /// The same, and waits until its station has both halves of it open, which the hosts see earlier: only then it can be moved.
    fn connect_fully(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let (mut ours, mut theirs) = self.connect(listener);
        echo([&mut ours, &mut theirs], b"open").unwrap();
        (ours, theirs)
    }

    /// Has the mobile host's connections come to a station. Returns its answer: how many came, and how many did not.
    fn claim(&mut self, to: usize, ip: Ip) -> String {
        let from = MOVES[1 - to];
        self.proxies[to].request(&format!("claim {} {from}", CLIENT[ip as usize]))
    }

    /// Claims through a relay, in the background.
    fn claim_by(&mut self, relay: &Relay) {
        self.proxies[1].send_request(&format!("claim {} {}", CLIENT[0], relay.address));
    }

    /// Waits until the stations have so many connections.
    fn wait_for_open(&mut self, wanted: [u64; 2]) {
        for (proxy, wanted) in self.proxies.iter_mut().zip(wanted) {
            proxy.wait_for("connections_open", wanted);
        }
    }
}

pub(crate) fn connections_move_back_and_forth_under_loss_over_ipv4() {
    connections_move_back_and_forth_under_loss(Ip::V4);
}

pub(crate) fn connections_move_back_and_forth_under_loss_over_ipv6() {
    connections_move_back_and_forth_under_loss(Ip::V6);
}

fn connections_move_back_and_forth_under_loss(ip: Ip) {
    let mut ground = Ground::new(&[]);
    Stations::lose(&ground.hosts.mobile, 1);
    Stations::lose(&ground.hosts.server, 1);
    let listener = ground.listen(ip);
    let (ours, theirs) = ground.connect(&listener);
    let enough = Arc::new(AtomicBool::new(false));
    let [forth, back] = [("forth", &ours), ("back", &theirs)].map(|(seed, stream)| {
        let (stream, enough) = (stream.try_clone().unwrap(), Arc::clone(&enough));
        meanwhile(move || send_until(stream, seed, &enough))
    });
    let [ours, theirs] =
        [ours, theirs].map(|mut stream| meanwhile(move || read_to_end(&mut stream).unwrap()));
    for to in [1, 0, 1, 0] {
        sleep(Duration::from_millis(200));
        ground.hosts.move_to(to);
        assert_eq!(ground.claim(to, ip), "1 0");
    }
    enough.store(true, Ordering::Relaxed);
    assert_eq!(ours.join().unwrap(), back.join().unwrap());
    assert_eq!(theirs.join().unwrap(), forth.join().unwrap());
}

/// Sends up to 16 MB/s until it is enough, and ends the stream. Returns the hash of what was sent.
fn send_until(mut stream: TcpStream, seed: &str, enough: &AtomicBool) -> blake3::Hash {
    let (mut hasher, mut number) = (blake3::Hasher::new(), 0u64);
    while !enough.load(Ordering::Relaxed) {
        let chunk = bytes(&format!("{seed} {number}"), 16_000);
        stream.write_all(&chunk).unwrap();
        hasher.update(&chunk);
        number += 1;
        sleep(Duration::from_millis(1));
    }
    stream.shutdown(Shutdown::Write).unwrap();
    hasher.finalize()
}

pub(crate) fn many_connections_move() {
    const MANY: usize = 10;
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    let mut pairs: Vec<_> = (0..MANY).map(|_| ground.connect(&listener)).collect();
    // Full in one direction, so that all queues of both halves are.
    let sent: Vec<usize> = pairs.iter_mut().map(|(ours, _)| fill(ours, &[7; 1 << 16])).collect();
    ground.hosts.move_to(1);
    assert_eq!(ground.claim(1, Ip::V4), format!("{MANY} 0"));
    let ends = pairs.into_iter().zip(sent).enumerate().map(|(number, ((ours, mut theirs), sent))| {
        meanwhile(move || {
            ours.shutdown(Shutdown::Write).unwrap();
            let mut received = Vec::new();
            theirs.read_to_end(&mut received).unwrap();
            assert!(received.len() == sent && received.iter().all(|byte| *byte == 7), "{number}");
        })
    });
    ends.collect::<Vec<_>>().into_iter().for_each(|end| end.join().unwrap());
    ground.proxies[0].wait_for("connections_open", 0);
    ground.proxies[0].wait_for("moved_away_connections", MANY as u64);
    ground.proxies[1].wait_for("moved_here_connections", MANY as u64);
}

pub(crate) fn a_half_closed_connection_is_not_moved() {
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    let (ours, mut theirs) = ground.connect(&listener);
    ours.shutdown(Shutdown::Write).unwrap();
    assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
    assert_eq!(ground.claim(1, Ip::V4), "0 0");
    theirs.write_all(b"still here").unwrap();
    drop(theirs);
    assert_eq!(read_to_end(&mut { ours }).unwrap(), blake3::hash(b"still here"));
}

pub(crate) fn a_full_station_refuses_and_the_connection_continues() {
    let mut ground = Ground::new(&[("most", "1")]);
    let listener = ground.listen(Ip::V4);
    let mut pairs = [(); 2].map(|()| ground.connect_fully(&listener));
    assert_eq!(ground.claim(1, Ip::V4), "1 1");
    ground.wait_for_open([1, 1]);
    // One of them is at each station. What comes to the other one is dropped there.
    ground.hosts.move_to(0);
    pairs.iter_mut().for_each(|(ours, _)| ours.write_all(b"x").unwrap());
    sleep(Duration::from_millis(300));
    ground.hosts.move_to(1);
    pairs.iter_mut().for_each(|(_, theirs)| theirs.read_exact(&mut [0]).unwrap());
    ground.proxies[0].wait_for("unmoved_connections", 1);
    ground.proxies[0].wait_for("lost_moving_connections", 0);
}

pub(crate) fn a_station_of_another_network_gets_no_connection() {
    let mut ground = Ground::new(&[("key", "9")]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_fully(&listener);
    let answer = ground.claim(1, Ip::V4);
    assert!(answer.starts_with("error: "), "{answer}");
    echo([&mut ours, &mut theirs], b"undisturbed").unwrap();
    ground.wait_for_open([1, 0]);
}

/// Whatever ends the conversation before the commit, the holder goes on.
pub(crate) fn a_connection_is_not_moved_before_the_commit() {
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    for kind in [relay::CLAIM, relay::OFFER, relay::BYTES, relay::READY] {
        let (mut ours, mut theirs) = ground.connect_fully(&listener);
        // Bytes are on their way in both directions, and come while the connection is frozen.
        ours.write_all(b"before ").unwrap();
        let relay = Relay::stopping_before(&ground.hosts, kind);
        ground.claim_by(&relay);
        relay.wait();
        ours.write_all(b"meanwhile").unwrap();
        theirs.write_all(b"back").unwrap();
        drop(relay);
        let mut read = [0; 16];
        theirs.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"before meanwhile", "{kind}");
        let mut read = [0; 4];
        ours.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"back", "{kind}");
        let answer = ground.proxies[1].request("");
        assert!(answer.starts_with("error: "), "{answer}");
        ground.wait_for_open([1, 0]);
        drop(ours);
        drop(theirs);
        ground.proxies[0].wait_for("connections_open", 0);
    }
}

/// Both hosts send while no station has the connection.
pub(crate) fn data_sent_during_a_move_are_not_lost() {
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    for kind in [relay::READY, relay::COMMIT, relay::DONE] {
        ground.hosts.move_to(0);
        let (mut ours, mut theirs) = ground.connect(&listener);
        // Each answers the other, so that the station delays its ACK of what comes last.
        for _ in 0..5 {
            echo([&mut ours, &mut theirs], b"question").unwrap();
            echo([&mut theirs, &mut ours], b"answer").unwrap();
        }
        echo([&mut ours, &mut theirs], b"question").unwrap();
        let relay = Relay::stopping_before(&ground.hosts, kind);
        ground.claim_by(&relay);
        relay.wait();
        ours.write_all(b"forth").unwrap();
        theirs.write_all(b"back").unwrap();
        ground.hosts.move_to(1);
        ours.write_all(b"forth").unwrap();
        theirs.write_all(b"back").unwrap();
        sleep(Duration::from_millis(200));
        relay.resume_forwarding();
        assert_eq!(ground.proxies[1].request(""), "1 0");
        let (mut forth, mut back) = ([0; 10], [0; 8]);
        theirs.read_exact(&mut forth).unwrap();
        ours.read_exact(&mut back).unwrap();
        assert_eq!((&forth, &back), (b"forthforth", b"backback"));
        ground.proxies[0].wait_for("connections_open", 0);
    }
}

pub(crate) fn an_uncertain_move_resets_both_hosts() {
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    for kind in [relay::COMMIT, relay::DONE] {
        let (mut ours, mut theirs) = ground.connect_fully(&listener);
        let relay = Relay::stopping_before(&ground.hosts, kind);
        ground.claim_by(&relay);
        relay.wait();
        drop(relay);
        assert_reset(&mut ours);
        assert_reset(&mut theirs);
        let _ = ground.proxies[1].request("");
        ground.proxies[0].wait_for("connections_open", 0);
    }
    ground.proxies[0].wait_for("lost_moving_connections", 2);
}

pub(crate) fn a_killed_claimant_leaves_the_connection() {
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect(&listener);
    let sent = fill(&mut ours, &[7; 1 << 16]);
    let relay = Relay::stopping_before(&ground.hosts, relay::READY);
    ground.claim_by(&relay);
    relay.wait();
    // Its sockets are there, and end in silence.
    ground.proxies[1].kill();
    drop(relay);
    ours.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    theirs.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), sent);
}

pub(crate) fn a_killed_holder_resets_both_hosts() {
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    let mut idle = ground.connect(&listener);
    let mut full = ground.connect(&listener);
    echo([&mut idle.0, &mut idle.1], b"here").unwrap();
    fill(&mut full.0, &[7; 1 << 16]);
    let relay = Relay::stopping_before(&ground.hosts, relay::READY);
    ground.claim_by(&relay);
    relay.wait();
    ground.proxies[0].kill();
    for stream in [&mut idle.0, &mut idle.1, &mut full.1] {
        assert_reset(stream);
    }
    drop(relay);
    let answer = ground.proxies[1].request("");
    assert!(answer.starts_with("error: "), "{answer}");
    ground.proxies[1].wait_for("connections_open", 0);
}

pub(crate) fn a_client_may_reuse_the_port_of_a_moved_connection_for_other_servers() {
    let mut ground = Ground::new(&[]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_fully(&listener);
    ground.hosts.move_to(1);
    assert_eq!(ground.claim(1, Ip::V4), "1 0");
    ip_on(&ground.hosts.server, "addr add 10.8.0.2/32 dev lo");
    ip_on(&ground.hosts.stations[1], "route add 10.8.0.2/32 via 10.4.0.1");
    let other = ground.hosts.server.run(|| TcpListener::bind("10.8.0.2:80").unwrap()).unwrap();
    let from = ours.local_addr().unwrap();
    let call = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        SockRef::from(&ours).set_reuse_address(true).unwrap();
        socket.bind(&from.into()).map(|()| socket)
    };
    // Where this host allows it.
    if let Ok(socket) = ground.hosts.mobile.run(call).unwrap() {
        socket.connect(&other.local_addr().unwrap().into()).unwrap();
        let mut second = TcpStream::from(socket);
        let (mut at_other, _) = other.accept().unwrap();
        echo([&mut second, &mut at_other], b"the same port").unwrap();
    }
    echo([&mut ours, &mut theirs], b"and the first").unwrap();
}

#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// Pauses of moves, by the longest time for which a host that receives heard nothing, and the bytes that moved.
pub(crate) fn pause_of_a_move() {
    const ROUNDS: usize = 10;
    for busy in [false, true] {
        let mut rows = Vec::new();
        for _ in 0..ROUNDS {
            let mut ground = Ground::new(&[]);
            let listener = ground.listen(Ip::V4);
            let (mut ours, mut theirs) = ground.connect(&listener);
            echo([&mut ours, &mut theirs], b"here").unwrap();
            let writer = meanwhile(move || {
                // A byte in a millisecond, or as much as goes.
                let chunk = vec![7; if busy { 1 << 16 } else { 1 }];
                while theirs.write_all(&chunk).is_ok() {
                    if !busy {
                        sleep(Duration::from_millis(1));
                    }
                }
            });
            let reader = meanwhile(move || {
                let (mut longest, mut last, mut buffer) = (Duration::ZERO, now(), vec![0; 1 << 16]);
                let end = last + Duration::from_millis(2500);
                while last < end && ours.read(&mut buffer).unwrap() > 0 {
                    longest = longest.max(last.elapsed());
                    last = now();
                }
                longest
            });
            sleep(Duration::from_millis(500));
            ground.hosts.move_to(1);
            let began = now();
            assert_eq!(ground.claim(1, Ip::V4), "1 0");
            let took = began.elapsed();
            let longest = reader.join().unwrap();
            drop(ground.proxies[1].figures());
            rows.push((took, longest, ground.proxies[1].figures()["moved_here_bytes"]));
            drop(ground);
            let _ = writer.join();
        }
        let median = |of: &dyn Fn(&(Duration, Duration, u64)) -> f64| {
            let mut all: Vec<f64> = rows.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            (all[ROUNDS / 2], all[0], all[ROUNDS - 1])
        };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        print_uncaptured(&format!("busy {busy}: median, least, most"));
        print_uncaptured(&format!("  claim, ms: {:.1?}", median(&|row| ms(row.0))));
        print_uncaptured(&format!("  longest silence, ms: {:.1?}", median(&|row| ms(row.1))));
        print_uncaptured(&format!("  state, bytes: {:.0?}", median(&|row| row.2 as f64)));
    }
}
