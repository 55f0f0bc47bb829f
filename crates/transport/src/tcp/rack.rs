//! RACK: time-based loss detection (RFC 8985 §6).
//!
//! Of two segments, the one that was sent earlier should arrive earlier. An earlier segment is lost if a later one has
//! arrived, and a round trip and the reordering window have passed since the earlier one was sent. This also holds for
//! retransmissions.

use super::congestion::Phase;
use super::delivery_rate::{DeliveryRate, Stamp};
use super::scoreboard::Scoreboard;
use super::tlp::{TailProbe, Tlp};
use super::transmissions::{Fate, Record, Times, Transmissions, Verdict};
use core::ops::Range;
use hopline_core::{Duration, Instant};

/// Parameters of [`LossDetection::Rack`](super::LossDetection::Rack).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RackConfig {
    /// Window of the minimum filter for round-trip times; the reordering window is a quarter of the minimum. A sample
    /// counts for at least this time, at most twice as long. Above zero, default 300 s (as Linux; RFC 8985 §6.2, step 1,
    /// leaves it open).
    pub min_rtt_window: Duration,
    /// Number of recoveries without a D-SACK after which the reordering window is reset. 1–255, default 16
    /// (RFC 8985 §6.2, step 4).
    pub reo_wnd_persist: u8,
    /// Tail loss probe. Default after two round trips (RFC 8985 §7).
    pub tail_probe: TailProbe,
}

impl RackConfig {
    /// Parameters of RFC 8985.
    pub const RFC8985: Self = Self {
        min_rtt_window: Duration::from_secs(300),
        reo_wnd_persist: 16,
        tail_probe: TailProbe::On { max_ack_delay: Duration::from_millis(200) },
    };
}

/// State of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    config: RackConfig,
    pub(crate) records: Transmissions,
    /// Delivery rate samples, from the same records; `None`: not needed.
    pub(crate) rate: Option<Box<DeliveryRate>>,
    pub(crate) tlp: Tlp,
    min_rtt: MinRtt,
    recent: Option<Delivered>,
    /// Highest position that the peer has acknowledged, selectively or not ("RACK.fack").
    fack: u64,
    reordering: Reordering,
    /// Size of the reordering window, quarters of the minimum round-trip time ("RACK.reo_wnd_mult").
    quarters: u64,
    /// Number of recoveries until the window is reset to one quarter ("RACK.reo_wnd_persist").
    persist: u8,
    /// Position up to which further D-SACKs belong to the same round ("RACK.dsack_round").
    dsack_round: Option<u64>,
    /// Reordering window at the last ACK ("RACK.reo_wnd").
    window: Duration,
}

/// Delivered segment that was sent last ("RACK.xmit_ts", "RACK.end_seq", "RACK.rtt").
#[derive(Clone, Copy, Debug)]
struct Delivered {
    sent: Instant,
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
pub(crate) struct Arrival<'a> {
    /// Time of arrival.
    pub(crate) now: Instant,
    /// First unacknowledged position, after it.
    pub(crate) una: u64,
    /// Selectively acknowledged blocks beyond it.
    pub(crate) board: &'a Scoreboard,
    /// Blocks that it reports, ascending.
    pub(crate) blocks: &'a [(u64, u64)],
    /// Time of sending of the segment that the timestamp echo names, in whole milliseconds.
    pub(crate) echoed: Option<Instant>,
}

/// Inputs for the size of the reordering window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub(crate) phase: Phase,
    pub(crate) srtt: Option<Duration>,
    /// Number of segments above a hole that indicate a loss without reordering ("DupThresh").
    pub(crate) threshold: u32,
}

/// Result of loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Number of segments found lost.
    pub(crate) lost: u64,
    /// Time of the next check.
    pub(crate) again: Option<Instant>,
}

impl Rack {
    /// Creates the state before the first byte, which has position `una`.
    pub(crate) fn new(config: RackConfig, una: u64) -> Self {
        Self {
            config,
            records: Transmissions::new(una),
            rate: None,
            tlp: Tlp::new(config.tail_probe),
            min_rtt: MinRtt::default(),
            recent: None,
            fack: una,
            reordering: Reordering::NotSeen,
            quarters: 1,
            persist: config.reo_wnd_persist,
            dsack_round: None,
            window: Duration::ZERO,
        }
    }

    /// As [`Self::new`], with delivery rate samples.
    pub(crate) fn sampling(config: RackConfig, una: u64) -> Self {
        let rate = Some(Box::default());
        Self { records: Transmissions::stamped(una), rate, ..Self::new(config, una) }
    }

    /// Returns the minimum round-trip time of the filter window.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.least()
    }

    /// Records the transmission of `at..end`, for the first time or again.
    pub(crate) fn on_sent(&mut self, at: u64, end: u64, now: Instant) {
        let Self { records, rate, .. } = self;
        let stamp = rate.as_mut().map_or(Stamp::default(), |rate| rate.stamp(now, records));
        records.sent(at, end, now, stamp);
    }

    /// Updates the delivered segments and their order (RFC 8985 §6.2, steps 1 to 3).
    pub(crate) fn on_ack(&mut self, arrival: Arrival<'_>) {
        let Self { records, rate, min_rtt, recent, fack, reordering, tlp, .. } = self;
        let window = self.config.min_rtt_window;
        let mut delivered = |record: &Record, stamp: Option<&Stamp>| {
            let rtt = arrival.now.since(record.sent);
            if let (Some(rate), Some(stamp)) = (&mut *rate, stamp) {
                rate.note_delivered(arrival.now, record, stamp);
            }
            if record.times == Times::Once {
                min_rtt.sample(arrival.now, rtt, window);
                tlp.note_sample();
            }
            update(recent, record, rtt, &arrival, min_rtt.least());
            if record.end > *fack {
                *fack = record.end;
            } else if record.end < *fack && record.times == Times::Once {
                *reordering = Reordering::Seen;
            }
        };
        records.acknowledge(arrival.una, &mut delivered);
        for &(left, right) in arrival.blocks {
            if let Some(held) = arrival.board.around(left) {
                records.sack(left..right, held, &mut delivered);
            }
        }
    }

    /// Widens the reordering window after a round with a D-SACK (RFC 8985 §6.2, step 4, first half).
    pub(crate) fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_none_or(|end| una >= end) {
            self.dsack_round = Some(nxt);
            self.quarters += 1;
            self.persist = self.config.reo_wnd_persist;
        }
    }

    /// Narrows it again after enough recoveries without a D-SACK (step 4, second half).
    pub(crate) fn on_recovery_over(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// Marks the overdue segments as lost (RFC 8985 §6.2, step 5).
    pub(crate) fn detect(&mut self, now: Instant, circumstances: Circumstances) -> Found {
        self.window = self.reordering_window(circumstances);
        let Some(recent) = self.recent else { return Found { lost: 0, again: None } };
        let patience = recent.rtt + self.window;
        let mut again = None;
        let Self { records, rate, .. } = self;
        let verdict = |_, record: &Record| {
            if !sent_after((recent.sent, recent.end), (record.sent, record.end)) {
                // What was sent once was sent in the order of the stream: all behind it was sent later.
                return if record.times == Times::Once { Verdict::Stop } else { Verdict::Leave };
            }
            let due = record.sent + patience;
            if due <= now {
                return Verdict::Lost;
            }
            if record.fate == Fate::InFlight {
                again = again.max(Some(due));
            }
            Verdict::Leave
        };
        let lost = records.mark_lost(verdict, note_lost(rate));
        Found { lost, again }
    }

    /// Marks losses at an expiry of the retransmission timer: the first segment and all overdue ones (RFC 8985 §6.3).
    /// Returns their number.
    pub(crate) fn on_timeout(&mut self, now: Instant, una: u64, srtt: Option<Duration>) -> u64 {
        let rtt = self.recent.map(|recent| recent.rtt).or(srtt).unwrap_or(Duration::ZERO);
        let patience = rtt + self.window;
        self.tlp.reset();
        let verdict = |start, record: &Record| {
            let late = start == una || record.sent + patience <= now;
            if late { Verdict::Lost } else { Verdict::Leave }
        };
        self.records.mark_lost(verdict, note_lost(&mut self.rate))
    }

    /// Corrects the state after a reduction at `since` was undone. Lost segments count as in flight. Acknowledgments that
    /// seemed to be for retransmissions since then were for the original transmissions.
    pub(crate) fn forgive(&mut self, since: Instant) {
        self.records.forgive();
        self.recent = self.recent.filter(|recent| recent.sent < since);
    }

    /// Corrects the state after the peer has reneged on selectively acknowledged data. Data delivered now give no rate
    /// sample.
    pub(crate) fn forget_sacks(&mut self) {
        self.records.forget_sacks();
        if let Some(rate) = &mut self.rate {
            rate.forget_newest();
        }
    }

    /// Records the round-trip time of the handshake.
    pub(crate) fn on_handshake(&mut self, now: Instant, rtt: Duration) {
        self.min_rtt.sample(now, rtt, self.config.min_rtt_window);
    }

    /// Returns the reordering window (RFC 8985 §6.2, step 4). It is zero without reordering so far and with enough
    /// evidence of a loss. Otherwise it is a number of quarters of the minimum round-trip time, at most the smoothed one.
    fn reordering_window(&self, circumstances: Circumstances) -> Duration {
        let enough =
            circumstances.phase != Phase::Open || self.records.has_sacked_segments(circumstances.threshold);
        if self.reordering == Reordering::NotSeen && enough {
            return Duration::ZERO;
        }
        let quarters = self.min_rtt.least().unwrap_or(Duration::ZERO).saturating_mul(self.quarters) / 4;
        circumstances.srtt.map_or(quarters, |srtt| quarters.min(srtt))
    }
}

/// Returns a function that reports each lost segment to `rate`, if there is one.
fn note_lost(rate: &mut Option<Box<DeliveryRate>>) -> impl FnMut(Range<u64>, Option<&Stamp>) {
    move |segment, stamp| {
        if let (Some(rate), Some(stamp)) = (&mut *rate, stamp) {
            rate.note_lost(segment, stamp);
        }
    }
}

/// Updates the latest delivered segment (RFC 8985 §6.2, step 2). A retransmitted segment does not count if the ACK may be
/// for an earlier transmission.
fn update(
    recent: &mut Option<Delivered>,
    record: &Record,
    rtt: Duration,
    arrival: &Arrival<'_>,
    least: Option<Duration>,
) {
    if record.times == Times::Again {
        let millis = Instant::from_millis(record.sent.as_nanos() / 1_000_000);
        let of_earlier = arrival.echoed.is_some_and(|echoed| echoed < millis);
        if of_earlier || least.is_some_and(|least| rtt < least) {
            return;
        }
    }
    if recent.is_none_or(|r| sent_after((record.sent, record.end), (r.sent, r.end))) {
        *recent = Some(Delivered { sent: record.sent, end: record.end, rtt });
    }
}

/// Returns whether `a` was sent after `b` ("RACK_sent_after"). At equal times the stream order decides.
pub(crate) fn sent_after(a: (Instant, u64), b: (Instant, u64)) -> bool {
    a > b
}

/// Minimum round-trip times of the current and the previous filter period ("RACK.min_RTT").
#[derive(Clone, Copy, Debug, Default)]
struct MinRtt {
    since: Option<Instant>,
    now: Option<Duration>,
    before: Option<Duration>,
}

impl MinRtt {
    fn sample(&mut self, now: Instant, rtt: Duration, window: Duration) {
        if self.since.is_none_or(|since| now.since(since) >= window) {
            let stale = self.since.is_some_and(|since| now.since(since) >= window.saturating_mul(2));
            self.before = if stale { None } else { self.now };
            self.now = None;
            self.since = Some(now);
        }
        self.now = Some(self.now.map_or(rtt, |least| least.min(rtt)));
    }

    fn least(&self) -> Option<Duration> {
        [self.now, self.before].into_iter().flatten().min()
    }
}
