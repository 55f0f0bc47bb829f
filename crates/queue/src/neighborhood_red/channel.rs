//! NCD: congestion of the neighbourhood, derived from radio times (§5.1).

use super::config::Config;
use hopline_core::Duration;

/// Radio time by state since the radio was switched on, or since any other moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelTime {
    /// Total time: sum of Tinterval.
    pub elapsed: Duration,
    /// Busy time: transmitting, receiving, carrier or virtual carrier busy.
    pub busy: Duration,
    /// Ttx.
    pub transmitting: Duration,
    /// Trx: receiving frames for this node.
    pub receiving: Duration,
}

/// Average numbers of waiting packets: `avg`, `avgtx`, `avgrx`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ChannelEstimator {
    pub(super) average: f64,
    pub(super) average_outgoing: f64,
    pub(super) average_incoming: f64,
    /// `q` for the whole channel in the latest interval.
    pub(super) latest: f64,
    previous_totals: ChannelTime,
}

impl ChannelEstimator {
    /// Takes the totals at the end of an interval: `q = U · W / C`, `avg = (1 - wq) · avg + wq · q`.
    pub(super) fn sample(&mut self, total: ChannelTime, config: &Config) {
        let Self { previous_totals: last, .. } = *self;
        self.previous_totals = total;
        let elapsed = total.elapsed.saturating_sub(last.elapsed).as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        let scale = config.bandwidth_bps as f64 / f64::from(config.packet_bits);
        let index = |now: Duration, then: Duration| {
            (now.saturating_sub(then).as_secs_f64() / elapsed).min(1.0) * scale
        };
        self.latest = index(total.busy, last.busy);
        let averages = [
            (&mut self.average, self.latest),
            (&mut self.average_outgoing, index(total.transmitting, last.transmitting)),
            (&mut self.average_incoming, index(total.receiving, last.receiving)),
        ];
        for (average, queue) in averages {
            *average += config.weight * (queue - *average);
        }
    }

    /// Returns the neighbourhood's drop probability over the average (algorithm 5.1).
    pub(super) fn normalized_pb(&self, config: &Config) -> f64 {
        let Config { min_threshold, max_threshold, max_probability, .. } = *config;
        if self.average < min_threshold {
            0.0
        } else if self.average < max_threshold {
            max_probability * (self.average - min_threshold) / (max_threshold - min_threshold) / self.average
        } else {
            1.0
        }
    }
}
