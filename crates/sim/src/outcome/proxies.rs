//! Counters of TCP middleboxes.

use core::ops::{Add, Sub};
use hopline_proxy::dproxy::{self, RecoveryStats, opaque};
use hopline_proxy::{ack_pacing, arq, fast_retransmit, hop_window, mtcp, nack, snoop, split};

/// Counters of the middleboxes of a node, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Packets sent again from here.
    pub sent_again: u64,
    /// Packets left to the sender to recover: refused by the queue of the last hop, or sent again in vain too
    /// often.
    pub left_to_sender: u64,
    /// ACKs absorbed.
    pub acks_absorbed: u64,
    /// ACKs that say something else: their SACK blocks were cut short, or their last byte was kept back.
    pub acks_edited: u64,
    /// ACKs made in the name of mobile hosts.
    pub acks_made: u64,
    /// Number of times that a middlebox closed the window, so that a sender had to wait.
    pub windows_closed: u64,
    /// Requests for packets that a link has lost.
    pub requests: u64,
    /// Packets that waited at the end of a link for others that it had lost, and ACKs that waited for their turn in a burst.
    pub held: u64,
    /// Bytes of the state of connections that followed mobile hosts to other stations.
    pub state_bytes: u64,
}

impl From<hop_window::Stats<snoop::Stats>> for ProxyCounts {
    fn from(stats: hop_window::Stats<snoop::Stats>) -> Self {
        let hop_window::Stats { machine: stats, window } = stats;
        let snoop::Stats { left_to_sender, acks_absorbed, acks_edited, acks_made, .. } = stats;
        Self {
            sent_again: stats.local_retransmissions,
            left_to_sender,
            acks_absorbed,
            acks_edited,
            acks_made,
            held: window.held,
            ..Self::default()
        }
    }
}

impl From<mtcp::Stats> for ProxyCounts {
    fn from(stats: mtcp::Stats) -> Self {
        let mtcp::Stats { withheld, closed, probes, acks_made, .. } = stats;
        Self {
            sent_again: probes,
            acks_edited: withheld,
            acks_made,
            windows_closed: closed,
            ..Self::default()
        }
    }
}

impl From<&split::Stats> for ProxyCounts {
    fn from(stats: &split::Stats) -> Self {
        Self { sent_again: stats.retransmissions, ..Self::default() }
    }
}

impl From<&arq::Stats> for ProxyCounts {
    fn from(stats: &arq::Stats) -> Self {
        let arq::Stats { sent_again, given_up, refused, .. } = *stats;
        Self { sent_again, left_to_sender: given_up + refused, ..Self::default() }
    }
}

impl From<nack::Stats> for ProxyCounts {
    fn from(stats: nack::Stats) -> Self {
        let nack::Stats { nacks, left_to_sender, .. } = stats;
        Self { acks_made: nacks, left_to_sender, ..Self::default() }
    }
}

impl From<&ack_pacing::Stats> for ProxyCounts {
    fn from(stats: &ack_pacing::Stats) -> Self {
        Self { held: stats.held, ..Self::default() }
    }
}

impl From<&fast_retransmit::Stats> for ProxyCounts {
    fn from(stats: &fast_retransmit::Stats) -> Self {
        Self { acks_made: stats.acks_made, ..Self::default() }
    }
}

impl ProxyCounts {
    /// Returns the counters of a link end with D-Proxy.
    pub(crate) fn of_d_proxy(stats: &dproxy::Stats, recovery: &RecoveryStats) -> Self {
        Self {
            sent_again: stats.replayed,
            left_to_sender: recovery.given_up + recovery.not_cached,
            requests: recovery.requests,
            held: stats.held,
            ..Self::default()
        }
    }

    /// Returns the counters of a link end where the ends number the packets.
    pub(crate) fn of_opaque(stats: &opaque::Stats, recovery: &RecoveryStats) -> Self {
        Self {
            sent_again: stats.replayed,
            left_to_sender: recovery.given_up + recovery.not_cached + stats.refused,
            requests: recovery.requests,
            ..Self::default()
        }
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            sent_again: of(self.sent_again, other.sent_again),
            left_to_sender: of(self.left_to_sender, other.left_to_sender),
            acks_absorbed: of(self.acks_absorbed, other.acks_absorbed),
            acks_edited: of(self.acks_edited, other.acks_edited),
            acks_made: of(self.acks_made, other.acks_made),
            windows_closed: of(self.windows_closed, other.windows_closed),
            requests: of(self.requests, other.requests),
            held: of(self.held, other.held),
            state_bytes: of(self.state_bytes, other.state_bytes),
        }
    }
}

impl Add for ProxyCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }
}

impl Sub for ProxyCounts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.with(before, |a, b| a - b)
    }
}
