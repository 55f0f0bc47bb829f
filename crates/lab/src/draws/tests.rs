use super::*;
use crate::evaluation::Law;
use crate::experiment::{RunOptions, in_memory};
use crate::run::NoObserver;
use crate::text::draws::describe;
use std::collections::BTreeSet;

fn laws(names: &[&str]) -> Vec<Law> {
    names.iter().map(|name| Law::parse(name).expect("known")).collect()
}

/// Returns networks without traces.
fn generate(seed: u64, count: usize) -> Vec<Draw> {
    super::generate(seed, count, &Traces::default())
}

#[track_caller]
fn made(draw: &Draw, names: &[&str]) -> Vec<Outcome> {
    let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
    let plan = draw.plan(&laws(names), &[]).expect("a plan");
    Outcome::of(draw, &in_memory(&plan, how).expect("it runs").0)
}

#[test]
fn a_seed_gives_the_same_networks_and_another_seed_others() {
    let (one, again, other) = (generate(7, 40), generate(7, 60), generate(8, 40));
    assert_eq!(one[..], again[..40]);
    let same = one.iter().zip(&other).filter(|(a, b)| a.toml == b.toml).count();
    assert_eq!(same, 0);
}

#[test]
fn twenty_networks_have_all_kinds() {
    let kinds: BTreeSet<Kind> = generate(3, 20).iter().map(|draw| draw.kind).collect();
    assert_eq!(kinds.len(), Kind::ALL.len());
}

#[test]
fn every_network_of_many_seeds_is_a_scenario() {
    let laws = laws(&["tpa-wide", "cubic"]);
    for seed in 0..20 {
        for draw in generate(seed, 40) {
            let plan = draw.plan(&laws, &[]);
            let plan = plan.unwrap_or_else(|e| panic!("{}: {e:?}\n{}", draw.id, draw.toml));
            assert_eq!(plan.points.len(), 2, "{}", draw.id);
        }
    }
}

#[cfg(feature = "quic")]
#[test]
fn controllers_of_quic_run_on_every_kind() {
    let laws = laws(&["quic-cubic", "quic-newreno", "quic-bbr"]);
    for draw in generate(5, 20) {
        let plan = draw.plan(&laws, &[]);
        let plan = plan.unwrap_or_else(|e| panic!("{}: {e:?}\n{}", draw.id, draw.toml));
        assert_eq!(plan.points.len(), 3, "{}", draw.id);
    }
}

#[test]
fn the_best_rival_is_the_best_of_the_other_algorithms() {
    let outcome = |performance| Outcome { performance, ..Outcome::default() };
    let all = [outcome(Some(0.5)), outcome(Some(0.8)), outcome(None), outcome(Some(1.0))];
    assert_eq!(ratio_to_best_rival(&all, 0), Some(0.5));
    assert_eq!(ratio_to_best_rival(&all, 3), Some(1.25));
    assert_eq!(ratio_to_best_rival(&all, 2), None);
}

#[test]
fn quantiles_of_no_values_do_not_exist() {
    assert_eq!(Quantiles::of(&[]), None);
    let q = Quantiles::of(&[3.0, 1.0, 2.0]).expect("values");
    assert_eq!((q.count, q.median, q.least), (3, 2.0, 1.0));
}

/// Returns the mean rate of the link in a scenario of 40 s, bit/s.
fn mean_bps(toml: &str) -> f64 {
    let numbers = |key: &str| -> Vec<f64> {
        let values = toml.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        values.map(|value| value.parse().expect("a number")).collect()
    };
    let starts: Vec<f64> = [0.0].into_iter().chain(numbers("from_s")).collect();
    let ends = starts.iter().skip(1).copied().chain([40.0]);
    let bits = starts.iter().zip(ends).zip(numbers("rate_mbps"));
    bits.map(|((start, end), mbps)| mbps * 1e6 * (end - start).max(0.0)).sum::<f64>() / 40.0
}

#[test]
fn the_highest_goodput_of_a_changing_link_is_its_mean_rate() {
    let mut checked = 0;
    for draw in generate(11, 40) {
        let Measure::Goodput { ceiling_bps } = draw.measure else { continue };
        if matches!(draw.kind, Kind::Steps | Kind::Walk | Kind::Cellular) {
            let mean = mean_bps(&draw.toml);
            assert!((ceiling_bps / mean - 1.0).abs() < 0.01, "{}: {ceiling_bps}, not {mean}", draw.id);
            checked += 1;
        }
    }
    assert_eq!(checked, 10);
}

/// Returns a network of one link of 10 Mb/s and 10 ms, with `flows` of the compared algorithm and more tables.
fn known(kind: Kind, measure: Measure, flows: usize, more: &str) -> Draw {
    let flow = "[[flow]]\nclass = \"law\"\nsrc = \"near\"\ndst = \"far\"\n";
    let toml = format!(
        "duration_s = 30\nwarmup_s = 10\n[tcp]\npreset = \"linux\"\nreceive_buffer_bytes = 100000\n\
         [[node]]\nname = \"near\"\n[[node]]\nname = \"far\"\n\
         [[link]]\na = \"near\"\nb = \"far\"\nrate_mbps = 10\ndelay_ms = 10\nqueue.capacity_packets = 1000\n{}{more}",
        flow.repeat(flows)
    );
    let (id, marks, loss, base_delay_s, stretch) = ("known".into(), false, 0.0, 0.0112, None);
    Draw { id, kind, toml, marks, loss, base_delay_s, measure, stretch }
}

/// Returns whether `value` is within `share` of `expected`.
fn is_near(value: Option<f64>, expected: f64, share: f64) -> bool {
    value.is_some_and(|value| (value / expected - 1.0).abs() <= share)
}

/// Goodput of a link of 10 Mb/s with packets of 1500 bytes, of which 1448 are data, bit/s.
const FULL_BPS: f64 = 10e6 * 1448.0 / 1500.0;

#[test]
fn outcomes_on_a_known_link_are_those_computed_by_hand() {
    let draw = known(Kind::Steady, Measure::Goodput { ceiling_bps: 10e6 }, 1, "");
    let outcome = &made(&draw, &["cubic"])[0];
    assert!(is_near(outcome.goodput_bps, FULL_BPS, 1e-3), "{outcome:?}");
    assert!(is_near(outcome.performance, FULL_BPS / 10e6, 1e-3), "{outcome:?}");
    assert_eq!(outcome.overhead, Some(1.0), "nothing is lost");
    assert_eq!((outcome.jain, outcome.other_share), (None, None));
    // The window of 100 kB is 69 packets of 1.2 ms, less up to two that wait for an acknowledgment of every second packet. The
    // path without a queue has 11.2 ms for data and 10.04 ms for acknowledgments.
    let longest_s = 69.0 * 1.2e-3 - 0.0112 - 0.01004;
    let wait_s = outcome.wait_s.expect("a constant path");
    assert!(wait_s <= longest_s && wait_s >= longest_s - 2.0 * 1.2e-3, "{outcome:?}");
    let p95_s = outcome.delay_p95_s.expect("packets arrive");
    assert!(p95_s >= wait_s + 0.0112 && p95_s <= 1.01 * (longest_s + 0.0112), "{outcome:?}");
    let steps = Draw { kind: Kind::Steps, ..draw };
    assert_eq!(made(&steps, &["cubic"])[0].wait_s, None, "of constant paths only");
}

#[test]
fn outcomes_beside_other_flows_are_shares_of_what_is_fair() {
    let datagrams = "[[flow]]\nclass = \"other\"\nsrc = \"near\"\ndst = \"far\"\nkind = \"cbr\"\n\
        packet_bytes = 1200\nrate_kbps = 2000\n";
    let shares = Measure::Shares { law_bps: 8e6, other_bps: 4e6 };
    let outcome = &made(&known(Kind::BesideDatagrams, shares, 2, datagrams), &["cubic"])[0];
    // A datagram of 1200 bytes is a packet of 1228.
    let left_bps = (10e6 - 2e6 * 1228.0 / 1200.0) * 1448.0 / 1500.0;
    assert!(is_near(outcome.goodput_bps, left_bps, 1e-3), "{outcome:?}");
    assert!(is_near(outcome.other_share, 0.5, 1e-3), "{outcome:?}");
    assert_eq!(outcome.performance, outcome.other_share, "the smaller share");
    assert!(is_near(outcome.jain, 1.0, 1e-3), "windows and paths are equal: {outcome:?}");
}

#[test]
fn ratios_to_bbr_are_medians_over_networks_that_vary() {
    let draw = |kind| known(kind, Measure::Goodput { ceiling_bps: 1.0 }, 1, "");
    let draws = [Kind::Steps, Kind::Steady, Kind::Outages, Kind::Satellite, Kind::Walk].map(draw);
    let outcome = |goodput_bps, delay_p95_s| Outcome { goodput_bps, delay_p95_s, ..Outcome::default() };
    let bbr = outcome(Some(10.0), Some(0.2));
    let outcomes = [
        vec![outcome(Some(9.5), Some(0.1)), bbr.clone()],
        vec![outcome(Some(1.0), Some(9.0)), bbr.clone()],
        vec![outcome(Some(9.0), Some(0.12)), bbr.clone()],
        vec![outcome(Some(0.0), None), bbr.clone()],
        vec![outcome(Some(4.0), Some(0.1)), outcome(Some(0.0), None)],
    ];
    let ratio = |laws: [&str; 2], law| {
        let laws = laws.map(str::to_owned);
        let results = Results { seed: 1, laws: &laws, draws: &draws, trace_files: 0, outcomes: &outcomes };
        Summary::of(&results, law).varying_to_bbr
    };
    let expected = RatioToBbr { count: 3, goodput: 0.9, delay_p95: Some(0.55), on_target: 1 };
    let close = ratio(["tpa-wide", "bbr"], 0).expect("BBR is there");
    assert!((close.delay_p95.expect("two delays") - 0.55).abs() < 1e-9, "{close:?}");
    assert_eq!(RatioToBbr { delay_p95: Some(0.55), ..close }, expected);
    let own = RatioToBbr { count: 3, goodput: 1.0, delay_p95: Some(1.0), on_target: 0 };
    assert_eq!(ratio(["tpa-wide", "tcp-bbr"], 1), Some(own));
    assert_eq!(ratio(["tpa-wide", "bbr3"], 0), None);
    let text = |rival: &str| {
        let laws = ["tpa-wide".to_owned(), rival.to_owned()];
        describe(&Results { seed: 1, laws: &laws, draws: &draws, trace_files: 0, outcomes: &outcomes })
    };
    let row = |text: String| text.lines().skip_while(|line| !line.starts_with("of BBR")).nth(1).map(words);
    assert_eq!(row(text("bbr")).as_deref(), Some("tpa-wide 0.90 0.55 1 3"));
    assert_eq!(row(text("bbr3")), None);
}

/// Returns the words of a line, with single spaces.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
