//! TPA in the simulated network.

use crate::support::{SpecBuilder, at, chain, ns2_tcp};
use hopline_core::{Instant, NodeId};
use hopline_routing::{aodv, olsr};
use hopline_sim::outcome::Connected;
use hopline_sim::spec::{ExchangeSpec, OutageEffect, OutageSpec, RandomVariable, Transport};
use hopline_sim::trace::TraceEvent;
use hopline_sim::{Outcome, Spec, Tracer, World, simulate};
use hopline_transport::pacing::{self, Pacing};
use hopline_transport::tpa::{Config, Notification};

/// Returns a configuration that never gives up, as in the lab.
fn tpa(cwnd_max: u8) -> Config {
    Config::tpa(cwnd_max).with_syn_retries(None).with_silence_limit(None)
}

fn outage(from: u32, to: u32, (start_s, end_s): (f64, f64), blocks: OutageEffect) -> OutageSpec {
    OutageSpec { from: NodeId(from), to: NodeId(to), start: at(start_s), end: at(end_s), blocks }
}

fn with_outages(spec: Spec, outages: &[OutageSpec]) -> Spec {
    spec.change(|spec| spec.outages.extend(outages))
}

/// Segments that arrived for the first time after `from_s` and by `to_s`; a sample is taken each second.
fn delivered_between(outcome: &Outcome, from_s: f64, to_s: f64) -> u64 {
    let bytes_at = |s: f64| {
        let seen = outcome.flows[0].series.iter().rev().find(|sample| sample.at <= at(s));
        seen.map_or(0, |sample| sample.bytes_received)
    };
    (bytes_at(to_s) - bytes_at(from_s)) / 1460
}

#[test]
fn a_transfer_over_four_hops_has_no_spurious_retransmission() {
    for config in [tpa(2), tpa(3), Config::tpa_star(3).with_cwnd_max(3)] {
        let spec = chain(4).transfer(0, 4, config, 500_000).seconds(60);
        let flow = &simulate(&spec, 1).flows[0];
        assert_eq!((flow.bytes_received, flow.connected), (500_000, Connected::Yes));
        assert!(flow.completion.is_some());
        assert_eq!(flow.segments_sent, flow.segments_received + flow.retransmissions);
        assert!(flow.duplicates <= flow.retransmissions);
    }
}

#[test]
fn requests_and_responses_work_over_tpa() {
    let exchange = ExchangeSpec {
        request_bytes: RandomVariable::Constant(100.0),
        response_bytes: RandomVariable::Constant(20_000.0),
        think_s: RandomVariable::Constant(0.1),
        transactions: std::num::NonZeroU64::new(10),
    };
    let spec = chain(2).exchange(0, 2, tpa(3), exchange).seconds(60);
    let flow = &simulate(&spec, 1).flows[0];
    assert_eq!((flow.requests, flow.responses.count()), (10, 10));
    assert_eq!(flow.bytes_received, 10 * 20_000);
}

/// TPA appendix B: the reverse path is broken for 11.4 s, the forward path is not.
#[test]
fn without_acks_tpa_delivers_new_segments_and_tcp_retransmits_one() {
    let inhibited = (39.0, 50.0);
    let run = |over: Transport| {
        let spec = chain(3).bulk(0, 3, over).seconds(60);
        simulate(&with_outages(spec, &[outage(2, 1, inhibited, OutageEffect::Packets)]), 1)
    };
    let (by_tpa, by_tcp) = (run(tpa(3).into()), run(ns2_tcp(3).into()));
    // What is in flight when the outage begins arrives too. Samples are taken on whole seconds.
    let tpa_delivers = delivered_between(&by_tpa, 40.0, 50.0);
    let tcp_delivers = delivered_between(&by_tcp, 40.0, 50.0);
    assert!((3..=9).contains(&tpa_delivers), "TPA delivers {tpa_delivers} new segments");
    assert_eq!(tcp_delivers, 0, "TCP repeats what is there already");
    assert!(delivered_between(&by_tpa, 52.0, 60.0) > 100, "and goes on afterwards");
}

#[test]
fn elfn_freezes_tpa_and_the_route_returns() {
    let elfn = |config: Config| config.with_failures(config.failures().with_notification(Notification::Elfn));
    let cut = (10.0, 20.0);
    let spec = chain(3).aodv(aodv::Config::rfc3561()).elfn().bulk(0, 3, elfn(tpa(3))).seconds(40);
    let both = [outage(1, 2, cut, OutageEffect::Frames), outage(2, 1, cut, OutageEffect::Frames)];
    let outcome = simulate(&with_outages(spec, &both), 1);
    assert!(outcome.flows[0].route_loss_notifications > 0);
    assert_eq!(delivered_between(&outcome, 11.0, 20.0), 0);
    assert!(delivered_between(&outcome, 25.0, 40.0) > 100);
}

#[test]
fn over_olsr_a_silent_sender_resumes_on_the_recovery_notification() {
    let mut config = tpa(3);
    config = config.with_failures(config.failures().with_notification(Notification::ElfnAndRecovery));
    let cut = (40.0, 70.0);
    let spec = chain(2).olsr(olsr::Config::rfc3626()).elfn().bulk(0, 2, config).seconds(110);
    let both = [outage(1, 2, cut, OutageEffect::Frames), outage(2, 1, cut, OutageEffect::Frames)];
    let outcome = simulate(&with_outages(spec, &both), 1);
    let flow = &outcome.flows[0];
    assert!(
        flow.route_loss_notifications > 0
            && flow.route_recovery_notifications == flow.route_loss_notifications
    );
    assert!(delivered_between(&outcome, 25.0, 40.0) > 100);
    assert_eq!(delivered_between(&outcome, 41.0, 70.0), 0);
    assert!(delivered_between(&outcome, 85.0, 110.0) > 100, "and goes on afterwards");
}

/// Times at which data left the source.
#[derive(Default)]
struct Departures(Vec<Instant>);

impl Tracer for Departures {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        match event {
            TraceEvent::Originated(view) if node == NodeId(0) && view.packet.len_bytes > 1000 => {
                self.0.push(now)
            }
            _ => {}
        }
    }
}

/// The shortest time between two segments of the source, once round trips are known.
fn shortest_gap_ms(config: Config) -> f64 {
    let spec = chain(4).bulk(0, 4, config).seconds(60);
    let mut world = World::new(&spec, 1, Departures::default());
    world.run_until(Instant::ZERO + spec.duration);
    let departures = world.finish().1.0;
    let gaps = departures.windows(2).filter(|pair| pair[0] > at(10.0)).map(|pair| pair[1] - pair[0]);
    gaps.min().expect("many segments left").as_secs_f64() * 1e3
}

#[test]
fn paced_tpa_spaces_its_segments() {
    let paced = tpa(3).with_pacing(Pacing::Adaptive(pacing::Config::AUTHORS));
    let goodput =
        |config: Config| simulate(&chain(4).bulk(0, 4, config).seconds(60), 1).flows[0].bytes_received;
    let (with, without) = (goodput(paced), goodput(tpa(3)));
    assert!(with > without / 3 && with != without, "{with} {without}");
    // A segment is 6 ms on the air: four hops of that are the least spacing there can be.
    let (paced, burst) = (shortest_gap_ms(paced), shortest_gap_ms(tpa(3)));
    assert!(burst < 1.0, "an ACK releases several at once: {burst} ms");
    assert!(paced > 24.0, "{paced} ms");
}

#[test]
fn runs_are_deterministic() {
    let spec = chain(4).bulk(0, 4, tpa(2)).seconds(20);
    assert_eq!(simulate(&spec, 3).fingerprint, simulate(&spec, 3).fingerprint);
    assert_ne!(simulate(&spec, 3).fingerprint, simulate(&spec, 4).fingerprint);
}
