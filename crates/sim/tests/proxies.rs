//! Machines in the path of TCP, seated in a world: what they get over a bad last hop, and that the books come out even.

mod support;

use hopline_core::{Duration, NodeId};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::spec::{MobileSide, ProxyKind, ProxySpec, Transport, snoop, split};
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::{tcp, tpa};
use support::{Build, link, wired};

const TOTAL: u64 = 3_000_000;

/// A server, a base station, and a mobile host behind a link that loses 3 of 100 packets, either way, and overflows.
fn last_hop(proxy: Option<ProxyKind>) -> Spec {
    let mut lossy = link(1, 2, 10_000_000, Duration::from_millis(2), 30);
    lossy.errors = [ErrorModel::PacketLoss(Probability::new(0.03).expect("a probability")); 2];
    let spec =
        wired(3).link(link(0, 1, 100_000_000, Duration::from_millis(20), 100)).link(lossy).seconds(120);
    let mobile = MobileSide::Nodes([NodeId(2)].into());
    let proxies = proxy.map(|kind| ProxySpec { node: NodeId(1), mobile, kind }).into_iter().collect();
    spec.change(|spec| spec.proxies = proxies)
}

fn linux() -> tcp::Config {
    tcp::Config::linux().with_sack()
}

fn snoop_of(config: snoop::Config) -> Option<ProxyKind> {
    Some(ProxyKind::Snoop(config))
}

fn split_over(mobile: impl Into<Transport>) -> Option<ProxyKind> {
    Some(ProxyKind::Split(Box::new(split::Config::new(linux().into(), mobile.into(), 100_000))))
}

/// A download of `TOTAL` bytes; every packet of it is accounted for.
fn download(spec: &Spec) -> Outcome {
    let outcome = simulate(spec, 1);
    let flow = &outcome.flows[0];
    assert_eq!(flow.bytes_received, TOTAL);
    let mut lost = 0;
    for packets in [&flow.data, &flow.back] {
        assert_eq!(
            packets.sent + packets.made,
            packets.received + packets.absorbed + packets.lost,
            "{packets:?}"
        );
        lost += packets.lost;
    }
    let drops: u64 = outcome.nodes.iter().map(|node| node.drops.link_error + node.drops.queue_full).sum();
    // What an end that is closed drops has arrived.
    assert_eq!(lost, drops);
    assert_eq!(simulate(spec, 1).fingerprint, outcome.fingerprint, "the same seed twice");
    outcome
}

#[test]
fn every_snoop_brings_the_transfer_through_and_none_loses_sight_of_a_packet() {
    let plain = download(&last_hop(None).transfer(0, 2, linux(), TOTAL));
    assert_eq!(plain.nodes[1].proxies.sent_again, 0);
    for config in [snoop::Config::published(), snoop::Config::ns2(), snoop::Config::modern()] {
        let outcome = download(&last_hop(snoop_of(config)).transfer(0, 2, linux(), TOTAL));
        let counts = outcome.nodes[1].proxies;
        assert!(counts.sent_again > 10 && counts.acks_absorbed > 10, "{counts:?}");
        assert!(outcome.flows[0].completion < plain.flows[0].completion, "{config:?}");
    }
}

#[test]
fn snoop_for_todays_senders_is_told_what_the_queue_refuses_and_cuts_sack_blocks() {
    let outcome = download(&last_hop(snoop_of(snoop::Config::modern())).transfer(0, 2, linux(), TOTAL));
    let counts = outcome.nodes[1].proxies;
    assert!(outcome.nodes[1].drops.queue_full > 0, "a queue of 30 overflows");
    assert!(counts.left_to_sender > 0 && counts.acks_edited > 0, "{counts:?}");
    // What the sender sends again is what was left to him, and little else.
    assert!(outcome.flows[0].retransmissions < 2 * counts.left_to_sender + 20, "{counts:?}");
}

#[test]
fn a_machine_serves_only_those_whom_it_is_to_serve() {
    let spec = last_hop(snoop_of(snoop::Config::modern())).transfer(0, 2, linux(), TOTAL);
    let elsewhere = spec.change(|spec| spec.proxies[0].mobile = MobileSide::Nodes([NodeId(0)].into()));
    let outcome = download(&elsewhere);
    let nobody = download(&last_hop(None).transfer(0, 2, linux(), TOTAL));
    assert_eq!(outcome.nodes[1].proxies, Default::default());
    assert_eq!(outcome.fingerprint, nobody.fingerprint);
}

#[test]
fn a_connection_is_split_over_two_tcps_and_over_tcp_and_tpa() {
    let both = download(&last_hop(split_over(linux())).transfer(0, 2, linux(), TOTAL));
    let overflown = both.nodes[0].drops.queue_full;
    let data = &both.flows[0].data;
    assert_eq!(data.absorbed + overflown, data.sent, "what the server sends ends at the base station");
    let tpa = Transport::Tpa(tpa::Config::tpa(3));
    let spec = last_hop(split_over(tpa)).transfer(0, 2, linux(), TOTAL);
    let mixed = download(&spec.change(|spec| spec.flows[0].ends[1] = Some(tpa)));
    assert!(mixed.nodes[1].proxies.sent_again > 10);
}
