//! One flow on a path that varies in time.

use super::kind::Kind;
use super::measure::Measure;
use super::sketch::{Bottleneck, Draw, Sketch, log_uniform};
use super::traces::Traces;
use hopline_core::RandomStream;

/// Length of a run, seconds.
const DURATION_S: f64 = 40.0;
/// Interval of the rates of a cellular network, seconds.
const CELLULAR_S: f64 = 0.05;
/// Interval between two satellites, seconds: that of Starlink.
const SATELLITE_S: f64 = 15.0;

/// Rates of a link from their times on, seconds and Mb/s.
type Rates = Vec<(f64, f64)>;

/// Draws a rate that changes tenfold.
pub(super) fn steps(random: &mut RandomStream, seed: u64) -> Draw {
    let (high, delay) = (log_uniform(random, 5.0, 100.0), log_uniform(random, 5.0, 100.0));
    let (period, phase) = (log_uniform(random, 0.5, 10.0), random.below(2));
    let steps = (DURATION_S / period) as u32;
    let rates = (0..=steps).map(|step| {
        let rate = if (step + phase).is_multiple_of(2) { high } else { high / 10.0 };
        (f64::from(step) * period, rate)
    });
    of_rates(random, seed, (Kind::Steps, delay), rates.collect())
}

/// Draws a rate that walks at random, within a factor of ten of its first value.
pub(super) fn walk(random: &mut RandomStream, seed: u64) -> Draw {
    let (first, delay) = (log_uniform(random, 2.0, 50.0), log_uniform(random, 5.0, 100.0));
    let interval = random.uniform(0.1, 1.0);
    let mut exponent: f64 = 0.0;
    let rates = (0..=(DURATION_S / interval) as u32).map(|step| {
        let rate = first * libm::exp(exponent);
        exponent =
            (exponent + random.normal(0.0, 0.4)).clamp(-core::f64::consts::LN_10, core::f64::consts::LN_10);
        (f64::from(step) * interval, rate)
    });
    let rates = rates.collect();
    of_rates(random, seed, (Kind::Walk, delay), rates)
}

/// Draws a rate as of a cellular network: its logarithm is an autoregressive process, and the link stops at times.
pub(super) fn cellular(random: &mut RandomStream, seed: u64) -> Draw {
    let (mean, delay) = (log_uniform(random, 2.0, 20.0), log_uniform(random, 20.0, 60.0));
    let (mut exponent, mut stopped) = (0.0, 0);
    let mut rates = Vec::new();
    for bin in 0..=(DURATION_S / CELLULAR_S) as u32 {
        // A time constant of one second, and a deviation of 0.8.
        exponent = 0.95 * exponent + random.normal(0.0, 0.25);
        if stopped == 0 && random.bernoulli(0.004) {
            stopped = (log_uniform(random, 0.1, 2.0) / CELLULAR_S) as u32;
        }
        let rate = if stopped > 0 { 0.05 } else { (mean * libm::exp(exponent)).max(0.1) };
        stopped = stopped.saturating_sub(1);
        rates.push((f64::from(bin) * CELLULAR_S, rate));
    }
    of_rates(random, seed, (Kind::Cellular, delay), rates)
}

/// Draws a cellular network with the rates of a trace.
pub(super) fn traced_cellular(random: &mut RandomStream, seed: u64, traces: &Traces) -> Draw {
    let delay = log_uniform(random, 20.0, 60.0);
    let stretch = traces.stretch(random, DURATION_S);
    let mean_bps = stretch.mean_bps();
    let bottleneck = of_base_station(random, mean_bps / 1e6, delay);
    let mut sketch = Sketch::new(seed, DURATION_S, 0.0);
    sketch.traced_link(&bottleneck, &stretch);
    sketch.law("");
    let measure = Measure::Goodput { ceiling_bps: mean_bps };
    Draw { stretch: Some(stretch), ..Draw::new(sketch, Kind::Cellular, &bottleneck, measure) }
}

/// Draws one to three outages of 0.1 to 10 s.
pub(super) fn outages(random: &mut RandomStream, seed: u64) -> Draw {
    let (rate, delay) = (log_uniform(random, 2.0, 50.0), log_uniform(random, 10.0, 100.0));
    let bottleneck = Bottleneck::drop_tail(rate, delay, log_uniform(random, 0.5, 4.0));
    let mut sketch = Sketch::new(seed, DURATION_S, 0.0);
    sketch.link(&bottleneck);
    let mut silent = 0.0;
    let count = 1 + random.below(3);
    for number in 0..count {
        let slot = (DURATION_S - 5.0) / f64::from(count);
        let length = log_uniform(random, 0.1, 10.0).min(0.7 * slot);
        let start = 4.0 + slot * f64::from(number) + random.uniform(0.0, 0.2 * slot);
        sketch.push(&format!(
            "\n[[outage]]\nfrom = \"near\"\nto = \"far\"\nstart_s = {start:.3}\nend_s = {:.3}\nboth_ways = true",
            start + length
        ));
        silent += length;
    }
    sketch.law("");
    let ceiling_bps = rate * 1e6 * (1.0 - silent / DURATION_S);
    Draw::new(sketch, Kind::Outages, &bottleneck, Measure::Goodput { ceiling_bps })
}

/// Draws delays that change tenfold.
pub(super) fn delay_steps(random: &mut RandomStream, seed: u64) -> Draw {
    let (rate, short) = (log_uniform(random, 2.0, 50.0), log_uniform(random, 2.0, 20.0));
    // The queue has one product of the long path.
    let mut bottleneck = Bottleneck::drop_tail(rate, 10.0 * short, 1.0);
    let (period, phase) = (random.uniform(5.0, 15.0), random.below(2));
    let delay = |step: u32| if (step + phase).is_multiple_of(2) { short } else { 10.0 * short };
    bottleneck.delay_ms = delay(0);
    let mut sketch = Sketch::new(seed, DURATION_S, 0.0);
    sketch.link(&bottleneck);
    for step in 1..=(DURATION_S / period) as u32 {
        sketch.push(&format!(
            "[[link.delay]]\nfrom_s = {:.3}\ndelay_ms = {:.3}",
            f64::from(step) * period,
            delay(step)
        ));
    }
    sketch.law("");
    Draw::new(sketch, Kind::DelaySteps, &bottleneck, Measure::Goodput { ceiling_bps: rate * 1e6 })
}

/// Draws the path over satellites: every 15 s an outage of 50 to 200 ms, another delay and another rate.
pub(super) fn satellite(random: &mut RandomStream, seed: u64) -> Draw {
    let (rate, delay) = (log_uniform(random, 10.0, 150.0), random.uniform(12.0, 40.0));
    let bottleneck = Bottleneck::drop_tail(rate, delay, random.uniform(1.0, 4.0));
    let handovers = handovers(random, &bottleneck);
    let mut sketch = Sketch::new(seed, DURATION_S, 0.0);
    sketch.link(&bottleneck);
    let mut rates = vec![(0.0, rate)];
    for Handover { start_s, rate_mbps, .. } in &handovers {
        rates.push((*start_s, *rate_mbps));
        sketch.push(&format!("[[link.rate]]\nfrom_s = {start_s:.3}\nrate_mbps = {rate_mbps:.4}"));
    }
    add_handovers(&mut sketch, &handovers);
    let silent: f64 = handovers.iter().map(|handover| handover.silent_s).sum();
    let ceiling_bps = mean_bps(&rates) * (1.0 - silent / DURATION_S);
    Draw::new(sketch, Kind::Satellite, &bottleneck, Measure::Goodput { ceiling_bps })
}

/// Draws the path over satellites with the rates of a trace.
pub(super) fn traced_satellite(random: &mut RandomStream, seed: u64, traces: &Traces) -> Draw {
    let stretch = traces.stretch(random, DURATION_S);
    let delay = random.uniform(12.0, 40.0);
    let bottleneck = Bottleneck::drop_tail(stretch.mean_bps() / 1e6, delay, random.uniform(1.0, 4.0));
    let handovers = handovers(random, &bottleneck);
    let mut sketch = Sketch::new(seed, DURATION_S, 0.0);
    sketch.traced_link(&bottleneck, &stretch);
    add_handovers(&mut sketch, &handovers);
    let lost = |handover: &Handover| {
        let end_s = handover.start_s + handover.silent_s;
        stretch.bits(handover.start_s, end_s.min(DURATION_S))
    };
    let ceiling_bps = stretch.mean_bps() - handovers.iter().map(lost).sum::<f64>() / DURATION_S;
    let draw = Draw::new(sketch, Kind::Satellite, &bottleneck, Measure::Goodput { ceiling_bps });
    Draw { stretch: Some(stretch), ..draw }
}

/// Change to another satellite.
struct Handover {
    /// Start of the outage.
    start_s: f64,
    /// Length of the outage.
    silent_s: f64,
    /// Rate and delay of the path from then on.
    rate_mbps: f64,
    delay_ms: f64,
}

/// Draws a change to another satellite every 15 s.
fn handovers(random: &mut RandomStream, first: &Bottleneck) -> Vec<Handover> {
    let start_s = random.uniform(2.0, SATELLITE_S);
    let starts = (0..).map(|number| start_s + SATELLITE_S * f64::from(number));
    let handover = |start_s| Handover {
        start_s,
        rate_mbps: first.rate_mbps * random.uniform(0.5, 1.5),
        delay_ms: first.delay_ms * random.uniform(0.7, 1.5),
        silent_s: random.uniform(0.05, 0.2),
    };
    starts.take_while(|start_s| *start_s < DURATION_S).map(handover).collect()
}

/// Adds the delays and outages of handovers to the link, and the flow.
fn add_handovers(sketch: &mut Sketch, handovers: &[Handover]) {
    for Handover { start_s, delay_ms, .. } in handovers {
        sketch.push(&format!("[[link.delay]]\nfrom_s = {start_s:.3}\ndelay_ms = {delay_ms:.3}"));
    }
    for Handover { start_s, silent_s, .. } in handovers {
        let end_s = start_s + silent_s;
        sketch.push(&format!(
            "\n[[outage]]\nfrom = \"near\"\nto = \"far\"\nstart_s = {start_s:.3}\nend_s = {end_s:.3}\nboth_ways = true"
        ));
    }
    sketch.law("");
}

/// Returns the draw of a link with these rates.
fn of_rates(random: &mut RandomStream, seed: u64, (kind, delay_ms): (Kind, f64), rates: Rates) -> Draw {
    let mean = mean_bps(&rates) / 1e6;
    let mut bottleneck = of_base_station(random, mean, delay_ms);
    bottleneck.rate_mbps = rates[0].1;
    let mut sketch = Sketch::new(seed, DURATION_S, 0.0);
    sketch.link(&bottleneck);
    for (from, rate) in &rates[1..] {
        sketch.push(&format!("[[link.rate]]\nfrom_s = {from:.3}\nrate_mbps = {rate:.4}"));
    }
    sketch.law("");
    Draw::new(sketch, kind, &bottleneck, Measure::Goodput { ceiling_bps: mean * 1e6 })
}

/// Draws the queue of a bottleneck as of the base stations of cellular networks, which buffer for long.
fn of_base_station(random: &mut RandomStream, mean_mbps: f64, delay_ms: f64) -> Bottleneck {
    let mut bottleneck = Bottleneck::drop_tail(mean_mbps, delay_ms, log_uniform(random, 1.0, 4.0));
    bottleneck.queue_packets = bottleneck.queue_packets.max(50);
    bottleneck
}

/// Returns the mean of the rates over the run, bit/s.
fn mean_bps(rates: &Rates) -> f64 {
    let ends = rates.iter().skip(1).map(|(from, _)| *from).chain([DURATION_S]);
    let bits: f64 =
        rates.iter().zip(ends).map(|((from, rate), end)| rate * 1e6 * (end - from).max(0.0)).sum();
    bits / DURATION_S
}
