//! TCP middleboxes in a world: their gain over a bad last hop, and the sums of the counters.

use crate::support::last_hop::{last_hop, linux};
use crate::support::{SpecBuilder, at, chain, disk, link, queue};
use core::num::NonZeroU8;
use hopline_core::{Duration, NodeId};
use hopline_queue::drop_tail::Service;
use hopline_radio::mac::{self, config::AckPolicy};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::spec::dproxy::opaque;
use hopline_sim::spec::{
    MobileSide, OutageEffect, OutageSpec, PairKind, PairSpec, ProxyKind, ProxySpec, RadioSpec, Transport,
    ack_pacing, arq, dproxy, hop_window, mtcp, nack, snoop, split,
};
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::{tcp, tpa};
use std::net::Ipv4Addr;

const TOTAL: u64 = 3_000_000;

fn snoop_of(config: snoop::Config) -> Option<ProxyKind> {
    Some(ProxyKind::Snoop(config))
}

fn split_over(mobile: impl Into<Transport>) -> Option<ProxyKind> {
    Some(ProxyKind::Split(Box::new(split::Config::new(linux().into(), mobile.into(), 100_000))))
}

/// A download of `TOTAL` bytes; every packet of it is accounted for, and what is lost was dropped.
fn download(spec: &Spec) -> Outcome {
    let (outcome, lost) = transferred(spec);
    let drops: u64 = outcome.nodes.iter().map(|node| node.drops.link_error + node.drops.queue_full).sum();
    let repairs = |proxy: &ProxySpec| !matches!(proxy.kind, ProxyKind::Split(_));
    // What an end that is closed drops has arrived. A packet of which a copy has arrived is not lost.
    match spec.proxies.iter().any(repairs) || !spec.pairs.is_empty() {
        true => assert!(lost <= drops, "{lost} of {drops}"),
        false => assert_eq!(lost, drops),
    }
    outcome
}

/// Does the same, and returns the number of lost packets, regardless of copies.
fn transferred(spec: &Spec) -> (Outcome, u64) {
    let outcome = simulate(spec, 1);
    let flow = &outcome.flows[0];
    assert_eq!(flow.bytes_received, TOTAL);
    let mut lost = 0;
    for packets in [&flow.data, &flow.reverse] {
        assert!(flow.duplicates <= flow.retransmissions, "{flow:?}");
        assert_eq!(
            packets.sent + packets.middlebox_made,
            packets.received + packets.absorbed + packets.lost,
            "{packets:?}"
        );
        lost += packets.lost;
    }
    assert_eq!(simulate(spec, 1).fingerprint, outcome.fingerprint, "the same seed twice");
    (outcome, lost)
}

#[test]
fn transfers_complete_through_every_snoop_with_consistent_counts() {
    let plain = download(&last_hop(None).transfer(0, 2, linux(), TOTAL));
    assert_eq!(plain.nodes[1].proxies.retransmitted, 0);
    for config in [snoop::Config::published(), snoop::Config::ns2(), snoop::Config::modern()] {
        let outcome = download(&last_hop(snoop_of(config)).transfer(0, 2, linux(), TOTAL));
        let counts = outcome.nodes[1].proxies;
        assert!(counts.retransmitted > 10 && counts.acks_absorbed > 10, "{counts:?}");
        assert!(outcome.flows[0].completion < plain.flows[0].completion, "{config:?}");
    }
}

#[test]
fn modern_snoop_is_notified_of_queue_drops_and_cuts_sack_blocks() {
    let outcome = download(&last_hop(snoop_of(snoop::Config::modern())).transfer(0, 2, linux(), TOTAL));
    let counts = outcome.nodes[1].proxies;
    assert!(outcome.nodes[1].drops.queue_full > 0, "a queue of 30 overflows");
    assert!(counts.unrecovered > 0 && counts.acks_rewritten > 0, "{counts:?}");
    // What the sender sends again is what was left to him, and little else.
    assert!(outcome.flows[0].retransmissions < 2 * counts.unrecovered + 20, "{counts:?}");
}

#[test]
fn a_middlebox_serves_only_its_mobile_hosts() {
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
    let mixed = download(&spec.change(|spec| spec.flows[0].end_transports[1] = Some(tpa)));
    assert!(mixed.nodes[1].proxies.retransmitted > 10);
}

#[test]
fn link_arq_hides_losses_with_consistent_counts() {
    let plain = download(&last_hop(None).transfer(0, 2, linux(), TOTAL));
    for order in [arq::DeliveryMode::InOrder, arq::DeliveryMode::Any] {
        for parity_every in [None, NonZeroU8::new(8)] {
            let config = arq::Config { order, parity_interval: parity_every, ..arq::Config::default() };
            let spec = last_hop(None).change(|spec| spec.links[1].arq = Some(config));
            let (outcome, _) = transferred(&spec.transfer(0, 2, linux(), TOTAL));
            let counts = outcome.nodes[1].proxies;
            assert!(counts.retransmitted > 10, "{counts:?}");
            assert!(outcome.flows[0].completion < plain.flows[0].completion, "{config:?}");
            assert!(outcome.nodes[2].drops.link_error > 10, "frames are lost as before");
        }
    }
}

#[test]
fn nacks_recover_losses_of_an_upload_on_its_first_hop() {
    let completion = |proxy: Option<ProxyKind>, sender: tcp::Config| {
        let outcome = simulate(&last_hop(proxy).transfer(2, 0, sender, TOTAL), 1);
        let flow = &outcome.flows[0];
        for packets in [&flow.data, &flow.reverse] {
            let kept =
                packets.sent + packets.middlebox_made - packets.received - packets.absorbed - packets.lost;
            assert_eq!(kept, 0, "{packets:?}");
        }
        (
            flow.completion.expect("all arrives").as_secs_f64(),
            outcome.nodes[1].proxies,
            outcome.nodes[2].proxies,
        )
    };
    for sender in [linux(), tcp::Config::modern(), tcp::Config::modern().with_sack()] {
        let (late, ..) = completion(None, sender);
        let (soon, station, host) = completion(Some(ProxyKind::Nack(nack::Config::default())), sender);
        assert!(2.0 * soon < late, "{soon} s in place of {late} s, {sender:?}");
        assert!(station.acks_made > 20 && host.retransmitted > 20, "{station:?} {host:?}");
    }
}

#[test]
fn all_middleboxes_combine_with_link_arq() {
    let snoop = || ProxyKind::Snoop(snoop::Config::modern());
    let mtcp = || ProxyKind::Mtcp(mtcp::Config::default());
    let published = ProxyKind::Snoop(snoop::Config::published());
    let split = split_over(linux()).expect("a machine");
    let stands = [
        vec![snoop()],
        vec![published],
        vec![mtcp()],
        vec![split],
        vec![mtcp(), snoop()],
        vec![snoop(), mtcp()],
    ];
    for (kinds, order) in stands
        .iter()
        .flat_map(|kinds| [arq::DeliveryMode::InOrder, arq::DeliveryMode::Any].map(|o| (kinds, o)))
    {
        let spec = last_hop(None).change(|spec| {
            spec.links[1].arq = Some(arq::Config { order, ..arq::Config::default() });
            let mobile = MobileSide::Nodes([NodeId(2)].into());
            let stand =
                |kind: &ProxyKind| ProxySpec { node: NodeId(1), mobile: mobile.clone(), kind: kind.clone() };
            spec.proxies = kinds.iter().map(stand).collect();
        });
        transferred(&spec.transfer(0, 2, linux(), TOTAL));
    }
}

/// From 1 s on the mobile host is away for so long.
fn with_absence(start_s: f64, secs: f64) -> Vec<OutageSpec> {
    let away = |from, to| {
        let (start, end, blocks) = (at(start_s), at(start_s + secs), OutageEffect::Packets);
        OutageSpec { from: NodeId(from), to: NodeId(to), start, end, blocks }
    };
    vec![away(1, 2), away(2, 1)]
}

/// Times from which the last hop is gone; by chance one of them may cost much.
const STARTS: [f64; 5] = [0.3, 0.7, 1.0, 1.3, 2.0];

#[test]
fn snoop_adds_little_cost_to_an_outage() {
    let senders = [tcp::Config::bsd(), tcp::Config::modern().with_sack(), linux()];
    let windows = [None, Some(hop_window::Config::DEFAULT)];
    for (sender, secs) in senders.iter().flat_map(|sender| [0.2, 1.0, 5.0].map(|secs| (*sender, secs))) {
        let total = |proxy: Option<ProxyKind>| -> f64 {
            let completion = |start| {
                let spec = last_hop(proxy.clone()).change(|spec| {
                    spec.links[1] = link(1, 2, 10_000_000, Duration::from_millis(2), 100);
                    spec.outages = with_absence(start, secs);
                });
                simulate(&spec.transfer(0, 2, sender, TOTAL), 1).flows[0].completion.expect("all arrives")
            };
            STARTS.map(|start| completion(start).as_secs_f64()).iter().sum()
        };
        let plain = total(None);
        for hop_window in windows {
            let snooped = total(snoop_of(snoop::Config { hop_window, ..snoop::Config::modern() }));
            assert!(
                snooped < 1.1 * plain,
                "{secs} s: {snooped} s in place of {plain} s, {hop_window:?}, {sender:?}"
            );
        }
    }
}

#[test]
fn mtcp_closes_the_window_of_an_absent_host() {
    let bsd = tcp::Config::bsd();
    let timeouts = |proxy: Option<ProxyKind>| {
        let spec = last_hop(proxy).change(|spec| {
            spec.links[1].errors = [ErrorModel::None; 2];
            spec.outages = with_absence(1.0, 5.0);
        });
        let outcome = simulate(&spec.transfer(0, 2, bsd, TOTAL), 1);
        assert_eq!(outcome.flows[0].bytes_received, TOTAL);
        (outcome.flows[0].timeouts, outcome.nodes[1].proxies.windows_closed)
    };
    assert!(timeouts(None).0 > 1);
    let (timeouts, closed) = timeouts(Some(ProxyKind::Mtcp(mtcp::Config::default())));
    assert!(timeouts == 0 && closed > 0, "{timeouts} time-outs, closed {closed} times");
}

/// The last hop with D-Proxy at both of its ends.
fn paired(kind: PairKind) -> Spec {
    last_hop(None).change(|spec| spec.pairs = vec![PairSpec { ends: [NodeId(1), NodeId(2)], kind }])
}

fn d_proxy() -> dproxy::Config {
    dproxy::Config::new(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED, dproxy::Key::new([7; 32]))
}

#[test]
fn d_proxy_repairs_losses_in_both_directions() {
    let plain = download(&last_hop(None).transfer(0, 2, linux(), TOTAL));
    for holding in [dproxy::HoleDelivery::InOrder, dproxy::HoleDelivery::OutOfOrder] {
        let pair = paired(PairKind::DProxy(dproxy::Config { hole_delivery: holding, ..d_proxy() }));
        let (outcome, _) = transferred(&pair.clone().transfer(0, 2, linux(), TOTAL));
        let [near, far] = [1, 2].map(|node| outcome.nodes[node].proxies);
        assert!(far.requests > 50 && near.retransmitted > 50, "{near:?} {far:?}");
        assert_eq!(far.delayed > 50, holding == dproxy::HoleDelivery::InOrder, "{far:?}");
        assert!(outcome.flows[0].completion < plain.flows[0].completion);
        let (up, _) = transferred(&pair.transfer(2, 0, linux(), TOTAL));
        assert!(up.nodes[1].proxies.requests > 50, "what comes from there is asked for as well");
    }
}

#[test]
fn an_opaque_pair_repairs_tcp_in_both_directions_with_consistent_counts() {
    for order in [opaque::DeliveryMode::InOrder, opaque::DeliveryMode::Any] {
        let pair = paired(PairKind::Opaque(opaque::Config { order, ..opaque::Config::default() }));
        let (outcome, _) = transferred(&pair.transfer(0, 2, linux(), TOTAL));
        let [near, far] = [1, 2].map(|node| outcome.nodes[node].proxies);
        assert!(far.requests > 50 && near.retransmitted > 50, "{near:?} {far:?}");
        assert!(near.requests > 10, "ACKs are asked for too: {near:?}");
        assert!(near.unrecovered > 0, "a queue of 30 overflows: {near:?}");
        assert!(outcome.flows[0].retransmissions < 2 * near.unrecovered + 20);
    }
}

#[test]
fn an_opaque_pair_delivers_every_datagram_over_20_percent_loss() {
    let kind = PairKind::Opaque(opaque::Config::default());
    let loses_a_fifth = |spec: &mut Spec| {
        spec.links[1].errors = [ErrorModel::PacketLoss(Probability::new(0.2).expect("a probability")); 2];
    };
    let spec = paired(kind).change(loses_a_fifth).cbr(0, 2, 500, Duration::from_millis(2)).until(110.0);
    let outcome = simulate(&spec, 1);
    let data = &outcome.flows[0].data;
    assert_eq!((data.received, data.lost), (data.sent, 0));
}

/// Two hosts, 2 and 3, behind stations that acknowledge nothing on the air and lose a tenth of all frames.
fn over_the_air(kind: PairKind) -> Spec {
    let cable = |a, b, ms| link(a, b, 100_000_000, Duration::from_millis(ms), 100);
    let spec = chain(1).wired_node().wired_node().link(cable(2, 0, 5)).link(cable(1, 3, 1)).seconds(200);
    spec.change(|spec| {
        let radio = spec.radio.as_mut().expect("there are radios");
        radio.mac.ack_policy = AckPolicy::NoAck;
        radio.errors = ErrorModel::PacketLoss(Probability::new(0.1).expect("a probability"));
        spec.pairs = vec![PairSpec { ends: [NodeId(0), NodeId(1)], kind }];
    })
}

#[test]
fn pairs_work_over_radio_links() {
    for kind in [PairKind::DProxy(d_proxy()), PairKind::Opaque(opaque::Config::default())] {
        let (outcome, _) = transferred(&over_the_air(kind).transfer(2, 3, linux(), TOTAL));
        let far = outcome.nodes[1].proxies;
        assert!(far.requests > 100, "{far:?}");
        assert!(outcome.flows[0].retransmissions < far.requests / 2, "{far:?}");
    }
}

#[test]
fn packets_resumed_by_a_pair_are_forwarded_in_order() {
    let spec = over_the_air(PairKind::DProxy(d_proxy())).change(|spec| {
        let radio = spec.radio.as_mut().expect("there are radios");
        radio.errors = ErrorModel::PacketLoss(Probability::new(0.02).expect("a probability"));
    });
    // No queue overflows.
    let sender = linux().with_receive_buffer(40_000);
    let outcome = simulate(&spec.transfer(2, 3, sender, TOTAL), 1);
    let flow = &outcome.flows[0];
    assert!(outcome.nodes[1].proxies.delayed > 100, "{:?}", outcome.nodes[1].proxies);
    // Of each hole the receiver would tell with what waited, were it not in order.
    assert!(flow.retransmissions < 20, "{} retransmissions", flow.retransmissions);
}

/// Two bridges 10 m apart over 802.11a with blocks of 32 frames, and a host on a wire behind each. Nodes:
/// sender, bridge, bridge, receiver.
fn bridged_in_blocks(pacing: Option<ack_pacing::Config>) -> Spec {
    let ack_policy = AckPolicy::BlockAck { block_size: 32, txop_limit: None };
    let mac = mac::Config { ack_policy, ..mac::Config::dot11a() };
    let radio = RadioSpec { mac, queue: queue(3000, Service::Fifo), ..disk(250.0) };
    let wire = |a, b| link(a, b, 100_000_000, Duration::from_millis(5), 1000);
    let spec = chain(1).change(|spec| spec.radio = Some(radio)).wired_node().wired_node();
    let spec = spec.link(wire(2, 0)).link(wire(1, 3)).transfer(2, 3, linux(), TOTAL).seconds(60);
    let paced = |config| ProxySpec {
        node: NodeId(0),
        mobile: MobileSide::Radios,
        kind: ProxyKind::AckPacing(config),
    };
    spec.change(|spec| spec.proxies = pacing.map(paced).into_iter().collect())
}

#[test]
fn ack_pacing_spreads_ack_bursts_of_block_ack_links() {
    let (plain, lost) = transferred(&bridged_in_blocks(None));
    assert_eq!((lost, plain.nodes[0].proxies.delayed), (0, 0));
    let bursts = &plain.flows[0].ack_bursts;
    assert!(bursts.quantile(0.95) >= Some(8), "{bursts:?}");
    let (paced, lost) = transferred(&bridged_in_blocks(Some(ack_pacing::Config::default())));
    assert_eq!(lost, 0);
    let counts = paced.nodes[0].proxies;
    assert!(counts.delayed > 100 && counts.acks_absorbed + counts.acks_made == 0, "{counts:?}");
    let spread = &paced.flows[0].ack_bursts;
    assert!(spread.mean() < bursts.mean().map(|mean| mean / 2.0), "{spread:?}");
    assert_eq!(paced.flows[0].reverse.received, paced.flows[0].reverse.sent);
}
