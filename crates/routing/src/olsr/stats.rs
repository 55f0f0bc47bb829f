//! Counters of an OLSR machine.

/// Reason for which a message, or a part of it, had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredReason {
    /// A message that was processed before (RFC 3626 §3.4).
    Duplicate,
    /// This node's own message, forwarded by a neighbour.
    OwnMessage,
    /// A message with an expired time to live.
    TtlExpired,
    /// A message to forward or a TC message over a link that is not symmetric (§3.4.1, §9.5).
    NotSymmetric,
    /// A TC message older than the known entries of its originator (§9.5).
    StaleTopology,
    /// A HELLO with another originator than its sender, which would have several interfaces.
    OtherInterface,
    /// Neighbours listed under an invalid link code (§6.1.1).
    BadLinkCode,
    /// An address that cannot belong to a host, or this node's address in an invalid field.
    BadAddress,
    /// No room in a table.
    TableFull,
    /// A message that found too many other messages waiting for their jitter to pass.
    OutboxFull,
}

/// Counters of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Packets sent.
    pub packets_sent: u64,
    /// HELLO messages made.
    pub hellos_sent: u64,
    /// TC messages made.
    pub tcs_sent: u64,
    /// Messages of other nodes forwarded.
    pub messages_forwarded: u64,
    /// Neighbours lost: links that were symmetric and no longer are.
    pub neighbours_lost: u64,
    /// Number of computations of the routing table.
    pub table_computations: u64,
    /// One counter for each reason.
    ignored: [u64; IgnoredReason::OutboxFull as usize + 1],
}

impl Stats {
    /// Returns the number of messages or parts of one that had no effect for this reason.
    #[must_use]
    pub const fn ignored(&self, reason: IgnoredReason) -> u64 {
        self.ignored[reason as usize]
    }

    pub(super) fn ignore(&mut self, reason: IgnoredReason) {
        self.ignored[reason as usize] += 1;
    }
}
