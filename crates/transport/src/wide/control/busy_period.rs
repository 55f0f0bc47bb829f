//! Rate at which a queue empties.
//!
//! While packets wait, a link delivers them back to back: the times between their arrivals show its rate, however slowly they were sent.
//! A queue that empties faster than the flow's rate explains shows a link that has become faster. The first burst of a connection is
//! measured in the same way.

use hopline_core::Duration;

/// Number of departures over which the rate is measured; at four packets per acknowledgment, eight packets long. Own choice, not swept.
const DEPARTURES: usize = 3;

/// Departure of a packet from the queue, as its arrival shows it. Packets that the full queue has dropped did not use the link: only what
/// arrives counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    /// Time of its arrival, µs, by the clock of the receiver.
    pub(super) at_us: i64,
    /// Total of delivered bytes.
    pub(super) delivered: u64,
}

/// Departures of packets that have waited in one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyPeriod {
    /// The last ones, oldest first.
    departures: [Option<Departure>; DEPARTURES],
    /// Least jitter of an arrival time in this period. The fall of the queue itself looks like jitter.
    jitter: Duration,
}

impl BusyPeriod {
    pub(super) const fn new() -> Self {
        Self { departures: [None; DEPARTURES], jitter: Duration::MAX }
    }

    /// Records the departure of a packet that has waited. `jitter`: of its arrival time.
    pub(super) fn record(&mut self, departure: Departure, jitter: Duration) {
        self.jitter = self.jitter.min(jitter);
        if self.departures[DEPARTURES - 1].is_some_and(|last| departure.at_us < last.at_us) {
            return;
        }
        self.departures.rotate_left(1);
        self.departures[DEPARTURES - 1] = Some(departure);
    }

    /// Ends the period. Returns the rate, bytes per second, at which the last packets left the queue at least, if there were enough.
    pub(super) fn end(&mut self) -> Option<f64> {
        let Self { departures, jitter } = core::mem::replace(self, Self::new());
        let (first, last) = (departures[0]?, departures[DEPARTURES - 1]?);
        let seconds = (last.at_us - first.at_us) as f64 * 1e-6 + 2.0 * jitter.as_secs_f64();
        (seconds > 0.0).then(|| (last.delivered - first.delivered) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn departure(packets: u64, at_us: i64) -> Departure {
        Departure { at_us, delivered: packets * 1000 }
    }

    #[test]
    fn the_last_packets_that_waited_show_the_rate_however_slow_the_earlier_ones_were() {
        let mut busy = BusyPeriod::new();
        for (packets, at_us) in [(1, 0), (5, 40_000), (9, 80_000), (13, 84_000), (17, 88_000)] {
            busy.record(departure(packets, at_us), Duration::ZERO);
        }
        let rate = busy.end().expect("five departures");
        assert!((rate - 1e6).abs() < 1.0, "8000 bytes in 8 ms: {rate}");
        assert_eq!(busy.end(), None, "the next period");
    }

    #[test]
    fn two_departures_and_one_out_of_order_show_nothing() {
        let mut busy = BusyPeriod::new();
        for departure in [departure(5, 40_000), departure(6, 39_000), departure(9, 44_000)] {
            busy.record(departure, Duration::ZERO);
        }
        assert_eq!(busy.end(), None);
    }

    #[test]
    fn jitter_lowers_the_rate() {
        let mut busy = BusyPeriod::new();
        for (packets, jitter_ms) in [(1, 30), (5, 4), (9, 20)] {
            busy.record(departure(packets, packets as i64 * 1000), Duration::from_millis(jitter_ms));
        }
        let rate = busy.end().expect("three departures");
        assert!((rate - 8000.0 / 0.016).abs() < 1.0, "8 ms and twice 4 ms: {rate}");
    }
}
