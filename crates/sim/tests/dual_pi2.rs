//! DualPI2 in front of a wired bottleneck: Classic flows alone.

use crate::support::{SpecBuilder, link, wired};
use hopline_core::Duration;
use hopline_queue::DualPi2Config;
use hopline_queue::dual_pi2::Scheduler;
use hopline_sim::spec::Discipline;
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp::{Config, EcnMode};

/// Length of a run. The first ten seconds are not measured.
const SECONDS: u64 = 60;

/// A link of 20 Mb/s and 20 ms behind a queue of 2000 packets: `flows` transfers, and a probe each 10 ms beside them.
fn bottleneck(flows: usize, over: Config, discipline: Discipline) -> Spec {
    let mut slow = link(1, 2, 20_000_000, Duration::from_millis(20), 2000);
    slow.queue.discipline = discipline;
    let network = wired(3).link(link(0, 1, 1_000_000_000, Duration::from_millis(1), 10_000)).link(slow);
    let network = (0..flows).fold(network, |network, _| network.bulk(0, 2, over));
    network.cbr(0, 2, 160, Duration::from_millis(10)).warmup(10.0).seconds(SECONDS)
}

/// Returns the queueing delay that a quantile of the probes had, in milliseconds. 21 ms are of the links; the probe and
/// half of the packet in service take 0.4 ms.
fn queueing_ms(outcome: &Outcome, quantile: f64) -> f64 {
    let delays = &outcome.flows.last().expect("the probes").data.delays;
    1e3 * delays.quantile(quantile).expect("probes arrived").as_secs_f64() - 21.4
}

fn goodput_mbps(outcome: &Outcome) -> f64 {
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.bytes_received).sum();
    8e-6 * bytes as f64 / (SECONDS - 10) as f64
}

#[test]
fn dualpi2_holds_its_target_with_classic_flows() {
    for flows in [1, 4, 16] {
        for config in [DualPi2Config::RFC9332, DualPi2Config::LINUX] {
            let outcome = simulate(&bottleneck(flows, Config::linux(), Discipline::DualPi2(config)), 1);
            let delays = [0.5, 0.95].map(|quantile| queueing_ms(&outcome, quantile));
            let node = &outcome.nodes[1];
            println!(
                "{flows} flows: {delays:.1?} ms, {:.2} Mb/s, {} drops",
                goodput_mbps(&outcome),
                node.drops.early
            );
        }
    }
}

#[test]
fn dualpi2_marks_classic_flows_with_ecn() {
    let outcome = simulate(
        &bottleneck(
            4,
            Config::linux().with_ecn(EcnMode::Request),
            Discipline::DualPi2(DualPi2Config::RFC9332),
        ),
        1,
    );
    let marks = outcome.nodes[1].marks;
    let delay = queueing_ms(&outcome, 0.5);
    let retransmissions: u64 = outcome.flows[..4].iter().map(|flow| flow.retransmissions).sum();
    assert!((12.0..17.0).contains(&delay), "{delay} ms");
    assert!(marks > 100 && retransmissions == 0, "{marks} marks, {retransmissions} retransmissions");
}

#[test]
fn dualpi2_is_deterministic() {
    for scheduler in
        [DualPi2Config::RFC9332.scheduler, Scheduler::TimeShiftedFifo { shift: DualPi2Config::TIME_SHIFT }]
    {
        let config = DualPi2Config { scheduler, ..DualPi2Config::RFC9332 };
        let spec = bottleneck(2, Config::linux(), Discipline::DualPi2(config)).warmup(0.0).seconds(10);
        assert_eq!(simulate(&spec, 1).fingerprint, simulate(&spec, 1).fingerprint);
    }
}
