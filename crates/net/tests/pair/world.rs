//! The kernel's TCP over 100 Mb/s to one end of a pair, and from there over 20 Mb/s and 2 ms that lose packets to the other end.

use hopline_core::Duration;
use hopline_net::link::{NamespaceLink, Setup};
use hopline_net::{Namespace, tcp};
use hopline_testkit::namespace::Running;
use hopline_testkit::namespace::host::{ip, tc};
use hopline_testkit::namespace::last_hop::{self, LINK, SENDER, SENDER_V6};
use hopline_testkit::{Emulation, Side};
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration as Real;

/// Longer than anything here is silent.
const PATIENCE: Real = Real::from_secs(60);

/// What the lossy link does to packets towards the mobile host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    pub(crate) share: f64,
    /// Mean length of bursts.
    pub(crate) burst: Option<f64>,
    /// Whether as much is lost on the way back.
    pub(crate) back: bool,
}

impl Losses {
    pub(crate) const fn of(share: f64) -> Self {
        Self { share, burst: None, back: false }
    }
}

/// Where packets to the mobile host wait for the 20 Mb/s, 100 at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// In the link: its ends neither see it nor can have anything go first.
    InLink,
    /// In the interface of the near end.
    InNear,
}

/// A sender, a wired link, a router that is the near end, a lossy link, a mobile host that is the far end.
pub(crate) struct World {
    wired: NamespaceLink,
    pub(crate) lossy: NamespaceLink,
}

impl World {
    pub(crate) fn new(wired_ms: u64, losses: Losses, bottleneck: Bottleneck, seed: u64) -> Self {
        let slow = |rate, ms, queue| Emulation {
            rate: Some(rate),
            latency: Duration::from_millis(ms),
            queue: Some(queue),
            ..Emulation::default()
        };
        let wire = slow(100_000_000, wired_ms, 1000);
        let air = slow(20_000_000, 2, 100);
        let lossy = Emulation { loss: losses.share, burst: losses.burst, ..air.clone() };
        let forth = match bottleneck {
            Bottleneck::InLink => lossy.clone(),
            Bottleneck::InNear => Emulation { rate: None, queue: None, ..lossy.clone() },
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
    pub(crate) fn speak_ipv6(&self) {
        last_hop::speak_ipv6(&self.wired, &self.lossy);
    }

    /// 20 Mb/s at the near end's interface.
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

    /// Connects the sender to the mobile host at this address: both ends.
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

    /// Sends so many bytes by the kernel's CUBIC and compares what arrives; `meanwhile` is told how many have.
    pub(crate) fn transfer(&self, to: impl Into<IpAddr>, bytes: usize, meanwhile: impl FnMut(usize)) {
        last_hop::carry(self.connection(to, "cubic"), bytes, meanwhile);
    }

    /// Bytes that arrive within so long from the connection on.
    #[expect(clippy::disallowed_methods, reason = "goodput is measured in real time")]
    pub(crate) fn received_within(&self, to: impl Into<IpAddr>, law: &str, lasts: Real) -> usize {
        let until = std::time::Instant::now() + lasts;
        let ends = self.connection(to, law);
        ends[1].set_read_timeout(Some(Real::from_millis(100))).unwrap();
        last_hop::received_until(ends, until)
    }
}

/// Ends a service. Its last figures.
pub(crate) fn last_figures(mut service: Running) -> impl Fn(&str) -> u64 {
    service.end();
    move |name| service.figure(name)
}

/// A UDP socket on a host.
pub(crate) fn udp(host: &Namespace, at: impl Into<SocketAddr>) -> std::net::UdpSocket {
    let at = at.into();
    let socket = host.run(|| std::net::UdpSocket::bind(at).unwrap()).unwrap();
    socket.set_read_timeout(Some(Real::from_secs(5))).unwrap();
    socket
}

/// Any port of this address.
pub(crate) const fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}
