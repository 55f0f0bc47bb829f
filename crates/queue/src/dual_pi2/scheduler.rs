//! Choice between the L queue and the C queue (RFC 9332 §4.2.2).

use super::config::Scheduler;
use hopline_core::Duration;

/// Subqueue of the dual queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subqueue {
    L4s,
    Classic,
}

/// Times that the heads of both queues have waited; `None`: the queue is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlogs {
    pub(super) l4s: Option<Duration>,
    pub(super) classic: Option<Duration>,
}

/// Credit of the weighted round robin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrrCredit {
    /// Bytes that the C queue may send before the L queue: it earns its weight of each byte that the L queue sends while
    /// Classic packets wait.
    pub(super) classic_bytes: f64,
}

impl WrrCredit {
    /// Accounts for a packet that `subqueue` sends. The credit stays if the other queue is empty, since no queue waited.
    pub(super) fn charge(
        &mut self,
        subqueue: Subqueue,
        len_bytes: u32,
        classic_weight: f64,
        other_is_empty: bool,
    ) {
        if !other_is_empty {
            self.classic_bytes += match subqueue {
                Subqueue::L4s => f64::from(len_bytes) * classic_weight,
                Subqueue::Classic => f64::from(len_bytes) * (classic_weight - 1.0),
            };
        }
    }
}

/// Returns the queue to serve next; `None` if both are empty.
pub(super) fn select(scheduler: &Scheduler, credit: &WrrCredit, backlogs: Backlogs) -> Option<Subqueue> {
    match (backlogs.l4s, backlogs.classic) {
        (None, None) => None,
        (Some(_), None) => Some(Subqueue::L4s),
        (None, Some(_)) => Some(Subqueue::Classic),
        (Some(l4s), Some(classic)) => {
            let l4s_first = match *scheduler {
                Scheduler::WeightedRoundRobin { .. } => credit.classic_bytes <= 0.0,
                Scheduler::TimeShiftedFifo { shift } => l4s + shift >= classic,
            };
            Some(if l4s_first { Subqueue::L4s } else { Subqueue::Classic })
        }
    }
}
