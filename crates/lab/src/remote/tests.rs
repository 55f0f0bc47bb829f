//! Remote execution returns the same records, however runs are distributed, and whatever is lost.

use super::*;
use crate::execute::{Memory, Sink, execute};
use crate::plan::Plan;
use crate::record::Record;
use crate::run::Unwatched;
use crate::testing::{Impatient, TWO_HOPS, scenario, source};
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
fn said(records: Vec<Record>) -> Vec<Record> {
    let timeless = |mut record: Record| {
        if let Ok(done) = &mut record.result {
            (done.cpu_s, done.wall_s) = (0.0, 0.0);
        }
        record
    };
    records.into_iter().map(timeless).collect()
}

fn here(plan: &Plan) -> Vec<Record> {
    let mut memory = Memory::default();
    execute(plan, None, &mut memory, &Unwatched).expect("nobody interrupts");
    said(memory.into_records())
}

fn batch(next: Next) -> Batch {
    match next {
        Next::Batch(batch) => batch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn runs_made_elsewhere_are_those_made_here() {
    let plan = plan("tcp.window=2,8", &[("tcp.min_rto_s", 0.3.into()), ("seed", 5.into())]);
    let bundle = Bundle::from_bytes(&Bundle::of(&plan).to_bytes()).expect("ours");
    let mut course = Course::new(plan.clone(), Memory::default());
    loop {
        match course.next(2).expect("memory") {
            Next::Batch(batch) => {
                let file = bundle.perform(&batch, &Unwatched).expect("it runs");
                assert_eq!(course.take(batch.id, &file).expect("ours").len(), batch.runs.len());
            }
            Next::Wait => panic!("nothing is away"),
            Next::Done(runs) => break assert_eq!(runs, 4),
        }
    }
    assert_eq!(said(course.into_sink().into_records()), here(&plan));
}

#[test]
fn files_that_a_scenario_names_are_carried_along() {
    let folder = tempfile::tempdir().expect("room");
    std::fs::write(folder.path().join("nodes.csv"), "x_m,y_m\n0,0\n200,0\n400,0\n").expect("room");
    let text = "duration_s = 2\nruns = 1\n[radio]\n[nodes]\nlayout = \"file\"\nfile = \"nodes.csv\"\n[[flow]]\nsrc = \"n0\"\ndst = \"n2\"\n";
    let scenario = Scenario::parse(source("test.toml", text), folder.path(), &[]).expect("it is right");
    let plan = Plan::new(&scenario, &[]).expect("a plan");
    let (bytes, expected) = (Bundle::of(&plan).to_bytes(), here(&plan));
    drop(folder);
    let bundle = Bundle::from_bytes(&bytes).expect("ours");
    let file = bundle.perform(&Batch { id: 0, runs: vec![(0, 1)] }, &Unwatched).expect("it runs");
    assert_eq!(said(records::read(&file).expect("ours")), expected);
}

#[test]
fn what_is_lost_is_given_out_again_and_what_comes_twice_counts_once() {
    let plan = plan("tcp.window=2,8", &[]);
    let bundle = Bundle::of(&plan);
    let mut course = Course::new(plan.clone(), Memory::default());
    let (lost, kept) = (batch(course.next(1).expect("memory")), batch(course.next(1).expect("memory")));
    course.lost(lost.id);
    let file = bundle.perform(&kept, &Unwatched).expect("it runs");
    assert_eq!(course.take(kept.id, &file).expect("ours").len(), 1);
    assert!(course.take(kept.id, &file).expect("known").is_empty());
    let late = bundle.perform(&lost, &Unwatched).expect("it runs");
    assert!(course.take(lost.id, &late).expect("given up").is_empty(), "it is somebody else's now");
    let again = batch(course.next(1).expect("memory"));
    assert_eq!(again.runs[0], lost.runs[0]);
    assert!(again.id > kept.id);
}

#[test]
fn a_batch_costs_seconds_where_there_is_enough_to_do_and_its_share_where_there_is_not() {
    let plan = plan("tcp.window=2,8", &[("runs", 5000.into())]);
    let mut course = Course::new(plan.clone(), Memory::default());
    let first = batch(course.next(2).expect("memory"));
    assert_eq!(first.runs, [(0, 1)], "nobody knows what it costs");
    let bundle = Bundle::of(&plan);
    let mut record = records::read(&bundle.perform(&first, &Unwatched).expect("it runs")).expect("ours");
    record[0].result.as_mut().expect("it ran").cpu_s = 0.01;
    course.take(first.id, &records::write(&record).expect("room")).expect("ours");
    let second = batch(course.next(2).expect("memory"));
    assert!((190..=210).contains(&second.runs.len()), "{} of 10 ms each", second.runs.len());
    let many = batch(course.next(10_000).expect("memory"));
    assert_eq!(many.runs.len(), 1, "others want some, too");
}

#[test]
fn precision_asks_for_more_rounds_wherever_runs_are_made() {
    let folder = tempfile::tempdir().expect("room");
    std::fs::write(folder.path().join("s.toml"), TWO_HOPS).expect("room");
    let text =
        "scenario = \"s.toml\"\nruns = 2\nprecision = \"0.5%\"\nmax_runs = 6\n[grid]\n\"tcp.window\" = [8]\n";
    let effort = crate::plan::Effort::Full;
    let plan = Plan::parse(&source("p.toml", text), folder.path(), "p", &[], effort).expect("a plan");
    let (mut course, bundle) = (Course::new(plan.clone(), Memory::default()), Bundle::of(&plan));
    let runs = loop {
        match course.next(1).expect("memory") {
            Next::Batch(batch) => {
                let file = bundle.perform(&batch, &Unwatched).expect("it runs");
                course.take(batch.id, &file).expect("ours");
            }
            Next::Wait => panic!("nothing is away"),
            Next::Done(runs) => break runs,
        }
    };
    assert!(runs > 2, "{runs}");
    assert_eq!(said(course.into_sink().into_records()), here(&plan));
}

#[test]
fn another_version_and_nonsense_are_refused() {
    let bundle = Bundle::of(&plan("tcp.window=2,8", &[]));
    let mut json: serde_json::Value = serde_json::from_slice(&bundle.to_bytes()).expect("JSON");
    json["version"] = "0.0.1".into();
    let error = Bundle::from_bytes(json.to_string().as_bytes()).expect_err("another version");
    let both = ["0.0.1", env!("CARGO_PKG_VERSION")].iter().all(|version| error.to_string().contains(version));
    assert!(both, "{error}");
    assert!(matches!(Bundle::from_bytes(b"{"), Err(RemoteError::Damaged(_))));
    let unknown = bundle.perform(&Batch { id: 0, runs: vec![(7, 1)] }, &Unwatched);
    assert!(matches!(unknown, Err(RemoteError::Damaged(_))));
}

#[test]
fn a_point_that_is_another_there_is_refused() {
    let mut json: serde_json::Value =
        serde_json::from_slice(&Bundle::of(&plan("tcp.window=2,8", &[])).to_bytes()).expect("JSON");
    json["points"][1]["settings"][0][1] = 3.into();
    let bundle = Bundle::from_bytes(json.to_string().as_bytes()).expect("well formed");
    let refused = bundle.perform(&Batch { id: 0, runs: vec![(1, 1)] }, &Unwatched);
    assert!(matches!(refused, Err(RemoteError::Differs { point: 1, .. })), "{refused:?}");
}

#[test]
fn results_that_nobody_asked_for_are_refused_and_the_batch_goes_out_again() {
    let plan = plan("tcp.window=2,8", &[]);
    let mut course = Course::new(plan.clone(), Memory::default());
    let asked = batch(course.next(1).expect("memory"));
    let other = Bundle::of(&plan).perform(&Batch { id: 9, runs: vec![(1, 4)] }, &Unwatched).expect("it runs");
    for file in [&other[..], b"", b"PAR1", &other[..other.len() / 2]] {
        let id = batch(course.next(1).expect("memory")).id;
        assert!(matches!(course.take(id, file), Err(CourseError::Remote(RemoteError::Damaged(_)))));
    }
    assert!(!course.into_sink().has(1, 4));
    assert_eq!(asked.runs, [(0, 1)]);
}

#[test]
fn whoever_gives_up_is_heard() {
    let bundle = Bundle::of(&plan("tcp.window=2,8", &[]));
    let given_up = bundle.perform(&Batch { id: 0, runs: vec![(0, 1)] }, &Impatient::after_s(0));
    assert_eq!(given_up, Err(RemoteError::Interrupted));
}
