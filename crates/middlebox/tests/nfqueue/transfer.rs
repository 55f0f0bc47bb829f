//! The kernel's TCP over a link that loses packets, with Snoop before it.

use crate::nfqueue::router::{divert, divert_ipv6};
use crate::nfqueue::uploads::{self, divert_own};
use crate::nfqueue::world::{Bottleneck, PATIENCE, Standing, World, transfer};
use hopline_middlebox::nfqueue;
use hopline_proxy::Filter;
use hopline_testkit::Side;
use hopline_testkit::namespace::last_hop::{self, LINK, MOBILE_V6};
use std::net::TcpStream;

pub(crate) fn what_a_lossy_link_loses_is_repaired_at_its_border() {
    let world = World::new(0.03, 1, Bottleneck::InLink(100));
    divert(world.wireless.host(Side::A), LINK);
    let standing = world.snoop();
    transfer(&world, 3_000_000, |_| {});
    has_repaired(&world, standing);
}

pub(crate) fn snoop_repairs_what_a_lossy_link_loses_of_ipv6() {
    let world = World::new(0.03, 1, Bottleneck::InLink(100));
    last_hop::speak_ipv6(&world.wired, &world.wireless);
    divert_ipv6(world.wireless.host(Side::A), LINK);
    let standing = world.snoop();
    last_hop::carry(world.connection_to(MOBILE_V6.into(), "cubic"), 2_000_000, |_| {});
    has_repaired(&world, standing);
}

/// Checks that Snoop sent at least half of the lost segments again, and that nothing passed it by.
pub(crate) fn has_repaired(world: &World, standing: Standing) {
    let (driver, queue) = standing.end();
    let (counts, stats) = (driver.counts(), driver.machine().stats().machine);
    let lost = world.wireless.stats().forth.lost;
    // The seed is fixed, the course of the kernel's TCP is not.
    assert!(lost > 10, "{lost}");
    assert!(stats.local_retransmissions >= lost / 2, "{lost} lost: {stats:?}");
    assert!(counts.absorbed + counts.rewritten > 0, "{counts:?}");
    assert_eq!((counts.untouched.total(), counts.refused), (0, 0), "{counts:?}");
    let seen = counts.to_mobile + counts.from_mobile;
    assert_eq!(queue, nfqueue::Counts { packets: seen, looks: queue.looks, ..Default::default() });
}

/// The station asks for what the last hop has lost, and the mobile host, which keeps what it sends, sends it again.
pub(crate) fn nack_repairs_what_a_mobile_host_sends_over_ipv6() {
    let world = World::losing_uploads(0.03, 5);
    last_hop::speak_ipv6(&world.wired, &world.wireless);
    let [station, mobile] = [Side::A, Side::B].map(|side| world.wireless.host(side));
    divert_ipv6(station, LINK);
    divert_own(mobile, "ip6tables");
    let (keeps, asks) = (uploads::keeps(mobile), uploads::asks(station));
    let [fixed, uploads] = world.connection_to(MOBILE_V6.into(), "cubic");
    for (socket, timeout) in [(&fixed, true), (&uploads, false)] {
        let set = if timeout { TcpStream::set_read_timeout } else { TcpStream::set_write_timeout };
        set(socket, Some(PATIENCE)).unwrap();
    }
    last_hop::carry([uploads, fixed], 1_000_000, |_| {});
    let ((asks, _), (keeps, _)) = (asks.end(), keeps.end());
    let lost = world.wireless.stats().back.lost;
    let (asked, again) = (asks.machine().stats().nacks, keeps.machine().stats().local_retransmissions);
    assert!(lost > 5, "{lost}");
    assert!(asked >= lost / 2 && again >= lost / 2, "{lost} lost, {asked} asked for, {again} sent again");
    assert_eq!((asks.counts().refused, keeps.counts().refused), (0, 0));
    assert_eq!((asks.counts().untouched.total(), keeps.counts().untouched.total()), (0, 0));
}

pub(crate) fn a_connection_outlives_the_machine() {
    let world = World::new(0.01, 3, Bottleneck::InLink(100));
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
