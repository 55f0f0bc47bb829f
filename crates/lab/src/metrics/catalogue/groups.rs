//! Metrics of several flows together: of all of a run, and of those of a kind or a class.

use super::super::Better::{Higher, Lower, Neither};
use super::super::quantities::{
    delays, delivery_pct, has_end, is_several, loss_pct, per_hundred, ratio, responses, sum,
};
use super::super::{Better, Level, Measure, Member, MetricInfo};
use hopline_core::Duration;
use hopline_sim::outcome::{DelayStats, jain};

/// Goodput of a group; for the run it has another name.
const GOODPUT: MetricInfo = together("goodput_bps", "bit/s", Higher, "sum of the flows' goodputs", |flows| {
    Some(flows.iter().map(|(_, f)| f.goodput_bps()).sum())
});

/// Metrics with the same name for a run and for a group.
const RUN_AND_GROUP: &[MetricInfo] = &[
    together(
        "goodput_max_bps",
        "bit/s",
        Neither,
        "goodput of the flow that has most; of two flows or more",
        |flows| is_several(flows).then(|| flows.iter().map(|(_, f)| f.goodput_bps()).fold(0.0, f64::max)),
    ),
    together(
        "goodput_min_bps",
        "bit/s",
        Higher,
        "goodput of the flow that has least; of two flows or more",
        |flows| {
            is_several(flows)
                .then(|| flows.iter().map(|(_, f)| f.goodput_bps()).fold(f64::INFINITY, f64::min))
        },
    ),
    together("jain", "1", Higher, "Jain's fairness index of the goodputs; of two flows or more", |flows| {
        is_several(flows).then(|| jain(flows.iter().map(|(_, f)| f.goodput_bps())))
    }),
    together(
        "rtx_index_pct",
        "%",
        Lower,
        "segments sent again per hundred delivered, all flows together",
        |flows| per_hundred(sum(flows, |f| f.retransmissions), sum(flows, |f| f.segments_received)),
    ),
    together("retransmissions", "1", Lower, "segments sent again", |flows| {
        Some(sum(flows, |f| f.retransmissions))
    }),
    together("timeouts", "1", Lower, "expirations of retransmission timers", |flows| {
        Some(sum(flows, |f| f.timeouts))
    }),
    together("segments_received", "1", Higher, "distinct segments or datagrams delivered", |flows| {
        Some(sum(flows, |f| f.segments_received))
    }),
    together(
        "completion_max_s",
        "s",
        Lower,
        "from the start to the last byte of the flow that takes longest, of those that have an end, where all come to it",
        |flows| {
            let sized = flows.iter().filter(|(spec, _)| has_end(spec));
            let all: Option<Vec<Duration>> = sized.map(|(_, f)| f.completion).collect();
            all?.into_iter().max().map(Duration::as_secs_f64)
        },
    ),
    together(
        "delivery_pct",
        "%",
        Higher,
        "packets of data that arrive, per hundred of known fate",
        delivery_pct,
    ),
    together("packet_loss_pct", "%", Lower, "packets of data lost per hundred of known fate", loss_pct),
    together("delay_mean_s", "s", Lower, "one-way delay of packets of data, mean over all flows", |flows| {
        let total = flows.iter().map(|(_, f)| f.data.delays.sum()).fold(Duration::ZERO, |a, b| a + b);
        ratio(total.as_secs_f64(), sum(flows, |f| f.data.received))
    }),
    together("delay_p50_s", "s", Lower, "one-way delay of packets of data: median", |flows| {
        delays(flows, 0.5)
    }),
    together("delay_p95_s", "s", Lower, "one-way delay of packets of data: 95th percentile", |flows| {
        delays(flows, 0.95)
    }),
    together("delay_p99_s", "s", Lower, "one-way delay of packets of data: 99th percentile", |flows| {
        delays(flows, 0.99)
    }),
    together(
        "responses",
        "1",
        Higher,
        "responses that arrived whole; of requests and responses only",
        |flows| responses(flows).map(|all| all.count() as f64),
    ),
    together(
        "response_mean_s",
        "s",
        Lower,
        "from a request to the last byte of its response: mean",
        |flows| responses(flows).as_ref().and_then(DelayStats::mean_s),
    ),
    together(
        "response_p50_s",
        "s",
        Lower,
        "from a request to the last byte of its response: median",
        |flows| responses(flows)?.quantile(0.5).map(Duration::as_secs_f64),
    ),
    together(
        "response_p95_s",
        "s",
        Lower,
        "from a request to the last byte of its response: 95th percentile",
        |flows| responses(flows)?.quantile(0.95).map(Duration::as_secs_f64),
    ),
    together(
        "response_p99_s",
        "s",
        Lower,
        "from a request to the last byte of its response: 99th percentile",
        |flows| responses(flows)?.quantile(0.99).map(Duration::as_secs_f64),
    ),
];

/// Metrics of a run: of all its flows together.
pub(super) const OF_RUNS: &[MetricInfo] = &{
    let mut all = [MetricInfo { name: "aggregate_goodput_bps", ..GOODPUT }; RUN_AND_GROUP.len() + 1];
    let mut n = 0;
    while n < RUN_AND_GROUP.len() {
        all[n + 1] = RUN_AND_GROUP[n];
        n += 1;
    }
    all
};

/// Metrics of the flows of a kind or a class.
pub(super) const GROUPS: &[MetricInfo] = &{
    let mut all = [GOODPUT; RUN_AND_GROUP.len() + 1];
    let mut n = 0;
    while n < all.len() {
        let of = if n == 0 { GOODPUT } else { RUN_AND_GROUP[n - 1] };
        let Measure::Flows(_, value) = of.measure else { panic!("they are of flows together") };
        all[n] = MetricInfo { measure: Measure::Flows(Level::Group, value), ..of };
        n += 1;
    }
    all
};

type OfFlows = fn(&[Member<'_>]) -> Option<f64>;

const fn together(
    name: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfFlows,
) -> MetricInfo {
    MetricInfo { name, unit, doc, better, measure: Measure::Flows(Level::Run, of) }
}
