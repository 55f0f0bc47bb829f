//! Neighborhood RED at kernel interfaces: hosts on one Ethernet, with radio statistics that the tests provide.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod drops;
mod notices;
mod place;
mod transfer;

use hopline_harness::{Need, Test};
use hopline_linux::Namespace;
use hopline_middlebox::nfqueue::{Config, Queue};

/// Requirements of all tests here.
const NEEDS: [Need; 3] = [Need::Program("iptables"), Need::Program("ip"), Need::Of(why_no_queue)];

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!(NEEDS;
        notices::a_congested_node_sends_notices_and_neighbours_drop_until_they_expire,
        notices::the_encoding_of_notices_is_stable,
        notices::a_flood_of_forged_notices_is_ignored,
        notices::total_congestion_is_obeyed_for_two_seconds_of_twelve,
        notices::a_vanished_source_leaves_the_channel_idle,
        notices::packets_to_the_notice_port_get_no_answer,
        notices::errors_are_named,
        drops::packets_are_dropped_in_proportion,
        drops::ecn_capable_packets_are_marked,
        drops::packets_pass_while_no_process_reads_the_queue,
        drops::a_vanished_interface_ends_the_service,
        transfer::tcp_survives_dropped_packets,
        transfer::tcp_survives_marked_packets,
    )
    .into()
}

/// Returns the reason that NFQUEUE is not available, found by trial.
fn why_no_queue() -> Option<String> {
    let tried = || Namespace::new()?.run(|| Queue::open(&Config::new(0, "lo")).map(drop))?;
    tried().err().map(|error| error.to_string())
}
