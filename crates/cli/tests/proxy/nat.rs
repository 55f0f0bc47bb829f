//! Routers with NAT and a stateful firewall.

use crate::proxy::gateways::reach;
use crate::proxy::transfer::{End, Pace, Transfer, run_transfer};
use crate::proxy::uploads::asks_and_is_answered;
use crate::proxy::world::{Daemon, Ground, Version, secret, shell, until_or};
use hopline_linux::Namespace;
use std::fs;
use std::thread;
use std::time::Duration;

/// Bytes of a download: some 700 segments.
const BYTES: usize = 1_000_000;
/// Losses towards the mobile host: one in twenty segments. The handshake is spared, since its retransmission takes a second.
const LOSSES: &str = "meta l4proto tcp numgen inc mod 20 == 7";
const PORT: u16 = 80;

/// Kind of NAT, and the direction of the connections that it is for.
pub(crate) struct Nat {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    /// Commands on the router.
    pub(crate) rules: &'static str,
    pub(crate) calls: Calls,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// The mobile host connects to the server.
    FromMobile,
    /// The server connects to the mobile host, by the router's address.
    ToMobile,
}

pub(crate) const NATS: [Nat; 4] = [
    Nat {
        name: "masquerade of iptables",
        version: Version::V4,
        rules: "iptables -w -t nat -A POSTROUTING -o fixed -j MASQUERADE; \
                iptables -w -A FORWARD -m conntrack --ctstate INVALID -j DROP; \
                iptables -w -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT; \
                iptables -w -A FORWARD -i mobile -j ACCEPT; iptables -w -A FORWARD -j DROP",
        calls: Calls::FromMobile,
    },
    Nat {
        name: "masquerade of nftables",
        version: Version::V4,
        rules: "nft 'table ip router { chain post { type nat hook postrouting priority srcnat; oifname fixed masquerade; }; \
                chain filter { type filter hook forward priority filter; ct state invalid drop; ct state established accept; \
                iifname mobile accept; drop; }; }'",
        calls: Calls::FromMobile,
    },
    Nat {
        name: "SNAT",
        version: Version::V4,
        rules: "iptables -w -t nat -A POSTROUTING -o fixed -j SNAT --to-source 10.8.0.254",
        calls: Calls::FromMobile,
    },
    Nat {
        name: "DNAT",
        version: Version::V4,
        rules: "iptables -w -t nat -A PREROUTING -i fixed -p tcp --dport 80 -j DNAT --to-destination 10.9.0.1",
        calls: Calls::ToMobile,
    },
];

/// Middlebox, and the counter that shows its work.
pub(crate) struct Middlebox {
    kind: &'static str,
    figure: &'static str,
    at_least: u64,
}

pub(crate) const MIDDLEBOXES: [Middlebox; 3] = [
    // 35 segments or more are lost.
    Middlebox { kind: "snoop", figure: "sent_to_mobile_packets", at_least: 20 },
    Middlebox { kind: "mtcp", figure: "withheld_acks", at_least: 1 },
    Middlebox { kind: "split", figure: "connections_accepted", at_least: 1 },
];

/// The mobile host would answer a packet of which conntrack changes the port with a reset.
pub(crate) fn middleboxes_work_on_a_router_with_nat() {
    run_concurrently(&NATS, |nat| {
        for middlebox in &MIDDLEBOXES {
            check_middlebox(middlebox, &translating_ground(nat), nat);
        }
    });
}

/// Runs all cases at the same time: a daemon writes its counters once a second, and waiting for that takes most of the time.
pub(crate) fn run_concurrently<T: Sync>(cases: &[T], tried: impl Fn(&T) + Sync) {
    thread::scope(|scope| {
        for case in cases {
            let body = || tried(case);
            thread::Builder::new().name("case".into()).spawn_scoped(scope, body).unwrap();
        }
    });
}

/// Checks that a middlebox works on a router with this NAT.
pub(crate) fn check_middlebox(middlebox: &Middlebox, ground: &Ground, nat: &Nat) {
    let before = ground.listing();
    let mut daemon = middlebox.start(ground, "");
    check_repairs(middlebox, ground, nat, &daemon);
    daemon.ended_by("TERM");
    ground.is_as_before(&before, &format!("{} behind {}", middlebox.kind, nat.name));
}

impl Middlebox {
    /// Starts it on the router, with more lines for its file. Packets are lost if it is to repair them.
    pub(crate) fn start(&self, ground: &Ground, more: &str) -> Daemon {
        if self.kind == "snoop" {
            ground.lose(LOSSES);
        }
        ground.start(&format!("{more}\n[[proxy]]\nkind = \"{}\"\ninterface = \"mobile\"\n", self.kind))
    }
}

/// Checks that data cross, and that the middlebox has worked on them.
pub(crate) fn check_repairs(middlebox: &Middlebox, ground: &Ground, nat: &Nat, daemon: &Daemon) {
    let Middlebox { kind, figure, at_least } = *middlebox;
    let what = format!("{kind} behind {}", nat.name);
    cross(ground, nat);
    let done = || daemon.metric(kind, figure);
    until_or(|| panic!("{what}: {figure} is {}", done()), || done() >= at_least);
    assert_eq!(resets_of(&ground.mobile), 0, "{what}: the mobile host did not know packets");
}

/// `nack` requests segments that the router has missed, in the server's name.
pub(crate) fn requests_reach_a_translated_mobile_host() {
    run_concurrently(&[0, 1, 2], |&nat| asks_and_is_answered(&translating_ground(&NATS[nat]), Version::V4));
}

pub(crate) fn a_gateway_accepts_connections_of_translated_hosts() {
    reach(&translating_ground(&NATS[1]), Version::V4);
}

/// Both ends of a link identify a connection by its addresses on the link.
pub(crate) fn d_proxy_repairs_translated_connections() {
    repairs(&link_translated(Version::V4), Version::V4, Version::V4);
}

/// Creates a router that translates the source of packets to the mobile host.
pub(crate) fn link_translated(version: Version) -> Ground {
    let ground = Ground::new();
    shell(&ground.mobile, &format!("ip {} route del default", version.option()));
    shell(
        &ground.router,
        &format!("{} -w -t nat -A POSTROUTING -o mobile -j MASQUERADE", version.iptables()),
    );
    ground
}

/// Checks that D-Proxy repairs segments to the mobile host. Its ends have addresses of the version `ends`.
pub(crate) fn repairs(ground: &Ground, version: Version, ends: Version) {
    ground.lose(LOSSES);
    let before = ground.listing();
    let [mut near, mut far] = d_proxies(ground, ends);
    run_transfer([&ground.server, &ground.mobile], (version.mobile(), PORT), BYTES);
    let recovered = || far.metric("d-proxy", "holes_recovered");
    until_or(|| panic!("{} holes recovered: {}", recovered(), far.status()), || recovered() > 20);
    assert_eq!(resets_of(&ground.mobile), 0);
    near.ended_by("TERM");
    far.ended_by("TERM");
    ground.is_as_before(&before, "D-Proxy");
}

/// Starts D-Proxy at both ends of the link: on the router, and on the mobile host.
pub(crate) fn d_proxies(ground: &Ground, ends: Version) -> [Daemon; 2] {
    let (key, state) = (ground.folder.path().join("link.key"), ground.folder.path().join("far"));
    secret(&key, &"5a".repeat(32));
    let end = |local: &str, peer: &str, stands: &str| {
        let key = key.display();
        format!(
            "[[proxy]]\nkind = \"d-proxy\"\nstands = \"{stands}\"\ninterface = \"mobile\"\nlocal = \"{local}\"\npeer = \"{peer}\"\nkey_file = \"{key}\"\n"
        )
    };
    let file = ground.folder.path().join("far.toml");
    let (mobile, router) = (ends.mobile(), ends.router()[0]);
    fs::write(&file, format!("state_dir = \"{}\"\n{}", state.display(), end(mobile, router, "host")))
        .unwrap();
    let mut far = Daemon::begin(&ground.mobile, &file, &state);
    far.wait_until("the far end runs", |status| status["proxies"][0]["state"] == "running");
    let near = ground.start(&end(router, mobile, "router"));
    [near, far]
}

/// Creates a router with NAT. The server has no route to the network of the mobile host.
pub(crate) fn translating_ground(nat: &Nat) -> Ground {
    let ground = one_way(nat);
    shell(&ground.router, nat.rules);
    ground
}

/// Creates a router that is to have NAT, and has none yet.
pub(crate) fn one_way(nat: &Nat) -> Ground {
    let ground = Ground::new();
    shell(&ground.server, &format!("ip {} route del default", nat.version.option()));
    if nat.calls == Calls::ToMobile {
        // Answers of the mobile host have the router's address.
        shell(
            &ground.router,
            &format!("{} -w -t nat -A POSTROUTING -o mobile -j ACCEPT", nat.version.iptables()),
        );
    }
    ground
}

/// Transfers data to the mobile host, in a connection of either direction.
fn cross(ground: &Ground, nat: &Nat) {
    let (version, public) = (nat.version, nat.version.router()[1]);
    let transfer = match nat.calls {
        Calls::FromMobile => {
            Transfer::download([&ground.mobile, &ground.server], (version.server(), PORT), BYTES)
        }
        Calls::ToMobile => Transfer::start_by(
            [&ground.server, &ground.mobile],
            (public, PORT),
            (version.mobile(), PORT),
            BYTES,
            Pace::AtOnce,
        ),
    };
    transfer.unwrap_or_else(|e| panic!("{}: {e}", nat.name)).arrives(nat.name);
}

/// The reset is translated as all packets before it.
pub(crate) fn a_server_receives_the_reset_of_a_translated_connection() {
    NATS[..2].iter().for_each(resets);
}

/// Ends a daemon that splits a connection, and checks the reset.
pub(crate) fn resets(nat: &Nat) {
    let ground = translating_ground(nat);
    let mut daemon = ground.start("[[proxy]]\nkind = \"split\"\ninterface = \"mobile\"\n");
    let hosts = [&ground.mobile, &ground.server];
    let pace = Pace::Chunks(Duration::from_millis(15));
    let transfer = Transfer::start(hosts, (nat.version.server(), PORT), 4 * BYTES, pace).unwrap();
    transfer.until_arrived(100_000);
    daemon.ended_by("TERM");
    until_or(|| panic!("{}: no reset came", nat.name), || tcp_count(&ground.server, "EstabResets") > 0);
    assert!(matches!(transfer.ends().0, End::Broken(_)));
}

/// Returns the number of resets that a host has sent.
fn resets_of(host: &Namespace) -> u64 {
    tcp_count(host, "OutRsts")
}

/// Returns a counter of a host's TCP.
pub(crate) fn tcp_count(host: &Namespace, counter: &str) -> u64 {
    let table = shell(host, "grep ^Tcp: /proc/net/snmp");
    let [names, values] = [0, 1].map(|line| table.lines().nth(line).unwrap().split(' ').collect::<Vec<_>>());
    let at = names.iter().position(|name| *name == counter).unwrap();
    values[at].parse().unwrap()
}
