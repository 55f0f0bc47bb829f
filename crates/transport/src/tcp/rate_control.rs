//! Interface between an endpoint and rate-based congestion control (BBR). The endpoint samples the delivery rate, reports
//! losses, detects application limits, and applies the window and the rate.

use super::congestion::bbr::{Bbr, BbrAck, SampleKind};
use super::delivery_rate::RateSampler;
use super::endpoint::Endpoint;
use super::loss_detection::AckSummary;
use crate::pacing::{Pacer, RatePacing};
use hopline_core::{Duration, Instant, Payload};

/// State before an acknowledgment is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateControlSnapshot {
    /// Bytes in flight.
    in_flight: u64,
    /// Total of lost bytes.
    lost: u64,
}

impl<P: Payload> Endpoint<P> {
    /// Starts BBR on an open connection. `round_trip`: of the handshake.
    pub(super) fn start_rate_control(&mut self, now: Instant, round_trip: Option<Duration>) {
        self.control.start_bbr(now, round_trip);
        if let Some(bbr) = self.control.bbr() {
            self.pacing = Some(Box::new(Pacer::Rate(RatePacing::new(bbr.unpaced_segments()))));
            self.apply_bbr_output();
        }
    }

    /// Records the state before an acknowledgment is processed.
    pub(super) fn rate_control_snapshot(&mut self) -> RateControlSnapshot {
        self.check_if_application_limited();
        let Some(rack) = &self.rack else { return RateControlSnapshot::default() };
        let Some(rate) = &rack.rate_sampler else { return RateControlSnapshot::default() };
        RateControlSnapshot { in_flight: rack.segments.in_flight(), lost: rate.lost() }
    }

    /// Updates BBR after an acknowledgment was processed and losses were looked for.
    pub(super) fn update_rate_control(
        &mut self,
        now: Instant,
        taken: AckSummary,
        before: RateControlSnapshot,
    ) {
        if self.control.bbr().is_none() {
            return;
        }
        self.report_losses(now);
        let phase = self.control.phase();
        let smoothed = self.rto.srtt();
        let due = self.pacing.as_mut().and_then(|p| p.rate()).map_or(now, |pacing| pacing.next_burst());
        let Some(rack) = &mut self.rack else { return };
        let least = rack.min_rtt();
        let in_flight = rack.segments.in_flight();
        let (Some(rate), Some(bbr)) = (&mut rack.rate_sampler, self.control.bbr()) else { return };
        let sample = rate.sample(now, taken.delivered, least);
        let seen = BbrAck {
            now,
            sample,
            acked: taken.delivered,
            newly_lost: rate.lost() - before.lost,
            delivered: rate.delivered(),
            lost: rate.lost(),
            delivered_at: rate.delivered_at(),
            in_flight_before: before.in_flight,
            in_flight,
            phase,
            srtt: smoothed,
            next_burst: due,
            cwnd_limited: bbr.take_cwnd_limited(),
        };
        if bbr.on_ack(&seen) == SampleKind::AppLimited {
            rate.set_app_limited(in_flight);
        }
        self.apply_bbr_output();
    }

    /// Reports new losses to BBR.
    pub(super) fn report_losses(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.sampler_and_bbr() {
            for loss in rate.take_losses() {
                bbr.on_loss(&loss, rate.delivered(), now);
            }
        }
    }

    /// Updates BBR at an expiry of the retransmission timer, after overdue data were marked as lost.
    pub(super) fn rate_control_on_timeout(&mut self, now: Instant) {
        if let Some(bbr) = self.control.bbr() {
            bbr.save_before_timeout();
        }
        self.report_losses(now);
        let Some(in_flight) = self.rack.as_ref().map(|rack| rack.segments.in_flight()) else { return };
        if let Some((rate, bbr)) = self.sampler_and_bbr() {
            bbr.on_timeout(now, in_flight, rate.delivered(), rate.lost());
            self.apply_bbr_output();
        }
    }

    /// Notifies BBR that a tail loss probe repaired the only loss of its flight.
    pub(super) fn rate_control_on_tail_loss(&mut self) {
        if let Some((rate, bbr)) = self.sampler_and_bbr() {
            bbr.on_tail_loss(rate.delivered());
        }
    }

    /// Notifies BBR that a reduction was undone.
    pub(super) fn rate_control_on_undo(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.sampler_and_bbr() {
            bbr.on_undo(now, rate.delivered(), rate.lost());
            self.apply_bbr_output();
        }
    }

    /// Notifies BBR of a transmission while nothing is outstanding.
    pub(super) fn rate_control_on_resume(&mut self, now: Instant) {
        if let Some((rate, bbr)) = self.sampler_and_bbr() {
            bbr.on_resume(now, rate.limit(), rate.delivered());
            self.apply_bbr_output();
        }
    }

    /// Notifies BBR if the window is full after a transmission.
    pub(super) fn report_cwnd_limited(&mut self) {
        let (mss, cwnd) = (u64::from(self.snd.mss), u64::from(self.control.cwnd()));
        let Some(rack) = &self.rack else { return };
        if rack.segments.in_flight() + mss > cwnd
            && let Some(bbr) = self.control.bbr()
        {
            bbr.set_cwnd_limited();
        }
    }

    /// Checks if lack of data limits the bytes in flight ("CheckIfApplicationLimited" of draft-ietf-ccwg-bbr). Called
    /// before the application passes more data, before an acknowledgment changes the bytes in flight, and before timers
    /// do.
    pub(super) fn check_if_application_limited(&mut self) {
        let Some(rack) = &mut self.rack else { return };
        let Some(rate) = &mut rack.rate_sampler else { return };
        let unsent = self.snd.queue.end().saturating_sub(self.snd.nxt);
        let (mss, cwnd) = (u64::from(self.snd.mss), u64::from(self.control.cwnd()));
        let in_flight = rack.segments.in_flight();
        if unsent < mss && in_flight < cwnd && rack.segments.first_lost().is_none() {
            rate.set_app_limited(in_flight);
        }
    }

    fn sampler_and_bbr(&mut self) -> Option<(&mut RateSampler, &mut Bbr)> {
        let rate = self.rack.as_mut()?.rate_sampler.as_deref_mut()?;
        Some((rate, self.control.bbr()?))
    }

    /// Applies the window and the rate of BBR.
    fn apply_bbr_output(&mut self) {
        if let Some(orders) = self.control.apply_bbr()
            && let Some(pacing) = self.pacing.as_mut().and_then(|pacing| pacing.rate())
        {
            pacing.set_rate(orders.pacing_rate, orders.send_quantum);
        }
    }
}
