//! TPA over UDP, in real time, through what a reliable transport must stand: the same bodies as in virtual time.

mod over_udp;

use hopline_core::Instant;
use hopline_net::tpa::{self, Tpa};
use hopline_testkit::cases::{Case, arrives_byte_exact, must_hold};
use hopline_testkit::namespace::{OverSockets, run_tests};
use over_udp::OverUdp;
use std::process::ExitCode;

fn main() -> ExitCode {
    run_tests(&[
        ("nothing_lost", || holds("nothing lost", 200_000)),
        ("loss", || holds("5 % lost", 200_000)),
        ("loss_both_ways", || holds("5 % lost, both ways", 100_000)),
        ("bursts", || holds("5 % lost in bursts of 4", 200_000)),
        ("reordering", || holds("5 % reordered by 30 ms", 200_000)),
        ("duplication", || holds("1 % duplicated", 200_000)),
        ("corruption", || holds("0.1 % corrupted", 200_000)),
        // Enough to be under way after 5 s.
        ("rebound_and_the_old_port_kept", || holds("rebound, the old port kept", 1_500_000)),
        ("rebound_and_the_old_port_forgotten", || holds("rebound, the old port forgotten", 1_500_000)),
        ("sender_rebound", || holds("the sender rebound, the old port forgotten", 1_500_000)),
    ])
}

fn holds(name: &str, bytes: u64) {
    let case = must_hold().into_iter().find(|case| case.name == name).expect("it is one of them");
    let case = Case { deadline: Instant::from_secs(120), ..case.with_bytes(bytes) };
    let outcome = arrives_byte_exact(&OverSockets(tpa()), &case);
    assert!(outcome.counts[0].sent >= bytes / 1448, "{name}: {outcome:?}");
}

fn tpa() -> OverUdp<Tpa> {
    OverUdp { caller: tpa::config(3), answerer: tpa::config(3) }
}
