//! The page: everything made into text and pictures, and put into the template.

use super::answer::{Answer, Part, Standing, measurable};
use super::claims_view::ClaimsView;
use super::dots::{MOST_ROWS, MOST_RUNS, Origin, Row, dots};
use super::ink::VARIANT_COLOURS;
use super::map_view::MapView;
use super::measured::{plain, shortest};
use super::parameters::{self, Group};
use super::picture::legible;
use super::series::{Panels, panels};
use super::sweep::Sweep;
use super::{Experiment, Family, FamilyMember, Measured, Metric, Report, Value, Variant, marker};
use super::{families, received};
use askama::Template;

#[cfg(test)]
mod tests;

/// Most variants in a table.
const MOST_VARIANTS: usize = 300;
/// Most metrics that are drawn over a swept key.
const MOST_SWEPT_METRICS: usize = 6;
/// Longest name in a table: nobody reads on.
const MOST_CHARACTERS: usize = 200;

/// The page of `report`: one HTML file that loads nothing.
#[must_use]
pub fn html(report: &Report) -> String {
    let several = report.experiments.len() > 1;
    let sections = report.experiments.iter().enumerate();
    let page = Page {
        title: &report.title,
        intro: &report.intro,
        version: &report.version,
        claims: report.claims.as_ref().map(|claims| ClaimsView::of(claims, report.experiments.len())),
        sections: sections.map(|(i, e)| Section::of(i, e, several || e.name != report.title)).collect(),
        style: palette() + include_str!("../../templates/report.css"),
        script: include_str!("../../templates/report.js"),
    };
    page.render().expect("the template is checked when it is compiled, and memory takes everything")
}

/// The colours of variants as CSS variables, on light and on dark ground, and the classes that use them.
fn palette() -> String {
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
    sections: Vec<Section<'a>>,
    style: String,
    script: &'static str,
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
    notes: Vec<String>,
    charts: Vec<Chart>,
    chart_notes: Vec<String>,
    sweep_key: String,
    sweep: Vec<Chart>,
    runs: Vec<u64>,
    flows: Vec<String>,
    panel_variants: Vec<(usize, String)>,
    families: Vec<Chart>,
    family_rows: Vec<FamilyRow>,
    family_note: String,
    received: Option<Chart>,
    panels: Vec<PanelView>,
    panel_notes: Vec<String>,
    map: Option<MapView>,
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

struct VariantRow {
    mark: String,
    label: String,
    cells: Vec<String>,
    fingerprint: String,
    cpu: String,
}

struct SettingsRow {
    mark: String,
    label: String,
    settings: String,
}

struct Chart {
    name: String,
    title: String,
    svg: String,
}

/// Label, mean gain, deviation, share of the runs that gain.
struct FamilyRow {
    mark: String,
    cells: [String; 4],
}

struct PanelView {
    run: u64,
    variant: usize,
    later: bool,
    mark: String,
    label: String,
    slot: String,
    goodput: String,
    window: Option<String>,
    neighborhood: Option<String>,
}

impl<'a> Section<'a> {
    fn of(index: usize, experiment: &'a Experiment, headed: bool) -> Self {
        let answer = Answer::of(experiment);
        let sweep = Sweep::of(&experiment.variants);
        let labels: Vec<&str> = experiment.variants.iter().map(|v| v.label.as_str()).collect();
        let drawn = panels(&experiment.series, &labels);
        let charts = charts(experiment);
        let received = received::chart(experiment);
        Self {
            id: section_id(index),
            headed,
            name: &experiment.name,
            intro: &experiment.intro,
            facts: facts(experiment),
            verdict: if matches!(answer.standing, Standing::Winner(_) | Standing::Keeps(_)) {
                "winner"
            } else {
                "other"
            },
            answer: answer.sentences.into_iter().map(|s| s.into_iter().map(PartView::of).collect()).collect(),
            heads: heads(experiment),
            rows: rows(experiment),
            notes: table_notes(experiment),
            chart_notes: if charts.is_empty() { Vec::new() } else { chart_notes(experiment) },
            charts,
            sweep_key: sweep.as_ref().map_or_else(String::new, |s| legible(&s.key, MOST_CHARACTERS)),
            sweep: sweep.map_or_else(Vec::new, |sweep| sweep_charts(&sweep, experiment)),
            runs: drawn.runs.clone(),
            flows: drawn.flows.clone(),
            panel_variants: panel_variants(&drawn, &labels),
            panel_notes: received.iter().filter_map(|r| r.note.clone()).chain(drawn.notes.clone()).collect(),
            received: received.map(|r| Chart {
                name: "received".into(),
                title: capitalised(&r.title),
                svg: r.svg,
            }),
            families: families::charts(experiment).into_iter().enumerate().map(family_chart).collect(),
            family_rows: family_rows(experiment),
            family_note: family_note(experiment),
            panels: panel_views(drawn, experiment, &labels),
            map: experiment.map.as_ref().and_then(MapView::of),
            settings: settings(experiment),
            parameters: parameters::groups(&experiment.parameters),
            command: &experiment.reproduce.command,
            seed: experiment.reproduce.seed,
            scenario_sha256: &experiment.reproduce.scenario_sha256,
            cpu: format!("{} s", plain(experiment.variants.iter().map(|v| v.cpu_s).sum(), 1)),
        }
    }
}

impl PartView {
    fn of(part: Part) -> Self {
        match part {
            Part::Words(text) => Self { text, mark: None },
            Part::Variant { index, label } => {
                Self { text: legible(&label, MOST_CHARACTERS), mark: Some(mark(index)) }
            }
        }
    }
}

pub(super) fn section_id(index: usize) -> String {
    format!("experiment-{}", index + 1)
}

/// The look of variant `i` beside its name.
fn mark(i: usize) -> String {
    let (colour, path) = (i % VARIANT_COLOURS.len(), marker::path(i));
    format!(r#"<svg class="mark v{colour}" viewBox="0 0 16 16" aria-hidden="true"><path d="{path}"/></svg>"#)
}

fn facts(experiment: &Experiment) -> String {
    let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let variants = counted(experiment.variants.len(), "variant");
    let runs =
        counted(experiment.runs as usize, if experiment.variants.len() > 1 { "paired run" } else { "run" });
    let each = if experiment.runs == 1 { "" } else { "each " };
    format!(
        "{variants}, {runs} {each}of {} s, seed {}",
        shortest(experiment.duration_s),
        experiment.reproduce.seed
    )
}

fn named_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

fn title(metric: &Metric) -> String {
    named_unit(&metric.name, &metric.unit)
}

fn value(variant: &Variant, metric: usize) -> Option<&Value> {
    variant.values.get(metric)?.as_ref()
}

/// Whether any variant was compared with the baseline in metric `m`, and whether that can be said in percent.
fn gains(experiment: &Experiment, m: usize) -> Option<bool> {
    let mut compared = experiment.variants.iter().filter_map(|v| value(v, m)?.versus.as_ref()).peekable();
    compared.peek()?;
    Some(compared.all(|versus| versus.percent.is_some()))
}

fn gain_title(experiment: &Experiment) -> Option<String> {
    let metric = experiment.metrics.first()?;
    let percent = gains(experiment, 0)?;
    Some(named_unit("gain", if percent { "%" } else { &metric.unit }))
}

fn gain(value: &Value, percent: bool) -> Option<&Measured> {
    let versus = value.versus.as_ref()?;
    if percent { versus.percent.as_ref() } else { Some(&versus.difference) }
}

fn heads(experiment: &Experiment) -> Vec<String> {
    let Some((first, others)) = experiment.metrics.split_first() else { return Vec::new() };
    let mut heads = vec![title(first)];
    if let Some(gain) = gain_title(experiment) {
        heads.extend([gain, "p".into()]);
    }
    heads.extend(others.iter().map(title));
    heads
}

fn rows(experiment: &Experiment) -> Vec<VariantRow> {
    let row = |(i, variant): (usize, &Variant)| VariantRow {
        mark: mark(i),
        label: legible(&variant.label, MOST_CHARACTERS),
        cells: cells(experiment, i, variant),
        fingerprint: variant.fingerprint.clone(),
        cpu: plain(variant.cpu_s, 2),
    };
    experiment.variants.iter().take(MOST_VARIANTS).enumerate().map(row).collect()
}

fn cells(experiment: &Experiment, i: usize, variant: &Variant) -> Vec<String> {
    let nothing = || "–".to_owned();
    let mut cells = Vec::new();
    for m in 0..experiment.metrics.len() {
        let value = value(variant, m);
        let written = value.map_or_else(nothing, |value| value.measured.text());
        if m > 0 {
            let change = value.and_then(|v| v.versus.as_ref()).filter(|versus| measurable(versus));
            let arrow = change.map_or("", |versus| if versus.difference.mean > 0.0 { "▲ " } else { "▼ " });
            cells.push(format!("{arrow}{written}"));
            continue;
        }
        cells.push(written);
        if let Some(percent) = gains(experiment, 0) {
            let gained = value.and_then(|value| gain(value, percent)).map(Measured::signed);
            cells.push(gained.unwrap_or_else(|| if i == 0 { "baseline".into() } else { nothing() }));
            cells.push(value.and_then(|v| v.versus.as_ref()?.p).map_or_else(String::new, p_text));
        }
    }
    cells
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { plain(p, 3) }
}

fn table_notes(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    let compared = gains(experiment, 0).is_some();
    match (experiment.runs, compared) {
        (0 | 1, _) => {}
        (_, false) => notes.push("± is the 95 % interval of the mean.".into()),
        (_, true) => {
            let tested = experiment.variants.iter().any(|v| {
                value(v, 0).is_some_and(|v| v.versus.as_ref().is_some_and(|versus| versus.p.is_some()))
            });
            let mut note = "± is the 95 % interval of the mean. Gains are differences to the baseline within pairs: run 1 \
                            of each variant met the same world, and so on."
                .to_owned();
            if tested {
                note.push_str(
                    " p is that of a paired test, corrected for the number of variants by Holm's method.",
                );
            }
            if experiment.metrics.len() > 1 {
                note.push_str(" ▲ and ▼: measurably above or below the baseline.");
            }
            notes.push(note);
        }
    }
    if experiment.variants.len() > MOST_VARIANTS {
        notes
            .push(format!("Of {} variants the first {MOST_VARIANTS} are listed.", experiment.variants.len()));
    }
    notes
}

/// Values and gains of the first metric.
fn charts(experiment: &Experiment) -> Vec<Chart> {
    let Some(metric) = experiment.metrics.first() else { return Vec::new() };
    let axis = title(metric);
    let means = dot_rows(experiment, "run", |value| Some((&value.measured, value.measured.text())));
    let means =
        Chart { name: "means".into(), title: capitalised(&axis), svg: dots(&means, &axis, Origin::Free) };
    let gains = gains(experiment, 0).zip(gain_title(experiment)).map(|(percent, axis)| {
        let rows = dot_rows(experiment, "pair", |value| gain(value, percent).map(|m| (m, m.signed())));
        let baseline = legible(&experiment.variants[0].label, 60);
        let title = format!("Paired gain over {baseline}");
        Chart { name: "gains".into(), title, svg: dots(&rows, &axis, Origin::NoDifference) }
    });
    let measured = experiment.variants.iter().any(|v| value(v, 0).is_some());
    measured.then_some(means).into_iter().chain(gains).collect()
}

/// A row for each variant of which `of` finds something in its value of the first metric.
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
        "Marks are means, bars their 95 % intervals, faint dots single runs"
    } else {
        "Marks are single runs"
    };
    let mut notes =
        vec![format!("{intervals}{}.", if gains(experiment, 0).is_some() { " and pairs" } else { "" })];
    if experiment.variants.len() > MOST_ROWS {
        notes.push(format!("Of {} variants the first {MOST_ROWS} are drawn.", experiment.variants.len()));
    }
    let runs = experiment.variants.iter().filter_map(|v| value(v, 0)).map(|v| v.measured.runs.len()).max();
    if let Some(runs) = runs.filter(|runs| *runs > MOST_RUNS) {
        notes.push(format!("Of {runs} runs {MOST_RUNS}, evenly spread, are drawn as dots."));
    }
    notes
}

fn sweep_charts(sweep: &Sweep, experiment: &Experiment) -> Vec<Chart> {
    let metrics = experiment.metrics.iter().enumerate().take(MOST_SWEPT_METRICS);
    let chart = |(m, metric): (usize, &Metric)| {
        let svg = sweep.chart(experiment, m)?;
        Some(Chart { name: format!("sweep-{m}"), title: capitalised(&title(metric)), svg })
    };
    metrics.filter_map(chart).collect()
}

fn family_chart((i, (title, svg)): (usize, (String, String))) -> Chart {
    Chart { name: format!("family-{i}"), title, svg }
}

fn family_rows(experiment: &Experiment) -> Vec<FamilyRow> {
    let row = |(family, member): (&Family, &FamilyMember)| {
        let text = |of: Option<String>| of.unwrap_or_else(|| "–".to_owned());
        let share = format!("{} of {}", member.positive, member.runs);
        FamilyRow {
            mark: mark(member.variant),
            cells: [
                legible(&format!("{} {}", family.name, families::setting(family, member)), MOST_CHARACTERS),
                text(member.gain.as_ref().map(Measured::signed)),
                text(member.deviation.as_ref().map(Measured::text)),
                share,
            ],
        }
    };
    let members = experiment.families.iter().flat_map(|f| f.members.iter().map(move |m| (f, m)));
    members.take(MOST_VARIANTS).map(row).collect()
}

/// How the gains of single runs are made, and how many there are not.
fn family_note(experiment: &Experiment) -> String {
    let members = experiment.families.iter().flat_map(|family| &family.members);
    let left_out = match members.map(|member| member.excluded).max() {
        None | Some(0) => String::new(),
        Some(most) => {
            format!(" Left out are the runs, up to {most} of a setting, in which the baseline has nothing.")
        }
    };
    let baseline = experiment.variants.first().map_or("", |v| v.label.as_str());
    format!(
        "A run's gain is its ratio to the same run of {}, less one; means of ratios weigh every run alike, however little \
         the baseline got in it. Bars are bootstrap intervals (BCa).{left_out}",
        legible(baseline, 60)
    )
}

fn panel_variants(drawn: &Panels, labels: &[&str]) -> Vec<(usize, String)> {
    let mut variants: Vec<usize> = drawn.panels.iter().map(|panel| panel.variant).collect();
    variants.dedup();
    variants.into_iter().map(|v| (v, label(labels, v))).collect()
}

fn label(labels: &[&str], variant: usize) -> String {
    legible(labels.get(variant).copied().unwrap_or(""), MOST_CHARACTERS)
}

fn panel_views(drawn: Panels, experiment: &Experiment, labels: &[&str]) -> Vec<PanelView> {
    let first = drawn.runs.first().copied();
    let step_s = experiment.series.iter().map(|s| s.step_s).find(|s| *s > 0.0).unwrap_or(1.0);
    let view = |panel: super::series::Panel| PanelView {
        run: panel.run,
        variant: panel.variant,
        later: Some(panel.run) != first,
        mark: mark(panel.variant),
        label: label(labels, panel.variant),
        slot: shortest(step_s),
        goodput: panel.goodput,
        window: panel.window,
        neighborhood: panel.neighborhood,
    };
    drawn.panels.into_iter().map(view).collect()
}

fn settings(experiment: &Experiment) -> Vec<SettingsRow> {
    let variants = experiment.variants.iter().take(MOST_VARIANTS).enumerate();
    let row = |(i, variant): (usize, &Variant)| {
        let settings =
            variant.settings.iter().map(|(key, value)| format!("{key} = {}", parameters::text(value)));
        let settings: Vec<String> = settings.collect();
        let settings = if settings.is_empty() { "none".to_owned() } else { settings.join(", ") };
        SettingsRow { mark: mark(i), label: legible(&variant.label, MOST_CHARACTERS), settings }
    };
    variants.map(row).collect()
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
