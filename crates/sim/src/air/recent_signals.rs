//! Signals of frames, with their senders, kept only where a tracer is enabled.

use super::medium::AirTransmission;
use crate::ids::StationId;
use crate::trace::Signal;
use hopline_core::{Duration, Instant};

/// Transmissions of late: those in the air, and those that have met one of them somewhere.
#[derive(Debug, Default)]
pub(super) struct RecentSignals {
    recent: Vec<RecentSignal>,
    /// Result of the last [`RecentSignals::overlapping_signals`].
    overlapping: Vec<Signal>,
}

#[derive(Debug)]
struct RecentSignal {
    from: StationId,
    signal: Signal,
    end: Instant,
    /// Time at which it has ended everywhere.
    ended_everywhere: Instant,
    receivers: Vec<(StationId, Duration)>,
}

impl RecentSignals {
    /// Records that a station puts a frame into the air.
    pub(super) fn on_transmission(&mut self, now: Instant, from: StationId, flight: &AirTransmission) {
        let still = self.recent.iter().filter(|recent| recent.ended_everywhere >= now);
        let oldest = still.map(|recent| recent.signal.since).min().unwrap_or(now);
        self.recent.retain(|recent| recent.ended_everywhere >= oldest);
        let farthest = flight.receivers.iter().map(|heard| heard.delay).max().unwrap_or(Duration::ZERO);
        self.recent.push(RecentSignal {
            from,
            signal: Signal { node: flight.from, since: flight.start },
            end: flight.end,
            ended_everywhere: flight.end + farthest,
            receivers: flight.receivers.iter().map(|heard| (heard.station, heard.delay)).collect(),
        });
    }

    /// Returns the other signals at station `at` while a frame that gets there with this delay was there: its
    /// own among them.
    pub(super) fn overlapping_signals(
        &mut self,
        at: StationId,
        flight: &AirTransmission,
        delay: Duration,
    ) -> &[Signal] {
        let (begins, ends) = (flight.start + delay, flight.end + delay);
        let own = Signal { node: flight.from, since: flight.start };
        self.overlapping.clear();
        for recent in self.recent.iter().filter(|recent| recent.signal != own) {
            let later = if recent.from == at {
                Some(Duration::ZERO)
            } else {
                recent.receivers.iter().find(|heard| heard.0 == at).map(|heard| heard.1)
            };
            let meets = |later: Duration| recent.signal.since + later < ends && recent.end + later > begins;
            if later.is_some_and(meets) {
                self.overlapping.push(recent.signal);
            }
        }
        &self.overlapping
    }
}
