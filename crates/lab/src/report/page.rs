//! Rendering of the page: text and pictures in the template.

use super::anchors::section_id;
use super::claims_view::ClaimsView;
use super::conclusion::{Conclusion, Outcome, Part};
use super::dots::{MAX_ROWS, MAX_RUNS, Origin, Row, dots};
use super::evaluation::EvaluationView;
use super::flows::FlowTables;
use super::map_view::MapView;
use super::marker::mark;
use super::measured::{plain, shortest};
use super::network_view::{self, NetworkView};
use super::numbers::{self, KeyNumber};
use super::parameters::{self, Group};
use super::picture::legible;
use super::role::VARIANT_COLOURS;
use super::sweep::Sweep;
use super::tables::{
    FamilyRow, MAX_CHARACTERS, SettingsRow, VariantRow, family_note, family_rows, gain, gain_title, gains,
    heads, rows, settings, table_notes, title, value,
};
use super::timeline::Timeline;
use super::{
    Better, Experiment, Map, Measured, Metric, Report, Value, Variant, cdf, families, neighborhoods,
};
use askama::Template;

#[cfg(test)]
mod tests;

/// Maximum number of metrics that are drawn over a swept key.
const MAX_SWEPT_METRICS: usize = 6;

/// Returns the page of `report`: one HTML file that loads nothing.
#[must_use]
pub fn html(report: &Report) -> String {
    let several = report.experiments.len() > 1;
    let sections = report.experiments.iter().enumerate();
    let page = Page {
        title: &report.title,
        intro: &report.intro,
        version: &report.version,
        claims: report.claims.as_ref().map(|claims| ClaimsView::of(claims, report.experiments.len())),
        evaluation: report.evaluation.as_ref().map(EvaluationView::of),
        sections: sections
            .map(|(i, e)| Section::of(i, e, several || !(e.name.is_empty() || e.name == report.title)))
            .collect(),
        style: palette()
            + include_str!("../../templates/report.css")
            + include_str!("../../templates/timeline.css")
            + network_view::style(report),
        script: concat!(
            include_str!("../../templates/report.js"),
            include_str!("../../templates/timeline.js")
        )
        .to_owned()
            + network_view::script(report),
    };
    page.render().expect("the template is checked when it is compiled, and memory takes everything")
}

/// Returns conclusions, tables and first charts of `report` as a piece of HTML for a notebook: static,
/// self-contained, and with styles of its own scope.
#[must_use]
pub fn notebook(report: &Report) -> String {
    const MOST_SECTIONS: usize = 4;
    let several = report.experiments.len() > 1;
    let sections = report.experiments.iter().enumerate().take(MOST_SECTIONS);
    let page = Notebook {
        title: &report.title,
        // Sections have no anchors here: a page may hold many of these pieces.
        claims: report.claims.as_ref().map(|claims| ClaimsView::of(claims, 0)),
        sections: sections.map(|(i, e)| Section::of(i, e, several)).collect(),
        more: report.experiments.len().saturating_sub(MOST_SECTIONS),
        style: nested(&(palette() + include_str!("../../templates/report.css"))),
    };
    page.render().expect("the template is checked when it is compiled, and memory takes everything")
}

/// Scopes `style` to one element: rules of the page become rules of that element.
fn nested(style: &str) -> String {
    let own = ["& { padding: 1rem 1.25rem; border-radius: 6px; }\n", "h3, h4 { margin-top: 0.5rem; }\n"];
    let lines = style.lines().map(|line| match line.trim_start() {
        rest if rest.starts_with("body {") || rest.starts_with(":root {") => {
            line.replacen("body {", "& {", 1).replacen(":root {", "& {", 1)
        }
        _ => line.replace(":root{", "&{"),
    });
    lines.map(|line| line + "\n").chain(own.map(str::to_owned)).collect()
}

/// Returns the colours of variants as CSS variables, on light and on dark ground, and the classes that use
/// them.
pub(super) fn palette() -> String {
    let variables = |pick: fn(&(&'static str, &'static str)) -> &'static str| {
        let colours = VARIANT_COLOURS.iter().enumerate();
        colours.map(|(i, pair)| format!("--v{i}:{};", pick(pair))).collect::<String>()
    };
    let classes: String = (0..VARIANT_COLOURS.len()).map(|i| format!(".v{i}{{--c:var(--v{i})}}")).collect();
    let (light, dark) = (variables(|pair| pair.0), variables(|pair| pair.1));
    format!(":root{{{light}}}@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}{classes}\n")
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    intro: &'a [String],
    version: &'a str,
    claims: Option<ClaimsView<'a>>,
    evaluation: Option<EvaluationView<'a>>,
    sections: Vec<Section<'a>>,
    style: String,
    script: String,
}

#[derive(Template)]
#[template(path = "notebook.html")]
struct Notebook<'a> {
    title: &'a str,
    claims: Option<ClaimsView<'a>>,
    sections: Vec<Section<'a>>,
    more: usize,
    style: String,
}

struct Section<'a> {
    id: String,
    headed: bool,
    name: &'a str,
    intro: &'a str,
    facts: String,
    verdict: &'static str,
    answer: Vec<Vec<PartView>>,
    heads: Vec<String>,
    rows: Vec<VariantRow>,
    listed: bool,
    notes: Vec<String>,
    charts: Vec<Chart>,
    chart_notes: Vec<String>,
    sweep_key: String,
    sweep: Vec<Chart>,
    numbers: Vec<KeyNumber>,
    numbers_of: Option<(String, String)>,
    flows: Option<FlowTables>,
    timeline: Option<Timeline>,
    distributions: Vec<Chart>,
    neighborhoods: Vec<NeighborhoodView>,
    families: Vec<Chart>,
    family_rows: Vec<FamilyRow>,
    family_note: String,
    map: Option<MapView>,
    network: Option<NetworkView>,
    /// `true` if a click in a chart moves the network to that time.
    follows: bool,
    settings: Vec<SettingsRow>,
    parameters: Vec<Group>,
    command: &'a str,
    seed: u64,
    scenario_sha256: &'a str,
    cpu: String,
}

struct PartView {
    text: String,
    mark: Option<String>,
}

/// A queue of a neighbourhood over time, in one variant.
struct NeighborhoodView {
    mark: String,
    label: String,
    svg: String,
}

struct Chart {
    name: String,
    title: String,
    svg: String,
}

impl<'a> Section<'a> {
    fn of(index: usize, experiment: &'a Experiment, headed: bool) -> Self {
        let answer = Conclusion::of(experiment);
        let sweep = Sweep::of(&experiment.variants);
        let labels: Vec<&str> = experiment.variants.iter().map(|v| v.label.as_str()).collect();
        let charts = charts(experiment);
        let (about, numbers) = numbers::of(experiment, &answer);
        let several = experiment.variants.len() > 1;
        Self {
            id: section_id(index),
            headed,
            name: &experiment.name,
            intro: &experiment.intro,
            facts: facts(experiment),
            verdict: if matches!(answer.outcome, Outcome::Winner(_) | Outcome::BestWithinLimit(_)) {
                "winner"
            } else {
                "other"
            },
            answer: answer.sentences.into_iter().map(|s| s.into_iter().map(PartView::of).collect()).collect(),
            heads: heads(experiment),
            // For a single run the key numbers are sufficient.
            listed: several || experiment.runs > 1 || experiment.limit.is_some(),
            rows: rows(experiment),
            notes: table_notes(experiment),
            chart_notes: if charts.is_empty() { Vec::new() } else { chart_notes(experiment) },
            charts,
            sweep_key: sweep.as_ref().map_or_else(String::new, |s| legible(&s.key, MAX_CHARACTERS)),
            sweep: sweep.map_or_else(Vec::new, |sweep| sweep_charts(&sweep, experiment)),
            numbers_of: several
                .then(|| labels.get(about))
                .flatten()
                .map(|l| (mark(about), legible(l, MAX_CHARACTERS))),
            numbers,
            flows: FlowTables::of(experiment),
            timeline: Timeline::of(experiment),
            distributions: cdf::charts(experiment).into_iter().map(Chart::of).collect(),
            neighborhoods: neighborhoods::charts(&experiment.series, &labels)
                .into_iter()
                .map(|(v, svg)| NeighborhoodView {
                    mark: mark(v),
                    label: legible(labels[v], MAX_CHARACTERS),
                    svg,
                })
                .collect(),
            families: families::charts(experiment).into_iter().enumerate().map(family_chart).collect(),
            family_rows: family_rows(experiment),
            family_note: family_note(experiment),
            map: experiment.map.as_ref().and_then(MapView::of),
            network: NetworkView::of(experiment),
            follows: !experiment.played.is_empty() || experiment.map.as_ref().is_some_and(Map::is_moving),
            settings: settings(experiment),
            parameters: parameters::groups(&experiment.parameters),
            command: &experiment.reproduce.command,
            seed: experiment.reproduce.seed,
            scenario_sha256: &experiment.reproduce.scenario_sha256,
            cpu: format!("{} s", plain(experiment.variants.iter().map(|v| v.cpu_s).sum(), 1)),
        }
    }
}

impl Chart {
    fn of((name, title, svg): (&'static str, String, String)) -> Self {
        Self { name: name.to_owned(), title, svg }
    }
}

impl PartView {
    fn of(part: Part) -> Self {
        match part {
            Part::Text(text) => Self { text, mark: None },
            Part::Variant { index, label } => {
                Self { text: legible(&label, MAX_CHARACTERS), mark: Some(mark(index)) }
            }
        }
    }
}

fn facts(experiment: &Experiment) -> String {
    let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let variants = match experiment.variants.len() {
        1 => String::new(),
        n => counted(n, "variant") + ", ",
    };
    let runs =
        counted(experiment.runs as usize, if experiment.variants.len() > 1 { "paired run" } else { "run" });
    let each = if experiment.runs == 1 { "" } else { "each " };
    let over = match experiment.reproduce.kernel.as_str() {
        "" => String::new(),
        version => format!(" over Linux {version} in virtual time"),
    };
    format!(
        "{variants}{runs} {each}of {} s{over}, seed {}",
        shortest(experiment.duration_s),
        experiment.reproduce.seed
    )
}

/// Returns the charts of values and gains of the first metric.
fn charts(experiment: &Experiment) -> Vec<Chart> {
    let Some(metric) = experiment.metrics.first().filter(|_| experiment.variants.len() > 1) else {
        return Vec::new();
    };
    let axis = title(metric);
    let means = dot_rows(experiment, "run", |value| Some((&value.measured, value.measured.text())));
    let means =
        Chart { name: "means".into(), title: capitalised(&axis), svg: dots(&means, &axis, Origin::Free) };
    let gains = gains(experiment, 0).zip(gain_title(experiment)).map(|(percent, axis)| {
        let rows = dot_rows(experiment, "pair", |value| gain(value, percent).map(|m| (m, m.signed())));
        let baseline = legible(&experiment.variants[0].label, 60);
        let what =
            if experiment.metrics[0].better == Better::Higher { "gain over" } else { "change against" };
        let title = format!("Paired {what} {baseline}");
        Chart { name: "gains".into(), title, svg: dots(&rows, &axis, Origin::NoDifference) }
    });
    let measured = experiment.variants.iter().any(|v| value(v, 0).is_some());
    measured.then_some(means).into_iter().chain(gains).collect()
}

/// Returns a row for each variant for which `of` returns something about its value of the first metric.
fn dot_rows<'a>(
    experiment: &'a Experiment,
    single: &'static str,
    of: impl Fn(&'a Value) -> Option<(&'a Measured, String)>,
) -> Vec<Row<'a>> {
    let row = |(variant, v): (usize, &'a Variant)| {
        let (measured, words) = of(value(v, 0)?)?;
        Some(Row { variant, label: &v.label, measured, words, single })
    };
    experiment.variants.iter().enumerate().filter_map(row).collect()
}

fn chart_notes(experiment: &Experiment) -> Vec<String> {
    let intervals = if experiment.runs > 1 {
        format!("Marks are means, bars their {} intervals, faint dots single runs", experiment.confidence)
    } else {
        "Marks are single runs".to_owned()
    };
    let mut notes =
        vec![format!("{intervals}{}.", if gains(experiment, 0).is_some() { " and pairs" } else { "" })];
    if experiment.variants.len() > MAX_ROWS {
        notes.push(format!("Of {} variants the first {MAX_ROWS} are drawn.", experiment.variants.len()));
    }
    let runs = experiment.variants.iter().filter_map(|v| value(v, 0)).map(|v| v.measured.runs.len()).max();
    if let Some(runs) = runs.filter(|runs| *runs > MAX_RUNS) {
        notes.push(format!("Of {runs} runs {MAX_RUNS}, evenly spread, are drawn as dots."));
    }
    notes
}

fn sweep_charts(sweep: &Sweep, experiment: &Experiment) -> Vec<Chart> {
    let metrics = experiment.metrics.iter().enumerate().take(MAX_SWEPT_METRICS);
    let chart = |(m, metric): (usize, &Metric)| {
        let svg = sweep.chart(experiment, m)?;
        Some(Chart { name: format!("sweep-{m}"), title: capitalised(&title(metric)), svg })
    };
    metrics.filter_map(chart).collect()
}

fn family_chart((i, (title, svg)): (usize, (String, String))) -> Chart {
    Chart { name: format!("family-{i}"), title, svg }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
