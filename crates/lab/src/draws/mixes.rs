//! Several flows.

use super::kind::Kind;
use super::measure::Measure;
use super::paths::queue;
use super::sketch::{Bottleneck, Draw, Sketch, log_uniform, one_of};
use hopline_core::RandomStream;

/// Flow of CUBIC beside the compared algorithm.
const CUBIC: &str = "transport = \"tcp-cubic\"\ntcp.congestion_control = \"cubic\"";
/// Length of a run, seconds.
const DURATION_S: f64 = 45.0;
/// Time without measurement in which flows start, seconds.
const WARM_UP_S: f64 = 15.0;

/// Draws 2 to 64 flows, with product and queue down to a packet for each.
pub(super) fn crowd(random: &mut RandomStream, seed: u64) -> Draw {
    let flows = one_of(random, &[2, 4, 8, 16, 32, 64]);
    let (rate, delay) = (log_uniform(random, 5.0, 100.0), log_uniform(random, 5.0, 100.0));
    let mut bottleneck = Bottleneck::drop_tail(rate, delay, log_uniform(random, 0.25, 4.0));
    let held = Bottleneck::product(rate, delay) + f64::from(bottleneck.queue_packets);
    let missing = (f64::from(flows) - held).max(0.0) as u32;
    bottleneck.queue_packets += missing;
    let loss = one_of(random, &[0.0, 0.0, 0.01, 0.05]);
    if loss > 0.0 {
        bottleneck.more = format!(
            "errors.model = \"packet\"\nerrors.packet_loss = {loss}\nerrors.direction = \"a-to-b\"\n"
        );
    }
    let mut sketch = Sketch::new(seed, DURATION_S, WARM_UP_S);
    sketch.link(&bottleneck);
    for _ in 0..flows {
        sketch.law("start_jitter_s = 5");
    }
    let measure = Measure::Goodput { ceiling_bps: rate * 1e6 * (1.0 - loss) };
    Draw { loss, ..Draw::new(sketch, Kind::Crowd, &bottleneck, measure) }
}

/// Draws 1 to 4 flows among 1 to 30 of CUBIC, over 10 to 250 ms and with queues of 0.5 to 4 products.
pub(super) fn beside_cubic(random: &mut RandomStream, seed: u64) -> Draw {
    let (flows, others) = (one_of(random, &[1, 1, 2, 4]), one_of(random, &[1, 1, 3, 10, 30]));
    let (rate, delay) = (log_uniform(random, 5.0, 100.0), log_uniform(random, 5.0, 125.0));
    let bottleneck = Bottleneck::drop_tail(rate, delay, log_uniform(random, 0.5, 4.0));
    let mut sketch = Sketch::new(seed, 2.0 * DURATION_S, WARM_UP_S);
    sketch.link(&bottleneck);
    for _ in 0..others {
        sketch.other(&format!("{CUBIC}\nstart_jitter_s = 5"));
    }
    for _ in 0..flows {
        sketch.law("start_jitter_s = 5");
    }
    let each = rate * 1e6 / f64::from(flows + others);
    let measure = Measure::Shares { law_bps: each * f64::from(flows), other_bps: each * f64::from(others) };
    Draw::new(sketch, Kind::BesideCubic, &bottleneck, measure)
}

/// Draws a flow beside datagrams at 20 to 80 % of the rate, on and off for 1 to 5 s.
pub(super) fn beside_datagrams(random: &mut RandomStream, seed: u64) -> Draw {
    let (rate, delay) = (log_uniform(random, 5.0, 50.0), log_uniform(random, 5.0, 100.0));
    let bottleneck = Bottleneck::drop_tail(rate, delay, log_uniform(random, 0.5, 4.0));
    let (share, on, off) = (random.uniform(0.2, 0.8), random.uniform(1.0, 5.0), random.uniform(1.0, 5.0));
    let mut sketch = Sketch::new(seed, 2.0 * DURATION_S, WARM_UP_S);
    sketch.link(&bottleneck);
    sketch.law("");
    sketch.other(&format!(
        "kind = \"on-off\"\nrate_kbps = {:.1}\npacket_bytes = 1200\non_s = {on:.3}\noff_s = {off:.3}\nstart_jitter_s = 5",
        share * rate * 1e3
    ));
    let offered = share * rate * 1e6 * on / (on + off);
    let measure = Measure::Shares { law_bps: rate * 1e6 - offered, other_bps: offered };
    Draw::new(sketch, Kind::BesideDatagrams, &bottleneck, measure)
}

/// Draws a flow beside CUBIC, both with ECN, in a queue that marks.
pub(super) fn beside_marked(random: &mut RandomStream, seed: u64) -> Draw {
    let (rate, delay) = (log_uniform(random, 5.0, 100.0), log_uniform(random, 5.0, 100.0));
    let mut bottleneck = Bottleneck::drop_tail(rate, delay, log_uniform(random, 0.5, 2.0));
    bottleneck.more = match one_of(random, &["red", "codel", "pie"]) {
        "red" => queue("red", bottleneck.queue_packets),
        other => format!("{}queue.action = \"mark\"\n", queue(other, bottleneck.queue_packets)),
    };
    let mut sketch = Sketch::new(seed, 2.0 * DURATION_S, WARM_UP_S);
    sketch.link(&bottleneck);
    sketch.other(&format!("{CUBIC}\ntcp.ecn = \"ask\"\nstart_jitter_s = 2"));
    sketch.law("start_jitter_s = 2");
    let measure = Measure::Shares { law_bps: rate * 5e5, other_bps: rate * 5e5 };
    Draw { marks: true, ..Draw::new(sketch, Kind::BesideMarked, &bottleneck, measure) }
}
