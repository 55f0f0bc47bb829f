//! The kernel's TCP over a link that loses packets, with Snoop before it.

use crate::nfqueue::router::{divert, divert_ipv6};
use crate::nfqueue::uploads::{self, divert_own};
use crate::nfqueue::world::{Bottleneck, PATIENCE, RunningMiddlebox, World, transfer};
use hopline_middlebox::nfqueue;
use hopline_proxy::Pep;
use hopline_testkit::Side;
use hopline_testkit::namespace::last_hop::{self, LINK, MOBILE_V6};
use std::net::TcpStream;

pub(crate) fn losses_of_the_last_hop_are_repaired_by_snoop() {
    let world = World::new(0.03, 1, Bottleneck::InLink(100));
    divert(world.wireless.host(Side::A), LINK);
    let standing = world.snoop();
    transfer(&world, 3_000_000, |_| {});
    assert_repaired(&world, standing);
}

pub(crate) fn ipv6_losses_of_the_last_hop_are_repaired_by_snoop() {
    let world = World::new(0.03, 1, Bottleneck::InLink(100));
    last_hop::add_ipv6(&world.wired, &world.wireless);
    divert_ipv6(world.wireless.host(Side::A), LINK);
    let standing = world.snoop();
    last_hop::transfer_data(world.connection_to(MOBILE_V6.into(), "cubic"), 2_000_000, |_| {});
    assert_repaired(&world, standing);
}

/// Checks that Snoop sent at least half of the lost segments again, and that nothing passed it by.
pub(crate) fn assert_repaired(world: &World, standing: RunningMiddlebox) {
    let (driver, queue) = standing.end();
    let (counts, stats) = (driver.counts(), driver.middlebox().stats().middlebox);
    let lost = world.wireless.stats().forward.losses;
    // The seed is fixed, the course of the kernel's TCP is not.
    assert!(lost > 10, "{lost}");
    assert!(stats.local_retransmissions >= lost / 2, "{lost} lost: {stats:?}");
    assert!(counts.absorbed + counts.rewritten > 0, "{counts:?}");
    assert_eq!((counts.bypassed.total(), counts.no_route), (0, 0), "{counts:?}");
    let seen = counts.to_mobile + counts.from_mobile;
    assert_eq!(
        queue,
        nfqueue::Counts { packets: seen, drop_counter_reads: queue.drop_counter_reads, ..Default::default() }
    );
}

/// The station asks for what the last hop has lost, and the mobile host, which keeps what it sends, sends it again.
pub(crate) fn nack_repairs_uploads_over_ipv6() {
    let world = World::losing_uploads(0.03, 5);
    last_hop::add_ipv6(&world.wired, &world.wireless);
    let [station, mobile] = [Side::A, Side::B].map(|side| world.wireless.host(side));
    divert_ipv6(station, LINK);
    divert_own(mobile, "ip6tables");
    let (keeps, asks) = (uploads::buffering_host(mobile), uploads::requesting_station(station));
    let [fixed, uploads] = world.connection_to(MOBILE_V6.into(), "cubic");
    for (socket, timeout) in [(&fixed, true), (&uploads, false)] {
        let set = if timeout { TcpStream::set_read_timeout } else { TcpStream::set_write_timeout };
        set(socket, Some(PATIENCE)).unwrap();
    }
    last_hop::transfer_data([uploads, fixed], 1_000_000, |_| {});
    let ((asks, _), (keeps, _)) = (asks.end(), keeps.end());
    let lost = world.wireless.stats().reverse.losses;
    let (asked, again) = (asks.middlebox().stats().nacks, keeps.middlebox().stats().local_retransmissions);
    assert!(lost > 5, "{lost}");
    assert!(asked >= lost / 2 && again >= lost / 2, "{lost} lost, {asked} asked for, {again} sent again");
    assert_eq!((asks.counts().no_route, keeps.counts().no_route), (0, 0));
    assert_eq!((asks.counts().bypassed.total(), keeps.counts().bypassed.total()), (0, 0));
}

pub(crate) fn a_connection_survives_the_middlebox() {
    let world = World::new(0.01, 3, Bottleneck::InLink(100));
    divert(world.wireless.host(Side::A), LINK);
    let mut standing = Some(world.snoop());
    let mut ended = Vec::new();
    let third = 300_000;
    transfer(&world, 3 * third, |arrived| match (arrived / third, &standing, ended.len()) {
        (1, Some(_), 0) => ended.extend(standing.take().map(RunningMiddlebox::end)),
        (2.., None, 1) => standing = Some(world.snoop()),
        _ => {}
    });
    ended.extend(standing.take().map(RunningMiddlebox::end));
    assert!(ended.iter().all(|(driver, _)| driver.counts().to_mobile > 0), "both have seen some of it");
    assert_eq!(ended.len(), 2);
}
