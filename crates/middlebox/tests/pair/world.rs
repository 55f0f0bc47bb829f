//! The kernel's TCP over 100 Mb/s to one end of a pair, and from there over a lossy link of 20 Mb/s and 2 ms to the other
//! end.

use hopline_core::Duration;
use hopline_linux::{Namespace, tcp};
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::host::{ip, tc};
use hopline_testkit::namespace::last_hop::{self, LINK, SENDER, SENDER_V6};
use hopline_testkit::{Emulation, Side};
use hopline_tools::link::{NamespaceLink, Setup};
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration as Real;

/// Timeout, longer than any regular silence.
const PATIENCE: Real = Real::from_secs(60);

/// Losses of the lossy link towards the mobile host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    pub(crate) share: f64,
    /// Mean length of loss bursts, in packets.
    pub(crate) burst: Option<f64>,
    /// `true` if the return direction loses as much.
    pub(crate) back: bool,
}

impl Losses {
    pub(crate) const fn of(share: f64) -> Self {
        Self { share, burst: None, back: false }
    }
}

/// Location of the queue, of at most 100 packets, before the 20 Mb/s towards the mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// In the link: its ends can neither see nor reorder it.
    InLink,
    /// In the interface of the near end.
    InNear,
}

/// A sender, a wired link, a router as the near end, a lossy link, and a mobile host as the far end.
pub(crate) struct World {
    wired: NamespaceLink,
    pub(crate) lossy: NamespaceLink,
}

impl World {
    pub(crate) fn new(wired_ms: u64, losses: Losses, bottleneck: Bottleneck, seed: u64) -> Self {
        let slow = |rate, ms, queue| {
            Emulation::default()
                .with_rate(Some(rate))
                .with_latency(Duration::from_millis(ms))
                .with_queue(Some(queue))
        };
        let wire = slow(100_000_000, wired_ms, 1000);
        let air = slow(20_000_000, 2, 100);
        let lossy = air.clone().with_loss(losses.share).with_burst(losses.burst);
        let forth = match bottleneck {
            Bottleneck::InLink => lossy.clone(),
            Bottleneck::InNear => lossy.clone().with_rate(None).with_queue(None),
        };
        let back = if losses.back { lossy } else { air };
        let [wired, lossy] = [Setup::new(wire.clone(), wire, seed), Setup::new(forth, back, seed + 1)]
            .map(|setup| NamespaceLink::with(setup).unwrap());
        last_hop::join(&wired, &lossy, &["10.90.0.0/24"]);
        let world = Self { wired, lossy };
        if bottleneck == Bottleneck::InNear {
            world.slow_down();
        }
        world
    }

    /// Gives all hosts IPv6 addresses too.
    pub(crate) fn add_ipv6(&self) {
        last_hop::add_ipv6(&self.wired, &self.lossy);
    }

    /// Limits the near end's interface to 20 Mb/s.
    fn slow_down(&self) {
        let near = self.near();
        ip(near, &format!("link set {LINK} txqueuelen 100"));
        tc(near, &format!("qdisc add dev {LINK} root handle 1: tbf rate 20mbit burst 3000 limit 200000"));
        tc(near, &format!("qdisc add dev {LINK} parent 1:1 handle 10: pfifo_fast"));
    }

    pub(crate) fn near(&self) -> &Namespace {
        self.lossy.host(Side::A)
    }

    pub(crate) fn mobile(&self) -> &Namespace {
        self.lossy.host(Side::B)
    }

    pub(crate) fn sender(&self) -> &Namespace {
        self.wired.host(Side::A)
    }

    /// Connects the sender to the mobile host at this address. Returns both ends.
    pub(crate) fn connection(&self, to: impl Into<IpAddr>, law: &str) -> [TcpStream; 2] {
        let to = SocketAddr::new(to.into(), 5001);
        let listener = self.mobile().run(|| TcpListener::bind(to).unwrap()).unwrap();
        let sender = self.sender().run(|| {
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
            tcp::set_congestion_control(&socket, law).unwrap();
            socket.connect(&to.into()).unwrap();
            TcpStream::from(socket)
        });
        let (mobile, from) = listener.accept().unwrap();
        let sent_from: IpAddr = if to.is_ipv4() { SENDER.into() } else { SENDER_V6.into() };
        assert_eq!(from.ip(), sent_from, "nobody's address is changed");
        let sender = sender.unwrap();
        sender.set_write_timeout(Some(PATIENCE)).unwrap();
        mobile.set_read_timeout(Some(PATIENCE)).unwrap();
        [sender, mobile]
    }

    /// Transfers and compares `bytes` bytes over the kernel's CUBIC; `meanwhile` gets the number of those that have
    /// arrived.
    pub(crate) fn transfer(&self, to: impl Into<IpAddr>, bytes: usize, meanwhile: impl FnMut(usize)) {
        last_hop::transfer_data(self.connection(to, "cubic"), bytes, meanwhile);
    }

    /// Returns the bytes that arrive within a time from the connection on.
    #[expect(clippy::disallowed_methods, reason = "goodput is measured in real time")]
    pub(crate) fn received_within(&self, to: impl Into<IpAddr>, law: &str, lasts: Real) -> usize {
        let until = std::time::Instant::now() + lasts;
        let ends = self.connection(to, law);
        ends[1].set_read_timeout(Some(Real::from_millis(100))).unwrap();
        last_hop::received_until(ends, until)
    }
}

/// Stops a service. Returns its last metrics.
pub(crate) fn last_figures(mut service: RunningService) -> impl Fn(&str) -> u64 {
    service.end();
    move |name| service.metric(name)
}

/// Opens a UDP socket on a host.
pub(crate) fn udp(host: &Namespace, at: impl Into<SocketAddr>) -> std::net::UdpSocket {
    let at = at.into();
    let socket = host.run(|| std::net::UdpSocket::bind(at).unwrap()).unwrap();
    socket.set_read_timeout(Some(Real::from_secs(5))).unwrap();
    socket
}

/// Returns a socket address.
pub(crate) const fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}
