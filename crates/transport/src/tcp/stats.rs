//! Counters.

use crate::drops::Reason;
use hopline_core::Duration;

/// Counters of an endpoint since its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Segments with data that were sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments with data that was sent before.
    pub retransmissions: u64,
    /// Bytes of data sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes of data that the peer acknowledged.
    pub bytes_acked: u64,
    /// Segments without data, SYN, FIN or RST that were sent.
    pub acks_sent: u64,
    /// Segments taken in, dropped ones included.
    pub segments_received: u64,
    /// Of these, SYNs that were taken, and segments of which the sequence number, the timestamp and the acknowledgment number are acceptable
    /// (RFC 9293 §3.10.7.4, RFC 7323 §5.3, RFC 5961 §5.2).
    pub segments_accepted: u64,
    /// Distinct bytes received in order, whether or not the user has read them.
    pub bytes_received: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast retransmit.
    pub fast_retransmits: u64,
    /// Segments that RACK declared lost, by time or at a time-out (RFC 8985 §6).
    pub rack_losses: u64,
    /// Tail loss probes sent (RFC 8985 §7.3).
    pub tail_probes: u64,
    /// Losses that a tail loss probe repaired, without any other indication (RFC 8985 §7.4.2).
    pub tail_losses: u64,
    /// Time-outs, or series of them, that turned out to be spurious and were undone (RFC 5682, 3522, 3708, 4015).
    pub spurious_timeouts: u64,
    /// Fast retransmits that turned out to be spurious and were undone (RFC 3522, 3708).
    pub spurious_recoveries: u64,
    /// Duplicate acknowledgments received.
    pub dup_acks: u64,
    /// Segments received that held only bytes received before.
    pub duplicates_received: u64,
    /// Segments received out of order.
    pub out_of_order: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Keep-alive probes sent (RFC 9293 §3.8.4).
    pub keep_alives: u64,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u64,
    /// Reports of duplicates owed to the peer, each with one ACK (D-SACK, RFC 2883).
    pub dsacks_sent: u64,
    /// Reports of duplicates that the peer sent (D-SACK, RFC 2883): for unnecessary retransmissions, or for segments that
    /// the network duplicated (RFC 3708).
    pub dsacks_received: u64,
    /// Times the peer discarded data that it had selectively acknowledged (RFC 2018 §8).
    pub reneged: u64,
    /// Counters of TCP-DOOR.
    pub door: DoorStats,
    /// Data received with a mark of congestion (RFC 3168).
    pub marks_received: u64,
    /// Marked packets that the peer's accurate feedback reported (RFC 9768).
    pub marks_reported: u64,
    /// Times the window was reduced, or sending paused, for a mark that the peer reported.
    pub mark_reactions: u64,
    /// Counters of the scheme of [`Config::feedback`](super::Config::feedback).
    pub feedback: FeedbackStats,
    /// Segments dropped, by reason.
    pub drops: Drops,
}

/// Counters of TCP-DOOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DoorStats {
    /// Events that the order of acknowledgments showed (D1).
    pub ack_events: u64,
    /// Events that the order of received data showed (D2), reported to the peer.
    pub data_events: u64,
    /// Events that the peer reported (D2).
    pub reported_events: u64,
    /// Events in `ack_events` within a retransmission timeout of a reported event, before or after.
    pub matched_ack_events: u64,
    /// Events in `reported_events` within a retransmission timeout of an event in the order of acknowledgments, before or
    /// after.
    pub matched_reported_events: u64,
    /// Times congestion control was disabled (R1); a restart of T1 does not count.
    pub disable_periods: u64,
    /// Time-outs that did not reduce the window because of R1.
    pub held_timeouts: u64,
    /// Fast retransmits that did not reduce the window because of R1.
    pub held_fast_retransmits: u64,
    /// Times the state before a reduction was restored (R2).
    pub instant_recoveries: u64,
    /// Malformed options received.
    pub malformed: u64,
}

impl DoorStats {
    /// Combines each counter with that of `other` by the function `of`.
    fn zip(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            ack_events: of(self.ack_events, other.ack_events),
            data_events: of(self.data_events, other.data_events),
            reported_events: of(self.reported_events, other.reported_events),
            matched_ack_events: of(self.matched_ack_events, other.matched_ack_events),
            matched_reported_events: of(self.matched_reported_events, other.matched_reported_events),
            disable_periods: of(self.disable_periods, other.disable_periods),
            held_timeouts: of(self.held_timeouts, other.held_timeouts),
            held_fast_retransmits: of(self.held_fast_retransmits, other.held_fast_retransmits),
            instant_recoveries: of(self.instant_recoveries, other.instant_recoveries),
            malformed: of(self.malformed, other.malformed),
        }
    }
}

/// Sum of the counters of two ends.
impl core::ops::Add for DoorStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

/// Difference since an earlier time.
impl core::ops::Sub for DoorStats {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.zip(earlier, |a, b| a - b)
    }
}

/// Counters of a feedback scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FeedbackStats {
    /// Times the sender was frozen.
    pub freezes: u64,
    /// Total duration of completed freezes.
    pub frozen: Duration,
    /// Probes of a frozen sender; they count as retransmissions too.
    pub probes: u64,
    /// Losses repaired without a reduction of the window, attributed to bit errors (ATCP) or to the route failure
    /// (TCP-BuS).
    pub unreduced_losses: u64,
    /// Time-outs that did not double the timeout (fixed RTO).
    pub fixed_timeouts: u64,
}

/// Reason for dropping a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Ports of another connection.
    WrongPort,
    /// Endpoint closed.
    Closed,
    /// Not expected in this state: no SYN in LISTEN, no ACK in a synchronized state.
    Unexpected,
    /// Outside the receive window (RFC 9293 §3.10.7.4).
    OutsideWindow,
    /// Acknowledgment of data that were never sent, or too old (RFC 5961 §5).
    BadAck,
    /// Reset with a sequence number that is not the expected one (RFC 5961 §3).
    BadReset,
    /// SYN in a synchronized state (RFC 5961 §4).
    UnexpectedSyn,
    /// Old timestamp (PAWS, RFC 7323 §5).
    OldTimestamp,
    /// No timestamp although negotiated (RFC 7323 §3.2).
    NoTimestamp,
    /// Data after the user or the peer closed.
    AfterClose,
    /// More out-of-order pieces than the endpoint keeps.
    ReassemblyFull,
    /// Data behind more unread pieces than the host permits.
    UnreadLimit,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::WrongPort,
        Self::Closed,
        Self::Unexpected,
        Self::OutsideWindow,
        Self::BadAck,
        Self::BadReset,
        Self::UnexpectedSyn,
        Self::OldTimestamp,
        Self::NoTimestamp,
        Self::AfterClose,
        Self::ReassemblyFull,
        Self::UnreadLimit,
    ];
}

impl Reason for DropReason {
    fn index(self) -> usize {
        self as usize
    }
}

/// Dropped segments, by reason.
pub type Drops = crate::drops::Drops<DropReason, { DropReason::ALL.len() }>;
