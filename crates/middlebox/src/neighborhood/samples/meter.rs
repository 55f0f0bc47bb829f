//! Converts counters that restart, wrap around, change their channel or stand still into monotonic times.

use super::Reading;
use hopline_core::{Duration, Instant};
use hopline_queue::neighborhood_red::ChannelTime;

/// Accumulated channel times of the radio.
#[derive(Clone, Debug)]
pub(in super::super) struct ChannelMeter {
    total: ChannelTime,
    last: Option<(Instant, Reading)>,
    /// Time of the last reading with progress.
    last_progress: Instant,
    last_read: Instant,
    max_silence: Duration,
}

/// Result of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Step {
    /// A complete interval.
    Complete,
    /// Start of an interval: the first reading, or the first after a restart of the counters or a change of the channel.
    Started,
    /// No progress yet.
    NoProgress,
    /// No progress for so long that the channel counts as idle.
    Silent,
}

/// Milliseconds after which a 32-bit counter wraps around, and the maximum growth at which a decrease counts as a wrap.
const WRAP_MS: u64 = 1 << 32;
const MAX_GROWTH_MS: u64 = 60_000;
/// Tolerance, in ms, by which counters may exceed this host's clock after a restart: they are read in steps.
const SLACK_MS: u64 = 100;
/// Maximum interval, in ms. A faster counter counts no time.
const MAX_INTERVAL_MS: u64 = 3_600_000;

impl ChannelMeter {
    /// Creates a meter at `now`. A source may be silent for `patience`.
    pub(in super::super) fn new(now: Instant, patience: Duration) -> Self {
        Self {
            total: ChannelTime::default(),
            last: None,
            last_progress: now,
            last_read: now,
            max_silence: patience,
        }
    }

    /// Returns the accumulated times.
    pub(in super::super) const fn total(&self) -> ChannelTime {
        self.total
    }

    /// Processes the reading at `now`, if there is one.
    pub(in super::super) fn handle_reading(&mut self, now: Instant, reading: Option<Reading>) -> Step {
        let passed = now.since(self.last_read);
        self.last_read = now;
        let Some(reading) = reading else { return self.record_miss(now, passed) };
        let step = match self.last.replace((now, reading)) {
            Some((then, last)) if last.channel == reading.channel => {
                interval(last, reading, now.since(then).as_millis())
            }
            _ => None,
        };
        match step {
            None => Step::Started,
            // Unchanged counters are no new reading.
            Some(step) if step.elapsed.is_zero() => self.record_miss(now, passed),
            Some(step) => {
                self.add(step);
                self.last_progress = now;
                Step::Complete
            }
        }
    }

    fn record_miss(&mut self, now: Instant, passed: Duration) -> Step {
        if now.since(self.last_progress) <= self.max_silence {
            return Step::NoProgress;
        }
        self.add(ChannelTime { elapsed: passed, ..ChannelTime::default() });
        Step::Silent
    }

    fn add(&mut self, step: ChannelTime) {
        let total = &mut self.total;
        total.elapsed += step.elapsed;
        total.busy += step.busy;
        total.transmitting += step.transmitting;
        total.receiving += step.receiving;
    }
}

/// Returns the growth between two readings that are `passed_ms` apart; `None` if they cannot be compared.
fn interval(last: Reading, reading: Reading, passed_ms: u64) -> Option<ChannelTime> {
    let grown = |then: u64, now: u64| match now.checked_sub(then) {
        Some(grown) => Some(grown),
        None if then < WRAP_MS => Some(now + WRAP_MS - then).filter(|&grown| grown <= MAX_GROWTH_MS),
        None => None,
    };
    let parts = || {
        let time = grown(last.time_ms, reading.time_ms)?;
        let busy = grown(last.busy_ms, reading.busy_ms)?;
        let receiving = grown(last.receiving_ms, reading.receiving_ms)?;
        Some([time, busy, receiving, grown(last.transmitting_ms, reading.transmitting_ms)?])
    };
    let since_anew = || {
        let Reading { time_ms, busy_ms, receiving_ms, transmitting_ms, .. } = reading;
        (time_ms <= passed_ms + SLACK_MS).then_some([time_ms, busy_ms, receiving_ms, transmitting_ms])
    };
    let [time, busy, receiving, transmitting] = parts().or_else(since_anew)?;
    // No part exceeds the whole.
    let of_time = |ms: u64| Duration::from_millis(ms.min(time));
    (time <= MAX_INTERVAL_MS).then(|| ChannelTime {
        elapsed: of_time(time),
        busy: of_time(busy),
        receiving: of_time(receiving),
        transmitting: of_time(transmitting),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn reading(time_ms: u64, busy_ms: u64) -> Reading {
        Reading {
            channel: Some(2412),
            time_ms,
            busy_ms,
            receiving_ms: busy_ms / 4,
            transmitting_ms: busy_ms / 2,
        }
    }

    fn meter() -> ChannelMeter {
        ChannelMeter::new(at(0), Duration::from_secs(1))
    }

    fn total_ms(meter: &ChannelMeter) -> [u64; 4] {
        let ChannelTime { elapsed, busy, receiving, transmitting } = meter.total();
        [elapsed, busy, receiving, transmitting].map(Duration::as_millis)
    }

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let mut meter = meter();
        assert_eq!(meter.handle_reading(at(100), Some(reading(70_000, 4000))), Step::Started);
        assert_eq!(meter.handle_reading(at(200), Some(reading(70_100, 4060))), Step::Complete);
        assert_eq!(total_ms(&meter), [100, 60, 15, 30]);
    }

    #[test]
    fn counters_of_32_bits_wrap_around() {
        let mut meter = meter();
        let of = |time_ms, busy_ms, transmitting_ms| Reading {
            receiving_ms: 7,
            transmitting_ms,
            ..reading(time_ms, busy_ms)
        };
        meter.handle_reading(at(100), Some(of(WRAP_MS - 40, WRAP_MS - 8, 90)));
        assert_eq!(meter.handle_reading(at(200), Some(of(60, 32, 110))), Step::Complete);
        assert_eq!(total_ms(&meter), [100, 40, 0, 20]);
    }

    #[test]
    fn restarted_counters_count_from_their_restart() {
        let mut meter = meter();
        meter.handle_reading(at(100), Some(reading(70_000, 4000)));
        assert_eq!(
            meter.handle_reading(at(200), Some(reading(90, 20))),
            Step::Complete,
            "it has counted since then"
        );
        assert_eq!(total_ms(&meter)[..2], [90, 20]);
        assert_eq!(
            meter.handle_reading(at(300), Some(reading(70_000, 10))),
            Step::Started,
            "one of them alone tells nothing"
        );
        let mut other = self::meter();
        other.handle_reading(at(100), Some(reading(70_000, 4000)));
        assert_eq!(
            other.handle_reading(at(200), Some(reading(5000, 20))),
            Step::Started,
            "nobody knows since when"
        );
        assert_eq!(total_ms(&other), [0; 4]);
    }

    #[test]
    fn another_channel_starts_another_interval() {
        let mut meter = meter();
        meter.handle_reading(at(100), Some(reading(1000, 100)));
        let elsewhere = |time, busy| Reading { channel: Some(2437), ..reading(time, busy) };
        assert_eq!(meter.handle_reading(at(200), Some(elsewhere(1100, 200))), Step::Started);
        assert_eq!(meter.handle_reading(at(300), Some(elsewhere(1200, 210))), Step::Complete);
        assert_eq!(total_ms(&meter)[..2], [100, 10]);
    }

    #[test]
    fn a_long_silent_source_is_idle() {
        let mut meter = meter();
        meter.handle_reading(at(100), Some(reading(1000, 100)));
        meter.handle_reading(at(200), Some(reading(1100, 200)));
        for (now, step) in
            [(700, Step::NoProgress), (1200, Step::NoProgress), (1300, Step::Silent), (1400, Step::Silent)]
        {
            assert_eq!(meter.handle_reading(at(now), None), step, "{now}");
        }
        assert_eq!(total_ms(&meter)[..2], [300, 100]);
        // A repeated reading does not end the silence.
        assert_eq!(meter.handle_reading(at(1500), Some(reading(1100, 200))), Step::Silent);
        assert_eq!(meter.handle_reading(at(1600), Some(reading(2500, 1600))), Step::Complete);
    }

    proptest! {
        #[test]
        fn times_grow_monotonically_and_no_part_exceeds_the_total(
            readings in prop::collection::vec(
                (0..5000_u64, prop::option::of((any::<[u64; 4]>(), 0..3_u32, 0..64_u32))), 1..40),
        ) {
            let (mut meter, mut now) = (meter(), 0);
            for (passed, read) in readings {
                now += passed;
                let read = read.map(|(values, channel, shift)| {
                    let [time_ms, busy_ms, receiving_ms, transmitting_ms] = values.map(|value| value >> shift);
                    Reading { channel: Some(channel), time_ms, busy_ms, receiving_ms, transmitting_ms }
                });
                let before = total_ms(&meter);
                meter.handle_reading(at(now), read);
                let after = total_ms(&meter);
                let grown: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
                prop_assert!(grown.iter().all(|&part| part <= grown[0] && part <= MAX_INTERVAL_MS), "{grown:?}");
            }
        }
    }
}
