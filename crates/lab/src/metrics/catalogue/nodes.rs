//! Metrics of nodes.

use super::super::Better::{Higher, Lower, Neither};
use super::super::quantities::{count, dropped, radio_count, radio_s, share};
use super::super::{MetricInfo, neighborhood};
use super::node;

/// Metrics of a node.
pub(super) const NODES: &[MetricInfo] = &[
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
    node("energy_j", "J", Lower, "energy that its radios took", |n| {
        (radio_s(&n.airtime) > 0.0).then_some(n.energy_j)
    }),
    node("frames_sent", "1", Neither, "radio frames sent, of every kind", |n| {
        radio_count(n, n.frames.total())
    }),
    node("data_frames_sent", "1", Neither, "radio frames sent that carry a packet", |n| {
        radio_count(n, n.frames.data)
    }),
    node("rts_sent", "1", Neither, "requests to send", |n| radio_count(n, n.frames.rts)),
    node("routing_packets", "1", Lower, "routing messages sent", |n| count(n.routing_packets)),
    node("routing_bytes", "B", Lower, "bytes of routing messages sent, IP headers included", |n| {
        count(n.routing_bytes)
    }),
    node("queue_max_packets", "1", Lower, "packets in the longest of its queues when it was longest", |n| {
        Some(n.queues.max_packets.into())
    }),
    node("queue_mean_packets", "1", Lower, "packets in all its queues, mean over time", |n| {
        Some(n.queues.mean_packets)
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
    node(
        "drops_retry_limit",
        "1",
        Lower,
        "packets dropped: the MAC, or a link that repairs its losses, gave up",
        |n| dropped(n, |d| d.retry_limit),
    ),
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
    node(
        "drops_policed",
        "1",
        Lower,
        "packets dropped: too much for a policer in front of a wired link",
        |n| dropped(n, |d| d.policed),
    ),
    node(
        "drops_link_error",
        "1",
        Lower,
        "packets dropped: damaged on a wired link, or lost on the air without an ACK",
        |n| dropped(n, |d| d.link_error),
    ),
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
        |n| neighborhood::of_node(n, neighborhood::queue_correlation),
    ),
    node(
        "neighborhood_correlation_unsaturated",
        "1",
        Higher,
        "the same while the estimate is below 95 % of max_threshold_packets",
        |n| neighborhood::of_node(n, neighborhood::queue_correlation_below_saturation),
    ),
    node("neighborhood_saturated_pct", "%", Neither, "share of the time in which it is not", |n| {
        neighborhood::of_node(n, neighborhood::saturated_pct)
    }),
    node(
        "neighborhood_hidden_growth_packets",
        "1",
        Neither,
        "mean queue while it is not, less the queue when that first came about",
        |n| neighborhood::of_node(n, neighborhood::growth_during_saturation),
    ),
    node(
        "neighborhood_average_queue_packets",
        "1",
        Neither,
        "the queue averaged as RED does, with the weight neighborhood_red.observe_weight each 100 ms, mean",
        |n| neighborhood::of_node(n, neighborhood::average_queue),
    ),
    node(
        "neighborhood_average_correlation",
        "1",
        Higher,
        "Pearson's correlation of the averaged queue and the estimate, of samples each 100 ms",
        |n| neighborhood::of_node(n, neighborhood::average_queue_correlation),
    ),
    node(
        "neighborhood_average_correlation_unsaturated",
        "1",
        Higher,
        "the same while the estimate is below 95 % of max_threshold_packets",
        |n| neighborhood::of_node(n, neighborhood::average_queue_correlation_below_saturation),
    ),
];
