//! Metrics of the announcement service.

use crate::service::Figure;
use hopline_proxy::announce::{Done, Speaks};

/// Counters of handshake packets, by the action taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    announced: u64,
    heard: u64,
    answered: u64,
    learned_tpa: u64,
    learned_tcp: u64,
    untouched: u64,
    /// Packets that did not cross the interface, or that the kernel had altered before they reached the queue.
    pub(super) unseen: u64,
}

impl Counts {
    pub(super) const fn note(&mut self, done: Done) {
        let count = match done {
            Done::Announced => &mut self.announced,
            Done::Heard => &mut self.heard,
            Done::Answered => &mut self.answered,
            Done::Learned(_, Speaks::Tpa) => &mut self.learned_tpa,
            Done::Learned(_, Speaks::TcpOnly) => &mut self.learned_tcp,
            Done::Untouched => &mut self.untouched,
        };
        *count += 1;
    }

    /// Returns the metrics. `troubles`: malformed messages of the kernel, and verdicts that it rejected.
    pub(super) fn figures(&self, troubles: [u64; 2]) -> Vec<Figure> {
        let [malformed, refused] = troubles;
        vec![
            Figure::counter("announced_syns", "SYNs that were marked: here is TPA", self.announced),
            Figure::counter("heard_syns", "SYNs that came marked", self.heard),
            Figure::counter("answered_syns", "answers to SYNs that say: here too", self.answered),
            Figure::counter("tpa_answers", "answers of hosts that speak TPA", self.learned_tpa),
            Figure::counter("tcp_only_answers", "answers of hosts that do not", self.learned_tcp),
            Figure::counter("untouched_syns", "SYNs, and answers, that passed as they were", self.untouched),
            Figure::counter(
                "unseen_syns",
                "packets of other interfaces, or unfinished: nobody looked",
                self.unseen,
            ),
            Figure::counter(
                "announcer_messages_malformed",
                "messages of the kernel that were none",
                malformed,
            ),
            Figure::counter("announcer_verdicts_refused", "verdicts that the kernel did not take", refused),
        ]
    }
}
