//! Metrics of the Neighborhood RED service.

use super::member::Member;
use crate::service::Metric;
use hopline_core::Instant;

/// Counters of the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Notices sent.
    pub(super) notices: u64,
    /// Notices that the interface rejected.
    pub(super) send_failures: u64,
    /// Packets that the kernel had altered before they reached the queue, or that did not cross the radio. They passed.
    pub(super) ineligible: u64,
    /// Malformed messages of the kernel, and verdicts that it rejected.
    pub(super) troubles: [u64; 2],
}

/// Returns all metrics at `now`.
pub(super) fn metrics(now: Instant, member: &Member, traffic: &Traffic) -> Vec<Metric> {
    let (machine, counts) = (member.machine(), member.counts());
    let stats = machine.stats();
    let [malformed_messages, refused_verdicts] = traffic.troubles;
    let [neighbours, _] = machine.table_sizes();
    let [down, up] = probabilities_ppm(now, member);
    vec![
        Metric::counter("samples", "intervals of channel time that were read", counts.samples),
        Metric::counter("samples_missing", "times that the source had nothing new to say", counts.missing),
        Metric::counter("samples_malformed", "readings that were none", counts.malformed),
        Metric::counter(
            "samples_incomplete",
            "readings without the times that the radio received and transmitted",
            counts.incomplete,
        ),
        Metric::counter(
            "samples_began",
            "readings that could not be compared with the one before",
            counts.started,
        ),
        Metric::counter(
            "samples_idle",
            "intervals that counted as idle, for want of readings",
            counts.silent,
        ),
        Metric::gauge(
            "source_silent",
            "1: nothing is read, and the channel counts as idle",
            member.is_silent().into(),
        ),
        Metric::gauge("channel_busy_permille", "busy share of the latest interval", member.busy_permille()),
        Metric::gauge("average_packets", "estimate of the neighborhood's queue", machine.average() as u64),
        Metric::gauge("neighbours", "neighbours that are remembered", neighbours as u64),
        Metric::counter("notices_sent", "notices sent", traffic.notices),
        Metric::counter("notices_unsent", "notices that the interface did not take", traffic.send_failures),
        Metric::counter("notices_received", "notices that came, heeded or not", stats.notices_received),
        Metric::counter(
            "notices_malformed",
            "what came to the port of notices and was none",
            counts.no_notices,
        ),
        Metric::counter("notices_smaller", "notices not heeded: a larger one held", stats.ignored_smaller),
        Metric::counter(
            "notices_too_soon",
            "notices not heeded: too soon after the last",
            stats.ignored_too_soon,
        ),
        Metric::counter(
            "notices_own",
            "notices not heeded: this node's own, or about it",
            stats.ignored_about_us,
        ),
        Metric::counter(
            "notices_not_for_us",
            "notices not heeded: passed on for others",
            stats.ignored_not_for_us,
        ),
        Metric::counter("notices_stranger", "notices not heeded: from no neighbour", stats.ignored_strangers),
        Metric::counter("notices_no_room", "notices not heeded: no room", stats.ignored_no_room),
        Metric::counter("notices_capped", "notices believed less than they said", stats.capped),
        Metric::counter("frames_own", "frames of this node that others repeated", counts.own),
        Metric::counter("packets", "packets that passed the radio", counts.packets),
        Metric::counter(
            "packets_exempt",
            "of these, routing messages and other control, never dropped",
            counts.exempt,
        ),
        Metric::counter("packets_dropped", "of these, dropped", counts.dropped),
        Metric::counter("packets_marked", "of these, marked: congestion experienced", counts.marked),
        Metric::counter(
            "packets_not_ours",
            "packets passed unseen: of other interfaces, or unfinished",
            traffic.ineligible,
        ),
        Metric::gauge("drop_probability_out_ppm", "drop probability of what leaves, millionths", down),
        Metric::gauge("drop_probability_in_ppm", "drop probability of what comes, millionths", up),
        Metric::counter(
            "kernel_messages_malformed",
            "messages of the kernel that were none",
            malformed_messages,
        ),
        Metric::counter("verdicts_refused", "verdicts that the kernel did not take", refused_verdicts),
    ]
}

/// Returns pb of Algorithm 5.2 for both directions, in millionths.
fn probabilities_ppm(now: Instant, member: &Member) -> [u64; 2] {
    let machine = member.machine();
    let share = machine.normalized_pb(now).get();
    machine.node_averages().map(|average| {
        let pb = if share >= 1.0 { 1.0 } else { (share * average).min(1.0) };
        (pb * 1e6) as u64
    })
}
