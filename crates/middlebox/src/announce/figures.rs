//! Metrics of the announcement service.

use crate::service::Metric;
use hopline_proxy::announce::{AnnounceAction, TransportSupport};

/// Counters of handshake packets, by the action taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    announced: u64,
    received: u64,
    answered: u64,
    learned_tpa: u64,
    learned_tcp: u64,
    unchanged: u64,
    /// Packets that did not cross the interface, or that the kernel had altered before they reached the queue.
    pub(super) ineligible: u64,
}

impl Counts {
    pub(super) const fn record(&mut self, done: AnnounceAction) {
        let count = match done {
            AnnounceAction::SynMarked => &mut self.announced,
            AnnounceAction::MarkRead => &mut self.received,
            AnnounceAction::SynAckMarked => &mut self.answered,
            AnnounceAction::Learned(_, TransportSupport::Tpa) => &mut self.learned_tpa,
            AnnounceAction::Learned(_, TransportSupport::TcpOnly) => &mut self.learned_tcp,
            AnnounceAction::Unchanged => &mut self.unchanged,
        };
        *count += 1;
    }

    /// Returns the metrics. `troubles`: malformed messages of the kernel, and verdicts that it rejected.
    pub(super) fn metrics(&self, troubles: [u64; 2]) -> Vec<Metric> {
        let [malformed, refused] = troubles;
        vec![
            Metric::counter("announced_syns", "SYNs that were marked: here is TPA", self.announced),
            Metric::counter("heard_syns", "SYNs that came marked", self.received),
            Metric::counter("answered_syns", "answers to SYNs that say: here too", self.answered),
            Metric::counter("tpa_answers", "answers of hosts that speak TPA", self.learned_tpa),
            Metric::counter("tcp_only_answers", "answers of hosts that do not", self.learned_tcp),
            Metric::counter("untouched_syns", "SYNs, and answers, that passed as they were", self.unchanged),
            Metric::counter(
                "unseen_syns",
                "packets of other interfaces, or unfinished: nobody looked",
                self.ineligible,
            ),
            Metric::counter(
                "announcer_messages_malformed",
                "messages of the kernel that were none",
                malformed,
            ),
            Metric::counter("announcer_verdicts_refused", "verdicts that the kernel did not take", refused),
        ]
    }
}
