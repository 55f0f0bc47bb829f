//! Outages: the nodes that are not heard, the times, and the effect on the layers above.

use crate::support::recorder::{RecordedKind, record};
use crate::support::{self, SpecBuilder, at, chain, link, ns2_tcp, standing, wired};
use hopline_core::{Duration, Instant, NodeId};
use hopline_radio::mac::config::AckPolicy;
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_routing::aodv::config::{Hello, HelloSenders, LinkSensing};
use hopline_routing::{aodv, olsr};
use hopline_sim::outcome::{Connected, DropCounts};
use hopline_sim::spec::{OutageEffect, OutageSpec};
use hopline_sim::{Outcome, Spec, simulate};

/// UDP payload of the packets here.
const PAYLOAD: u32 = 500;
/// A packet every 100 ms.
const EVERY: Duration = Duration::from_millis(100);

/// Until the last packet of what stops at 3 s is long sent, and not until the end of the 4 s: that would be topology.
const WHILE_IT_SENDS: (f64, f64) = (0.0, 3.9);

fn outage(from: u32, to: u32, (start_s, end_s): (f64, f64), blocks: OutageEffect) -> OutageSpec {
    OutageSpec { from: NodeId(from), to: NodeId(to), start: at(start_s), end: at(end_s), blocks }
}

fn with_outages(spec: Spec, outages: &[OutageSpec]) -> Spec {
    spec.change(|spec| spec.outages.extend(outages))
}

fn received(spec: &Spec) -> u64 {
    simulate(spec, 1).flows[0].segments_received
}

/// Distinct datagrams at each whole second.
fn per_second(outcome: &Outcome) -> Vec<u64> {
    let totals: Vec<u64> = outcome.flows[0].series.iter().map(|s| s.bytes_received / 500).collect();
    let before = std::iter::once(&0).chain(&totals);
    totals.iter().zip(before).map(|(now, before)| now - before).collect()
}

#[test]
fn blocked_frames_are_sensed_but_not_answered() {
    // Without RTS: n1 senses every attempt of n0 and decodes none.
    let spec = chain(1).radio(|radio| radio.mac.rts_threshold_bytes = 3000).seconds(4);
    let spec = spec.cbr(0, 1, PAYLOAD, EVERY).until(3.0);
    let clear = simulate(&spec, 1);
    let (outcome, notes) =
        record(&with_outages(spec, &[outage(0, 1, WHILE_IT_SENDS, OutageEffect::Frames)]), 1);
    assert_eq!(clear.flows[0].segments_received, 30);
    assert_eq!(outcome.flows[0].connected, Connected::Never);
    assert_eq!(notes.count(RecordedKind::AckSent), 0);
    assert_eq!(notes.count(RecordedKind::DataReceived), 0);
    assert_eq!(outcome.nodes[0].drops, DropCounts { retry_limit: 30, ..DropCounts::default() });
    assert!(
        outcome.nodes[1].airtime.sensing + outcome.nodes[1].airtime.receiving
            > clear.nodes[1].airtime.receiving
    );
}

#[test]
fn over_a_unidirectional_link_data_pass_and_acks_do_not() {
    // Without RTS n1 gets every packet, and n0, which hears no ACK, sends each until it gives up.
    let spec = chain(1).radio(|radio| radio.mac.rts_threshold_bytes = 3000).seconds(4);
    let spec = spec.cbr(0, 1, PAYLOAD, EVERY).until(3.0);
    let (outcome, notes) =
        record(&with_outages(spec, &[outage(1, 0, WHILE_IT_SENDS, OutageEffect::Frames)]), 1);
    assert_eq!(outcome.flows[0].segments_received, 30, "each once, however often it came");
    assert_eq!(outcome.nodes[0].drops.retry_limit, 30, "and the sender believes that all are lost");
    assert!(notes.count(RecordedKind::AckSent) > 30);
    assert_eq!(notes.count(RecordedKind::ControlReceived), 0);
}

#[test]
fn with_rts_nothing_passes_a_unidirectional_link() {
    // ns-2's radio asks before every frame, and the answer is not heard.
    let spec = chain(1).cbr(0, 1, PAYLOAD, EVERY).until(3.0).seconds(4);
    let (outcome, notes) =
        record(&with_outages(spec, &[outage(1, 0, WHILE_IT_SENDS, OutageEffect::Frames)]), 1);
    assert_eq!(outcome.flows[0].connected, Connected::Never);
    assert!(notes.count(RecordedKind::CtsSent) > 0);
    assert_eq!(notes.count(RecordedKind::DataSent { retry: false }), 0);
}

#[test]
fn a_filter_of_packets_leaves_the_mac_as_it_is() {
    let spec = chain(1).cbr(0, 1, PAYLOAD, EVERY).until(3.0).seconds(4);
    let (outcome, notes) =
        record(&with_outages(spec, &[outage(0, 1, WHILE_IT_SENDS, OutageEffect::Packets)]), 1);
    assert_eq!(outcome.flows[0].connected, Connected::Never);
    assert_eq!(notes.count(RecordedKind::AckSent), 30, "the MAC of n1 took and answered every packet");
    assert_eq!(outcome.nodes[0].drops, DropCounts::default());
    assert_eq!(outcome.nodes[1].drops, DropCounts { outage: 30, ..DropCounts::default() });
}

#[test]
fn tcp_without_its_acknowledgments_repeats_what_has_arrived() {
    // Three hops; from 3 s to 6 s nothing comes back over the last one, and everything goes out over it.
    let spec = chain(3).bulk(0, 3, ns2_tcp(3)).seconds(10);
    let clear = simulate(&spec, 1);
    let cut = simulate(&with_outages(spec, &[outage(3, 2, (3.0, 6.0), OutageEffect::Packets)]), 1);
    assert_eq!(clear.flows[0].duplicates, 0);
    assert!(cut.flows[0].duplicates >= 3, "{}", cut.flows[0].duplicates);
    assert!(cut.nodes[2].drops.outage >= 3);
    let at_second = |s: usize| cut.flows[0].series[s - 1].bytes_received;
    assert!(at_second(6) - at_second(4) <= 3 * 1460, "a window at most arrives during the outage");
    assert!(at_second(10) > at_second(6) + 100_000, "and it goes on after it");
}

#[test]
fn timeouts_are_spurious_if_only_acks_are_lost() {
    let spec = chain(3).bulk(0, 3, ns2_tcp(3)).seconds(10);
    let deaf = |from, to| {
        simulate(&with_outages(spec.clone(), &[outage(from, to, (3.0, 6.0), OutageEffect::Packets)]), 1)
    };
    let [back, forth] = [deaf(3, 2), deaf(2, 3)].map(|outcome| {
        let flow = &outcome.flows[0];
        (flow.timeouts, flow.spurious_timeouts)
    });
    assert!(back.0 >= 2 && back.1 == back.0, "what was waited for had arrived: {back:?}");
    assert!(forth.0 >= 2 && forth.1 == 0, "what was waited for was lost: {forth:?}");
}

#[test]
fn an_outage_lasts_from_its_start_to_its_end() {
    for blocks in [OutageEffect::Frames, OutageEffect::Packets] {
        let spec = chain(1).cbr(0, 1, PAYLOAD, EVERY).seconds(6);
        let outcome = simulate(&with_outages(spec, &[outage(0, 1, (2.0, 4.0), blocks)]), 1);
        assert_eq!(per_second(&outcome), [10, 10, 0, 0, 10, 10], "{blocks:?}");
    }
}

#[test]
fn outages_that_overlap_are_their_union() {
    let one = [outage(0, 1, (1.0, 5.0), OutageEffect::Frames)];
    let three = [(2.0, 5.0), (1.0, 3.0), (2.5, 2.6)].map(|times| outage(0, 1, times, OutageEffect::Frames));
    let spec = chain(1).cbr(0, 1, PAYLOAD, EVERY).seconds(6);
    let [one, three] =
        [&one[..], &three[..]].map(|outages| simulate(&with_outages(spec.clone(), outages), 1));
    assert_eq!(one, three);
    assert_eq!(per_second(&one), [10, 0, 0, 0, 0, 10]);
}

#[test]
fn an_outage_elsewhere_or_at_another_time_changes_nothing() {
    let spec = chain(3).bulk(0, 2, ns2_tcp(8)).seconds(5);
    let clear = simulate(&spec, 1);
    let never =
        [outage(0, 1, (6.0, 7.0), OutageEffect::Frames), outage(0, 3, (0.0, 9.0), OutageEffect::Packets)];
    assert_eq!(simulate(&with_outages(spec, &never), 1), clear);
}

#[test]
fn errors_are_drawn_as_without_the_outage() {
    // Every packet has one attempt, so what is lost after the outage is the same packets as without it.
    let spec = chain(1).cbr(0, 1, PAYLOAD, EVERY).seconds(20).radio(|radio| {
        radio.mac.ack_policy = AckPolicy::NoAck;
        radio.mac.rts_threshold_bytes = 3000;
        radio.errors = ErrorModel::PacketLoss(Probability::new(0.3).expect("a probability"));
    });
    let (_, clear) = record(&spec, 1);
    let (_, cut) = record(&with_outages(spec, &[outage(0, 1, (5.0, 10.0), OutageEffect::Frames)]), 1);
    let [clear, cut] = [clear, cut].map(|notes| notes.times(1, RecordedKind::DataReceived));
    let outside = |&t: &Instant| t < at(5.0) || t >= at(10.0);
    assert!(clear.len() < 160 && clear.iter().any(|t| !outside(t)), "{}", clear.len());
    assert_eq!(cut, clear.into_iter().filter(outside).collect::<Vec<_>>());
}

#[test]
fn a_permanent_outage_is_topology_and_static_routes_lead_around_it() {
    // A triangle in which every node is in range of every other.
    let triangle = support::standing(&[(0.0, 0.0), (100.0, 80.0), (200.0, 0.0)]);
    let spec = triangle.cbr(0, 2, PAYLOAD, EVERY).until(3.0).seconds(4);
    let hops = |spec: &Spec| simulate(spec, 1).flows[0].data.hops_mean();
    assert_eq!(hops(&spec), Some(1.0));
    let forever = (0.0, 1e6);
    for (from, to, blocks, expected) in [
        (0, 2, OutageEffect::Frames, 2.0),
        (2, 0, OutageEffect::Frames, 2.0), // no ACK would come back
        (0, 2, OutageEffect::Packets, 2.0),
        (2, 0, OutageEffect::Packets, 1.0),
    ] {
        let spec = with_outages(spec.clone(), &[outage(from, to, forever, blocks)]);
        assert_eq!((hops(&spec), received(&spec)), (Some(expected), 30), "{from} to {to}, {blocks:?}");
    }
    let passing = with_outages(spec, &[outage(0, 2, (0.0, 3.9), OutageEffect::Frames)]);
    assert_eq!(received(&passing), 0, "routes are made once, and this outage ends");
}

#[test]
fn over_a_wire_both_kinds_lose_packets_where_they_arrive() {
    for blocks in [OutageEffect::Frames, OutageEffect::Packets] {
        let spec = wired(2).link(link(0, 1, 10_000_000, Duration::from_millis(10), 50));
        let spec = spec.cbr(0, 1, PAYLOAD, EVERY).seconds(5);
        let spec = with_outages(spec, &[outage(0, 1, (2.0, 3.0), blocks)]);
        let outcome = simulate(&spec, 1);
        assert_eq!(per_second(&outcome), [10, 10, 0, 10, 10], "{blocks:?}");
        assert_eq!(outcome.nodes[1].drops, DropCounts { outage: 10, ..DropCounts::default() });
        assert_eq!(outcome.flows[0].data.lost, 10);
        assert_eq!(
            simulate(&with_outages(spec, &[outage(1, 0, (0.0, 5.0), blocks)]), 1),
            outcome,
            "one way only"
        );
    }
}

#[test]
fn permanently_cut_wires_are_no_route() {
    // A ring of four: the short route is cut.
    let ms = Duration::from_millis(1);
    let ring = [(0, 1), (0, 2), (2, 3), (3, 1)].map(|(a, b)| link(a, b, 10_000_000, ms, 50));
    let spec =
        ring.into_iter().fold(wired(4), SpecBuilder::link).cbr(0, 1, PAYLOAD, EVERY).until(1.0).seconds(2);
    let spec = with_outages(spec, &[outage(0, 1, (0.0, 1e6), OutageEffect::Frames)]);
    let outcome = simulate(&spec, 1);
    assert_eq!(outcome.flows[0].data.hops_mean(), Some(3.0));
}

#[test]
fn tracing_does_not_change_the_run() {
    let spec = chain(3).bulk(0, 3, ns2_tcp(3)).seconds(8);
    let spec = with_outages(
        spec,
        &[outage(3, 2, (2.0, 4.0), OutageEffect::Packets), outage(1, 2, (5.0, 6.0), OutageEffect::Frames)],
    );
    assert_eq!(record(&spec, 1).0.fingerprint, simulate(&spec, 1).fingerprint);
}

#[test]
fn aodv_by_hello_sends_over_a_link_that_works_one_way_and_others_go_around() {
    // n1 does not hear n0 for a while; HELLOs of n1 are heard. Over n2 both ways work.
    let spec = standing(&[(0.0, 0.0), (200.0, 0.0), (100.0, 100.0)]).seconds(60);
    let spec = spec.cbr(0, 1, PAYLOAD, EVERY).from(20.0).until(50.0);
    let deaf = with_outages(spec, &[outage(0, 1, (0.0, 55.0), OutageEffect::Frames)]);
    let hello = Hello { senders: HelloSenders::Always, ..Hello::RFC3561 };
    let by_hello = aodv::Config { link_sensing: LinkSensing::Hello(hello), ..aodv::Config::rfc3561() };
    let both = aodv::Config { link_sensing: LinkSensing::Both(hello), ..aodv::Config::rfc3561() };
    // RFC 3561 §6.9: one HELLO makes a neighbour, in whichever direction it came.
    assert_eq!(received(&deaf.clone().aodv(by_hello)), 0);
    // RFC 3561 §6.8, RFC 3626 §7.1: an agent that asks the link layer, or the neighbour, learns of the loss.
    assert_eq!(received(&deaf.clone().aodv(aodv::Config::rfc3561())), 300);
    assert_eq!(received(&deaf.clone().olsr(olsr::Config::rfc3626())), 300);
    let learns_each_second = received(&deaf.aodv(both));
    assert!((1..300).contains(&learns_each_second), "{learns_each_second}");
}
