//! Conclusions of all kinds of results.

use super::*;
use crate::report::{Limit, Side, Variant};

const INTERVAL_95: f64 = 2.093; // Student, 19 degrees of freedom.

/// Returns a variant with 20 runs around `mean`, compared with `baseline`; differences are constant except
/// for small noise.
fn variant(label: &str, mean: f64, baseline: Option<f64>, p: f64) -> Variant {
    let wobble = |i: usize| ((i * 7) % 20) as f64 - 9.5;
    let noise = |i: usize| ((i * 3) % 20) as f64 / 10.0 - 0.95;
    let runs: Vec<f64> = (0..20).map(|i| mean + wobble(i) + noise(i)).collect();
    let versus = baseline.map(|b| {
        let half = INTERVAL_95 * 0.6;
        let difference = measured(mean - b, half);
        let percent = (b > 0.0).then(|| measured(100.0 * (mean - b) / b, 100.0 * half / b));
        Versus { difference, percent, p: Some(p) }
    });
    let measured = Measured { mean, interval: Some([mean - 3.0, mean + 3.0]), runs };
    Variant { label: label.into(), values: vec![Some(Value { measured, versus })], ..Variant::default() }
}

fn measured(mean: f64, half: f64) -> Measured {
    Measured { mean, interval: Some([mean - half, mean + half]), runs: Vec::new() }
}

fn experiment(variants: Vec<Variant>) -> Experiment {
    let metrics = vec![Metric::new("goodput", "kb/s", Better::Higher)];
    Experiment { runs: 20, metrics, variants, ..Experiment::default() }
}

fn also(variant: &mut Variant, value: Value) {
    variant.values.push(Some(value));
}

#[test]
fn a_winner_is_named_with_its_gain_and_significance() {
    let answer = Conclusion::of(&experiment(vec![
        variant("window=2", 500.0, None, 1.0),
        variant("window=3", 600.0, Some(500.0), 0.0001),
        variant("window=8", 400.0, Some(500.0), 0.0001),
    ]));
    assert_eq!(answer.outcome, Outcome::Winner(1));
    assert_eq!(
        answer.text(),
        "window=3 wins: its goodput is 20.0 % higher than that of the baseline window=2 \
         (95 % interval 19.75 to 20.25 %, p < 0.001, 20 paired runs)."
    );
    let names: Vec<_> = answer.sentences[0].iter().filter(|p| matches!(p, Part::Variant { .. })).collect();
    assert_eq!(names.len(), 2);
}

#[test]
fn variants_indistinguishable_from_the_winner_are_named() {
    let baseline = variant("a", 500.0, None, 1.0);
    let mut near = variant("c", 599.9, Some(500.0), 0.0001);
    let runs = &mut near.values[0].as_mut().unwrap().measured.runs;
    runs.reverse(); // Pairs that differ by more than the means do.
    let also = variant("d", 599.9, Some(500.0), 0.0001);
    let best = variant("b", 600.0, Some(500.0), 0.0001);
    let one = Conclusion::of(&experiment(vec![baseline.clone(), best.clone(), near.clone(), also]));
    assert!(one.text().ends_with("It cannot be told apart from c."), "{}", one.text());
    let many = (0..6).map(|_| near.clone());
    let many =
        Conclusion::of(&experiment([baseline.clone(), best.clone()].into_iter().chain(many).collect()));
    assert!(many.text().ends_with("It cannot be told apart from 6 others."), "{}", many.text());
    let three = Conclusion::of(&experiment(vec![baseline, best, near.clone(), near.clone(), near]));
    assert!(three.text().ends_with("It cannot be told apart from c, c and c."), "{}", three.text());
}

#[test]
fn the_drawbacks_of_the_winner_are_named() {
    let mut experiment =
        experiment(vec![variant("a", 500.0, None, 1.0), variant("b", 600.0, Some(500.0), 0.0001)]);
    experiment.metrics.push(Metric::new("retransmission index", "%", Better::Lower));
    experiment.metrics.push(Metric::new("Jain's index", "", Better::Higher));
    experiment.metrics.push(Metric::new("hops", "", Better::Neither));
    let worse = |difference: f64, p| {
        Some(Versus { difference: measured(difference, 0.1), percent: None, p: Some(p) })
    };
    also(&mut experiment.variants[0], Value { measured: measured(1.1, 0.1), versus: None });
    also(&mut experiment.variants[1], Value { measured: measured(4.2, 0.3), versus: worse(3.1, 0.01) });
    also(&mut experiment.variants[0], Value { measured: measured(0.9, 0.1), versus: None });
    also(&mut experiment.variants[1], Value { measured: measured(0.8, 0.1), versus: worse(-0.1, 0.3) });
    also(&mut experiment.variants[0], Value { measured: measured(4.0, 0.1), versus: None });
    also(&mut experiment.variants[1], Value { measured: measured(9.0, 0.1), versus: worse(5.0, 0.001) });
    let text = Conclusion::of(&experiment).text();
    assert!(
        text.ends_with("It costs: retransmission index 4.20 ± 0.30 % instead of 1.10 ± 0.10 %."),
        "{text}"
    );

    experiment.variants[1].values[1].as_mut().unwrap().versus = worse(3.1, 0.2);
    let text = Conclusion::of(&experiment).text();
    assert!(text.ends_with("Nothing else that was measured gets worse."), "{text}");
}

#[test]
fn no_significant_difference_is_reported() {
    let answer = Conclusion::of(&experiment(vec![
        variant("a", 500.0, None, 1.0),
        variant("b", 501.0, Some(500.0), 0.4),
        variant("c", 499.5, Some(500.0), 0.7),
    ]));
    assert_eq!(answer.outcome, Outcome::NoDifference);
    assert_eq!(
        answer.text(),
        "No variant differs measurably from the baseline a in goodput. The largest difference seen is that of b: \
         0.2 % higher (95 % interval −0.05 to 0.45 %, p = 0.400, 20 paired runs)."
    );
    let two = Conclusion::of(&experiment(vec![
        variant("a", 500.0, None, 1.0),
        variant("b", 501.0, Some(500.0), 0.4),
    ]));
    assert!(
        two.text().starts_with("b does not differ measurably from the baseline a in goodput."),
        "{}",
        two.text()
    );
}

#[test]
fn a_baseline_without_a_better_variant_is_best() {
    let baseline = variant("a", 500.0, None, 1.0);
    let worse = variant("b", 400.0, Some(500.0), 0.0001);
    let same = variant("c", 501.0, Some(500.0), 0.4);
    let one = Conclusion::of(&experiment(vec![baseline.clone(), worse.clone()]));
    assert_eq!(one.outcome, Outcome::BaselineBest);
    assert!(
        one.text().starts_with("The baseline a wins. The goodput of b is 20.0 % lower (95 %"),
        "{}",
        one.text()
    );
    let all = Conclusion::of(&experiment(vec![
        baseline.clone(),
        worse.clone(),
        variant("d", 450.0, Some(500.0), 0.001),
    ]));
    let start = "The baseline a wins: every other variant is measurably worse. The nearest is d: its goodput is 10.0 %";
    assert!(all.text().starts_with(start), "{}", all.text());
    let some = Conclusion::of(&experiment(vec![baseline, worse, same]));
    let start = "No variant beats the baseline a; one is measurably worse, and c cannot be told apart from it. The goodput of b is";
    assert!(some.text().starts_with(start), "{}", some.text());
}

#[test]
fn a_variant_equal_to_the_baseline_is_distinguished_from_worse_ones() {
    let mut variants = vec![variant("a", 500.0, None, 1.0)];
    variants
        .extend([("b", 400.0), ("c", 450.0)].map(|(label, mean)| variant(label, mean, Some(500.0), 0.0001)));
    variants.extend([("d", 499.9), ("e", 499.8)].map(|(label, mean)| variant(label, mean, Some(500.0), 0.7)));
    let answer = Conclusion::of(&experiment(variants)).text();
    let start = "No variant beats the baseline a; 2 are measurably worse, and d and e cannot be told apart from it. \
                 Of the worse ones the nearest is c: its goodput is 10.0 % lower";
    assert!(answer.starts_with(start), "{answer}");
}

#[test]
fn lower_is_better_if_the_metric_says_so() {
    let mut experiment = experiment(vec![
        variant("a", 500.0, None, 1.0),
        variant("b", 600.0, Some(500.0), 0.0001),
        variant("c", 400.0, Some(500.0), 0.0001),
    ]);
    experiment.metrics[0] = Metric::new("delay", "ms", Better::Lower);
    let answer = Conclusion::of(&experiment);
    assert_eq!(answer.outcome, Outcome::Winner(2));
    assert!(answer.text().starts_with("c wins: its delay is 20.0 % lower than that"), "{}", answer.text());
}

#[test]
fn one_run_is_no_conclusion() {
    let mut experiment =
        experiment(vec![variant("a", 500.0, None, 1.0), variant("b", 600.0, Some(500.0), 0.0001)]);
    experiment.runs = 1;
    for variant in &mut experiment.variants {
        let value = variant.values[0].as_mut().unwrap();
        value.measured.interval = None;
        value.measured.runs.truncate(1);
    }
    let answer = Conclusion::of(&experiment);
    assert_eq!(answer.outcome, Outcome::Undecided);
    assert_eq!(
        answer.text(),
        "One run has no interval: not an answer yet. In this run b has the highest goodput, 600 kb/s, \
         20.0 % higher than the baseline a."
    );
}

#[test]
fn a_baseline_of_zero_has_no_percentage() {
    let answer = Conclusion::of(&experiment(vec![
        variant("a", 0.0, None, 1.0),
        variant("b", 600.0, Some(0.0), 0.0001),
    ]));
    let start = "b wins: its goodput is 600.0 kb/s higher than that of the baseline a (95 % interval 598.7 to 601.3 kb/s, ";
    assert!(answer.text().starts_with(start), "{}", answer.text());
}

#[test]
fn without_a_test_the_interval_decides() {
    let mut experiment =
        experiment(vec![variant("a", 500.0, None, 1.0), variant("b", 600.0, Some(500.0), 1.0)]);
    assert_eq!(Conclusion::of(&experiment).outcome, Outcome::NoDifference);
    experiment.variants[1].values[0].as_mut().unwrap().versus.as_mut().unwrap().p = None;
    assert_eq!(Conclusion::of(&experiment).outcome, Outcome::Winner(1));
    assert!(!Conclusion::of(&experiment).text().contains("p "));
}

#[test]
fn a_single_variant_is_reported() {
    let alone = Conclusion::of(&experiment(vec![variant("chain", 500.0, None, 1.0)]));
    assert_eq!(alone.outcome, Outcome::SingleVariant);
    let text = "chain has a goodput of 500.0 ± 3.0 kb/s (20 runs); there is nothing to compare it with.";
    assert_eq!(alone.text(), text);
    assert_eq!(Conclusion::of(&experiment(Vec::new())).text(), "Nothing was measured of goodput.");
    assert_eq!(Conclusion::of(&Experiment::default()).text(), "Nothing was measured.");
    let unmeasured = Variant { label: "a".into(), ..Variant::default() };
    assert_eq!(Conclusion::of(&experiment(vec![unmeasured])).outcome, Outcome::NoData);
}

/// Returns the conclusion of an experiment with a delay constraint of 50 ms: goodput and delay of each
/// variant, with half the interval of the delay.
fn bounded(variants: &[(&str, f64, f64, f64)]) -> Conclusion {
    let baseline = variants[0].1;
    let variants = variants.iter().enumerate().map(|(i, &(label, goodput, delay, half))| {
        let mut one = variant(label, goodput, (i > 0).then_some(baseline), 0.0001);
        also(&mut one, Value { measured: measured(delay, half), versus: None });
        one
    });
    let mut experiment = experiment(variants.collect());
    experiment.metrics.push(Metric::new("delay p95", "ms", Better::Lower));
    experiment.limit = Some(Limit { metric: 1, side: Side::Below, limit: 50.0 });
    Conclusion::of(&experiment)
}

#[test]
fn the_best_variant_within_a_limit_wins_although_the_baseline_has_more() {
    let answer = bounded(&[
        ("a", 500.0, 80.0, 2.0),
        ("b", 400.0, 30.0, 2.0),
        ("c", 450.0, 40.0, 2.0),
        ("d", 600.0, 49.0, 2.0),
    ]);
    assert_eq!(answer.outcome, Outcome::BestWithinLimit(2));
    assert_eq!(
        answer.text(),
        "c is the best of those that keep delay p95 below 50 ms: its goodput is 450.0 ± 3.0 kb/s, 10.0 % lower than that \
         of the baseline a, which does not keep it (95 % interval −10.25 to −9.75 %, p < 0.001, 20 paired runs). It is not \
         kept by a (80.0 ± 2.0 ms). Whether it is kept cannot be told of d (49.0 ± 2.0 ms)."
    );
}

#[test]
fn if_the_baseline_is_within_the_limit_the_comparison_is_among_fewer_variants() {
    let answer = bounded(&[("a", 500.0, 30.0, 2.0), ("b", 600.0, 40.0, 2.0), ("c", 700.0, 90.0, 2.0)]);
    assert_eq!(answer.outcome, Outcome::Winner(1));
    assert!(
        answer.text().starts_with("Of those that keep delay p95 below 50 ms: b wins:"),
        "{}",
        answer.text()
    );
    assert!(answer.text().ends_with("It is not kept by c (90.0 ± 2.0 ms)."), "{}", answer.text());
    let alone = bounded(&[("a", 500.0, 30.0, 2.0), ("c", 700.0, 90.0, 2.0)]);
    assert_eq!(alone.outcome, Outcome::BaselineBest);
    assert!(alone.text().starts_with("The baseline a is the only one that keeps delay p95 below 50 ms."));
}

#[test]
fn if_no_variant_is_within_the_limit_the_nearest_is_named() {
    let answer = bounded(&[("a", 500.0, 80.0, 2.0), ("b", 600.0, 60.0, 2.0)]);
    assert_eq!(answer.outcome, Outcome::NoneWithinLimit);
    assert_eq!(
        answer.text(),
        "No variant keeps delay p95 below 50 ms for certain. The nearest is b, 60.0 ± 2.0 ms."
    );
}

#[test]
fn a_baseline_without_the_objective_is_reported_and_variants_are_ranked_alone() {
    let mut variants =
        vec![variant("a", 500.0, None, 1.0), variant("b", 600.0, None, 1.0), variant("c", 400.0, None, 1.0)];
    variants[0].values[0] = None;
    variants.iter_mut().for_each(|v| v.done = 20);
    let answer = Conclusion::of(&experiment(variants));
    assert_eq!(
        answer.text(),
        "The baseline a has no goodput, so that nothing can be compared with it. b has the highest one, 600.0 ± 3.0 kb/s. \
         Not every run has a goodput: 0 of 20 of a."
    );
}

#[test]
fn a_variant_with_one_value_does_not_affect_the_others() {
    let mut scarce = variant("c", 900.0, None, 1.0);
    scarce.values[0] = Some(Value { measured: Measured::of(vec![900.0]), versus: None });
    let mut variants = vec![variant("a", 500.0, None, 1.0), variant("b", 600.0, Some(500.0), 0.0001), scarce];
    variants.iter_mut().for_each(|v| v.done = 20);
    let answer = Conclusion::of(&experiment(variants));
    assert_eq!(answer.outcome, Outcome::Winner(1));
    assert!(answer.text().ends_with("Not every run has a goodput: 1 of 20 of c."), "{}", answer.text());
}

#[test]
fn a_limit_on_a_metric_with_missing_values_is_not_certainly_met() {
    let mut variants = vec![variant("a", 500.0, None, 1.0), variant("b", 600.0, Some(500.0), 0.0001)];
    for one in &mut variants {
        one.done = 20;
        also(one, Value { measured: Measured { runs: vec![30.0; 3], ..measured(30.0, 1.0) }, versus: None });
    }
    let mut experiment = experiment(variants);
    experiment.metrics.push(Metric::new("completion", "s", Better::Lower));
    experiment.limit = Some(Limit { metric: 1, side: Side::Below, limit: 50.0 });
    let answer = Conclusion::of(&experiment);
    assert_eq!(answer.outcome, Outcome::NoneWithinLimit);
    assert!(answer.text().contains("30.0 ± 1.0 s in 3 of 20 runs"), "{}", answer.text());
}

#[test]
fn a_limit_is_judged_for_a_single_variant() {
    let mut one = variant("a", 500.0, None, 1.0);
    also(&mut one, Value { measured: measured(80.0, 2.0), versus: None });
    let mut experiment = experiment(vec![one]);
    experiment.metrics.push(Metric::new("delay p95", "ms", Better::Lower));
    experiment.limit = Some(Limit { metric: 1, side: Side::AtMost, limit: 50.0 });
    let answer = Conclusion::of(&experiment);
    assert!(
        answer.text().ends_with("It does not keep delay p95 at most 50 ms: 80.0 ± 2.0 ms."),
        "{}",
        answer.text()
    );
}
