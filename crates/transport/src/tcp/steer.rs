//! What an endpoint does for congestion control that goes by rates (BBR): it samples how fast data are delivered, tells what was lost,
//! notes when the application is what limits it, and does what it is told.

use super::congestion::bbr::{Bbr, Samples, Seen};
use super::delivery_rate::DeliveryRate;
use super::detect::Taken;
use super::endpoint::Endpoint;
use crate::pacing::{Pacer, RatePacing};
use hopline_core::{Duration, Instant, Payload};

/// How things stood before an acknowledgment was taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    /// Bytes in flight.
    in_flight: u64,
    /// Bytes lost so far.
    lost: u64,
}

impl<P: Payload> Endpoint<P> {
    /// The connection is open. `round_trip`: of the handshake.
    pub(super) fn start_steering(&mut self, now: Instant, round_trip: Option<Duration>) {
        self.control.open_bbr(now, round_trip);
        if let Some(bbr) = self.control.bbr() {
            self.pacing = Some(Box::new(Pacer::Rate(RatePacing::new(bbr.free_segments()))));
            self.obey();
        }
    }

    /// An acknowledgment is about to be taken.
    pub(super) fn before_steering(&mut self) -> Before {
        self.check_application_limit();
        let Some(rack) = &self.rack else { return Before::default() };
        let Some(rate) = &rack.rate else { return Before::default() };
        Before { in_flight: rack.records.in_flight(), lost: rate.lost() }
    }

    /// An acknowledgment was taken, and losses were looked for.
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

    /// Segments may have been taken for lost.
    pub(super) fn tell_losses(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            for loss in rate.take_losses() {
                bbr.on_loss(&loss, rate.delivered(), now);
            }
        }
    }

    /// The retransmission timer expired, and what should have arrived is taken for lost.
    pub(super) fn steer_on_timeout(&mut self, now: Instant) {
        self.tell_losses(now);
        let Some(in_flight) = self.rack.as_ref().map(|rack| rack.records.in_flight()) else { return };
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_timeout(now, in_flight, rate.delivered(), rate.lost());
            self.obey();
        }
    }

    /// A probe repaired the only loss of its flight.
    pub(super) fn steer_on_tail_loss(&mut self) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_tail_loss(rate.delivered());
        }
    }

    /// A reduction was undone.
    pub(super) fn steer_on_undo(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_undo(now, rate.delivered(), rate.lost());
            self.obey();
        }
    }

    /// Data leave though nothing is outstanding.
    pub(super) fn steer_on_resume(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.rate_and_bbr() {
            bbr.on_resume(now, rate.limit(), rate.delivered());
            self.obey();
        }
    }

    /// A segment left: whether another fits into the window.
    pub(super) fn note_window_use(&mut self) {
        let (mss, cwnd) = (u64::from(self.snd.mss), u64::from(self.control.cwnd()));
        let Some(rack) = &self.rack else { return };
        if rack.records.in_flight() + mss > cwnd
            && let Some(bbr) = self.control.bbr()
        {
            bbr.note_filled();
        }
    }

    /// Whether it is for want of data that no more is in flight ("CheckIfApplicationLimited" of draft-ietf-ccwg-bbr): asked before the
    /// application hands over more, before an acknowledgment changes what is in flight, and before timers do.
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

    /// Window and rate are what BBR says.
    fn obey(&mut self) {
        if let Some(orders) = self.control.follow_bbr()
            && let Some(pacing) = self.pacing.as_mut().and_then(|pacing| pacing.rate())
        {
            pacing.set(orders.rate, orders.train);
        }
    }
}
