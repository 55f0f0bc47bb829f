//! One run, and concurrent runs.

use crate::peer::{Failure, Peer};
use crate::plan::{Condition, Plan};
use crate::talk::{Hosts, Nature, talk};
use hopline_testkit::NamespaceLink;
use hopline_testkit::namespace::LinkStats;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::time::Duration;
use versus::pool;

/// Result of one run. Packets are counted on the link, from A to B.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) peer: String,
    pub(crate) rate_mbps: u64,
    pub(crate) delay_ms: u64,
    pub(crate) condition: String,
    pub(crate) seed: u64,
    /// Goodput of B's application, from the first attempt to connect, Mb/s.
    pub(crate) goodput_mbps: f64,
    /// Packets sent by A for each full packet's worth delivered to B's application.
    pub(crate) packets_per_delivered: f64,
    /// Bytes sent by A, IP headers included, for each byte delivered to B's application.
    pub(crate) bytes_per_byte: f64,
    /// Share of A's packets dropped by the full queue, per cent.
    pub(crate) queue_drop_pct: f64,
    /// Share of the remaining packets that was lost, per cent.
    pub(crate) lost_pct: f64,
    /// Smoothed round-trip time at the end, as reported by the transport, ms.
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

/// Does all runs of `plan`, those of each peer and condition together, by seed; `parallel` at once, or as
/// many as the bottleneck allows.
pub(crate) fn all(
    peers: &[Box<dyn Peer>],
    plan: &Plan,
    parallel: Option<NonZeroUsize>,
) -> Result<Vec<Measured>, Failure> {
    let mut measured = Vec::new();
    for conditions in plan.conditions.chunk_by(|a, b| a.bottleneck == b.bottleneck) {
        let parallel = parallel.map_or(conditions[0].bottleneck.parallel, NonZeroUsize::get);
        let jobs = jobs(peers, plan, conditions);
        eprintln!("{} runs of {} s, {parallel} at once", jobs.len(), plan.seconds);
        measured.extend(pool::all(&jobs, parallel, |job| {
            pool::on_time(|| one(job, plan.seconds), |measured| measured.late)
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

fn one(job: &Job, seconds: f64) -> Result<Measured, Failure> {
    let [forward, back] = job.condition.link();
    let link = Link(NamespaceLink::new(forward, back, job.seed)?);
    let nature = Nature {
        rate: job.condition.bottleneck.rate,
        round_trip: Duration::from_millis(2 * job.condition.delay_ms),
    };
    let talk = talk(&link, job.peer, nature, Duration::from_secs_f64(seconds)).map_err(|e| {
        format!("{} at {}, {}: {e}", job.peer.name(), job.condition.link_name(), job.condition.name())
    })?;
    let [_, stats] = &talk.readings;
    Ok(measured(job, seconds, talk.bytes, talk.srtt, stats))
}

/// Two hosts and the emulated link between them.
struct Link(NamespaceLink);

impl Hosts for Link {
    type Reading = LinkStats;

    fn address_called(&self) -> Ipv4Addr {
        self.0.address_b()
    }

    fn in_a<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.0.run_in_a(what)
    }

    fn in_b<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        self.0.run_in_b(what)
    }

    fn read(&self) -> LinkStats {
        self.0.stats()
    }
}

fn measured(job: &Job, seconds: f64, bytes: u64, srtt: Option<Duration>, stats: &LinkStats) -> Measured {
    let (forward, late) = (stats.forward, stats.lateness);
    let useful = (bytes as f64).max(1.0);
    let share = |n: u64, of: u64| n as f64 / of.max(1) as f64 * 100.0;
    let ms = |d: hopline_core::Duration| d.as_secs_f64() * 1e3;
    Measured {
        peer: job.peer.name().to_owned(),
        rate_mbps: job.condition.bottleneck.rate / 1_000_000,
        delay_ms: job.condition.delay_ms,
        condition: job.condition.name(),
        seed: job.seed,
        goodput_mbps: bytes as f64 * 8.0 / seconds / 1e6,
        packets_per_delivered: forward.sent as f64 * job.peer.payload() / useful,
        bytes_per_byte: forward.sent_bytes as f64 / useful,
        queue_drop_pct: share(forward.queue_drops, forward.sent),
        lost_pct: share(forward.losses, forward.sent - forward.queue_drops),
        srtt_ms: srtt.map(|d| d.as_secs_f64() * 1e3),
        queue_wait_ms: ms(forward.mean_queueing_delay()),
        link_late_mean_ms: ms(late.mean),
        link_late_p99_ms: ms(late.p99),
        link_late_max_ms: ms(late.max),
        link_late_over_1ms_pct: late.over_1_ms * 100.0,
        late: late.is_late(),
    }
}
