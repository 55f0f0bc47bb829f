//! How fast data are delivered: a sample from each acknowledgment (draft-ietf-ccwg-bbr §4.1, which took in
//! draft-cheng-iccrg-delivery-rate-estimation; Linux: `tcp_rate.c`).
//!
//! Each transmission carries a [`Stamp`] of what was delivered by then. When it is acknowledged, what has been delivered since,
//! over the time that took, is a sample of the rate of the path. The time is that of the sending or that of the acknowledgments,
//! whichever was longer: acknowledgments that come in a bunch, or too soon, cannot make the path look faster than data were sent.

use super::rack::sent_after;
use super::transmissions::{Record, Times, Transmissions};
use core::ops::Range;
use hopline_core::{Duration, Instant};

/// What was known when a segment was sent ("P." in the draft).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Bytes delivered by then.
    pub(crate) delivered: u64,
    /// When the last of these were.
    pub(crate) delivered_at: Instant,
    /// When the segment was sent of which the last acknowledgment told.
    pub(crate) first_sent: Instant,
    /// Bytes lost by then.
    pub(crate) lost: u64,
    /// Bytes in flight then, this segment included.
    pub(crate) in_flight: u64,
    pub(crate) limit: Limit,
}

/// What limited the sender when a segment was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The path, or what is thought of it: a sample tells of the path.
    #[default]
    Path,
    /// The application, which had nothing to send: a sample tells that the path is at least so fast.
    Application,
}

/// What an acknowledgment tells of the path ("RS." in the draft).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateSample {
    /// Bytes per second; `None`: the interval is shorter than any round trip, so that the acknowledgment is for another
    /// transmission than it seems.
    pub(crate) rate: Option<f64>,
    /// Bytes delivered since the newest segment that is acknowledged was sent.
    pub(crate) delivered: u64,
    /// Bytes that had been delivered when it was.
    pub(crate) prior_delivered: u64,
    /// Bytes lost since it was.
    pub(crate) lost: u64,
    /// Bytes in flight when it was, itself included.
    pub(crate) in_flight: u64,
    pub(crate) limit: Limit,
    /// The round trip of the newest segment that was sent once; `None`: there is none.
    pub(crate) round_trip: Option<Duration>,
}

/// A segment that was taken for lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Where it is in the stream.
    pub(crate) segment: Range<u64>,
    /// As it was sent.
    pub(crate) stamp: Stamp,
    /// Bytes lost in all, with this one.
    pub(crate) lost: u64,
}

/// State of one connection ("C." in the draft).
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    /// Until so many bytes are delivered, samples are the application's.
    limited_until: Option<u64>,
    newest: Option<Newest>,
    losses: Vec<Loss>,
}

/// The newest segment that the acknowledgment at hand is for.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sent: Instant,
    end: u64,
    stamp: Stamp,
    round_trip: Option<Duration>,
}

impl DeliveryRate {
    /// Bytes delivered so far, acknowledged selectively or not.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When the last of these were.
    pub(crate) fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Bytes taken for lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether what limits the sender now is the application.
    pub(crate) fn limit(&self) -> Limit {
        if self.limited_until.is_some() { Limit::Application } else { Limit::Path }
    }

    /// The stamp of a segment that is sent now ("OnPacketSent"). After silence the interval begins with it. Silence is that nothing
    /// is outstanding, as in Linux: what is in flight is an estimate, and can be nothing by mistake.
    pub(crate) fn stamp(&mut self, now: Instant, outstanding: &Transmissions) -> Stamp {
        if outstanding.is_empty() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: 0, // known when it has left
            limit: self.limit(),
        }
    }

    /// The acknowledgment at hand is for this segment, among others ("UpdateRateSample").
    pub(crate) fn note_delivered(&mut self, now: Instant, record: &Record, stamp: &Stamp) {
        let round_trip = (record.times == Times::Once).then(|| now.since(record.sent));
        let known = self.newest.and_then(|newest| newest.round_trip);
        let shortest = round_trip.into_iter().chain(known).min();
        match &mut self.newest {
            Some(newest) if !sent_after((record.sent, record.end), (newest.sent, newest.end)) => {
                newest.round_trip = shortest;
            }
            newest => {
                let (sent, end) = (record.sent, record.end);
                *newest = Some(Newest { sent, end, stamp: *stamp, round_trip: shortest });
            }
        }
    }

    /// A segment is taken for lost.
    pub(crate) fn note_lost(&mut self, segment: Range<u64>, stamp: &Stamp) {
        self.lost += segment.end - segment.start;
        self.losses.push(Loss { segment, stamp: *stamp, lost: self.lost });
    }

    /// What was taken for lost since this was asked last.
    pub(crate) fn take_losses(&mut self) -> Vec<Loss> {
        core::mem::take(&mut self.losses)
    }

    /// The sample of the acknowledgment at hand, which delivered so many bytes ("GenerateRateSample"). `None`: it is for no whole
    /// segment. `least`: the least round trip there was.
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
        if self.limited_until.is_some_and(|until| self.delivered > until) {
            self.limited_until = None;
        }
        let Newest { sent, stamp, round_trip, .. } = self.newest.take()?;
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
            round_trip,
        })
    }

    /// The application has nothing to send though it might, with so many bytes in flight: what is delivered of these and what is sent until then
    /// tells of the application ("MarkConnectionAppLimited").
    pub(crate) fn limit_by_application(&mut self, in_flight: u64) {
        self.limited_until = Some(self.delivered + in_flight);
    }

    /// What the peer said it held it does not: this acknowledgment tells nothing.
    pub(crate) fn forget_newest(&mut self) {
        self.newest = None;
    }
}
