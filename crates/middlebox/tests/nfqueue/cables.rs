//! A sender, a router and a mobile host, connected by cables at the speed of the host.

use crate::nfqueue::router;
use crate::nfqueue::world::PATIENCE;
use hopline_linux::veth::{self, Offload};
use hopline_linux::{Namespace, tcp};
use hopline_middlebox::nfqueue::{Config, Queue};
use hopline_testkit::namespace::host::{address, forward, ip, open_with_retries};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

/// A sender, a router, a mobile host.
pub(crate) struct Cables {
    pub(crate) sender: Namespace,
    pub(crate) router: Namespace,
    pub(crate) mobile: Namespace,
}

/// Names of the cables at both ends: the one to the sender, and the one to the mobile host.
pub(crate) const WIRED: &str = "wired";
pub(crate) const HOP: &str = "hop";

/// Address of the mobile host.
pub(crate) const MOBILE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 82, 0, 2), 5001);
pub(crate) const MOBILE_V6: (Ipv6Addr, u16) = (Ipv6Addr::new(0xfd82, 0, 0, 0, 0, 0, 0, 2), 5001);

impl Cables {
    /// Creates the hosts with a rule for IPv4. `trains`: selects whether the hosts leave segmentation to the cable (GSO).
    pub(crate) fn new(trains: Offload) -> Self {
        let [sender, router, mobile] = [(); 3].map(|()| Namespace::new().unwrap());
        veth::join([&sender, &router], WIRED, trains).unwrap();
        veth::join([&router, &mobile], HOP, trains).unwrap();
        let [near, far] = [81, 82].map(|network| Ipv4Addr::new(10, network, 0, 254));
        router.run(|| [(WIRED, near), (HOP, far)].map(|(cable, own)| address(cable, own, 24))).unwrap();
        sender.run(|| address(WIRED, Ipv4Addr::new(10, 81, 0, 1), 24)).unwrap();
        mobile.run(|| address(HOP, MOBILE.0, 24)).unwrap();
        ip(&sender, &format!("route add default via {near}"));
        ip(&mobile, &format!("route add default via {far}"));
        forward(&router);
        Self { sender, router, mobile }
    }

    /// Adds IPv6.
    pub(crate) fn speak_ipv6(&self) {
        let Self { sender, router, mobile } = self;
        for (host, cable, own) in [
            (sender, WIRED, "fd81::1"),
            (router, WIRED, "fd81::fe"),
            (router, HOP, "fd82::fe"),
            (mobile, HOP, "fd82::2"),
        ] {
            ip(host, &format!("-6 addr add {own}/64 dev {cable} nodad"));
        }
        ip(sender, "-6 route add default via fd81::fe");
        ip(mobile, "-6 route add default via fd82::fe");
        let forward = || fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1");
        router.run(forward).unwrap().unwrap();
    }

    /// Binds the queue of the router.
    pub(crate) fn queue(&self, trains: Offload) -> Queue {
        let config = Config { gso: trains, ..Config::new(router::QUEUE, HOP) };
        open_with_retries(&self.router, || Queue::open(&config))
    }

    /// Connects the sender to this address of the mobile host. Returns both ends.
    pub(crate) fn connection(&self, to: impl Into<SocketAddr>) -> [TcpStream; 2] {
        let to = to.into();
        let listener = self.mobile.run(|| TcpListener::bind(to)).unwrap().unwrap();
        let connect = || {
            let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
            tcp::set_congestion_control(&socket, "cubic").unwrap();
            socket.connect(&to.into()).unwrap();
            TcpStream::from(socket)
        };
        let sender = self.sender.run(connect).unwrap();
        let (mobile, _) = listener.accept().unwrap();
        sender.set_write_timeout(Some(PATIENCE)).unwrap();
        mobile.set_read_timeout(Some(PATIENCE)).unwrap();
        [sender, mobile]
    }
}
