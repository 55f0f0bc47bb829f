//! Kernel sockets over the emulated link between two namespaces. It behaves as configured, and counts it.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use hopline_core::{Duration, Instant};
use hopline_harness::Test;
use hopline_link::NatPortPolicy;
use hopline_link::Side;
use hopline_testkit::namespace::{Damage, LINK, NamespaceLink, Setup, unless_late};
use hopline_testkit::reference_stream::InOrder;
use hopline_testkit::{DelayDistribution, DirectionStats, Emulation};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!([LINK];
        packets_leave_at_the_configured_rate,
        a_round_trip_takes_both_delays,
        independent_losses_have_the_configured_share,
        loss_bursts_have_the_configured_length,
        a_full_queue_drops_packets,
        duplicates_arrive_twice,
        delayed_packets_are_overtaken,
        damaged_packets_are_dropped_by_the_kernel,
        undetected_damage_reaches_the_application,
        no_packet_passes_during_a_blackout,
        a_rebound_port_is_known_once_it_has_sent,
        tcp_is_byte_exact_over_a_bad_link,
        long_datagrams_are_fragmented_to_the_mtu,
        links_are_independent,
    )
    .into()
}

/// Length of the IP and UDP headers, bytes.
const HEADERS: usize = 28;

struct Datagrams {
    link: NamespaceLink,
    a: UdpSocket,
    b: UdpSocket,
    to_b: SocketAddr,
}

impl Datagrams {
    fn over(forth: Emulation) -> Self {
        Self::with(Setup::new(forth, Emulation::default(), 42))
    }

    fn with(setup: Setup) -> Self {
        let link = NamespaceLink::with(setup).unwrap();
        // A socket stays in the namespace in which it was created, whichever thread uses it.
        let bound = |address: Ipv4Addr| UdpSocket::bind((address, 0)).unwrap();
        let a = link.run_in_a(|| bound(link.address_a()));
        let b = link.run_in_b(|| bound(link.address_b()));
        b.set_nonblocking(true).unwrap();
        let to_b = b.local_addr().unwrap();
        Self { link, a, b, to_b }
    }

    /// Sends `n` numbered datagrams of `len` bytes, a few at a time so that no socket buffer is too small. Returns those
    /// that arrived, in order of arrival.
    fn send(&self, n: u64, len: usize) -> Vec<Vec<u8>> {
        let mut arrived = Vec::new();
        let before = self.counts().sent;
        for number in 0..n {
            self.a.send_to(&datagram(number, len), self.to_b).unwrap();
            if number % 16 == 15 || number + 1 == n {
                self.wait(|counts| counts.sent == before + number + 1);
                self.wait_until_idle();
                arrived.extend(self.take());
            }
        }
        arrived
    }

    fn counts(&self) -> DirectionStats {
        self.link.stats().forward
    }

    fn wait(&self, until: impl Fn(DirectionStats) -> bool) {
        while !until(self.counts()) {
            thread::sleep(std::time::Duration::from_micros(200));
        }
    }

    /// Waits until no packet is in flight. The direction back must be unused.
    fn wait_until_idle(&self) {
        loop {
            let stats = self.link.stats();
            if stats.lateness.packets == stats.forward.delivered + stats.forward.duplicated {
                return;
            }
            thread::sleep(std::time::Duration::from_micros(200));
        }
    }

    /// Returns the datagrams in B's socket buffer.
    fn take(&self) -> Vec<Vec<u8>> {
        let mut buffer = vec![0; 65_536];
        let mut all = Vec::new();
        loop {
            match self.b.recv(&mut buffer) {
                Ok(len) => all.push(buffer[..len].to_vec()),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::WouldBlock);
                    return all;
                }
            }
        }
    }
}

fn datagram(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = InOrder::bytes(number, len).to_vec();
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(datagram[..8].try_into().unwrap())
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Fails if `n` of `of` is further than four standard deviations from a share of `p`.
fn assert_share(n: u64, of: u64, p: f64) {
    let expected = of as f64 * p;
    let deviation = (expected * (1.0 - p)).sqrt();
    assert!((n as f64 - expected).abs() <= 4.0 * deviation, "{n} of {of}, expected {expected} ± {deviation}");
}

fn packets_leave_at_the_configured_rate() {
    let rate = 8_000_000;
    let d = Datagrams::over(Emulation::default().with_rate(Some(rate)));
    // As many datagrams as B's socket buffer holds.
    let (n, len) = (60, 1000);
    let took = |_| {
        let (begin, before) = (d.link.now(), d.counts().sent);
        for number in 0..n {
            d.a.send_to(&datagram(number, len), d.to_b).unwrap();
        }
        d.wait(|counts| counts.sent == before + n);
        d.wait_until_idle();
        let took = d.link.now() - begin;
        assert_eq!(d.take().len() as u64, n);
        took
    };
    let best = (0..5).map(took).min().unwrap();
    let expected = Duration::of_bits(n * (len + HEADERS) as u64 * 8, rate);
    assert!(best >= expected, "{n} packets took {best}, the rate allows {expected}");
    // On a busy machine the sockets are late, too.
    unless_late(&d.link, "rate", || assert!(best < expected + expected / 2, "{best} instead of {expected}"));
}

fn a_round_trip_takes_both_delays() {
    let link = NamespaceLink::new(Emulation::delay(ms(10)), Emulation::delay(ms(15)), 1).unwrap();
    let a = link.run_in_a(|| UdpSocket::bind((link.address_a(), 0)).unwrap());
    let b = link.run_in_b(|| UdpSocket::bind((link.address_b(), 0)).unwrap());
    let mut buffer = [0; 64];
    let times = (0..20).map(|_| {
        let begin = link.now();
        a.send_to(b"ping", b.local_addr().unwrap()).unwrap();
        let (len, from) = b.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], from.ip()), (&b"ping"[..], link.address_a().into()));
        b.send_to(b"pong", from).unwrap();
        assert_eq!(a.recv(&mut buffer).unwrap(), 4);
        link.now() - begin
    });
    // The link may be on time while this test's own threads are late: the best of them counts.
    let best = times.min().unwrap();
    assert!(best >= ms(25), "{best}");
    unless_late(&link, "delay", || assert!(best < ms(27), "{best}"));
}

fn independent_losses_have_the_configured_share() {
    for loss in [0.01, 0.05, 0.2] {
        let d = Datagrams::over(Emulation::default().with_loss(loss));
        let n = 3000;
        let arrived = d.send(n, 100);
        let counts = d.counts();
        assert_eq!((counts.sent, counts.delivered), (n, arrived.len() as u64));
        assert_eq!(counts.losses, n - counts.delivered);
        assert_share(counts.losses, n, loss);
    }
}

fn loss_bursts_have_the_configured_length() {
    let d = Datagrams::over(Emulation::default().with_loss(0.2).with_burst(Some(4.0)));
    let n = 6000;
    let arrived: Vec<u64> = d.send(n, 100).iter().map(|d| number(d)).collect();
    let gaps: Vec<u64> = arrived.windows(2).map(|w| w[1] - w[0] - 1).filter(|&gap| gap > 0).collect();
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    // Geometric lengths deviate by about their mean.
    let deviation = 4.0 / (gaps.len() as f64).sqrt();
    assert!((mean - 4.0).abs() < 4.0 * deviation, "{} bursts of {mean}", gaps.len());
    assert!(
        d.counts().loss_bursts.abs_diff(gaps.len() as u64) <= 2,
        "the first and last may be out of sight"
    );
}

fn a_full_queue_drops_packets() {
    // 1 s for each packet: only waiting packets, and the one being sent, are ever accepted.
    let d = Datagrams::over(Emulation::default().with_rate(Some(8_000)).with_queue(Some(10)));
    for number in 0..100 {
        d.a.send_to(&datagram(number, 1000 - HEADERS), d.to_b).unwrap();
        d.wait(|counts| counts.sent == number + 1);
    }
    let counts = d.counts();
    assert_eq!((counts.sent, counts.max_queue), (100, 10));
    assert_eq!(counts.delivered + counts.queue_drops, 100);
    assert!((11..14).contains(&counts.delivered), "{counts:?}");
}

fn duplicates_arrive_twice() {
    let d = Datagrams::over(Emulation::default().with_duplicate(0.3).with_extra_delay(ms(2)));
    let n = 1000;
    let arrived = d.send(n, 100);
    let counts = d.counts();
    assert_eq!((counts.delivered, arrived.len() as u64), (n, n + counts.duplicated));
    assert_share(counts.duplicated, n, 0.3);
    let mut numbers: Vec<u64> = arrived.iter().map(|d| number(d)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len() as u64, n);
}

fn delayed_packets_are_overtaken() {
    let late = Emulation::default()
        .with_reorder(0.1)
        .with_extra_delay(ms(5))
        .with_extra_distribution(DelayDistribution::Fixed);
    let d = Datagrams::over(late);
    let n = 1000;
    let arrived: Vec<u64> = d.send(n, 100).iter().map(|d| number(d)).collect();
    assert_eq!(arrived.len() as u64, n);
    assert_share(d.counts().reordered, n, 0.1);
    assert!(arrived.windows(2).any(|w| w[0] > w[1]), "nobody was overtaken");
}

fn damaged_packets_are_dropped_by_the_kernel() {
    let d = Datagrams::over(Emulation::default().with_corrupt(0.3));
    let n = 1000;
    let arrived = d.send(n, 100);
    let counts = d.counts();
    assert_eq!((counts.delivered, arrived.len() as u64), (n, n - counts.corrupted));
    assert_share(counts.corrupted, n, 0.3);
    assert!(arrived.iter().all(|a| *a == datagram(number(a), 100)), "a damaged datagram got through");
}

fn undetected_damage_reaches_the_application() {
    let forth = Emulation::default().with_corrupt(0.3);
    let d =
        Datagrams::with(Setup { damage: Damage::Undetected, ..Setup::new(forth, Emulation::default(), 42) });
    let n = 1000;
    let arrived = d.send(n, 100);
    assert_eq!(arrived.len() as u64, n);
    let damaged = (0..).zip(&arrived).filter(|(number, a)| **a != datagram(*number, 100)).count();
    assert_eq!(damaged as u64, d.counts().corrupted);
    assert!(damaged > 200);
}

fn no_packet_passes_during_a_blackout() {
    let end = Instant::from_secs(2);
    let d = Datagrams::over(Emulation::default().with_blackouts(vec![(Instant::ZERO, end)]));
    let arrived = d.send(10, 100);
    // A later packet would have passed, and rightly so.
    unless_late(&d.link, "blackout", || assert_eq!((arrived.len(), d.counts().blackout_drops), (0, 10)));
    while d.link.now() < end {
        thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(d.send(10, 100).len(), 10);
}

fn a_rebound_port_is_known_once_it_has_sent() {
    let d = Datagrams::over(Emulation::default());
    let mut buffer = [0; 64];
    let own = d.b.local_addr().unwrap();
    let speak = |buffer: &mut [u8]| {
        d.b.send_to(b"here", d.a.local_addr().unwrap()).unwrap();
        d.a.recv_from(buffer).unwrap().1
    };
    assert_eq!(speak(&mut buffer), own);
    d.link.rebind(Side::B, NatPortPolicy::Forgotten);
    d.a.send_to(b"lost", own).unwrap();
    d.wait(|counts| counts.sent == 1);
    let new = speak(&mut buffer);
    assert_eq!((new.ip(), new.port() == own.port()), (own.ip(), false));
    assert_eq!(d.link.stats().all_drops().unknown_port, 1);
    assert!(d.take().is_empty());
    d.a.send_to(b"found", new).unwrap();
    d.b.set_nonblocking(false).unwrap();
    assert_eq!(d.b.recv(&mut buffer).unwrap(), 5);

    d.link.rebind(Side::B, NatPortPolicy::Kept);
    d.a.send_to(b"still", new).unwrap();
    assert_eq!(d.b.recv(&mut buffer).unwrap(), 5);
    assert_ne!(speak(&mut buffer), new);
}

fn tcp_is_byte_exact_over_a_bad_link() {
    let bad = Emulation::delay(ms(2))
        .with_rate(Some(20_000_000))
        .with_queue(Some(100))
        .with_loss(0.02)
        .with_reorder(0.05)
        .with_extra_delay(ms(5))
        .with_duplicate(0.02)
        .with_corrupt(0.01);
    let link = NamespaceLink::new(bad.clone(), bad, 3).unwrap();
    let total = 1_000_000;
    let listener = link.run_in_b(|| TcpListener::bind((link.address_b(), 0)).unwrap());
    let to = listener.local_addr().unwrap();
    let send = || {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(&InOrder::bytes(0, total)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    };
    let receive = || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut oracle = InOrder::default();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        oracle.check(&all.into());
        oracle.received()
    };
    let ((), received) = link.run_both(send, receive);
    assert_eq!(received, total as u64);
    let stats = link.stats();
    let forth = stats.forward;
    assert!(
        forth.losses > 0 && forth.corrupted > 0 && forth.duplicated > 0 && forth.reordered > 0,
        "{forth:?}"
    );
    assert!(stats.reverse.sent > 100 && stats.all_drops().refused == 0, "{stats:?}");
}

fn long_datagrams_are_fragmented_to_the_mtu() {
    for (mtu, fragments) in [(1500, 3), (576, 8)] {
        let setup = Setup { mtu, ..Setup::new(Emulation::default(), Emulation::default(), 1) };
        let d = Datagrams::with(setup);
        // The kernel's socket takes datagrams longer than the MTU.
        d.a.send_to(&datagram(1, 4000), d.to_b).unwrap();
        d.wait(|counts| counts.sent == fragments);
        d.wait_until_idle();
        assert_eq!(d.take(), [datagram(1, 4000)]);
    }
}

fn links_are_independent() {
    let all: Vec<Datagrams> = (0..4).map(|_| Datagrams::over(Emulation::default())).collect();
    for (n, d) in (1..).zip(&all) {
        assert_eq!(d.send(n, 100).len() as u64, n);
    }
    let sent: Vec<u64> = all.iter().map(|d| d.counts().sent).collect();
    assert_eq!(sent, [1, 2, 3, 4]);
}
