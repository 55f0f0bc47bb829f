//! Counters of TCP middleboxes.

use core::ops::{Add, Sub};
use hopline_proxy::dproxy::{self, RecoveryStats, opaque};
use hopline_proxy::{ack_pacing, arq, fast_retransmit, hop_window, mtcp, nack, snoop, split};

/// Counters of the middleboxes of a node, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MiddleboxCounts {
    /// Packets sent again from here.
    pub retransmitted: u64,
    /// Packets left to the sender to recover: refused by the queue of the last hop, or sent again in vain too
    /// often.
    pub unrecovered: u64,
    /// ACKs absorbed.
    pub acks_absorbed: u64,
    /// ACKs that say something else: their SACK blocks were cut short, or their last byte was kept back.
    pub acks_rewritten: u64,
    /// ACKs made in the name of mobile hosts.
    pub acks_made: u64,
    /// Number of times that a middlebox closed the window, so that a sender had to wait.
    pub windows_closed: u64,
    /// Requests for packets that a link has lost.
    pub requests: u64,
    /// Packets that waited at the end of a link for others that it had lost, and ACKs that waited for their turn in a burst.
    pub delayed: u64,
    /// Bytes of the state of connections that followed mobile hosts to other stations.
    pub state_bytes: u64,
}

impl From<hop_window::Stats<snoop::Stats>> for MiddleboxCounts {
    fn from(stats: hop_window::Stats<snoop::Stats>) -> Self {
        let hop_window::Stats { middlebox: stats, window } = stats;
        let snoop::Stats { left_to_sender, acks_absorbed, acks_rewritten: acks_edited, acks_made, .. } =
            stats;
        Self {
            retransmitted: stats.local_retransmissions,
            unrecovered: left_to_sender,
            acks_absorbed,
            acks_rewritten: acks_edited,
            acks_made,
            delayed: window.delayed,
            ..Self::default()
        }
    }
}

impl From<mtcp::Stats> for MiddleboxCounts {
    fn from(stats: mtcp::Stats) -> Self {
        let mtcp::Stats { withheld, windows_closed: closed, probes, acks_made, .. } = stats;
        Self {
            retransmitted: probes,
            acks_rewritten: withheld,
            acks_made,
            windows_closed: closed,
            ..Self::default()
        }
    }
}

impl From<&split::Stats> for MiddleboxCounts {
    fn from(stats: &split::Stats) -> Self {
        Self { retransmitted: stats.retransmissions, ..Self::default() }
    }
}

impl From<&arq::Stats> for MiddleboxCounts {
    fn from(stats: &arq::Stats) -> Self {
        let arq::Stats { retransmitted: sent_again, given_up, refused, .. } = *stats;
        Self { retransmitted: sent_again, unrecovered: given_up + refused, ..Self::default() }
    }
}

impl From<nack::Stats> for MiddleboxCounts {
    fn from(stats: nack::Stats) -> Self {
        let nack::Stats { nacks, left_to_sender, .. } = stats;
        Self { acks_made: nacks, unrecovered: left_to_sender, ..Self::default() }
    }
}

impl From<&ack_pacing::Stats> for MiddleboxCounts {
    fn from(stats: &ack_pacing::Stats) -> Self {
        Self { delayed: stats.delayed, ..Self::default() }
    }
}

impl From<&fast_retransmit::Stats> for MiddleboxCounts {
    fn from(stats: &fast_retransmit::Stats) -> Self {
        Self { acks_made: stats.acks_made, ..Self::default() }
    }
}

impl MiddleboxCounts {
    /// Returns the counters of a link end with D-Proxy.
    pub(crate) fn of_d_proxy(stats: &dproxy::Stats, recovery: &RecoveryStats) -> Self {
        Self {
            retransmitted: stats.replayed,
            unrecovered: recovery.given_up + recovery.not_cached,
            requests: recovery.requests,
            delayed: stats.delayed,
            ..Self::default()
        }
    }

    /// Returns the counters of a link end where the ends number the packets.
    pub(crate) fn of_opaque(stats: &opaque::Stats, recovery: &RecoveryStats) -> Self {
        Self {
            retransmitted: stats.replayed,
            unrecovered: recovery.given_up + recovery.not_cached + stats.refused,
            requests: recovery.requests,
            ..Self::default()
        }
    }

    fn combine(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            retransmitted: of(self.retransmitted, other.retransmitted),
            unrecovered: of(self.unrecovered, other.unrecovered),
            acks_absorbed: of(self.acks_absorbed, other.acks_absorbed),
            acks_rewritten: of(self.acks_rewritten, other.acks_rewritten),
            acks_made: of(self.acks_made, other.acks_made),
            windows_closed: of(self.windows_closed, other.windows_closed),
            requests: of(self.requests, other.requests),
            delayed: of(self.delayed, other.delayed),
            state_bytes: of(self.state_bytes, other.state_bytes),
        }
    }
}

impl Add for MiddleboxCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, |a, b| a + b)
    }
}

impl Sub for MiddleboxCounts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        self.combine(before, |a, b| a - b)
    }
}
