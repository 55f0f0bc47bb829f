//! DualPI2 in front of a wired bottleneck: Classic flows alone.

use crate::support::SpecBuilder;
use crate::support::bottleneck::{bottleneck, goodput_mbps, queueing_ms};
use hopline_queue::DualPi2Config;
use hopline_queue::dual_pi2::Scheduler;
use hopline_sim::simulate;
use hopline_sim::spec::Discipline;
use hopline_transport::tcp::{Config, EcnMode};

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
