//! Routers with policy routing (ip-rule(8)): packets of the daemon take the route of the flow.

use crate::nfqueue::router::{divert, divert_ipv6};
use crate::nfqueue::transfer::assert_repaired;
use crate::nfqueue::world::{Bottleneck, World};
use hopline_linux::Namespace;
use hopline_testkit::Side;
use hopline_testkit::namespace::host::{ip, succeed};
use hopline_testkit::namespace::last_hop::{self, LINK, MOBILE_V6};
use std::fs;
use std::net::Ipv4Addr;

/// Address of the mobile host that it does not announce on any link: it is reachable only through a gateway, the mobile
/// host's other address.
const BEYOND: Ipv4Addr = Ipv4Addr::new(10, 80, 9, 9);
const BYTES: usize = 1_000_000;

/// Returns a world with a router that has these additional rules and routes.
fn world(routes: &[&str]) -> World {
    let world = World::new(0.03, 1, Bottleneck::InLink(100));
    let router = world.wireless.host(Side::A);
    routes.iter().for_each(|route| ip(router, route));
    divert(router, LINK);
    world
}

/// The main table has no route to either side.
pub(crate) fn copies_follow_a_rule_by_interface_and_acks_one_by_source() {
    let world = world(&[
        "rule add pref 50 iif cable lookup 100",
        "route add 10.80.0.0/24 dev link0 table 100",
        "route del 10.80.0.0/24 dev link0",
        "rule add pref 51 from 10.80.0.2 lookup 101",
        "route add 10.81.0.0/24 via 10.83.0.1 table 101",
        "route del 10.81.0.0/24",
    ]);
    let standing = world.snoop();
    last_hop::transfer_data(world.connection("cubic"), BYTES, |_| {});
    assert_repaired(&world, standing);
}

/// The main table leads to the wrong next hop, by the right interface.
pub(crate) fn copies_follow_a_rule_by_mark_to_its_gateway() {
    let world = world(&[
        "rule add pref 50 fwmark 0x5 lookup 100",
        "route add 10.80.9.9 via 10.80.0.2 table 100",
        "route add blackhole 10.80.9.9",
    ]);
    let (router, mobile) = (world.wireless.host(Side::A), world.wireless.host(Side::B));
    succeed(router, "iptables", "-w -t mangle -A PREROUTING -i cable -j MARK --set-mark 0x5");
    answers_beyond(mobile);
    ip(world.wired.host(Side::B), "route add 10.80.9.9 via 10.83.0.2");
    let standing = world.snoop();
    last_hop::transfer_data(world.connection_to(BEYOND.into(), "cubic"), BYTES, |_| {});
    assert_repaired(&world, standing);
}

/// Gives a host the address [`BEYOND`], for which it answers no ARP request.
fn answers_beyond(mobile: &Namespace) {
    ip(mobile, "link set lo up");
    ip(mobile, &format!("addr add {BEYOND}/32 dev lo"));
    let written = mobile.run(|| fs::write(format!("/proc/sys/net/ipv4/conf/{LINK}/arp_ignore"), "1"));
    written.unwrap().unwrap();
}

/// A raw socket finds no IPv6 route that is missing in the main table.
pub(crate) fn a_flow_that_injected_packets_cannot_follow_passes_unseen() {
    let world = World::new(0.03, 1, Bottleneck::InLink(100));
    last_hop::add_ipv6(&world.wired, &world.wireless);
    let router = world.wireless.host(Side::A);
    for what in [
        "-6 rule add pref 50 iif cable lookup 100",
        "-6 route add fd80::/64 dev link0 table 100",
        "-6 route del fd80::/64 dev link0",
    ] {
        ip(router, what);
    }
    divert_ipv6(router, LINK);
    let standing = world.snoop();
    last_hop::transfer_data(world.connection_to(MOBILE_V6.into(), "cubic"), 200_000, |_| {});
    let (driver, queue) = standing.end();
    assert_eq!(driver.counts().no_route, 0, "{:?}", driver.counts());
    assert!(queue.asymmetric > 100, "{queue:?}");
    assert_eq!(queue.asymmetric, queue.packets, "{queue:?}");
}
