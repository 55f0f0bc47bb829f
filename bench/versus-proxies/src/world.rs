//! A sender, 100 Mb/s and 25 ms to a router, and from there the last hop to a mobile host.

use crate::condition::{Addresses, Bottleneck, Condition, QUEUE, wire};
use hopline_core::Duration;
use hopline_linux::qdisc::Qdisc;
use hopline_linux::veth::{self, Offload};
use hopline_linux::{Interface, Namespace};
use hopline_testkit::Side;
use hopline_tools::link::{NamespaceLink, Setup};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use versus::Failure;

/// Address of the sender, behind the wired link.
pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
/// Network of the sender.
pub(crate) const SENDERS: &str = "10.81.0.0/24";
/// Both ends of the last hop.
pub(crate) const ROUTER: Ipv4Addr = NamespaceLink::address(Side::A);
pub(crate) const MOBILE: Ipv4Addr = NamespaceLink::address(Side::B);
/// Both ends of the last hop, for a tunnel over it.
pub(crate) const ROUTER_BY_TUNNEL: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
pub(crate) const MOBILE_BY_TUNNEL: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 2);
/// Networks behind the router: the last hop, and tunnels over it.
const BEYOND: [&str; 2] = ["10.80.0.0/24", "10.90.0.0/24"];
/// Name of the router's interface to the mobile host, and of both links' interfaces.
pub(crate) const LINK: &str = "link0";
/// Name of the router's interface to the sender.
pub(crate) const CABLE: &str = "cable";
/// Both ends of the cable between the wired link and the router.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 2);

/// A host with a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Router,
    Mobile,
}

/// The hosts and their links.
pub(crate) struct World {
    pub(crate) wired: NamespaceLink,
    pub(crate) air: NamespaceLink,
    bottleneck: Bottleneck,
}

impl World {
    pub(crate) fn new(condition: &Condition, seed: u64) -> Result<Self, Failure> {
        let [forth, back] = condition.air();
        let link = NamespaceLink::with;
        let wired = link(Setup::new(wire(), wire(), seed))?;
        let air = link(Setup::new(forth, back, seed + 1000))?;
        let world = Self { wired, air, bottleneck: condition.bottleneck };
        world.connect()?;
        if condition.bottleneck == Bottleneck::Router {
            world.slow_down(condition.mbps)?;
        }
        if condition.addresses == Addresses::Translated {
            world.translate()?;
        }
        Ok(world)
    }

    pub(crate) fn host(&self, place: Place) -> &Namespace {
        self.air.host(match place {
            Place::Router => Side::A,
            Place::Mobile => Side::B,
        })
    }

    pub(crate) fn sender(&self) -> &Namespace {
        self.wired.host(Side::A)
    }

    fn connect(&self) -> Result<(), Failure> {
        let (far, near) = (self.wired.host(Side::B), self.host(Place::Router));
        // Initially both links have the same addresses.
        self.sender().run(|| address(LINK, SENDER))??;
        far.run(|| address(LINK, Ipv4Addr::new(10, 81, 0, 2)))??;
        veth::join([far, near], CABLE, Offload::SinglePackets)?;
        far.run(|| address(CABLE, FAR))??;
        near.run(|| address(CABLE, NEAR))??;
        for network in BEYOND {
            ip(far, &format!("route add {network} via {NEAR}"))?;
        }
        ip(near, &format!("route add {SENDERS} via {FAR}"))?;
        for host in [self.sender(), self.host(Place::Mobile)] {
            ip(host, &format!("route add default dev {LINK}"))?;
        }
        for router in [far, near] {
            router.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
        }
        Ok(())
    }

    /// Sets up the queue at the router's interface, as docs/proxy.md recommends: packets with priority go
    /// first.
    fn slow_down(&self, mbps: u64) -> Result<(), Failure> {
        let router = self.host(Place::Router);
        ip(router, &format!("link set {LINK} txqueuelen {QUEUE}"))?;
        let root = format!("qdisc add dev {LINK} root handle 1: tbf rate {mbps}mbit burst 3000 limit 200000");
        succeed(router, "tc", &root)?;
        succeed(router, "tc", &format!("qdisc add dev {LINK} parent 1:1 handle 10: pfifo_fast"))
    }

    /// Sets up masquerade and a stateful firewall on the router.
    fn translate(&self) -> Result<(), Failure> {
        let router = self.host(Place::Router);
        for rule in [
            format!("-t nat -A POSTROUTING -o {CABLE} -j MASQUERADE"),
            "-A FORWARD -m conntrack --ctstate INVALID -j DROP".to_owned(),
            "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT".to_owned(),
            format!("-A FORWARD -i {CABLE} -j DROP"),
        ] {
            succeed(router, "iptables", &format!("-w {rule}"))?;
        }
        // The wired network has no route to translated addresses.
        let far = self.wired.host(Side::B);
        BEYOND.into_iter().try_for_each(|network| ip(far, &format!("route del {network}")))
    }

    /// Returns the number of packets dropped by the full queue before the last hop, until now.
    pub(crate) fn queue_drops(&self) -> Result<u64, Failure> {
        match self.bottleneck {
            Bottleneck::Link => Ok(self.air.stats().forward.queue_drops),
            Bottleneck::Router => {
                let read = || -> Result<_, Failure> { Ok(Qdisc::of(LINK)?.read()?) };
                let counted =
                    self.host(Place::Router).run(read)??.ok_or("the router's queue says nothing")?;
                Ok(counted.drops.into())
            }
        }
    }

    /// Opens a UDP socket on a host.
    pub(crate) fn udp(host: &Namespace, at: (Ipv4Addr, u16)) -> Result<UdpSocket, Failure> {
        let socket = host.run(|| UdpSocket::bind(SocketAddr::from(at)))??;
        socket.set_read_timeout(Some(std::time::Duration::from_millis(100)))?;
        Ok(socket)
    }

    /// Returns the round-trip time without queueing.
    pub(crate) const fn round_trip() -> Duration {
        Duration::from_millis(2 * (crate::condition::WIRED_MS + crate::condition::AIR_MS))
    }
}

fn address(interface: &str, address: Ipv4Addr) -> Result<(), hopline_linux::Error> {
    let interface = Interface::named(interface)?;
    interface.set_address(address, 24)?;
    interface.up()
}

/// Runs ip(8) on a host.
pub(crate) fn ip(host: &Namespace, what: &str) -> Result<(), Failure> {
    succeed(host, "ip", what)
}

/// Runs a program on a host.
pub(crate) fn succeed(host: &Namespace, program: &str, arguments: &str) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).stdout(Stdio::null());
    let ended = host.spawn(command).map_err(|e| format!("{program}: {e}"))?.wait()?;
    if ended.success() { Ok(()) } else { Err(format!("{program} {arguments}: {ended}").into()) }
}
