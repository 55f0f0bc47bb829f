//! Explicit link failure notification: the ends notified of a lost route, the delay, and the notification of
//! its return.

use crate::support::recorder::{RecordedKind, Recorder, record};
use crate::support::{SpecBuilder, at, chain, ns2_tcp};
use hopline_core::{Duration, Instant, NodeId};
use hopline_routing::aodv;
use hopline_routing::aodv::config::{Hello, HelloLiveness, LinkSensing};
use hopline_sim::spec::{ExchangeSpec, OutageEffect, OutageSpec, RandomVariable};
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::Signal;
use hopline_transport::tcp::{ElfnConfig, RouteFeedback};

const LOST: RecordedKind = RecordedKind::Signalled(Signal::RouteLost);
const FOUND: RecordedKind = RecordedKind::Signalled(Signal::RouteFound);
/// IP header and report.
const ICMP_BYTES: u32 = 56;

/// `spec` with the link between `a` and `b` cut in both directions.
fn cut(spec: Spec, (a, b): (u32, u32), (start_s, end_s): (f64, f64)) -> Spec {
    spec.change(|spec| {
        for (from, to) in [(a, b), (b, a)] {
            let [from, to] = [from, to].map(NodeId);
            spec.outages.push(OutageSpec {
                from,
                to,
                start: at(start_s),
                end: at(end_s),
                blocks: OutageEffect::Frames,
            });
        }
    })
}

/// A transfer over three hops, the middle one cut from 5 s to 10 s.
fn cut_chain() -> Spec {
    cut(chain(3).bulk(0, 3, ns2_tcp(8)).seconds(30).elfn(), (1, 2), (5.0, 10.0))
}

fn told(outcome: &Outcome) -> (u64, u64) {
    (outcome.flows[0].route_loss_notifications, outcome.flows[0].route_recovery_notifications)
}

/// Reports that `node` put on the air for the first time.
fn reports(notes: &Recorder, node: u32) -> Vec<Instant> {
    let first = RecordedKind::DataSent { retry: false };
    let ours =
        notes.0.iter().filter(|n| n.node == NodeId(node) && n.kind == first && n.len_bytes == ICMP_BYTES);
    ours.map(|note| note.at).collect()
}

#[test]
fn over_aodv_the_source_is_notified_of_the_break_and_the_recovery() {
    let (outcome, notes) = record(&cut_chain().aodv(aodv::Config::rfc3561()), 1);
    let (lost, found) = (notes.times(0, LOST), notes.times(0, FOUND));
    // Seven attempts at n1, one route error.
    assert!(lost[0] > at(5.0) && lost[0] < at(5.3), "{:?}", lost[0]);
    // The sender's next attempt after the end of the outage finds the route: its timeout backs off to 8 s at most.
    assert!(found[0] > at(10.0) && found[0] < at(20.0), "{:?}", found[0]);
    assert!(lost.len() == found.len() && lost.iter().zip(&found).all(|(l, f)| l < f), "{lost:?} {found:?}");
    let sink = notes.times(3, LOST).len() + notes.times(3, FOUND).len();
    let (losses, returns) = told(&outcome);
    assert_eq!(losses + returns, (lost.len() + found.len() + sink) as u64);
    assert!(outcome.flows[0].series[29].bytes_received > outcome.flows[0].series[9].bytes_received);
}

#[test]
fn with_hello_the_break_is_known_after_two_lost_ones_and_not_before() {
    let (_, notes) = record(&cut_chain().aodv(aodv::Config::rfc3561_hello()), 1);
    let lost = notes.times(0, LOST);
    // Packets of n2 were heard until just before the cut.
    assert!(lost[0] > at(6.9) && lost[0] < at(7.3), "{:?}", lost[0]);
    assert!(notes.times(0, FOUND)[0] > at(10.0));
}

#[test]
fn packets_of_a_flow_are_liveness_unless_only_messages_count() {
    // No HELLO may be late, and each waits for its jitter and for packets.
    let impatient = Hello { allowed_loss: 1, ..Hello::RFC3561 };
    let losses = |sign_of_life: HelloLiveness| {
        let link_sensing = LinkSensing::Hello(Hello { liveness: sign_of_life, ..impatient });
        let config = aodv::Config { link_sensing, ..aodv::Config::rfc3561() };
        told(&record(&chain(1).bulk(0, 1, ns2_tcp(8)).seconds(20).elfn().aodv(config), 1).0).0
    };
    assert_eq!(losses(HelloLiveness::AnyPacket), 0);
    assert!(losses(HelloLiveness::AodvMessage) > 5);
}

#[test]
fn with_static_routes_the_node_before_the_break_reports_by_icmp() {
    let (outcome, notes) = record(&cut_chain(), 1);
    let lost = notes.times(0, LOST);
    assert!(lost[0] > at(5.0) && lost[0] < at(5.3), "{:?}", lost[0]);
    assert!(reports(&notes, 1)[0] < lost[0], "over the air");
    assert!(lost.iter().all(|&t| t < at(10.3)));
    assert_eq!((notes.count(FOUND), told(&outcome).1), (0, 0), "nobody knows of the return");
    assert_eq!(told(&outcome).0, notes.count(LOST) as u64);
}

#[test]
fn a_source_next_to_the_break_detects_it_itself() {
    let spec = cut(chain(1).bulk(0, 1, ns2_tcp(8)).seconds(8).elfn(), (0, 1), (5.0, 7.0));
    let (_, notes) = record(&spec, 1);
    let lost = notes.times(0, LOST);
    assert!(lost[0] > at(5.0) && lost[0] < at(5.2), "{:?}", lost[0]);
    assert!(reports(&notes, 0).is_empty() && reports(&notes, 1).is_empty());
}

#[test]
fn icmp_errors_are_rate_limited_and_cause_no_errors() {
    // Without RTS a packet is given up after some 20 ms.
    let spec = chain(2).radio(|radio| radio.mac.rts_threshold_bytes = 3000);
    let spec = spec.cbr(0, 2, 100, Duration::from_millis(20)).seconds(6).elfn();
    let (outcome, notes) = record(&cut(spec.clone(), (1, 2), (1.0, 5.0)), 1);
    // Four seconds of the cut, and at its end a queue of what was made before.
    let (sent, given_up) = (reports(&notes, 1).len() as u64, outcome.nodes[1].drops.retry_limit);
    assert!(given_up > 60 && (30..=41).contains(&sent), "{sent} reports about {given_up} packets");
    // n0 goes deaf: what n1 reports gets lost, and that is the end of it.
    let deaf = cut(spec, (1, 2), (1.0, 5.0)).change(|spec| {
        let (start, end) = (at(1.0), at(5.0));
        spec.outages.push(OutageSpec {
            from: NodeId(1),
            to: NodeId(0),
            start,
            end,
            blocks: OutageEffect::Packets,
        });
    });
    let (outcome, notes) = record(&deaf, 1);
    assert!(outcome.nodes[0].drops.outage > 0);
    assert!(reports(&notes, 0).is_empty() && reports(&notes, 2).is_empty());
}

#[test]
fn a_failed_discovery_notifies_the_senders() {
    // There never was a route: nothing broke, and no node answers (RFC 3561 §6.3).
    let spec = cut(chain(2).bulk(0, 2, ns2_tcp(8)).seconds(60).elfn(), (1, 2), (0.0, 30.0));
    let (outcome, notes) = record(&spec.aodv(aodv::Config::rfc3561()), 1);
    let (lost, found) = (notes.times(0, LOST), notes.times(0, FOUND));
    assert!(lost.len() < 4, "told whenever a search fails, not of each packet: {lost:?}");
    // Expanding rings, and then the whole network three times, each waited for twice as long: some 20 s.
    assert!(lost[0] > at(10.0) && lost[0] < at(25.0), "{:?}", lost[0]);
    assert!(found[0] > at(30.0));
    assert!(outcome.flows[0].bytes_received > 0);
}

#[test]
fn an_expired_unused_route_is_not_reported_as_lost() {
    // One page, a long silence in which the route expires, another page.
    let spec = chain(2).transfer(0, 2, ns2_tcp(8), 5_000).transfer(0, 2, ns2_tcp(8), 5_000).from(20.0);
    let outcome = simulate(&spec.aodv(aodv::Config::rfc3561()).seconds(30).elfn(), 1);
    assert!(outcome.flows.iter().all(|flow| flow.completion.is_some()));
    assert!(outcome.flows.iter().all(|flow| flow.route_loss_notifications == 0));
}

#[test]
fn flows_are_notified_only_about_their_peer_while_active() {
    // Two hops: all sense each other, so that no link seems broken but the one that is.
    let spec = chain(2).aodv(aodv::Config::rfc3561()).bulk(0, 2, ns2_tcp(8)).bulk(0, 1, ns2_tcp(1));
    let spec = spec.transfer(0, 2, ns2_tcp(1), 5_000).until(4.0).transfer(0, 2, ns2_tcp(1), 5_000).from(25.0);
    let spec = cut(spec.seconds(30).elfn(), (1, 2), (5.0, 10.0));
    let outcome = simulate(&spec, 1);
    let losses: Vec<_> = outcome.flows.iter().map(|flow| flow.route_loss_notifications).collect();
    assert!(losses[0] > 0);
    assert_eq!(losses[1..], [0, 0, 0]);
}

#[test]
fn without_elfn_no_end_is_notified() {
    for aodv in [None, Some(aodv::Config::rfc3561())] {
        let silent = |spec: Spec| spec.change(|spec| spec.failure_notification = Default::default());
        let spec = aodv.map_or_else(cut_chain, |config| cut_chain().aodv(config));
        let (outcome, notes) = record(&silent(spec), 1);
        assert_eq!((notes.count(LOST), notes.count(FOUND), told(&outcome)), (0, 0, (0, 0)));
        assert!((0..4).all(|node| reports(&notes, node).is_empty()));
    }
}

#[test]
fn plain_tcp_ignores_notifications() {
    let told = cut_chain().aodv(aodv::Config::rfc3561());
    let untold = told.clone().change(|spec| spec.failure_notification = Default::default());
    let [told, untold] = [told, untold].map(|spec| simulate(&spec, 1));
    assert_eq!(told.fingerprint, untold.fingerprint);
    assert!(told.flows[0].route_loss_notifications > 0 && untold.flows[0].route_loss_notifications == 0);
}

#[test]
fn an_idle_end_is_notified_when_it_sends() {
    // A request each second; the link breaks and returns between two of them, and again.
    let exchange = ExchangeSpec {
        request_bytes: RandomVariable::Constant(100.0),
        response_bytes: RandomVariable::Constant(100.0),
        think_s: RandomVariable::Constant(8.0),
        transactions: None,
    };
    let elfn = ns2_tcp(8).with_feedback(RouteFeedback::Elfn(ElfnConfig::PAPER));
    // The constant flow keeps the route in use, so that its loss is noticed while the exchange thinks.
    let spec = chain(2).exchange(0, 2, elfn, exchange).cbr(0, 2, 100, Duration::from_millis(100));
    let spec = cut(spec.aodv(aodv::Config::rfc3561()).seconds(60).elfn(), (1, 2), (3.0, 30.0));
    let outcome = simulate(&spec, 1);
    let flow = &outcome.flows[0];
    assert!(flow.route_loss_notifications > 1, "told {} times", flow.route_loss_notifications);
    let frozen = flow.freezes;
    assert!(frozen > 0, "a request that left after the loss was taken for congestion");
}
