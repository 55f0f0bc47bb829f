//! `[[outage]]`.

use super::*;
use hopline_sim::spec::{OutageEffect, OutageSpec};

const OUTAGE: &str = "[[outage]]\nfrom = \"n1\"\nto = \"n0\"\n";

/// `CHAIN` with an outage from n1 to n0 that also says `more`.
fn with(more: &str) -> String {
    format!("{CHAIN}{OUTAGE}{more}")
}

fn from_n1_to_n0() -> OutageSpec {
    OutageSpec {
        from: NodeId(1),
        to: NodeId(0),
        start: Instant::ZERO,
        end: Instant::FAR_FUTURE,
        blocks: OutageEffect::Frames,
    }
}

#[test]
fn an_outage_affects_frames_in_one_direction_to_the_end_by_default() {
    assert_eq!(spec(CHAIN, &[]).outages, []);
    assert_eq!(spec(&with(""), &[]).outages, [from_n1_to_n0()]);
    let timed = spec(&with("start_s = 2\nend_s = 3.5\nblocks = \"packets\"\nboth_ways = false\n"), &[]);
    let [start, end] = [2000, 3500].map(Instant::from_millis);
    assert_eq!(timed.outages, [OutageSpec { start, end, blocks: OutageEffect::Packets, ..from_n1_to_n0() }]);
}

#[test]
fn an_outage_of_both_directions_is_two_outages() {
    let both = spec(&with("both_ways = true\n"), &[]).outages;
    let one = from_n1_to_n0();
    assert_eq!(both, [one, OutageSpec { from: one.to, to: one.from, ..one }]);
}

#[test]
fn outages_may_overlap_and_be_overridden() {
    let text = with("end_s = 4\n") + OUTAGE;
    let spec = spec(&text, &["outage.1.start_s=3", "outage.1.end_s=6"]);
    let times: Vec<_> = spec.outages.iter().map(|o| (o.start, o.end)).collect();
    let ms = Instant::from_millis;
    assert_eq!(times, [(ms(0), ms(4000)), (ms(3000), ms(6000))]);
}

#[test]
fn a_repeated_outage_recurs_until_the_end_of_the_run() {
    let spec = spec(&with("start_s = 2\nend_s = 3\nevery_s = 4\n"), &["duration_s=10"]);
    let times: Vec<_> = spec.outages.iter().map(|o| (o.start, o.end)).collect();
    let secs = Instant::from_secs;
    assert_eq!(times, [(secs(2), secs(3)), (secs(6), secs(7))]);
}
