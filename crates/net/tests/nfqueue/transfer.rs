//! The kernel's TCP over 100 Mb/s and 25 ms to a router, and from there over 20 Mb/s and 2 ms that lose packets.

use crate::router::{self, divert, forward, ip, tc};
use bytes::Bytes;
use hopline_core::Duration;
use hopline_net::link::{NamespaceLink, Reach, Setup};
use hopline_net::nfqueue::{self, Queue, in_kernel};
use hopline_net::veth::{self, Trains};
use hopline_net::{Interface, in_path, tcp};
use hopline_proxy::Filter;
use hopline_proxy::driver::Driver;
use hopline_proxy::snoop::{Config, Snoop};
use hopline_testkit::{Emulation, Side};
use rustix::event::{EventfdFlags, eventfd};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The sender, behind the wired link.
const SENDER: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
/// Where the wired link ends, and the router's end of the cable from there.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 2);
const CABLE: &str = "cable";
/// What both links call their interfaces.
const LINK: &str = "link0";
/// Longer than anything here is silent.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A sender, a wired link, a router, a wireless link, a mobile host.
struct World {
    wired: NamespaceLink,
    wireless: NamespaceLink,
}

/// Where packets to the mobile host wait for the 20 Mb/s, 100 at most.
#[derive(Clone, Copy, Debug)]
enum Bottleneck {
    /// In the link, first in, first out: the router neither sees it nor can have anything go first.
    InLink,
    /// In the router's interface, where what has its turn first goes first.
    InRouter,
}

impl World {
    /// One whose wireless link loses this share of the packets to the mobile host.
    fn new(loss: f64, seed: u64, bottleneck: Bottleneck) -> Self {
        let slow = |rate, ms, queue| Emulation {
            rate: Some(rate),
            latency: Duration::from_millis(ms),
            queue: Some(queue),
            ..Emulation::default()
        };
        let wire = slow(100_000_000, 25, 1000);
        let air = slow(20_000_000, 2, 100);
        let lossy = match bottleneck {
            Bottleneck::InLink => Emulation { loss, ..air.clone() },
            Bottleneck::InRouter => Emulation { loss, rate: None, queue: None, ..air.clone() },
        };
        let [wired, wireless] = [Setup::new(wire.clone(), wire, seed), Setup::new(lossy, air, seed + 1)]
            .map(|setup| NamespaceLink::with(Setup { reach: Reach::Beyond, ..setup }).unwrap());
        let world = Self { wired, wireless };
        world.connect();
        if let Bottleneck::InRouter = bottleneck {
            world.slow_down();
        }
        world
    }

    /// 20 Mb/s at the router's interface.
    fn slow_down(&self) {
        let router = self.wireless.host(Side::A);
        ip(router, &format!("link set {LINK} txqueuelen 100"));
        tc(router, &format!("qdisc add dev {LINK} root handle 1: tbf rate 20mbit burst 3000 limit 200000"));
        tc(router, &format!("qdisc add dev {LINK} parent 1:1 handle 10: pfifo_fast"));
    }

    fn connect(&self) {
        let Self { wired, wireless } = self;
        let (far, router) = (wired.host(Side::B), wireless.host(Side::A));
        // Both links have the same addresses at first.
        wired.run_in_a(|| address(LINK, SENDER));
        wired.run_in_b(|| address(LINK, Ipv4Addr::new(10, 81, 0, 2)));
        veth::join([far, router], CABLE, Trains::Never).unwrap();
        far.run(|| address(CABLE, FAR)).unwrap();
        router.run(|| address(CABLE, ROUTER)).unwrap();
        ip(far, &format!("route add 10.80.0.0/24 via {ROUTER}"));
        ip(router, &format!("route add 10.81.0.0/24 via {FAR}"));
        for host in [wired.host(Side::A), wireless.host(Side::B)] {
            ip(host, &format!("route add default dev {LINK}"));
        }
        [far, router].into_iter().for_each(forward);
    }

    /// Connects by the kernel's CUBIC: the sender's end, and the mobile host's.
    fn connection(&self) -> [TcpStream; 2] {
        let to = (NamespaceLink::address(Side::B), 5001);
        let listener = self.wireless.run_in_b(|| TcpListener::bind(to)).unwrap();
        let sender = self.wired.run_in_a(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            tcp::set_congestion_control(&socket, "cubic").unwrap();
            socket.connect(&std::net::SocketAddr::from(to).into()).unwrap();
            TcpStream::from(socket)
        });
        let (mobile, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), SENDER, "nobody's address is changed");
        sender.set_write_timeout(Some(PATIENCE)).unwrap();
        mobile.set_read_timeout(Some(PATIENCE)).unwrap();
        [sender, mobile]
    }

    /// Has Snoop stand in the router.
    fn snoop(&self) -> Standing {
        let router = self.wireless.host(Side::A);
        Standing::new(router::queue(router, LINK).unwrap())
    }
}

fn address(interface: &str, address: Ipv4Addr) {
    let interface = Interface::named(interface).unwrap();
    interface.set_address(address, 24).unwrap();
    interface.up().unwrap();
}

type Ended = (Driver<Snoop<Bytes>>, nfqueue::Counts);

/// Snoop on a thread of its own.
struct Standing {
    stop: Arc<OwnedFd>,
    thread: JoinHandle<Ended>,
}

impl Standing {
    fn new(mut queue: Queue) -> Self {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let stopped = Arc::clone(&stop);
        let snoop = move || {
            let mut driver = Driver::new(Snoop::new(Config::modern()));
            in_path::run(&mut driver, &mut queue, stopped.as_fd()).unwrap();
            let counts = queue.counts();
            (driver, counts)
        };
        let thread = thread::Builder::new().name("snoop".into()).spawn(snoop).unwrap();
        Self { stop, thread }
    }

    fn end(self) -> Ended {
        rustix::io::write(&self.stop, &1u64.to_ne_bytes()).unwrap();
        self.thread.join().unwrap()
    }
}

/// Sends so many bytes and compares what arrives; `meanwhile` is told how many have.
fn transfer(world: &World, bytes: usize, mut meanwhile: impl FnMut(usize)) {
    let [mut sender, mut mobile] = world.connection();
    let content: Vec<u8> = (0..bytes).map(|i| (i * i / 251) as u8).collect();
    let sent = blake3::hash(&content);
    thread::scope(|scope| {
        scope.spawn(move || sender.write_all(&content).unwrap());
        let (mut hasher, mut buffer, mut arrived) = (blake3::Hasher::new(), vec![0; 65_536], 0);
        loop {
            match mobile.read(&mut buffer).unwrap() {
                0 => break,
                len => {
                    hasher.update(&buffer[..len]);
                    arrived += len;
                    meanwhile(arrived);
                }
            }
        }
        assert_eq!((arrived, hasher.finalize()), (bytes, sent));
    });
}

pub(crate) fn what_a_lossy_link_loses_is_repaired_at_its_border() {
    let world = World::new(0.03, 1, Bottleneck::InLink);
    divert(world.wireless.host(Side::A), LINK);
    let standing = world.snoop();
    transfer(&world, 3_000_000, |_| {});
    let (driver, queue) = standing.end();
    let (counts, stats) = (driver.counts(), driver.machine().stats());
    let lost = world.wireless.stats().forth.lost;
    // Of 2,072 segments; the seed is fixed, the course of the kernel's TCP is not.
    assert!(lost > 10, "{lost}");
    assert!(stats.local_retransmissions >= lost / 2, "{lost} lost: {stats:?}");
    assert!(counts.absorbed + counts.rewritten > 0, "{counts:?}");
    assert_eq!((counts.untouched.total(), counts.refused), (0, 0), "{counts:?}");
    let seen = counts.to_mobile + counts.from_mobile;
    assert_eq!(queue, nfqueue::Counts { packets: seen, ..Default::default() });
}

pub(crate) fn a_connection_outlives_the_machine() {
    let world = World::new(0.01, 3, Bottleneck::InLink);
    divert(world.wireless.host(Side::A), LINK);
    let mut standing = Some(world.snoop());
    let mut ended = Vec::new();
    let third = 300_000;
    transfer(&world, 3 * third, |arrived| match (arrived / third, &standing, ended.len()) {
        (1, Some(_), 0) => ended.extend(standing.take().map(Standing::end)),
        (2.., None, 1) => standing = Some(world.snoop()),
        _ => {}
    });
    ended.extend(standing.take().map(Standing::end));
    assert!(ended.iter().all(|(driver, _)| driver.counts().to_mobile > 0), "both have seen some of it");
    assert_eq!(ended.len(), 2);
}

/// What stands in the router.
#[derive(Clone, Copy, Debug)]
enum Middle {
    /// Nothing.
    Plain,
    /// Snoop `modern`.
    Snoop,
}

/// Of a measurement.
const LASTS: std::time::Duration = std::time::Duration::from_secs(10);

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    bytes: usize,
    /// Packets handed to the wireless link towards the mobile host.
    sent: u64,
    /// Of those, packets that found its queue full.
    queue_drops: u64,
    local_retransmissions: u64,
    /// Packets that the kernel could not give to the reader.
    missed: u32,
}

/// Prints goodput over ten seconds from the connection on, by loss.
pub(crate) fn goodput() {
    let mut report = String::from("goodput over 10 s in Mb/s\n");
    for loss in [0.0, 0.01, 0.03, 0.05, 0.10, 0.20] {
        let ceiling = 20.0 * (1.0 - loss) * 1448.0 / 1500.0;
        report += &format!("{:.0} % lost, ceiling {ceiling:.1}:\n", loss * 100.0);
        for (middle, bottleneck) in [
            (Middle::Plain, Bottleneck::InRouter),
            (Middle::Snoop, Bottleneck::InRouter),
            (Middle::Snoop, Bottleneck::InLink),
        ] {
            let measured = measure(middle, bottleneck, loss);
            let Measured { bytes, sent, queue_drops, local_retransmissions, missed } = measured;
            let goodput = bytes as f64 * 8.0 / LASTS.as_secs_f64() / 1e6;
            let each = sent as f64 * 1448.0 / bytes as f64;
            report += &format!(
                "  {middle:?}, queue {bottleneck:?}: {goodput:.2}; {each:.2} packets for each delivered, {queue_drops} found \
                 the link's queue full, {local_retransmissions} sent again here, {missed} missed by the reader\n"
            );
        }
    }
    io::stderr().write_all(report.as_bytes()).unwrap();
}

fn measure(middle: Middle, bottleneck: Bottleneck, loss: f64) -> Measured {
    let world = World::new(loss, 11, bottleneck);
    let router = world.wireless.host(Side::A);
    let standing = match middle {
        Middle::Plain => None,
        Middle::Snoop => {
            divert(router, LINK);
            Some(world.snoop())
        }
    };
    let bytes = received_meanwhile(&world);
    let link = world.wireless.stats().forth;
    let mut measured =
        Measured { bytes, sent: link.sent, queue_drops: link.queue_drops, ..Measured::default() };
    if let Some(standing) = standing {
        let kernel = router.run(|| in_kernel(router::QUEUE)).unwrap().unwrap();
        measured.missed = kernel.found_full + kernel.found_no_room;
        let (driver, _) = standing.end();
        measured.local_retransmissions = driver.machine().stats().local_retransmissions;
    }
    measured
}

#[expect(clippy::disallowed_methods, reason = "goodput is measured in real time")]
fn received_meanwhile(world: &World) -> usize {
    let until = std::time::Instant::now() + LASTS;
    let [mut sender, mut mobile] = world.connection();
    mobile.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
    thread::scope(|scope| {
        // It ends when the mobile host is gone.
        scope.spawn(move || while sender.write_all(&[7; 65_536]).is_ok() {});
        let (mut buffer, mut received) = (vec![0; 65_536], 0);
        while std::time::Instant::now() < until {
            // Nothing came for a while: there may come more.
            received += mobile.read(&mut buffer).unwrap_or(0);
        }
        drop(mobile);
        received
    })
}
