//! Traffic of a router that is not single packets of IPv4.

use crate::nfqueue::bare::PassAll;
use crate::nfqueue::cables::{Cables, HOP, MOBILE, MOBILE_V6, WIRED};
use crate::nfqueue::router::{divert, divert_ipv6};
use crate::nfqueue::world::{EndedMiddlebox, RunningMiddlebox};
use hopline_linux::Namespace;
use hopline_linux::veth::Offload;
use hopline_middlebox::nfqueue;
use hopline_proxy::driver::BypassedCounts;
use hopline_testkit::namespace::last_hop::transfer_data;
use std::fs;
use std::net::SocketAddr;

/// Bytes of a transfer, and segments of 1448 bytes that they fill.
const BYTES: usize = 2_000_000;
const SEGMENTS: u64 = BYTES as u64 / 1448;

pub(crate) fn a_rule_for_ipv4_leaves_ipv6_unchanged() {
    let cables = Cables::new(Offload::SinglePackets);
    cables.speak_ipv6();
    divert(&cables.router, HOP);
    let through = |to: SocketAddr| -> EndedMiddlebox<PassAll> {
        let standing = RunningMiddlebox::with(cables.queue(Offload::SinglePackets), PassAll::default());
        transfer_data(cables.connection(to), BYTES, |_| {});
        standing.end()
    };
    let (_, queue) = through(MOBILE_V6.into());
    assert_eq!(queue, nfqueue::Counts { drop_counter_reads: queue.drop_counter_reads, ..Default::default() });
    let (driver, _) = through(MOBILE.into());
    assert!(driver.counts().to_mobile > SEGMENTS, "the queue is in the path: {:?}", driver.counts());
}

pub(crate) fn ipv6_gso_groups_are_segmented_before_the_queue() {
    let cables = Cables::new(Offload::Gso);
    cables.speak_ipv6();
    divert_ipv6(&cables.router, HOP);
    let standing = RunningMiddlebox::with(cables.queue(Offload::SinglePackets), PassAll::default());
    transfer_data(cables.connection(MOBILE_V6), BYTES, |_| {});
    let (driver, queue) = standing.end();
    let counts = driver.counts();
    assert!(counts.to_mobile > SEGMENTS && counts.from_mobile > 0, "{counts:?}");
    assert_eq!(driver.middlebox().max_len, 1500);
    assert_eq!((counts.bypassed, queue.incomplete), (BypassedCounts::default(), 0));
}

/// A transfer by hosts that leave it to others to cut up what they send, and to write its checksums: what has come, and packets, trains
/// or not, that the router has received from the sender.
fn gso_transfer(taken: Offload) -> (EndedMiddlebox<PassAll>, u64) {
    let cables = Cables::new(Offload::Gso);
    divert(&cables.router, HOP);
    let standing = RunningMiddlebox::with(cables.queue(taken), PassAll::default());
    transfer_data(cables.connection(MOBILE), BYTES, |_| {});
    (standing.end(), received(&cables.router))
}

pub(crate) fn gso_groups_are_segmented_with_valid_checksums() {
    let ((driver, queue), received) = gso_transfer(Offload::SinglePackets);
    let counts = driver.counts();
    assert!(received < SEGMENTS / 2, "the sender's card cuts up what comes: {received}");
    assert!(counts.to_mobile > SEGMENTS, "{counts:?}");
    assert_eq!(driver.middlebox().max_len, 1500);
    assert_eq!((counts.bypassed, queue.incomplete), (BypassedCounts::default(), 0));
}

pub(crate) fn gso_groups_pass_unseen_where_permitted() {
    let ((driver, queue), received) = gso_transfer(Offload::Gso);
    assert!(received < SEGMENTS / 2, "the sender's card cuts up what comes: {received}");
    assert!(queue.incomplete > 0 && queue.incomplete <= queue.packets, "{queue:?}");
    assert!(queue.packets < SEGMENTS, "they are whole: {queue:?}");
    // The kernel writes the checksum of what a socket in TIME-WAIT says at once: the machine may see that, and no data.
    let longest = driver.middlebox().max_len;
    assert!(longest <= 60, "{longest} bytes, {:?}", driver.counts());
}

/// Packets that came by the cable from the sender.
fn received(router: &Namespace) -> u64 {
    let table = router.run(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix(WIRED)?.strip_prefix(':'));
    // Bytes, packets.
    line.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}
