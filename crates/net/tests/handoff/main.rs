//! Handoff on real packets, in namespaces: a home agent, two stations and a mobile host.

#![allow(clippy::unwrap_used, reason = "tests, though without `#[test]`")]

mod handoffs;
mod hub;
mod stream;
mod world;

use hopline_harness::{Need, run};
use hopline_testkit::namespace::LINK;
use std::process::ExitCode;

const NEEDS: [Need; 2] = [LINK, Need::Program("ip")];

fn main() -> ExitCode {
    let tests = hopline_harness::tests!(NEEDS;
        handoffs::nothing_is_lost_where_the_next_station_keeps_packets,
    );
    run(tests, Some(2))
}
