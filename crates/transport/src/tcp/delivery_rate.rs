//! Delivery rate estimation: a sample from each acknowledgment (draft-ietf-ccwg-bbr §4.1, which includes
//! draft-cheng-iccrg-delivery-rate-estimation; Linux: `tcp_rate.c`).
//!
//! Each transmission carries a [`PacketState`] of the data delivered by then. At its acknowledgment, the data delivered since
//! then, divided by the interval, are a sample of the rate of the path. The interval is the longer one of the send and
//! the ACK interval. Bunched or early acknowledgments therefore cannot make the rate higher than the sending rate.

use super::rack::sent_after;
use super::sent_segments::{SentSegment, SentSegments, TransmissionCount};
use core::ops::Range;
use hopline_core::{Duration, Instant};

/// Delivery state at the time of sending of a segment ("P." in the draft).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketState {
    /// Bytes delivered by then.
    pub(crate) delivered: u64,
    /// Time of the last delivery by then.
    pub(crate) delivered_at: Instant,
    /// Time of sending of the segment that was acknowledged last by then.
    pub(crate) first_sent: Instant,
    /// Bytes lost by then.
    pub(crate) lost: u64,
    /// Bytes in flight then, this segment included.
    pub(crate) in_flight: u64,
    pub(crate) limit: SendLimit,
}

/// Limit of the sender at the time of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendLimit {
    /// The path, or the congestion window: samples show the rate of the path.
    #[default]
    Path,
    /// The application, which had nothing to send: samples are a lower bound of the rate of the path.
    Application,
}

/// Rate sample of an acknowledgment ("RS." in the draft).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateSample {
    /// Delivery rate, bytes per second; `None`: the interval is shorter than the minimum round-trip time, so the
    /// acknowledgment belongs to another transmission.
    pub(crate) rate: Option<f64>,
    /// Bytes delivered since the newest acknowledged segment was sent.
    pub(crate) delivered: u64,
    /// Bytes delivered before that segment was sent.
    pub(crate) prior_delivered: u64,
    /// Bytes lost since that segment was sent.
    pub(crate) lost: u64,
    /// Bytes in flight when that segment was sent, itself included.
    pub(crate) in_flight: u64,
    pub(crate) limit: SendLimit,
    /// Shortest round-trip time of the acknowledged segments that were sent once; `None`: there is none.
    pub(crate) min_rtt: Option<Duration>,
}

/// Segment that was declared lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostSegment {
    /// Range in the stream.
    pub(crate) segment: Range<u64>,
    /// Delivery state at its sending.
    pub(crate) stamp: PacketState,
    /// Total of lost bytes, this segment included.
    pub(crate) lost: u64,
}

/// State of one connection ("C." in the draft).
#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    /// Total of delivered bytes up to which samples are application-limited.
    app_limited_until: Option<u64>,
    newest_acked: Option<NewestAcked>,
    losses: Vec<LostSegment>,
}

/// Newest segment that the current acknowledgment covers.
#[derive(Clone, Copy, Debug)]
struct NewestAcked {
    sent_at: Instant,
    end: u64,
    stamp: PacketState,
    min_rtt: Option<Duration>,
}

impl RateSampler {
    /// Returns the total of delivered bytes, acknowledged cumulatively or selectively.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the time of the last delivery.
    pub(crate) fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Returns the total of lost bytes.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the current limit of the sender.
    pub(crate) fn limit(&self) -> SendLimit {
        if self.app_limited_until.is_some() { SendLimit::Application } else { SendLimit::Path }
    }

    /// Returns the stamp of a segment that is sent now ("OnPacketSent"). If no data are outstanding, the interval begins
    /// with it. As in Linux, outstanding data count and not those in flight, which are an estimate and can be zero by
    /// mistake.
    pub(crate) fn on_sent(&mut self, now: Instant, outstanding: &SentSegments) -> PacketState {
        if outstanding.is_empty() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        PacketState {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: 0, // known when it has left
            limit: self.limit(),
        }
    }

    /// Records that the current acknowledgment covers this segment, among others ("UpdateRateSample").
    pub(crate) fn on_delivered(&mut self, now: Instant, record: &SentSegment, stamp: &PacketState) {
        let round_trip = (record.transmissions == TransmissionCount::Once).then(|| now.since(record.sent_at));
        let known = self.newest_acked.and_then(|newest| newest.min_rtt);
        let shortest = round_trip.into_iter().chain(known).min();
        match &mut self.newest_acked {
            Some(newest) if !sent_after((record.sent_at, record.end), (newest.sent_at, newest.end)) => {
                newest.min_rtt = shortest;
            }
            newest => {
                let (sent, end) = (record.sent_at, record.end);
                *newest = Some(NewestAcked { sent_at: sent, end, stamp: *stamp, min_rtt: shortest });
            }
        }
    }

    /// Records the loss of a segment.
    pub(crate) fn on_lost(&mut self, segment: Range<u64>, stamp: &PacketState) {
        self.lost += segment.end - segment.start;
        self.losses.push(LostSegment { segment, stamp: *stamp, lost: self.lost });
    }

    /// Returns the losses since the last call.
    pub(crate) fn take_losses(&mut self) -> Vec<LostSegment> {
        core::mem::take(&mut self.losses)
    }

    /// Returns the rate sample of the current acknowledgment, which delivered `delivered` bytes ("GenerateRateSample").
    /// `None`: it covers no whole segment. `least`: minimum round-trip time so far.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        delivered: u64,
        least: Option<Duration>,
    ) -> Option<RateSample> {
        if delivered > 0 {
            self.delivered += delivered;
            self.delivered_at = now;
        }
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let NewestAcked { sent_at: sent, stamp, min_rtt: round_trip, .. } = self.newest_acked.take()?;
        let interval = sent.since(stamp.first_sent).max(now.since(stamp.delivered_at));
        self.first_sent = sent;
        let delivered = self.delivered - stamp.delivered;
        let reliable = !interval.is_zero() && least.is_none_or(|least| interval >= least);
        Some(RateSample {
            rate: reliable.then(|| delivered as f64 / interval.as_secs_f64()),
            delivered,
            prior_delivered: stamp.delivered,
            lost: self.lost - stamp.lost,
            in_flight: stamp.in_flight,
            limit: stamp.limit,
            min_rtt: round_trip,
        })
    }

    /// Marks the following samples as application-limited, until the `in_flight` bytes are delivered. The application has
    /// nothing to send though the window is open ("MarkConnectionAppLimited").
    pub(crate) fn set_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// Discards the current sample, since the peer has reneged on selectively acknowledged data.
    pub(crate) fn discard_sample(&mut self) {
        self.newest_acked = None;
    }
}
