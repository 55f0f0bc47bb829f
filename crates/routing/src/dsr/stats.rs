//! Counters of a DSR machine.

/// Reason for which a packet or one of its options had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredReason {
    /// A request that was received before (RFC 4728 §8.2.2).
    DuplicateRequest,
    /// This node's own request, or one with this node in its record.
    OwnRequest,
    /// A request with a record of the greatest length.
    RecordFull,
    /// A request or packet with an expired time to live.
    TtlExpired,
    /// Without a route cache: a reply for which no packet waits.
    StaleReply,
    /// An invalid header: an address that cannot belong to a host, a node twice on a path, a transmitter that is not on it.
    Malformed,
    /// A packet addressed to this node against its source route.
    NotOnRoute,
    /// An unknown option that forbids to forward the packet (§8.1.6).
    UnknownOption,
    /// A detour that was reported to its source a moment ago (§4.4).
    HeldOff,
    /// No room for another initiator, target, or detour.
    TableFull,
    /// A message that found too many other messages waiting for their delay to pass.
    OutboxFull,
}

/// Counters of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Requests of this node, retries included.
    pub requests_originated: u64,
    /// Requests relayed.
    pub requests_relayed: u64,
    /// Replies as the target.
    pub replies_as_target: u64,
    /// Replies from the cache.
    pub replies_from_cache: u64,
    /// Replies from the cache that were not sent because the initiator uses a route as short (§8.2.5).
    pub replies_cancelled: u64,
    /// Replies to sources of packets that were overheard on a detour (§3.4.3).
    pub replies_gratuitous: u64,
    /// Route errors.
    pub errors_sent: u64,
    /// Requested acknowledgements (§8.3.3).
    pub acks_sent: u64,
    /// Data packets forwarded along their source routes; without a route cache: data packets to be forwarded.
    pub data_forwarded: u64,
    /// Packets without data forwarded along their source routes.
    pub control_forwarded: u64,
    /// Data packets of other nodes that were salvaged, or wait for a route, after their next hop did not answer (§8.3.6).
    pub salvaged: u64,
    /// Packets without data that failed because their next hop did not answer.
    pub control_lost: u64,
    /// Frames that the link layer gave up, and packets queued behind them.
    pub frames_failed: u64,
    /// Searches that found a route.
    pub searches_succeeded: u64,
    /// Searches given up.
    pub searches_failed: u64,
    /// Paths added to the cache.
    pub paths_learnt: u64,
    /// One counter for each reason.
    ignored: [u64; IgnoredReason::OutboxFull as usize + 1],
}

impl Stats {
    /// Returns the number of packets or options that had no effect for this reason.
    #[must_use]
    pub const fn ignored(&self, reason: IgnoredReason) -> u64 {
        self.ignored[reason as usize]
    }

    pub(super) fn ignore(&mut self, reason: IgnoredReason) {
        self.ignored[reason as usize] += 1;
    }
}
