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

#[test]
fn the_mean_rate_of_changing_links_is_that_of_the_run() {
    for draw in generate(11, 60) {
        let Measure::Goodput { ceiling_bps } = draw.measure else { continue };
        assert!(ceiling_bps > 1e5 && ceiling_bps < 5e8, "{}: {ceiling_bps}", draw.id);
        assert!(draw.base_delay_s > 0.0, "{}", draw.id);
    }
}
