//! Metrics of a run, besides those of all its flows together.

use super::super::Better::{Higher, Lower, Neither};
use super::super::quantities::{
    energy_j, has_radios, over_nodes, per_hundred, radios, ratio, sum_of_run as sum,
};
use super::super::{MetricInfo, neighborhood};
use super::run;

/// Metrics of a run.
pub(super) const RUNS: &[MetricInfo] = &[
    run(
        "jain_2s",
        "1",
        Higher,
        "Jain's index of the bytes of each 2 s, averaged; of two flows or more",
        |o| (o.flows.len() > 1).then(|| o.jain_2s()),
    ),
    run("spurious_timeouts", "1", Neither, "time-outs found to be spurious and undone", |o| {
        Some(sum(o, |f| f.loss_detection.spurious_timeouts))
    }),
    run("spurious_recoveries", "1", Neither, "fast retransmits found to be spurious and undone", |o| {
        Some(sum(o, |f| f.loss_detection.spurious_recoveries))
    }),
    run("rack_losses", "1", Neither, "segments that RACK took for lost", |o| {
        Some(sum(o, |f| f.loss_detection.rack_losses))
    }),
    run("tail_probes", "1", Neither, "tail loss probes sent", |o| {
        Some(sum(o, |f| f.loss_detection.tail_probes))
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
        "data_frames_collided_pct",
        "%",
        Lower,
        "radio frames to one neighbour with data of flows, per hundred, lost to another signal, or the receiver's own, in the air",
        |o| per_hundred(over_nodes(o, |n| n.data_frames.collided), over_nodes(o, |n| n.data_frames.sent)),
    ),
    run(
        "ack_frames_collided_pct",
        "%",
        Lower,
        "the same of those with segments without data: ACKs of TCP",
        |o| per_hundred(over_nodes(o, |n| n.ack_frames.collided), over_nodes(o, |n| n.ack_frames.sent)),
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
    run("energy_j", "J", Lower, "energy that all radios took; see radio.transmit_draw_w", |o| {
        Some(energy_j(o)).filter(|_| has_radios(o))
    }),
    run("energy_per_megabyte_j", "J/MB", Lower, "the same per 10^6 delivered bytes", |o| {
        ratio(energy_j(o) * 1e6, sum(o, |f| f.bytes_received)).filter(|_| has_radios(o))
    }),
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
    run("proxy_retransmissions", "1", Neither, "packets that machines in the path sent again", |o| {
        Some(over_nodes(o, |n| n.proxies.retransmitted))
    }),
    run(
        "proxy_left_to_sender",
        "1",
        Neither,
        "lost packets that middleboxes left to the sender: refused by a queue, or sent again in vain too often",
        |o| Some(over_nodes(o, |n| n.proxies.unrecovered)),
    ),
    run("proxy_acks_absorbed", "1", Neither, "ACKs that machines in the path kept", |o| {
        Some(over_nodes(o, |n| n.proxies.acks_absorbed))
    }),
    run("proxy_windows_closed", "1", Neither, "times that machines in the path told a sender to wait", |o| {
        Some(over_nodes(o, |n| n.proxies.windows_closed))
    }),
    run("proxy_requests", "1", Neither, "requests for packets that links had lost, by their far ends", |o| {
        Some(over_nodes(o, |n| n.proxies.requests))
    }),
    run(
        "proxy_held",
        "1",
        Neither,
        "packets that waited in machines in the path: at the end of a link for others that it had lost, or for their turn in a burst of ACKs",
        |o| Some(over_nodes(o, |n| n.proxies.delayed)),
    ),
    run(
        "proxy_state_bytes",
        "B",
        Neither,
        "state of split connections that followed mobile hosts to other stations",
        |o| Some(over_nodes(o, |n| n.proxies.state_bytes)),
    ),
    run(
        "proxy_acks_modified",
        "1",
        Neither,
        "ACKs of which machines in the path passed on less than they said",
        |o| Some(over_nodes(o, |n| n.proxies.acks_rewritten)),
    ),
    run("proxy_acks_generated", "1", Neither, "ACKs that machines in the path made for others", |o| {
        Some(over_nodes(o, |n| n.proxies.acks_made))
    }),
    run(
        "drops_retry_limit",
        "1",
        Lower,
        "packets dropped: the MAC, or a link that repairs its losses, gave up",
        |o| Some(over_nodes(o, |n| n.drops.retry_limit)),
    ),
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
    run(
        "drops_policed",
        "1",
        Lower,
        "packets dropped: too much for a policer in front of a wired link",
        |o| Some(over_nodes(o, |n| n.drops.policed)),
    ),
    run(
        "drops_link_error",
        "1",
        Lower,
        "packets dropped: damaged on a wired link, or lost on the air without an ACK",
        |o| Some(over_nodes(o, |n| n.drops.link_error)),
    ),
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
        "packets of flows that wait in the neighborhood of a node that is observed, mean; this and the next nine: mean over the nodes that are observed",
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
        |o| neighborhood::of_run(o, neighborhood::queue_correlation),
    ),
    run(
        "neighborhood_correlation_unsaturated",
        "1",
        Higher,
        "the same while the estimate is below 95 % of max_threshold_packets",
        |o| neighborhood::of_run(o, neighborhood::queue_correlation_below_saturation),
    ),
    run("neighborhood_saturated_pct", "%", Neither, "share of the time in which it is not", |o| {
        neighborhood::of_run(o, neighborhood::saturated_pct)
    }),
    run(
        "neighborhood_hidden_growth_packets",
        "1",
        Neither,
        "mean queue while it is not, less the queue when that first came about",
        |o| neighborhood::of_run(o, neighborhood::growth_during_saturation),
    ),
    run(
        "neighborhood_average_queue_packets",
        "1",
        Neither,
        "the queue averaged as RED does, with the weight neighborhood_red.observe_weight each 100 ms, mean",
        |o| neighborhood::of_run(o, neighborhood::average_queue),
    ),
    run(
        "neighborhood_average_correlation",
        "1",
        Higher,
        "Pearson's correlation of the averaged queue and the estimate, of samples each 100 ms",
        |o| neighborhood::of_run(o, neighborhood::average_queue_correlation),
    ),
    run(
        "neighborhood_average_correlation_unsaturated",
        "1",
        Higher,
        "the same while the estimate is below 95 % of max_threshold_packets",
        |o| neighborhood::of_run(o, neighborhood::average_queue_correlation_below_saturation),
    ),
];
