//! Router with two interfaces that end in this process, so that the test sees every packet.

use crate::nfqueue::router::{self, divert};
use bytes::Bytes;
use hopline_core::Instant;
use hopline_linux::{Interface, Namespace, Tun};
use hopline_middlebox::nfqueue::{self, Queue};
use hopline_proxy::driver::{Counts, Driver, PumpResult};
use hopline_proxy::snoop::{Config, Snoop, Stats};
use hopline_proxy::{PacketIo, Pep, Side};
use hopline_testkit::middlebox::{Arrived, IPV4, MiddleboxPath, data};
use hopline_testkit::namespace::host::forward;
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::Duration;

/// A router between two TUN interfaces, with Snoop behind its queue.
pub(crate) struct KernelPath {
    router: Namespace,
    fixed: Tun,
    mobile: Tun,
    queue: Queue,
    driver: Driver<Snoop<Bytes>>,
}

/// Maximum number of checks for an expected packet, a millisecond apart.
const PATIENCE: u32 = 5000;

impl KernelPath {
    pub(crate) fn new() -> Self {
        Self::with(&nfqueue::Config::new(router::QUEUE, "mobile"))
    }

    pub(crate) fn with(config: &nfqueue::Config) -> Self {
        let router = Namespace::new().unwrap();
        let [fixed, mobile] = [("fixed", IPV4[0]), ("mobile", IPV4[1])]
            .map(|(name, beyond)| router.run(|| interface(name, beyond)).unwrap());
        forward(&router);
        divert(&router, "mobile");
        let queue = router.run(|| Queue::open(config)).unwrap().unwrap();
        Self { router, fixed, mobile, queue, driver: Driver::new(Snoop::new(Config::modern())) }
    }

    /// Sends packets from the fixed side without reading the queue. Returns the number that arrive nevertheless.
    pub(crate) fn arrive_unread(&mut self, packets: &[Vec<u8>]) -> usize {
        packets.iter().for_each(|packet| self.fixed.send(packet).unwrap());
        let mut arrived = Arrived::default();
        // The kernel forwards within the call; deferred work is done by then.
        sleep(Duration::from_millis(50));
        self.collect(&mut arrived);
        arrived.mobile.len()
    }

    fn pump(&mut self, now: Instant) {
        while self.driver.pump(now, &mut self.queue).unwrap() == PumpResult::BatchFull {}
    }

    fn collect(&self, arrived: &mut Arrived) {
        drain(&self.fixed, &mut arrived.fixed);
        drain(&self.mobile, &mut arrived.mobile);
    }
}

/// Returns an interface in the network of a host beyond it.
pub(crate) fn interface(name: &str, beyond: Ipv4Addr) -> Tun {
    let tun = Tun::open(name).unwrap();
    let interface = Interface::named(name).unwrap();
    let [a, b, c, _] = beyond.octets();
    interface.set_address(Ipv4Addr::new(a, b, c, 254), 24).unwrap();
    interface.up().unwrap();
    tun
}

/// Reads the IPv4 packets that have arrived; the kernel also sends IPv6 packets by itself.
fn drain(tun: &Tun, into: &mut Vec<Vec<u8>>) {
    let mut buffer = vec![0; 65_536];
    while let Some(len) = tun.receive(&mut buffer).unwrap() {
        if buffer[0] >> 4 == 4 {
            into.push(buffer[..len].to_vec());
        }
    }
}

impl MiddleboxPath for KernelPath {
    fn handle_packets(&mut self, now: Instant, from: Side, packets: &[Vec<u8>], arrivals: usize) -> Arrived {
        let tun = match from {
            Side::Fixed => &self.fixed,
            Side::Mobile => &self.mobile,
        };
        packets.iter().for_each(|packet| tun.send(packet).unwrap());
        let mut arrived = Arrived::default();
        for _ in 0..PATIENCE {
            self.pump(now);
            self.collect(&mut arrived);
            if arrived.fixed.len() + arrived.mobile.len() >= arrivals {
                break;
            }
            sleep(Duration::from_millis(1));
        }
        let came = arrived.fixed.len() + arrived.mobile.len();
        assert_eq!(came, arrivals, "{:?} {:?}", self.driver.counts(), self.queue.counts());
        arrived
    }

    fn counts(&self) -> Counts {
        *self.driver.counts()
    }

    fn stats(&self) -> Stats {
        self.driver.middlebox().stats()
    }
}

pub(crate) fn a_queue_has_one_reader() {
    let place = KernelPath::new();
    let error = router::queue(&place.router, "mobile").unwrap_err().to_string();
    assert!(error.contains("taking (does somebody else have it?) NFQUEUE 7"), "{error}");
    // Once the queue is released, another process can bind it.
    let KernelPath { router, queue, fixed: _fixed, mobile: _mobile, .. } = place;
    drop(queue);
    router::queue_again(&router, "mobile");
}

pub(crate) fn errors_are_named() {
    let router = Namespace::new().unwrap();
    let error = router::queue(&router, "nothing").unwrap_err().to_string();
    assert!(error.contains("there is no interface `nothing` here"), "{error}");
}

/// With the queue before another interface, all packets are on one side.
pub(crate) fn packets_that_do_not_cross_to_the_mobile_side_pass() {
    let mut place = KernelPath::new();
    // The first queue is released and can be bound again.
    place.queue = place.router.run(other_queue).unwrap();
    place.queue = router::queue_again(&place.router, "lo");
    place.fixed.send(&data(0)).unwrap();
    let mut arrived = Arrived::default();
    for _ in 0..PATIENCE {
        assert_eq!(place.queue.receive().unwrap(), None);
        place.queue.flush().unwrap();
        place.collect(&mut arrived);
        if !arrived.mobile.is_empty() {
            break;
        }
        sleep(Duration::from_millis(1));
    }
    assert_eq!((arrived.mobile.len(), place.queue.counts().not_crossing), (1, 1));
}

fn other_queue() -> Queue {
    Queue::open(&hopline_middlebox::nfqueue::Config::new(router::QUEUE + 1, "lo")).unwrap()
}
