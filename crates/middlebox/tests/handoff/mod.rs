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
        handoffs::nothing_is_lost_where_the_next_station_keeps_packets,
        handoffs::a_transfer_survives_many_handoffs,
        repeats::the_last_ack_of_a_download_is_repeated_when_a_handoff_is_over,
        cables::between_two_radios_nothing_is_lost,
        cables::who_is_no_member_gets_nothing,
        cables::a_radio_that_goes_down_is_left,
        cables::interfaces_that_were_down_serve_again,
        cables::what_a_dead_station_left_behind_is_no_hindrance,
        cables::the_stronger_station_serves,
        cables::long_packets_are_made_shorter_by_their_sender,
        mistakes::mistakes_are_named,
        hostile::forged_messages_are_counted_and_change_nothing,
        hostile::what_was_said_before_is_not_taken_twice,
        hostile::a_flood_is_counted_while_packets_go_on,
        failures::a_host_whose_station_dies_turns_to_the_other_one,
        failures::a_host_that_hears_nobody_waits_for_a_station_to_come_back,
        failures::after_a_home_agent_has_died_hosts_register_again,
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
        Test::new("snoop::beside_stations_it_repairs", queued.clone(), snoop::beside_stations_it_repairs),
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
