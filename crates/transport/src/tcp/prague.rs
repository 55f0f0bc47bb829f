//! Interface between an endpoint and Prague: accurate feedback, round-trip times, and pacing of the window.

use super::congestion::CongestionControl;
use super::endpoint::Endpoint;
use crate::pacing::{Pacer, RatePacing};
use hopline_core::{Duration, Payload};

impl<P: Payload> Endpoint<P> {
    /// Starts Prague on an open connection. `round_trip`: of the handshake.
    pub(super) fn start_prague(&mut self, round_trip: Option<Duration>) {
        if !self.uses_prague() {
            return;
        }
        if self.has_accurate_ecn() {
            self.control.use_scalable_response(&self.config);
        }
        if let Some(sample) = round_trip {
            self.control.add_prague_sample(sample);
        }
        self.pacing = Some(Box::new(Pacer::Rate(RatePacing::new(0))));
        self.update_prague_pacing();
    }

    /// Adds the round-trip time of an acknowledgment that reports `delivered` bytes for the first time.
    pub(super) fn sample_prague_rtt(&mut self, delivered: u64) {
        if delivered == 0 || !self.uses_prague() {
            return;
        }
        let sample = match &self.rack {
            Some(rack) => rack.latest_rtt(),
            None => self.rto.srtt(),
        };
        if let Some(sample) = sample {
            self.control.add_prague_sample(sample);
        }
    }

    /// Sets the pacing rate to a window per round trip.
    pub(super) fn update_prague_pacing(&mut self) {
        let flight = match &self.rack {
            Some(rack) => rack.segments.in_flight(),
            None => self.snd.nxt - self.snd.una,
        };
        if let Some((rate, burst)) = self.control.prague_pacing(&self.config, flight)
            && let Some(pacing) = self.pacing.as_mut().and_then(|pacing| pacing.rate())
        {
            pacing.set_rate(rate, burst);
        }
    }

    /// Returns whether the pacing of the window, and neither lack of data nor the peer's window, limits the sender. The
    /// pacing rate follows the window, so that the window counts as used.
    pub(super) fn is_limited_by_window_pacing(&self) -> bool {
        let (nxt, flight) = (self.snd.nxt, self.snd.nxt - self.snd.una);
        self.uses_prague()
            && self.snd.queue.end() > nxt
            && flight + u64::from(self.snd.mss) <= self.snd.window
    }

    fn uses_prague(&self) -> bool {
        matches!(self.config.congestion_control, CongestionControl::Prague(_))
    }
}
