//! Snoop on a sending host: it announces that it caches its data, and retransmits what a base station
//! requests ([`crate::nack`]).
//!
//! * An announcement is sent with the third packet in flight, soon twice more, and then once a second while
//!   data leave. A base station that restarts, or to which the host has moved, thus receives one soon. Short
//!   exchanges cause none: a request needs a later packet.
//! * The window in an announcement differs from that of the packet before it, so that a server does not count
//!   it as a duplicate ACK.
//! * A request must fit the connection: an attacker would have to guess its numbers.
//! * Retransmitted bytes are limited to those sent for the first time since, and a window of them. A request
//!   is short and may name the whole window, so forged ones could otherwise cause amplification.

use super::cache::{CachedPacket, Origin, State as Of};
use super::modern::{retransmit_requested, state_and_cache};
use super::{ConnectionState, Context, DataSegment};
use crate::packet::{Nack, Verdict};
use crate::pep::Transmit;
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{SackBlocks, Segment};

/// Number of packets in flight from which on a connection is announced.
const MIN_ANNOUNCED_IN_FLIGHT: usize = 3;
/// Number of announcements in quick succession: the last hop may lose one.
const FAST_ANNOUNCEMENTS: u8 = 3;
const FAST_ANNOUNCEMENT_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of later announcements. A base station trusts one for [`crate::nack::ANNOUNCEMENT_LIFETIME`].
const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum distance of a base station's numbers from those of the host: 4 MiB, more than windows of today.
const MAX_SEQ_MISMATCH: i32 = 1 << 22;

/// State of a connection on a sending host, besides its cache.
#[derive(Debug, Default)]
pub(super) struct NackHost {
    /// Bytes that may be retransmitted.
    allowance_bytes: u32,
    /// Next sequence number that the host expects from the fixed host.
    expected_fixed_seq: Option<Seq32>,
    last_announcement: Option<Instant>,
    /// Number of announcements, up to [`FAST_ANNOUNCEMENTS`].
    announcements: u8,
}

impl NackHost {
    /// Returns whether an announcement is due, and counts it then.
    fn poll_announcement(&mut self, now: Instant) -> bool {
        let after = if self.announcements < FAST_ANNOUNCEMENTS {
            FAST_ANNOUNCEMENT_INTERVAL
        } else {
            ANNOUNCEMENT_INTERVAL
        };
        let is_due = self.last_announcement.is_none_or(|announced| now.since(announced) >= after);
        if is_due {
            self.last_announcement = Some(now);
            self.announcements = (self.announcements + 1).min(FAST_ANNOUNCEMENTS);
        }
        is_due
    }
}

/// Records a packet with data of the host. `seen`: end of the highest sequence number sent before.
pub(super) fn record_sent<K, P: Payload>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    segment: &Segment<P>,
    (data, seen): (DataSegment, Seq32),
) {
    let end = tracked.highest_sent;
    let (state, cache) = state_and_cache(tracked);
    let under_way = cache.first().map_or(0, |first| end - first.seq);
    let new = if data.end.after(seen) { data.end - seen.max(data.seq) } else { 0 };
    let host = &mut state.nack_host;
    host.allowance_bytes = host.allowance_bytes.saturating_add(new).min(under_way);
    host.expected_fixed_seq = Some(segment.ack);
    // RFC 5681 §2 (e): an ACK with another window is no duplicate; a server without SACK would otherwise take
    // it for one. One unit less does no harm, and the next packet restores the window. A window that this
    // would close stays as it is.
    let Some(window) = segment.window.checked_sub(1).filter(|&window| window > 0) else { return };
    if !state.announces_cache || cache.len() < MIN_ANNOUNCED_IN_FLIGHT || !host.poll_announcement(hand.now) {
        return;
    }
    hand.stats.announcements += 1;
    hand.outgoing.push_back(Transmit::Nack(Nack {
        connection: hand.connection,
        seq: end,
        ack: segment.ack,
        window,
        timestamps: segment.options.timestamps,
        missing: SackBlocks::default(),
    }));
}

/// Handles the request of a base station, with these numbers of the fixed host. It is never passed to the
/// host's TCP.
pub(super) fn handle_nack<K: Clone>(
    tracked: &mut ConnectionState<K>,
    hand: &mut Context<'_, K>,
    [seq, ack]: [Seq32; 2],
    missing: &SackBlocks,
) -> Verdict {
    let (mut sent, echo, seen, acked) =
        (tracked.transmissions, tracked.ts_recent(), tracked.highest_sent, tracked.acked);
    let (state, cache) = state_and_cache(tracked);
    let is_near = |known: Seq32| (-MAX_SEQ_MISMATCH..=MAX_SEQ_MISMATCH).contains(&seq.distance_from(known));
    let acked = acked.or_else(|| cache.first().map(|first| first.seq)).unwrap_or(seen);
    let is_acked = ack.distance_from(acked) >= -MAX_SEQ_MISMATCH && !ack.after(seen);
    if !state.nack_host.expected_fixed_seq.is_none_or(is_near) || !is_acked {
        hand.stats.invalid_nacks += 1;
        return Verdict::Absorb;
    }
    let is_missing = |cached: &CachedPacket<K>| {
        missing.as_slice().iter().any(|range| cached.seq.before(range.right) && cached.end.after(range.left))
    };
    // A retransmission of the sender itself may still wait in a queue.
    let (now, may_wait) = (hand.now, state.round_trip());
    let is_lost =
        |cached: &CachedPacket<K>| cached.origin == Origin::First || now.since(cached.sent_at) >= may_wait;
    let lost = |cached: &CachedPacket<K>| cached.state == Of::Sent && is_missing(cached) && is_lost(cached);
    for cached in cache.iter_mut().filter(|cached| lost(cached)) {
        let Some(left) = state.nack_host.allowance_bytes.checked_sub(cached.end - cached.seq) else {
            hand.stats.nacks_over_allowance += 1;
            break;
        };
        if retransmit_requested(state, hand, cached, &mut sent, echo) {
            state.nack_host.allowance_bytes = left;
        }
    }
    tracked.transmissions = sent;
    Verdict::Absorb
}
