//! Feedback schemes of TCP in the simulated network: an end that is notified freezes, and learns of the
//! return in one way or another. ATCP tells congestion from bit errors by the marks of queues.

use crate::support::{SpecBuilder, at, chain, link, moving, ns2_tcp, walk, wired};
use hopline_core::{Duration, NodeId};
use hopline_queue::RedConfig;
use hopline_queue::SignalAction;
use hopline_radio::mobility::{Position, Trajectory};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_routing::{aodv, dsr};
use hopline_sim::outcome::FlowOutcome;
use hopline_sim::spec::{Discipline, OutageEffect, OutageSpec};
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp::{
    AtcpConfig, BusConfig, Config, EcnMode, ElfnConfig, FixedRtoConfig, InitialSsthresh, RouteFeedback,
    TcpFConfig,
};

const ELFN: RouteFeedback = RouteFeedback::Elfn(ElfnConfig::PAPER);
const TCP_F: RouteFeedback = RouteFeedback::TcpF(TcpFConfig::PAPER);
const ATCP: RouteFeedback = RouteFeedback::Atcp(AtcpConfig::PAPER);
const NOTIFIED: [RouteFeedback; 4] = [TCP_F, ELFN, ATCP, RouteFeedback::Bus(BusConfig::PAPER)];

/// SACK of ns-2 with a scheme, eight segments at most.
fn tcp(feedback: RouteFeedback) -> Config {
    ns2_tcp(8).with_sack().with_feedback(feedback)
}

/// A transfer over three hops, the middle one cut from 5 s until `end_s`.
fn cut_chain(feedback: RouteFeedback, end_s: f64) -> Spec {
    chain(3).bulk(0, 3, tcp(feedback)).seconds(60).elfn().change(|spec| {
        for (from, to) in [(1, 2), (2, 1)] {
            let [from, to] = [from, to].map(NodeId);
            spec.outages.push(OutageSpec {
                from,
                to,
                start: at(5.0),
                end: at(end_s),
                blocks: OutageEffect::Frames,
            });
        }
    })
}

fn over_aodv(spec: Spec) -> Spec {
    spec.aodv(aodv::Config::rfc3561())
}

fn run(spec: &Spec) -> FlowOutcome {
    simulate(spec, 1).flows.remove(0)
}

/// Segments that arrived for the first time after `from_s` and by `to_s`; a sample is taken each second.
fn delivered_between(flow: &FlowOutcome, from_s: f64, to_s: f64) -> u64 {
    let bytes_at = |s: f64| {
        flow.series.iter().rev().find(|sample| sample.at <= at(s)).map_or(0, |sample| sample.bytes_received)
    };
    (bytes_at(to_s) - bytes_at(from_s)) / 1460
}

#[test]
fn over_aodv_every_scheme_freezes_and_resumes() {
    assert_every_scheme_freezes_and_resumes(over_aodv);
}

#[test]
fn over_dsr_every_scheme_freezes_and_resumes() {
    assert_every_scheme_freezes_and_resumes(|spec| spec.dsr(dsr::Config::rfc4728()));
}

fn assert_every_scheme_freezes_and_resumes(over: fn(Spec) -> Spec) {
    for feedback in NOTIFIED {
        let flow = run(&over(cut_chain(feedback, 12.0)));
        assert!(flow.freezes >= 1 && flow.route_loss_notifications >= flow.freezes, "{feedback:?}");
        assert_eq!(delivered_between(&flow, 6.0, 12.0), 0, "{feedback:?}");
        assert!(flow.frozen_time > Duration::from_secs(2), "{feedback:?}: {:?}", flow.frozen_time);
        assert!(delivered_between(&flow, 30.0, 60.0) > 300, "{feedback:?}");
    }
}

#[test]
fn with_static_routes_probes_or_timers_detect_the_recovery() {
    for feedback in NOTIFIED {
        let flow = run(&cut_chain(feedback, 12.0));
        assert!(flow.freezes >= 1 && flow.route_recovery_notifications == 0, "{feedback:?}");
        assert_eq!(flow.route_probes > 0, feedback != TCP_F, "{feedback:?}");
        assert!(delivered_between(&flow, 30.0, 60.0) > 300, "{feedback:?}");
    }
}

#[test]
fn after_a_long_outage_probes_bring_data_while_plain_tcp_still_waits() {
    let [elfn, plain] = [ELFN, RouteFeedback::None].map(|feedback| run(&cut_chain(feedback, 33.0)));
    assert_eq!((plain.freezes, plain.route_probes), (0, 0));
    assert!(plain.route_loss_notifications > 0, "it was told, and did not care");
    // One every two seconds.
    assert!((10..=16).contains(&elfn.route_probes), "{}", elfn.route_probes);
    assert!(elfn.timeouts < plain.timeouts, "{} {}", elfn.timeouts, plain.timeouts);
    let [by_elfn, by_plain] = [&elfn, &plain].map(|flow| delivered_between(flow, 33.0, 45.0));
    assert!(by_elfn > 200 && by_elfn > by_plain, "{by_elfn} {by_plain}");
}

#[test]
fn a_frozen_sender_waits_for_a_node_that_returns() {
    let walker = walk(&[
        (0.0, 400.0, 0.0),
        (5.0, 400.0, 0.0),
        (8.0, 1000.0, 0.0),
        (25.0, 1000.0, 0.0),
        (28.0, 400.0, 0.0),
    ]);
    let fixed = |x| Trajectory::fixed(Position::new(x, 0.0));
    let spec = |feedback| {
        over_aodv(moving([fixed(0.0), fixed(200.0), walker.clone()]))
            .elfn()
            .bulk(0, 2, tcp(feedback))
            .seconds(90)
    };
    for feedback in NOTIFIED {
        let flow = run(&spec(feedback));
        assert!(
            flow.freezes >= 1 && flow.frozen_time > Duration::from_secs(5),
            "{feedback:?}: {:?}",
            flow.frozen_time
        );
        // TCP-F gives up waiting after 10 s; the search of what it sends then fails, and it waits once more.
        assert!(delivered_between(&flow, 50.0, 90.0) > 600, "{feedback:?}");
    }
}

#[test]
fn fixed_rto_needs_no_notification_and_retransmits_more_often() {
    let silent =
        |feedback| cut_chain(feedback, 33.0).change(|spec| spec.failure_notification = Default::default());
    let [fixed, plain] =
        [RouteFeedback::FixedRto(FixedRtoConfig::PAPER), RouteFeedback::None].map(|f| run(&silent(f)));
    assert_eq!((fixed.freezes, fixed.frozen_time), (0, Duration::ZERO));
    assert!(fixed.timeouts > 2 * plain.timeouts, "{} {}", fixed.timeouts, plain.timeouts);
    assert!(delivered_between(&fixed, 33.0, 45.0) > 200);
}

#[test]
fn a_warm_up_that_ends_during_a_freeze_counts_only_the_rest() {
    let whole = run(&cut_chain(ELFN, 25.0));
    let half = run(&cut_chain(ELFN, 25.0).warmup(15.0));
    assert_eq!(half.freezes, 0, "it began before");
    let before = whole.frozen_time - half.frozen_time;
    assert!(before > Duration::from_secs(9) && before < Duration::from_secs(10), "{before:?}");
    assert!(half.frozen_time > Duration::from_secs(9), "{:?}", half.frozen_time);
}

#[test]
fn runs_are_deterministic() {
    for feedback in NOTIFIED {
        let spec = over_aodv(cut_chain(feedback, 12.0));
        let [one, two, other] = [1, 1, 2].map(|run| simulate(&spec, run).fingerprint);
        assert!(one == two && one != other, "{feedback:?}");
    }
}

// ---- ATCP and the marks of queues ----

/// A fast link that damages packets, and one of 2 Mb/s behind a queue of 100 packets that marks what it can; 60 s.
fn marking_route(over: Config, bit_error_rate: f64) -> Spec {
    let mut lossy = link(0, 1, 100_000_000, Duration::from_millis(1), 1000);
    lossy.errors = [ErrorModel::BitErrors(Probability::new(bit_error_rate).expect("a probability")); 2];
    let mut slow = link(1, 2, 2_000_000, Duration::from_millis(20), 100);
    let red = RedConfig { max_probability: 0.1, action: SignalAction::Mark, ..RedConfig::PAPER };
    slow.queue.discipline = Discipline::Red(red);
    // Slow start ends below what the queue holds: its overshoot takes the average to where marks end.
    let over = over.with_initial_ssthresh(InitialSsthresh::Segments(10));
    wired(3).link(lossy).link(slow).bulk(0, 2, over).seconds(60)
}

fn sack() -> Config {
    Config::modern().with_sack()
}

fn atcp() -> Config {
    sack().with_feedback(ATCP)
}

/// The congestion window in segments, each second from the tenth on.
fn windows(outcome: &Outcome) -> Vec<u64> {
    let samples = outcome.flows[0].series.iter().filter(|sample| sample.at >= at(10.0));
    samples.map(|sample| sample.cwnd_bytes / 1448).collect()
}

#[test]
fn where_queues_mark_atcp_reduces_as_tcp_does() {
    let [atcp, sack] =
        [atcp(), sack()].map(|over| simulate(&marking_route(over.with_ecn(EcnMode::Request), 0.0), 1));
    for outcome in [&atcp, &sack] {
        assert!(outcome.nodes[1].marks > 10, "{} marks", outcome.nodes[1].marks);
        assert_eq!((outcome.nodes[1].drops.total(), outcome.flows[0].retransmissions), (0, 0));
    }
    // Nothing is lost, and nothing is to be shielded from: the two are one.
    assert_eq!(atcp.flows[0].series, sack.flows[0].series);
    let falls = windows(&atcp).windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(falls > 5, "{:?}", windows(&atcp));
}

#[test]
fn without_ecn_atcp_attributes_queue_drops_to_bit_errors() {
    let [asked, never] =
        [atcp().with_ecn(EcnMode::Request), atcp()].map(|over| simulate(&marking_route(over, 0.0), 1));
    assert_eq!(never.nodes[1].marks, 0);
    assert!(never.flows[0].retransmissions > 100, "{}", never.flows[0].retransmissions);
    let [told, deaf] = [&asked, &never].map(|outcome| windows(outcome).into_iter().max().expect("samples"));
    assert!(told < 30 && deaf > 2 * told, "{told} with marks, {deaf} without");
}

#[test]
fn atcp_hides_bit_errors_without_marks() {
    // One packet in fifty is damaged. Eight segments at most are in flight, which the route holds: no queue builds up.
    let route = |over: Config| {
        simulate(&marking_route(over.with_ecn(EcnMode::Request).with_window_clamp(Some(8)), 1.7e-6), 1)
    };
    let [atcp, sack] = [atcp(), sack()].map(route);
    for outcome in [&atcp, &sack] {
        assert_eq!((outcome.nodes[1].marks, outcome.nodes[1].drops.early), (0, 0));
        assert!(outcome.flows[0].retransmissions > 50, "{}", outcome.flows[0].retransmissions);
    }
    assert!(windows(&atcp).iter().all(|&segments| segments >= 8), "{:?}", windows(&atcp));
    assert!(windows(&sack).iter().any(|&segments| segments < 6), "{:?}", windows(&sack));
    assert!(atcp.flows[0].bytes_received > sack.flows[0].bytes_received);
}

#[test]
fn marks_bound_the_window_of_atcp_where_packets_are_damaged_as_well() {
    let [atcp, sack] =
        [atcp(), sack()].map(|over| simulate(&marking_route(over.with_ecn(EcnMode::Request), 1.7e-6), 1));
    assert!(atcp.nodes[1].marks > 10 && atcp.nodes[1].drops.queue_full == 0);
    let [with, without] = [&atcp, &sack].map(|outcome| windows(outcome).into_iter().max().expect("samples"));
    assert!(with < 40, "{with} segments, {without} without ATCP");
    assert!(
        atcp.flows[0].bytes_received > sack.flows[0].bytes_received,
        "what was damaged slowed it down less"
    );
}
