//! Metrics of the announcement service.

use crate::service::Metric;
use hopline_proxy::announce::{AnnounceAction, TransportSupport};

/// Counters of handshake packets, by the action taken on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    announced: u64,
    received: u64,
    answered: u64,
    learned_tpa: u64,
    learned_tcp: u64,
    unchanged: u64,
    /// Packets that did not cross the interface, or that reached the queue incomplete. They pass unchanged.
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

    /// Returns the metrics. `troubles`: numbers of malformed messages of the kernel, and of verdicts that it rejected.
    pub(super) fn metrics(&self, troubles: [u64; 2]) -> Vec<Metric> {
        let [malformed, refused] = troubles;
        vec![
            Metric::counter(
                "announced_syns",
                "SYNs to which the announcement of TPA was added",
                self.announced,
            ),
            Metric::counter("heard_syns", "SYNs that came with the announcement of TPA", self.received),
            Metric::counter(
                "answered_syns",
                "SYN-ACKs to which the answer was added that TPA is supported",
                self.answered,
            ),
            Metric::counter("tpa_answers", "SYN-ACKs of hosts that support TPA", self.learned_tpa),
            Metric::counter(
                "tcp_only_answers",
                "SYN-ACKs of hosts that do not support TPA",
                self.learned_tcp,
            ),
            Metric::counter("untouched_syns", "SYNs and SYN-ACKs that passed unchanged", self.unchanged),
            Metric::counter(
                "unseen_syns",
                "packets of other interfaces, and incomplete packets, which were not examined",
                self.ineligible,
            ),
            Metric::counter("announcer_messages_malformed", "malformed messages of the kernel", malformed),
            Metric::counter("announcer_verdicts_refused", "verdicts that the kernel rejected", refused),
        ]
    }
}
