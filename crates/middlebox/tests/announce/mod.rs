//! TPA announcements in the handshakes of the kernel's TCP: two hosts, with an optional router between them.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod handshakes;
mod router;
mod world;

use hopline_harness::{Need, Test};
use hopline_linux::Namespace;
use hopline_middlebox::nfqueue::{Config, Queue};

/// Requirements of all tests here.
const NEEDS: [Need; 5] = [
    Need::Program("iptables"),
    Need::Program("ip6tables"),
    Need::Program("nft"),
    Need::Program("ip"),
    Need::Of(why_no_queue),
];

pub(crate) fn tests() -> Vec<Test> {
    hopline_harness::tests!(NEEDS;
        handshakes::two_ends_learn_each_other_over_ipv4,
        handshakes::two_ends_learn_each_other_over_ipv6,
        handshakes::a_host_that_does_not_answer_is_called_unmarked_afterwards,
        handshakes::knowledge_expires,
        handshakes::an_unanswered_syn_is_marked_once,
        handshakes::a_path_that_drops_marked_syns_costs_one_retransmission,
        handshakes::handshakes_pass_after_the_service_has_ended,
        handshakes::packets_that_do_not_cross_the_interface_are_unchanged,
        handshakes::a_returning_interface_is_used_again,
        handshakes::errors_are_named,
        router::a_router_answers_for_the_host_behind_it,
        router::a_router_announces_for_the_host_behind_it,
    )
    .into()
}

/// Returns the reason that NFQUEUE is not available, found by trial.
fn why_no_queue() -> Option<String> {
    let tried = || Namespace::new()?.run(|| Queue::open(&Config::new(0, "lo")).map(drop))?;
    tried().err().map(|error| error.to_string())
}
