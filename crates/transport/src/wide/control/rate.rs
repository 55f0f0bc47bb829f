//! Rate of the path: packet numbers over the time of their arrivals.
//!
//! Packets lost behind the bottleneck have used it. The span of numbers between two arrivals, and not the number of
//! packets that arrived, divided by the time between them is therefore the rate of the bottleneck, whatever was lost.

use hopline_core::{Duration, Instant};
use std::collections::VecDeque;

/// Arrival reported by the peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::wide) struct Arrival {
    /// Time of sending.
    pub(in crate::wide) sent: Instant,
    /// Time of arrival, microseconds of the peer's clock.
    pub(in crate::wide) at_us: i64,
    /// Bytes sent by then, its own included.
    pub(in crate::wide) upto: u64,
}

/// Recent arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    arrivals: VecDeque<Arrival>,
}

/// Largest number of arrivals kept.
const MOST: usize = 4096;

impl Sampler {
    /// Records an arrival. Returns the rate over at least `span`, bytes per second, if the arrivals go back that far.
    pub(super) fn take(&mut self, arrival: Arrival, span: Duration) -> Option<f64> {
        if self.arrivals.back().is_some_and(|last| arrival.upto <= last.upto || arrival.at_us < last.at_us) {
            return None;
        }
        // The one that comes just before the span begins is the first that counts.
        let begin = arrival.at_us - span.as_micros() as i64;
        while self.arrivals.len() > 1 && (self.arrivals[1].at_us <= begin || self.arrivals.len() >= MOST) {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(arrival);
        let first = self.arrivals[0];
        (first.at_us <= begin).then(|| between(first, arrival)).flatten()
    }

    /// Returns whether a packet has arrived that was sent later than the first burst.
    pub(super) fn is_beyond_burst(&self) -> bool {
        matches!((self.arrivals.front(), self.arrivals.back()), (Some(first), Some(last)) if last.sent > first.sent)
    }

    /// Returns the rate of arrival of the first burst, if it spans at least `bytes` bytes.
    pub(super) fn burst(&self, bytes: f64) -> Option<f64> {
        let first = *self.arrivals.front()?;
        let last = *self.arrivals.iter().take_while(|arrival| arrival.sent == first.sent).last()?;
        ((last.upto - first.upto) as f64 >= bytes).then(|| between(first, last)).flatten()
    }

    pub(super) fn clear(&mut self) {
        self.arrivals.clear();
    }
}

/// Returns the rate between two arrivals, bytes per second, if there was any time between them.
pub(super) fn between(first: Arrival, last: Arrival) -> Option<f64> {
    between_at_best(first, last, Duration::ZERO)
}

/// As [`between`], if the time between the arrivals may be shorter by `less`.
pub(super) fn between_at_best(first: Arrival, last: Arrival, less: Duration) -> Option<f64> {
    let arriving = (last.at_us - first.at_us) as f64 * 1e-6 - less.as_secs_f64();
    let leaving = last.sent.since(first.sent).as_secs_f64();
    let seconds = arriving.max(leaving);
    (seconds > 0.0).then(|| (last.upto - first.upto) as f64 / seconds)
}

/// Maximum of the last `N` rounds.
#[derive(Clone, Debug)]
pub(super) struct Largest<const N: usize> {
    rounds: [f64; N],
}

impl<const N: usize> Largest<N> {
    pub(super) const fn new() -> Self {
        Self { rounds: [0.0; N] }
    }

    pub(super) fn sample(&mut self, value: f64) {
        self.rounds[0] = self.rounds[0].max(value);
    }

    pub(super) fn round(&mut self) {
        self.rounds.rotate_right(1);
        self.rounds[0] = 0.0;
    }

    /// Returns the maximum of this round and the previous one. In one round alone, few packets and some jitter may hide
    /// the rate.
    pub(super) fn latest(&self) -> f64 {
        self.rounds[0].max(self.rounds[1])
    }

    pub(super) fn get(&self) -> f64 {
        self.rounds.iter().fold(0.0, |a: f64, &b| a.max(b))
    }

    pub(super) fn clear(&mut self) {
        self.rounds = [0.0; N];
    }
}
