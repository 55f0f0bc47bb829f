//! A wired bottleneck behind a queue discipline, with transfers and a probe of the queueing delay.

use super::{SpecBuilder, link, wired};
use hopline_core::Duration;
use hopline_sim::spec::Discipline;
use hopline_sim::{Outcome, Spec};
use hopline_transport::tcp::Config;

/// Length of a run. The first ten seconds are not measured.
const SECONDS: u64 = 60;

/// A link of 20 Mb/s and 20 ms behind a queue of 2000 packets: `flows` transfers, and a probe each 10 ms beside them.
pub(crate) fn bottleneck(flows: usize, over: Config, discipline: Discipline) -> Spec {
    let mut slow = link(1, 2, 20_000_000, Duration::from_millis(20), 2000);
    slow.queue.discipline = discipline;
    let network = wired(3).link(link(0, 1, 1_000_000_000, Duration::from_millis(1), 10_000)).link(slow);
    let network = (0..flows).fold(network, |network, _| network.bulk(0, 2, over));
    network.cbr(0, 2, 160, Duration::from_millis(10)).warmup(10.0).seconds(SECONDS)
}

/// Returns the queueing delay that a quantile of the probes had, in milliseconds. 21 ms are of the links; the probe and
/// half of the packet in service take 0.4 ms.
pub(crate) fn queueing_ms(outcome: &Outcome, quantile: f64) -> f64 {
    let delays = &outcome.flows.last().expect("the probes").data.delays;
    1e3 * delays.quantile(quantile).expect("probes arrived").as_secs_f64() - 21.4
}

/// Returns the goodput of all flows together.
pub(crate) fn goodput_mbps(outcome: &Outcome) -> f64 {
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.bytes_received).sum();
    8e-6 * bytes as f64 / (SECONDS - 10) as f64
}
