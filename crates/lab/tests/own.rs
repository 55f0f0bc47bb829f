//! User-defined algorithms in an experiment: a failure ends only its own run, and a run that is not
//! repeatable fails.

use hopline_config::source::Source;
use hopline_lab::execute::{Memory, execute};
use hopline_lab::experiment::{ExperimentError, How, in_directory};
use hopline_lab::plan::Plan;
use hopline_lab::record::Record;
use hopline_lab::run::{RunError, Unwatched, traced, untraced};
use hopline_lab::store::{Start, StoreError};
use hopline_scenario::{Machines, Scenario, parse_vary};
use hopline_sim::NoTrace;
use hopline_transport::tcp::{LawAck, LawLoss, LawTimeout, OwnLaw};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const CHAIN: &str = "\
duration_s = 10
runs = 3
[radio]
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[[flow]]
src = \"n0\"
dst = \"n2\"
";

/// Slow start to a fixed window; a function returns the growth.
struct Law<F>(F);

impl<F> std::fmt::Debug for Law<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Law")
    }
}

impl<F: FnMut(&LawAck) -> Result<f64, String> + Send> OwnLaw for Law<F> {
    fn on_ack(&mut self, ack: &LawAck) -> Result<f64, String> {
        (self.0)(ack)
    }

    fn on_loss(&mut self, loss: &LawLoss) -> Result<f64, String> {
        Ok(f64::from(loss.reduced_bytes) * 0.75)
    }

    fn on_timeout(&mut self, timeout: &LawTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduced_bytes) / 2.0)
    }
}

fn steady(ack: &LawAck) -> Result<f64, String> {
    Ok(ack.state.cwnd_bytes + 100.0)
}

fn machines(digest: &str) -> Machines {
    let calls = Arc::new(AtomicU32::new(0));
    Machines::default()
        .with_law("steady", digest, |_seed| Ok(Box::new(Law(steady))))
        .with_law("fails", "1", |_seed| {
            let mut left = 100;
            let law = move |ack: &LawAck| {
                left -= 1;
                if left == 0 { Err("Traceback:\n  the 100th".to_owned()) } else { steady(ack) }
            };
            Ok(Box::new(Law(law)))
        })
        .with_law("shares", "1", move |_seed| {
            let calls = calls.clone();
            let law = move |ack: &LawAck| {
                let n = calls.fetch_add(1, Ordering::Relaxed);
                Ok(ack.state.cwnd_bytes + f64::from(n % 1000))
            };
            Ok(Box::new(Law(law)))
        })
}

fn scenario(machines: Machines) -> Scenario {
    let source = Arc::new(Source { name: "test.toml".into(), text: CHAIN.into() });
    Scenario::parse_with(source, PathBuf::new(), &[], machines).expect("a scenario")
}

fn plan(digest: &str, axis: &str) -> Plan {
    Plan::new(&scenario(machines(digest)), &[parse_vary(axis).expect("an axis")]).expect("a plan")
}

fn records(plan: &Plan) -> Vec<Record> {
    let mut memory = Memory::default();
    execute(plan, None, &mut memory, &Unwatched).expect("nobody interrupts");
    memory.into_records()
}

#[test]
fn a_law_that_fails_ends_its_runs_and_no_other() {
    let records = records(&plan("1", "tcp.congestion_control=aimd,own:steady,own:fails"));
    assert_eq!(records.len(), 9);
    for record in records {
        match (record.point, record.result) {
            (0 | 1, result) => assert!(result.is_ok(), "{result:?}"),
            (_, Ok(_)) => panic!("the 100th acknowledgment came"),
            (_, Err(why)) => {
                assert!(
                    why.starts_with("own law `fails` of flow `f0` at node `n0` failed in on_ack at "),
                    "{why}"
                );
                assert!(why.ends_with(" s: Traceback:\n  the 100th"), "{why}");
            }
        }
    }
}

#[test]
fn a_law_that_is_not_repeatable_is_found_out() {
    for record in records(&plan("1", "tcp.congestion_control=own:shares")) {
        let why = record.result.expect_err("runs share a number");
        assert!(why.starts_with("the run came out differently when it was made once more"), "{why}");
        assert!(why.contains("Look into shares for random numbers"), "{why}");
    }
}

#[test]
fn a_single_run_fails_with_an_error_too() {
    let spec = |law: &str| {
        let settings =
            [hopline_config::document::Setting::parse("--set", &format!("tcp.congestion_control=own:{law}"))
                .unwrap()];
        scenario(machines("1")).with(&settings).unwrap().spec(1).unwrap()
    };
    assert!(untraced(&spec("steady"), 1, &Unwatched).is_ok());
    let failed = traced(&spec("fails"), 1, NoTrace, &Unwatched).map(|_| ()).unwrap_err();
    assert!(matches!(&failed, RunError::Failed(why) if why.ends_with("the 100th")), "{failed}");
    let shared = untraced(&spec("shares"), 1, &Unwatched).map(|_| ()).unwrap_err();
    assert!(
        matches!(&shared, RunError::NotRepeatable { machines, .. } if *machines == ["shares"]),
        "{shared}"
    );
}

#[test]
fn results_of_another_law_of_the_same_name_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let run = |plan: &Plan| {
        let how = How { jobs: None, command: &[], watch: &Unwatched };
        in_directory(plan, how, &path, Start::Resume).map(|_| ())
    };
    let [one, other] = ["1", "2"].map(|digest| plan(digest, "tcp.congestion_control=aimd,own:steady"));
    assert_ne!(one.identity(), other.identity());
    run(&one).unwrap();
    run(&one).expect("the same again");
    let refused = run(&other).unwrap_err();
    assert!(matches!(refused, ExperimentError::Store(StoreError::OtherPlan { .. })), "{refused:?}");
    let unused = ["1", "2"].map(|digest| plan(digest, "tcp.congestion_control=aimd,cubic").identity());
    assert_eq!(unused[0], unused[1], "a law that nobody asks for changes nothing");
}
