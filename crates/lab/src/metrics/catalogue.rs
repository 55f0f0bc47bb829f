//! The catalogue: a line a metric.

use super::Better::{Higher, Lower, Neither};
use super::quantities::{
    count, dropped, has_radios, is_connection, is_exchange, is_tcp, mean, of_connection, of_door, of_radio,
    over_nodes, per_hundred, quantile, radios, ratio, several, share, sum,
};
use super::{Better, Measure, MetricInfo, neighborhood, steady, together};
use hopline_core::Duration;
use hopline_sim::Outcome;
use hopline_sim::outcome::{FlowOutcome, NodeOutcome};
use hopline_sim::spec::FlowSpec;

/// Every metric, those of the run first, then those of flows, of pairs of flows, and of nodes. Names are unique within a level, and
/// mean the same on every level on which they occur.
pub const CATALOGUE: &[MetricInfo] = &[
    // ---- the run ----
    run("aggregate_goodput_bps", "bit/s", Higher, "sum of the flows' goodputs", |o| {
        Some(o.aggregate_goodput_bps())
    }),
    run(
        "goodput_max_bps",
        "bit/s",
        Neither,
        "goodput of the flow that has most; of two flows or more",
        |o| several(o).then(|| o.flows.iter().map(FlowOutcome::goodput_bps).fold(0.0, f64::max)),
    ),
    run(
        "goodput_min_bps",
        "bit/s",
        Higher,
        "goodput of the flow that has least; of two flows or more",
        |o| several(o).then(|| o.flows.iter().map(FlowOutcome::goodput_bps).fold(f64::INFINITY, f64::min)),
    ),
    run("jain", "1", Higher, "Jain's fairness index of the goodputs; of two flows or more", |o| {
        several(o).then(|| o.jain())
    }),
    run(
        "jain_2s",
        "1",
        Higher,
        "Jain's index of the bytes of each 2 s, averaged; of two flows or more",
        |o| several(o).then(|| o.jain_2s()),
    ),
    run("rtx_index_pct", "%", Lower, "segments sent again per hundred delivered, all flows together", |o| {
        per_hundred(sum(o, |f| f.retransmissions), sum(o, |f| f.segments_received))
    }),
    run("retransmissions", "1", Lower, "segments sent again", |o| Some(sum(o, |f| f.retransmissions))),
    run("timeouts", "1", Lower, "expirations of retransmission timers", |o| Some(sum(o, |f| f.timeouts))),
    run("spurious_timeouts", "1", Neither, "time-outs found to be spurious and undone", |o| {
        Some(sum(o, |f| f.detected.spurious_timeouts))
    }),
    run("spurious_recoveries", "1", Neither, "fast retransmits found to be spurious and undone", |o| {
        Some(sum(o, |f| f.detected.spurious_recoveries))
    }),
    run("rack_losses", "1", Neither, "segments that RACK took for lost", |o| {
        Some(sum(o, |f| f.detected.rack_losses))
    }),
    run("tail_probes", "1", Neither, "tail loss probes sent", |o| Some(sum(o, |f| f.detected.tail_probes))),
    run("segments_received", "1", Higher, "distinct segments or datagrams delivered", |o| {
        Some(sum(o, |f| f.segments_received))
    }),
    run("packet_loss_pct", "%", Lower, "packets of data lost per hundred whose fate is known", |o| {
        let lost = sum(o, |f| f.data.lost);
        per_hundred(lost, lost + sum(o, |f| f.data.received))
    }),
    run("delay_mean_s", "s", Lower, "one-way delay of packets of data, mean over all flows", |o| {
        let total: Duration = o.flows.iter().map(|f| f.data.delays.sum()).fold(Duration::ZERO, |a, b| a + b);
        ratio(total.as_secs_f64(), sum(o, |f| f.data.received))
    }),
    run(
        "frames_per_segment",
        "1",
        Lower,
        "radio frames of every kind, sent anywhere, per delivered segment",
        |o| {
            ratio(over_nodes(o, |n| n.frames.total()), sum(o, |f| f.segments_received))
                .filter(|_| has_radios(o))
        },
    ),
    run(
        "data_frames_per_segment",
        "1",
        Lower,
        "radio frames that carry a packet, per delivered segment",
        |o| {
            ratio(over_nodes(o, |n| n.frames.data), sum(o, |f| f.segments_received)).filter(|_| has_radios(o))
        },
    ),
    run(
        "airtime_per_megabyte_s",
        "s/MB",
        Lower,
        "transmitting time of all radios per 10^6 delivered bytes",
        |o| {
            let transmitting: f64 = o.nodes.iter().map(|n| n.airtime.transmitting.as_secs_f64()).sum();
            ratio(transmitting * 1e6, sum(o, |f| f.bytes_received)).filter(|_| has_radios(o))
        },
    ),
    run("transmitting_pct", "%", Neither, "share of radio time spent sending", |o| {
        radios(o, |a| a.transmitting)
    }),
    run("receiving_pct", "%", Neither, "share of radio time spent receiving", |o| radios(o, |a| a.receiving)),
    run("sensing_pct", "%", Neither, "share of radio time with a carrier that cannot be decoded", |o| {
        radios(o, |a| a.sensing)
    }),
    run("nav_pct", "%", Neither, "share of radio time reserved by others, carrier idle", |o| {
        radios(o, |a| a.nav)
    }),
    run("idle_pct", "%", Neither, "share of radio time idle", |o| radios(o, |a| a.idle)),
    run("routing_packets", "1", Lower, "routing messages sent, each hop counted", |o| {
        Some(over_nodes(o, |n| n.routing_packets))
    }),
    run(
        "routing_bytes",
        "B",
        Lower,
        "bytes of routing messages sent, IP headers included, each hop counted",
        |o| Some(over_nodes(o, |n| n.routing_bytes)),
    ),
    run("drops", "1", Lower, "packets dropped, any reason", |o| Some(over_nodes(o, |n| n.drops.total()))),
    run("drops_queue_full", "1", Lower, "packets dropped: interface queue full", |o| {
        Some(over_nodes(o, |n| n.drops.queue_full))
    }),
    run("drops_early", "1", Lower, "packets dropped: early detection, before the queue was full", |o| {
        Some(over_nodes(o, |n| n.drops.early))
    }),
    run("drops_neighborhood", "1", Lower, "packets dropped: Neighborhood RED spared the neighborhood", |o| {
        Some(over_nodes(o, |n| n.drops.neighborhood))
    }),
    run("notices_sent", "1", Neither, "notices of Neighborhood RED, those passed on not counted", |o| {
        Some(over_nodes(o, |n| n.notices.sent))
    }),
    run("notices_received", "1", Neither, "times a node received or overheard one", |o| {
        Some(over_nodes(o, |n| n.notices.received))
    }),
    run(
        "notices_delivered_pct",
        "%",
        Higher,
        "of a hundred pairs of a notice and a node with Neighborhood RED in range of its sender, those in which it arrived",
        |o| per_hundred(over_nodes(o, |n| n.notices.arrived), over_nodes(o, |n| n.notices.intended)),
    ),
    run("marks", "1", Neither, "packets marked by queues in place of being dropped", |o| {
        Some(over_nodes(o, |n| n.marks))
    }),
    run("proxy_sent_again", "1", Neither, "packets that machines in the path sent again", |o| {
        Some(over_nodes(o, |n| n.proxies.sent_again))
    }),
    run(
        "proxy_left_to_sender",
        "1",
        Neither,
        "packets whose loss machines in the path left to the sender: refused by a queue, or sent again in vain too often",
        |o| Some(over_nodes(o, |n| n.proxies.left_to_sender)),
    ),
    run("proxy_acks_absorbed", "1", Neither, "ACKs that machines in the path kept", |o| {
        Some(over_nodes(o, |n| n.proxies.acks_absorbed))
    }),
    run("proxy_acks_edited", "1", Neither, "ACKs whose SACK blocks machines in the path cut short", |o| {
        Some(over_nodes(o, |n| n.proxies.acks_edited))
    }),
    run("proxy_acks_made", "1", Neither, "ACKs that machines in the path made for others", |o| {
        Some(over_nodes(o, |n| n.proxies.acks_made))
    }),
    run("drops_retry_limit", "1", Lower, "packets dropped: the MAC gave up", |o| {
        Some(over_nodes(o, |n| n.drops.retry_limit))
    }),
    run(
        "drops_unresolved",
        "1",
        Lower,
        "packets dropped: another one was to wait for the neighbour's address, or the next hop was no neighbour",
        |o| Some(over_nodes(o, |n| n.drops.unresolved)),
    ),
    run("drops_no_route", "1", Lower, "packets dropped: no route, or none in time", |o| {
        Some(over_nodes(o, |n| n.drops.no_route))
    }),
    run("drops_ttl", "1", Lower, "packets dropped: hop limit exceeded", |o| {
        Some(over_nodes(o, |n| n.drops.ttl))
    }),
    run("drops_link_error", "1", Lower, "packets dropped: damaged on a wired link", |o| {
        Some(over_nodes(o, |n| n.drops.link_error))
    }),
    run(
        "drops_outage",
        "1",
        Lower,
        "packets dropped: came in an outage over a wire, or through a filter",
        |o| Some(over_nodes(o, |n| n.drops.outage)),
    ),
    run(
        "neighborhood_queue_packets",
        "1",
        Neither,
        "packets of flows that wait in the neighborhood of a node that is observed, mean; this and the next six: mean over the nodes that are observed",
        |o| neighborhood::of_run(o, neighborhood::queue),
    ),
    run("neighborhood_estimate_packets", "1", Neither, "Neighborhood RED's estimate of them, mean", |o| {
        neighborhood::of_run(o, neighborhood::estimate)
    }),
    run("neighborhood_estimate_max_packets", "1", Neither, "the highest estimate", |o| {
        neighborhood::of_run(o, neighborhood::estimate_max)
    }),
    run(
        "neighborhood_correlation",
        "1",
        Higher,
        "Pearson's correlation of queue and estimate, of samples each 100 ms",
        |o| neighborhood::of_run(o, neighborhood::goes_with),
    ),
    run(
        "neighborhood_correlation_unsaturated",
        "1",
        Higher,
        "the same while the estimate is below 95 % of max_threshold_packets",
        |o| neighborhood::of_run(o, neighborhood::goes_with_below_saturation),
    ),
    run("neighborhood_saturated_pct", "%", Neither, "share of the time in which it is not", |o| {
        neighborhood::of_run(o, neighborhood::saturated_pct)
    }),
    run(
        "neighborhood_hidden_growth_packets",
        "1",
        Neither,
        "mean queue while it is not, less the queue when that first came about",
        |o| neighborhood::of_run(o, neighborhood::hidden_growth),
    ),
    // ---- flows ----
    flow("goodput_bps", "bit/s", Higher, "bytes delivered over the time the flow was active", |_, f| {
        (!f.active.is_zero()).then(|| f.goodput_bps())
    }),
    flow(
        "warm_up_s",
        "s",
        Neither,
        "when the flow's start-up ends: MSER-5 on its goodput per second; of 30 s or more that settle",
        |_, f| steady::warm_up(f).map(Duration::as_secs_f64),
    ),
    flow("steady_goodput_bps", "bit/s", Higher, "goodput from `warm_up_s` on", |_, f| steady::goodput_bps(f)),
    flow("bytes_received", "B", Higher, "bytes delivered", |_, f| count(f.bytes_received)),
    flow(
        "longest_silence_s",
        "s",
        Lower,
        "longest time without a delivery while the flow was active, its beginning and its end included",
        |_, f| (!f.active.is_zero()).then(|| f.longest_silence.as_secs_f64()),
    ),
    flow(
        "completion_s",
        "s",
        Lower,
        "from the start to the last byte, of what had an end and came to it",
        |_, f| f.completion.map(Duration::as_secs_f64),
    ),
    flow("requests", "1", Neither, "requests sent; of requests and responses only", |s, f| {
        is_exchange(s).then_some(f.requests as f64)
    }),
    flow("responses", "1", Higher, "responses that arrived whole; of requests and responses only", |s, f| {
        is_exchange(s).then_some(f.responses.count() as f64)
    }),
    flow("response_mean_s", "s", Lower, "from a request to the last byte of its response: mean", |_, f| {
        f.responses.mean_s()
    }),
    flow("response_p50_s", "s", Lower, "from a request to the last byte of its response: median", |_, f| {
        quantile(&f.responses, 0.5)
    }),
    flow(
        "response_p95_s",
        "s",
        Lower,
        "from a request to the last byte of its response: 95th percentile",
        |_, f| quantile(&f.responses, 0.95),
    ),
    flow(
        "response_p99_s",
        "s",
        Lower,
        "from a request to the last byte of its response: 99th percentile",
        |_, f| quantile(&f.responses, 0.99),
    ),
    flow("response_max_s", "s", Lower, "from a request to the last byte of its response: longest", |_, f| {
        f.responses.max().map(Duration::as_secs_f64)
    }),
    flow("segments_sent", "1", Neither, "segments with data, or datagrams, sent", |_, f| {
        count(f.segments_sent)
    }),
    flow("segments_received", "1", Higher, "distinct segments or datagrams delivered", |_, f| {
        count(f.segments_received)
    }),
    flow("retransmissions", "1", Lower, "segments sent again; connections only", |s, f| {
        of_connection(s, f.retransmissions)
    }),
    flow("timeouts", "1", Lower, "expirations of the retransmission timer; connections only", |s, f| {
        of_connection(s, f.timeouts)
    }),
    flow(
        "needless_timeouts",
        "1",
        Lower,
        "time-outs though no data that they waited for was lost, as the simulator knows; TCP only",
        |s, f| is_tcp(s).then_some(f.needless_timeouts as f64),
    ),
    flow("needless_timeouts_pct", "%", Lower, "the same, per hundred time-outs; TCP only", |s, f| {
        is_tcp(s).then(|| per_hundred(f.needless_timeouts as f64, f.timeouts as f64)).flatten()
    }),
    flow(
        "spurious_timeouts",
        "1",
        Neither,
        "time-outs found to be spurious and undone; connections only",
        |s, f| of_connection(s, f.detected.spurious_timeouts),
    ),
    flow(
        "spurious_recoveries",
        "1",
        Neither,
        "fast retransmits found to be spurious and undone; connections only",
        |s, f| of_connection(s, f.detected.spurious_recoveries),
    ),
    flow("rack_losses", "1", Neither, "segments that RACK took for lost; connections only", |s, f| {
        of_connection(s, f.detected.rack_losses)
    }),
    flow("tail_probes", "1", Neither, "tail loss probes sent; connections only", |s, f| {
        of_connection(s, f.detected.tail_probes)
    }),
    flow(
        "route_losses_told",
        "1",
        Neither,
        "times an end was told that its route was lost (ELFN); connections only",
        |s, f| of_connection(s, f.route_losses_told),
    ),
    flow(
        "route_returns_told",
        "1",
        Neither,
        "times an end was told that it has a route again; connections only",
        |s, f| of_connection(s, f.route_returns_told),
    ),
    flow("door_ack_events", "1", Neither, "events in the order of ACKs (D1); of TCP-DOOR only", |s, f| {
        of_door(s, f.door.ack_events)
    }),
    flow("door_data_events", "1", Neither, "events in the order of data (D2); of TCP-DOOR only", |s, f| {
        of_door(s, f.door.data_events)
    }),
    flow("door_told_events", "1", Neither, "of these, what the sender heard of; of TCP-DOOR only", |s, f| {
        of_door(s, f.door.told_events)
    }),
    flow(
        "door_disablings",
        "1",
        Neither,
        "times congestion control was disabled (R1); of TCP-DOOR only",
        |s, f| of_door(s, f.door.disablings),
    ),
    flow(
        "door_spared_timeouts",
        "1",
        Neither,
        "timeouts that left the window alone for that; of TCP-DOOR only",
        |s, f| of_door(s, f.door.spared_timeouts),
    ),
    flow(
        "door_spared_fast_retransmits",
        "1",
        Neither,
        "fast retransmits that left the window alone for that; of TCP-DOOR only",
        |s, f| of_door(s, f.door.spared_fast_retransmits),
    ),
    flow(
        "door_recoveries",
        "1",
        Neither,
        "times that a slowing down was undone (R2); of TCP-DOOR only",
        |s, f| of_door(s, f.door.recoveries),
    ),
    flow(
        "route_gaps",
        "1",
        Lower,
        "times that the source had a packet and no route; of routing protocols",
        |_, f| Some(f.route_gaps as f64),
    ),
    flow(
        "route_gap_s",
        "s",
        Lower,
        "time from such a packet to the next that found a route, in all; of routing protocols",
        |_, f| Some(f.route_gap.as_secs_f64()),
    ),
    flow(
        "freezes",
        "1",
        Neither,
        "times an end froze because its route was lost: feedback schemes of TCP, TPA; connections only",
        |s, f| of_connection(s, f.freezes),
    ),
    flow("route_probes", "1", Neither, "probes of frozen ends; TCP only", |s, f| {
        is_tcp(s).then_some(f.route_probes as f64)
    }),
    flow("frozen_s", "s", Neither, "time that ends were frozen, both added up; TCP only", |s, f| {
        is_tcp(s).then_some(f.frozen.as_secs_f64())
    }),
    flow(
        "rtx_index_pct",
        "%",
        Lower,
        "segments sent again per hundred delivered; connections only",
        |s, f| {
            of_connection(s, f.retransmissions)
                .and_then(|again| per_hundred(again, f.segments_received as f64))
        },
    ),
    flow(
        "spurious_rtx",
        "1",
        Lower,
        "segments that arrived though all their data had; connections only",
        |s, f| of_connection(s, f.duplicates),
    ),
    flow(
        "spurious_rtx_pct",
        "%",
        Lower,
        "segments that arrived though all their data had, per hundred sent again; connections only",
        |s, f| of_connection(s, f.duplicates).and_then(|again| per_hundred(again, f.retransmissions as f64)),
    ),
    flow(
        "srtt_mean_s",
        "s",
        Lower,
        "smoothed round-trip time of the data's source, mean of its samples while it counts",
        |_, f| mean(f.counted_series().iter().filter_map(|sample| sample.srtt).map(Duration::as_secs_f64)),
    ),
    flow(
        "cwnd_mean_bytes",
        "B",
        Neither,
        "congestion window of the data's source, mean of its samples while it counts",
        |s, f| {
            mean(f.counted_series().iter().map(|sample| sample.cwnd_bytes as f64))
                .filter(|_| is_connection(s))
        },
    ),
    flow("packets_sent", "1", Neither, "IP packets from src to dst handed to the IP layer", |_, f| {
        count(f.data.sent)
    }),
    flow("packets_received", "1", Higher, "IP packets from src that arrived at dst", |_, f| {
        count(f.data.received)
    }),
    flow(
        "packet_loss_pct",
        "%",
        Lower,
        "packets from src to dst lost per hundred whose fate is known",
        |_, f| f.data.loss_pct(),
    ),
    flow("delay_mean_s", "s", Lower, "one-way delay from src to dst: mean", |_, f| f.data.delays.mean_s()),
    flow("delay_p50_s", "s", Lower, "one-way delay from src to dst: median", |_, f| {
        quantile(&f.data.delays, 0.5)
    }),
    flow("delay_p95_s", "s", Lower, "one-way delay from src to dst: 95th percentile", |_, f| {
        quantile(&f.data.delays, 0.95)
    }),
    flow("delay_p99_s", "s", Lower, "one-way delay from src to dst: 99th percentile", |_, f| {
        quantile(&f.data.delays, 0.99)
    }),
    flow("delay_max_s", "s", Lower, "one-way delay from src to dst: longest", |_, f| {
        f.data.delays.max().map(Duration::as_secs_f64)
    }),
    flow("jitter_mean_s", "s", Lower, "difference of delay from one packet to the next, mean", |_, f| {
        f.data.jitter_mean_s()
    }),
    flow("hops_mean", "1", Neither, "hops of the packets from src that arrived, mean", |_, f| {
        f.data.hops_mean()
    }),
    flow(
        "back_packets_sent",
        "1",
        Neither,
        "IP packets from dst to src handed to the IP layer; connections only",
        |s, f| of_connection(s, f.back.sent),
    ),
    flow(
        "back_packet_loss_pct",
        "%",
        Lower,
        "packets from dst to src lost per hundred whose fate is known",
        |_, f| f.back.loss_pct(),
    ),
    flow("back_delay_mean_s", "s", Lower, "one-way delay from dst to src: mean", |_, f| {
        f.back.delays.mean_s()
    }),
    // ---- two flows ----
    pair(
        "goodput_correlation",
        "1",
        Neither,
        "Pearson's correlation of what the two deliver in each second: 1 together, −1 by turns",
        together::goodput_correlation,
    ),
    // ---- nodes ----
    node("transmitting_pct", "%", Neither, "share of radio time spent sending", |n| {
        share(n, |a| a.transmitting)
    }),
    node("receiving_pct", "%", Neither, "share of radio time spent receiving", |n| share(n, |a| a.receiving)),
    node("sensing_pct", "%", Neither, "share of radio time with a carrier that cannot be decoded", |n| {
        share(n, |a| a.sensing)
    }),
    node("nav_pct", "%", Neither, "share of radio time reserved by others, carrier idle", |n| {
        share(n, |a| a.nav)
    }),
    node("idle_pct", "%", Neither, "share of radio time idle", |n| share(n, |a| a.idle)),
    node("frames_sent", "1", Neither, "radio frames sent, of every kind", |n| of_radio(n, n.frames.total())),
    node("data_frames_sent", "1", Neither, "radio frames sent that carry a packet", |n| {
        of_radio(n, n.frames.data)
    }),
    node("rts_sent", "1", Neither, "requests to send", |n| of_radio(n, n.frames.rts)),
    node("routing_packets", "1", Lower, "routing messages sent", |n| count(n.routing_packets)),
    node("routing_bytes", "B", Lower, "bytes of routing messages sent, IP headers included", |n| {
        count(n.routing_bytes)
    }),
    node("drops", "1", Lower, "packets dropped, any reason", |n| count(n.drops.total())),
    node("drops_queue_full", "1", Lower, "packets dropped: interface queue full", |n| {
        dropped(n, |d| d.queue_full)
    }),
    node(
        "drops_neighborhood",
        "1",
        Lower,
        "packets dropped: Neighborhood RED spared the neighborhood",
        |n| Some(n.drops.neighborhood as f64),
    ),
    node("notices_sent", "1", Neither, "notices of Neighborhood RED", |n| Some(n.notices.sent as f64)),
    node("notices_received", "1", Neither, "notices received or overheard", |n| {
        Some(n.notices.received as f64)
    }),
    node("drops_early", "1", Lower, "packets dropped: early detection, before the queue was full", |n| {
        dropped(n, |d| d.early)
    }),
    node("marks", "1", Neither, "packets marked by its queues in place of being dropped", |n| count(n.marks)),
    node("drops_retry_limit", "1", Lower, "packets dropped: the MAC gave up", |n| {
        dropped(n, |d| d.retry_limit)
    }),
    node(
        "drops_unresolved",
        "1",
        Lower,
        "packets dropped: another one was to wait for the neighbour's address, or the next hop was no neighbour",
        |n| dropped(n, |d| d.unresolved),
    ),
    node("drops_no_route", "1", Lower, "packets dropped: no route, or none in time", |n| {
        dropped(n, |d| d.no_route)
    }),
    node("drops_ttl", "1", Lower, "packets dropped: hop limit exceeded", |n| dropped(n, |d| d.ttl)),
    node("drops_link_error", "1", Lower, "packets dropped: damaged on a wired link", |n| {
        dropped(n, |d| d.link_error)
    }),
    node(
        "drops_outage",
        "1",
        Lower,
        "packets dropped: came in an outage over a wire, or through a filter",
        |n| dropped(n, |d| d.outage),
    ),
    node(
        "neighborhood_queue_packets",
        "1",
        Neither,
        "packets of flows that wait in the neighborhood of a node that is observed, mean",
        |n| neighborhood::of_node(n, neighborhood::queue),
    ),
    node("neighborhood_estimate_packets", "1", Neither, "Neighborhood RED's estimate of them, mean", |n| {
        neighborhood::of_node(n, neighborhood::estimate)
    }),
    node("neighborhood_estimate_max_packets", "1", Neither, "the highest estimate", |n| {
        neighborhood::of_node(n, neighborhood::estimate_max)
    }),
    node(
        "neighborhood_correlation",
        "1",
        Higher,
        "Pearson's correlation of queue and estimate, of samples each 100 ms",
        |n| neighborhood::of_node(n, neighborhood::goes_with),
    ),
    node(
        "neighborhood_correlation_unsaturated",
        "1",
        Higher,
        "the same while the estimate is below 95 % of max_threshold_packets",
        |n| neighborhood::of_node(n, neighborhood::goes_with_below_saturation),
    ),
    node("neighborhood_saturated_pct", "%", Neither, "share of the time in which it is not", |n| {
        neighborhood::of_node(n, neighborhood::saturated_pct)
    }),
    node(
        "neighborhood_hidden_growth_packets",
        "1",
        Neither,
        "mean queue while it is not, less the queue when that first came about",
        |n| neighborhood::of_node(n, neighborhood::hidden_growth),
    ),
];

type OfRun = fn(&Outcome) -> Option<f64>;
type OfFlow = fn(&FlowSpec, &FlowOutcome) -> Option<f64>;
type OfPair = fn(&FlowOutcome, &FlowOutcome) -> Option<f64>;
type OfNode = fn(&NodeOutcome) -> Option<f64>;

const fn run(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfRun,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Run(of) }
}

const fn flow(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfFlow,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Flow(of) }
}

const fn pair(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfPair,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Pair(of) }
}

const fn node(
    n: &'static str,
    unit: &'static str,
    better: Better,
    doc: &'static str,
    of: OfNode,
) -> MetricInfo {
    MetricInfo { name: n, unit, doc, better, measure: Measure::Node(of) }
}
