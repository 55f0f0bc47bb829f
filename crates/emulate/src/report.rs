//! Results of an emulation.

use crate::flows::RealFlows;
use crate::links::RecordedLink;
use hopline_core::Duration;
use hopline_linux::sched::Priority;
use hopline_sim::TapCounts;
use hopline_sim::outcome::{DropCounts, Outcome};
use hopline_tools::link::Lateness;
use std::fmt;

/// Result of an emulation in real time.
#[derive(Clone, Debug)]
pub struct Report {
    /// The network. Real time is its virtual time.
    pub network: NetworkReport,
    /// Lateness of the events of the simulated network. Results are only valid if it is small.
    pub lateness: Lateness,
    /// CPU time of the thread that carries the frames.
    pub cpu_time: Duration,
    /// Scheduling priority of the thread that carries the frames.
    pub priority: Priority,
}

/// Result of the network of an emulation.
#[derive(Clone, Debug)]
pub struct NetworkReport {
    /// Outcome of the simulated network, with its simulated flows.
    pub outcome: Outcome,
    /// Frames of each host, by node.
    pub hosts: Vec<HostReport>,
    /// Flows of real programs.
    pub flows: RealFlows,
    /// Delay and loss of links, if they were measured.
    pub links: Vec<RecordedLink>,
    /// Reason that the network stopped before its time: the failure of a user-defined algorithm.
    pub failure: Option<String>,
}

/// Frames of a host.
#[derive(Clone, Debug)]
pub struct HostReport {
    /// Name of the node.
    pub name: String,
    /// Fate of the frames that its kernel has sent, and number of those that were handed to it.
    pub tap: TapCounts,
    /// Frames that its kernel refused, for instance since a program has brought the interface down.
    pub refused: u64,
}

impl Report {
    /// Returns whether the emulation was on time: at most 2 % of the events were more than 1 ms late.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.network.failure.is_none() && !self.lateness.is_late()
    }
}

/// A line: number of nodes, time, and the fate of all frames.
impl fmt::Display for NetworkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: fn(&TapCounts) -> u64| self.hosts.iter().map(|host| of(&host.tap)).sum::<u64>();
        let time_s = self.outcome.sim_time.as_secs_f64();
        let nodes = self.hosts.len();
        write!(f, "{nodes} node{}, {time_s:.1} s: ", if nodes == 1 { "" } else { "s" })?;
        write!(f, "{} frames sent, {} delivered, ", sum(|tap| tap.accepted), sum(|tap| tap.delivered))?;
        write!(f, "{} dropped", sum(|tap| tap.dropped.total()))?;
        let drops =
            |of: fn(&DropCounts) -> u64| self.hosts.iter().map(|host| of(&host.tap.dropped)).sum::<u64>();
        let reasons = [
            (drops(|drops| drops.queue_full), "by full queues"),
            (drops(|drops| drops.early + drops.neighborhood), "early"),
            (drops(|drops| drops.retry_limit), "after the last retry"),
            (drops(|drops| drops.unresolved + drops.no_route), "for nodes out of reach"),
            (drops(|drops| drops.link_error), "damaged, or broadcast and not received"),
            (drops(|drops| drops.outage + drops.policed), "in outages or by a policer"),
        ];
        let mut separator = ": ";
        for (count, words) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {words}")?;
            separator = ", ";
        }
        for (count, words) in [
            (sum(|tap| tap.held), "under way at the end"),
            (sum(|tap| tap.too_long + tap.malformed), "refused by the network"),
            (self.hosts.iter().map(|host| host.refused).sum(), "refused by kernels"),
        ] {
            if count > 0 {
                write!(f, "; {count} {words}")?;
            }
        }
        Ok(())
    }
}

/// Three lines: the network, lateness and verdict.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lateness { packets, p50, p99, max, over_1_ms, .. } = self.lateness;
        let [p50, p99, max] = [p50, p99, max].map(|time| 1e3 * time.as_secs_f64());
        let priority = match self.priority {
            Priority::RealTime => "real-time priority",
            Priority::Ordinary => "ordinary priority",
        };
        writeln!(f, "{}", self.network)?;
        writeln!(
            f,
            "{packets} events, late by {p50:.3} ms at p50, {p99:.3} ms at p99, {max:.1} ms at most; {priority}"
        )?;
        match &self.network.failure {
            Some(failure) => write!(f, "INVALID: {failure}"),
            None if self.is_valid() => {
                write!(f, "valid: {:.2} % of events more than 1 ms late", 100.0 * over_1_ms)
            }
            None => write!(f, "INVALID: {:.1} % of events more than 1 ms late", 100.0 * over_1_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(late: f64) -> Report {
        let outcome = Outcome {
            fingerprint: 0,
            sim_time: Duration::from_millis(2_500),
            warmup: Duration::ZERO,
            events: 0,
            flows: Vec::new(),
            nodes: Vec::new(),
        };
        let host = |name: &str, tap| HostReport { name: name.into(), tap, refused: 0 };
        let dropped = DropCounts { queue_full: 2, retry_limit: 3, ..DropCounts::default() };
        let sent = TapCounts { accepted: 10, delivered: 4, dropped, held: 1, ..TapCounts::default() };
        let [p50, p99, max] = [20, 300, 4_000].map(Duration::from_micros);
        let other = TapCounts { accepted: 5, delivered: 5, ..TapCounts::default() };
        let network = NetworkReport {
            outcome,
            hosts: vec![host("n0", sent), host("n1", other)],
            flows: RealFlows::default(),
            links: Vec::new(),
            failure: None,
        };
        Report {
            network,
            lateness: Lateness { packets: 700, mean: p50, p50, p99, max, over_1_ms: late },
            cpu_time: Duration::from_millis(30),
            priority: Priority::RealTime,
        }
    }

    #[test]
    fn a_report_has_the_fate_of_all_frames_and_a_verdict() {
        assert_eq!(
            report(0.02).to_string(),
            "2 nodes, 2.5 s: 15 frames sent, 9 delivered, 5 dropped: 2 by full queues, 3 after the last retry; \
             1 under way at the end\n\
             700 events, late by 0.020 ms at p50, 0.300 ms at p99, 4.0 ms at most; real-time priority\n\
             valid: 2.00 % of events more than 1 ms late"
        );
        assert!(report(0.02).is_valid());
    }

    #[test]
    fn more_than_two_percent_late_events_or_a_failure_are_invalid() {
        let late = report(0.031);
        assert!(!late.is_valid());
        assert!(late.to_string().ends_with("\nINVALID: 3.1 % of events more than 1 ms late"));
        let mut failed = report(0.0);
        failed.network.failure = Some("own:mine failed".into());
        assert!(!failed.is_valid() && failed.to_string().ends_with("\nINVALID: own:mine failed"));
    }

    #[test]
    fn what_kernels_and_the_network_refuse_is_named() {
        let mut report = report(0.0);
        report.network.hosts[1].refused = 6;
        report.network.hosts[1].tap.too_long = 7;
        let said = report.to_string();
        assert!(said.contains("; 7 refused by the network; 6 refused by kernels\n"), "{said}");
    }
}
