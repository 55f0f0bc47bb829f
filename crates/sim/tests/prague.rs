//! Prague at a wired bottleneck: alone, beside CUBIC, and with another Prague, behind each kind of queue.

use crate::support::{SpecBuilder, link, wired};
use hopline_core::Duration;
use hopline_queue::{CoDelConfig, DualPi2Config, FqCoDelConfig, SignalAction};
use hopline_sim::spec::Discipline;
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp::{Config, CongestionControl, EcnMode, PragueConfig};

/// Length of a run. The first ten seconds are not measured.
const SECONDS: u64 = 60;

/// A link of 20 Mb/s behind a queue of `packets`, with a round trip of 20 ms, and a transfer for each configuration.
fn bottleneck(flows: &[Config], discipline: Discipline, packets: u16) -> Spec {
    let mut slow = link(1, 2, 20_000_000, Duration::from_millis(9), packets);
    slow.queue.discipline = discipline;
    let network = wired(3).link(link(0, 1, 1_000_000_000, Duration::from_millis(1), 10_000)).link(slow);
    let network = flows.iter().fold(network, |network, over| network.bulk(0, 2, *over));
    network.warmup(10.0).seconds(SECONDS)
}

fn prague() -> Config {
    Config::linux().with_prague(PragueConfig::DRAFT)
}

fn dual() -> Discipline {
    Discipline::DualPi2(DualPi2Config::RFC9332)
}

fn fq_codel() -> Discipline {
    let codel = CoDelConfig { action: SignalAction::Mark, ..CoDelConfig::RFC8289 };
    Discipline::FqCoDel(FqCoDelConfig { codel, ..FqCoDelConfig::RFC8290 })
}

/// Returns the rate of each flow in Mb/s.
fn rates(outcome: &Outcome) -> Vec<f64> {
    outcome.flows.iter().map(|flow| 8e-6 * flow.bytes_received as f64 / (SECONDS - 10) as f64).collect()
}

/// Returns the queueing delay that a quantile of the data of a flow had, in milliseconds: beyond 10 ms of the links and the
/// transmission of a packet.
fn queueing_ms(outcome: &Outcome, flow: usize, quantile: f64) -> f64 {
    let delays = &outcome.flows[flow].data.delays;
    1e3 * delays.quantile(quantile).expect("data arrived").as_secs_f64() - 10.6
}

/// Runs the flows and prints a row of the table in docs/protocols/prague.md.
#[expect(clippy::print_stdout, reason = "the rows are for the page")]
fn run(name: &str, flows: &[Config], discipline: Discipline, packets: u16) -> Outcome {
    let outcome = simulate(&bottleneck(flows, discipline, packets), 1);
    let delays: Vec<String> = (0..flows.len())
        .map(|f| format!("{:.1}, {:.1} ms", queueing_ms(&outcome, f, 0.5), queueing_ms(&outcome, f, 0.99)))
        .collect();
    let resent: Vec<u64> = outcome.flows.iter().map(|flow| flow.retransmissions).collect();
    println!("{name}: {:.2?} Mb/s, {delays:?}, resent {resent:?}", rates(&outcome));
    outcome
}

#[test]
fn prague_fills_the_link_with_a_queue_below_two_milliseconds_behind_dualpi2() {
    let outcome = run("dualpi2, prague", &[prague()], dual(), 2000);
    assert!(rates(&outcome)[0] > 19.0, "of 19.3 Mb/s");
    assert!(queueing_ms(&outcome, 0, 0.5) < 1.0 && queueing_ms(&outcome, 0, 0.99) < 2.0);
    assert_eq!(outcome.flows[0].retransmissions, 0);
}

#[test]
fn two_pragues_are_fair() {
    for (name, discipline) in [("dualpi2, two", dual()), ("fq-codel, two", fq_codel())] {
        let shares = rates(&run(name, &[prague(), prague()], discipline, 2000));
        assert!((0.95..1.05).contains(&(shares[0] / shares[1])), "{name}: {shares:?}");
    }
}

#[test]
fn prague_and_cubic_get_about_the_same_rate_behind_dualpi2() {
    // The coupled law (RFC 9332 §2.1): the ratio is 1.2 here, with a round trip of 20 ms and 37 ms.
    for (name, cubic) in [
        ("dualpi2, beside cubic", Config::linux()),
        ("dualpi2, beside cubic with ECN", Config::linux().with_ecn(EcnMode::Request)),
    ] {
        let outcome = run(name, &[prague(), cubic], dual(), 2000);
        let shares = rates(&outcome);
        assert!((1.0..1.4).contains(&(shares[0] / shares[1])), "{name}: {shares:?}");
        assert!(queueing_ms(&outcome, 0, 0.99) < 2.0 && queueing_ms(&outcome, 1, 0.5) > 10.0);
    }
}

#[test]
fn prague_has_half_of_the_link_beside_cubic_behind_fq_codel() {
    run("fq-codel, prague", &[prague()], fq_codel(), 2000);
    let shares = rates(&run("fq-codel, beside cubic", &[prague(), Config::linux()], fq_codel(), 2000));
    assert!((0.95..1.1).contains(&(shares[0] / shares[1])), "{shares:?}");
}

#[test]
fn prague_is_as_reno_behind_drop_tail() {
    let reno = Config::linux().with_congestion_control(CongestionControl::Reno);
    let alone = run("drop-tail, prague", &[prague()], Discipline::DropTail, 50);
    let shares = rates(&run("drop-tail, beside reno", &[prague(), reno], Discipline::DropTail, 50));
    run("drop-tail, two", &[prague(), prague()], Discipline::DropTail, 50);
    run("drop-tail, beside cubic", &[prague(), Config::linux()], Discipline::DropTail, 50);
    assert!(rates(&alone)[0] > 19.0 && alone.flows[0].retransmissions > 0);
    println!("ratio to reno {:.2}", shares[0] / shares[1]);
    assert!((0.6..1.5).contains(&(shares[0] / shares[1])), "{shares:?}");
}

#[test]
fn cubic_alone_is_the_reference() {
    for (name, discipline, packets) in [
        ("dualpi2, cubic", dual(), 2000),
        ("fq-codel, cubic", fq_codel(), 2000),
        ("drop-tail, cubic", Discipline::DropTail, 50),
    ] {
        let outcome = run(name, &[Config::linux()], discipline, packets);
        assert!(rates(&outcome)[0] > 18.5);
    }
}
