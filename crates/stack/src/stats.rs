//! Counters of a stack.

/// Counters of a [`Stack`](crate::Stack). Each packet that arrives is counted in `received` and, if no connection takes it, in one of the
/// other counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackStats {
    /// Packets that arrived.
    pub received: u64,
    /// Packets that were made.
    pub sent: u64,
    /// Packets that cannot be read: cut short, a wrong checksum, a fragment.
    pub malformed: u64,
    /// Packets for or from an address that has no place here.
    pub misaddressed: u64,
    /// Packets of a protocol other than TCP and ICMP, or ICMP messages that mean nothing to a stack.
    pub unsupported: u64,
    /// Segments for no connection.
    pub unknown_connection: u64,
    /// Resets that answered them.
    pub resets_sent: u64,
    /// Answers to segments and echo requests that were left out, as too many waited.
    pub replies_dropped: u64,
    /// SYNs that were dropped for want of room or memory.
    pub syns_dropped: u64,
    /// Connections, of peers or of the application, that were refused for want of memory.
    pub refused_for_memory: u64,
    /// Segments of which the data were dropped, as the application had left too many short pieces unread.
    pub unread_limit_drops: u64,
    /// Connections that a peer opened.
    pub accepted: u64,
    /// Connections that were asked for here.
    pub connected: u64,
    /// Half-open connections that gave way to newer ones.
    pub half_open_evicted: u64,
    /// Reports of routers that concern data under way here.
    pub icmp_errors: u64,
    /// Reports that concern nothing under way: stale or forged.
    pub stale_icmp_errors: u64,
    /// Segments that were retransmitted, of connections that are over.
    pub retransmissions: u64,
    /// Out-of-order events that TCP-DOOR noticed, of connections that are over.
    pub door_events: u64,
}
