//! Handoff on real packets, in namespaces: a home agent, two stations and a mobile host.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]
#![allow(clippy::disallowed_methods, reason = "real packets are in real time")]

mod cables;
mod failures;
mod handoffs;
mod hostile;
mod hub;
mod mistakes;
mod programs;
mod repeats;
mod snoop;
mod stream;
mod transfer;
mod world;

use hopline_harness::{Need, Test};
use hopline_linux::Namespace;
use hopline_middlebox::nfqueue::{Config, Queue};
use hopline_testkit::namespace::LINK;

const NEEDS: [Need; 2] = [LINK, Need::Program("ip")];

pub(crate) fn tests() -> Vec<Test> {
    let tests = hopline_harness::tests!(NEEDS;
        handoffs::no_packet_is_lost_if_the_next_station_buffers,
        handoffs::a_transfer_survives_many_handoffs,
        repeats::the_last_ack_of_a_download_is_repeated_after_a_handoff,
        cables::no_packet_is_lost_between_two_radios,
        cables::a_non_member_receives_nothing,
        cables::a_radio_that_goes_down_is_left,
        cables::interfaces_that_were_down_are_used_again,
        cables::rules_left_by_a_killed_station_do_not_interfere,
        cables::the_stronger_station_serves,
        cables::senders_reduce_packets_that_are_too_long_for_the_tunnel,
        mistakes::errors_are_named,
        hostile::forged_messages_are_counted_and_ignored,
        hostile::repeated_messages_are_rejected,
        hostile::a_flood_is_counted_and_packets_continue,
        failures::a_host_whose_station_dies_switches_to_the_other_one,
        failures::a_host_without_a_station_waits_for_its_return,
        failures::hosts_register_again_after_the_home_agent_was_restarted,
    );
    let needing = |more: &[Need]| NEEDS.into_iter().chain(more.iter().copied()).collect::<Vec<_>>();
    let queued = needing(&[Need::Program("iptables"), Need::Of(why_no_queue)]);
    let others = [
        Test::new(
            "programs::iperf3_measures",
            needing(&[Need::Program("iperf3")]),
            programs::iperf3_measures,
        ),
        Test::new("programs::curl_fetches", needing(&[Need::Program("curl")]), programs::curl_fetches),
        Test::new(
            "snoop::beside_stations_it_repairs",
            queued.clone(),
            snoop::snoop_repairs_losses_beside_stations,
        ),
        Test::new("handoffs::figures", NEEDS, handoffs::figures).long(),
        Test::new("repeats::figures", NEEDS, repeats::figures).long().alone(),
        Test::new("snoop::figures", queued, snoop::figures).long(),
    ];
    tests.into_iter().chain(others).collect()
}

/// Tries to open an NFQUEUE. Returns the error if there is none here.
fn why_no_queue() -> Option<String> {
    let tried = || Namespace::new()?.run(|| Queue::open(&Config::new(0, "lo")).map(drop))?;
    tried().err().map(|error| error.to_string())
}
