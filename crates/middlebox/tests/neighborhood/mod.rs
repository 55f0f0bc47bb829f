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
        notices::who_suffers_says_so_and_is_heeded_until_it_is_over,
        notices::what_is_said_has_these_bytes,
        notices::a_flood_of_forged_notices_is_heeded_by_nobody,
        notices::total_congestion_is_believed_for_two_seconds_of_twelve,
        notices::a_source_that_vanishes_leaves_the_channel_idle,
        notices::nobody_is_answered,
        notices::mistakes_are_named,
        drops::packets_are_dropped_in_proportion,
        drops::what_understands_marks_is_marked,
        drops::packets_pass_while_nobody_has_the_queue,
        drops::a_vanished_interface_ends_it,
        transfer::tcp_is_whole_while_packets_are_dropped,
        transfer::tcp_is_whole_while_packets_are_marked,
    )
    .into()
}

/// Returns the reason that NFQUEUE is not available, found by trial.
fn why_no_queue() -> Option<String> {
    let tried = || Namespace::new()?.run(|| Queue::open(&Config::new(0, "lo")).map(drop))?;
    tried().err().map(|error| error.to_string())
}
