//! Text of a comparison for a terminal.

use super::table::{Align, render};
use crate::comparison::{Comparison, GOODPUT, Gain};
use crate::counted::count_text;
use crate::metrics::{Key, Level};
use crate::objective::MetricSelection;
use crate::report::Conclusion;
use crate::stats::{Confidence, Estimate, Interval};
use crate::view::{self, NameForm, columns};

/// Returns the comparison as a table.
#[must_use]
pub fn describe(comparison: &Comparison) -> String {
    let description = &comparison.description;
    let interval = match comparison.runs {
        0 | 1 => "; one run has no interval".to_owned(),
        _ => format!("; ± is the {} interval of the mean{}", description.confidence(), gain_note(comparison)),
    };
    let points = count_text(comparison.points.len(), "variant");
    let runs = count_text(comparison.runs as usize, "paired run");
    let kernel = description.kernel.as_ref().map(|version| format!(", over Linux {version} in virtual time"));
    let head = format!(
        "{}: {points}, {runs}{}, seed {}{interval}\n\n",
        description.name,
        kernel.unwrap_or_default(),
        description.seed
    );
    head + &table(comparison) + &failures(comparison)
}

/// Returns the joint confidence of the intervals of gains; empty if a single variant is compared with the baseline.
fn gain_note(comparison: &Comparison) -> String {
    let asked = comparison.objective.asked.key();
    let (confidence, gains) = (comparison.description.confidence(), comparison.gains(asked));
    match gains.iter().flatten().count() {
        0 | 1 => String::new(),
        n => {
            let what = if asked == GOODPUT { "gains" } else { "changes" };
            format!("; the intervals of the {n} {what} hold together with {confidence} confidence")
        }
    }
}

/// Columns of a comparison with handoffs: title, metric, factor, digits.
const HANDOFF_COLUMNS: [(&str, &str, f64, usize); 4] = [
    ("handoffs", "handoffs", 1.0, 1),
    ("handoff ms", "handoff_s", 1e3, 1),
    ("pause ms", "handoff_pause_s", 1e3, 1),
    ("lost %", "packet_loss_pct", 1.0, 2),
];
/// Columns that only a page has room for.
const PAGE_COLUMNS: [&str; 3] = ["jain_2s", "delay_mean_s", "frames_per_segment"];

fn table(comparison: &Comparison) -> String {
    let points = &comparison.points;
    let all: Vec<usize> = (0..points.len()).collect();
    let question = &comparison.objective;
    let asked = |column: &MetricSelection| {
        *column == question.asked || question.bound.as_ref().is_some_and(|bound| bound.asked == *column)
    };
    let columns: Vec<MetricSelection> = columns::of(comparison, &all)
        .into_iter()
        .filter(|column| asked(column) || !PAGE_COLUMNS.contains(&column.metric.name))
        .collect();
    let moves = points.iter().any(|point| point.estimate((Level::Run, "", "handoffs")).is_some());
    let of_handoffs = if moves { &HANDOFF_COLUMNS[..] } else { &[] };
    let gains = comparison.gains(question.asked.key());
    let right = |title: String| (title, Align::Right);
    let mut header = vec![("variant".to_owned(), Align::Left)];
    for column in &columns {
        header.push(right(title(column)));
        if *column == question.asked {
            header
                .push(right(if question.asked.key() == GOODPUT { "gain %" } else { "change %" }.to_owned()));
        }
    }
    header.extend(of_handoffs.iter().map(|column| right(column.0.to_owned())));
    header.extend([right("CPU s".to_owned()), ("fingerprint".to_owned(), Align::Left)]);
    let row = |number: usize| {
        let point = &points[number];
        let cell = |key: Key<'_>, factor: f64, digits: usize| match point.estimate(key) {
            Some(estimate) => with_interval(comparison, &estimate.scaled(factor), digits),
            None => "-".to_owned(),
        };
        let mut row = vec![comparison.description.points[number].label.clone()];
        for column in &columns {
            let (factor, _) = column.metric.display_unit();
            row.push(cell(column.key(), factor, digits(column)));
            if *column == question.asked {
                row.push(gain(comparison, number, gains[number].as_ref()));
            }
        }
        row.extend(
            of_handoffs.iter().map(|&(_, name, factor, digits)| cell((Level::Run, "", name), factor, digits)),
        );
        row.extend([format!("{:.2}", point.cpu_s), point.fingerprint.to_string()]);
        row
    };
    let header: Vec<(&str, Align)> = header.iter().map(|(title, align)| (title.as_str(), *align)).collect();
    render(&header, &all.into_iter().map(row).collect::<Vec<_>>())
}

/// Returns "goodput kb/s" or "response p95 of http ms".
fn title(column: &MetricSelection) -> String {
    let (_, unit) = column.metric.display_unit();
    let words = if column.metric.name == "jain" { "Jain".to_owned() } else { column.words() };
    format!("{words} {unit}").trim_end().to_owned()
}

/// Returns the number of digits after the point for a metric in a table.
fn digits(column: &MetricSelection) -> usize {
    match (column.metric.unit, column.metric.name) {
        ("%", _) => 2,
        ("1", "jain" | "jain_2s") => 3,
        _ => 1,
    }
}

fn gain(comparison: &Comparison, point: usize, gain: Option<&Gain>) -> String {
    if comparison.description.is_baseline(point) {
        return "baseline".to_owned();
    }
    let Some((gain, percent)) = gain.and_then(|gain| Some((gain, gain.versus.percent?))) else {
        return "-".to_owned();
    };
    match percent.interval(gain.confidence) {
        Some(interval) => interval_text(percent.mean, interval),
        None => signed(percent.mean),
    }
}

/// Returns "+12.3 ± 1.4", or "+212.3 [+150.1, +301.5]" if the interval is not symmetric.
fn interval_text(mean: f64, interval: Interval) -> String {
    let end =
        |end: f64| if end.is_infinite() { format!("{end:+}").replace("inf", "∞") } else { signed(end) };
    match interval.half_width_around(mean) {
        Some(half) => format!("{} ± {half:.1}", signed(mean)),
        None => format!("{} [{}, {}]", signed(mean), end(interval.low), end(interval.high)),
    }
}

/// Formats a number with its sign and one decimal place; zero has no sign.
fn signed(number: f64) -> String {
    let text = format!("{number:+.1}");
    if text == "-0.0" || text == "+0.0" { "0.0".to_owned() } else { text }
}

fn with_interval(comparison: &Comparison, e: &Estimate, digits: usize) -> String {
    match half_width(e, comparison.description.confidence()) {
        Some(half) => format!("{:.digits$} ± {half:.digits$}", e.mean),
        None => format!("{:.digits$}", e.mean),
    }
}

fn half_width(e: &Estimate, confidence: Confidence) -> Option<f64> {
    let interval = e.interval(confidence)?;
    Some((interval.high - interval.low) / 2.0)
}

/// Returns the conclusion in words, a paragraph for each group of points that are compared with each other;
/// empty if there are many.
#[must_use]
pub fn conclusion(comparison: &Comparison) -> String {
    const MOST: usize = 4;
    let experiments = view::experiments(comparison, NameForm::Full);
    let asked = experiments.iter().filter(|e| e.variants.len() > 1 || e.limit.is_some());
    let answers: Vec<String> = asked
        .map(|e| {
            let answer = Conclusion::of(e).text();
            if e.name.is_empty() { answer } else { format!("{}: {answer}", e.name) }
        })
        .collect();
    if answers.len() > MOST {
        String::new()
    } else {
        answers.iter().map(|a| format!("\n{}\n", wrapped(a))).collect()
    }
}

/// Wraps text to the width of a terminal.
fn wrapped(text: &str) -> String {
    // Names have hyphens and must not be broken.
    textwrap::fill(text, textwrap::Options::new(110).word_splitter(textwrap::WordSplitter::NoHyphenation))
}

/// Lists a few of the failed runs, and their number.
fn failures(comparison: &Comparison) -> String {
    const SHOWN: usize = 5;
    let points = comparison.points.iter().zip(&comparison.description.points);
    let failed: Vec<String> = points
        .flat_map(|(p, d)| {
            p.failed.iter().map(move |(run, why)| format!("  {}, run {run}: {why}\n", d.label))
        })
        .collect();
    if failed.is_empty() {
        return String::new();
    }
    let more = failed.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    let shown = failed.iter().take(SHOWN).cloned().collect::<String>();
    format!("\n{} failed and not counted in:\n{shown}{more}", count_text(failed.len(), "run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_with_an_asymmetric_interval_has_both_ends() {
        let written = |mean, low, high| interval_text(mean, Interval { low, high });
        assert_eq!(written(12.3, 10.92, 13.75), "+12.3 ± 1.4");
        assert_eq!(written(212.3, 150.1, 301.5), "+212.3 [+150.1, +301.5]");
        assert_eq!(written(-30.0, -45.0, 0.04), "-30.0 [-45.0, 0.0]");
        assert_eq!(written(900.0, 350.2, f64::INFINITY), "+900.0 [+350.2, +∞]");
        assert_eq!(written(-50.0, f64::NEG_INFINITY, 20.0), "-50.0 [-∞, +20.0]");
    }
}
