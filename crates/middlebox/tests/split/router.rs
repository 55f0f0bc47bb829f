//! A client, a router and a server, joined by cables; and the rules that hand over what the router forwards.

use crate::split::daemon::PORT;
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_testkit::namespace::host::{ip, succeed};
use std::fs;
use std::net::{IpAddr, SocketAddr};

pub(crate) const CLIENT: [&str; 2] = ["10.9.0.1", "fd09::1"];
pub(crate) const SERVER: [&str; 2] = ["10.8.0.1", "fd08::1"];
const ROUTER: [[&str; 2]; 2] = [["10.9.0.254", "fd09::fe"], ["10.8.0.254", "fd08::fe"]];

/// Port of whatever the server serves.
pub(crate) const SERVED: u16 = 80;

/// IP version: index of its addresses in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ip {
    V4,
    V6,
}

pub(crate) struct Ground {
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) server: Namespace,
}

impl Ground {
    pub(crate) fn new(trains: Offload) -> Self {
        let [client, router, server] = [(); 3].map(|()| Namespace::new().unwrap());
        veth::join([&client, &router], "mobile", trains).unwrap();
        veth::join([&router, &server], "fixed", trains).unwrap();
        forward(&router);
        for (interface, addresses) in ["mobile", "fixed"].into_iter().zip(ROUTER) {
            has(&router, interface, addresses);
        }
        host(&client, "mobile", CLIENT, ROUTER[0]);
        host(&server, "fixed", SERVER, ROUTER[1]);
        Self { client, router, server }
    }

    /// The same, with the rules.
    pub(crate) fn diverted() -> Self {
        let ground = Self::new(Offload::Gso);
        divert(&ground.router, PORT);
        ground
    }
}

pub(crate) fn served(ip: Ip) -> SocketAddr {
    SocketAddr::new(SERVER[ip as usize].parse::<IpAddr>().unwrap(), SERVED)
}

pub(crate) fn client(ip: Ip) -> IpAddr {
    CLIENT[ip as usize].parse().unwrap()
}

/// Has a namespace forward.
pub(crate) fn forward(router: &Namespace) {
    for switch in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        router.run(|| fs::write(format!("/proc/sys/net/{switch}"), "1")).unwrap().unwrap();
    }
}

/// Hands over all calls that the router forwards, whomever they are by, as the documentation of `split` has it.
pub(crate) fn divert(router: &Namespace, port: u16) {
    for (version, tables, icmp, here, all) in [
        ("-4", "iptables", "icmp", "127.0.0.1", "0.0.0.0/0"),
        ("-6", "ip6tables", "ipv6-icmp", "::1", "::/0"),
    ] {
        ip(router, &format!("{version} rule add fwmark 0x686f lookup 26735"));
        ip(router, &format!("{version} route add local {all} dev lo table 26735"));
        for rule in [
            "-N hopline-divert".into(),
            "-A hopline-divert -j MARK --set-mark 0x686f".into(),
            "-A hopline-divert -j ACCEPT".into(),
            "-A PREROUTING -p tcp ! --syn -m socket --transparent -j hopline-divert".into(),
            format!("-A PREROUTING -p {icmp} -m socket --transparent -j hopline-divert"),
            format!(
                "-A PREROUTING -p tcp --syn -m addrtype ! --dst-type LOCAL -j TPROXY --on-ip {here} --on-port {port} --tproxy-mark 0x686f"
            ),
        ] {
            succeed(router, tables, &format!("-w -t mangle {rule}"));
        }
    }
}

fn host(host: &Namespace, interface: &str, addresses: [&str; 2], router: [&str; 2]) {
    has(host, interface, addresses);
    ip(host, &format!("-4 route add default via {}", router[0]));
    ip(host, &format!("-6 route add default via {}", router[1]));
}

fn has(host: &Namespace, interface: &str, addresses: [&str; 2]) {
    ip(host, &format!("addr add {}/24 dev {interface}", addresses[0]));
    ip(host, &format!("addr add {}/64 dev {interface} nodad", addresses[1]));
    ip(host, &format!("link set {interface} up"));
}
