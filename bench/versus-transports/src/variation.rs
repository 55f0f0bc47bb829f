//! Links that change over time: their schedules, and what they can carry.

use hopline_core::{Duration, Instant, Purpose, RandomStream};
use hopline_link::{Condition, Emulation, Opportunities};
use std::fmt::Write;
use std::sync::Arc;

/// Seed of the random walk and of the synthetic trace. All runs have the same.
const SEED: u64 = 1;
/// Longest run with a schedule. The link keeps its last rate after it.
const LONGEST: Duration = Duration::from_secs(120);

/// Change of a link over time, on the clock of the link, which starts just before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variation {
    /// No change.
    Constant,
    /// Rate steps by ten: from the bottleneck's rate down, and up again, every two seconds.
    RateSteps,
    /// Random walk of the rate, between a tenth of the bottleneck's rate and all of it.
    RandomWalk,
    /// Trace of delivery opportunities, in place of a rate.
    Trace,
    /// Outages of this length.
    Outages(OutageLength),
    /// Step of the delay to its tenfold at 8 s.
    DelayStep,
}

/// Length and times of outages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutageLength {
    /// 0.5 s, at 4, 8, 12 s and so on.
    Short,
    /// 3 s, at 6 s.
    Long,
}

impl Variation {
    /// Returns its name in tables, at a bottleneck of `rate` and a one-way delay of `delay_ms`.
    pub(crate) fn name(self, rate: u64, delay_ms: u64) -> String {
        let mbps = rate / 1_000_000;
        match self {
            Self::Constant => "constant".to_owned(),
            Self::RateSteps => format!("steps {mbps} ↔ {} Mb/s", mbps / 10),
            Self::RandomWalk => "random walk".to_owned(),
            Self::Trace => "trace".to_owned(),
            Self::Outages(OutageLength::Short) => "outages of 0.5 s".to_owned(),
            Self::Outages(OutageLength::Long) => "outage of 3 s".to_owned(),
            Self::DelayStep => format!("delay {delay_ms} → {} ms", delay_ms * 10),
        }
    }

    /// Applies the variation to a link, forward and backward, with constant rates. Rates change in the direction of
    /// data, delays and outages both ways.
    pub(crate) fn apply(self, [forth, back]: [Emulation; 2], trace: &Arc<Opportunities>) -> [Emulation; 2] {
        let rate = forth.rate().unwrap_or_default();
        match self {
            Self::Constant => [forth, back],
            Self::RateSteps => [forth.with_conditions(Some(rate_steps(rate))), back],
            Self::RandomWalk => [forth.with_conditions(Some(random_walk(rate))), back],
            Self::Trace => [forth.with_opportunities(Some(Arc::clone(trace))), back],
            Self::Outages(length) => [forth, back].map(|way| way.with_blackouts(outages(length))),
            Self::DelayStep => [forth, back].map(|way| {
                let step = Condition::starting_at(Instant::from_secs(8));
                let latency = Duration::from_nanos(way.latency().as_nanos() * 10);
                way.with_conditions(Some(Arc::from([step.with_latency(Some(latency))])))
            }),
        }
    }
}

/// Returns a rate from a time on.
fn rate_from(from: Duration, rate: u64) -> Condition {
    Condition::starting_at(Instant::ZERO + from).with_rate(Some(rate))
}

fn rate_steps(rate: u64) -> Arc<[Condition]> {
    let each = Duration::from_secs(2);
    let steps = LONGEST.as_nanos() / each.as_nanos();
    let at = |step| Duration::from_nanos(each.as_nanos() * step);
    (0..steps).map(|step| rate_from(at(step), if step % 2 == 0 { rate } else { rate / 10 })).collect()
}

/// Returns a walk of the logarithm of the rate in steps of 200 ms, which starts in the middle and is reflected at the bounds.
fn random_walk(most: u64) -> Arc<[Condition]> {
    let step = Duration::from_millis(200);
    let mut random = RandomStream::global(SEED, 0, Purpose::Traffic);
    // Natural logarithm of the rate's share of the highest rate.
    let least = -std::f64::consts::LN_10;
    let mut share = least / 2.0;
    (0..LONGEST.as_nanos() / step.as_nanos())
        .map(|index| {
            let rate =
                rate_from(Duration::from_nanos(step.as_nanos() * index), (most as f64 * share.exp()) as u64);
            share = reflect(share + random.normal(0.0, 0.25), least, 0.0);
            rate
        })
        .collect()
}

/// Returns `x`, mirrored at the bound that it exceeds.
fn reflect(x: f64, low: f64, high: f64) -> f64 {
    let inside = if x < low {
        2.0 * low - x
    } else if x > high {
        2.0 * high - x
    } else {
        x
    };
    inside.clamp(low, high)
}

fn outages(length: OutageLength) -> Vec<(Instant, Instant)> {
    let outage =
        |from_ms, length_ms| (Instant::from_millis(from_ms), Instant::from_millis(from_ms + length_ms));
    match length {
        OutageLength::Short => {
            let last = LONGEST.as_nanos() / Duration::from_secs(4).as_nanos();
            (1..last).map(|index| outage(4000 * index, 500)).collect()
        }
        OutageLength::Long => vec![outage(6000, 3000)],
    }
}

/// Length of the synthetic trace, ms.
const TRACE_MS: u32 = 30_000;

/// Returns a synthetic trace of a cellular link in mahimahi's format. The rate changes every 100 ms around 5 Mb/s (log-normal,
/// first-order autoregressive), and the link stops now and then for up to 0.8 s.
pub(crate) fn cellular_trace() -> String {
    const STEP_MS: u32 = 100;
    const BITS: f64 = 12_000.0;
    let mut random = RandomStream::global(SEED, 1, Purpose::Traffic);
    let mut text = String::from("# synthetic: a rate that varies around 5 Mb/s, with stops\n");
    let (mut deviation, mut stopped_steps, mut credit) = (0.0, 0, 0.0);
    for ms in 1..=TRACE_MS {
        if ms % STEP_MS == 1 {
            deviation = 0.9 * deviation + random.normal(0.0, 0.3);
            stopped_steps = match stopped_steps {
                0 if random.bernoulli(0.02) => 2 + random.below(7),
                steps => steps.saturating_sub(1),
            };
        }
        if stopped_steps == 0 {
            credit += (5e6 * deviation.exp()).clamp(0.5e6, 40e6) / 1e3;
        }
        while credit >= BITS {
            credit -= BITS;
            let _ = writeln!(text, "{ms}");
        }
    }
    // The last time is the length of the trace.
    let _ = writeln!(text, "{TRACE_MS}");
    text
}

/// Returns the number of bits that one direction can carry from `from` to `until`.
pub(crate) fn capacity_bits(way: &Emulation, from: Instant, until: Instant) -> f64 {
    if let Some(opportunities) = way.opportunities() {
        return opportunities.bits_between(from, until) as f64;
    }
    let conditions = way.conditions().map_or(&[][..], |conditions| conditions);
    let blackouts = way.blackouts();
    let mut edges: Vec<Instant> = conditions.iter().map(Condition::from).collect();
    edges.extend(blackouts.iter().flat_map(|&(start, end)| [start, end]));
    edges.retain(|edge| (from..until).contains(edge));
    edges.extend([from, until]);
    edges.sort();
    let rate_at = |time: Instant| {
        let is_out = blackouts.iter().any(|&(start, end)| (start..end).contains(&time));
        let changed = conditions.iter().rfind(|condition| condition.from() <= time).and_then(Condition::rate);
        if is_out { 0 } else { changed.or(way.rate()).unwrap_or_default() }
    };
    edges.windows(2).map(|edge| rate_at(edge[0]) as f64 * edge[1].since(edge[0]).as_secs_f64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 20_000_000;

    fn link() -> [Emulation; 2] {
        let way = Emulation::delay(Duration::from_millis(10)).with_rate(Some(RATE)).with_queue(Some(100));
        [way.clone(), way]
    }

    fn trace() -> Arc<Opportunities> {
        Arc::new(cellular_trace().parse().expect("a trace"))
    }

    const ALL: [Variation; 7] = [
        Variation::Constant,
        Variation::RateSteps,
        Variation::RandomWalk,
        Variation::Trace,
        Variation::Outages(OutageLength::Short),
        Variation::Outages(OutageLength::Long),
        Variation::DelayStep,
    ];

    /// Returns the mean rate of data from `from` to `until` in Mb/s.
    fn mean_mbps(variation: Variation, from: u64, until: u64) -> f64 {
        let [forth, _] = variation.apply(link(), &trace());
        let bits = capacity_bits(&forth, Instant::from_millis(from), Instant::from_millis(until));
        bits / (until - from) as f64 / 1e3
    }

    #[test]
    fn every_variation_is_within_the_ranges_of_the_link() {
        for variation in ALL {
            for way in variation.apply(link(), &trace()) {
                assert_eq!(way.validate(), Ok(()), "{variation:?}");
                assert_eq!(way.queue(), Some(100));
            }
        }
    }

    #[test]
    fn capacities_follow_steps_and_outages() {
        assert_eq!(mean_mbps(Variation::Constant, 0, 20_000), 20.0);
        assert_eq!(mean_mbps(Variation::DelayStep, 0, 20_000), 20.0);
        assert_eq!(mean_mbps(Variation::RateSteps, 500, 1500), 20.0);
        assert_eq!(mean_mbps(Variation::RateSteps, 2000, 4000), 2.0);
        assert_eq!(mean_mbps(Variation::RateSteps, 1000, 21_000), 11.0);
        let [short, long] = [OutageLength::Short, OutageLength::Long].map(Variation::Outages);
        assert_eq!([mean_mbps(short, 0, 4000), mean_mbps(short, 4000, 4500)], [20.0, 0.0]);
        assert_eq!([mean_mbps(short, 0, 20_000), mean_mbps(long, 0, 20_000)], [18.0, 17.0]);
        assert_eq!([mean_mbps(long, 5000, 7000), mean_mbps(long, 7000, 8000)], [10.0, 0.0]);
    }

    #[test]
    fn the_walk_stays_within_a_tenth_and_all_of_the_rate_and_uses_the_range() {
        let walk = random_walk(RATE);
        let rates: Vec<u64> = walk[..100].iter().filter_map(Condition::rate).collect();
        assert!(rates.iter().all(|rate| (RATE / 10 - 1..=RATE).contains(rate)), "{rates:?}");
        assert!(
            rates.iter().any(|&rate| rate < RATE / 4) && rates.iter().any(|&rate| rate > RATE / 2),
            "{rates:?}"
        );
        assert_eq!(walk, random_walk(RATE));
    }

    #[test]
    fn the_synthetic_trace_has_high_and_low_rates_and_stops() {
        let trace = trace();
        assert!((6e6..12e6).contains(&trace.mean_rate()), "{}", trace.mean_rate());
        let tenth =
            |n: u64| trace.bits_between(Instant::from_millis(100 * n), Instant::from_millis(100 * (n + 1)));
        let tenths: Vec<u64> = (0..200).map(tenth).collect();
        assert!(tenths.iter().any(|&bits| bits > 2_000_000), "{tenths:?}");
        assert!(tenths.windows(2).any(|pair| pair == [0, 0]), "{tenths:?}");
    }

    #[test]
    fn acks_keep_their_rate() {
        for variation in ALL {
            let [_, back] = variation.apply(link(), &trace());
            let capacity = capacity_bits(&back, Instant::ZERO, Instant::from_secs(1));
            assert_eq!(
                (back.rate(), back.opportunities(), capacity),
                (Some(RATE), None, 20e6),
                "{variation:?}"
            );
        }
    }

    #[test]
    fn the_delay_grows_by_ten_both_ways() {
        for way in Variation::DelayStep.apply(link(), &trace()) {
            let conditions = way.conditions().expect("a step");
            let steps: Vec<_> = conditions.iter().map(|step| (step.from(), step.latency())).collect();
            assert_eq!(steps, [(Instant::from_secs(8), Some(Duration::from_millis(100)))]);
        }
    }
}
