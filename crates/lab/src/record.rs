//! Stored record of a run.

pub mod distribution;

pub use crate::flow_ends::{FlowEnds, PROGRAM_KIND};
use crate::metrics::{self, Level, MetricInfo};
use crate::objective::MetricSelection;
use crate::plan::{Keep, KeepNodes, KeepPairs, KeepSeries};
use crate::run::Run;
pub use distribution::Distribution;
use hopline_core::Duration as VirtualTime;
use hopline_sim::Spec;
use hopline_sim::outcome::FlowSample;
use hopline_sim::spec::Transport;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A run of a point that has ended, successfully or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the point, from 0.
    pub point: usize,
    /// Number of the run, from 1.
    pub run: u64,
    /// Result, or the reason of its failure.
    pub result: Result<CompletedRun, String>,
}

impl Record {
    /// Returns the JSON object of `--json`: metrics of the run by name, an object for each flow, and one for
    /// each kind and class if there are several.
    #[must_use]
    pub fn json(&self) -> Json {
        match &self.result {
            Ok(done) => done.json(self.run),
            Err(why) => json!({ "run": self.run, "error": why }),
        }
    }
}

/// A run that was simulated to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletedRun {
    /// Hash of the event trajectory.
    #[serde(with = "hexadecimal")]
    pub fingerprint: u64,
    /// Events processed.
    pub events: u64,
    /// Virtual time simulated, in seconds.
    pub sim_s: f64,
    /// CPU time used, in seconds.
    pub cpu_s: f64,
    /// Time that passed, in seconds.
    pub wall_s: f64,
    /// Metrics of the run, its flows and, if they are kept, its nodes and pairs of flows.
    pub metrics: Vec<Value>,
    /// The flows, in scenario order.
    pub flows: Vec<FlowEnds>,
    /// Per-second series, one for each flow, if they are stored.
    pub series: Vec<Series>,
    /// Neighbourhoods of observed nodes, stored with the series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighborhoods: Vec<Neighborhood>,
    /// Distributions of delays and response times, stored with the series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distributions: Vec<Distribution>,
}

/// Format of fingerprints, 16 hexadecimal digits: a number of this size is not safe in JSON.
mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{value:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

/// One value of a run: an owned [`Metric`](crate::metrics::Metric), with the name of its subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The metric.
    pub metric: &'static MetricInfo,
    /// Name of the group, flow, node or pair of flows; empty for the run.
    pub subject: String,
    /// The value, finite.
    pub value: f64,
}

/// File format of a value: level, subject, metric, value.
#[derive(Serialize, Deserialize)]
struct ValueFormat<'a>(
    #[serde(borrow)] Cow<'a, str>,
    #[serde(borrow)] Cow<'a, str>,
    #[serde(borrow)] Cow<'a, str>,
    f64,
);

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { metric, subject, value } = self;
        ValueFormat(metric.level().word().into(), subject.as_str().into(), metric.name.into(), *value)
            .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let ValueFormat(level, subject, name, value) = ValueFormat::deserialize(from)?;
        let known = Level::ALL.into_iter().find(|l| l.word() == level);
        let metric = known.and_then(|level| metrics::find(level, &name));
        let unknown = || D::Error::custom(format!("there is no metric \"{name}\" of a {level}"));
        Ok(Self { metric: metric.ok_or_else(unknown)?, subject: subject.into_owned(), value })
    }
}

/// Values by level, subject (empty for the run) and name.
pub type ByKey<'a> = BTreeMap<(Level, &'a str, &'static str), f64>;

/// State of a flow, second by second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the flow.
    pub flow: String,
    /// Bytes of a full segment; 0 for a flow without a congestion window.
    pub segment_bytes: u32,
    /// Ends of the seconds.
    pub time_s: Vec<f64>,
    /// Total of bytes delivered by then.
    pub bytes_received: Vec<u64>,
    /// Congestion window in bytes; 0 for a flow without one.
    pub cwnd_bytes: Vec<u64>,
    /// Smoothed round-trip time in seconds, once there is a sample.
    pub srtt_s: Vec<Option<f64>>,
    /// Packets in the interface queue of the flow's source.
    pub queue_packets: Vec<u32>,
    /// Mean one-way delay of the packets that arrived in each second, in seconds; `None` without packets.
    #[serde(default)]
    pub delay_s: Vec<Option<f64>>,
}

/// Queue of a node's neighbourhood and its estimate, every 100 ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighborhood {
    /// Name of the node.
    pub node: String,
    /// Times, in seconds.
    pub time_s: Vec<f64>,
    /// Number of waiting packets.
    pub queue_packets: Vec<u32>,
    /// Average of `queue_packets`. Records of earlier versions have none.
    #[serde(default)]
    pub average_queue_packets: Vec<f64>,
    /// The estimate: an average.
    pub estimate_packets: Vec<f64>,
    /// The estimate from the latest interval alone.
    pub latest_packets: Vec<f64>,
}

/// A flow in one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// End of the second.
    pub time_s: f64,
    /// Goodput over this second, bit/s.
    pub goodput_bps: f64,
    /// Congestion window in bytes; `None` for a flow without one.
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time in seconds; `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// Packets in the interface queue of the source.
    pub queue_packets: u32,
    /// Mean one-way delay of the packets that arrived in this second, in seconds; `None` without packets.
    pub delay_s: Option<f64>,
}

impl CompletedRun {
    /// Returns the record of `run` of `spec`, with run number `number`.
    #[must_use]
    pub fn of(spec: &Spec, run: &Run, number: u64, keep: Keep) -> Self {
        let kept = |v: &metrics::Metric<'_>| keep.nodes == KeepNodes::Keep || v.info.level() != Level::Node;
        let value = |v: metrics::Metric<'_>| Value {
            metric: v.info,
            subject: v.scope.subject().into_owned(),
            value: v.value,
        };
        let (series, neighborhoods, distributions) = match keep.series {
            KeepSeries::FirstRun if number != 1 => Default::default(),
            KeepSeries::None => Default::default(),
            KeepSeries::FirstRun | KeepSeries::All => {
                (Series::of(spec, run), Neighborhood::of(spec, run), distribution::of(spec, run))
            }
        };
        let pairs = match keep.pairs {
            KeepPairs::Keep => metrics::pairs(spec, run),
            KeepPairs::Drop => Vec::new(),
        };
        Self {
            fingerprint: run.outcome.fingerprint,
            events: run.outcome.events,
            sim_s: run.outcome.sim_time.as_secs_f64(),
            cpu_s: run.cpu_s,
            wall_s: run.wall_s,
            flows: FlowEnds::of(spec),
            metrics: metrics::of_run(spec, run).into_iter().filter(kept).chain(pairs).map(value).collect(),
            series,
            neighborhoods,
            distributions,
        }
    }

    fn json(&self, run: u64) -> Json {
        let mut json = json!({
            "run": run,
            "fingerprint": format!("{:016x}", self.fingerprint),
            "sim_s": self.sim_s,
            "cpu_s": self.cpu_s,
            "events": self.events,
            "flows": self.flows,
        });
        for (name, value) in self.totals() {
            json[name] = value;
        }
        let of_groups = || self.metrics.iter().filter(|v| v.metric.level() == Level::Group);
        let several = of_groups().any(|v| of_groups().next().is_some_and(|first| first.subject != v.subject));
        // A single kind is the same as all flows.
        for value in of_groups().filter(|_| several) {
            json["groups"][&value.subject][value.metric.name] = number(value.value);
        }
        for value in self.metrics.iter().filter(|v| v.metric.level() == Level::Flow) {
            if let Some(flow) = self.flows.iter().position(|f| f.id == value.subject) {
                json["flows"][flow][value.metric.name] = number(value.value);
            }
        }
        json
    }

    /// Returns the metrics of the run by name; counts are whole numbers.
    #[must_use]
    pub fn totals(&self) -> Map<String, Json> {
        let of_run = self.metrics.iter().filter(|v| v.metric.level() == Level::Run);
        of_run.map(|v| (v.metric.name.to_owned(), number(v.value))).collect()
    }

    /// Returns all metrics by key.
    #[must_use]
    pub fn by_key(&self) -> ByKey<'_> {
        self.metrics
            .iter()
            .map(|v| ((v.metric.level(), v.subject.as_str(), v.metric.name), v.value))
            .collect()
    }

    /// Returns the metric that `target` names, if the run has it.
    #[must_use]
    pub fn value(&self, target: &MetricSelection) -> Option<f64> {
        let found = |v: &&Value| v.metric == target.metric && v.subject == target.subject;
        self.metrics.iter().find(found).map(|v| v.value)
    }

    /// Returns a metric of the run, if it has it.
    #[must_use]
    pub fn of_run(&self, name: &str) -> Option<f64> {
        let found = |v: &&Value| v.metric.level() == Level::Run && v.metric.name == name;
        self.metrics.iter().find(found).map(|v| v.value)
    }
}

/// Returns a JSON number, without a decimal point if it is whole.
pub(crate) fn number(x: f64) -> Json {
    const EXACT: f64 = (1u64 << 53) as f64;
    if libm::floor(x) == x && x.abs() < EXACT { json!(x as i64) } else { json!(x) }
}

impl Neighborhood {
    /// Returns the neighbourhoods of all observed nodes of `run`.
    #[must_use]
    pub fn of(spec: &Spec, run: &Run) -> Vec<Self> {
        let nodes = spec.nodes.iter().zip(&run.outcome.nodes);
        let series = nodes.filter_map(|(node, outcome)| {
            let samples = &outcome.neighborhood.as_ref()?.samples;
            Some(Self {
                node: node.name.clone(),
                time_s: samples.iter().map(|s| s.at.as_secs_f64()).collect(),
                queue_packets: samples.iter().map(|s| s.queue_packets).collect(),
                average_queue_packets: samples.iter().map(|s| s.average_queue).collect(),
                estimate_packets: samples.iter().map(|s| s.average).collect(),
                latest_packets: samples.iter().map(|s| s.latest).collect(),
            })
        });
        series.collect()
    }
}

/// Returns the mean delay of the packets that arrived between samples.
fn delays(samples: &[FlowSample]) -> Vec<Option<f64>> {
    let mut before = (0, VirtualTime::ZERO);
    let mean = |sample: &FlowSample| {
        let (packets, sum) = (sample.packets_received - before.0, sample.delay_sum.saturating_sub(before.1));
        before = (sample.packets_received, sample.delay_sum);
        (packets > 0).then(|| sum.as_secs_f64() / packets as f64)
    };
    samples.iter().map(mean).collect()
}

impl Series {
    /// Returns the series of all flows of `run`.
    #[must_use]
    pub fn of(spec: &Spec, run: &Run) -> Vec<Self> {
        let flows = spec.flows.iter().zip(&run.outcome.flows);
        let series = flows.map(|(flow, outcome)| {
            let samples = &outcome.series;
            Self {
                flow: flow.name.clone(),
                segment_bytes: flow.traffic.transport().map_or(0, Transport::mss),
                time_s: samples.iter().map(|s| s.at.as_secs_f64()).collect(),
                bytes_received: samples.iter().map(|s| s.bytes_received).collect(),
                cwnd_bytes: samples.iter().map(|s| s.cwnd_bytes).collect(),
                srtt_s: samples.iter().map(|s| s.srtt.map(|t| t.as_secs_f64())).collect(),
                queue_packets: samples.iter().map(|s| s.queue_packets).collect(),
                delay_s: delays(samples),
            }
        });
        series.collect()
    }

    /// Returns the rows of the flow in tables, second by second.
    pub fn seconds(&self) -> impl Iterator<Item = Second> {
        self.goodput_bps().into_iter().enumerate().map(|(i, goodput_bps)| Second {
            time_s: self.time_s[i],
            goodput_bps,
            cwnd_bytes: Some(self.cwnd_bytes[i]).filter(|&cwnd| cwnd > 0),
            srtt_s: self.srtt_s[i],
            queue_packets: self.queue_packets[i],
            delay_s: self.delay_s.get(i).copied().flatten(),
        })
    }

    /// Returns the goodput of each second, bit/s.
    #[must_use]
    pub fn goodput_bps(&self) -> Vec<f64> {
        let (mut bytes_before, mut time_before) = (0, 0.0);
        let rate = |(&bytes, &time): (&u64, &f64)| {
            let elapsed = time - time_before;
            let rate = if elapsed > 0.0 { (bytes - bytes_before) as f64 * 8.0 / elapsed } else { 0.0 };
            (bytes_before, time_before) = (bytes, time);
            rate
        };
        self.bytes_received.iter().zip(&self.time_s).map(rate).collect()
    }
}
