//! User-defined algorithms in an experiment: a failure ends only its own run, and a run that is not
//! repeatable fails.

use hopline_config::source::Source;
use hopline_lab::execute::{MemorySink, execute};
use hopline_lab::experiment::{ExperimentError, RunOptions, in_directory};
use hopline_lab::plan::Plan;
use hopline_lab::record::Record;
use hopline_lab::run::{NoObserver, RunError, traced, untraced};
use hopline_lab::store::{Start, StoreError};
use hopline_scenario::{CustomAlgorithms, Scenario, parse_vary};
use hopline_sim::NoTrace;
use hopline_transport::tcp::{CustomCcAck, CustomCcLoss, CustomCcTimeout, CustomCongestionControl};
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
struct FixedWindow<F>(F);

impl<F> std::fmt::Debug for FixedWindow<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Law")
    }
}

impl<F: FnMut(&CustomCcAck) -> Result<f64, String> + Send> CustomCongestionControl for FixedWindow<F> {
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
        (self.0)(ack)
    }

    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
        Ok(f64::from(loss.reduction_base_bytes) * 0.75)
    }

    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
        Ok(f64::from(timeout.reduction_base_bytes) / 2.0)
    }
}

fn constant_growth(ack: &CustomCcAck) -> Result<f64, String> {
    Ok(ack.state.cwnd_bytes + 100.0)
}

fn machines(digest: &str) -> CustomAlgorithms {
    let calls = Arc::new(AtomicU32::new(0));
    CustomAlgorithms::default()
        .with_congestion_control("steady", digest, |_seed| Ok(Box::new(FixedWindow(constant_growth))))
        .with_congestion_control("fails", "1", |_seed| {
            let mut left = 100;
            let law = move |ack: &CustomCcAck| {
                left -= 1;
                if left == 0 { Err("Traceback:\n  the 100th".to_owned()) } else { constant_growth(ack) }
            };
            Ok(Box::new(FixedWindow(law)))
        })
        .with_congestion_control("shares", "1", move |_seed| {
            let calls = calls.clone();
            let law = move |ack: &CustomCcAck| {
                let n = calls.fetch_add(1, Ordering::Relaxed);
                Ok(ack.state.cwnd_bytes + f64::from(n % 1000))
            };
            Ok(Box::new(FixedWindow(law)))
        })
}

fn scenario(machines: CustomAlgorithms) -> Scenario {
    let source = Arc::new(Source { name: "test.toml".into(), text: CHAIN.into() });
    Scenario::parse_with(source, PathBuf::new(), &[], machines).expect("a scenario")
}

fn plan(digest: &str, axis: &str) -> Plan {
    Plan::new(&scenario(machines(digest)), &[parse_vary(axis).expect("an axis")]).expect("a plan")
}

fn records(plan: &Plan) -> Vec<Record> {
    let mut memory = MemorySink::default();
    execute(plan, None, &mut memory, &NoObserver).expect("nobody interrupts");
    memory.into_records()
}

#[test]
fn a_failing_algorithm_ends_only_its_own_runs() {
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
fn a_nondeterministic_algorithm_is_detected() {
    for record in records(&plan("1", "tcp.congestion_control=own:shares")) {
        let why = record.result.expect_err("runs share a number");
        assert!(why.starts_with("the run came out differently when it was made once more"), "{why}");
        assert!(why.contains("Look into shares for random numbers"), "{why}");
    }
}

#[test]
fn a_single_run_fails_with_an_error() {
    let spec = |law: &str| {
        let settings =
            [hopline_config::document::Setting::parse("--set", &format!("tcp.congestion_control=own:{law}"))
                .unwrap()];
        scenario(machines("1")).with(&settings).unwrap().spec(1).unwrap()
    };
    assert!(untraced(&spec("steady"), 1, &NoObserver).is_ok());
    let failed = traced(&spec("fails"), 1, NoTrace, &NoObserver).map(|_| ()).unwrap_err();
    assert!(matches!(&failed, RunError::Failed(why) if why.ends_with("the 100th")), "{failed}");
    let shared = untraced(&spec("shares"), 1, &NoObserver).map(|_| ()).unwrap_err();
    assert!(
        matches!(&shared, RunError::NotRepeatable { machines, .. } if *machines == ["shares"]),
        "{shared}"
    );
}

#[test]
fn results_of_another_algorithm_of_the_same_name_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let run = |plan: &Plan| {
        let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
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
