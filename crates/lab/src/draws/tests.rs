use super::*;
use crate::evaluation::Law;
use std::collections::BTreeSet;

fn laws() -> Vec<Law> {
    ["tpa-wide", "cubic"].map(|name| Law::parse(name).expect("known")).into()
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
    for seed in 0..20 {
        for draw in generate(seed, 40) {
            let plan = draw.plan(&laws(), &[]);
            let plan = plan.unwrap_or_else(|e| panic!("{}: {e:?}\n{}", draw.id, draw.toml));
            assert_eq!(plan.points.len(), 2, "{}", draw.id);
        }
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
