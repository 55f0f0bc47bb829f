//! Counters of an AODV machine.

/// Reason for which a message had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredReason {
    /// A request that was received before (RFC 3561 §6.5).
    DuplicateRequest,
    /// This node's own request, relayed by a neighbour.
    OwnRequest,
    /// A request from a neighbour on the blacklist (§6.8).
    Blacklisted,
    /// A reply no better than the known route (§6.7).
    StaleReply,
    /// A reply for another node to which there is no route back.
    NoReverseRoute,
    /// A reply or request with an expired time to live.
    TtlExpired,
    /// An address that cannot belong to a host, or this node's address in an invalid field.
    BadAddress,
    /// An implausible hop count.
    BadHopCount,
    /// No room for another route or originator.
    TableFull,
    /// A message of this node above the rate limit (§6.3, §6.11).
    RateLimited,
    /// A message that found too many other messages waiting for their jitter to pass.
    OutboxFull,
}

/// Counters of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Requests of this node, retries included.
    pub requests_originated: u64,
    /// Requests relayed.
    pub requests_relayed: u64,
    /// Replies as the destination.
    pub replies_as_destination: u64,
    /// Replies on behalf of a destination, and gratuitous ones to it.
    pub replies_as_relay: u64,
    /// Replies relayed.
    pub replies_relayed: u64,
    /// Route errors.
    pub errors_sent: u64,
    /// HELLO messages.
    pub hellos_sent: u64,
    /// Acknowledgements of replies.
    pub acks_sent: u64,
    /// Searches that found a route.
    pub searches_succeeded: u64,
    /// Searches given up.
    pub searches_failed: u64,
    /// Links that broke.
    pub links_broken: u64,
    /// Local repairs begun.
    pub repairs: u64,
    /// One counter for each reason.
    ignored: [u64; IgnoredReason::OutboxFull as usize + 1],
}

impl Stats {
    /// Returns the number of messages that had no effect for this reason.
    #[must_use]
    pub const fn ignored(&self, reason: IgnoredReason) -> u64 {
        self.ignored[reason as usize]
    }

    pub(super) fn ignore(&mut self, reason: IgnoredReason) {
        self.ignored[reason as usize] += 1;
    }
}
