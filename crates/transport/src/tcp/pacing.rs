//! Pacing of segments: by the path (TCP-AP) or at the rate of the congestion control algorithm (BBR).
//!
//! The code of TCP-AP's authors moves the segments that the window allows into a queue and releases them from there. Here
//! the next segment is chosen at its release time. No such queue exists, so that nothing has to be cleared after a loss.

use super::endpoint::Endpoint;
use super::timer::Timer;
use crate::pacing::{AdaptivePacing, DuplicateAcks};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    /// Returns whether the next data segment has to wait; if so, sets the release timer. Window probes do not wait: they
    /// have a timer of their own.
    pub(super) fn waits_for_release(&mut self, now: Instant) -> bool {
        let Some(pacing) = &self.pacing else { return false };
        let at = pacing.release_time(now, u64::from(self.snd.mss));
        if at == now || self.snd.probe_pending {
            return false;
        }
        if self.snd.una < self.snd.end() {
            self.timers.set(Timer::PacingRelease, at);
        }
        true
    }

    /// Records the release of a segment of `len` data bytes.
    pub(super) fn record_release(&mut self, now: Instant, len: u64) {
        if let Some(pacing) = &mut self.pacing {
            pacing.on_released(now, len);
        }
    }

    /// Stops adaptive pacing after a loss: the lost segment is sent at once, and no other until the next ACK. The window
    /// may be far from full where pacing limits the sender, and would be sent as one burst. Rate-based pacing goes on.
    pub(super) fn stop_pacing(&mut self) {
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.stop();
            self.timers.stop(Timer::PacingRelease);
        }
    }

    /// Resumes adaptive pacing after an ACK.
    pub(super) fn resume_pacing(&mut self) {
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.resume();
        }
    }

    /// Records a round-trip time sample of a full segment.
    pub(super) fn add_pacing_sample(&mut self, round_trip: Duration) {
        let mss = self.snd.mss;
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.on_rtt_sample(round_trip, mss);
        }
    }

    /// Returns whether duplicate ACKs count as round trips.
    pub(super) fn samples_duplicate_acks(&mut self) -> bool {
        let Some(pacing) = self.adaptive_pacing() else { return false };
        pacing.config().duplicate_acks == DuplicateAcks::Sampled
    }

    pub(super) fn set_path_length(&mut self, hops: u8) {
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.set_hops(hops);
        }
    }

    fn adaptive_pacing(&mut self) -> Option<&mut AdaptivePacing> {
        self.pacing.as_mut()?.adaptive()
    }
}
