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
use hopline_testkit::in_path::CASES;
use hopline_testkit::namespace::LINK;
use path::RealPlace;

/// Requirements of all tests here.
const NEEDS: [Need; 4] = [LINK, Need::Program("iptables"), Need::Program("ip"), Need::Of(why_no_queue)];

pub(crate) fn tests() -> Vec<Test> {
    let cases = CASES.map(|(name, body)| Test::new(name, NEEDS, move || body(&mut RealPlace::new())));
    let own = hopline_harness::tests!(NEEDS;
        path::who_has_a_queue_has_it_alone,
        path::mistakes_are_named,
        path::what_does_not_cross_the_border_passes,
        transfer::what_a_lossy_link_loses_is_repaired_at_its_border,
        transfer::a_connection_outlives_the_machine,
        seat::another_machine_takes_the_seat_and_the_connection_goes_on,
        seat::what_is_counted_has_a_name_of_its_own,
        seat::a_seat_ends_when_its_interface_has_gone,
        seat::a_connection_outlives_a_reader_that_is_killed,
        seat::what_finds_the_queue_full_passes_or_is_dropped_as_it_was_asked,
        seat::a_sender_survives_an_outage_behind_mtcp,
        beside::a_rule_of_ipv4_leaves_ipv6_alone,
        beside::trains_come_as_single_segments_with_right_checksums,
        beside::trains_pass_unseen_where_they_are_allowed,
        policy::copies_follow_a_rule_by_interface_and_acks_one_by_source,
        policy::copies_follow_a_rule_by_mark_to_its_gateway,
    );
    let of_ipv6: Vec<Need> = NEEDS.into_iter().chain([Need::Program("ip6tables")]).collect();
    let of_ipv6 = hopline_harness::tests!(of_ipv6.clone();
        beside::trains_of_ipv6_that_a_rule_sends_here_come_as_single_segments,
        transfer::snoop_repairs_what_a_lossy_link_loses_of_ipv6,
        transfer::nack_repairs_what_a_mobile_host_sends_over_ipv6,
        policy::a_flow_that_nothing_sent_here_could_follow_passes_unseen,
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
