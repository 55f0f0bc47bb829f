//! Tables have a row for all that exists, and no other rows.

use super::*;
use crate::description::Description;
use crate::execute::MemorySink;
use crate::run::NoObserver;
use crate::testing::{TWO_HOPS, scenario};
use crate::{Plan, execute::execute};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};

fn made() -> (LeadingCells, Vec<Record>) {
    let axis = hopline_scenario::parse_vary("tcp.window=2,unclamped").expect("an axis");
    let plan = Plan::new(&scenario(TWO_HOPS), &[axis]).expect("a plan");
    let mut memory = MemorySink::default();
    execute(&plan, None, &mut memory, &NoObserver).expect("nobody interrupts");
    let heads = LeadingCells::of(&Description::of(&plan, Vec::new()).expect("it resolves"));
    (heads, memory.into_records())
}

fn text(batch: &RecordBatch, column: &str) -> Vec<String> {
    let column = batch.column_by_name(column).expect("it is there").as_string::<i32>();
    column.iter().map(|text| text.unwrap_or("-").to_owned()).collect()
}

#[test]
fn flows_have_a_row_for_each_run_with_all_metrics_of_flows() {
    let (heads, records) = made();
    let flows = Table::Flows.batch(&heads, &records).expect("whole rows");
    assert_eq!(flows.num_rows(), records.len());
    assert_eq!(text(&flows, "transport"), ["tcp-newreno"].repeat(records.len()));
    assert!(flows.column_by_name("goodput_bps").is_some());
    assert!(flows.column_by_name("response_p95_s").is_none(), "no flow asks for anything");
}

#[test]
fn a_key_with_any_text_value_is_a_text_column() {
    let (heads, records) = made();
    let runs = Table::Runs.batch(&heads, &records).expect("whole rows");
    let windows = text(&runs, "tcp.window");
    assert!(windows.contains(&"2".to_owned()) && windows.contains(&"unclamped".to_owned()), "{windows:?}");
}

#[test]
fn a_failed_run_has_only_a_row_of_runs() {
    let (heads, _) = made();
    let failed = [Record { point: 1, run: 7, result: Err("it broke".into()) }];
    let runs = Table::Runs.batch(&heads, &failed).expect("whole rows");
    assert_eq!(text(&runs, "error"), ["it broke"]);
    assert_eq!(runs.column_by_name("run").expect("it is there").as_primitive::<UInt64Type>().value(0), 7);
    for table in [Table::Metrics, Table::Flows, Table::Series, Table::Neighborhoods] {
        assert_eq!(table.batch(&heads, &failed).expect("whole rows").num_rows(), 0, "{table:?}");
    }
}

#[test]
fn a_single_run_has_no_leading_cells() {
    let names: Vec<String> =
        Table::Series.columns(&LeadingCells::none()).into_iter().map(|c| c.name).collect();
    assert_eq!(names[..2], ["run", "flow"]);
}

#[test]
fn estimates_match_the_comparison() {
    let axis = hopline_scenario::parse_vary("tcp.window=2,unclamped").expect("an axis");
    let plan = Plan::new(&scenario(TWO_HOPS), &[axis]).expect("a plan");
    let mut memory = MemorySink::default();
    let runs = execute(&plan, None, &mut memory, &NoObserver).expect("nobody interrupts");
    let description = Description::of(&plan, Vec::new()).expect("it resolves");
    let comparison = crate::Comparison::of(description, runs, &memory.into_records());
    let table = estimates(&comparison).expect("whole rows");
    assert_eq!(text(&table, "metric")[..2], ["aggregate_goodput_bps"; 2], "what is asked comes first");
    let json = comparison.json();
    let real = |name: &str, row: usize| {
        let column = table.column_by_name(name).expect("it is there").as_primitive::<Float64Type>();
        (!column.is_null(row)).then(|| column.value(row))
    };
    for (row, variant) in json["variants"].as_array().expect("a list").iter().enumerate() {
        assert_eq!(real("mean", row), variant["goodput_bps"]["mean"].as_f64());
        assert_eq!(real("low", row), variant["goodput_bps"]["interval"][0].as_f64());
        assert_eq!(real("gain_pct", row), variant["gain_pct"]["mean"].as_f64());
        assert_eq!(real("gain_high_pct", row), variant["gain_pct"]["interval"][1].as_f64());
        assert_eq!(real("gain_p", row), variant["gain_p"].as_f64());
    }
}
