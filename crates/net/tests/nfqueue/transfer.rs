//! The kernel's TCP over a link that loses packets, with Snoop before it.

use crate::nfqueue::router::divert;
use crate::nfqueue::world::{Bottleneck, Standing, World, transfer};
use hopline_net::nfqueue;
use hopline_proxy::Filter;
use hopline_testkit::Side;
use hopline_testkit::namespace::last_hop::LINK;

pub(crate) fn what_a_lossy_link_loses_is_repaired_at_its_border() {
    let world = World::new(0.03, 1, Bottleneck::InLink(100));
    divert(world.wireless.host(Side::A), LINK);
    let standing = world.snoop();
    transfer(&world, 3_000_000, |_| {});
    let (driver, queue) = standing.end();
    let (counts, stats) = (driver.counts(), driver.machine().stats().machine);
    let lost = world.wireless.stats().forth.lost;
    // Of 2,072 segments; the seed is fixed, the course of the kernel's TCP is not.
    assert!(lost > 10, "{lost}");
    assert!(stats.local_retransmissions >= lost / 2, "{lost} lost: {stats:?}");
    assert!(counts.absorbed + counts.rewritten > 0, "{counts:?}");
    assert_eq!((counts.untouched.total(), counts.refused), (0, 0), "{counts:?}");
    let seen = counts.to_mobile + counts.from_mobile;
    assert_eq!(queue, nfqueue::Counts { packets: seen, looks: queue.looks, ..Default::default() });
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
