//! In a host that sends: it announces that it keeps what it sends, and sends again what a station asks for ([`crate::nack`]).
//!
//! * An announcement goes out with the third packet under way, soon twice again, and then once a second while data leave: a station that
//!   begins anew, or to which the host has moved, hears one soon. Short exchanges cause none: a question takes a later packet.
//! * An announcement has another window than the packet before it: a server that hears it must not count it as a duplicate ACK.
//! * A question must fit the connection: numbers that a stranger would have to guess.
//! * Never more bytes are sent again than were sent for the first time since, and a window of them: a question is short and may name the whole
//!   window, so forged ones would otherwise be amplified.

use super::cache::{Cached, Origin, State as Of};
use super::modern::{send_again, state_of};
use super::{Data, Hand, Tracked};
use crate::filter::Transmit;
use crate::packet::{Nack, Verdict};
use hopline_core::{Duration, Instant, Payload, Seq32};
use hopline_wire::tcp::{SackBlocks, Segment};

/// Packets under way from which on a connection is announced.
const ANNOUNCED_FROM: usize = 3;
/// Announcements that follow each other soon: the last hop may lose one.
const SOON: u8 = 3;
const SOON_AFTER: Duration = Duration::from_millis(100);
/// Time between later announcements. A station believes one for [`crate::nack::BELIEVED`].
const AFTER: Duration = Duration::from_secs(1);
/// Numbers farther than this from those of the host are not of the station: 4 MiB, more than windows of today.
const NEAR: i32 = 1 << 22;

/// State of a connection at a sending host, beside its cache.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Bytes that may be sent again.
    allowance: u32,
    /// The next number that the host expects from the fixed host.
    expected: Option<Seq32>,
    announced: Option<Instant>,
    /// Announcements, up to [`SOON`].
    announcements: u8,
}

impl Host {
    /// Returns whether an announcement is due, and counts it then.
    fn announces(&mut self, now: Instant) -> bool {
        let after = if self.announcements < SOON { SOON_AFTER } else { AFTER };
        let is_due = self.announced.is_none_or(|announced| now.since(announced) >= after);
        if is_due {
            self.announced = Some(now);
            self.announcements = (self.announcements + 1).min(SOON);
        }
        is_due
    }
}

/// The host has sent a packet with data. `seen`: the number after the last that it had sent before.
pub(super) fn note_sent<K, P: Payload>(
    tracked: &mut Tracked<K>,
    hand: &mut Hand<'_, K>,
    segment: &Segment<P>,
    (data, seen): (Data, Seq32),
) {
    let end = tracked.seen;
    let (state, cache) = state_of(tracked);
    let under_way = cache.first().map_or(0, |first| end - first.seq);
    let new = if data.end.after(seen) { data.end - seen.max(data.seq) } else { 0 };
    let host = &mut state.host;
    host.allowance = host.allowance.saturating_add(new).min(under_way);
    host.expected = Some(segment.ack);
    // RFC 5681 §2 (e): an ACK with another window is no duplicate, for which a server without SACK would take it. One unit less is not missed,
    // and the next packet has the window again. A window that this would close stays as it is.
    let Some(window) = segment.window.checked_sub(1).filter(|&window| window > 0) else { return };
    if !state.announces || cache.len() < ANNOUNCED_FROM || !host.announces(hand.now) {
        return;
    }
    hand.stats.announcements += 1;
    hand.out.push_back(Transmit::Nack(Nack {
        connection: hand.connection,
        seq: end,
        ack: segment.ack,
        window,
        timestamps: segment.options.timestamps,
        missing: SackBlocks::default(),
    }));
}

/// A station asks for what it has not got, with these numbers of the fixed host. It is never for the host's TCP.
pub(super) fn take_nack<K: Clone>(
    tracked: &mut Tracked<K>,
    hand: &mut Hand<'_, K>,
    [seq, ack]: [Seq32; 2],
    missing: &SackBlocks,
) -> Verdict {
    let (mut sent, echo, seen, acked) = (tracked.sent, tracked.echo(), tracked.seen, tracked.acked);
    let (state, cache) = state_of(tracked);
    let is_near = |known: Seq32| (-NEAR..=NEAR).contains(&seq.distance_from(known));
    let acked = acked.or_else(|| cache.first().map(|first| first.seq)).unwrap_or(seen);
    let is_acked = ack.distance_from(acked) >= -NEAR && !ack.after(seen);
    if !state.host.expected.is_none_or(is_near) || !is_acked {
        hand.stats.unfit_questions += 1;
        return Verdict::Absorb;
    }
    let is_missing = |cached: &Cached<K>| {
        missing.as_slice().iter().any(|range| cached.seq.before(range.right) && cached.end.after(range.left))
    };
    // A segment that the sender itself has sent again may still wait in a queue.
    let (now, may_wait) = (hand.now, state.round_trip());
    let is_lost = |cached: &Cached<K>| cached.by == Origin::First || now.since(cached.sent) >= may_wait;
    let lost = |cached: &Cached<K>| cached.state == Of::Sent && is_missing(cached) && is_lost(cached);
    for cached in cache.iter_mut().filter(|cached| lost(cached)) {
        let Some(left) = state.host.allowance.checked_sub(cached.end - cached.seq) else {
            hand.stats.unallowed += 1;
            break;
        };
        if send_again(state, hand, cached, &mut sent, echo) {
            state.host.allowance = left;
        }
    }
    tracked.sent = sent;
    Verdict::Absorb
}
