//! Nothing is lost sight of: packets, and every node's time.

use crate::support::{self, SpecBuilder, chain, grid, link, ns2_tcp, standing, walk, wired};
use hopline_core::{Duration, Instant};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_routing::aodv;
use hopline_sim::spec::links::Reordering;
use hopline_sim::{NoTrace, Outcome, Spec, World, simulate};

const FAST: Duration = Duration::from_millis(5);

/// Runs until `secs`, and says how many packets there are then.
fn run_to(spec: &Spec, secs: f64) -> (usize, Outcome) {
    let mut world = World::new(spec, 1, NoTrace);
    world.run_until(support::at(secs));
    (world.packets(), world.finish().0)
}

fn drops(outcome: &Outcome) -> u64 {
    let sum = |n: &hopline_sim::outcome::NodeOutcome| {
        let d = n.drops;
        d.queue_full + d.early + d.retry_limit + d.no_route + d.ttl + d.link_error + d.outage
    };
    outcome.nodes.iter().map(sum).sum()
}

fn lossy() -> ErrorModel {
    ErrorModel::PacketLoss(Probability::new(0.1).expect("a probability"))
}

/// All that can happen to a packet: queues overflow, links break, hosts are unreachable, frames are damaged.
fn lossy_networks() -> Vec<Spec> {
    let base_station = chain(2).wired_node().link(link(2, 3, 1_000_000, FAST, 5));
    let leaving = standing(&[(0.0, 0.0), (200.0, 0.0)]).wireless_node(walk(&[
        (0.0, 400.0, 0.0),
        (2.0, 400.0, 0.0),
        (3.0, 3000.0, 0.0),
    ]));
    vec![
        chain(4).cbr(0, 4, 1000, FAST).until(4.0).bulk(4, 0, ns2_tcp(32)).until(5.0),
        chain(4).radio(|radio| radio.errors = lossy()).bulk(0, 4, ns2_tcp(8)).until(5.0),
        chain(3).aodv(aodv::Config::rfc3561()).cbr(0, 3, 1000, FAST).until(5.0),
        grid(3)
            .aodv(aodv::Config::ns2_235())
            .bulk(0, 8, ns2_tcp(32))
            .until(5.0)
            .cbr(6, 2, 500, FAST)
            .until(5.0),
        standing(&[(0.0, 0.0), (1000.0, 0.0)])
            .aodv(aodv::Config::rfc3561())
            .bulk(0, 1, ns2_tcp(8))
            .until(5.0),
        leaving.clone().aodv(aodv::Config::rfc3561()).cbr(0, 2, 1000, FAST).until(5.0),
        leaving.aodv(aodv::Config::ns2_235()).bulk(0, 2, ns2_tcp(8)).until(5.0),
        base_station.clone().bulk(0, 3, ns2_tcp(32)).until(5.0).bulk(3, 0, ns2_tcp(32)).until(5.0),
        base_station.change(|spec| spec.links[0].errors = [lossy(); 2]).cbr(0, 3, 1000, FAST).until(5.0),
        wired(3)
            .link(link(0, 1, 10_000_000, FAST, 50))
            .link(link(1, 2, 1_000_000, FAST, 5))
            .bulk(0, 2, ns2_tcp(32))
            .until(5.0),
    ]
}

#[test]
fn no_packet_remains_after_traffic_ends() {
    for (n, spec) in lossy_networks().into_iter().enumerate() {
        let (while_running, _) = run_to(&spec, 1.0);
        assert!(while_running > 0, "network {n}");
        let (left, _) = run_to(&spec, 120.0);
        assert_eq!(left, 0, "network {n}");
    }
}

#[test]
fn a_finished_transfer_leaves_no_packet() {
    let (left, outcome) = run_to(&chain(3).transfer(0, 3, ns2_tcp(8), 50_000), 60.0);
    assert_eq!((left, outcome.flows[0].bytes_received), (0, 50_000));
}

#[test]
fn on_wires_every_packet_is_received_or_dropped() {
    let spec = wired(3)
        .link(link(0, 1, 10_000_000, FAST, 50))
        .link(link(1, 2, 1_000_000, FAST, 5))
        .change(|spec| spec.links[0].errors = [lossy(); 2])
        .cbr(0, 2, 1000, Duration::from_millis(7))
        .cbr(1, 2, 1000, Duration::from_millis(7))
        .change(|spec| spec.duration = Duration::from_secs(5));
    let outcome = simulate(&spec, 1);
    let sent: u64 = outcome.flows.iter().map(|flow| flow.segments_sent).sum();
    let received: u64 = outcome.flows.iter().map(|flow| flow.segments_received).sum();
    let mut world = World::new(&spec, 1, NoTrace);
    world.run_until(Instant::ZERO + spec.duration);
    assert!(drops(&outcome) > 100);
    assert_eq!(sent, received + drops(&outcome) + world.packets() as u64);
}

#[test]
fn on_radio_every_packet_is_received_or_dropped() {
    // Frames are never lost, but their ACKs may be: then a packet is both received and given up.
    let spec = chain(4).cbr(0, 4, 1000, Duration::from_millis(20)).seconds(20);
    let mut world = World::new(&spec, 1, NoTrace);
    world.run_until(Instant::ZERO + spec.duration);
    let held = world.packets() as u64;
    let outcome = world.finish().0;
    let flow = &outcome.flows[0];
    let accounted = flow.segments_received + drops(&outcome) + held;
    assert!(drops(&outcome) > 0);
    assert!(
        (flow.segments_sent..=flow.segments_sent + 5).contains(&accounted),
        "{accounted} {}",
        flow.segments_sent
    );
}

#[test]
fn the_airtimes_of_every_radio_add_up_to_the_run() {
    for (n, spec) in lossy_networks().into_iter().enumerate() {
        let spec = spec.seconds(7);
        let outcome = simulate(&spec, 1);
        for (node, spec) in outcome.nodes.iter().zip(&spec.nodes) {
            let a = node.airtime;
            let total = a.transmitting + a.receiving + a.sensing + a.nav + a.idle;
            let expected = match spec.attachment() {
                hopline_sim::spec::Attachment::Wireless => Duration::from_secs(7),
                hopline_sim::spec::Attachment::Wired => Duration::ZERO,
            };
            assert_eq!(total, expected, "network {n}, node {}", spec.name);
        }
    }
}

#[test]
fn the_airtimes_of_a_single_exchange_are_exact() {
    // One datagram of 1028 bytes over 802.11b: data 966 µs, SIFS 10 µs, ACK 304 µs; 200 m are 667 ns.
    let spec = chain(2).change(|spec| spec.radio = Some(support::disk(250.0)));
    let spec = spec.cbr(0, 1, 1000, Duration::from_secs(100)).seconds(1);
    let outcome = simulate(&spec, 1);
    let ns = Duration::from_nanos;
    let [sender, receiver, third] = [0, 1, 2].map(|n| outcome.nodes[n].airtime);
    assert_eq!((sender.transmitting, sender.receiving), (ns(966_000), ns(304_000)));
    assert_eq!((receiver.transmitting, receiver.receiving), (ns(304_000), ns(966_000)));
    // The third hears only the ACK.
    assert_eq!((third.transmitting, third.receiving, third.sensing), (ns(0), ns(304_000), ns(0)));
    assert_eq!((third.nav, third.idle), (ns(0), ns(1_000_000_000 - 304_000)));
}

#[test]
fn a_link_with_jitter_and_reordering_loses_no_packet() {
    // Packets that jitter holds up arrive at the moment of the one before them, and around late ones.
    let spec = wired(2)
        .link(link(0, 1, 20_000_000, Duration::from_millis(25), 100))
        .change(|spec| {
            spec.links[0].impairments.jitter = [Duration::from_millis(5), Duration::ZERO];
            spec.links[0].impairments.reordering =
                [Some(Reordering { share: 0.05, extra_delay: Duration::from_millis(5) }), None];
        })
        .cbr(0, 1, 1472, Duration::from_micros(840))
        .until(5.0)
        .seconds(6);
    let data = simulate(&spec, 1).flows.remove(0).data;
    assert_eq!((data.sent, data.received, data.lost), (5953, 5953, 0));
}
