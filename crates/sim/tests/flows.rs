//! Flows: transfers of given size, stop times, datagram counts, flows that get nowhere.

use crate::support::recorder::{RecordedKind, record};
use crate::support::{self, SpecBuilder, chain, link, ns2_tcp, standing, wired};
use hopline_core::{Duration, Instant};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_routing::aodv;
use hopline_sim::outcome::{Connected, DropCounts};
use hopline_sim::spec::LinkSpec;
use hopline_sim::trace::DropReason;
use hopline_sim::{Spec, simulate};
use hopline_transport::pacing::ShortPaths;
use hopline_transport::{pacing, tcp};

const HUNDRED_MS: Duration = Duration::from_millis(100);

/// Two nodes, one link of 10 Mb/s and 50 ms.
fn long_wire() -> Spec {
    wired(2).link(link(0, 1, 10_000_000, Duration::from_millis(50), 50))
}

#[test]
fn a_transfer_of_given_size_is_active_until_its_last_byte_arrives() {
    let spec = chain(2).transfer(0, 2, ns2_tcp(8), 100_000).from(1.0).seconds(10);
    let short = simulate(&spec, 1);
    let long = simulate(&spec.clone().seconds(20), 1);
    let flow = &short.flows[0];
    assert_eq!(flow.bytes_received, 100_000);
    assert_eq!(flow.active_time, long.flows[0].active_time, "waiting longer changes nothing");
    // 800 kb at some 700 kb/s over two hops.
    let active = flow.active_time.as_secs_f64();
    assert!((0.8..2.5).contains(&active), "{active}");
    assert_eq!(flow.goodput_bps(), 800_000.0 / active);
    assert_eq!(flow.segments_received, 69);
}

#[test]
fn a_transfer_that_the_run_cuts_off_is_active_to_the_end() {
    let outcome = simulate(&chain(2).transfer(0, 2, ns2_tcp(8), 10_000_000).from(1.0).seconds(5), 1);
    assert_eq!(outcome.flows[0].active_time, Duration::from_secs(4));
    assert!(outcome.flows[0].bytes_received < 10_000_000);
}

#[test]
fn distinct_segments_are_counted_by_effective_segment_size() {
    // Timestamps take 12 bytes of each segment (RFC 6691): 300 full segments of 1448, none lost, none sent twice.
    let tcp = tcp::Config::modern().with_window_clamp(Some(40));
    let flow = simulate(&long_wire().transfer(0, 1, tcp, 300 * 1448), 1).flows.remove(0);
    assert_eq!((flow.segments_sent, flow.retransmissions), (300, 0));
    assert_eq!(flow.segments_received, 300);
}

#[test]
fn a_bulk_flow_that_stops_is_active_until_then_and_delivers_nothing_after() {
    let outcome = simulate(&long_wire().bulk(0, 1, ns2_tcp(20)).from(1.0).until(5.0).seconds(10), 1);
    let flow = &outcome.flows[0];
    assert_eq!(flow.active_time, Duration::from_secs(4));
    let delivered: Vec<u64> = flow.series.iter().map(|sample| sample.bytes_received).collect();
    assert!(delivered[3] > 0 && delivered[4] > delivered[3]);
    assert_eq!(delivered[5..], [flow.bytes_received; 5], "what is under way at the stop does not count");
}

#[test]
fn a_transfer_whose_last_bytes_arrive_after_the_stop_is_not_complete() {
    // One segment; it leaves at 100 ms, when the handshake is over, and arrives at about 151 ms.
    let outcome = simulate(&long_wire().transfer(0, 1, ns2_tcp(20), 1000).until(0.12).seconds(2), 1);
    let flow = &outcome.flows[0];
    assert_eq!(flow.segments_sent, 1);
    assert_eq!((flow.bytes_received, flow.connected), (0, Connected::Never));
    assert_eq!(flow.active_time, Duration::from_millis(120));
}

#[test]
fn a_stopped_bulk_flow_falls_silent() {
    let spec = chain(1).bulk(0, 1, ns2_tcp(8)).until(2.0).seconds(10);
    let (_, notes) = record(&spec, 1);
    let last = notes.0.last().expect("frames were sent").at;
    assert!(last < Instant::from_millis(2500), "{last}");
}

#[test]
fn cbr_sends_from_its_start_on_and_stops_before_its_stop() {
    let outcome = simulate(&chain(1).cbr(0, 1, 200, HUNDRED_MS).from(1.0).until(2.0).seconds(3), 1);
    let flow = &outcome.flows[0];
    assert_eq!((flow.segments_sent, flow.segments_received), (10, 10));
    assert_eq!(flow.bytes_received, 2000);
    assert_eq!((flow.retransmissions, flow.timeouts), (0, 0));
    assert_eq!(flow.active_time, Duration::from_secs(1));
}

#[test]
fn cbr_packets_that_arrive_after_the_stop_count_neither_as_bytes_nor_as_packets() {
    // 51 ms on the way each: the packets of 0.0 … 0.8 arrive before 0.91, that of 0.9 does not.
    let outcome = simulate(&long_wire().cbr(0, 1, 1000, HUNDRED_MS).until(0.91).seconds(2), 1);
    let flow = &outcome.flows[0];
    assert_eq!((flow.segments_sent, flow.segments_received, flow.bytes_received), (10, 9, 9000));
}

#[test]
fn cbr_has_neither_window_nor_round_trip_time_in_its_series() {
    let outcome = simulate(&chain(1).cbr(0, 1, 200, HUNDRED_MS).seconds(3), 1);
    let series = &outcome.flows[0].series;
    assert_eq!(series.iter().map(|sample| sample.at).collect::<Vec<_>>(), [1, 2, 3].map(Instant::from_secs));
    assert!(series.iter().all(|sample| sample.cwnd_bytes == 0 && sample.srtt.is_none()));
}

#[test]
fn the_series_of_tcp_shows_window_and_round_trip_time() {
    let outcome = simulate(&long_wire().bulk(0, 1, ns2_tcp(20)).seconds(3), 1);
    let last = outcome.flows[0].series.last().expect("three samples");
    assert!(last.cwnd_bytes >= 20 * 1460, "{}", last.cwnd_bytes);
    // 100 ms of propagation, in ticks of 10 ms, and up to 20 segments of 1.2 ms in the queue.
    let srtt = last.srtt.expect("a sample").as_millis();
    assert!((100..=130).contains(&srtt), "{srtt}");
}

#[test]
fn a_flow_without_a_path_is_reported_as_never_connected() {
    let spec = standing(&[(0.0, 0.0), (1000.0, 0.0)]);
    for routing in [None, Some(aodv::Config::rfc3561()), Some(aodv::Config::ns2_235())] {
        let spec = match routing {
            Some(config) => spec.clone().aodv(config),
            None => spec.clone(),
        };
        for spec in [spec.clone().bulk(0, 1, ns2_tcp(8)), spec.cbr(0, 1, 100, HUNDRED_MS)] {
            let outcome = simulate(&spec.seconds(60), 1);
            let flow = &outcome.flows[0];
            assert_eq!((flow.connected, flow.bytes_received), (Connected::Never, 0));
            assert_eq!((flow.goodput_bps(), flow.active_time), (0.0, Duration::from_secs(60)));
            assert!(outcome.nodes[0].drops.no_route > 0);
        }
    }
}

#[test]
fn a_wired_node_without_a_link_drops_its_packets() {
    let outcome = simulate(&wired(2).cbr(0, 1, 100, HUNDRED_MS).until(0.45), 1);
    assert_eq!(outcome.flows[0].connected, Connected::Never);
    assert_eq!(outcome.nodes[0].drops, DropCounts { no_route: 5, ..DropCounts::default() });
}

#[test]
fn a_flow_that_starts_after_the_end_has_no_result() {
    let outcome = simulate(&chain(1).bulk(0, 1, ns2_tcp(8)).from(20.0).seconds(10), 1);
    let flow = &outcome.flows[0];
    assert_eq!((flow.active_time, flow.segments_sent, flow.goodput_bps()), (Duration::ZERO, 0, 0.0));
}

#[test]
fn flows_in_both_directions_between_equal_nodes_are_distinguished() {
    let spec = chain(1).transfer(0, 1, ns2_tcp(8), 30_000).transfer(1, 0, ns2_tcp(8), 50_000);
    let outcome = simulate(&spec.transfer(0, 1, ns2_tcp(8), 70_000), 1);
    let bytes: Vec<u64> = outcome.flows.iter().map(|flow| flow.bytes_received).collect();
    assert_eq!(bytes, [30_000, 50_000, 70_000]);
}

#[test]
fn a_routing_message_that_the_mac_gives_up_is_counted_as_a_drop() {
    // The request is on the air at 1.0 s plus at most DIFS and 30 slots, and takes 1.1 ms; then its sender is gone, and
    // the reply is in vain.
    let away = support::walk(&[(0.0, 0.0, 0.0), (1.0007, 0.0, 0.0), (1.0008, 5000.0, 0.0)]);
    let here = support::walk(&[(0.0, 200.0, 0.0)]);
    let config = aodv::Config { originated_jitter: Duration::ZERO, ..aodv::Config::rfc3561() };
    let spec = support::moving([away, here]).aodv(config);
    let spec = spec.cbr(0, 1, 100, Duration::from_secs(100)).from(1.0).seconds(2);
    let (outcome, notes) = record(&spec, 1);
    assert_eq!(notes.times(1, RecordedKind::RtsSent).len(), 7);
    assert_eq!(notes.times(1, RecordedKind::Dropped(DropReason::RetryLimit)).len(), 1);
    assert_eq!(outcome.nodes[1].drops, DropCounts { retry_limit: 1, ..DropCounts::default() });
}

#[test]
fn a_paced_sender_is_given_the_path_length() {
    // Without loss the round trip over `hops` wires of 10 ms and the spacing that it gives are known: s = (1448 + 112)·8/2 =
    // 6.24 ms and a = 0.448 ms at 2 Mb/s; tq = ½·(20.1 − 6.688) = 6.7 ms whatever the number of hops; a hop takes 12.95 ms.
    let sent = |hops: u32, short_paths| {
        let pacing = pacing::Config::AUTHORS.with_short_paths(short_paths);
        let tcp = tcp::Config::ns2_235().with_adaptive_pacing(pacing);
        let mut spec = wired(hops as usize + 1).bulk(0, hops, tcp).seconds(20);
        for n in 0..hops {
            spec = spec.link(link(n, n + 1, 100_000_000, Duration::from_millis(10), 50));
        }
        let flow = simulate(&spec, 1).flows.remove(0);
        assert_eq!(flow.retransmissions, 0);
        flow.segments_sent
    };
    for (hops, short_paths, spacing_ms) in [
        (4, ShortPaths::OneHop, 4.0 * 12.95),
        (6, ShortPaths::OneHop, 4.0 * 12.95),
        (3, ShortPaths::OneHop, 12.95),
        (3, ShortPaths::FewerHops, 3.0 * 12.95),
        (1, ShortPaths::FewerHops, 12.95),
    ] {
        let (sent, expected) = (sent(hops, short_paths) as f64, 20_000.0 / spacing_ms);
        assert!((0.94..1.01).contains(&(sent / expected)), "{hops} hops: {sent} for {expected}");
    }
}

/// 8 Mb/s, 20 ms one way, 27 packets in the queue: little more than the path holds; so much of the data is lost.
fn lossy(loss: f64) -> LinkSpec {
    let mut path = link(0, 1, 8_000_000, Duration::from_millis(20), 27);
    path.errors[0] = ErrorModel::PacketLoss(Probability::new(loss).expect("a probability"));
    path
}

#[test]
fn bbr_fills_a_wired_bottleneck_whose_random_losses_stop_cubic() {
    let goodput = |tcp, loss| {
        simulate(&wired(2).link(lossy(loss)).bulk(0, 1, tcp).seconds(20), 1).flows[0].goodput_bps()
    };
    let linux = tcp::Config::linux();
    let (v1, v3) = (linux.with_bbr(tcp::BbrConfig::V1), linux.with_bbr(tcp::BbrConfig::V3));
    for bbr in [v1, v3] {
        assert!(goodput(bbr, 0.0) > 0.88 * 8e6, "{}", goodput(bbr, 0.0));
    }
    assert!(goodput(v1, 0.05) > 6e6, "{}", goodput(v1, 0.05));
    assert!(goodput(linux, 0.05) < 2e6, "{}", goodput(linux, 0.05));
}

#[test]
fn a_mesh_carries_bbr_and_a_run_with_it_can_be_repeated() {
    for bbr in [tcp::BbrConfig::V1, tcp::BbrConfig::V3] {
        let spec = chain(3).bulk(0, 3, tcp::Config::linux().with_bbr(bbr)).from(1.0).seconds(20);
        let (once, again) = (simulate(&spec, 5), simulate(&spec, 5));
        assert!(once.flows[0].goodput_bps() > 200e3, "{}", once.flows[0].goodput_bps());
        assert_eq!(once.fingerprint, again.fingerprint);
    }
}
