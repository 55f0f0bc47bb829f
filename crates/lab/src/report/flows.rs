//! Tables of flows: one for each metric, with a column for each variant.

use super::picture::legible;
use super::{Experiment, FlowRow, Measured, Metric};

/// Maximum number of flows in a table.
const MAX_FLOWS: usize = 40;
/// Maximum number of variants in a table.
const MAX_VARIANTS: usize = 8;
/// Maximum length of the name of a flow or a variant, characters.
const MAX_CHARACTERS: usize = 40;

/// Tables of all metrics.
pub(super) struct FlowTables {
    /// One for each metric; for a single variant one for all.
    pub(super) tables: Vec<FlowTable>,
    /// Omissions, in sentences.
    pub(super) notes: Vec<String>,
}

/// A table.
pub(super) struct FlowTable {
    /// Title, also of its tab.
    pub(super) title: String,
    /// Heads of the columns of numbers: the variant for the style, if there is one, and the words.
    pub(super) heads: Vec<(Option<usize>, String)>,
    /// The flows.
    pub(super) rows: Vec<FlowTableRow>,
}

/// A flow.
pub(super) struct FlowTableRow {
    pub(super) name: String,
    pub(super) ends: String,
    pub(super) carrier: String,
    pub(super) cells: Vec<FlowCell>,
}

/// A number, and its share of the largest number of its kind, in percent.
pub(super) struct FlowCell {
    pub(super) text: String,
    pub(super) share: u32,
}

impl FlowTables {
    /// Returns the tables of `experiment`; `None` if they would repeat the table of variants.
    pub(super) fn of(experiment: &Experiment) -> Option<Self> {
        let (flows, variants) = (experiment.flow_rows.len(), experiment.variants.len());
        if flows == 0 || experiment.flow_metrics.is_empty() || (flows == 1 && variants > 1) {
            return None;
        }
        let rows = &experiment.flow_rows[..flows.min(MAX_FLOWS)];
        let mut notes = Vec::new();
        if flows > MAX_FLOWS {
            notes.push(format!("Of {flows} flows the first {MAX_FLOWS} are listed."));
        }
        let tables = if variants == 1 {
            vec![of_one(experiment, rows)]
        } else {
            if variants > MAX_VARIANTS {
                notes.push(format!("Of {variants} variants the first {MAX_VARIANTS} are listed."));
            }
            let metrics = experiment.flow_metrics.iter().enumerate();
            metrics.map(|(m, metric)| of_metric(experiment, rows, (m, metric))).collect()
        };
        Some(Self { tables, notes })
    }
}

/// Returns the table of a single variant: a column for each metric.
fn of_one(experiment: &Experiment, rows: &[FlowRow]) -> FlowTable {
    let metrics = &experiment.flow_metrics;
    let greatest: Vec<f64> =
        (0..metrics.len()).map(|m| greatest(rows.iter().map(|row| at(row, m, 0)))).collect();
    let cells = |row: &FlowRow| (0..metrics.len()).map(|m| cell(at(row, m, 0), greatest[m])).collect();
    FlowTable {
        title: String::new(),
        heads: metrics.iter().map(|metric| (None, title(metric))).collect(),
        rows: rows.iter().map(|row| table_row(row, cells(row))).collect(),
    }
}

/// Returns the table of one metric of several variants.
fn of_metric(experiment: &Experiment, rows: &[FlowRow], (m, metric): (usize, &Metric)) -> FlowTable {
    let variants = experiment.variants.len().min(MAX_VARIANTS);
    let greatest = greatest(rows.iter().flat_map(|row| (0..variants).map(move |v| at(row, m, v))));
    let cells = |row: &FlowRow| (0..variants).map(|v| cell(at(row, m, v), greatest)).collect();
    let heads = experiment.variants.iter().take(variants).enumerate();
    FlowTable {
        title: title(metric),
        heads: heads.map(|(v, variant)| (Some(v), legible(&variant.label, MAX_CHARACTERS))).collect(),
        rows: rows.iter().map(|row| table_row(row, cells(row))).collect(),
    }
}

fn title(metric: &Metric) -> String {
    if metric.unit.is_empty() { metric.name.clone() } else { format!("{} ({})", metric.name, metric.unit) }
}

fn at(row: &FlowRow, metric: usize, variant: usize) -> Option<&Measured> {
    row.values.get(metric)?.get(variant)?.as_ref()
}

fn greatest<'a>(values: impl Iterator<Item = Option<&'a Measured>>) -> f64 {
    values.flatten().map(|value| value.mean).filter(|x| x.is_finite()).fold(0.0, f64::max)
}

fn cell(value: Option<&Measured>, greatest: f64) -> FlowCell {
    let Some(value) = value else { return FlowCell { text: "–".to_owned(), share: 0 } };
    let share = if greatest > 0.0 && value.mean.is_finite() { 100.0 * value.mean / greatest } else { 0.0 };
    FlowCell { text: value.text(), share: share.clamp(0.0, 100.0).round() as u32 }
}

fn table_row(row: &FlowRow, cells: Vec<FlowCell>) -> FlowTableRow {
    let short = |text: &str| legible(text, MAX_CHARACTERS);
    FlowTableRow { name: short(&row.name), ends: short(&row.ends), carrier: short(&row.carrier), cells }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Better, Variant};

    fn experiment(variants: usize, flows: usize) -> Experiment {
        let value = |v: usize, f: usize| {
            Some(Measured { mean: (100 * (f + 1) * (v + 1)) as f64, interval: None, runs: Vec::new() })
        };
        let row = |f: usize| FlowRow {
            name: format!("f{f}"),
            ends: "a → b".into(),
            carrier: "tcp".into(),
            values: vec![(0..variants).map(|v| value(v, f)).collect(), vec![None; variants]],
        };
        Experiment {
            variants: (0..variants)
                .map(|v| Variant { label: format!("v{v}"), ..Variant::default() })
                .collect(),
            flow_metrics: vec![
                Metric::new("goodput", "kb/s", Better::Higher),
                Metric::new("timeouts", "", Better::Lower),
            ],
            flow_rows: (0..flows).map(row).collect(),
            ..Experiment::default()
        }
    }

    #[test]
    fn several_variants_have_a_table_for_each_metric() {
        let all = FlowTables::of(&experiment(2, 2)).unwrap();
        assert_eq!(
            all.tables.iter().map(|t| t.title.as_str()).collect::<Vec<_>>(),
            ["goodput (kb/s)", "timeouts"]
        );
        let shares: Vec<Vec<u32>> =
            all.tables[0].rows.iter().map(|row| row.cells.iter().map(|cell| cell.share).collect()).collect();
        assert_eq!(shares, [[25, 50], [50, 100]]);
        assert_eq!(all.tables[1].rows[0].cells[0].text, "–");
    }

    #[test]
    fn one_variant_has_a_table_of_all_metrics() {
        let all = FlowTables::of(&experiment(1, 2)).unwrap();
        assert_eq!(all.tables.len(), 1);
        assert_eq!(
            all.tables[0].heads.iter().map(|(_, t)| t.as_str()).collect::<Vec<_>>(),
            ["goodput (kb/s)", "timeouts"]
        );
    }

    #[test]
    fn repeated_tables_are_omitted_and_long_ones_cut() {
        assert!(FlowTables::of(&experiment(3, 1)).is_none());
        assert!(FlowTables::of(&experiment(3, 0)).is_none());
        let many = FlowTables::of(&experiment(20, 100)).unwrap();
        assert_eq!((many.tables[0].rows.len(), many.tables[0].heads.len(), many.notes.len()), (40, 8, 2));
    }
}
