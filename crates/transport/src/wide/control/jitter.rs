//! Delay jitter: delays without a queue, from medium access, from radios that deliver several packets together, and from
//! late timers.
//!
//! The length of a queue changes steadily; jitter changes from packet to packet. Assume that each packet is delayed by up
//! to *W*, that packets stay in order, and that one is sent every *g* seconds. Each delayed packet then delays those
//! behind it, so that even the minimum of many delays is far above that of the empty path. Such delays lie below *W* by
//! about √(*Wg*). If every fourth delay is reported, its deviation from the mean of its neighbours (the bend) is half of
//! that. *W* is therefore about four times the square of the bend over *g*.

use hopline_core::Duration;

/// Number of acknowledgments over which the bend is smoothed. Own choice, not swept.
const SMOOTHING: u64 = 16;
/// Share of the packet interval below which a bend is attributed to packets of other senders in between: one of them delays
/// by an interval, which bends by half of it. Own choice, not swept.
const CROSS_TRAFFIC: f64 = 0.5;

/// Estimator of delay jitter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JitterEstimator {
    /// Smoothed bend: difference of a reported delay from the mean of the one before and the one after.
    curvature: Duration,
    last: Option<[Duration; 2]>,
}

impl JitterEstimator {
    pub(super) fn record(&mut self, delay: Duration) {
        let [before, last] = self.last.unwrap_or([delay; 2]);
        let bend = (before / 2 + delay / 2).abs_diff(last);
        self.curvature = self.curvature.saturating_sub(self.curvature / SMOOTHING) + bend / SMOOTHING;
        self.last = Some([last, delay]);
    }

    pub(super) fn curvature(&self) -> Duration {
        self.curvature
    }

    /// Returns the part of a delay that is attributed to jitter, if packets arrive every `gap` seconds. `weight`: 4 for
    /// as much as jitter explains.
    pub(super) fn attributed_to_jitter(&self, weight: f64, gap: f64) -> Duration {
        let bend = self.curvature.as_secs_f64();
        Duration::from_secs_f64((weight * bend * (bend / gap - CROSS_TRAFFIC)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: f64 = 1e-3;

    fn after(delays_us: impl IntoIterator<Item = u64>) -> JitterEstimator {
        let mut jitter = JitterEstimator::default();
        for delay in delays_us {
            jitter.record(Duration::from_micros(delay));
        }
        jitter
    }

    #[test]
    fn a_growing_and_draining_queue_is_not_attributed_to_jitter() {
        let jitter = after((0..200).map(|n| if n < 100 { n * 300 } else { (200 - n) * 300 }));
        assert_eq!(jitter.attributed_to_jitter(8.0, GAP), Duration::ZERO);
    }

    #[test]
    fn cross_traffic_is_not_attributed_to_jitter() {
        let jitter = after((0..200).map(|n| 5000 + n % 2 * 450));
        assert_eq!(jitter.attributed_to_jitter(8.0, GAP), Duration::ZERO);
    }

    #[test]
    fn random_delays_are_attributed_to_jitter() {
        // Each packet is held up by up to 10 ms, and with it those behind it.
        let mut random = hopline_core::RandomStream::global(1, 0, hopline_core::Purpose::Jitter);
        let (mut at, gap) = (0.0_f64, 600.0);
        let delays = (0..2000).map(|n| {
            let sent = f64::from(n) * gap;
            at = at.max(sent + random.uniform(0.0, 10_000.0));
            (at - sent) as u64
        });
        // Each fourth is acknowledged.
        let forgiven = after(delays.step_by(4)).attributed_to_jitter(8.0, gap * 1e-6).as_secs_f64();
        assert!((0.005..0.02).contains(&forgiven), "{forgiven}");
    }
}
