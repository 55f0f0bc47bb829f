//! One flow, or requests, on a path of constant rate and delay.

use super::kind::Kind;
use super::measure::Measure;
use super::sketch::{Bottleneck, Draw, Sketch, log_uniform, one_of};
use hopline_core::RandomStream;

/// Draws a path in all its parameters: 0.3 to 500 Mb/s, 1 to 600 ms.
pub(super) fn steady(random: &mut RandomStream, seed: u64) -> Draw {
    let (rate, delay) = (log_uniform(random, 0.3, 500.0), log_uniform(random, 0.5, 300.0));
    let mut bottleneck = Bottleneck::drop_tail(rate, delay, log_uniform(random, 0.1, 8.0));
    let discipline = one_of(random, &["drop-tail", "drop-tail", "red", "codel", "fq-codel", "pie"]);
    bottleneck.more = queue(discipline, bottleneck.queue_packets);
    let loss = if random.bernoulli(0.5) { log_uniform(random, 0.001, 0.15) } else { 0.0 };
    let direction = one_of(random, &["both", "a-to-b"]);
    bottleneck.more.push_str(&errors(random, loss, direction));
    disturb(random, &mut bottleneck);
    let way_back = random.bernoulli(0.15).then(|| rate / random.uniform(10.0, 50.0));
    let mut sketch = Sketch::new(seed, (0.1 * delay).max(20.0), 0.0);
    sketch.link(&bottleneck);
    if let Some(rate) = way_back {
        slow_way_back(&mut sketch, rate, delay);
    }
    sketch.law("");
    let measure = Measure::Goodput { ceiling_bps: rate * 1e6 * (1.0 - loss) };
    let marks = discipline == "red";
    Draw { marks, loss, ..Draw::new(sketch, Kind::Steady, &bottleneck, measure) }
}

/// Draws responses of 10 kB to 1 MB over 20 to 600 ms.
pub(super) fn requests(random: &mut RandomStream, seed: u64) -> Draw {
    let (rate, delay) = (log_uniform(random, 5.0, 100.0), log_uniform(random, 10.0, 300.0));
    let mut bottleneck = Bottleneck::drop_tail(rate, delay, log_uniform(random, 0.5, 4.0));
    let loss = one_of(random, &[0.0, 0.0, 0.005, 0.03]);
    bottleneck.more = errors(random, loss, "both");
    let bytes = log_uniform(random, 1e4, 1e6);
    let think = one_of(random, &[0.2, 2.0, 8.0]);
    let mut sketch = Sketch::new(seed, 60.0, 0.0);
    sketch.link(&bottleneck);
    sketch.law(&format!(
        "kind = \"request-response\"\nrequest_bytes = 300\nresponse_bytes = {bytes:.0}\nthink_s = {think}"
    ));
    if random.bernoulli(0.3) {
        sketch.other("transport = \"tcp-cubic\"\ntcp.congestion_control = \"cubic\"");
    }
    let least_s = 2.0 * bottleneck.base_delay_s() + bytes * 8.0 / (rate * 1e6);
    Draw { loss, ..Draw::new(sketch, Kind::Requests, &bottleneck, Measure::Response { least_s }) }
}

/// Returns the keys of a queue discipline.
pub(super) fn queue(discipline: &str, capacity: u32) -> String {
    let capacity = f64::from(capacity);
    match discipline {
        "red" => format!(
            "queue.discipline = \"red\"\nqueue.action = \"mark\"\nqueue.min_threshold_packets = {:.2}\n\
             queue.max_threshold_packets = {:.2}\nqueue.max_probability = 0.1\nqueue.gentle = true\n",
            0.2 * capacity,
            0.6 * capacity
        ),
        other => format!("queue.discipline = \"{other}\"\n"),
    }
}

/// Returns the keys of losses at the rate `loss`, independent or in bursts.
fn errors(random: &mut RandomStream, loss: f64, direction: &str) -> String {
    if loss <= 0.0 {
        return String::new();
    }
    let model = if random.bernoulli(0.3) {
        // The mean length of a burst is 2 to 20 packets.
        let ends = 1.0 / random.uniform(2.0, 20.0);
        let begins = ends * loss / (1.0 - loss);
        format!(
            "errors.model = \"gilbert-packet\"\nerrors.good_to_bad = {begins:.6}\nerrors.bad_to_good = {ends:.4}"
        )
    } else {
        format!("errors.model = \"packet\"\nerrors.packet_loss = {loss:.5}")
    };
    format!("{model}\nerrors.direction = \"{direction}\"\n")
}

/// Adds jitter to a fifth of the links, and late packets to some.
fn disturb(random: &mut RandomStream, bottleneck: &mut Bottleneck) {
    if random.bernoulli(0.2) {
        let most = bottleneck.delay_ms * random.uniform(0.05, 0.5);
        bottleneck.more.push_str(&format!("jitter.max_ms = {most:.3}\njitter.direction = \"a-to-b\"\n"));
    } else if random.bernoulli(0.15) {
        let (share, late) = (log_uniform(random, 0.01, 0.2), bottleneck.delay_ms * random.uniform(0.1, 1.0));
        bottleneck.more.push_str(&format!(
            "reordering.fraction = {share:.4}\nreordering.extra_delay_ms = {late:.3}\nreordering.direction = \"a-to-b\"\n"
        ));
    }
}

/// Adds another way back, of `rate_mbps`.
fn slow_way_back(sketch: &mut Sketch, rate_mbps: f64, delay_ms: f64) {
    sketch.push("\n[[node]]\nname = \"back\"");
    sketch.push(&format!(
        "\n[[link]]\na = \"far\"\nb = \"back\"\nrate_mbps = {rate_mbps:.5}\ndelay_ms = {delay_ms:.3}\nqueue.capacity_packets = 20"
    ));
    sketch.push("\n[[link]]\na = \"back\"\nb = \"near\"\nrate_mbps = 1000\ndelay_ms = 0.01");
    sketch.push("\n[[route]]\nat = \"far\"\nto = \"near\"\nvia = \"back\"");
}
