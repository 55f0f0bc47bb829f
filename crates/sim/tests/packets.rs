//! Fates of each flow's packets: sent, arrived, lost, the delay, and the number of hops.

use crate::support::{SpecBuilder, chain, grid, link, ns2_tcp, standing, wired};
use hopline_core::{Duration, Instant};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_routing::aodv;
use hopline_sim::outcome::PacketCounts;
use hopline_sim::{NoTrace, Outcome, Spec, World, simulate};
use hopline_transport::tcp;

const fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Two links of 1 Mb/s and 5 ms: a datagram of 972 + 28 bytes takes 8 + 5 ms over each.
fn two_wires() -> Spec {
    let hop = |a, b| link(a, b, 1_000_000, micros(5000), 50);
    wired(3).link(hop(0, 1)).link(hop(1, 2))
}

#[test]
fn a_single_datagram_has_the_delay_of_its_links() {
    let spec = two_wires().cbr(0, 2, 972, Duration::from_millis(100)).from(1.0).until(1.95).seconds(3);
    let data = simulate(&spec, 1).flows.remove(0).data;
    assert_eq!((data.sent, data.received, data.lost), (10, 10, 0));
    assert_eq!((data.sent_bytes, data.received_bytes), (10_000, 10_000));
    assert_eq!((data.forwarded, data.hops_mean()), (10, Some(2.0)));
    let delay = micros(2 * 13_000);
    assert_eq!((data.delays.min(), data.delays.max()), (Some(delay), Some(delay)));
    assert_eq!(data.delays.quantile(0.5), Some(delay));
    assert_eq!((data.jitter_sum, data.jitter_mean_s()), (Duration::ZERO, Some(0.0)));
    let ms = |ms| Some(Instant::from_millis(ms));
    assert_eq!((data.first_sent, data.last_sent), (ms(1000), ms(1900)));
    assert_eq!((data.first_received, data.last_received), (ms(1026), ms(1926)));
}

#[test]
fn queued_datagrams_are_delayed_by_those_before_them() {
    // One every 6 ms where one takes 8: each waits 2 ms longer than the one before it.
    let spec = two_wires().cbr(0, 2, 972, micros(6000)).until(0.059).seconds(2);
    let data = simulate(&spec, 1).flows.remove(0).data;
    assert_eq!(data.received, 10);
    assert_eq!(data.delays.max(), Some(micros(26_000 + 9 * 2000)));
    assert_eq!(data.jitter_sum, micros(9 * 2000));
    assert_eq!(data.last_delay, data.delays.max());
    assert_eq!(data.delays.mean_s(), Some(0.035));
}

#[test]
fn datagrams_have_no_reverse_packets() {
    let flow = simulate(&two_wires().cbr(0, 2, 100, micros(20_000)).seconds(1), 1).flows.remove(0);
    assert_eq!(flow.reverse, PacketCounts::default());
    assert_eq!(
        (flow.reverse.loss_pct(), flow.reverse.hops_mean(), flow.reverse.jitter_mean_s()),
        (None, None, None)
    );
}

#[test]
fn a_transfer_counts_segments_one_way_and_acknowledgments_the_other() {
    let spec = two_wires().transfer(0, 2, ns2_tcp(1), 14_600).seconds(10);
    let flow = simulate(&spec, 1).flows.remove(0);
    // SYN and ten segments of data, the first of them with the ACK of the handshake, the last with FIN;
    // SYN-ACK and ten ACKs.
    assert_eq!((flow.data.sent, flow.reverse.sent), (11, 11));
    assert_eq!((flow.data.lost, flow.reverse.lost), (0, 0));
    assert!(flow.data.received_bytes > 14_600 && flow.reverse.received_bytes < 14_600);
    assert_eq!(flow.completion, Some(flow.active_time));
}

#[test]
fn a_flow_without_an_end_does_not_complete() {
    let endless = simulate(&two_wires().bulk(0, 2, ns2_tcp(4)).until(2.0).seconds(3), 1);
    assert_eq!(endless.flows[0].completion, None);
    let cut_off = simulate(&two_wires().transfer(0, 2, ns2_tcp(4), 1_000_000).seconds(3), 1);
    assert_eq!(cut_off.flows[0].completion, None);
}

#[test]
fn packets_in_flight_at_the_end_are_not_lost() {
    let spec = two_wires().cbr(0, 2, 972, micros(10_000)).change(|spec| spec.duration = micros(95_000));
    let data = simulate(&spec, 1).flows.remove(0).data;
    // Sent at 0, 10, …, 90 ms; those of 0 to 60 have arrived by 86 ms.
    assert_eq!((data.sent, data.received, data.lost), (10, 7, 0));
    assert_eq!(data.loss_pct(), Some(0.0));
}

#[test]
fn packets_damaged_by_a_link_are_lost() {
    let errors = ErrorModel::PacketLoss(Probability::new(0.2).expect("a probability"));
    let spec = two_wires().change(|spec| spec.links[1].errors = [errors; 2]);
    let outcome = simulate(&spec.cbr(0, 2, 500, micros(20_000)).until(19.0).seconds(20), 1);
    let data = &outcome.flows[0].data;
    assert_eq!(data.lost, outcome.nodes[2].drops.link_error);
    assert!((15.0..25.0).contains(&data.loss_pct().expect("packets were sent")), "{:?}", data.loss_pct());
    assert_eq!(data.lost_bytes, data.lost * 528);
}

/// Networks in which packets are dropped for every reason, salvaged, and delivered twice.
fn lossy_networks() -> Vec<Spec> {
    let fast = micros(5000);
    vec![
        chain(4).cbr(0, 4, 1000, fast).bulk(4, 0, ns2_tcp(32)),
        grid(3).aodv(aodv::Config::ns2_235()).bulk(0, 8, ns2_tcp(32)).cbr(6, 2, 500, fast),
        grid(4).aodv(aodv::Config::rfc3561()).bulk(0, 15, ns2_tcp(32)).bulk(3, 12, tcp::Config::modern()),
        standing(&[(0.0, 0.0), (1000.0, 0.0)]).aodv(aodv::Config::rfc3561()).bulk(0, 1, ns2_tcp(8)),
    ]
}

#[test]
fn every_packet_is_received_lost_or_in_flight() {
    for (n, spec) in lossy_networks().into_iter().enumerate() {
        let mut world = World::new(&spec, 1, NoTrace);
        world.run_until(Instant::from_secs(40));
        let held = world.packets() as u64;
        let outcome: Outcome = world.finish().0;
        for flow in &outcome.flows {
            for packets in [&flow.data, &flow.reverse] {
                let under_way = packets.sent - packets.received - packets.lost;
                assert!(under_way <= held, "network {n}: {packets:?}");
                assert_eq!(packets.delays.count(), packets.received, "network {n}");
            }
        }
        let lost: u64 = outcome.flows.iter().map(|flow| flow.data.lost + flow.reverse.lost).sum();
        let dropped: u64 = outcome.nodes.iter().map(|node| node.drops.total()).sum();
        assert!(lost > 0 && lost <= dropped, "network {n}: {lost} of {dropped}");
    }
}

#[test]
fn every_frame_is_counted_by_its_kind() {
    use crate::support::recorder::{RecordedKind, record};
    for spec in [chain(3).bulk(0, 3, ns2_tcp(8)).seconds(5), lossy_networks().remove(1).seconds(3)] {
        let (outcome, notes) = record(&spec, 1);
        let total = |of: fn(&hopline_sim::outcome::FrameCounts) -> u64| {
            outcome.nodes.iter().map(|node| of(&node.frames)).sum::<u64>() as usize
        };
        let data = notes.count(RecordedKind::DataSent { retry: false })
            + notes.count(RecordedKind::DataSent { retry: true });
        assert_eq!(total(|f| f.data), data);
        assert_eq!(total(|f| f.rts), notes.count(RecordedKind::RtsSent));
        assert_eq!(total(|f| f.cts), notes.count(RecordedKind::CtsSent));
        assert_eq!(total(|f| f.ack), notes.count(RecordedKind::AckSent));
        assert!(data > 100);
    }
    let silent = simulate(&chain(2).bulk(0, 2, ns2_tcp(8)).seconds(2), 1);
    assert_eq!(silent.nodes.iter().map(|node| node.routing_packets).sum::<u64>(), 0);
    let aodv = simulate(&chain(2).aodv(aodv::Config::rfc3561()).bulk(0, 2, ns2_tcp(8)).seconds(2), 1);
    // n0 asks its neighbours, then farther (RFC 3561 §6.4); n1 passes on the request, n2 answers, n1 passes that on.
    assert_eq!(aodv.nodes.iter().map(|node| node.routing_packets).collect::<Vec<_>>(), [2, 2, 1]);
    // 24 bytes of RREQ, 20 of RREP, and 28 of UDP and IP each.
    assert_eq!(aodv.nodes.iter().map(|node| node.routing_bytes).collect::<Vec<_>>(), [104, 100, 48]);
}
