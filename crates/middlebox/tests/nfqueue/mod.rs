//! Kernel packets in a queue: the common tests of packet I/O, and Snoop before a lossy link.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod bare;
mod beside;
mod cables;
mod cost;
mod goodput;
mod path;
mod policy;
mod router;
mod seat;
mod transfer;
mod uploads;
mod world;

use hopline_harness::{Need, Test};
use hopline_linux::Namespace;
use hopline_middlebox::nfqueue::{Config, Queue};
use hopline_testkit::middlebox::CASES;
use hopline_testkit::namespace::LINK;
use path::KernelPath;

/// Requirements of all tests here.
const NEEDS: [Need; 4] = [LINK, Need::Program("iptables"), Need::Program("ip"), Need::Of(why_no_queue)];

pub(crate) fn tests() -> Vec<Test> {
    let cases = CASES.map(|(name, body)| Test::new(name, NEEDS, move || body(&mut KernelPath::new())));
    let own = hopline_harness::tests!(NEEDS;
        path::a_queue_has_one_reader,
        path::errors_are_named,
        path::packets_that_do_not_cross_to_the_mobile_side_pass,
        transfer::losses_of_the_last_hop_are_repaired_by_snoop,
        transfer::a_connection_survives_the_middlebox,
        seat::a_middlebox_is_replaced_and_connections_continue,
        seat::metric_names_are_unique,
        seat::a_middlebox_ends_with_its_interface,
        seat::a_connection_survives_the_death_of_the_reader,
        seat::packets_of_a_full_queue_pass_or_are_dropped_as_configured,
        seat::a_sender_survives_an_outage_behind_mtcp,
        beside::a_rule_for_ipv4_leaves_ipv6_unchanged,
        beside::gso_groups_are_segmented_with_valid_checksums,
        beside::gso_groups_pass_unseen_where_permitted,
        policy::copies_follow_a_rule_by_interface_and_acks_one_by_source,
        policy::copies_follow_a_rule_by_mark_to_its_gateway,
    );
    let of_ipv6: Vec<Need> = NEEDS.into_iter().chain([Need::Program("ip6tables")]).collect();
    let of_ipv6 = hopline_harness::tests!(of_ipv6.clone();
        beside::ipv6_gso_groups_are_segmented_before_the_queue,
        transfer::ipv6_losses_of_the_last_hop_are_repaired_by_snoop,
        transfer::nack_repairs_uploads_over_ipv6,
        policy::a_flow_that_injected_packets_cannot_follow_passes_unseen,
    );
    let needs: Vec<Need> = NEEDS.into_iter().chain([Need::Program("tc")]).collect();
    let measured = goodput::tests().map(|(name, body)| Test::new(name, needs.clone(), body).long());
    let measured = measured.chain([
        Test::new("throughput", NEEDS, cost::throughput).long(),
        Test::new("uploads", NEEDS, uploads::goodput).long().alone(),
    ]);
    cases.into_iter().chain(own).chain(of_ipv6).chain(measured).collect()
}

/// Returns the reason that NFQUEUE is not available, found by trial.
fn why_no_queue() -> Option<String> {
    let tried = || Namespace::new()?.run(|| Queue::open(&Config::new(0, "lo")).map(drop))?;
    tried().err().map(|error| error.to_string())
}
