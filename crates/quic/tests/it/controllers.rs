//! A controller that another program brings, in the shape of quinn's.

use crate::support::{WIRED, scenario};
use hopline_lab::run::{NoObserver, untraced};
use hopline_lab::user_defined::quinn_proto::RttEstimator;
use hopline_lab::user_defined::quinn_proto::congestion::{Controller, ControllerFactory};
use hopline_scenario::CustomAlgorithms;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// Keeps so many bytes in flight.
#[derive(Clone, Debug)]
struct Fixed(u64);

impl ControllerFactory for Fixed {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Self::clone(&self))
    }
}

impl Controller for Fixed {
    fn on_ack(&mut self, now: Instant, sent: Instant, _bytes: u64, _limited: bool, rtt: &RttEstimator) {
        assert!(now >= sent && rtt.get() >= rtt.min(), "times are those of the simulation");
    }

    fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _persistent: bool, _lost: u64) {}

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        self.0
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn machines() -> CustomAlgorithms {
    CustomAlgorithms::default()
        .with_quic_controller("half", "half 1", |_seed| Fixed(25_000))
        .with_quic_controller("random", "random 1", |seed| Fixed(10_000 + seed % 10_000))
}

#[test]
fn a_controller_is_chosen_by_name_and_named_in_the_results() {
    let scenario = scenario(WIRED, &["quic.congestion_control=own:half"], machines());
    let spec = scenario.spec(1).unwrap_or_else(|e| panic!("{e}"));
    let used: Vec<_> = spec.custom_algorithms().into_iter().map(|used| (used.name, used.digest)).collect();
    assert_eq!(used, [("half".to_owned(), "half 1".to_owned())]);
    assert_eq!(scenario.parameters()["own_machines"]["quic.congestion_control = own:half"], "half 1");
    let run = untraced(&spec, 1, &NoObserver).expect("it is repeatable");
    let mbps = run.outcome.flows[0].goodput_bps() * 1e-6;
    // 25 kB in a round trip of 41 ms, which includes one packet's time on the link.
    assert!((4.2..=5.1).contains(&mbps), "{mbps} Mb/s");
}

#[test]
fn a_seed_is_that_of_the_run() {
    let scenario = scenario(WIRED, &["quic.congestion_control=own:random"], machines());
    let spec = scenario.spec(1).unwrap_or_else(|e| panic!("{e}"));
    let goodput = |number| {
        let run = untraced(&spec, number, &NoObserver).expect("it is repeatable");
        run.outcome.flows[0].bytes_received
    };
    assert_eq!(goodput(1), goodput(1));
    assert_ne!(goodput(1), goodput(2));
}

#[test]
fn one_flow_may_have_it_and_another_one_of_quinns() {
    let two = format!(
        "{WIRED}[flow.quic]\ncongestion_control = \"own:half\"\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n"
    );
    let spec = scenario(&two, &[], machines()).spec(1).unwrap_or_else(|e| panic!("{e}"));
    let run = untraced(&spec, 1, &NoObserver).expect("it is repeatable");
    assert!(run.outcome.flows.iter().all(|flow| flow.bytes_received > 500_000), "{:?}", run.outcome.flows);
}
