//! Reports of comparisons: display units, and one section for variants that belong together.

pub mod columns;
pub mod evaluation;
mod families;
mod flows;
mod measured;
mod names;
mod readings;

use crate::claims::{
    self, ClaimSummary, ClaimTally, Count, Evidence, Heading, Measure, Measurement, Mechanism, Quantity,
    Register, SignMeaning, Test, Verdict,
};
use crate::comparison::{Comparison, Gain, PointResult};
use crate::counted::count_text;
use crate::metrics::{self, Level};
use crate::objective::{Constraint, MetricSelection};
use crate::plan::Effort;
use crate::record::{Neighborhood, Series};
use crate::report::{
    Claim, ClaimCount, Claims, Experiment, FlowSeries, Limit, Measured, Metric, Played, QueueSeries,
    ReadOtherwise, Report, Reproduce, RunSeries, Value, Variant, Versus,
};
use crate::stats::GainStatistic;
use measured::measured_of;

/// Maximum number of groups of points with a section each.
const MAX_SECTIONS: usize = 12;

/// Form of variants' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameForm {
    /// As short as possible while distinct.
    Short,
    /// As in tables.
    Full,
}

/// Returns the experiments of a comparison: variants that belong together.
#[must_use]
pub fn experiments(comparison: &Comparison, names: NameForm) -> Vec<Experiment> {
    sections(comparison, names)
}

/// Returns the report of one experiment.
#[must_use]
pub fn report(comparison: &Comparison) -> Report {
    let description = &comparison.description;
    Report {
        title: description.title.clone().unwrap_or_else(|| description.name.clone()),
        intro: failures(comparison).into_iter().collect(),
        version: description.version.clone(),
        claims: None,
        evaluation: None,
        experiments: sections(comparison, NameForm::Short),
    }
}

/// Returns the report of a paper: its claims, then the figures that were run.
#[must_use]
pub fn reproduction(
    register: &Register,
    figures: &[(usize, &Comparison)],
    evidence: &[Evidence<'_>],
    effort: Effort,
) -> Report {
    let mut experiments = Vec::new();
    let mut first_of = Vec::new();
    for (number, comparison) in figures {
        first_of.push((*number, experiments.len()));
        let title = &register.figures[*number].title;
        experiments.extend(sections(comparison, NameForm::Short).into_iter().map(|section| Experiment {
            name: if section.name.is_empty() { title.clone() } else { format!("{title}: {}", section.name) },
            ..section
        }));
    }
    let mut claims = claims(register, evidence, effort);
    for (claim, e) in claims.claims.iter_mut().zip(evidence) {
        let figure = e.measurement.as_ref().map(|m| m.figure);
        let experiment = first_of.iter().find(|(number, _)| Some(*number) == figure);
        claim.experiment = experiment.map(|(_, first)| *first);
    }
    Report {
        title: format!("{}: claims and measurements", register.id),
        intro: std::iter::once(register.paper.clone())
            .chain(claims.claims.is_empty().then(|| quick(effort).trim_end().to_owned()))
            .filter(|text| !text.is_empty())
            .chain(figures.iter().filter_map(|(_, c)| failures(c)))
            .collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        claims: (!claims.claims.is_empty()).then_some(claims),
        evaluation: None,
        experiments,
    }
}

/// Returns claims with their verdicts, without links to experiments.
#[must_use]
pub fn claims(register: &Register, evidence: &[Evidence<'_>], effort: Effort) -> Claims {
    let standing = ClaimSummary::of(evidence);
    let tally = ClaimTally::of(evidence);
    let counts = Heading::ALL.into_iter().map(|heading| (heading, tally.under(heading)));
    let counts = counts.filter(|(_, count)| *count != Count::default());
    let axes = readings::axes(register, evidence);
    Claims {
        headline: if standing.claims > 0 { standing.headline() } else { String::new() },
        counts: counts
            .map(|(heading, count)| ClaimCount {
                heading: heading.words().to_owned(),
                of_verdicts: Verdict::ALL.map(|verdict| count.of(verdict)),
            })
            .collect(),
        reading_runs: claims::reading_runs(evidence),
        note: format!("{}{}.", quick(effort), register.rule.describe()),
        claims: evidence.iter().map(|e| readings::with_answers(claim(e), e, register, &axes)).collect(),
        axes: readings::described(register, &axes),
    }
}

fn quick(effort: Effort) -> &'static str {
    match effort {
        Effort::Quick => "QUICK: fewer runs than the plans say; verdicts may change with all of them. ",
        Effort::Full => "",
    }
}

/// Returns a claim with its verdict.
#[must_use]
pub fn claim(evidence: &Evidence<'_>) -> Claim {
    let claim = evidence.claim;
    let metric = match &claim.test {
        Test::Missing(_) => String::new(),
        Test::Measure(m) => metric_of(m),
    };
    let runs = evidence.runs();
    let parts =
        [claim.statement.as_str(), claim.place.as_str(), evidence.why.as_str(), &runs, claim.note.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let (factor, unit) = evidence.measurement.as_ref().map_or((1.0, ""), |m| metrics::display_unit(m.unit));
    Claim {
        id: claim.id.clone(),
        scenario: evidence.scenario(),
        metric,
        claimed: match &claim.test {
            Test::Missing(_) => "–".to_owned(), // the statement says it
            Test::Measure(_) => evidence.claimed(),
        },
        measured: evidence.measurement.as_ref().map(|m| scaled(m, factor)),
        unit: unit.to_owned(),
        mechanism_off: mechanism_off(evidence),
        verdict: evidence.verdict,
        statement: parts.join("; "),
        experiment: None,
        readings: evidence
            .other_readings
            .iter()
            .map(|read| ReadOtherwise {
                name: read.name.clone(),
                answers: Vec::new(),
                measured: read.measurement.as_ref().map(|m| scaled(m, factor)),
                verdict: read.verdict,
            })
            .collect(),
    }
}

fn scaled(measurement: &Measurement, factor: f64) -> Measured {
    Measured {
        mean: measurement.value * factor,
        interval: measurement.interval.map(|i| [i.low * factor, i.high * factor]),
        runs: Vec::new(),
    }
}

/// Returns the metric of a claim, and its quantity.
pub(crate) fn metric_of(measure: &Measure) -> String {
    let metric = match measure.subject.as_str() {
        "" => measure.metric.name.to_owned(),
        subject => format!("{} of {subject}", measure.metric.name),
    };
    match &measure.quantity {
        Quantity::Mean => metric,
        Quantity::StatisticOfGains(statistic) => format!("{metric}, {}", words(*statistic)),
        Quantity::RatioToFigure(statistic, figure) => {
            format!("{metric}, {} over that in {figure}", words(*statistic))
        }
    }
}

fn words(statistic: GainStatistic) -> &'static str {
    match statistic {
        GainStatistic::Mean => "mean gain of a run",
        GainStatistic::Deviation => "deviation of the gain",
        GainStatistic::DeviationPerMean => "deviation over mean of the gain",
        GainStatistic::PositiveShare => "share of runs that gain",
    }
}

/// Returns the measurement for a claim as short text.
#[must_use]
pub fn measured(evidence: &Evidence<'_>) -> String {
    measurement_text(evidence.claim, evidence.measurement.as_ref())
}

/// Returns the measurement for a claim with the mechanism switched off, and the symbol of its verdict; empty
/// if not known.
#[must_use]
pub fn mechanism_off(evidence: &Evidence<'_>) -> String {
    match &evidence.mechanism {
        Mechanism::Unknown => String::new(),
        Mechanism::Absent => "no mechanism".to_owned(),
        Mechanism::Removed(sham) => {
            format!(
                "{} {}",
                measurement_text(evidence.claim, sham.measurement.as_ref()),
                sham.verdict.symbol()
            )
        }
    }
}

/// Returns a measurement for a claim as short text.
#[must_use]
pub fn measurement_text(claim: &claims::Claim, measurement: Option<&Measurement>) -> String {
    let Some(measurement) = measurement else { return "-".to_owned() };
    let (factor, unit) = metrics::display_unit(measurement.unit);
    let measured = scaled(measurement, factor);
    let signed = matches!(&claim.test, Test::Measure(m) if m.sign_meaning() == SignMeaning::Signed);
    let text = if signed { measured.signed() } else { measured.text() };
    format!("{text} {unit}").trim_end().to_owned()
}

fn failures(comparison: &Comparison) -> Option<String> {
    let failed = comparison.failed();
    let first = comparison.points.iter().find_map(|p| p.failed.first());
    first.map(|(_, why)| format!("{} failed, not counted in; the first: {why}", count_text(failed, "run")))
}

/// Returns a section for each baseline and the points compared with it; a single one if there are many.
fn sections(comparison: &Comparison, names: NameForm) -> Vec<Experiment> {
    let description = &comparison.description;
    let baselines: Vec<usize> =
        (0..description.points.len()).filter(|&point| description.is_baseline(point)).collect();
    if baselines.len() == 1 || baselines.len() > MAX_SECTIONS {
        return vec![section(comparison, &(0..description.points.len()).collect::<Vec<_>>(), "", names)];
    }
    let members = |baseline: usize| -> Vec<usize> {
        (0..description.points.len())
            .filter(|&point| description.points[point].baseline == baseline)
            .collect()
    };
    let of =
        |&baseline: &usize| section(comparison, &members(baseline), &common(comparison, baseline), names);
    baselines.iter().map(of).collect()
}

/// Returns what the points of a baseline have in common: its settings without those of its variant.
fn common(comparison: &Comparison, baseline: usize) -> String {
    let point = &comparison.description.points[baseline];
    let label = point.label.strip_prefix(point.variant.as_deref().unwrap_or_default());
    label.unwrap_or(&point.label).trim().to_owned()
}

fn section(comparison: &Comparison, points: &[usize], name: &str, names: NameForm) -> Experiment {
    let description = &comparison.description;
    let columns = columns::of(comparison, points);
    let question = &comparison.objective.asked;
    let gains: Vec<Vec<Option<Gain>>> = columns.iter().map(|asked| comparison.gains(asked.key())).collect();
    let names = match names {
        NameForm::Short => names::short(description, points),
        NameForm::Full => points.iter().map(|&point| description.points[point].label.clone()).collect(),
    };
    let variant = |(&point, name): (&usize, String)| {
        let values = columns.iter().zip(&gains);
        let values = values.map(|(asked, gains)| value(comparison, point, asked, gains[point].as_ref()));
        Variant { label: name, ..variant(comparison, point, values.collect()) }
    };
    let series = points.iter().enumerate().filter_map(|(i, &p)| series(i, &comparison.points[p]));
    let played = |(variant, &p): (usize, &usize)| {
        Some(Played { variant, animation: comparison.points[p].animation.clone()? })
    };
    Experiment {
        name: name.to_owned(),
        intro: String::new(),
        runs: comparison.runs,
        confidence: description.confidence(),
        duration_s: description.duration_s,
        metrics: columns.iter().map(metric).collect(),
        limit: comparison.objective.bound.as_ref().and_then(|bound| limit(bound, &columns)),
        variants: points.iter().zip(names).map(variant).collect(),
        families: families::of(comparison, points),
        flow: match question.metric.level() {
            Level::Flow => question.subject.clone(),
            Level::Group => flows::first_of(comparison, &question.subject),
            _ => String::new(),
        },
        flow_metrics: flows::metrics(comparison, points).iter().map(metric).collect(),
        flow_rows: flows::rows(comparison, points),
        distributions: flows::distributions(comparison, points),
        series: series.collect(),
        played: points.iter().enumerate().filter_map(played).collect(),
        map: (points.first() == Some(&0)).then(|| description.map.clone()),
        parameters: description.parameters.clone(),
        reproduce: Reproduce {
            command: description.command.join(" "),
            scenario_sha256: description.scenario_sha256.clone(),
            seed: description.seed,
            kernel: description.kernel.clone().unwrap_or_default(),
        },
    }
}

fn metric(asked: &MetricSelection) -> Metric {
    let (_, unit) = asked.metric.display_unit();
    Metric::new(&asked.words(), unit, asked.metric.better)
}

/// Returns the bound in display units; `None` if no point has its metric.
fn limit(bound: &Constraint, columns: &[MetricSelection]) -> Option<Limit> {
    let (factor, _) = bound.asked.metric.display_unit();
    let metric = columns.iter().position(|asked| *asked == bound.asked)?;
    Some(Limit { metric, side: bound.side, limit: bound.limit * factor })
}

fn variant(comparison: &Comparison, point: usize, values: Vec<Option<Value>>) -> Variant {
    let (description, result) = (&comparison.description.points[point], &comparison.points[point]);
    Variant {
        label: description.label.clone(),
        settings: description.settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        values,
        fingerprint: result.fingerprint.to_string(),
        done: comparison.runs.saturating_sub(result.failed.len() as u64),
        cpu_s: result.cpu_s,
    }
}

fn value(
    comparison: &Comparison,
    point: usize,
    asked: &MetricSelection,
    gain: Option<&Gain>,
) -> Option<Value> {
    let result = &comparison.points[point];
    let (factor, _) = asked.metric.display_unit();
    let estimate = result.estimate(asked.key())?;
    let versus = gain.map(|gain| {
        let versus = &gain.versus;
        let scaled = |factor: f64| versus.pairs.differences().iter().map(|d| d * factor).collect();
        let to_percent = 100.0 / versus.baseline_mean;
        let percent = versus.percent.map(|percent| Measured {
            mean: percent.mean,
            interval: percent.interval(gain.confidence).map(|i| [i.low, i.high]),
            runs: scaled(to_percent),
        });
        let difference = measured_of(gain.confidence, &versus.difference, factor, scaled(factor));
        Versus { difference, percent, p: gain.p }
    });
    let runs = result.all(asked.key()).unwrap_or_default().iter().map(|x| x * factor).collect();
    let confidence = comparison.description.confidence();
    Some(Value { measured: measured_of(confidence, &estimate, factor, runs), versus })
}

fn series(variant: usize, point: &PointResult) -> Option<RunSeries> {
    let flows = &point.series;
    let step_s = *flows.first()?.time_s.first()?;
    let flow = |series: &Series| FlowSeries {
        name: series.flow.clone(),
        goodput_kbps: series.goodput_bps().into_iter().map(|x| x / 1e3).collect(),
        cwnd_segments: match series.segment_bytes {
            0 => Vec::new(),
            segment => series.cwnd_bytes.iter().map(|&b| b as f64 / f64::from(segment)).collect(),
        },
        delay_ms: series.delay_s.iter().map(|delay| delay.map_or(f64::NAN, |s| 1e3 * s)).collect(),
        queue_packets: series.queue_packets.iter().map(|&packets| f64::from(packets)).collect(),
    };
    let queues = point.neighborhoods.iter().flat_map(|node| queues(node, step_s)).collect();
    Some(RunSeries {
        variant,
        run: point.series_run,
        step_s,
        flows: flows.iter().map(flow).collect(),
        queues,
    })
}

/// Returns the queue of a neighbourhood and its estimates, as means over `step_s`.
fn queues(node: &Neighborhood, step_s: f64) -> [QueueSeries; 3] {
    let slots: Vec<usize> =
        node.time_s.iter().map(|time| libm::ceil(time / step_s - 1e-9) as usize).collect();
    let means = |values: Vec<f64>| {
        let of_slot = |slot: &[(usize, f64)]| slot.iter().map(|(_, x)| x).sum::<f64>() / slot.len() as f64;
        let all: Vec<(usize, f64)> = slots.iter().copied().zip(values).collect();
        all.chunk_by(|a, b| a.0 == b.0).map(of_slot).collect()
    };
    let real = node.queue_packets.iter().map(|&packets| f64::from(packets)).collect();
    [
        QueueSeries { name: format!("{} real", node.node), packets: means(real) },
        QueueSeries {
            name: format!("{} real, averaged", node.node),
            packets: means(node.average_queue_packets.clone()),
        },
        QueueSeries {
            name: format!("{} estimated", node.node),
            packets: means(node.estimate_packets.clone()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbourhood_is_drawn_in_means_over_the_slots_of_the_flows() {
        let node = Neighborhood {
            node: "n4".into(),
            time_s: (1..=25).map(|tenth| f64::from(tenth) / 10.0).collect(),
            queue_packets: [[3; 10], [5; 10]].concat().into_iter().chain([9, 9, 9, 9, 9]).collect(),
            average_queue_packets: (0..25).map(|tenth| f64::from(2 * tenth)).collect(),
            estimate_packets: (0..25).map(f64::from).collect(),
            latest_packets: vec![0.0; 25],
        };
        let [real, averaged, estimated] = queues(&node, 1.0);
        assert_eq!((real.name.as_str(), real.packets), ("n4 real", vec![3.0, 5.0, 9.0]));
        assert_eq!((averaged.name.as_str(), averaged.packets), ("n4 real, averaged", vec![9.0, 29.0, 44.0]));
        assert_eq!((estimated.name.as_str(), estimated.packets), ("n4 estimated", vec![4.5, 14.5, 22.0]));
    }
}
