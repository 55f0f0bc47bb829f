//! Detection of competing traffic. A queue that stands for long, or does not drain when this flow reduces its rate, is
//! attributed to competing flows.

use super::super::config::RivalsConfig;
use hopline_core::{Duration, Instant};

/// Least duration of a counted round trip. Loss-based flows recover in seconds even over short paths.
const ROUND: Duration = Duration::from_millis(50);
/// Number of round trips without a queue after which the competing flows are gone. Fewer may only follow a reduction of
/// one of them.
const GONE_AFTER: u32 = 3;

/// Reason for a drain, the queue at its start, and the queue expected from the packets in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drained {
    pub(super) why: Why,
    pub(super) queue: Duration,
    pub(super) coming: Duration,
}

/// Reason for a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Queueing delay, losses or ECN marks above their bounds.
    Congestion,
    /// Probe for competing traffic.
    Look,
}

/// State of the queue in a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    There,
    Gone,
}

/// Duration of a standing queue, and results of drains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    config: RivalsConfig,
    /// Number of consecutive round trips with a queue, and without one.
    there: u32,
    gone: u32,
    /// Number of drains in that time, and round trips since the last one.
    drains: u32,
    since_drain: u32,
    /// Number of consecutive drains without relief.
    in_vain: u32,
    /// Time of the last counted round trip.
    counted: Instant,
}

impl Standing {
    pub(super) const fn new(config: RivalsConfig) -> Self {
        Self { config, there: 0, gone: 0, drains: 0, since_drain: 0, in_vain: 0, counted: Instant::ZERO }
    }

    /// Records the end of a round trip.
    pub(super) fn round(&mut self, now: Instant, queue: Queue) {
        let counts = u32::from(now >= self.counted + ROUND);
        if counts > 0 {
            self.counted = now;
        }
        match queue {
            Queue::There => (self.there, self.gone) = (self.there.saturating_add(counts), 0),
            Queue::Gone => (self.there, self.gone, self.drains) = (0, self.gone.saturating_add(counts), 0),
        }
        self.since_drain = self.since_drain.saturating_add(counts);
    }

    /// Returns whether a queue has stood for long enough for a probe for competing traffic.
    pub(super) fn is_look_due(&self) -> bool {
        self.there.min(self.since_drain) >= self.config.look
    }

    /// Records the result of a drain. `left`: remaining queue.
    pub(super) fn drained(&mut self, was: Drained, (queue, left): (Queue, Duration)) {
        (self.drains, self.since_drain) = (self.drains.saturating_add(1), 0);
        if queue == Queue::Gone {
            (self.there, self.drains) = (0, 0);
        }
        let relieved = left.as_secs_f64() < was.coming.as_secs_f64() * self.config.relief;
        if queue == Queue::Gone || relieved {
            self.in_vain = 0;
        } else if was.why != Why::Look {
            self.in_vain += 1;
        }
    }

    /// Returns the number of consecutive drains without relief.
    pub(super) const fn in_vain(&self) -> u32 {
        self.in_vain
    }

    /// Returns whether competing flows keep the queue full.
    pub(super) const fn is_anothers(&self) -> bool {
        let enough = self.config.undrained;
        self.in_vain >= enough || (self.there >= self.config.standing && self.drains >= enough)
    }

    /// Returns whether the competing flows are gone.
    pub(super) const fn is_gone(&self) -> bool {
        self.gone >= GONE_AFTER
    }

    /// Records that the competing flows are gone. A single drain without relief then shows their return.
    pub(super) const fn suspect(&mut self) {
        self.in_vain = self.config.undrained - 1;
    }

    /// Restarts the detection.
    pub(super) const fn forget(&mut self) {
        self.in_vain = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIVALS: RivalsConfig = super::super::super::config::Config::DEFAULT.control.rivals;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn drained(standing: &mut Standing, why: Why, from: u64, left: u64) {
        standing.round(Instant::ZERO, Queue::There);
        standing.drained(Drained { why, queue: ms(from), coming: ms(from) }, (Queue::There, ms(left)));
    }

    #[test]
    fn a_queue_that_does_not_shrink_when_less_is_sent_is_anothers() {
        let mut standing = Standing::new(RIVALS);
        for _ in 1..RIVALS.undrained {
            drained(&mut standing, Why::Congestion, 30, 25);
        }
        assert!(!standing.is_anothers());
        let mut ours = standing;
        drained(&mut ours, Why::Congestion, 30, 23);
        assert!(!ours.is_anothers() && ours.in_vain() == 0, "a quarter less is a relief");
        drained(&mut standing, Why::Congestion, 30, 31);
        assert!(standing.is_anothers());
    }

    #[test]
    fn a_look_says_whose_a_queue_is_not_but_not_whose_it_is() {
        let mut standing = Standing::new(RIVALS);
        for _ in 0..RIVALS.undrained {
            drained(&mut standing, Why::Look, 30, 30);
        }
        assert_eq!(standing.in_vain(), 0);
        drained(&mut standing, Why::Congestion, 30, 30);
        drained(&mut standing, Why::Look, 30, 3);
        assert_eq!(standing.in_vain(), 0);
    }

    #[test]
    fn a_queue_that_stands_for_long_is_looked_at_and_then_anothers() {
        let mut standing = Standing::new(RIVALS);
        let mut looks = 0;
        for round in 1..=RIVALS.standing {
            assert!(!standing.is_anothers(), "{round}");
            standing.round(Instant::ZERO + ROUND.saturating_mul(round.into()), Queue::There);
            assert_eq!(standing.is_look_due(), round % RIVALS.look == 0, "{round}");
            if standing.is_look_due() {
                drained(&mut standing, Why::Look, 9, 2);
                looks += 1;
            }
        }
        assert!(!standing.is_anothers(), "less was sent {looks} times only");
        for _ in looks..RIVALS.undrained {
            drained(&mut standing, Why::Look, 9, 2);
        }
        assert!(standing.is_anothers());
        for (round, is_gone) in [(100, false), (101, false), (102, true)] {
            standing.round(Instant::ZERO + ROUND.saturating_mul(round), Queue::Gone);
            assert!(!standing.is_anothers());
            assert_eq!(standing.is_gone(), is_gone, "{round}");
        }
    }

    #[test]
    fn round_trips_of_a_short_way_count_together() {
        let mut standing = Standing::new(RIVALS);
        for ms in (0..RIVALS.look * 50).step_by(5) {
            standing.round(Instant::from_millis(ms.into()), Queue::There);
            assert!(!standing.is_look_due(), "{ms} ms");
        }
        standing.round(Instant::from_millis((RIVALS.look * 50).into()), Queue::There);
        assert!(standing.is_look_due());
    }
}
