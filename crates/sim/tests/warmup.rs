//! Warm-up: what happens before it changes nothing afterwards, and does not count.

use crate::support::{self, SpecBuilder, chain, grid, ns2_tcp};
use core::num::NonZeroU64;
use hopline_core::{Duration, Instant};
use hopline_radio::mac::Airtime;
use hopline_routing::aodv;
use hopline_sim::outcome::{Connected, DropCounts, FlowOutcome, FrameCounts, PacketCounts};
use hopline_sim::spec::{ExchangeSpec, RandomVariable};
use hopline_sim::{NoTrace, Outcome, Spec, World, simulate};

/// A moment at which nothing else happens.
const WARMUP_S: f64 = 7.123_456_789;
const SECONDS: u64 = 20;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn pages(transactions: u64) -> ExchangeSpec {
    ExchangeSpec {
        request_bytes: RandomVariable::Uniform { min: 200.0, max: 2000.0 },
        response_bytes: RandomVariable::Uniform { min: 500.0, max: 20_000.0 },
        think_s: RandomVariable::Exponential { mean: 0.3 },
        transactions: NonZeroU64::new(transactions),
    }
}

/// Bulk, CBR, bursts and requests that get in each other's way; queues overflow and routes break.
fn congested_network() -> Spec {
    grid(3)
        .aodv(aodv::Config::ns2_235())
        .bulk(0, 8, ns2_tcp(32))
        .cbr(6, 2, 500, ms(9))
        .on_off(1, 7, 200, ms(10), 0.5, 0.5)
        .exchange(3, 5, ns2_tcp(20), pages(0))
        .seconds(SECONDS)
}

fn until(spec: &Spec, secs: f64) -> Outcome {
    let mut world = World::new(spec, 1, NoTrace);
    world.run_until(support::at(secs));
    world.finish().0
}

fn flow_counters(flow: &FlowOutcome) -> [u64; 7] {
    [
        flow.bytes_received,
        flow.segments_sent,
        flow.retransmissions,
        flow.timeouts,
        flow.segments_received,
        flow.requests,
        flow.responses.count(),
    ]
}

fn of_packets(p: &PacketCounts) -> [u64; 8] {
    let delays = &p.delays;
    [
        p.sent,
        p.sent_bytes,
        p.received,
        p.received_bytes,
        p.lost,
        p.lost_bytes,
        p.forwarded,
        delays.sum().as_nanos(),
    ]
}

fn of_frames(f: &FrameCounts) -> [u64; 4] {
    [f.data, f.rts, f.cts, f.ack]
}

fn of_drops(d: &DropCounts) -> [u64; 7] {
    [d.queue_full, d.early, d.retry_limit, d.no_route, d.ttl, d.link_error, d.outage]
}

fn of_airtime(a: &Airtime) -> [u64; 5] {
    [a.transmitting, a.receiving, a.sensing, a.nav, a.idle].map(Duration::as_nanos)
}

fn difference<const N: usize>(whole: [u64; N], before: [u64; N]) -> [u64; N] {
    core::array::from_fn(|i| whole[i] - before[i])
}

#[test]
fn counters_exclude_the_warm_up() {
    let whole = simulate(&congested_network(), 1);
    let before = until(&congested_network(), WARMUP_S);
    let after = simulate(&congested_network().warmup(WARMUP_S), 1);
    assert_eq!(after.fingerprint, whole.fingerprint, "the trajectory is the same");
    assert_eq!((after.sim_time, after.warmup), (whole.sim_time, Duration::from_secs_f64(WARMUP_S)));
    for ((after, whole), before) in after.flows.iter().zip(&whole.flows).zip(&before.flows) {
        assert_eq!(flow_counters(after), difference(flow_counters(whole), flow_counters(before)));
        for of in [|f: &FlowOutcome| f.data.clone(), |f: &FlowOutcome| f.reverse.clone()] {
            assert_eq!(of_packets(&of(after)), difference(of_packets(&of(whole)), of_packets(&of(before))));
        }
        assert_eq!(after.responses.sum(), whole.responses.sum() - before.responses.sum());
        assert_eq!(after.active_time, whole.active_time - before.active_time);
        assert_eq!(after.series, whole.series, "series show the warm-up");
        assert_eq!(after.data.first_sent.map(|at| at > support::at(WARMUP_S)), Some(true));
    }
    for ((after, whole), before) in after.nodes.iter().zip(&whole.nodes).zip(&before.nodes) {
        assert_eq!(of_frames(&after.frames), difference(of_frames(&whole.frames), of_frames(&before.frames)));
        assert_eq!(of_drops(&after.drops), difference(of_drops(&whole.drops), of_drops(&before.drops)));
        assert_eq!(after.routing_packets, whole.routing_packets - before.routing_packets);
        assert_eq!(after.routing_bytes, whole.routing_bytes - before.routing_bytes);
        assert_eq!(
            of_airtime(&after.airtime),
            difference(of_airtime(&whole.airtime), of_airtime(&before.airtime))
        );
    }
    let [bulk, cbr, _, pages] = &after.flows[..] else { panic!("four flows") };
    assert!(bulk.timeouts + bulk.retransmissions > 0 && cbr.data.lost > 0 && pages.responses.count() > 0);
    let carried: u64 =
        after.flows.iter().map(|flow| flow.data.initially_in_flight + flow.reverse.initially_in_flight).sum();
    assert!(carried > 0, "some packets were under way");
}

#[test]
fn the_airtimes_of_every_radio_add_up_to_the_counted_time() {
    let outcome = simulate(&congested_network().warmup(WARMUP_S), 1);
    for node in &outcome.nodes {
        let total: u64 = of_airtime(&node.airtime).iter().sum();
        assert_eq!(total, Duration::from_secs(SECONDS).as_nanos() - 7_123_456_789);
    }
}

#[test]
fn a_flow_that_starts_after_the_warm_up_counts_completely() {
    for start in [3.0, 4.5] {
        let spec = chain(3).cbr(0, 3, 500, ms(20)).until(2.0).bulk(0, 3, ns2_tcp(8)).from(start).seconds(10);
        let (whole, after) = (simulate(&spec, 1), simulate(&spec.warmup(3.0), 1));
        assert_eq!(after.flows[1], whole.flows[1]);
        assert!(after.flows[1].bytes_received > 100_000);
    }
}

#[test]
fn a_flow_that_ended_in_the_warm_up_counts_nothing() {
    let spec = chain(2)
        .transfer(0, 2, ns2_tcp(8), 50_000)
        .cbr(0, 2, 500, ms(20))
        .until(2.0)
        .exchange(2, 0, ns2_tcp(8), pages(2))
        .seconds(30)
        .warmup(25.0);
    for flow in simulate(&spec, 1).flows {
        assert_eq!(flow_counters(&flow), [0; 7]);
        assert_eq!((flow.active_time, flow.completion, flow.goodput_bps()), (Duration::ZERO, None, 0.0));
        assert_eq!((of_packets(&flow.data), of_packets(&flow.reverse)), ([0; 8], [0; 8]));
        assert_eq!((flow.connected, flow.counted_series()), (Connected::Yes, &[][..]));
    }
}

#[test]
fn a_transfer_that_ends_after_the_warm_up_takes_its_time_from_its_own_start() {
    let spec = chain(2).transfer(0, 2, ns2_tcp(8), 500_000).from(1.0).seconds(60);
    let whole = simulate(&spec, 1).flows.remove(0);
    let after = simulate(&spec.warmup(3.0), 1).flows.remove(0);
    assert!(whole.completion.is_some_and(|time| time > Duration::from_secs(3)));
    assert_eq!(after.completion, whole.completion);
    assert_eq!(
        (after.counting_since, after.active_time),
        (Instant::from_secs(3), whole.active_time - Duration::from_secs(2))
    );
    assert!((1..500_000).contains(&after.bytes_received), "{}", after.bytes_received);
}

#[test]
fn fairness_over_time_begins_with_the_first_whole_second_that_counts() {
    // One flow alone, then both alike: after the warm-up nothing is unfair.
    let spec = chain(1).cbr(0, 1, 500, ms(50)).cbr(1, 0, 500, ms(50)).from(4.0).seconds(12);
    assert!(simulate(&spec, 1).jain_2s() < 0.85);
    for warmup_s in [3.5, 4.0, 5.0, 5.5] {
        let fair = simulate(&spec.clone().warmup(warmup_s), 1).jain_2s();
        assert!(fair > 0.999, "{warmup_s}: {fair}");
    }
}

#[test]
fn a_warm_up_of_no_time_is_none() {
    assert_eq!(simulate(&congested_network().warmup(0.0), 1), simulate(&congested_network(), 1));
}
