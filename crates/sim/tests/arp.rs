//! Address resolution: a question the first time, one packet kept meanwhile, and what silence does.

use crate::support::{SpecBuilder, at, chain, ns2_tcp};
use hopline_core::{Duration, NodeId};
use hopline_sim::Spec;
use hopline_sim::simulate;
use hopline_sim::spec::{AddressResolution, OutageEffect, OutageSpec};

fn with_arp(spec: Spec) -> Spec {
    spec.radio(|radio| radio.address_resolution = AddressResolution::Arp)
}

#[test]
fn the_address_of_a_neighbour_is_requested_once() {
    // One datagram a second: nothing overtakes the first.
    let spec = chain(1).cbr(0, 1, 100, Duration::from_secs(1)).seconds(10);
    let (known, asked) = (simulate(&spec, 1), simulate(&with_arp(spec), 1));
    assert_eq!(known.flows[0].segments_received, asked.flows[0].segments_received);
    let frames = |o: &hopline_sim::Outcome, node: usize| o.nodes[node].frames.data;
    assert_eq!(frames(&asked, 0), frames(&known, 0) + 1, "the request");
    assert_eq!(frames(&asked, 1), frames(&known, 1) + 1, "the reply");
    assert_eq!(asked.nodes[0].drops.total(), 0);
}

#[test]
fn during_resolution_only_the_last_packet_is_kept() {
    // Four datagrams within a microsecond: the question takes longer.
    let spec = with_arp(chain(1).cbr(0, 1, 100, Duration::from_nanos(200)).until(0.000_000_7).seconds(1));
    let outcome = simulate(&spec, 1);
    let sent = outcome.flows[0].segments_sent;
    let drops = outcome.nodes[0].drops;
    assert!(sent >= 3, "{sent}");
    // The third request was the last, and what comes then fails with the packet that waits.
    assert!(drops.unresolved >= 2, "{drops:?}");
    assert_eq!(drops.unresolved + drops.retry_limit + outcome.flows[0].segments_received, sent);
}

#[test]
fn packets_before_a_deferred_request_cause_no_further_one() {
    // A datagram each millisecond: several come while the request waits, none fails, and the last is kept.
    let spec = chain(1).cbr(0, 1, 100, Duration::from_millis(1)).until(0.02).seconds(1);
    let jittered = with_arp(spec).radio(|radio| radio.arp_jitter = Duration::from_millis(10));
    let outcome = simulate(&jittered, 1);
    let (sent, drops) = (outcome.flows[0].segments_sent, outcome.nodes[0].drops);
    assert!(drops.unresolved > 1 && drops.total() == drops.unresolved, "{drops:?}");
    assert_eq!(outcome.nodes[0].frames.data, sent - drops.unresolved + 1, "one request");
}

#[test]
fn a_deferred_request_is_cancelled_by_a_learnt_address() {
    // Both ends have something to send at the same instant: the request of the one tells the other its address.
    let each = Duration::from_secs(1);
    let spec = with_arp(chain(1).cbr(0, 1, 100, each).until(4.5).cbr(1, 0, 100, each).until(4.5));
    let jittered = spec.radio(|radio| radio.arp_jitter = Duration::from_millis(10)).seconds(5);
    let outcome = simulate(&jittered, 1);
    assert!(outcome.flows.iter().all(|flow| flow.segments_received == flow.segments_sent));
    let frames = outcome.nodes.iter().map(|node| node.frames.data).sum::<u64>();
    let datagrams = outcome.flows.iter().map(|flow| flow.segments_sent).sum::<u64>();
    assert_eq!(frames, datagrams + 2, "one request and its answer");
}

#[test]
fn every_receiver_of_a_request_learns_its_sender() {
    // n1 hears n0 ask, and answers the datagram's source later without a request of its own.
    let spec = with_arp(chain(1).bulk(0, 1, ns2_tcp(4)).seconds(5));
    let outcome = simulate(&spec, 1);
    assert!(outcome.flows[0].segments_received > 100);
    assert_eq!(outcome.nodes[1].drops.total() + outcome.nodes[0].drops.unresolved, 0);
}

#[test]
fn an_unresponsive_neighbour_is_a_broken_link() {
    let cut = |spec: Spec| {
        spec.change(|spec| {
            spec.outages.push(OutageSpec {
                from: NodeId(1),
                to: NodeId(0),
                start: at(0.5),
                end: at(60.0),
                blocks: OutageEffect::Frames,
            });
        })
    };
    let spec = with_arp(cut(chain(1).cbr(0, 1, 100, Duration::from_secs(1)).from(1.0).seconds(10)));
    let drops = simulate(&spec, 1).nodes[0].drops;
    // Three requests hold one packet each, of which two are displaced; the fourth packet fails with the third.
    assert!(drops.unresolved >= 4 && drops.retry_limit >= 4, "{drops:?}");
    assert_eq!(simulate(&spec, 1).fingerprint, simulate(&spec, 1).fingerprint);
}
