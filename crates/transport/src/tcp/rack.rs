//! RACK: time-based loss detection (RFC 8985 §6).
//!
//! Of two segments, the one that was sent earlier should arrive earlier. An earlier segment is lost if a later one has
//! arrived, and a round trip and the reordering window have passed since the earlier one was sent. This also holds for
//! retransmissions.

use super::congestion::RecoveryPhase;
use super::delivery_rate::{PacketState, RateSampler};
use super::scoreboard::Scoreboard;
use super::sent_segments::{LossVerdict, SegmentState, SentSegment, SentSegments, TransmissionCount};
use super::tlp::{TailProbe, Tlp};
use core::cell::Cell;
use core::ops::Range;
use hopline_core::{Duration, Instant, settings};

settings! {
    /// Parameters of [`LossDetection::Rack`](super::LossDetection::Rack). Start from [`Self::RFC8985`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RackConfig {
        /// Window of the minimum filter for round-trip times; the reordering window is a quarter of the minimum. A sample
        /// counts for at least this time, at most twice as long. Above zero, default 300 s (as Linux; RFC 8985 §6.2, step 1,
        /// leaves it open).
        min_rtt_window, with_min_rtt_window: Duration as into,
        /// Number of recoveries without a D-SACK after which the reordering window is reset. 1–255, default 16
        /// (RFC 8985 §6.2, step 4).
        reo_wnd_persist, with_reo_wnd_persist: u8,
        /// Tail loss probe. Default after two round trips (RFC 8985 §7).
        tail_probe, with_tail_probe: TailProbe,
        /// Segment that gives the round-trip time. Default the one sent last (RFC 8985 §6.2, step 2).
        rtt_source, with_rtt_source: RackRttSource,
    }
}

/// Segment that gives the round-trip time of loss detection ("RACK.rtt").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackRttSource {
    /// Of all delivered so far, the one that was sent last (RFC 8985 §6.2: in ascending order of transmission).
    LastSent,
    /// Of those that an ACK delivers, the last in the stream, cumulatively before selectively acknowledged ones (Linux,
    /// `tcp_rack_advance`). After a partial ACK the other segments of an old flight are lost later.
    LastInStream,
}

impl RackConfig {
    /// Parameters of RFC 8985.
    pub const RFC8985: Self = Self {
        min_rtt_window: Duration::from_secs(300),
        reo_wnd_persist: 16,
        tail_probe: TailProbe::On { max_ack_delay: Duration::from_millis(200) },
        rtt_source: RackRttSource::LastSent,
    };
}

/// State of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    config: RackConfig,
    pub(crate) segments: SentSegments,
    /// Delivery rate samples, from the same records; `None`: not needed.
    pub(crate) rate_sampler: Option<Box<RateSampler>>,
    pub(crate) tlp: Tlp,
    min_rtt: WindowedMinRtt,
    latest_delivered: Option<DeliveredSegment>,
    /// Round-trip time of the last segment in the stream that the latest ACK with one delivered.
    rtt_in_stream: Duration,
    /// Round-trip time of the last segment that the current ACK delivers, if it was sent once.
    segment_rtt: Option<Duration>,
    /// Highest position that the peer has acknowledged, selectively or not ("RACK.fack").
    fack: u64,
    reordering: Reordering,
    /// Longest way, in bytes, from the end of a reordered segment to the end of the highest delivered one.
    reordering_extent: u64,
    /// Size of the reordering window, quarters of the minimum round-trip time ("RACK.reo_wnd_mult").
    reo_wnd_mult: u64,
    /// Number of recoveries until the window is reset to one quarter ("RACK.reo_wnd_persist").
    reo_wnd_persist: u8,
    /// Position up to which further D-SACKs belong to the same round ("RACK.dsack_round").
    dsack_round: Option<u64>,
    /// Reordering window at the last ACK ("RACK.reo_wnd").
    reo_wnd: Duration,
}

/// Delivered segment that was sent last ("RACK.xmit_ts", "RACK.end_seq", "RACK.rtt").
#[derive(Clone, Copy, Debug)]
struct DeliveredSegment {
    sent_at: Instant,
    end: u64,
    rtt: Duration,
}

/// Reordering on the path: a segment that was sent once has arrived after a later one ("RACK.reordering_seen").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reordering {
    NotSeen,
    Seen,
}

/// Input of loss detection for an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RackAck<'a> {
    /// Time of arrival.
    pub(crate) now: Instant,
    /// First unacknowledged position, after it.
    pub(crate) una: u64,
    /// Selectively acknowledged blocks beyond it.
    pub(crate) scoreboard: &'a Scoreboard,
    /// Blocks that it reports, ascending.
    pub(crate) blocks: &'a [(u64, u64)],
    /// Time of sending of the segment that the timestamp echo names, in whole milliseconds.
    pub(crate) echoed_send_time: Option<Instant>,
}

/// Inputs for the size of the reordering window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReorderingInput {
    pub(crate) phase: RecoveryPhase,
    pub(crate) srtt: Option<Duration>,
    /// Number of segments above a hole that indicate a loss without reordering ("DupThresh").
    pub(crate) dup_thresh: u32,
}

/// Result of loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RackResult {
    /// Number of segments found lost.
    pub(crate) lost: u64,
    /// Time of the next check.
    pub(crate) recheck_at: Option<Instant>,
}

impl Rack {
    /// Creates the state before the first byte, which has position `una`.
    pub(crate) fn new(config: RackConfig, una: u64) -> Self {
        Self {
            config,
            segments: SentSegments::new(una),
            rate_sampler: None,
            tlp: Tlp::new(config.tail_probe),
            min_rtt: WindowedMinRtt::default(),
            latest_delivered: None,
            rtt_in_stream: Duration::ZERO,
            segment_rtt: None,
            fack: una,
            reordering: Reordering::NotSeen,
            reordering_extent: 0,
            reo_wnd_mult: 1,
            reo_wnd_persist: config.reo_wnd_persist,
            dsack_round: None,
            reo_wnd: Duration::ZERO,
        }
    }

    /// As [`Self::new`], with delivery rate samples.
    pub(crate) fn with_rate_samples(config: RackConfig, una: u64) -> Self {
        let rate = Some(Box::default());
        Self { segments: SentSegments::with_packet_states(una), rate_sampler: rate, ..Self::new(config, una) }
    }

    /// Returns the minimum round-trip time of the filter window.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    /// Returns the round-trip time of the last segment that the current ACK delivers; `None`: none that was sent once.
    pub(crate) fn segment_rtt(&self) -> Option<Duration> {
        self.segment_rtt
    }

    /// Returns the round-trip time of the delivered segment that was sent last ("RACK.rtt").
    pub(crate) fn latest_rtt(&self) -> Option<Duration> {
        self.latest_delivered.map(|delivered| delivered.rtt)
    }

    /// Records the transmission of `at..end`, for the first time or again.
    pub(crate) fn on_sent(&mut self, at: u64, end: u64, now: Instant) {
        let Self { segments: records, rate_sampler: rate, .. } = self;
        let stamp = rate.as_mut().map_or(PacketState::default(), |rate| rate.on_sent(now, records));
        records.on_sent(at, end, now, stamp);
    }

    /// Updates the delivered segments and their order (RFC 8985 §6.2, steps 1 to 3).
    pub(crate) fn on_ack(&mut self, arrival: RackAck<'_>) {
        let Self {
            segments: records,
            rate_sampler: rate,
            min_rtt,
            latest_delivered: recent,
            rtt_in_stream,
            segment_rtt,
            fack,
            reordering,
            reordering_extent,
            tlp,
            ..
        } = self;
        let mut lowest = None;
        let window = self.config.min_rtt_window;
        *segment_rtt = None;
        let last_rtt = Cell::new(None);
        let mut delivered = |record: &SentSegment, stamp: Option<&PacketState>| {
            let rtt = arrival.now.since(record.sent_at);
            if let (Some(rate), Some(stamp)) = (&mut *rate, stamp) {
                rate.on_delivered(arrival.now, record, stamp);
            }
            if record.transmissions == TransmissionCount::Once {
                min_rtt.sample(arrival.now, rtt, window);
                *segment_rtt = Some(rtt);
                tlp.on_rtt_sample();
            }
            if is_of_last_transmission(record, rtt, &arrival, min_rtt.get()) {
                update_latest_delivered(recent, record, rtt);
                last_rtt.set(Some(rtt));
            }
            if record.end > *fack {
                *fack = record.end;
            } else if record.end < *fack && record.transmissions == TransmissionCount::Once {
                *reordering = Reordering::Seen;
                lowest.get_or_insert(record.end);
            }
        };
        records.acknowledge(arrival.una, &mut delivered);
        let cumulative = last_rtt.get();
        for &(left, right) in arrival.blocks {
            if let Some(held) = arrival.scoreboard.block_containing(left) {
                records.sack(left..right, held, &mut delivered);
            }
        }
        if let Some(rtt) = cumulative.or(last_rtt.get()) {
            *rtt_in_stream = rtt;
        }
        if let Some(end) = lowest {
            *reordering_extent = (*reordering_extent).max(*fack - end);
        }
    }

    /// Returns the longest way, in bytes, from the end of a reordered segment to the end of the highest delivered one; `None`
    /// without reordering so far.
    pub(crate) fn reordering_extent(&self) -> Option<u64> {
        (self.reordering == Reordering::Seen).then_some(self.reordering_extent)
    }

    /// Widens the reordering window after a round with a D-SACK (RFC 8985 §6.2, step 4, first half).
    pub(crate) fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_none_or(|end| una >= end) {
            self.dsack_round = Some(nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = self.config.reo_wnd_persist;
        }
    }

    /// Narrows it again after enough recoveries without a D-SACK (step 4, second half).
    pub(crate) fn on_recovery_over(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Marks the overdue segments as lost (RFC 8985 §6.2, step 5).
    pub(crate) fn detect(&mut self, now: Instant, circumstances: ReorderingInput) -> RackResult {
        self.reo_wnd = self.reordering_window(circumstances);
        let Some(recent) = self.latest_delivered else { return RackResult { lost: 0, recheck_at: None } };
        let patience = self.rtt_of(recent) + self.reo_wnd;
        let mut again = None;
        let Self { segments: records, rate_sampler: rate, .. } = self;
        let verdict = |_, record: &SentSegment| {
            if !sent_after((recent.sent_at, recent.end), (record.sent_at, record.end)) {
                // What was sent once was sent in the order of the stream: all behind it was sent later.
                return if record.transmissions == TransmissionCount::Once {
                    LossVerdict::Stop
                } else {
                    LossVerdict::Keep
                };
            }
            let due = record.sent_at + patience;
            if due <= now {
                return LossVerdict::Lost;
            }
            if record.state == SegmentState::InFlight {
                again = again.max(Some(due));
            }
            LossVerdict::Keep
        };
        let lost = records.mark_lost(verdict, loss_recorder(rate));
        RackResult { lost, recheck_at: again }
    }

    /// Marks segments in flight that are larger than `limit` bytes as lost: a router has dropped them.
    pub(crate) fn mark_too_large(&mut self, limit: u64) {
        let verdict = |start, record: &SentSegment| {
            if record.end - start > limit { LossVerdict::Lost } else { LossVerdict::Keep }
        };
        self.segments.mark_lost(verdict, loss_recorder(&mut self.rate_sampler));
    }

    /// Marks losses at an expiry of the retransmission timer: the first segment and all overdue ones (RFC 8985 §6.3).
    /// Returns their number.
    pub(crate) fn on_timeout(&mut self, now: Instant, una: u64, srtt: Option<Duration>) -> u64 {
        let rtt = self.latest_delivered.map(|recent| self.rtt_of(recent)).or(srtt).unwrap_or(Duration::ZERO);
        let patience = rtt + self.reo_wnd;
        self.tlp.reset();
        let verdict = |start, record: &SentSegment| {
            let late = start == una || record.sent_at + patience <= now;
            if late { LossVerdict::Lost } else { LossVerdict::Keep }
        };
        self.segments.mark_lost(verdict, loss_recorder(&mut self.rate_sampler))
    }

    /// Corrects the state after a reduction at `since` was undone. Lost segments count as in flight. Acknowledgments that
    /// seemed to be for retransmissions since then were for the original transmissions.
    pub(crate) fn undo_losses(&mut self, since: Instant) {
        self.segments.undo_losses();
        self.latest_delivered = self.latest_delivered.filter(|recent| recent.sent_at < since);
    }

    /// Corrects the state after the peer has reneged on selectively acknowledged data. Data delivered now give no rate
    /// sample.
    pub(crate) fn on_reneging(&mut self) {
        self.segments.undo_sacks();
        if let Some(rate) = &mut self.rate_sampler {
            rate.discard_sample();
        }
    }

    /// Records the round-trip time of the handshake.
    pub(crate) fn on_handshake(&mut self, now: Instant, rtt: Duration) {
        self.min_rtt.sample(now, rtt, self.config.min_rtt_window);
    }

    /// Returns the round-trip time after which an earlier segment should have arrived ("RACK.rtt").
    fn rtt_of(&self, latest: DeliveredSegment) -> Duration {
        match self.config.rtt_source {
            RackRttSource::LastSent => latest.rtt,
            RackRttSource::LastInStream => self.rtt_in_stream,
        }
    }

    /// Returns the reordering window (RFC 8985 §6.2, step 4). It is zero without reordering so far and with enough
    /// evidence of a loss. Otherwise it is a number of quarters of the minimum round-trip time, at most the smoothed one.
    fn reordering_window(&self, circumstances: ReorderingInput) -> Duration {
        let enough = circumstances.phase != RecoveryPhase::Open
            || self.segments.has_sacked_segments(circumstances.dup_thresh);
        if self.reordering == Reordering::NotSeen && enough {
            return Duration::ZERO;
        }
        let quarters = self.min_rtt.get().unwrap_or(Duration::ZERO).saturating_mul(self.reo_wnd_mult) / 4;
        circumstances.srtt.map_or(quarters, |srtt| quarters.min(srtt))
    }
}

/// Returns a function that reports each lost segment to `rate`, if there is one.
fn loss_recorder(rate: &mut Option<Box<RateSampler>>) -> impl FnMut(Range<u64>, Option<&PacketState>) {
    move |segment, stamp| {
        if let (Some(rate), Some(stamp)) = (&mut *rate, stamp) {
            rate.on_lost(segment, stamp);
        }
    }
}

/// Returns whether an ACK certainly delivers the last transmission of a segment. That of a retransmitted one may be for an
/// earlier transmission (RFC 8985 §6.2, step 2).
fn is_of_last_transmission(
    record: &SentSegment,
    rtt: Duration,
    arrival: &RackAck<'_>,
    least: Option<Duration>,
) -> bool {
    if record.transmissions == TransmissionCount::Once {
        return true;
    }
    let millis = Instant::from_millis(record.sent_at.as_nanos() / 1_000_000);
    let of_earlier = arrival.echoed_send_time.is_some_and(|echoed| echoed < millis);
    !of_earlier && least.is_none_or(|least| rtt >= least)
}

/// Updates the latest delivered segment (RFC 8985 §6.2, step 2).
fn update_latest_delivered(recent: &mut Option<DeliveredSegment>, record: &SentSegment, rtt: Duration) {
    if recent.is_none_or(|r| sent_after((record.sent_at, record.end), (r.sent_at, r.end))) {
        *recent = Some(DeliveredSegment { sent_at: record.sent_at, end: record.end, rtt });
    }
}

/// Returns whether `a` was sent after `b` ("RACK_sent_after"). At equal times the stream order decides.
pub(crate) fn sent_after(a: (Instant, u64), b: (Instant, u64)) -> bool {
    a > b
}

/// Minimum round-trip times of the current and the previous filter period ("RACK.min_RTT").
#[derive(Clone, Copy, Debug, Default)]
struct WindowedMinRtt {
    since: Option<Instant>,
    current: Option<Duration>,
    previous: Option<Duration>,
}

impl WindowedMinRtt {
    fn sample(&mut self, now: Instant, rtt: Duration, window: Duration) {
        if self.since.is_none_or(|since| now.since(since) >= window) {
            let stale = self.since.is_some_and(|since| now.since(since) >= window.saturating_mul(2));
            self.previous = if stale { None } else { self.current };
            self.current = None;
            self.since = Some(now);
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
    }

    fn get(&self) -> Option<Duration> {
        [self.current, self.previous].into_iter().flatten().min()
    }
}
