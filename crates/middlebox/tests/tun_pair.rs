//! Path between two TUN interfaces: the common tests of packet I/O, and the kernel's TCP through it.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

use bytes::Bytes;
use hopline_core::Instant;
use hopline_harness::{Need, Test};
use hopline_linux::{Namespace, Tun};
use hopline_middlebox::{TunPair, middlebox_loop, tun_pair};
use hopline_proxy::driver::{BypassedCounts, Counts, Driver, PumpResult};
use hopline_proxy::snoop::{Config, Snoop, Stats};
use hopline_proxy::{InjectResult, PacketIo, Pep, QueuePosition, Side};
use hopline_testkit::middlebox::{Arrived, CASES, IPV4, MiddleboxPath, data};
use hopline_testkit::namespace::LINK;
use hopline_testkit::namespace::host::{address, forward, ip};
use hopline_testkit::namespace::last_hop::transfer_data;
use rustix::event::{EventfdFlags, eventfd};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread::{self, sleep};
use std::time::Duration;

/// Requirements of all tests here.
const NEEDS: [Need; 2] = [LINK, Need::Program("ip")];

pub(crate) fn tests() -> Vec<Test> {
    let cases = CASES.map(|(name, body)| Test::new(name, NEEDS, move || body(&mut TunPairPath::new())));
    let own = hopline_harness::tests!(NEEDS;
        tcp_passes_through_the_middlebox,
        ipv6_passes_through_the_middlebox,
        packets_for_a_down_interface_are_lost_and_counted,
        a_lost_interface_is_reported,
    );
    cases.into_iter().chain(own).collect()
}

/// Name of the pair's interface in either namespace.
const PATH: &str = "path";

/// Returns a namespace that sends no packets by itself.
fn quiet() -> Namespace {
    let host = Namespace::new().unwrap();
    let off = || fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    // A kernel without IPv6 sends none either.
    let _ = host.run(off).unwrap();
    host
}

/// Returns one end of the pair on a host, with the route to the other.
fn end(host: &Namespace, own: Ipv4Addr, other: Ipv4Addr) -> Tun {
    let tun = host.run(|| Tun::open(PATH)).unwrap().unwrap();
    host.run(|| address(PATH, own, 32)).unwrap();
    ip(host, &format!("route add {other}/32 dev {PATH}"));
    tun
}

/// Snoop between two routers, each with a TUN interface to a host: a packet that leaves there has arrived at the host.
struct TunPairPath {
    fixed: Tun,
    mobile: Tun,
    io: TunPair,
    driver: Driver<Snoop<Bytes>>,
}

/// Maximum number of checks for an expected packet, a millisecond apart.
const PATIENCE: u32 = 5000;

impl TunPairPath {
    fn new() -> Self {
        let (fixed, mobile) = (IPV4[0], IPV4[1]);
        let [(fixed, at_fixed), (mobile, at_mobile)] =
            [(fixed, mobile), (mobile, fixed)].map(|(own, other)| router(own, other));
        let io = TunPair::new(at_fixed, at_mobile).unwrap();
        Self { fixed, mobile, io, driver: Driver::new(Snoop::new(Config::modern())) }
    }

    fn collect(&self, arrived: &mut Arrived) {
        drain(&self.fixed, &mut arrived.fixed);
        drain(&self.mobile, &mut arrived.mobile);
    }
}

/// Returns a router beside a host, with a TUN interface to it and one to the other router.
fn router(beside: Ipv4Addr, other: Ipv4Addr) -> (Tun, Tun) {
    let router = quiet();
    let [a, b, c, _] = beside.octets();
    let host = router.run(|| Tun::open("host")).unwrap().unwrap();
    router.run(|| address("host", Ipv4Addr::new(a, b, c, 254), 24)).unwrap();
    let path = end(&router, Ipv4Addr::new(10, 83, 0, 1), other);
    forward(&router);
    (host, path)
}

fn drain(tun: &Tun, into: &mut Vec<Vec<u8>>) {
    let mut buffer = vec![0; 65_536];
    while let Some(len) = tun.receive(&mut buffer).unwrap() {
        into.push(buffer[..len].to_vec());
    }
}

impl MiddleboxPath for TunPairPath {
    fn handle_packets(&mut self, now: Instant, from: Side, packets: &[Vec<u8>], arrivals: usize) -> Arrived {
        let host = match from {
            Side::Fixed => &self.fixed,
            Side::Mobile => &self.mobile,
        };
        packets.iter().for_each(|packet| host.send(packet).unwrap());
        let mut arrived = Arrived::default();
        for _ in 0..PATIENCE {
            while self.driver.pump(now, &mut self.io).unwrap() == PumpResult::BatchFull {}
            self.collect(&mut arrived);
            if arrived.fixed.len() + arrived.mobile.len() >= arrivals {
                break;
            }
            sleep(Duration::from_millis(1));
        }
        let came = arrived.fixed.len() + arrived.mobile.len();
        assert_eq!(came, arrivals, "{:?} {:?}", self.driver.counts(), self.io.counts());
        arrived
    }

    fn counts(&self) -> Counts {
        *self.driver.counts()
    }

    fn stats(&self) -> Stats {
        self.driver.middlebox().stats()
    }
}

/// Returns a pair that connects two hosts.
fn joined(hosts: &[Namespace; 2]) -> TunPair {
    let (a, b) = (IPV4[0], IPV4[1]);
    let [fixed, mobile] = hosts;
    TunPair::new(end(fixed, a, b), end(mobile, b, a)).unwrap()
}

/// Runs `meanwhile` with Snoop in the pair. Returns the counters.
fn with_snoop(pair: &mut TunPair, meanwhile: impl FnOnce()) -> Counts {
    let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    thread::scope(|scope| {
        let standing = scope.spawn(|| {
            let mut driver = Driver::new(Snoop::new(Config::modern()));
            middlebox_loop::run(&mut driver, pair, stop.as_fd()).unwrap();
            *driver.counts()
        });
        meanwhile();
        rustix::io::write(&stop, &1u64.to_ne_bytes()).unwrap();
        standing.join().unwrap()
    })
}

/// Sends `bytes` bytes to `to` on the mobile host.
fn transfer([fixed, mobile]: &[Namespace; 2], to: impl Into<SocketAddr>, bytes: usize) {
    let to = to.into();
    let listener = mobile.run(|| TcpListener::bind(to)).unwrap().unwrap();
    let sender = fixed.run(|| TcpStream::connect(to)).unwrap().unwrap();
    let (receiver, _) = listener.accept().unwrap();
    transfer_data([sender, receiver], bytes, |_| {});
}

fn tcp_passes_through_the_middlebox() {
    let hosts = [quiet(), quiet()];
    let mut pair = joined(&hosts);
    let counts = with_snoop(&mut pair, || transfer(&hosts, (IPV4[1], 9), 1_000_000));
    // Segments of 1448 bytes: the kernel has segmented its GSO groups.
    assert!(counts.to_mobile > 690, "{counts:?}");
    assert!(counts.from_mobile > 0, "{counts:?}");
    assert_eq!((counts.bypassed, pair.counts().refused), (BypassedCounts::default(), 0));
}

fn ipv6_passes_through_the_middlebox() {
    let hosts = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let mut pair = joined(&hosts);
    let [a, b] = [1, 2].map(|n| Ipv6Addr::new(0xfd81, 0, 0, 0, 0, 0, 0, n));
    for (host, own, other) in [(&hosts[0], a, b), (&hosts[1], b, a)] {
        ip(host, &format!("-6 addr add {own}/128 dev {PATH} nodad"));
        ip(host, &format!("-6 route add {other}/128 dev {PATH}"));
    }
    let counts = with_snoop(&mut pair, || transfer(&hosts, (b, 9), 100_000));
    assert!(counts.to_mobile > 70 && counts.from_mobile > 0, "{counts:?}");
    // The kernel also sends packets by itself.
    let other_protocols = counts.bypassed.other_protocols;
    assert_eq!(counts.bypassed, BypassedCounts { other_protocols, ..BypassedCounts::default() });
}

fn packets_for_a_down_interface_are_lost_and_counted() {
    let hosts = [quiet(), quiet()];
    let mut pair = joined(&hosts);
    assert_eq!(pair.inject(Side::Mobile, QueuePosition::Front, &data(0)).unwrap(), InjectResult::Sent);
    ip(&hosts[1], &format!("link set {PATH} down"));
    assert_eq!(pair.inject(Side::Mobile, QueuePosition::Front, &data(0)).unwrap(), InjectResult::NoRoute);
    assert_eq!(pair.counts(), tun_pair::Counts { packets: 0, refused: 1 });
    ip(&hosts[1], &format!("link set {PATH} up"));
    assert_eq!(pair.inject(Side::Mobile, QueuePosition::Front, &data(0)).unwrap(), InjectResult::Sent);
}

fn a_lost_interface_is_reported() {
    let hosts = [quiet(), quiet()];
    let mut pair = joined(&hosts);
    assert_eq!(pair.receive().unwrap(), None);
    ip(&hosts[1], &format!("link delete {PATH}"));
    assert_eq!(pair.receive().unwrap_err().raw_os_error(), Some(libc::EBADFD));
    assert!(pair.inject(Side::Mobile, QueuePosition::Front, &data(0)).is_err());
    // Runs as in a service, which ends then.
    let stop = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let mut driver = Driver::new(Snoop::new(Config::modern()));
    middlebox_loop::run(&mut driver, &mut pair, stop.as_fd()).unwrap_err();
}
