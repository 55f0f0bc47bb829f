//! When segments leave, if they are spaced: by the path (TCP-AP) or at the rate that congestion control says (BBR).
//!
//! The code of TCP-AP's authors moves the segments that the window allows into a queue and releases them from there. Here what is next is
//! chosen when it may leave: what they call clearing the queue is that nothing was chosen yet.

use super::endpoint::Endpoint;
use super::timer::Timer;
use crate::pacing::{AdaptivePacing, DuplicateAcks};
use hopline_core::{Duration, Instant, Payload};

impl<P: Payload> Endpoint<P> {
    /// Whether the next data segment has to wait; if it does, a timer says when it no longer has to. Window probes do not wait:
    /// they have a timer of their own.
    pub(super) fn waits_for_release(&mut self, now: Instant) -> bool {
        let Some(pacing) = &self.pacing else { return false };
        let at = pacing.next_release(now, u64::from(self.snd.mss));
        if at == now || self.snd.probe_pending {
            return false;
        }
        if self.snd.una < self.snd.end() {
            self.timers.set(Timer::Release, at);
        }
        true
    }

    /// A segment of `len` data bytes left.
    pub(super) fn note_release(&mut self, now: Instant, len: u64) {
        if let Some(pacing) = &mut self.pacing {
            pacing.released(now, len);
        }
    }

    /// A loss: the lost segment leaves at once, and no other until the next ACK. However large the window is by then: it is
    /// seldom full where pacing limits the sender, and would leave as one burst. A rate says by itself what may leave.
    pub(super) fn stop_pacing(&mut self) {
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.stop();
            self.timers.stop(Timer::Release);
        }
    }

    /// An ACK arrived.
    pub(super) fn resume_pacing(&mut self) {
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.resume();
        }
    }

    /// A round trip of a full segment was measured.
    pub(super) fn sample_pacing(&mut self, round_trip: Duration) {
        let mss = self.snd.mss;
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.sample(round_trip, mss);
        }
    }

    /// Returns whether duplicate ACKs count as round trips.
    pub(super) fn paces_by_duplicates(&mut self) -> bool {
        let Some(pacing) = self.adaptive_pacing() else { return false };
        pacing.config().duplicate_acks == DuplicateAcks::Sample
    }

    pub(super) fn note_path_length(&mut self, hops: u8) {
        if let Some(pacing) = self.adaptive_pacing() {
            pacing.set_hops(hops);
        }
    }

    fn adaptive_pacing(&mut self) -> Option<&mut AdaptivePacing> {
        self.pacing.as_mut()?.adaptive()
    }
}
