//! CoDel and FQ-CoDel in front of links: the waiting times of packets, and the flows that wait for each
//! other.

use crate::support::{self, SpecBuilder};
use hopline_core::Duration;
use hopline_queue::{CoDelConfig, FqCoDelConfig, SignalAction};
use hopline_sim::spec::Discipline;
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp::{Config, EcnMode};

/// Time of a full packet on the slow link is 6 ms.
const CODEL: CoDelConfig = CoDelConfig { target: Duration::from_millis(15), ..CoDelConfig::RFC8289 };
const FQ: FqCoDelConfig = FqCoDelConfig { codel: CODEL, ..FqCoDelConfig::RFC8290 };

/// A queue of 500 packets before a slow link: a transfer, and a packet each 20 ms beside it.
fn bottleneck(over: Config, discipline: Discipline) -> Spec {
    support::bottleneck(500, discipline)
        .bulk(0, 2, over)
        .cbr(0, 2, 160, Duration::from_millis(20))
        .seconds(30)
}

fn goodput_bps(outcome: &Outcome) -> f64 {
    8.0 * outcome.flows[0].bytes_received as f64 / 30.0
}

/// Returns the 95th percentile of the packet delay of a flow, in milliseconds.
fn delay_ms(outcome: &Outcome, flow: usize) -> f64 {
    let delays = &outcome.flows[flow].data.delays;
    1e3 * delays.quantile(0.95).expect("packets arrived").as_secs_f64()
}

#[test]
fn codel_keeps_the_queue_short_and_the_link_busy() {
    let tail = simulate(&bottleneck(Config::linux(), Discipline::DropTail), 1);
    let codel = simulate(&bottleneck(Config::linux(), Discipline::CoDel(CODEL)), 1);
    assert!(delay_ms(&tail, 1) > 2000.0, "{}", delay_ms(&tail, 1));
    assert!(delay_ms(&codel, 1) < 60.0, "{}", delay_ms(&codel, 1));
    assert!(goodput_bps(&codel) > 0.9 * goodput_bps(&tail));
    assert!(codel.nodes[1].drops.early > 5);
    assert_eq!(codel.nodes[1].drops.queue_full, 0);
}

#[test]
fn codel_marks_ecn_capable_packets() {
    let mark = CoDelConfig { action: SignalAction::Mark, ..CODEL };
    let outcome =
        simulate(&bottleneck(Config::linux().with_ecn(EcnMode::Request), Discipline::CoDel(mark)), 1);
    let node = &outcome.nodes[1];
    assert!(node.marks > 5, "{} marks", node.marks);
    assert_eq!(outcome.flows[0].retransmissions, 0, "only datagrams were dropped");
}

/// Slow start overflows the queue while packets are marked, so marks and losses come together.
#[test]
fn marks_beside_losses_do_not_raise_the_window() {
    let mark = CoDelConfig { action: SignalAction::Mark, ..CoDelConfig::RFC8289 };
    let mut link = support::link(0, 1, 20_000_000, Duration::from_millis(25), 83);
    link.queue.discipline = Discipline::CoDel(mark);
    let over = Config::linux().with_receive_buffer(64 << 20).with_ecn(EcnMode::Request);
    let flow = simulate(&support::wired(2).link(link).bulk(0, 1, over).seconds(12), 1).flows.remove(0);
    assert!(flow.goodput_bps() > 17e6, "{:.3e} bit/s", flow.goodput_bps());
    assert!(flow.retransmissions < 200, "{} of {}", flow.retransmissions, flow.segments_sent);
}

#[test]
fn with_fq_codel_a_sparse_flow_has_no_queueing_delay() {
    let outcome = simulate(&bottleneck(Config::linux(), Discipline::FqCoDel(FQ)), 1);
    // 20 ms and 1 ms of wire, 0.75 ms of its own; 6 ms for the packet on the link, and 6 for the round in
    // which a queue that was emptied just now waits for its turn (RFC 8290 §4.2).
    assert!(delay_ms(&outcome, 1) < 34.0, "{}", delay_ms(&outcome, 1));
    assert_eq!(outcome.flows[1].data.lost, 0);
    assert!(goodput_bps(&outcome) > 1.7e6, "{}", goodput_bps(&outcome));
}

#[test]
fn every_discipline_is_deterministic() {
    for discipline in [Discipline::CoDel(CODEL), Discipline::FqCoDel(FQ)] {
        let spec = bottleneck(Config::linux(), discipline);
        assert_eq!(simulate(&spec, 1).fingerprint, simulate(&spec, 1).fingerprint);
    }
}
