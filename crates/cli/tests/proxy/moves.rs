//! Split connections that follow a mobile host between two stations, each with a base station and a split proxy in one daemon.

use crate::proxy::cells::{Cells, HOST, KEYS, PORT, STATIONS};
use crate::proxy::transfer::{byte, in_a_thread};
use crate::proxy::world::{PATIENCE, now, shell, sorted, until_or};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const SERVED: u16 = 80;

/// Bytes in one direction of a connection, until it is enough.
struct Flow {
    arrived: Arc<AtomicU64>,
    enough: Arc<AtomicBool>,
    sender: JoinHandle<io::Result<u64>>,
    receiver: JoinHandle<io::Result<u64>>,
}

impl Flow {
    /// Begins to send, up to 8 MB/s.
    fn start(seed: u64, from: &TcpStream, to: &TcpStream) -> Self {
        let [mut from, mut to] = [from, to].map(|stream| stream.try_clone().unwrap());
        let (arrived, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, is_enough) = (Arc::clone(&arrived), Arc::clone(&enough));
        let sender = in_a_thread(move || {
            let mut at = 0;
            while !is_enough.load(Relaxed) {
                let chunk: Vec<u8> = (at..at + 16_000).map(|i| byte(seed, i)).collect();
                from.write_all(&chunk)?;
                at += chunk.len();
                thread::sleep(Duration::from_millis(2));
            }
            from.shutdown(Shutdown::Write)?;
            Ok(at as u64)
        });
        let receiver = in_a_thread(move || {
            let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
            loop {
                let len = to.read(&mut buffer)?;
                if len == 0 {
                    return Ok(at as u64);
                }
                let is_right = buffer[..len].iter().enumerate().all(|(i, had)| *had == byte(seed, at + i));
                assert!(is_right, "wrong bytes after {at}");
                at += len;
                seen.store(at as u64, Relaxed);
            }
        });
        Self { arrived, enough, sender, receiver }
    }

    /// Waits until more has arrived than now.
    fn await_more(&self, what: &str) {
        // More than what may be in buffers beyond the stations.
        let wanted = self.arrived.load(Relaxed) + 200_000;
        until_or(
            || panic!("{what}: no more than {} of {wanted}", self.arrived.load(Relaxed)),
            || self.arrived.load(Relaxed) >= wanted,
        );
    }

    /// Ends it: all that was sent has arrived.
    fn finish(self) {
        self.enough.store(true, Relaxed);
        let sent = self.sender.join().unwrap().unwrap();
        assert_eq!(self.receiver.join().unwrap().unwrap(), sent);
        assert!(sent > 0);
    }
}

pub(crate) fn connections_follow_their_host_between_stations() {
    connections_follow("multicast");
}

pub(crate) fn connections_follow_their_host_by_registration() {
    connections_follow("registration");
}

fn connections_follow(scheme: &str) {
    let mut cells = Cells::new();
    let before = cells.listings();
    cells.start_home_agent(scheme);
    (0..2).for_each(|number| cells.start_station(number, KEYS[0]));
    cells.start_mobile_host(scheme);
    cells.wait_for_station(0);
    let [ours, theirs] = cells.connect(SERVED);
    let [mut idle, mut their_idle] = cells.connect(SERVED + 1);
    // One that the server has made to the mobile host.
    let [mut called, mut caller] = called(&cells);
    cells.wait_for(0, "connections_open", 3);
    let flows = [Flow::start(1, &ours, &theirs), Flow::start(2, &theirs, &ours)];
    for (round, to) in [1, 0, 1, 0].into_iter().enumerate() {
        flows.iter().for_each(|flow| flow.await_more("before a handoff"));
        cells.move_to(to);
        cells.wait_for_station(to);
        cells.wait_for(to, "moved_here_connections", 3 * (round as u64 / 2 + 1));
        cells.wait_for(to, "connections_open", 3);
        cells.wait_for(1 - to, "connections_open", 0);
        flows.iter().for_each(|flow| flow.await_more("after a handoff"));
        exchange([&mut idle, &mut their_idle]);
        exchange([&mut caller, &mut called]);
    }
    flows.into_iter().for_each(Flow::finish);
    for station in [0, 1] {
        for figure in [
            "lost_moving_connections",
            "failed_claims",
            "refused_claims",
            "broken_claims",
            "connections_reset",
        ] {
            assert_eq!(
                cells.metric(station, "split", figure),
                0,
                "{figure}: {}",
                cells.daemon(station).status()
            );
        }
    }
    drop((ours, theirs, idle, their_idle));
    cells.end_stations(&before);
}

/// A connection that the server has made: the end of the mobile host, and the server's.
fn called(cells: &Cells) -> [TcpStream; 2] {
    let to = (HOST.parse::<std::net::IpAddr>().unwrap(), 8080).into();
    let listener = cells.mobile.run(|| TcpListener::bind(to)).unwrap().unwrap();
    let call = || TcpStream::connect_timeout(&to, PATIENCE);
    let theirs = cells.server.run(call).unwrap().unwrap();
    let ours = listener.accept().unwrap().0;
    [&ours, &theirs].into_iter().for_each(|end| end.set_read_timeout(Some(PATIENCE)).unwrap());
    [ours, theirs]
}

/// A word each way.
fn exchange(ends: [&mut TcpStream; 2]) {
    let [one, other] = ends;
    word(one, other);
    word(other, one);
}

fn word(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(b"word").unwrap();
    let mut read = [0; 4];
    to.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"word");
}

pub(crate) fn a_killed_station_resets_its_connections_and_the_other_one_serves() {
    let mut cells = Cells::running("multicast");
    let [mut ours, mut theirs] = cells.connect(SERVED);
    exchange([&mut ours, &mut theirs]);
    let mut daemon = cells.stations[0].take().unwrap();
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    for stream in [&mut ours, &mut theirs] {
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    cells.move_to(1);
    cells.wait_for_station(1);
    let [mut ours, mut theirs] = cells.connect(SERVED);
    exchange([&mut ours, &mut theirs]);
    cells.wait_for(1, "connections_open", 1);
    // It has asked the other station, in vain.
    until_or(|| panic!("{}", cells.daemon(1).status()), || cells.metric(1, "split", "failed_claims") > 0);
    assert!(
        cells.daemon(1).log_text().contains("does not give connections away"),
        "{}",
        cells.daemon(1).log_text()
    );
}

pub(crate) fn a_restarted_station_claims_the_connections_of_the_other_one() {
    let mut cells = Cells::running("multicast");
    drop(cells.stations[1].take());
    cells.start_station(1, KEYS[0]);
    let [mut ours, mut theirs] = cells.connect(SERVED);
    cells.move_to(1);
    cells.wait_for(1, "moved_here_connections", 1);
    exchange([&mut ours, &mut theirs]);
}

pub(crate) fn a_station_of_another_network_gets_and_gives_no_connection() {
    let mut cells = Cells::new();
    cells.start_home_agent("multicast");
    cells.start_station(0, KEYS[0]);
    cells.start_station(1, KEYS[1]);
    cells.start_mobile_host("multicast");
    cells.wait_for_station(0);
    let [mut ours, mut theirs] = cells.connect(SERVED);
    until_or(|| panic!("{}", cells.daemon(0).status()), || cells.metric(0, "split", "failed_claims") > 0);
    until_or(|| panic!("{}", cells.daemon(1).status()), || cells.metric(1, "split", "broken_claims") > 0);
    let said = cells.daemon(0).log_text();
    assert!(
        said.contains(&format!("the station {}:{PORT} does not give connections away", STATIONS[1])),
        "{said}"
    );
    exchange([&mut ours, &mut theirs]);
    // A claim from an address that is no station's.
    let to = format!("{}:{PORT}", STATIONS[0]);
    let claim = || TcpStream::connect(&to);
    let mut stranger = cells.server.run(claim).unwrap().unwrap();
    stranger.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(stranger.read(&mut [0; 32]).map_or(true, |len| len == 0), "it is not answered");
    cells.wait_for(0, "refused_claims", 1);
    exchange([&mut ours, &mut theirs]);
}

pub(crate) fn an_unreachable_previous_station_is_asked_again() {
    let cells = Cells::running("multicast");
    let [mut ours, mut theirs] = cells.connect(SERVED);
    exchange([&mut ours, &mut theirs]);
    let rule = |way: &str| {
        shell(
            &cells.hosts[0],
            &format!(
                "iptables -w {way} INPUT -p tcp --dport {PORT} -j REJECT --reject-with icmp-host-unreachable"
            ),
        );
    };
    rule("-A");
    cells.move_to(1);
    until_or(|| panic!("{}", cells.daemon(1).status()), || cells.metric(1, "split", "failed_claims") > 0);
    // The connection is where it was, and no host has heard of an end.
    cells.wait_for(0, "connections_open", 1);
    ours.write_all(b"meanwhile").unwrap();
    rule("-D");
    cells.wait_for(1, "moved_here_connections", 1);
    let mut read = [0; 9];
    theirs.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"meanwhile");
    exchange([&mut ours, &mut theirs]);
}

pub(crate) fn a_connection_that_was_not_moved_continues_when_its_host_returns() {
    let cells = Cells::running("registration");
    let [mut ours, mut theirs] = cells.connect(SERVED);
    exchange([&mut ours, &mut theirs]);
    shell(&cells.hosts[0], &format!("iptables -w -A INPUT -p tcp --dport {PORT} -j DROP"));
    cells.move_to(1);
    cells.wait_for_station(1);
    until_or(|| panic!("{}", cells.daemon(1).status()), || cells.metric(1, "split", "failed_claims") > 0);
    ours.write_all(b"meanwhile").unwrap();
    cells.move_to(0);
    cells.wait_for_station(0);
    let mut read = [0; 9];
    theirs.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"meanwhile");
    exchange([&mut ours, &mut theirs]);
}

pub(crate) fn without_moves_connections_beside_a_base_station_are_not_split() {
    let mut cells = Cells::new();
    cells.start_home_agent("multicast");
    let text = cells.station(0, KEYS[0]);
    let without: String =
        text.lines().filter(|line| !line.starts_with("moves")).map(|line| format!("{line}\n")).collect();
    cells.start_station_of(0, &without);
    cells.start_mobile_host("multicast");
    cells.wait_for_station(0);
    let [mut ours, mut theirs] = cells.connect(SERVED);
    exchange([&mut ours, &mut theirs]);
    cells.wait_for(0, "unfollowed_connects", 1);
    assert_eq!(cells.metric(0, "split", "connections_accepted"), 0);
}

pub(crate) fn moves_are_rejected_where_connections_are_tracked() {
    let mut cells = Cells::new();
    shell(
        &cells.hosts[0],
        "nft 'table ip nat { chain post { type nat hook postrouting priority srcnat; oifname wire masquerade; }; }'",
    );
    let text = cells.station(0, KEYS[0]);
    let before = cells.listings();
    let said = cells.fails(0, &text);
    assert!(said.contains("connection tracking is in use") && said.contains("`moves`"), "{said}");
    let after = cells.listings();
    assert_eq!(sorted(&after[0]), sorted(&before[0]));
    shell(&cells.hosts[0], "nft delete table ip nat");
    cells.start_station(0, KEYS[0]);
}

pub(crate) fn connections_are_not_moved_once_tracking_begins() {
    let cells = Cells::running("multicast");
    let [mut ours, mut theirs] = cells.connect(SERVED);
    exchange([&mut ours, &mut theirs]);
    shell(
        &cells.hosts[0],
        "nft 'table ip counts { chain forwarded { type filter hook forward priority 0; ct state established counter; }; }'",
    );
    let said = || cells.daemon(0).log_text();
    until_or(|| panic!("{}", said()), || said().contains("connections stay at this station"));
    cells.move_to(1);
    cells.wait_for_station(1);
    until_or(|| panic!("{}", cells.daemon(1).status()), || cells.metric(1, "split", "claims") > 1);
    cells.wait_for(0, "connections_open", 1);
    assert_eq!(cells.metric(1, "split", "moved_here_connections"), 0);
    cells.move_to(0);
    exchange([&mut ours, &mut theirs]);
}

/// Longest silences at the mobile host in which a connection moves.
pub(crate) fn silence_of_a_handoff() {
    const ROUNDS: usize = 10;
    for scheme in ["multicast", "registration"] {
        for (name, size, pause) in [("a byte each ms", 1, 1), ("as much as goes", 1 << 16, 0)] {
            let cells = Cells::running(scheme);
            let [mut ours, mut theirs] = cells.connect(SERVED);
            let over = Arc::new(AtomicBool::new(false));
            let (longest, is_over) = (Arc::new(AtomicU64::new(0)), Arc::clone(&over));
            let seen = Arc::clone(&longest);
            let writer = in_a_thread(move || {
                let chunk = vec![7; size];
                while theirs.write_all(&chunk).is_ok() {
                    thread::sleep(Duration::from_millis(pause));
                }
            });
            let reader = in_a_thread(move || {
                let (mut last, mut buffer) = (now(), vec![0; 1 << 16]);
                while !is_over.load(Relaxed) && ours.read(&mut buffer).unwrap() > 0 {
                    seen.fetch_max(last.elapsed().as_micros() as u64, Relaxed);
                    last = now();
                }
            });
            let mut silences = Vec::new();
            for round in 0..ROUNDS {
                thread::sleep(Duration::from_secs(1));
                longest.store(0, Relaxed);
                let to = 1 - round % 2;
                cells.move_to(to);
                cells.wait_for(to, "moved_here_connections", round as u64 / 2 + 1);
                thread::sleep(Duration::from_millis(1500));
                silences.push(longest.load(Relaxed) as f64 / 1e3);
            }
            over.store(true, Relaxed);
            reader.join().unwrap();
            let _ = writer.join();
            let stayed = [0, 1].map(|station| cells.metric(station, "split", "unmoved_connections"));
            silences.sort_by(f64::total_cmp);
            println!(
                "{scheme}, {name}: longest silence, ms: median {:.0}, least {:.0}, most {:.0}; moves in vain: {}",
                (silences[ROUNDS / 2 - 1] + silences[ROUNDS / 2]) / 2.0,
                silences[0],
                silences[ROUNDS - 1],
                stayed.iter().sum::<u64>()
            );
        }
    }
}
