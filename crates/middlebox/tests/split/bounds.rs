//! Limits: memory that must not grow, threads that must not spin, a port that must not be open to other hosts.

use crate::split::daemon::{Daemon, PORT};
use crate::split::hosts::{assert_refused, bytes, echo, fill, read_to_end};
use crate::split::router::{Ground, Ip, served};
use hopline_linux::Namespace;
use hopline_linux::transparent::LegOptions;
use hopline_middlebox::split::{Config, LegPolicy, Split};
use rustix::process::{Resource, getrlimit};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroUsize;
use std::thread::sleep;
use std::time::Duration;

pub(crate) fn a_receiver_that_does_not_read_stops_the_sender() {
    const MANY: usize = 10;
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[("buffer", "65536")]);
    let listener = ground.listen(Ip::V4);
    let first = ground.connect_through_proxy(&listener);
    let before = proxy.resident();
    let chunk = bytes("chunk", 1 << 16);
    let mut pairs: Vec<_> = (0..MANY).map(|_| ground.connect_through_proxy(&listener)).collect();
    let sent: Vec<usize> = pairs.iter_mut().map(|(ours, _)| fill(ours, &chunk)).collect();
    // Everything is full: what waits in the proxy is a buffer for each at most. The rest is the kernel's.
    let grown = proxy.resident().saturating_sub(before);
    assert!(grown < (MANY * (64 << 10) + (2 << 20)) as u64, "{grown} bytes more");
    for ((ours, mut theirs), sent) in pairs.into_iter().zip(sent) {
        ours.shutdown(Shutdown::Write).unwrap();
        let expected: Vec<u8> = chunk.iter().copied().cycle().take(sent).collect();
        assert_eq!(read_to_end(&mut theirs).unwrap(), blake3::hash(&expected));
    }
    drop(first);
}

pub(crate) fn connections_above_the_limit_are_reset() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[("most", "8")]);
    let listener = ground.listen(Ip::V4);
    let mut pairs: Vec<_> = (0..8).map(|_| ground.connect_through_proxy(&listener)).collect();
    for _ in 0..20 {
        assert_refused(ground.connect(served(Ip::V4)));
    }
    for (ours, theirs) in &mut pairs {
        echo([ours, theirs], b"not disturbed").unwrap();
    }
    proxy.wait_for("connections_accepted", 8);
    proxy.wait_for("refused_full_connections", 20);
    pairs.clear();
    proxy.wait_for("connections_open", 0);
    listener.set_nonblocking(true).unwrap();
    let (mut ours, mut theirs) = ground.connect_once_there_is_room(&listener);
    echo([&mut ours, &mut theirs], b"room again").unwrap();
    assert!(proxy.ended()["connections_accepted"] >= 9);
}

pub(crate) fn without_descriptors_connections_are_reset_without_busy_waiting() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[("descriptors", "16")]);
    let listener = ground.listen(Ip::V4);
    let mut calls: Vec<TcpStream> = (0..40).filter_map(|_| ground.connect(served(Ip::V4)).ok()).collect();
    let mut served = Vec::new();
    listener.set_nonblocking(true).unwrap();
    sleep(Duration::from_millis(500));
    while let Ok((stream, _)) = listener.accept() {
        served.push(stream);
    }
    assert!((1..=8).contains(&served.len()), "{}", served.len());
    let before = proxy.ticks();
    sleep(Duration::from_millis(500));
    assert!(proxy.ticks() - before < 20, "it spins");
    // All other calls were reset, at once.
    calls.iter_mut().for_each(|call| call.set_nonblocking(true).unwrap());
    let waiting = calls
        .iter_mut()
        .filter(|call| call.peek(&mut [0]).is_err_and(|e| e.raw_os_error() == Some(libc::EAGAIN)));
    assert_eq!(waiting.count(), served.len());
    drop((calls, served));
    proxy.wait_for("connections_open", 0);
    // The proxy may still accept calls that their clients have closed. Meanwhile these have its descriptors.
    let (mut ours, mut theirs) = ground.connect_once_there_is_room(&listener);
    echo([&mut ours, &mut theirs], b"room again").unwrap();
    let figures = proxy.ended();
    assert!(figures["refused_descriptors_connections"] >= 32, "{figures:?}");
}

pub(crate) fn the_port_is_not_an_open_relay() {
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[("listen", "0.0.0.0:7070")]);
    let outside = format!("10.9.0.254:{PORT}").parse().unwrap();
    assert_refused(ground.connect(outside));
    assert_refused(ground.router.run(|| TcpStream::connect(("127.0.0.1", PORT))).unwrap());
    let figures = proxy.ended();
    assert_eq!((figures["refused_here_connections"], figures["connections_open"]), (2, 0));
}

pub(crate) fn errors_are_named() {
    let host = Namespace::new().unwrap();
    let said = |config: &Config| host.run(|| Split::open(config)).unwrap().map(drop).unwrap_err().to_string();
    let telepathy = LegOptions::default().with_congestion(Some("telepathy".into()));
    let error =
        said(&Config { legs: LegPolicy { mobile: telepathy, ..LegPolicy::default() }, ..Config::default() });
    assert!(
        error.starts_with("there is no congestion control `telepathy` here; this kernel has: "),
        "{error}"
    );
    let error = said(&Config { listen: vec!["192.0.2.1:7070".parse().unwrap(); 2], ..Config::default() });
    assert!(error.starts_with("listening at 192.0.2.1:7070: "), "{error}");
    let too_many = NonZeroUsize::new(1 << 40).unwrap();
    let error = said(&Config { max_connections: too_many, ..Config::default() });
    assert!(error.starts_with("1099511627776 connections take 2199023255808 open files"), "{error}");
    if let Some(limit) = getrlimit(Resource::Nofile).maximum {
        assert!(error.contains(&format!("this process may have {limit} ")), "{error}");
    }
}

/// Checks that the documented capabilities are enough.
pub(crate) fn the_documented_capabilities_are_sufficient() {
    let ground = Ground::diverted();
    for (capabilities, effective, congestion) in
        [("net_raw", 1 << 13, "reno"), ("net_admin,net_raw", 1 << 12 | 1 << 13, "bbr")]
    {
        let settings = [("capabilities", capabilities), ("mobile", congestion), ("fixed", "reno")];
        let proxy = Daemon::start(&ground.router, &settings);
        assert_eq!(proxy.capabilities(), effective);
        for ip in [Ip::V4, Ip::V6] {
            let listener = ground.listen(ip);
            let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
            echo([&mut ours, &mut theirs], b"without privileges").unwrap();
        }
        assert_eq!(proxy.ended()["connections_accepted"], 2);
    }
}
