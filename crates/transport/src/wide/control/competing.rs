//! Detection of competing traffic. A queue that stands for long, or does not drain when this flow reduces its rate, is
//! attributed to competing flows.

use super::super::config::CompetingConfig;
use hopline_core::{Duration, Instant};

/// Number of round trips without a queue after which the competing flows are gone. Fewer may only follow a reduction of
/// one of them. Own choice, not swept; Copa (NSDI 2018) looks at five.
const DEPARTURE_ROUNDS: u32 = 3;

/// Reason for a drain, the queue at its start, and the queue expected from the packets in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DrainStart {
    pub(super) reason: DrainReason,
    pub(super) queue: Duration,
    pub(super) expected: Duration,
}

/// Reason for a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainReason {
    /// Queueing delay, losses or ECN marks above their bounds.
    Congestion,
    /// Probe for competing traffic.
    Probe,
}

/// State of the queue in a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Standing,
    Drained,
}

/// Duration of a standing queue, and results of drains.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompetingTraffic {
    config: CompetingConfig,
    /// Least duration of a counted round trip: loss-based flows recover in seconds even over short paths.
    min_round: Duration,
    /// Number of consecutive round trips with a queue, and without one.
    standing_rounds: u32,
    empty_rounds: u32,
    /// Number of drains in that time, and round trips since the last one.
    drains: u32,
    since_drain: u32,
    /// Number of consecutive drains without relief.
    drains_without_relief: u32,
    /// Time of the last counted round trip.
    last_counted: Instant,
}

impl CompetingTraffic {
    pub(super) const fn new(config: CompetingConfig, min_round: Duration) -> Self {
        Self {
            config,
            min_round,
            standing_rounds: 0,
            empty_rounds: 0,
            drains: 0,
            since_drain: 0,
            drains_without_relief: 0,
            last_counted: Instant::ZERO,
        }
    }

    /// Records the end of a round trip.
    pub(super) fn on_round(&mut self, now: Instant, queue: Queue) {
        let counts = u32::from(now >= self.last_counted + self.min_round);
        if counts > 0 {
            self.last_counted = now;
        }
        match queue {
            Queue::Standing => {
                (self.standing_rounds, self.empty_rounds) = (self.standing_rounds.saturating_add(counts), 0)
            }
            Queue::Drained => {
                (self.standing_rounds, self.empty_rounds, self.drains) =
                    (0, self.empty_rounds.saturating_add(counts), 0)
            }
        }
        self.since_drain = self.since_drain.saturating_add(counts);
    }

    /// Returns whether a queue has stood for long enough for a probe for competing traffic.
    pub(super) fn is_probe_due(&self) -> bool {
        self.standing_rounds.min(self.since_drain) >= self.config.probe_rounds
    }

    /// Records the result of a drain. `left`: remaining queue.
    pub(super) fn on_drain(&mut self, was: DrainStart, (queue, left): (Queue, Duration)) {
        (self.drains, self.since_drain) = (self.drains.saturating_add(1), 0);
        if queue == Queue::Drained {
            (self.standing_rounds, self.drains) = (0, 0);
        }
        let relieved = left.as_secs_f64() < was.expected.as_secs_f64() * self.config.drain_fraction;
        if queue == Queue::Drained || relieved {
            self.drains_without_relief = 0;
        } else if was.reason != DrainReason::Probe {
            self.drains_without_relief += 1;
        }
    }

    /// Returns the number of consecutive drains without relief.
    pub(super) const fn drains_without_relief(&self) -> u32 {
        self.drains_without_relief
    }

    /// Returns whether competing flows keep the queue full.
    pub(super) const fn is_detected(&self) -> bool {
        let enough = self.config.futile_drains;
        self.drains_without_relief >= enough
            || (self.standing_rounds >= enough.saturating_mul(self.config.probe_rounds)
                && self.drains >= enough)
    }

    /// Returns whether the competing flows are gone.
    pub(super) const fn has_left(&self) -> bool {
        self.empty_rounds >= DEPARTURE_ROUNDS
    }

    /// Records that the competing flows are gone. A single drain without relief then shows their return.
    pub(super) const fn assume_return(&mut self) {
        self.drains_without_relief = self.config.futile_drains - 1;
    }

    /// Restarts the detection.
    pub(super) const fn reset(&mut self) {
        self.drains_without_relief = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::config::{Config, ControlConfig};
    use super::*;

    const CONTROL: ControlConfig = Config::DEFAULT.control;
    const COMPETING: CompetingConfig = CONTROL.competing;
    const MIN_ROUND: Duration = CONTROL.growth_interval;

    fn new() -> CompetingTraffic {
        CompetingTraffic::new(COMPETING, MIN_ROUND)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn drained(competing: &mut CompetingTraffic, reason: DrainReason, from: u64, left: u64) {
        competing.on_round(Instant::ZERO, Queue::Standing);
        competing.on_drain(
            DrainStart { reason, queue: ms(from), expected: ms(from) },
            (Queue::Standing, ms(left)),
        );
    }

    #[test]
    fn a_queue_that_does_not_shrink_at_a_reduced_rate_is_attributed_to_competing_flows() {
        let mut competing = new();
        for _ in 1..COMPETING.futile_drains {
            drained(&mut competing, DrainReason::Congestion, 30, 25);
        }
        assert!(!competing.is_detected());
        let mut ours = competing;
        drained(&mut ours, DrainReason::Congestion, 30, 23);
        assert!(!ours.is_detected() && ours.drains_without_relief() == 0, "a quarter less is a relief");
        drained(&mut competing, DrainReason::Congestion, 30, 31);
        assert!(competing.is_detected());
    }

    #[test]
    fn a_probe_shows_the_absence_of_competing_flows_but_not_their_presence() {
        let mut competing = new();
        for _ in 0..COMPETING.futile_drains {
            drained(&mut competing, DrainReason::Probe, 30, 30);
        }
        assert_eq!(competing.drains_without_relief(), 0);
        drained(&mut competing, DrainReason::Congestion, 30, 30);
        drained(&mut competing, DrainReason::Probe, 30, 3);
        assert_eq!(competing.drains_without_relief(), 0);
    }

    #[test]
    fn a_queue_that_stands_for_long_is_probed_and_then_attributed_to_competing_flows() {
        let mut competing = new();
        let mut probes = 0;
        for round in 1..=COMPETING.futile_drains * COMPETING.probe_rounds {
            assert!(!competing.is_detected(), "{round}, {probes} drains");
            competing.on_round(Instant::ZERO + MIN_ROUND.saturating_mul(round.into()), Queue::Standing);
            assert_eq!(competing.is_probe_due(), round % COMPETING.probe_rounds == 0, "{round}");
            if competing.is_probe_due() {
                drained(&mut competing, DrainReason::Probe, 9, 2);
                probes += 1;
            }
        }
        assert_eq!(probes, COMPETING.futile_drains);
        assert!(competing.is_detected());
        for (round, is_gone) in [(100, false), (101, false), (102, true)] {
            competing.on_round(Instant::ZERO + MIN_ROUND.saturating_mul(round), Queue::Drained);
            assert!(!competing.is_detected());
            assert_eq!(competing.has_left(), is_gone, "{round}");
        }
    }

    #[test]
    fn round_trips_of_a_short_path_count_together() {
        let mut competing = new();
        let until = MIN_ROUND.saturating_mul(COMPETING.probe_rounds.into());
        for ms in (0..until.as_millis()).step_by(5) {
            competing.on_round(Instant::from_millis(ms), Queue::Standing);
            assert!(!competing.is_probe_due(), "{ms} ms");
        }
        competing.on_round(Instant::ZERO + until, Queue::Standing);
        assert!(competing.is_probe_due());
    }
}
