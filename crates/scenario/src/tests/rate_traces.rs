//! Links that have their rates from files.

use super::files::{folder, load, problems};
use super::*;
use crate::folder::Folder;
use hopline_sim::spec::links::RateTrace;

const HEAD: &str = two_nodes!();
/// The same with rates from the file `t`.
pub(super) const TRACED: &str = concat!(two_nodes!(), "[[link.rate_trace]]\nfile = \"t\"\n");
/// Mahimahi's form: 12.032 Mb/s, then nothing.
const TRACE: &str = "1\n2\n3\n4\n10\n";

fn traced(more: &str) -> String {
    format!("{HEAD}{more}")
}

fn of(link: &hopline_sim::spec::LinkSpec) -> [Option<&RateTrace>; 2] {
    [0, 1].map(|side: usize| link.impairments.rate_traces[side].as_deref())
}

#[test]
fn a_trace_gives_the_rate_of_both_directions_or_of_one() {
    let both = load(&folder(&traced("rate_trace = [{ file = \"t\" }]\n"), &[("t", TRACE)])).unwrap();
    let mean = RateTrace::new(vec![(Duration::ZERO, 6_016_000)], Duration::from_millis(10), Duration::ZERO);
    assert_eq!(of(&both.links[0]), [mean.as_ref(), mean.as_ref()], "20 ms are more than the trace");
    assert_eq!(both.links[0].rate_bps, 6_016_000, "the mean, for what needs one rate");
    let text = traced(
        "rate_mbps = 3\n[[link.rate_trace]]\nfile = \"t\"\ndirection = \"b-to-a\"\ninterval_ms = 4\noffset_s = 2\n",
    );
    let one = load(&folder(&text, &[("t", TRACE)])).unwrap();
    let rates = vec![(0, 12_032_000), (4, 0), (8, 6_016_000)];
    let rates = rates.into_iter().map(|(ms, rate)| (Duration::from_millis(ms), rate)).collect();
    let trace = RateTrace::new(rates, Duration::from_millis(10), Duration::from_secs(2));
    assert_eq!(of(&one.links[0]), [None, trace.as_ref()]);
    assert_eq!(one.links[0].rate_bps, 3_000_000);
}

#[test]
fn each_direction_may_have_a_file() {
    let text = traced(
        "[[link.rate_trace]]\nfile = \"up\"\ndirection = \"a-to-b\"\n\
         [[link.rate_trace]]\nfile = \"down\"\ndirection = \"b-to-a\"\n",
    );
    let folder = folder(&text, &[("up", TRACE), ("down", "time_s,rate_mbps\n0,8\n")]);
    let spec = load(&folder).unwrap();
    let means = of(&spec.links[0]).map(|trace| trace.unwrap().mean_bps());
    assert_eq!(means, [6_016_000, 8_000_000]);
    let scenario = Scenario::load(&folder.path().join("scenario.toml"), &[]).unwrap();
    assert_eq!(scenario.sources().len(), 3, "both files go along to other machines, and into the identity");
}

#[test]
fn a_trace_comes_from_another_machine_along_with_the_scenario() {
    let file = Source { name: "/there/t".into(), text: TRACE.into() };
    let text = traced("rate_trace = [{ file = \"t\" }]\n");
    let source = Arc::new(Source { name: "/there/s.toml".into(), text });
    let scenario = Scenario::parse(source, Folder::transferred("/there", [file]), &[]).unwrap();
    assert_eq!(scenario.spec(1).unwrap().links[0].rate_bps, 6_016_000);
}

#[track_caller]
fn assert_refused(more: &str, trace: &str, expected: &str) {
    assert_eq!(problems(&folder(&traced(more), &[("t", trace)])), expected);
}

#[test]
fn keys_that_contradict_a_trace_are_refused_at_their_place() {
    let trace = "[[link.rate_trace]]\nfile = \"t\"\n";
    assert_refused(
        &format!("{trace}[[link.rate]]\nfrom_s = 1\nrate_mbps = 1\n"),
        TRACE,
        "scenario.toml:16:10: `rate` beside `rate_trace` (a link has rates from a file, or from [[link.rate]]: \
         remove one of the two)",
    );
    assert_refused(
        &format!("rate_mbps = 2\n{trace}"),
        TRACE,
        "scenario.toml:13:13: `rate_mbps` beside `rate_trace` of both directions (remove it, or give the trace a \
         direction)",
    );
    assert_refused(
        &format!("{trace}direction = \"a-to-b\"\n"),
        TRACE,
        "scenario.toml:10:5: a link without `rate_mbps` (add it, the rate in Mb/s, or [[link.rate_trace]] with a \
         file of rates)",
    );
    assert_refused(
        "",
        TRACE,
        "scenario.toml:10:5: a link without `rate_mbps` (add it, the rate in Mb/s, or [[link.rate_trace]] with a \
         file of rates)",
    );
    assert_refused(
        &format!("{trace}{trace}direction = \"a-to-b\"\n"),
        TRACE,
        "scenario.toml:17:13: a second `rate_trace` of a direction (direction = \"a-to-b\" and \"b-to-a\" give each \
         direction a trace of its own)",
    );
    assert_refused(
        &format!("{trace}interval_ms = 20\n"),
        "time_s,rate_mbps\n0,1\n",
        "scenario.toml:15:15: `interval_ms` with a CSV of rates (a CSV has intervals of its own: remove it)",
    );
}

#[test]
fn files_that_are_missing_or_wrong_are_reported() {
    let trace = "[[link.rate_trace]]\nfile = \"t\"\n";
    assert_refused(trace, "1\n3\n2\n", "t:3:1: time 2 after time 3 (times do not decrease)");
    assert_refused(
        trace,
        "10000000000\n",
        "scenario.toml:14:8: a trace with less than 1 bit/s on average (the trace repeats from its last time on: \
         check the units of that time)",
    );
    assert_refused(
        "[[link.rate_trace]]\nfile = \"no\"\n",
        TRACE,
        "scenario.toml:14:8: no: there is no such file (file names are relative to the folder of the scenario)",
    );
    assert_refused(
        "[[link.rate_trace]]\ninterval_ms = 5\n",
        TRACE,
        "scenario.toml:13:1: `link.0.rate_trace.0` has no `file` (add `file = …`, a string: times of opportunities as \
         mahimahi has them, or a CSV with the header `time_s,rate_mbps`)",
    );
}

/// Datagrams with IP packets of 1504 bytes, more than the link carries.
const CBR: &str =
    "[[flow]]\nsrc = \"a\"\ndst = \"b\"\nkind = \"cbr\"\npacket_bytes = 1476\nrate_kbps = 2000\n";

fn run(trace: &str, interval: &str) -> hopline_sim::Outcome {
    let text = format!("{TRACED}{interval}\n").replace("[[flow]]\nsrc = \"a\"\ndst = \"b\"\n", CBR);
    hopline_sim::simulate(&load(&folder(&text, &[("t", trace)])).unwrap(), 1)
}

#[test]
fn goodput_follows_the_trace() {
    // Five packets in 100 ms, the last of them after a stop of 50 ms. In 10 s the link sends 500; the last one, sent at the
    // end, is still in flight.
    let bytes = |interval| run("10\n20\n30\n40\n100\n", interval).flows[0].bytes_received;
    assert_eq!(bytes("interval_ms = 10"), 499 * 1476);
    assert_eq!(
        bytes("interval_ms = 100"),
        499 * 1476,
        "the mean is the rate of the trace whatever the interval"
    );
    // 1.2032 Mb/s for a second, nothing for the next.
    let csv = run("time_s,rate_mbps\n0,1.2032\n1,0\n", "");
    assert_eq!(csv.flows[0].bytes_received, 5 * 100 * 1476, "100 packets in each of five seconds");
}

#[test]
fn runs_are_equal_if_the_content_of_the_file_is() {
    let fingerprint = |trace| run(trace, "interval_ms = 10").fingerprint;
    let first = fingerprint("10\n20\n30\n40\n100\n");
    assert_eq!(first, fingerprint("# again\n10\n20\n30\n40\n100\n"));
    assert_ne!(first, fingerprint("10\n20\n30\n50\n100\n"));
}
