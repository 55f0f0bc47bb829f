//! A random network: text of its scenario, and what is known about it in advance.

use super::kind::Kind;
use super::measure::Measure;
use super::traces::Stretch;
use crate::evaluation::{LAW_CLASS, Law};
use crate::plan::{Keep, KeepNodes, KeepPairs, KeepSeries, Plan, Runs};
use hopline_config::document::Setting;
use hopline_config::source::{Problem, Problems, Source};
use hopline_core::RandomStream;
use hopline_scenario::Scenario;
use hopline_scenario::folder::Folder;
use std::fmt::Write;
use std::sync::Arc;

/// Bytes of a full packet.
pub(super) const PACKET_BYTES: f64 = 1500.0;

/// Random network.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// Name: kind and place among the draws of its seed.
    pub id: String,
    /// Kind.
    pub kind: Kind,
    /// Its scenario; flows of the class [`LAW_CLASS`] have no transport.
    pub toml: String,
    /// `true`: flows ask for ECN marks, over algorithms that react to them.
    pub marks: bool,
    /// Share of the packets that the path loses at any rate.
    pub loss: f64,
    /// One-way delay of a packet without a queue, seconds; of a constant path.
    pub base_delay_s: f64,
    /// Measure of performance, with the highest possible value.
    pub measure: Measure,
    /// Trace that gives the link its rates.
    pub stretch: Option<Stretch>,
}

impl Draw {
    /// Returns a network without marks and losses. It gets its name from its place.
    pub(super) fn new(sketch: Sketch, kind: Kind, bottleneck: &Bottleneck, measure: Measure) -> Self {
        Self {
            id: String::new(),
            kind,
            toml: sketch.text,
            marks: false,
            loss: 0.0,
            base_delay_s: bottleneck.base_delay_s(),
            measure,
            stretch: None,
        }
    }

    /// Returns the plan of one run for each algorithm, with `set` over the scenario.
    ///
    /// # Errors
    /// If an algorithm cannot be simulated in this build.
    pub fn plan(&self, laws: &[Law], set: &[Setting]) -> Result<Plan, Problems> {
        let source = Arc::new(Source { name: format!("{}.toml", self.id), text: self.toml.clone() });
        let traces = self.stretch.iter().map(|stretch| stretch.trace.source.clone());
        let scenario = Scenario::parse(source, Folder::transferred("", traces), set)?;
        let variant = |law: &Law| Ok((law.name.clone(), law.settings_on(&scenario, self.marks)?));
        let variants = laws.iter().map(variant).collect::<Result<Vec<_>, Problem>>()?;
        let mut plan = Plan::of_variants(&scenario, &variants)?;
        plan.name.clone_from(&self.id);
        plan.runs = Runs::Fixed(1);
        plan.keep = Keep { series: KeepSeries::None, nodes: KeepNodes::Drop, pairs: KeepPairs::Drop };
        Ok(plan)
    }
}

/// Text of a scenario in progress.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) text: String,
}

/// Bottleneck of a path.
#[derive(Clone, Debug)]
pub(super) struct Bottleneck {
    pub(super) rate_mbps: f64,
    /// Propagation delay in each direction.
    pub(super) delay_ms: f64,
    pub(super) queue_packets: u32,
    /// More keys of the link, a line each.
    pub(super) more: String,
}

impl Bottleneck {
    /// Returns the product of rate and round-trip time, packets.
    pub(super) fn product(rate_mbps: f64, delay_ms: f64) -> f64 {
        rate_mbps * 1e6 * 2.0 * delay_ms * 1e-3 / 8.0 / PACKET_BYTES
    }

    /// Returns a drop-tail bottleneck with a queue of `products` products of rate and round-trip time.
    pub(super) fn drop_tail(rate_mbps: f64, delay_ms: f64, products: f64) -> Self {
        let queue_packets = (products * Self::product(rate_mbps, delay_ms)).clamp(3.0, 20_000.0) as u32;
        Self { rate_mbps, delay_ms, queue_packets, more: String::new() }
    }

    /// Returns the one-way delay of a packet without a queue, seconds.
    pub(super) fn base_delay_s(&self) -> f64 {
        self.delay_ms * 1e-3 + PACKET_BYTES * 8.0 / (self.rate_mbps * 1e6)
    }
}

impl Sketch {
    /// Begins a scenario of two hosts, `near` and `far`.
    pub(super) fn new(seed: u64, duration_s: f64, warmup_s: f64) -> Self {
        let mut text = String::new();
        let _ = writeln!(text, "seed = {seed}\nduration_s = {duration_s:.1}\nwarmup_s = {warmup_s:.1}");
        text.push_str("\n[tcp]\npreset = \"linux\"\nreceive_buffer_bytes = 268435456\n");
        text.push_str("\n[wide]\nreceive_buffer_bytes = 268435456\n");
        text.push_str("\n[[node]]\nname = \"near\"\n\n[[node]]\nname = \"far\"\n");
        Self { text }
    }

    /// Adds the link between both.
    pub(super) fn link(&mut self, bottleneck: &Bottleneck) {
        self.link_of(&format!("rate_mbps = {:.4}", bottleneck.rate_mbps), bottleneck);
    }

    /// Adds the link between both with the rates of a trace.
    pub(super) fn traced_link(&mut self, bottleneck: &Bottleneck, stretch: &Stretch) {
        self.link_of("# The rates are those of the trace below.", bottleneck);
        self.push(&stretch.keys());
    }

    fn link_of(&mut self, rate: &str, bottleneck: &Bottleneck) {
        let Bottleneck { delay_ms, queue_packets, more, .. } = bottleneck;
        self.push(&format!("\n[[link]]\na = \"near\"\nb = \"far\"\n{rate}\ndelay_ms = {delay_ms:.3}"));
        self.push(&format!("queue.capacity_packets = {queue_packets}\n{}", more.trim_end()));
    }

    /// Adds a flow of the compared algorithm, with more keys.
    pub(super) fn law(&mut self, more: &str) {
        self.push(&format!("\n[[flow]]\nclass = \"{LAW_CLASS}\"\nsrc = \"near\"\ndst = \"far\"\n{more}"));
    }

    /// Adds a flow of the class `other`, with more keys.
    pub(super) fn other(&mut self, more: &str) {
        self.push(&format!("\n[[flow]]\nclass = \"other\"\nsrc = \"near\"\ndst = \"far\"\n{more}"));
    }

    /// Adds lines.
    pub(super) fn push(&mut self, lines: &str) {
        self.text.push_str(lines.trim_end_matches('\n'));
        self.text.push('\n');
    }
}

/// Returns a number between both, with a uniform logarithm.
pub(super) fn log_uniform(random: &mut RandomStream, low: f64, high: f64) -> f64 {
    low * libm::pow(high / low, random.unit())
}

/// Returns one of the items.
pub(super) fn one_of<T: Copy>(random: &mut RandomStream, items: &[T]) -> T {
    items[random.below(items.len() as u32) as usize]
}
