//! One run, and concurrent runs.

use crate::peer::{Failure, Peer};
use crate::plan::{Condition, Plan};
use crate::talk::{Crowd, Hosts, Nature, crowd};
use crate::variation::capacity_bits;
use hopline_core::Instant;
use hopline_link::{Emulation, Opportunities};
use hopline_testkit::NamespaceLink;
use hopline_testkit::namespace::LinkStats;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use versus::pool;
use versus::table::median;

/// Result of one run. Packets are counted on the link, from A to B.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measured {
    pub(crate) peer: String,
    pub(crate) rate_mbps: u64,
    pub(crate) delay_ms: u64,
    pub(crate) condition: String,
    pub(crate) seed: u64,
    /// Flows that began together.
    pub(crate) flows: u16,
    /// Flows with an error, such as a connection that timed out.
    pub(crate) failed: usize,
    /// Goodput of B's application, from the first attempt to connect, sum of all flows, Mb/s.
    pub(crate) goodput_mbps: f64,
    /// Goodput as a share of the bits of IP packets that the link could carry in the time, per cent.
    pub(crate) capacity_pct: f64,
    /// Jain's index of the flows' goodputs: 1 if all are equal, 1 / n if one has all.
    pub(crate) jain: f64,
    /// Lowest goodput of a flow, as a share of the mean, per cent.
    pub(crate) lowest_pct: f64,
    /// Packets sent by A for each full packet's worth delivered to B's application.
    pub(crate) packets_per_delivered: f64,
    /// Bytes sent by A, IP headers included, for each byte delivered to B's application.
    pub(crate) bytes_per_byte: f64,
    /// Share of A's packets dropped by the full queue, per cent.
    pub(crate) queue_drop_pct: f64,
    /// Share of the remaining packets that was lost, per cent.
    pub(crate) lost_pct: f64,
    /// Smoothed round-trip time at the end, as reported by the transport, median of the flows, ms.
    pub(crate) srtt_ms: Option<f64>,
    /// Mean time of A's packets in the queue, ms.
    pub(crate) queue_wait_ms: f64,
    pub(crate) link_late_mean_ms: f64,
    pub link_late_p99_ms: f64,
    pub(crate) link_late_max_ms: f64,
    pub link_late_over_1ms_pct: f64,
    /// `true` if the link was late beyond its bound in all attempts.
    pub(crate) late: bool,
}

/// A run of the plan.
struct Job<'a> {
    peer: &'a dyn Peer,
    condition: Condition,
    seed: u64,
}

/// Does all runs over `conditions`, those of each peer and condition together, by seed; `parallel` at once, or as
/// many as the bottleneck allows. Variations by a trace have `trace`.
pub(crate) fn all(
    peers: &[Box<dyn Peer>],
    plan: &Plan,
    conditions: &[Condition],
    trace: &Arc<Opportunities>,
    parallel: Option<NonZeroUsize>,
) -> Result<Vec<Measured>, Failure> {
    let mut measured = Vec::new();
    for conditions in conditions.chunk_by(|a, b| a.bottleneck == b.bottleneck) {
        let bottleneck = conditions[0].bottleneck;
        let parallel = parallel.map_or(bottleneck.parallel, NonZeroUsize::get);
        let seconds = plan.seconds(bottleneck);
        let jobs = jobs(peers, plan, conditions);
        eprintln!("{} runs of {seconds} s, {parallel} at once", jobs.len());
        measured.extend(pool::all(&jobs, parallel, |job| {
            pool::on_time(|| one(job, trace, seconds), |measured| measured.late)
        })?);
    }
    Ok(measured)
}

fn jobs<'a>(peers: &'a [Box<dyn Peer>], plan: &Plan, conditions: &[Condition]) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for condition in conditions {
        for peer in peers {
            for seed in 1..=plan.runs(peer.as_ref(), condition) {
                jobs.push(Job { peer: peer.as_ref(), condition: *condition, seed });
            }
        }
    }
    jobs
}

fn one(job: &Job, trace: &Arc<Opportunities>, seconds: f64) -> Result<Measured, Failure> {
    let Condition { bottleneck, delay_ms, flows, .. } = job.condition;
    let [forward, back] = job.condition.link(trace);
    let link = Link(NamespaceLink::new(forward.clone(), back, job.seed)?);
    let nature = Nature {
        // Each flow's share.
        rate: bottleneck.rate / u64::from(flows),
        round_trip: Duration::from_millis(2 * delay_ms),
    };
    let of = format!("{} at {}, {}", job.peer.name(), job.condition.link_name(), job.condition.name());
    let result = crowd(&link, job.peer, nature, flows, Duration::from_secs_f64(seconds))
        .map_err(|e| format!("{of}: {e}"))?;
    // A single flow that fails ends the measurement; in a crowd, a connection may time out.
    if let Some(failure) = result.failures.first().filter(|_| result.failures.len() == usize::from(flows)) {
        return Err(format!("{of}: {failure}").into());
    }
    Ok(measured(job, &forward, seconds, &result))
}

/// Two hosts and the emulated link between them.
struct Link(NamespaceLink);

impl Hosts for Link {
    type Reading = (Instant, LinkStats);

    fn address_called(&self) -> Ipv4Addr {
        self.0.address_b()
    }

    fn in_a<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.0.run_in_a(what)
    }

    fn in_b<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.0.run_in_b(what)
    }

    fn read(&self) -> Self::Reading {
        (self.0.now(), self.0.stats())
    }
}

fn measured(job: &Job, way: &Emulation, seconds: f64, result: &Crowd<(Instant, LinkStats)>) -> Measured {
    let [(begin, _), (end, stats)] = &result.readings;
    let (forward, late) = (stats.forward, stats.lateness);
    let bytes: u64 = result.bytes.iter().sum();
    let useful = (bytes as f64).max(1.0);
    let share = |n: u64, of: u64| n as f64 / of.max(1) as f64 * 100.0;
    let ms = |d: hopline_core::Duration| d.as_secs_f64() * 1e3;
    let srtts: Vec<f64> = result.srtts.iter().flatten().map(|d| d.as_secs_f64() * 1e3).collect();
    let lowest = result.bytes.iter().min().copied().unwrap_or_default();
    Measured {
        peer: job.peer.name().to_owned(),
        rate_mbps: job.condition.bottleneck.rate / 1_000_000,
        delay_ms: job.condition.delay_ms,
        condition: job.condition.name(),
        seed: job.seed,
        flows: job.condition.flows,
        failed: result.failures.len(),
        goodput_mbps: bytes as f64 * 8.0 / seconds / 1e6,
        capacity_pct: bytes as f64 * 8.0 / capacity_bits(way, *begin, *end).max(1.0) * 100.0,
        jain: jain(&result.bytes),
        lowest_pct: share(lowest * result.bytes.len() as u64, bytes),
        packets_per_delivered: forward.sent as f64 * job.peer.payload() / useful,
        bytes_per_byte: forward.sent_bytes as f64 / useful,
        queue_drop_pct: share(forward.queue_drops, forward.sent),
        lost_pct: share(forward.losses, forward.sent - forward.queue_drops),
        srtt_ms: (!srtts.is_empty()).then(|| median(srtts)),
        queue_wait_ms: ms(forward.mean_queueing_delay()),
        link_late_mean_ms: ms(late.mean),
        link_late_p99_ms: ms(late.p99),
        link_late_max_ms: ms(late.max),
        link_late_over_1ms_pct: late.over_1_ms * 100.0,
        late: late.is_late(),
    }
}

/// Returns Jain's fairness index; 1 if no flow got anything, as all are equal.
fn jain(bytes: &[u64]) -> f64 {
    let sum: f64 = bytes.iter().map(|&bytes| bytes as f64).sum();
    let squares: f64 = bytes.iter().map(|&bytes| (bytes as f64).powi(2)).sum();
    if squares > 0.0 { sum * sum / (bytes.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equal_flows_and_the_share_of_the_flows_that_have_all() {
        assert_eq!(jain(&[7, 7, 7, 7]), 1.0);
        assert_eq!(jain(&[9, 0, 0, 0]), 0.25);
        assert_eq!(jain(&[1, 3]), 0.8);
        assert_eq!([jain(&[5]), jain(&[0, 0])], [1.0, 1.0]);
    }
}
