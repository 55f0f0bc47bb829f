//! Acceptance tests of TPA over UDP in real time: the same bodies as in virtual time.

use crate::over_udp::OverUdp;
use hopline_core::Instant;
use hopline_harness::Test;
use hopline_streams::tpa::{self, Tpa};
use hopline_testkit::cases::{Case, acceptance_cases, arrives_byte_exact};
use hopline_testkit::namespace::{LINK, OverSockets};

pub(crate) fn tests() -> Vec<Test> {
    let cases = [
        ("nothing_lost", "nothing lost", 200_000),
        ("loss", "5 % lost", 200_000),
        ("loss_both_ways", "5 % lost, both ways", 100_000),
        ("bursts", "5 % lost in bursts of 4", 200_000),
        ("reordering", "5 % reordered by 30 ms", 200_000),
        ("duplication", "1 % duplicated", 200_000),
        ("corruption", "0.1 % corrupted", 200_000),
        // Enough bytes for the transfer to last longer than 5 s.
        ("rebound_and_the_old_port_kept", "rebound, the old port kept", 1_500_000),
        ("rebound_and_the_old_port_forgotten", "rebound, the old port forgotten", 1_500_000),
        ("sender_rebound", "the sender rebound, the old port forgotten", 1_500_000),
    ];
    cases.map(|(name, case, bytes)| Test::new(name, [LINK], move || run_case(case, bytes))).into()
}

fn run_case(name: &str, bytes: u64) {
    let case = acceptance_cases().into_iter().find(|case| case.name == name).expect("it is one of them");
    let case = Case { deadline: Instant::from_secs(120), ..case.with_bytes(bytes) };
    let outcome = arrives_byte_exact(&OverSockets(tpa()), &case);
    assert!(outcome.counts[0].sent >= bytes / 1448, "{name}: {outcome:?}");
}

fn tpa() -> OverUdp<Tpa> {
    OverUdp { initiator: tpa::config(3), responder: tpa::config(3) }
}
