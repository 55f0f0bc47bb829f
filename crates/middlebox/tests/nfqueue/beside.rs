//! Traffic of a router that is not single packets of IPv4.

use crate::nfqueue::bare::Bare;
use crate::nfqueue::cables::{Cables, HOP, MOBILE, MOBILE_V6, WIRED};
use crate::nfqueue::router::{divert, divert_ipv6};
use crate::nfqueue::world::{Ended, Standing};
use hopline_linux::Namespace;
use hopline_linux::veth::Trains;
use hopline_middlebox::nfqueue;
use hopline_proxy::driver::Untouched;
use hopline_testkit::namespace::last_hop::carry;
use std::fs;
use std::net::SocketAddr;

/// Bytes of a transfer, and segments of 1448 bytes that they fill.
const BYTES: usize = 2_000_000;
const SEGMENTS: u64 = BYTES as u64 / 1448;

pub(crate) fn a_rule_of_ipv4_leaves_ipv6_alone() {
    let cables = Cables::new(Trains::Never);
    cables.speak_ipv6();
    divert(&cables.router, HOP);
    let through = |to: SocketAddr| -> Ended<Bare> {
        let standing = Standing::with(cables.queue(Trains::Never), Bare::default());
        carry(cables.connection(to), BYTES, |_| {});
        standing.end()
    };
    let (_, queue) = through(MOBILE_V6.into());
    assert_eq!(queue, nfqueue::Counts { looks: queue.looks, ..Default::default() });
    let (driver, _) = through(MOBILE.into());
    assert!(driver.counts().to_mobile > SEGMENTS, "the queue is in the path: {:?}", driver.counts());
}

pub(crate) fn trains_of_ipv6_that_a_rule_sends_here_come_as_single_segments() {
    let cables = Cables::new(Trains::Allowed);
    cables.speak_ipv6();
    divert_ipv6(&cables.router, HOP);
    let standing = Standing::with(cables.queue(Trains::Never), Bare::default());
    carry(cables.connection(MOBILE_V6), BYTES, |_| {});
    let (driver, queue) = standing.end();
    let counts = driver.counts();
    assert!(counts.to_mobile > SEGMENTS && counts.from_mobile > 0, "{counts:?}");
    assert_eq!(driver.machine().longest, 1500);
    assert_eq!((counts.untouched, queue.unfinished), (Untouched::default(), 0));
}

/// A transfer by hosts that leave it to others to cut up what they send, and to write its checksums: what has come, and packets, trains
/// or not, that the router has received from the sender.
fn by_train(taken: Trains) -> (Ended<Bare>, u64) {
    let cables = Cables::new(Trains::Allowed);
    divert(&cables.router, HOP);
    let standing = Standing::with(cables.queue(taken), Bare::default());
    carry(cables.connection(MOBILE), BYTES, |_| {});
    (standing.end(), received(&cables.router))
}

pub(crate) fn trains_come_as_single_segments_with_right_checksums() {
    let ((driver, queue), received) = by_train(Trains::Never);
    let counts = driver.counts();
    assert!(received < SEGMENTS / 2, "the sender's card cuts up what comes: {received}");
    assert!(counts.to_mobile > SEGMENTS, "{counts:?}");
    assert_eq!(driver.machine().longest, 1500);
    assert_eq!((counts.untouched, queue.unfinished), (Untouched::default(), 0));
}

pub(crate) fn trains_pass_unseen_where_they_are_allowed() {
    let ((driver, queue), received) = by_train(Trains::Allowed);
    assert!(received < SEGMENTS / 2, "the sender's card cuts up what comes: {received}");
    assert!(queue.unfinished > 0 && queue.unfinished <= queue.packets, "{queue:?}");
    assert!(queue.packets < SEGMENTS, "they are whole: {queue:?}");
    // The kernel writes the checksum of what a socket in TIME-WAIT says at once: the machine may see that, and no data.
    let longest = driver.machine().longest;
    assert!(longest <= 60, "{longest} bytes, {:?}", driver.counts());
}

/// Packets that came by the cable from the sender.
fn received(router: &Namespace) -> u64 {
    let table = router.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix(WIRED)?.strip_prefix(':'));
    // Bytes, packets.
    line.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}
