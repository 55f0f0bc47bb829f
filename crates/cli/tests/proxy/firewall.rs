//! Routers with an own firewall: proxies do not handle connections that it does not forward.

use crate::proxy::nat::run_concurrently;
use crate::proxy::transfer::run_transfer;
use crate::proxy::world::{Daemon, Ground, Version, secret, shell, until_or};
use hopline_linux::Namespace;
use hopline_testkit::namespace::host::open_with_retries;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const ALLOWED: u16 = 80;
const FORBIDDEN: u16 = 22;
const VERSIONS: [Version; 2] = [Version::V4, Version::V6];
/// Longer than a connection attempt takes; a dropped one waits this long.
const WAIT: Duration = Duration::from_millis(600);

/// Firewall that forwards connections to [`ALLOWED`] alone, in both directions.
struct Firewall {
    name: &'static str,
    /// Commands on the router.
    rules: &'static str,
    /// Error of a forbidden connection, over either IP version.
    told: ErrorKind,
}

const OF_NFTABLES: &str = "ct state established,related accept; iifname mobile oifname fixed tcp dport 80 accept; \
                           iifname fixed oifname mobile tcp dport 80 accept;";

const FIREWALLS: [Firewall; 4] = [
    Firewall {
        name: "nftables, which drops",
        rules: "nft 'table inet router { chain forward { type filter hook forward priority filter; policy drop; RULES }; \
                chain input { type filter hook input priority filter; policy drop; ct state established,related accept; \
                iifname lo accept; meta l4proto ipv6-icmp accept; }; }'",
        told: ErrorKind::TimedOut,
    },
    Firewall {
        name: "nftables, which rejects, late",
        rules: "nft 'table inet router { chain forward { type filter hook forward priority 1000; RULES reject with tcp reset; }; }'",
        told: ErrorKind::ConnectionRefused,
    },
    Firewall {
        name: "iptables, which drops",
        rules: "for t in iptables ip6tables; do $t -w -P FORWARD DROP; $t -w -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT; \
                $t -w -A FORWARD -i mobile -p tcp --dport 80 -j ACCEPT; $t -w -A FORWARD -o mobile -p tcp --dport 80 -j ACCEPT; done",
        told: ErrorKind::TimedOut,
    },
    Firewall {
        name: "iptables, which rejects and tracks nothing",
        rules: "for t in iptables ip6tables; do $t -w -A FORWARD -p tcp --dport 22 -j REJECT --reject-with tcp-reset; done",
        told: ErrorKind::ConnectionRefused,
    },
];

impl Firewall {
    fn ground(&self) -> Ground {
        let ground = Ground::new();
        shell(&ground.router, &self.rules.replace("RULES", OF_NFTABLES));
        ground
    }
}

/// Returns both directions: calling host, called host, and the address of the latter.
fn calls(ground: &Ground, version: Version) -> [([&Namespace; 2], &'static str); 2] {
    let Ground { mobile, server, .. } = ground;
    [([mobile, server], version.server()), ([server, mobile], version.mobile())]
}

/// Checks that only allowed connections cross, over both IP versions and in both directions.
fn check_firewall(firewall: &Firewall, ground: &Ground) {
    for version in VERSIONS {
        for (hosts, address) in calls(ground, version) {
            let what = format!("{}, {address}", firewall.name);
            let at = SocketAddr::new(address.parse::<IpAddr>().unwrap(), FORBIDDEN);
            let _listener = open_with_retries(hosts[1], || TcpListener::bind(at));
            let called = hosts[0].run(|| TcpStream::connect_timeout(&at, WAIT)).unwrap();
            assert_eq!(called.map_err(|error| error.kind()).err(), Some(firewall.told), "{what}");
            run_transfer(hosts, (address, ALLOWED), 100_000);
        }
    }
}

pub(crate) fn connections_that_the_firewall_rejects_are_not_split() {
    run_concurrently(&FIREWALLS, |firewall| {
        let ground = firewall.ground();
        check_firewall(firewall, &ground);
        let before = ground.listing();
        let mut daemon = ground.start("[[proxy]]\nkind = \"split\"\ninterface = \"mobile\"\n");
        check_firewall(firewall, &ground);
        await_carried(firewall, &daemon, "split", "connections_accepted", 4);
        assert!(daemon.ended_by("TERM").success());
        ground.is_as_before(&before, firewall.name);
    });
}

pub(crate) fn connections_that_the_firewall_rejects_pass_no_gateway() {
    run_concurrently(&FIREWALLS, |firewall| {
        let ground = firewall.ground();
        let key = ground.folder.path().join("key");
        secret(&key, &"07".repeat(32));
        let gateway = |divert: &str| {
            format!(
                "[[proxy]]\nkind = \"gateway\"\nname = \"by-{divert}\"\ndivert = \"{divert}\"\nexit = \"10.8.0.1:7172\"\n\
                 identity = \"router\"\nfallback = \"tcp\"\nfallback_after_s = 0.1\nkey_file = \"{}\"\n",
                key.display()
            )
        };
        let before = ground.listing();
        let mut daemon = ground.start(&(gateway("mobile") + &gateway("fixed")));
        check_firewall(firewall, &ground);
        ["by-mobile", "by-fixed"]
            .iter()
            .for_each(|name| await_carried(firewall, &daemon, name, "tcp_connections", 2));
        assert!(daemon.ended_by("TERM").success());
        ground.is_as_before(&before, firewall.name);
    });
}

/// Waits until a proxy has carried `expected` connections.
fn await_carried(firewall: &Firewall, daemon: &Daemon, proxy: &str, figure: &str, expected: u64) {
    let carried = || daemon.metric(proxy, figure);
    until_or(|| panic!("{}: {} {figure} of {proxy}", firewall.name, carried()), || carried() == expected);
}
