//! Strip of key numbers: values of the variant that the conclusion is about, and the simulation effort.

use super::conclusion::{Conclusion, Outcome, is_significant};
use super::measured::{plain, shortest};
use super::{Better, Experiment, Measured, Value};

/// Maximum number of values of the variant.
const MAX_NUMBERS: usize = 4;

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyNumber {
    /// Name.
    pub(super) name: String,
    /// Value as text.
    pub(super) value: String,
    /// Unit; may be empty.
    pub(super) unit: String,
    /// Reference value for comparison; may be empty.
    pub(super) note: String,
    /// Class of the comparison with the baseline: `good`, `bad` or nothing.
    pub(super) tone: &'static str,
}

/// Returns the variant of the numbers, and the numbers.
pub(super) fn of(experiment: &Experiment, answer: &Conclusion) -> (usize, Vec<KeyNumber>) {
    let about = match answer.outcome {
        Outcome::Winner(v) | Outcome::BestWithinLimit(v) => v,
        _ => 0,
    };
    let Some(variant) = experiment.variants.get(about) else { return (0, Vec::new()) };
    let values = variant.values.iter().enumerate();
    let measured = values.filter_map(|(m, value)| value.as_ref().map(|value| number(experiment, m, value)));
    (about, measured.take(MAX_NUMBERS).chain(effort(experiment)).collect())
}

fn number(experiment: &Experiment, m: usize, value: &Value) -> KeyNumber {
    let metric = &experiment.metrics[m];
    let versus = value.versus.as_ref();
    let change = versus.and_then(|versus| versus.percent.as_ref());
    let tone = match (versus, metric.better) {
        (Some(versus), Better::Higher | Better::Lower) if is_significant(versus) => {
            if (versus.difference.mean > 0.0) == (metric.better == Better::Higher) { "good" } else { "bad" }
        }
        _ => "",
    };
    let note = match (change, value.measured.interval) {
        (Some(percent), _) => format!("{} % against the baseline", signed(percent)),
        (None, Some([low, high])) if versus.is_none() => {
            let half = Measured { mean: (high - low) / 2.0, ..value.measured.clone() };
            format!("± {}", half.mean_text())
        }
        _ => String::new(),
    };
    KeyNumber {
        name: metric.name.clone(),
        value: value.measured.mean_text(),
        unit: metric.unit.clone(),
        note,
        tone,
    }
}

/// Returns "+12.3".
fn signed(percent: &Measured) -> String {
    let digits = usize::from(percent.mean.abs() < 100.0);
    let text = plain(percent.mean, digits);
    if percent.mean > 0.0 { format!("+{text}") } else { text }
}

/// Returns the amount of simulation, and its time.
fn effort(experiment: &Experiment) -> Option<KeyNumber> {
    let cpu_s: f64 = experiment.variants.iter().map(|v| v.cpu_s).sum();
    let runs = experiment.runs as f64 * experiment.variants.len() as f64;
    let virtual_s = runs * experiment.duration_s;
    let (value, unit) = match virtual_s {
        s if s >= 2.0 * 3600.0 => (plain(s / 3600.0, 1), "h"),
        s if s >= 120.0 => (plain(s / 60.0, 0), "min"),
        s => (shortest(libm::round(s * 10.0) / 10.0), "s"),
    };
    (virtual_s > 0.0 && virtual_s.is_finite()).then(|| KeyNumber {
        name: "simulated".into(),
        value,
        unit: unit.into(),
        note: format!(
            "{} run{} in {} CPU s",
            plain(runs, 0),
            if runs == 1.0 { "" } else { "s" },
            plain(cpu_s, if cpu_s < 10.0 { 2 } else { 0 })
        ),
        tone: "",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Metric, Variant, Versus};

    fn measured(mean: f64, half: f64) -> Measured {
        Measured { mean, interval: Some([mean - half, mean + half]), runs: Vec::new() }
    }

    fn experiment() -> Experiment {
        let versus = |by: f64, percent: f64| {
            Some(Versus {
                difference: measured(by, 1.0),
                percent: Some(measured(percent, 1.0)),
                p: Some(0.001),
            })
        };
        let variant = |label: &str, goodput: f64, delay: f64, versus: [Option<Versus>; 2]| {
            let [first, second] = versus;
            let values = [(goodput, first), (delay, second)];
            let value = |(mean, versus)| Some(Value { measured: measured(mean, 2.0), versus });
            Variant {
                label: label.into(),
                values: values.map(value).into(),
                cpu_s: 1.5,
                ..Variant::default()
            }
        };
        Experiment {
            runs: 10,
            duration_s: 120.0,
            metrics: vec![
                Metric::new("goodput", "kb/s", Better::Higher),
                Metric::new("delay p95", "ms", Better::Lower),
            ],
            variants: vec![
                variant("a", 500.0, 40.0, [None, None]),
                variant("b", 560.0, 60.0, [versus(60.0, 12.0), versus(20.0, 50.0)]),
            ],
            ..Experiment::default()
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_winner_with_improvements_and_drawbacks() {
        let experiment = experiment();
        let (about, numbers) = of(&experiment, &Conclusion::of(&experiment));
        assert_eq!(about, 1);
        let text: Vec<String> = numbers
            .iter()
            .map(|n| format!("{} {} {} {} {}", n.name, n.value, n.unit, n.note, n.tone))
            .collect();
        assert_eq!(
            text,
            [
                "goodput 560.0 kb/s +12.0 % against the baseline good",
                "delay p95 60.0 ms +50.0 % against the baseline bad",
                "simulated 40 min 20 runs in 3.00 CPU s ",
            ]
        );
    }

    #[test]
    fn numbers_of_a_baseline_have_intervals() {
        let mut alone = experiment();
        alone.variants.truncate(1);
        let (about, numbers) = of(&alone, &Conclusion::of(&alone));
        assert_eq!((about, numbers[0].note.as_str(), numbers[0].tone), (0, "± 2.0", ""));
        assert!(of(&Experiment::default(), &Conclusion::of(&Experiment::default())).1.is_empty());
    }
}
