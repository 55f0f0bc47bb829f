//! Interface between an endpoint and rate-based congestion control (BBR). The endpoint samples the delivery rate, reports
//! losses, detects application limits, and applies the window and the rate.

use super::congestion::bbr::{Bbr, Samples, Seen};
use super::delivery_rate::DeliveryRate;
use super::detect::Taken;
use super::endpoint::Endpoint;
use crate::pacing::{Pacer, RatePacing};
use hopline_core::{Duration, Instant, Payload};

/// State before an acknowledgment is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// Bytes in flight.
    in_flight: u64,
    /// Total of lost bytes.
    lost: u64,
}

impl<P: Payload> Endpoint<P> {
    /// Starts BBR on an open connection. `round_trip`: of the handshake.
    pub(super) fn start_steering(&mut self, now: Instant, round_trip: Option<Duration>) {
        self.control.open_bbr(now, round_trip);
        if let Some(bbr) = self.control.bbr() {
            self.pacing = Some(Box::new(Pacer::Rate(RatePacing::new(bbr.free_segments()))));
            self.obey();
        }
    }

    /// Records the state before an acknowledgment is processed.
    pub(super) fn before_steering(&mut self) -> Before {
        self.check_application_limit();
        let Some(rack) = &self.rack else { return Before::default() };
        let Some(rate) = &rack.rate else { return Before::default() };
        Before { in_flight: rack.records.in_flight(), lost: rate.lost() }
    }

    /// Updates BBR after an acknowledgment was processed and losses were looked for.
    pub(super) fn steer(&mut self, now: Instant, taken: Taken, before: Before) {
        if self.control.bbr().is_none() {
            return;
        }
        self.tell_losses(now);
        let phase = self.control.phase();
        let smoothed = self.rto.srtt();
        let due = self.pacing.as_mut().and_then(|p| p.rate()).map_or(now, |pacing| pacing.due());
        let Some(rack) = &mut self.rack else { return };
        let least = rack.min_rtt();
        let in_flight = rack.records.in_flight();
        let (Some(rate), Some(bbr)) = (&mut rack.rate, self.control.bbr()) else { return };
        let sample = rate.sample(now, taken.delivered, least);
        let seen = Seen {
            now,
            sample,
            acked: taken.delivered,
            lost: rate.lost() - before.lost,
            delivered: rate.delivered(),
            lost_so_far: rate.lost(),
            delivered_at: rate.delivered_at(),
            in_flight_before: before.in_flight,
            in_flight,
            phase,
            smoothed,
            due,
            filled: bbr.take_filled(),
        };
        if bbr.on_ack(&seen) == Samples::Limited {
            rate.limit_by_application(in_flight);
        }
        self.obey();
    }

    /// Reports new losses to BBR.
    pub(super) fn tell_losses(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            for loss in rate.take_losses() {
                bbr.on_loss(&loss, rate.delivered(), now);
            }
        }
    }

    /// Updates BBR at an expiry of the retransmission timer, after overdue data were marked as lost.
    pub(super) fn steer_on_timeout(&mut self, now: Instant) {
        self.tell_losses(now);
        let Some(in_flight) = self.rack.as_ref().map(|rack| rack.records.in_flight()) else { return };
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_timeout(now, in_flight, rate.delivered(), rate.lost());
            self.obey();
        }
    }

    /// Notifies BBR that a tail loss probe repaired the only loss of its flight.
    pub(super) fn steer_on_tail_loss(&mut self) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_tail_loss(rate.delivered());
        }
    }

    /// Notifies BBR that a reduction was undone.
    pub(super) fn steer_on_undo(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_undo(now, rate.delivered(), rate.lost());
            self.obey();
        }
    }

    /// Notifies BBR of a transmission while nothing is outstanding.
    pub(super) fn steer_on_resume(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_resume(now, rate.limit(), rate.delivered());
            self.obey();
        }
    }

    /// Notifies BBR if the window is full after a transmission.
    pub(super) fn note_window_use(&mut self) {
        let (mss, cwnd) = (u64::from(self.snd.mss), u64::from(self.control.cwnd()));
        let Some(rack) = &self.rack else { return };
        if rack.records.in_flight() + mss > cwnd
            && let Some(bbr) = self.control.bbr()
        {
            bbr.note_filled();
        }
    }

    /// Checks if lack of data limits the bytes in flight ("CheckIfApplicationLimited" of draft-ietf-ccwg-bbr). Called
    /// before the application passes more data, before an acknowledgment changes the bytes in flight, and before timers
    /// do.
    pub(super) fn check_application_limit(&mut self) {
        let Some(rack) = &mut self.rack else { return };
        let Some(rate) = &mut rack.rate else { return };
        let unsent = self.snd.queue.end().saturating_sub(self.snd.nxt);
        let (mss, cwnd) = (u64::from(self.snd.mss), u64::from(self.control.cwnd()));
        let in_flight = rack.records.in_flight();
        if unsent < mss && in_flight < cwnd && rack.records.first_lost().is_none() {
            rate.limit_by_application(in_flight);
        }
    }

    fn rate_and_bbr(&mut self) -> Option<(&mut DeliveryRate, &mut Bbr)> {
        let rate = self.rack.as_mut()?.rate.as_deref_mut()?;
        Some((rate, self.control.bbr()?))
    }

    /// Applies the window and the rate of BBR.
    fn obey(&mut self) {
        if let Some(orders) = self.control.follow_bbr()
            && let Some(pacing) = self.pacing.as_mut().and_then(|pacing| pacing.rate())
        {
            pacing.set(orders.rate, orders.train);
        }
    }
}
