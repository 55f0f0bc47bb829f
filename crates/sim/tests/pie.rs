//! PIE in front of a wired bottleneck: the queueing delay of long flows, and marks.

use crate::support::{SpecBuilder, link, wired};
use hopline_core::Duration;
use hopline_queue::{PieConfig, SignalAction};
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
