//! Remote execution returns the same records, however runs are distributed, and whatever is lost.

use super::*;
use crate::execute::{MemorySink, Sink, execute};
use crate::plan::Plan;
use crate::record::Record;
use crate::run::NoObserver;
use crate::testing::{InterruptAfter, TWO_HOPS, scenario, source};
use hopline_scenario::Scenario;

fn plan(vary: &str, set: &[(&str, serde_json::Value)]) -> Plan {
    let settings = set.iter().map(|(path, value)| {
        hopline_config::document::Setting::of_value("set", path, value).expect("TOML can say it")
    });
    let scenario = scenario(TWO_HOPS).with(&settings.collect::<Vec<_>>()).expect("it makes sense");
    let axis = hopline_scenario::parse_vary(vary).expect("an axis");
    Plan::new(&scenario, &[axis]).expect("a plan")
}

/// Removes times, which differ between executions.
fn without_times(records: Vec<Record>) -> Vec<Record> {
    let timeless = |mut record: Record| {
        if let Ok(done) = &mut record.result {
            (done.cpu_s, done.wall_s) = (0.0, 0.0);
        }
        record
    };
    records.into_iter().map(timeless).collect()
}

fn local_records(plan: &Plan) -> Vec<Record> {
    let mut memory = MemorySink::default();
    execute(plan, None, &mut memory, &NoObserver).expect("nobody interrupts");
    without_times(memory.into_records())
}

fn batch(next: Next) -> Batch {
    match next {
        Next::Batch(batch) => batch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn remote_runs_equal_local_runs() {
    let plan = plan("tcp.window=2,8", &[("tcp.min_rto_s", 0.3.into()), ("seed", 5.into())]);
    let bundle = Bundle::from_bytes(&Bundle::of(&plan).to_bytes()).expect("ours");
    let mut course = Scheduler::new(plan.clone(), MemorySink::default());
    loop {
        match course.next(2).expect("memory") {
            Next::Batch(batch) => {
                let file = bundle.execute(&batch, &NoObserver).expect("it runs");
                assert_eq!(course.handle_result(batch.id, &file).expect("ours").len(), batch.runs.len());
            }
            Next::Wait => panic!("nothing is away"),
            Next::Done(runs) => break assert_eq!(runs, 4),
        }
    }
    assert_eq!(without_times(course.into_sink().into_records()), local_records(&plan));
}

/// Asserts that the bundle of a scenario contains the file `name` that it names: it gives the same records without the folder.
#[track_caller]
fn assert_transferred((name, content): (&str, &str), text: &str) {
    let folder = tempfile::tempdir().expect("room");
    std::fs::write(folder.path().join(name), content).expect("room");
    let scenario = Scenario::parse(source("test.toml", text), folder.path(), &[]).expect("it is right");
    let plan = Plan::new(&scenario, &[]).expect("a plan");
    let (bytes, expected) = (Bundle::of(&plan).to_bytes(), local_records(&plan));
    drop(folder);
    let bundle = Bundle::from_bytes(&bytes).expect("ours");
    let file = bundle.execute(&Batch { id: 0, runs: vec![(0, 1)] }, &NoObserver).expect("it runs");
    assert_eq!(without_times(records::read(&file).expect("ours")), expected);
}

#[test]
fn files_that_a_scenario_names_are_transferred() {
    let text = "duration_s = 2\nruns = 1\n[radio]\n[nodes]\nlayout = \"file\"\nfile = \"nodes.csv\"\n[[flow]]\nsrc = \"n0\"\ndst = \"n2\"\n";
    assert_transferred(("nodes.csv", "x_m,y_m\n0,0\n200,0\n400,0\n"), text);
}

#[test]
fn traces_of_link_rates_are_transferred() {
    let text = "duration_s = 2\nruns = 1\nnode = [{ name = \"a\" }, { name = \"b\" }]\nflow = [{ src = \"a\", dst = \"b\" }]\n\
        link = [{ a = \"a\", b = \"b\", delay_ms = 1, rate_trace = [{ file = \"t\" }] }]\n";
    assert_transferred(("t", "10\n20\n100\n"), text);
}

#[test]
fn lost_batches_are_reissued_and_duplicates_count_once() {
    let plan = plan("tcp.window=2,8", &[]);
    let bundle = Bundle::of(&plan);
    let mut course = Scheduler::new(plan.clone(), MemorySink::default());
    let (lost, kept) = (batch(course.next(1).expect("memory")), batch(course.next(1).expect("memory")));
    course.requeue(lost.id);
    let file = bundle.execute(&kept, &NoObserver).expect("it runs");
    assert_eq!(course.handle_result(kept.id, &file).expect("ours").len(), 1);
    assert!(course.handle_result(kept.id, &file).expect("known").is_empty());
    let late = bundle.execute(&lost, &NoObserver).expect("it runs");
    assert!(course.handle_result(lost.id, &late).expect("given up").is_empty(), "it is somebody else's now");
    let again = batch(course.next(1).expect("memory"));
    assert_eq!(again.runs[0], lost.runs[0]);
    assert!(again.id > kept.id);
}

#[test]
fn a_batch_costs_seconds_if_there_is_enough_work_and_a_share_of_it_otherwise() {
    let plan = plan("tcp.window=2,8", &[("runs", 5000.into())]);
    let mut course = Scheduler::new(plan.clone(), MemorySink::default());
    let first = batch(course.next(2).expect("memory"));
    assert_eq!(first.runs, [(0, 1)], "nobody knows what it costs");
    let bundle = Bundle::of(&plan);
    let mut record = records::read(&bundle.execute(&first, &NoObserver).expect("it runs")).expect("ours");
    record[0].result.as_mut().expect("it ran").cpu_s = 0.01;
    course.handle_result(first.id, &records::write(&record).expect("room")).expect("ours");
    let second = batch(course.next(2).expect("memory"));
    assert!((190..=210).contains(&second.runs.len()), "{} of 10 ms each", second.runs.len());
    let many = batch(course.next(10_000).expect("memory"));
    assert_eq!(many.runs.len(), 1, "others want some, too");
}

#[test]
fn precision_adds_rounds_with_remote_runs() {
    let folder = tempfile::tempdir().expect("room");
    std::fs::write(folder.path().join("s.toml"), TWO_HOPS).expect("room");
    let text =
        "scenario = \"s.toml\"\nruns = 2\nprecision = \"0.5%\"\nmax_runs = 6\n[grid]\n\"tcp.window\" = [8]\n";
    let effort = crate::plan::Effort::Full;
    let plan = Plan::parse(&source("p.toml", text), folder.path(), "p", &[], effort).expect("a plan");
    let (mut course, bundle) = (Scheduler::new(plan.clone(), MemorySink::default()), Bundle::of(&plan));
    let runs = loop {
        match course.next(1).expect("memory") {
            Next::Batch(batch) => {
                let file = bundle.execute(&batch, &NoObserver).expect("it runs");
                course.handle_result(batch.id, &file).expect("ours");
            }
            Next::Wait => panic!("nothing is away"),
            Next::Done(runs) => break runs,
        }
    };
    assert!(runs > 2, "{runs}");
    assert_eq!(without_times(course.into_sink().into_records()), local_records(&plan));
}

#[test]
fn another_version_and_damaged_data_are_rejected() {
    let bundle = Bundle::of(&plan("tcp.window=2,8", &[]));
    let mut json: serde_json::Value = serde_json::from_slice(&bundle.to_bytes()).expect("JSON");
    json["version"] = "0.0.1".into();
    let error = Bundle::from_bytes(json.to_string().as_bytes()).expect_err("another version");
    let both = ["0.0.1", env!("CARGO_PKG_VERSION")].iter().all(|version| error.to_string().contains(version));
    assert!(both, "{error}");
    assert!(matches!(Bundle::from_bytes(b"{"), Err(RemoteError::Damaged(_))));
    let unknown = bundle.execute(&Batch { id: 0, runs: vec![(7, 1)] }, &NoObserver);
    assert!(matches!(unknown, Err(RemoteError::Damaged(_))));
}

#[test]
fn a_point_that_differs_on_the_other_machine_is_rejected() {
    let mut json: serde_json::Value =
        serde_json::from_slice(&Bundle::of(&plan("tcp.window=2,8", &[])).to_bytes()).expect("JSON");
    json["points"][1]["settings"][0][1] = 3.into();
    let bundle = Bundle::from_bytes(json.to_string().as_bytes()).expect("well formed");
    let refused = bundle.execute(&Batch { id: 0, runs: vec![(1, 1)] }, &NoObserver);
    assert!(matches!(refused, Err(RemoteError::Differs { point: 1, .. })), "{refused:?}");
}

#[test]
fn unrequested_results_are_rejected_and_the_batch_is_reissued() {
    let plan = plan("tcp.window=2,8", &[]);
    let mut course = Scheduler::new(plan.clone(), MemorySink::default());
    let asked = batch(course.next(1).expect("memory"));
    let other =
        Bundle::of(&plan).execute(&Batch { id: 9, runs: vec![(1, 4)] }, &NoObserver).expect("it runs");
    for file in [&other[..], b"", b"PAR1", &other[..other.len() / 2]] {
        let id = batch(course.next(1).expect("memory")).id;
        assert!(matches!(
            course.handle_result(id, file),
            Err(SchedulerError::Remote(RemoteError::Damaged(_)))
        ));
    }
    assert!(!course.into_sink().has(1, 4));
    assert_eq!(asked.runs, [(0, 1)]);
}

#[test]
fn an_interruption_stops_the_batch() {
    let bundle = Bundle::of(&plan("tcp.window=2,8", &[]));
    let given_up = bundle.execute(&Batch { id: 0, runs: vec![(0, 1)] }, &InterruptAfter::after_s(0));
    assert_eq!(given_up, Err(RemoteError::Interrupted));
}
