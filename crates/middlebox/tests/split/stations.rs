//! Two stations between a mobile host and a server, which are reached by the one or by the other.

use crate::split::daemon::PORT;
use crate::split::router::{CLIENT, SERVER, divert, forward};
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_testkit::namespace::host::{ip, succeed};

pub(crate) struct Stations {
    pub(crate) mobile: Namespace,
    pub(crate) server: Namespace,
    pub(crate) stations: [Namespace; 2],
}

/// Addresses of the stations, by which they reach each other.
const BETWEEN: [&str; 2] = ["10.5.0.1", "10.5.0.2"];

/// Port at which stations claim connections.
pub(crate) const MOVES: [&str; 2] = ["10.5.0.1:7071", "10.5.0.2:7071"];

const RADIOS: [&str; 2] = ["radio0", "radio1"];
const WIRES: [&str; 2] = ["wire0", "wire1"];

impl Stations {
    /// With the rules of `split` at both stations; the mobile host is at the first one.
    pub(crate) fn new() -> Self {
        let [mobile, server, first, second] = [(); 4].map(|()| Namespace::new().unwrap());
        let stations = [first, second];
        veth::join([&stations[0], &stations[1]], "between", Offload::SinglePackets).unwrap();
        for (number, station) in stations.iter().enumerate() {
            veth::join([&mobile, station], RADIOS[number], Offload::SinglePackets).unwrap();
            veth::join([station, &server], WIRES[number], Offload::SinglePackets).unwrap();
            forward(station);
            ip(station, &format!("addr add {}/24 dev between", BETWEEN[number]));
            ip(station, "link set between up");
            link([&mobile, station], RADIOS[number], 1 + number, CLIENT);
            link([&server, station], WIRES[number], 3 + number, SERVER);
            divert(station, PORT);
            guard(station);
        }
        for (host, addresses) in [(&mobile, CLIENT), (&server, SERVER)] {
            ip(host, &format!("addr add {}/32 dev lo", addresses[0]));
            ip(host, &format!("addr add {}/128 dev lo", addresses[1]));
            ip(host, "link set lo up");
        }
        let stations = Self { mobile, server, stations };
        stations.move_to(0);
        stations
    }

    /// Has packets of both hosts go by a station.
    pub(crate) fn move_to(&self, station: usize) {
        for (host, own, links) in [(&self.mobile, CLIENT, 1), (&self.server, SERVER, 3)] {
            let net = links + station;
            ip(host, &format!("route replace default via 10.{net}.0.254 src {}", own[0]));
            ip(host, &format!("-6 route replace default via fd0{net}::fe src {}", own[1]));
        }
    }

    /// Has a host lose so many of a hundred packets that come to it.
    pub(crate) fn lose(host: &Namespace, percent: u8) {
        let lost = format!("-m statistic --mode random --probability 0.{percent:02} -j DROP");
        for tables in ["iptables", "ip6tables"] {
            succeed(host, tables, &format!("-w -t raw -A PREROUTING -p tcp {lost}"));
        }
    }
}

/// Has a station forward nothing of connections that it does not have, as the documentation of `split` has it. The hosts are namespaces of
/// one kernel here, which begins both halves of a connection with nearly the same sequence numbers: they would take what is of the other half.
fn guard(station: &Namespace) {
    for (tables, host) in [("iptables", CLIENT[0]), ("ip6tables", CLIENT[1])] {
        for end in ["-s", "-d"] {
            succeed(station, tables, &format!("-w -t mangle -A FORWARD -p tcp ! --syn {end} {host} -j DROP"));
        }
    }
}

/// Gives both ends of a link their addresses, and the station the way to the host.
fn link([host, station]: [&Namespace; 2], name: &str, net: usize, addresses: [&str; 2]) {
    for (end, last, last_v6) in [(host, "1", "1"), (station, "254", "fe")] {
        ip(end, &format!("addr add 10.{net}.0.{last}/24 dev {name}"));
        ip(end, &format!("addr add fd0{net}::{last_v6}/64 dev {name} nodad"));
        ip(end, &format!("link set {name} up"));
    }
    ip(station, &format!("route add {}/32 via 10.{net}.0.1", addresses[0]));
    ip(station, &format!("-6 route add {}/128 via fd0{net}::1", addresses[1]));
}
