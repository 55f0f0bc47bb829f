//! Metrics of flows, and of two flows.

use super::super::Better::{Higher, Lower, Neither};
use super::super::quantities::{
    connection_count, count, is_connection, is_exchange, is_tcp, mean, per_hundred, quantile, tcp_door_count,
};
use super::super::{MetricInfo, pair_correlation, steady_state};
use super::{flow, pair};
use hopline_core::Duration;

/// Metrics of a flow.
pub(super) const FLOWS: &[MetricInfo] = &[
    flow("goodput_bps", "bit/s", Higher, "bytes delivered over the time the flow was active", |_, f| {
        (!f.active_time.is_zero()).then(|| f.goodput_bps())
    }),
    flow(
        "warm_up_s",
        "s",
        Neither,
        "when the flow's start-up ends: MSER-5 on its goodput per second; of 30 s or more that settle",
        |_, f| steady_state::warm_up(f).map(Duration::as_secs_f64),
    ),
    flow("steady_goodput_bps", "bit/s", Higher, "goodput from `warm_up_s` on", |_, f| {
        steady_state::goodput_bps(f)
    }),
    flow("bytes_received", "B", Higher, "bytes delivered", |_, f| count(f.bytes_received)),
    flow(
        "longest_silence_s",
        "s",
        Lower,
        "longest time without a delivery while the flow was active, its beginning and its end included",
        |_, f| (!f.active_time.is_zero()).then(|| f.longest_silence.as_secs_f64()),
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
        connection_count(s, f.retransmissions)
    }),
    flow("timeouts", "1", Lower, "expirations of the retransmission timer; connections only", |s, f| {
        connection_count(s, f.timeouts)
    }),
    flow(
        "needless_timeouts",
        "1",
        Lower,
        "time-outs though no data that they waited for was lost, as the simulator knows; TCP only",
        |s, f| is_tcp(s).then_some(f.spurious_timeouts as f64),
    ),
    flow("needless_timeouts_pct", "%", Lower, "the same, per hundred time-outs; TCP only", |s, f| {
        is_tcp(s).then(|| per_hundred(f.spurious_timeouts as f64, f.timeouts as f64)).flatten()
    }),
    flow(
        "spurious_timeouts",
        "1",
        Neither,
        "time-outs found to be spurious and undone; connections only",
        |s, f| connection_count(s, f.loss_detection.spurious_timeouts),
    ),
    flow(
        "spurious_recoveries",
        "1",
        Neither,
        "fast retransmits found to be spurious and undone; connections only",
        |s, f| connection_count(s, f.loss_detection.spurious_recoveries),
    ),
    flow("rack_losses", "1", Neither, "segments that RACK took for lost; connections only", |s, f| {
        connection_count(s, f.loss_detection.rack_losses)
    }),
    flow("tail_probes", "1", Neither, "tail loss probes sent; connections only", |s, f| {
        connection_count(s, f.loss_detection.tail_probes)
    }),
    flow(
        "route_failures_notified",
        "1",
        Neither,
        "times an end was told that its route was lost (ELFN); connections only",
        |s, f| connection_count(s, f.route_loss_notifications),
    ),
    flow(
        "route_recoveries_notified",
        "1",
        Neither,
        "times an end was told that it has a route again; connections only",
        |s, f| connection_count(s, f.route_recovery_notifications),
    ),
    flow("door_ack_events", "1", Neither, "events in the order of ACKs (D1); of TCP-DOOR only", |s, f| {
        tcp_door_count(s, f.door_stats.ack_events)
    }),
    flow("door_data_events", "1", Neither, "events in the order of data (D2); of TCP-DOOR only", |s, f| {
        tcp_door_count(s, f.door_stats.data_events)
    }),
    flow(
        "door_notified_events",
        "1",
        Neither,
        "of these, what the sender heard of; of TCP-DOOR only",
        |s, f| tcp_door_count(s, f.door_stats.reported_events),
    ),
    flow(
        "door_ack_events_matched_pct",
        "%",
        Neither,
        "of the events in the order of ACKs, those within a timeout of one in the order of data; of TCP-DOOR only",
        |s, f| {
            tcp_door_count(s, f.door_stats.ack_events)
                .and_then(|all| per_hundred(f.door_stats.matched_ack_events as f64, all))
        },
    ),
    flow(
        "door_notified_events_matched_pct",
        "%",
        Neither,
        "of the events that the sender heard of, those within a timeout of one in the order of ACKs; of TCP-DOOR only",
        |s, f| {
            tcp_door_count(s, f.door_stats.reported_events)
                .and_then(|all| per_hundred(f.door_stats.matched_reported_events as f64, all))
        },
    ),
    flow(
        "door_disabled_periods",
        "1",
        Neither,
        "times congestion control was disabled (R1); of TCP-DOOR only",
        |s, f| tcp_door_count(s, f.door_stats.disable_periods),
    ),
    flow(
        "door_spared_timeouts",
        "1",
        Neither,
        "timeouts that left the window alone for that; of TCP-DOOR only",
        |s, f| tcp_door_count(s, f.door_stats.held_timeouts),
    ),
    flow(
        "door_spared_fast_retransmits",
        "1",
        Neither,
        "fast retransmits that left the window alone for that; of TCP-DOOR only",
        |s, f| tcp_door_count(s, f.door_stats.held_fast_retransmits),
    ),
    flow(
        "door_recoveries",
        "1",
        Neither,
        "times that a slowing down was undone (R2); of TCP-DOOR only",
        |s, f| tcp_door_count(s, f.door_stats.instant_recoveries),
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
        |_, f| Some(f.route_gap_time.as_secs_f64()),
    ),
    flow(
        "freezes",
        "1",
        Neither,
        "times an end froze because its route was lost: feedback schemes of TCP, TPA; connections only",
        |s, f| connection_count(s, f.freezes),
    ),
    flow("route_probes", "1", Neither, "probes of frozen ends; TCP only", |s, f| {
        is_tcp(s).then_some(f.route_probes as f64)
    }),
    flow("frozen_s", "s", Neither, "time that ends were frozen, both added up; TCP only", |s, f| {
        is_tcp(s).then_some(f.frozen_time.as_secs_f64())
    }),
    flow(
        "rtx_index_pct",
        "%",
        Lower,
        "segments sent again per hundred delivered; connections only",
        |s, f| {
            connection_count(s, f.retransmissions)
                .and_then(|again| per_hundred(again, f.segments_received as f64))
        },
    ),
    flow(
        "spurious_rtx",
        "1",
        Lower,
        "segments sent again in vain: they, or what they repeat, arrived though all their data had; connections only",
        |s, f| connection_count(s, f.duplicates),
    ),
    flow(
        "spurious_rtx_pct",
        "%",
        Lower,
        "segments sent again in vain, per hundred sent again; connections only",
        |s, f| {
            connection_count(s, f.duplicates).and_then(|again| per_hundred(again, f.retransmissions as f64))
        },
    ),
    flow(
        "copies_received",
        "1",
        Neither,
        "segments that arrived though all their data had, and were copies of proxies or base stations, or overtaken by one; connections only",
        |s, f| connection_count(s, f.copies),
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
    flow(
        "packets_received",
        "1",
        Higher,
        "IP packets from src that arrived at dst, by themselves or by a copy",
        |_, f| count(f.data.received),
    ),
    flow(
        "delivery_pct",
        "%",
        Higher,
        "packets from src to dst that arrive, by themselves or by a copy, per hundred of known fate",
        |_, f| f.data.loss_pct().map(|lost| 100.0 - lost),
    ),
    flow(
        "packet_loss_pct",
        "%",
        Lower,
        "packets from src to dst of which not even a copy arrives, per hundred of known fate",
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
        |s, f| connection_count(s, f.reverse.sent),
    ),
    flow(
        "back_packet_loss_pct",
        "%",
        Lower,
        "packets from dst to src lost per hundred of known fate",
        |_, f| f.reverse.loss_pct(),
    ),
    flow("back_delay_mean_s", "s", Lower, "one-way delay from dst to src: mean", |_, f| {
        f.reverse.delays.mean_s()
    }),
    flow(
        "ack_burst_mean",
        "1",
        Lower,
        "segments without data that arrive at src within 100 µs of the one before: length of such a burst, mean over bursts; connections only",
        |_, f| f.ack_bursts.mean(),
    ),
    flow("ack_burst_p95", "1", Lower, "length of such a burst: 95th percentile", |_, f| {
        f.ack_bursts.quantile(0.95).map(|acks| acks as f64)
    }),
    flow("ack_burst_max", "1", Lower, "length of such a burst: longest", |_, f| {
        f.ack_bursts.max().map(|acks| acks as f64)
    }),
];

/// Metrics of two flows.
pub(super) const PAIRS: &[MetricInfo] = &[pair(
    "goodput_correlation",
    "1",
    Neither,
    "Pearson's correlation of what the two deliver in each second: 1 together, −1 by turns",
    pair_correlation::goodput_correlation,
)];
