//! PIE in front of a wired bottleneck: the queueing delay of long flows, and marks.

use crate::support::SpecBuilder;
use crate::support::bottleneck::{bottleneck, goodput_mbps, queueing_ms};
use hopline_queue::{PieConfig, SignalAction};
use hopline_sim::simulate;
use hopline_sim::spec::Discipline;
use hopline_transport::tcp::{Config, EcnMode};

#[test]
fn pie_holds_its_target_with_cubic_flows() {
    for flows in [1, 4, 16] {
        let tail = simulate(&bottleneck(flows, Config::linux(), Discipline::DropTail), 1);
        assert!(queueing_ms(&tail, 0.5) > 900.0, "{}", queueing_ms(&tail, 0.5));
        for config in [PieConfig::RFC8033, PieConfig::LINUX] {
            let pie = simulate(&bottleneck(flows, Config::linux(), Discipline::Pie(config)), 1);
            let delays = [0.5, 0.95].map(|quantile| queueing_ms(&pie, quantile));
            let share = goodput_mbps(&pie) / goodput_mbps(&tail);
            let early = pie.nodes[1].drops.early;
            println!(
                "{flows} flows: {delays:.1?} ms, {:.2} Mb/s ({share:.3}), {early} drops",
                goodput_mbps(&pie)
            );
            assert!((12.0..17.0).contains(&delays[0]), "{flows} flows: median {} ms", delays[0]);
            assert!(delays[1] < 30.0, "{flows} flows: 95 % {} ms", delays[1]);
            assert!(share > 0.97, "{flows} flows: {share} of the goodput");
            assert!(early > 10 && pie.nodes[1].drops.queue_full == 0);
        }
    }
}

#[test]
fn pie_marks_ecn_capable_packets() {
    let mark = PieConfig { action: SignalAction::Mark, ..PieConfig::RFC8033 };
    let outcome =
        simulate(&bottleneck(4, Config::linux().with_ecn(EcnMode::Request), Discipline::Pie(mark)), 1);
    let marks = outcome.nodes[1].marks;
    assert!(marks > 100, "{marks} marks");
    let retransmissions: u64 = outcome.flows[..4].iter().map(|flow| flow.retransmissions).sum();
    assert_eq!(retransmissions, 0, "only probes were dropped");
    assert!((12.0..17.0).contains(&queueing_ms(&outcome, 0.5)), "{}", queueing_ms(&outcome, 0.5));
}

#[test]
fn pie_is_deterministic() {
    let spec = bottleneck(2, Config::linux(), Discipline::Pie(PieConfig::LINUX)).warmup(0.0).seconds(10);
    assert_eq!(simulate(&spec, 1).fingerprint, simulate(&spec, 1).fingerprint);
    assert_ne!(simulate(&spec, 1).fingerprint, simulate(&spec, 2).fingerprint);
}
