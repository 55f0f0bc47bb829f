use super::*;
use crate::comparison::{Comparison, GOODPUT};
use crate::experiment::{ExperimentError, RunOptions, in_directory, stored};
use crate::metrics::Level;
use crate::plan::{KeepSeries, Plan, Runs};
use crate::run::{NoObserver, Observer};
use crate::testing::{InterruptAfter, TWO_HOPS, scenario};
use hopline_scenario::parse_vary;
use std::io::Read;
use std::num::NonZeroUsize;

fn plan() -> Plan {
    plan_of(TWO_HOPS)
}

fn plan_of(text: &str) -> Plan {
    Plan::new(&scenario(text), &[parse_vary("tcp.window=2,8").unwrap()]).unwrap()
}

fn how(watch: &dyn Observer) -> RunOptions<'_> {
    RunOptions { jobs: None, command: &[], watch }
}

/// Makes one run after the other, so that the runs made before an interruption do not depend on the machine.
fn one_by_one(watch: &dyn Observer) -> RunOptions<'_> {
    RunOptions { jobs: NonZeroUsize::new(1), ..how(watch) }
}

fn run(plan: &Plan, path: &Path) -> Result<Comparison, ExperimentError> {
    in_directory(plan, how(&NoObserver), path, Start::Resume).map(|(comparison, _)| comparison)
}

/// Returns the existing tables that depend on the plan alone.
fn tables(path: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let is_there = |name: &&str| *name != "timing.csv" && path.join(name).exists();
    let files = super::tables::FILES.into_iter().filter(is_there);
    files.map(|name| (name, fs::read(path.join(name)).unwrap())).collect()
}

fn refusal(result: Result<Comparison, ExperimentError>) -> String {
    match result {
        Err(ExperimentError::Store(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_complete_experiment_has_tables_and_a_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let comparison = run(&plan(), &path).unwrap();
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(path.join(MANIFEST)).unwrap()).unwrap();
    assert_eq!((&manifest["format"], &manifest["status"]), (&FORMAT.into(), &"complete".into()));
    assert_eq!((&manifest["runs"], &manifest["failed_runs"]), (&4.into(), &0.into()));
    assert_eq!(manifest["fingerprints"][1], comparison.points[1].fingerprint.to_string());
    let metrics = fs::read_to_string(path.join("metrics.csv")).unwrap();
    let mut lines = metrics.lines();
    assert_eq!(lines.next().unwrap(), "point,variant,tcp.window,run,group,flow,node,metric,value");
    let goodput = format!("1,tcp.window=8,8,3,,,,{},{}", GOODPUT.2, comparison.points[1].values(GOODPUT)[2]);
    assert!(lines.any(|line| line == goodput), "{goodput}");
    assert!(metrics.lines().any(|line| line.starts_with("0,tcp.window=2,2,1,,f0,,goodput_bps,")));
    let runs = fs::read_to_string(path.join("runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 8);
    let series = fs::read_to_string(path.join("series.csv")).unwrap();
    assert_eq!(series.lines().count(), 1 + 2 * 5, "run 1 of both points, 5 s");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_and_csv_have_the_same_content() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let folder = tempfile::tempdir().unwrap();
    run(&plan(), folder.path()).unwrap();
    let file = File::open(folder.path().join("metrics.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in reader.map(Result::unwrap) {
        for i in 0..batch.num_rows() {
            let text = |column: usize| {
                let column = batch.column(column).as_string::<i32>();
                if arrow_array::Array::is_null(column, i) {
                    String::new()
                } else {
                    column.value(i).to_owned()
                }
            };
            rows.push(format!(
                "{},{},{},{},{},{},{},{},{}",
                batch.column(0).as_primitive::<UInt64Type>().value(i),
                text(1),
                batch.column(2).as_primitive::<Float64Type>().value(i),
                batch.column(3).as_primitive::<UInt64Type>().value(i),
                text(4),
                text(5),
                text(6),
                text(7),
                batch.column(8).as_primitive::<Float64Type>().value(i),
            ));
        }
    }
    let csv = fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
    assert!(rows.iter().eq(csv.lines().skip(1)), "the tables differ");
    assert!(rows.len() > 100);
}

#[test]
fn an_interrupted_experiment_resumes_and_ends_with_the_same_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    run(&plan(), &whole).unwrap();
    let mut interruptions = 0;
    while let Err(error) =
        in_directory(&plan(), one_by_one(&InterruptAfter::after_s(12)), &parts, Start::Resume)
    {
        assert!(matches!(error, ExperimentError::Interrupted), "{error:?}");
        interruptions += 1;
        let there = Store::read(&parts).unwrap().len();
        assert!(there > 0 && interruptions < 20, "{there} runs after {interruptions} interruptions");
    }
    assert!(interruptions > 0);
    assert_eq!(tables(&whole), tables(&parts));
}

#[test]
fn an_incomplete_record_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, torn) = (folder.path().join("whole"), folder.path().join("torn"));
    run(&plan(), &whole).unwrap();
    for keep in [1.0, 0.99, 0.6, 0.01, 0.0] {
        run(&plan(), &torn).unwrap();
        let records = fs::read(torn.join(RECORDS)).unwrap();
        let len = (records.len() as f64 * keep) as usize;
        fs::write(torn.join(RECORDS), &records[..len]).unwrap();
        run(&plan(), &torn).unwrap();
        assert_eq!(tables(&whole), tables(&torn), "{keep} of the records");
    }
}

#[test]
fn more_runs_may_be_requested_and_fewer_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let (at_once, later) = (folder.path().join("at once"), folder.path().join("later"));
    let with_runs = |runs| Plan { runs: Runs::Fixed(runs), ..plan() };
    run(&with_runs(6), &at_once).unwrap();
    run(&with_runs(4), &later).unwrap();
    run(&with_runs(6), &later).unwrap();
    assert_eq!(tables(&at_once), tables(&later));
    let refused = refusal(run(&with_runs(5), &later));
    assert!(refused.contains("holds 6 runs of each point, and 5 are asked for"), "{refused}");
}

#[test]
fn a_directory_of_another_plan_or_version_is_rejected_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    run(&plan(), folder.path()).unwrap();
    let before = tables(folder.path());
    for (text, reason) in [
        (TWO_HOPS.replace("duration_s = 5", "duration_s = 6"), "the scenario file was another"),
        (TWO_HOPS.replace("[radio]", "seed = 9\n[radio]"), "it has seed 1, this plan has 9"),
    ] {
        let refused = refusal(run(&plan_of(&text), folder.path()));
        assert!(refused.contains(reason) && refused.contains("--force"), "{refused}");
    }
    let alone = Plan::new(&scenario(TWO_HOPS), &[]).unwrap();
    assert!(refusal(run(&alone, folder.path())).contains("it has points: 2, this plan has 1"));
    assert_eq!(before, tables(folder.path()), "nothing was touched");

    let manifest = folder.path().join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    let ours = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    fs::write(&manifest, text.replace(&ours, "\"version\": \"0.0.9\"")).unwrap();
    let refused = refusal(run(&plan(), folder.path()));
    assert!(refused.contains("results of hopline 0.0.9"), "{refused}");
    assert!(stored(folder.path()).unwrap_err().to_string().contains("results of hopline 0.0.9"));
}

#[test]
fn a_changed_file_that_the_scenario_names_is_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let text = "duration_s = 1\nruns = 1\nnode = [{ name = \"a\" }, { name = \"b\" }]\nflow = [{ src = \"a\", dst = \"b\" }]\n\
        link = [{ a = \"a\", b = \"b\", delay_ms = 1, rate_trace = [{ file = \"t\" }] }]\n";
    fs::write(folder.path().join("s.toml"), text).unwrap();
    let trace = folder.path().join("t");
    let results = folder.path().join("results");
    let attempt = |rates: &str| {
        fs::write(&trace, rates).unwrap();
        let scenario = hopline_scenario::Scenario::load(&folder.path().join("s.toml"), &[]).unwrap();
        run(&Plan::new(&scenario, &[]).unwrap(), &results)
    };
    attempt("10\n20\n100\n").unwrap();
    attempt("10\n20\n100\n").unwrap();
    let refused = refusal(attempt("10\n20\n101\n"));
    let reason = format!("the file {} that the scenario names was another", trace.display());
    assert!(refused.contains(&reason), "{refused}");
}

#[test]
fn results_of_another_build_are_detected_by_their_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    run(&plan(), folder.path()).unwrap();
    let records = folder.path().join(RECORDS);
    let text = fs::read_to_string(&records).unwrap();
    // The first digit of every fingerprint is changed.
    let digit = text.split("\"fingerprint\":\"").map(|part| match part.split_at_checked(1) {
        Some(("0", rest)) => format!("1{rest}"),
        Some((digit, rest)) if digit != "{" => format!("0{rest}"),
        _ => part.to_owned(),
    });
    fs::write(&records, digit.collect::<Vec<_>>().join("\"fingerprint\":\"")).unwrap();
    let refused = refusal(run(&plan(), folder.path()));
    assert!(refused.contains("another build") && refused.contains("fingerprint"), "{refused}");
}

#[test]
fn foreign_files_are_kept_and_force_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("thesis.tex"), "years of work").unwrap();
    for start in [Start::Resume, Start::Restart] {
        let result = in_directory(&plan(), how(&NoObserver), &path, start);
        let refused = refusal(result.map(|(comparison, _)| comparison));
        assert!(refused.contains("holds files but no manifest.json"), "{refused}");
    }
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    assert!(refusal(run(&plan(), &path.join("thesis.tex"))).contains("it is a file; -o takes a directory"));

    let results = folder.path().join("results");
    run(&plan(), &results).unwrap();
    let longer = plan_of(&TWO_HOPS.replace("duration_s = 5", "duration_s = 6"));
    in_directory(&longer, how(&NoObserver), &results, Start::Restart).unwrap();
    assert_eq!(Store::read(&results).unwrap().description().duration_s, 6.0);
}

#[test]
fn a_damaged_record_is_reported_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    run(&plan(), folder.path()).unwrap();
    let records = folder.path().join(RECORDS);
    let text = fs::read_to_string(&records).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "garbage";
    fs::write(&records, lines.join("\n") + "\n").unwrap();
    let refused = refusal(run(&plan(), folder.path()));
    assert!(refused.contains("records.jsonl, line 3 is damaged"), "{refused}");
}

#[test]
fn two_processes_do_not_write_one_directory() {
    let folder = tempfile::tempdir().unwrap();
    let description = Description::of(&plan(), Vec::new()).unwrap();
    let _held = Store::open(folder.path(), &description, Start::Resume).unwrap();
    assert!(refusal(run(&plan(), folder.path())).contains("another hopline is writing"));
}

#[test]
fn stored_results_round_trip_to_the_last_bit() {
    let folder = tempfile::tempdir().unwrap();
    let kept = run(&plan(), folder.path()).unwrap();
    let (in_memory, _) = crate::experiment::in_memory(&plan(), how(&NoObserver)).unwrap();
    for (kept, in_memory) in kept.points.iter().zip(&in_memory.points) {
        for info in in_memory_metrics(in_memory) {
            assert_eq!(
                kept.values((Level::Run, "", info)),
                in_memory.values((Level::Run, "", info)),
                "{info}"
            );
        }
        assert_eq!(kept.series, in_memory.series);
    }
}

/// Returns the names of the metrics of the run that a point has.
fn in_memory_metrics(point: &crate::comparison::PointResult) -> Vec<&'static str> {
    let names = crate::metrics::CATALOGUE.iter().map(|info| info.name);
    let names: Vec<&str> = names.filter(|name| !point.values((Level::Run, "", name)).is_empty()).collect();
    assert!(names.len() > 10, "{names:?}");
    names
}

#[test]
fn unfinished_results_can_be_reported() {
    let folder = tempfile::tempdir().unwrap();
    let stopped =
        in_directory(&plan(), one_by_one(&InterruptAfter::after_s(12)), folder.path(), Start::Resume);
    assert!(matches!(stopped, Err(ExperimentError::Interrupted)));
    let (comparison, store) = stored(folder.path()).unwrap();
    assert_eq!(store.status(), Status::Unfinished);
    assert!(comparison.points[0].estimate(GOODPUT).is_some());
    assert!(!folder.path().join("metrics.csv").exists());
}

#[test]
fn a_report_needs_results() {
    let folder = tempfile::tempdir().unwrap();
    let empty = stored(folder.path()).unwrap_err().to_string();
    assert!(empty.contains("it holds no manifest.json"), "{empty}");
    let absent = stored(Path::new("/no/such/results")).unwrap_err().to_string();
    assert!(absent.contains("/no/such/results"), "{absent}");
}

#[test]
fn series_of_all_runs_are_stored_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan();
    plan.keep.series = KeepSeries::All;
    run(&plan, folder.path()).unwrap();
    let mut series = String::new();
    File::open(folder.path().join("series.csv")).unwrap().read_to_string(&mut series).unwrap();
    assert_eq!(series.lines().count(), 1 + 8 * 5);
}

#[test]
fn observed_neighbourhoods_have_a_table_and_others_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let (path, without) = (folder.path().join("observed"), folder.path().join("plain"));
    run(&plan_of(&format!("{TWO_HOPS}[neighborhood_red]\nobserve = [\"n1\"]\n")), &path).unwrap();
    run(&plan(), &without).unwrap();
    let table = fs::read_to_string(path.join("neighborhoods.csv")).unwrap();
    let mut lines = table.lines();
    let columns = "point,variant,tcp.window,run,node,time_s,queue_packets,average_queue_packets,estimate_packets,latest_packets";
    assert_eq!(lines.next(), Some(columns));
    assert!(lines.next().unwrap().starts_with("0,tcp.window=2,2,1,n1,0.1,"), "{table}");
    assert_eq!(path.join("neighborhoods.parquet").exists(), cfg!(feature = "parquet"));
    assert!(["csv", "parquet"].iter().all(|end| !without.join(format!("neighborhoods.{end}")).exists()));
}
