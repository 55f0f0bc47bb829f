//! Signals of frames, with their senders, kept only where a tracer is enabled.

use super::medium::Flight;
use crate::ids::StationId;
use crate::trace::Signal;
use hopline_core::{Duration, Instant};

/// Transmissions of late: those in the air, and those that have met one of them somewhere.
#[derive(Debug, Default)]
pub(super) struct Signals {
    recent: Vec<Recent>,
    /// Result of the last [`Signals::beside`].
    found: Vec<Signal>,
}

#[derive(Debug)]
struct Recent {
    from: StationId,
    signal: Signal,
    end: Instant,
    /// Time at which it has ended everywhere.
    over: Instant,
    heard: Vec<(StationId, Duration)>,
}

impl Signals {
    /// Records that a station puts a frame into the air.
    pub(super) fn launched(&mut self, now: Instant, from: StationId, flight: &Flight) {
        let still = self.recent.iter().filter(|recent| recent.over >= now);
        let oldest = still.map(|recent| recent.signal.since).min().unwrap_or(now);
        self.recent.retain(|recent| recent.over >= oldest);
        let farthest = flight.heard.iter().map(|heard| heard.delay).max().unwrap_or(Duration::ZERO);
        self.recent.push(Recent {
            from,
            signal: Signal { node: flight.from, since: flight.start },
            end: flight.end,
            over: flight.end + farthest,
            heard: flight.heard.iter().map(|heard| (heard.station, heard.delay)).collect(),
        });
    }

    /// Returns the other signals at station `at` while a frame that gets there with this delay was there: its
    /// own among them.
    pub(super) fn beside(&mut self, at: StationId, flight: &Flight, delay: Duration) -> &[Signal] {
        let (begins, ends) = (flight.start + delay, flight.end + delay);
        let own = Signal { node: flight.from, since: flight.start };
        self.found.clear();
        for recent in self.recent.iter().filter(|recent| recent.signal != own) {
            let later = if recent.from == at {
                Some(Duration::ZERO)
            } else {
                recent.heard.iter().find(|heard| heard.0 == at).map(|heard| heard.1)
            };
            let meets = |later: Duration| recent.signal.since + later < ends && recent.end + later > begins;
            if later.is_some_and(meets) {
                self.found.push(recent.signal);
            }
        }
        &self.found
    }
}
