//! Tables of a section: variants, their settings, families.

use super::conclusion::is_significant;
use super::marker::mark;
use super::measured::plain;
use super::picture::legible;
use super::{
    Better, Experiment, Family, FamilyMember, Measured, Metric, Value, Variant, families, parameters,
};

/// Maximum number of variants in a table.
const MAX_VARIANTS: usize = 300;
/// Maximum length of a name in a table, characters.
pub(super) const MAX_CHARACTERS: usize = 200;

/// A variant in the table.
pub(super) struct VariantRow {
    pub(super) mark: String,
    pub(super) label: String,
    pub(super) cells: Vec<String>,
    pub(super) fingerprint: String,
    pub(super) cpu: String,
}

/// Row with the settings of a variant.
pub(super) struct SettingsRow {
    pub(super) mark: String,
    pub(super) label: String,
    pub(super) settings: String,
}

/// Label, mean gain, deviation, share of runs with a positive gain.
pub(super) struct FamilyRow {
    pub(super) mark: String,
    pub(super) cells: [String; 4],
}

fn named_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

pub(super) fn title(metric: &Metric) -> String {
    named_unit(&metric.name, &metric.unit)
}

pub(super) fn value(variant: &Variant, metric: usize) -> Option<&Value> {
    variant.values.get(metric)?.as_ref()
}

/// Returns whether all comparisons with the baseline in metric `m` have a value in percent; `None` if there
/// are none.
pub(super) fn gains(experiment: &Experiment, m: usize) -> Option<bool> {
    let mut compared = experiment.variants.iter().filter_map(|v| value(v, m)?.versus.as_ref()).peekable();
    compared.peek()?;
    Some(compared.all(|versus| versus.percent.is_some()))
}

pub(super) fn gain_title(experiment: &Experiment) -> Option<String> {
    let metric = experiment.metrics.first()?;
    let percent = gains(experiment, 0)?;
    let what = if metric.better == Better::Higher { "gain" } else { "change" };
    Some(named_unit(what, if percent { "%" } else { &metric.unit }))
}

pub(super) fn gain(value: &Value, percent: bool) -> Option<&Measured> {
    let versus = value.versus.as_ref()?;
    if percent { versus.percent.as_ref() } else { Some(&versus.difference) }
}

pub(super) fn heads(experiment: &Experiment) -> Vec<String> {
    let Some((first, others)) = experiment.metrics.split_first() else { return Vec::new() };
    let mut heads = vec![title(first)];
    if let Some(gain) = gain_title(experiment) {
        heads.extend([gain, "p".into()]);
    }
    heads.extend(others.iter().map(title));
    heads
}

pub(super) fn rows(experiment: &Experiment) -> Vec<VariantRow> {
    let row = |(i, variant): (usize, &Variant)| VariantRow {
        mark: mark(i),
        label: legible(&variant.label, MAX_CHARACTERS),
        cells: cells(experiment, i, variant),
        fingerprint: variant.fingerprint.clone(),
        cpu: plain(variant.cpu_s, 2),
    };
    experiment.variants.iter().take(MAX_VARIANTS).enumerate().map(row).collect()
}

fn cells(experiment: &Experiment, i: usize, variant: &Variant) -> Vec<String> {
    let nothing = || "–".to_owned();
    let mut cells = Vec::new();
    for m in 0..experiment.metrics.len() {
        let value = value(variant, m);
        let written = value.map_or_else(nothing, |value| value.measured.text());
        if m > 0 {
            let change = value.and_then(|v| v.versus.as_ref()).filter(|versus| is_significant(versus));
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

pub(super) fn table_notes(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    let compared = gains(experiment, 0).is_some();
    match (experiment.runs, compared) {
        (0 | 1, _) => {}
        (_, false) => notes.push(format!("± is the {} interval of the mean.", experiment.confidence)),
        (_, true) => {
            let tested = experiment.variants.iter().any(|v| {
                value(v, 0).is_some_and(|v| v.versus.as_ref().is_some_and(|versus| versus.p.is_some()))
            });
            let mut note = format!(
                "± is the {} interval of the mean. Gains and changes are differences to the baseline within pairs: run 1 \
                 of each variant met the same world, and so on.",
                experiment.confidence
            );
            if tested {
                note.push_str(
                    " p is that of a paired test; it and the intervals of the differences are corrected for the number of variants by Holm's method.",
                );
            }
            if experiment.metrics.len() > 1 {
                note.push_str(" ▲ and ▼: measurably above or below the baseline.");
            }
            notes.push(note);
        }
    }
    if experiment.variants.len() > MAX_VARIANTS {
        notes.push(format!("Of {} variants the first {MAX_VARIANTS} are listed.", experiment.variants.len()));
    }
    notes
}

pub(super) fn family_rows(experiment: &Experiment) -> Vec<FamilyRow> {
    let row = |(family, member): (&Family, &FamilyMember)| {
        let text = |of: Option<String>| of.unwrap_or_else(|| "–".to_owned());
        let share = format!("{} of {}", member.positive, member.runs);
        FamilyRow {
            mark: mark(member.variant),
            cells: [
                legible(&format!("{} {}", family.name, families::setting(family, member)), MAX_CHARACTERS),
                text(member.gain.as_ref().map(Measured::signed)),
                text(member.deviation.as_ref().map(Measured::text)),
                share,
            ],
        }
    };
    let members = experiment.families.iter().flat_map(|f| f.members.iter().map(move |m| (f, m)));
    members.take(MAX_VARIANTS).map(row).collect()
}

/// Explains the gains of single runs, with the number of omissions.
pub(super) fn family_note(experiment: &Experiment) -> String {
    let members = experiment.families.iter().flat_map(|family| &family.members);
    let left_out = match members.map(|member| member.excluded).max() {
        None | Some(0) => String::new(),
        Some(most) => {
            format!(
                " Left out of means are the runs, up to {most} of a setting, in which the baseline has nothing."
            )
        }
    };
    let baseline = experiment.variants.first().map_or("", |v| v.label.as_str());
    format!(
        "A run's gain is its ratio to the same run of {}, less one; means of ratios weigh every run alike, however little \
         the baseline got in it. Bars are bootstrap intervals (BCa).{left_out}",
        legible(baseline, 60)
    )
}

pub(super) fn settings(experiment: &Experiment) -> Vec<SettingsRow> {
    let variants = experiment.variants.iter().take(MAX_VARIANTS).enumerate();
    let row = |(i, variant): (usize, &Variant)| {
        let settings =
            variant.settings.iter().map(|(key, value)| format!("{key} = {}", parameters::text(value)));
        let settings: Vec<String> = settings.collect();
        let settings = if settings.is_empty() { "none".to_owned() } else { settings.join(", ") };
        SettingsRow { mark: mark(i), label: legible(&variant.label, MAX_CHARACTERS), settings }
    };
    variants.map(row).collect()
}
