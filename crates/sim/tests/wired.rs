//! Wired links: rate, delay, queue, errors, hop limit.

use crate::support::recorder::{RecordedKind, record};
use crate::support::{self, SpecBuilder, link, wired};
use hopline_core::{Duration, Instant};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::outcome::{Connected, DropCounts};
use hopline_sim::spec::links::{Policer, RateTrace, Reordering};
use hopline_sim::trace::DropReason;
use hopline_sim::{Spec, simulate};
use std::sync::Arc;

/// Longer than any of these runs: a CBR flow that sends one packet.
const ONCE: Duration = Duration::from_secs(1000);
/// Length of a UDP payload that gives a packet of 1250 bytes: 1 ms at 10 Mb/s.
const PAYLOAD: u32 = 1222;

/// `hops` links in a row, 10 Mb/s and 5 ms each.
fn row(hops: u32) -> Spec {
    (0..hops).fold(wired(hops as usize + 1), |spec, n| {
        spec.link(link(n, n + 1, 10_000_000, Duration::from_millis(5), 50))
    })
}

#[test]
fn a_packet_arrives_after_its_transmission_and_the_delay_to_the_nanosecond() {
    // 20 + 8 + 1000 bytes at 10 Mb/s.
    let spec = row(1).cbr(0, 1, 1000, ONCE).from(1.0);
    let (outcome, notes) = record(&spec, 1);
    assert_eq!(notes.times(0, RecordedKind::WireSent), [Instant::from_secs(1)]);
    assert_eq!(notes.times(1, RecordedKind::WireReceived), [Instant::from_nanos(1_005_822_400)]);
    assert_eq!(outcome.flows[0].bytes_received, 1000);
}

#[test]
fn a_rate_that_does_not_divide_rounds_up_to_a_nanosecond() {
    let spec = wired(2).link(link(0, 1, 7_000_000, Duration::ZERO, 5)).cbr(0, 1, 1, ONCE);
    // 29 bytes: 232 bits / 7 Mb/s = 33 142.857 ns.
    let (_, notes) = record(&spec, 1);
    assert_eq!(notes.times(1, RecordedKind::WireReceived), [Instant::from_nanos(33_143)]);
}

#[test]
fn each_hop_stores_a_packet_whole_before_it_forwards() {
    let (_, notes) = record(&row(3).cbr(0, 3, PAYLOAD, ONCE), 1);
    for hop in 1..=3 {
        let expected = Instant::from_millis(6 * u64::from(hop));
        assert_eq!(notes.times(hop, RecordedKind::WireReceived), [expected]);
    }
}

#[test]
fn packets_in_a_queue_follow_each_other_without_a_gap() {
    let spec = (0..4).fold(row(1), |spec, _| spec.cbr(0, 1, PAYLOAD, ONCE));
    let (_, notes) = record(&spec, 1);
    assert_eq!(notes.times(1, RecordedKind::WireReceived), [6, 7, 8, 9].map(Instant::from_millis));
}

#[test]
fn the_directions_of_a_link_do_not_disturb_each_other() {
    let (_, notes) = record(&row(1).cbr(0, 1, PAYLOAD, ONCE).cbr(1, 0, PAYLOAD, ONCE), 1);
    assert_eq!(notes.times(1, RecordedKind::WireReceived), [Instant::from_millis(6)]);
    assert_eq!(notes.times(0, RecordedKind::WireReceived), [Instant::from_millis(6)]);
}

#[test]
fn extra_header_bytes_take_their_time_on_every_hop() {
    let spec = row(2).change(|spec| spec.extra_header_bytes = 1250).cbr(0, 2, PAYLOAD, ONCE);
    let (outcome, notes) = record(&spec, 1);
    assert_eq!(notes.times(2, RecordedKind::WireReceived), [Instant::from_millis(14)]);
    assert_eq!(outcome.flows[0].bytes_received, u64::from(PAYLOAD));
}

#[test]
fn a_full_queue_drops_the_newcomer() {
    let spec = wired(2).link(link(0, 1, 10_000_000, Duration::ZERO, 3));
    let spec = (0..6).fold(spec, |spec, _| spec.cbr(0, 1, PAYLOAD, ONCE));
    let (outcome, notes) = record(&spec, 1);
    // One is being sent, three wait.
    assert_eq!(outcome.nodes[0].drops, DropCounts { queue_full: 2, ..DropCounts::default() });
    assert_eq!(notes.times(0, RecordedKind::Dropped(DropReason::QueueFull)), [Instant::ZERO; 2]);
    let received: Vec<u64> = outcome.flows.iter().map(|flow| flow.segments_received).collect();
    assert_eq!(received, [1, 1, 1, 1, 0, 0]);
}

#[test]
fn the_sampled_queue_counts_packets_waiting_for_the_link() {
    // 100 packets a second into a link that carries 10.
    let spec = wired(2).link(link(0, 1, 100_000, Duration::ZERO, 50));
    let spec = spec.cbr(0, 1, PAYLOAD, Duration::from_millis(10)).seconds(3);
    let series = &simulate(&spec, 1).flows[0].series;
    let lengths: Vec<u32> = series.iter().map(|sample| sample.queue_packets).collect();
    assert_eq!(lengths, [50, 50, 50]);
}

#[test]
fn a_packet_travels_64_hops_and_no_further() {
    let outcome = simulate(&row(64).cbr(0, 64, PAYLOAD, ONCE), 1);
    assert_eq!(outcome.flows[0].segments_received, 1);
    let outcome = simulate(&row(65).cbr(0, 65, PAYLOAD, ONCE), 1);
    assert_eq!(outcome.flows[0].connected, Connected::Never);
    let dropped_at = outcome.nodes.iter().position(|node| node.drops.ttl == 1);
    assert_eq!(dropped_at, Some(64));
}

#[test]
fn damaged_packets_are_dropped_at_the_receiver() {
    let certain = ErrorModel::PacketLoss(Probability::ONE);
    let spec = row(2).change(|spec| spec.links[1].errors = [certain; 2]);
    let spec = spec.cbr(0, 2, PAYLOAD, Duration::from_millis(100)).until(1.0);
    let outcome = simulate(&spec, 1);
    assert_eq!(outcome.flows[0].connected, Connected::Never);
    assert_eq!(outcome.nodes[2].drops, DropCounts { link_error: 10, ..DropCounts::default() });
    assert_eq!(outcome.nodes[1].drops, DropCounts::default());
}

#[test]
fn errors_can_affect_one_direction_only() {
    let certain = ErrorModel::PacketLoss(Probability::ONE);
    for (from_a, from_b, lost) in [(certain, ErrorModel::None, [0, 10]), (ErrorModel::None, certain, [10, 0])]
    {
        let spec = row(1).change(|spec| spec.links[0].errors = [from_a, from_b]);
        let every = Duration::from_millis(100);
        let outcome =
            simulate(&spec.cbr(0, 1, PAYLOAD, every).until(1.0).cbr(1, 0, PAYLOAD, every).until(1.0), 1);
        let dropped = [0, 1].map(|node: usize| outcome.nodes[node].drops.link_error);
        assert_eq!(dropped, lost);
        let received = [1, 0].map(|flow: usize| 10 - outcome.flows[flow].segments_received);
        assert_eq!(received, lost, "and nothing else is");
    }
}

#[test]
fn bit_errors_lose_the_share_of_packets_that_their_length_makes() {
    // 10 000 bits at 1e-5: 1 − e^(−0.1) ≈ 9.5 % of 5000 packets; four standard deviations are ± 83.
    let ber = ErrorModel::BitErrors(Probability::new(1e-5).expect("a probability"));
    let spec = row(1).change(|spec| spec.links[0].errors = [ber; 2]);
    let spec = spec.cbr(0, 1, PAYLOAD, Duration::from_millis(2));
    let outcome = simulate(&spec, 1);
    let lost = outcome.nodes[1].drops.link_error;
    assert!(lost.abs_diff(476) <= 83, "{lost}");
}

#[test]
fn a_tcp_transfer_fills_a_link() {
    let spec = row(1).bulk(0, 1, support::ns2_tcp(50));
    // 1460 of 1500 bytes are payload; the handshake and slow start cost about a tenth of a second of ten.
    let goodput = simulate(&spec, 1).flows[0].goodput_bps();
    assert!((9.5e6..9.734e6).contains(&goodput), "{goodput}");
}

#[test]
fn reordered_packets_are_overtaken() {
    let late = Reordering { share: 0.2, extra_delay: Duration::from_millis(30) };
    let spec = row(1).change(|spec| spec.links[0].impairments.reordering = [Some(late), None]);
    let (outcome, notes) = record(&spec.cbr(0, 1, PAYLOAD, Duration::from_millis(2)).until(1.0), 1);
    let times = notes.times(1, RecordedKind::WireReceived);
    assert_eq!((times.len(), outcome.nodes[1].drops), (500, DropCounts::default()), "none is lost");
    let after = |at: Instant| (at.as_nanos() / 1_000_000) % 2;
    assert!(times.iter().all(|&at| after(at) == 0), "6 ms, or 36 ms, after it was sent");
    let mean = outcome.flows[0].data.delays.mean_s().expect("some arrived") * 1e3;
    assert!((10.0..14.0).contains(&mean), "a fifth takes 30 ms more: {mean} ms in the mean");
}

#[test]
fn jitter_delays_packets_and_keeps_their_order() {
    let jitter = Duration::from_millis(30);
    let spec = row(1).change(|spec| spec.links[0].impairments.jitter = [jitter, Duration::ZERO]);
    let even = simulate(&spec.clone().cbr(0, 1, PAYLOAD, Duration::from_millis(2)).until(1.0), 1);
    let mean = even.flows[0].data.delays.mean_s().expect("all arrived") * 1e3;
    // Each waits for the ones in front of it: longer than 15 ms in the mean, beside the 6 of the link.
    assert!((23.0..34.0).contains(&mean), "{mean} ms in the mean");
    let transfer = simulate(&spec.bulk(0, 1, support::ns2_tcp(10)), 1);
    assert_eq!(transfer.flows[0].retransmissions, 0, "TCP sees nothing out of order");
    assert!(transfer.flows[0].segments_received > 1000);
}

#[test]
fn a_policer_limits_one_direction() {
    let policer = Policer { rate_bps: 1_000_000, burst_bytes: 12_500 };
    let spec = row(1).change(|spec| spec.links[0].impairments.policer = [Some(policer), None]);
    // 5 Mb/s each way for a second: ten packets at once, then a fifth of them.
    let every = Duration::from_millis(2);
    let outcome =
        simulate(&spec.cbr(0, 1, PAYLOAD, every).until(1.0).cbr(1, 0, PAYLOAD, every).until(1.0), 1);
    assert_eq!(outcome.nodes[0].drops, DropCounts { policed: 500 - 10 - 99, ..DropCounts::default() });
    assert_eq!(
        [0, 1].map(|flow: usize| outcome.flows[flow].segments_received),
        [109, 497],
        "three are under way at the end"
    );
}

#[test]
fn a_link_can_change_its_rate() {
    let rates = vec![(Instant::from_millis(10), 1_000_000), (Instant::from_millis(50), 10_000_000)];
    let spec = row(1).change(|spec| spec.links[0].impairments.rates = rates);
    let sent = [0.0, 0.010, 0.049, 0.060];
    let spec = sent.into_iter().fold(spec, |spec, at| spec.cbr(0, 1, PAYLOAD, ONCE).from(at));
    let (_, notes) = record(&spec, 1);
    assert_eq!(notes.times(1, RecordedKind::WireReceived), [6, 25, 64, 66].map(Instant::from_millis));
}

#[test]
fn a_link_can_change_its_delay() {
    // 5 ms, from 10 ms on 50 ms, and from 50 ms on 1 ms. A packet takes 1 ms to leave.
    let ms = Duration::from_millis;
    let delays = vec![(Instant::from_millis(10), ms(50)), (Instant::from_millis(50), ms(1))];
    let spec = row(1).change(|spec| spec.links[0].impairments.delays = delays);
    let sent = [0.0, 0.008, 0.009, 0.048, 0.049, 0.060];
    let flows = |spec| sent.into_iter().fold(spec, |spec: Spec, at| spec.cbr(0, 1, PAYLOAD, ONCE).from(at));
    let (outcome, notes) = record(&flows(spec.clone()), 1);
    // Those that have left at 9, 10, 49, 50 and 61 ms: that at 50 ms overtakes the two before it.
    let expected = [6, 14, 51, 60, 62, 99].map(Instant::from_millis);
    assert_eq!(notes.times(1, RecordedKind::WireReceived), expected);
    assert!(outcome.flows.iter().all(|flow| flow.segments_received == 1));
    // Both directions change.
    let back = spec.cbr(1, 0, PAYLOAD, ONCE).from(0.020);
    assert_eq!(record(&back, 1).1.times(0, RecordedKind::WireReceived), [Instant::from_millis(71)]);
}

#[test]
fn packets_overtake_those_in_flight_when_the_delay_falls() {
    let delays = vec![(Instant::from_millis(500), Duration::ZERO)];
    let spec = row(1).change(|spec| {
        spec.links[0].delay = Duration::from_millis(100);
        spec.links[0].impairments.delays = delays;
    });
    let (_, notes) = record(&spec.cbr(0, 1, PAYLOAD, Duration::from_millis(2)).until(1.0), 1);
    let times = notes.times(1, RecordedKind::WireReceived);
    assert_eq!(times.len(), 500, "none is lost");
    // Those that left from 401 to 499 ms arrive from 501 to 599 ms, and so do those that leave in that time.
    let between = |from, to| {
        let within = Instant::from_millis(from)..Instant::from_millis(to);
        times.iter().filter(|at| within.contains(at)).count()
    };
    assert_eq!([between(401, 501), between(501, 600), between(600, 700)], [50, 100, 50]);
}

#[test]
fn a_transfer_survives_longer_and_shorter_paths() {
    let delays =
        (1..20).map(|n| (Instant::from_secs(n), Duration::from_millis(if n % 2 == 1 { 80 } else { 20 })));
    let spec = row(1).change(|spec| spec.links[0].impairments.delays = delays.collect());
    let spec = spec.bulk(0, 1, hopline_transport::tcp::Config::linux()).seconds(20);
    let outcome = simulate(&spec, 1);
    assert!(outcome.flows[0].bytes_received > 10_000_000, "{}", outcome.flows[0].bytes_received);
    assert_eq!(outcome.fingerprint, simulate(&spec, 1).fingerprint);
}

#[test]
fn packets_follow_a_trace_of_rates_through_its_stops() {
    // 10 Mb/s for 1.5 ms, then a stop of 2.5 ms: packets of 1 ms each.
    let rates = vec![(Duration::ZERO, 10_000_000), (Duration::from_micros(1500), 0)];
    let trace = RateTrace::new(rates, Duration::from_millis(4), Duration::ZERO).map(Arc::new);
    let spec = (0..4).fold(row(1), |spec, _| spec.cbr(0, 1, PAYLOAD, ONCE)).cbr(1, 0, PAYLOAD, ONCE);
    let (_, notes) = record(&spec.change(|spec| spec.links[0].impairments.rate_traces[0] = trace), 1);
    // The second packet is half sent when the link stops.
    let expected = [1_000, 4_500, 5_500, 9_000].map(|us| Instant::from_nanos(1000 * (5_000 + us)));
    assert_eq!(notes.times(1, RecordedKind::WireReceived), expected);
    assert_eq!(
        notes.times(0, RecordedKind::WireReceived),
        [Instant::from_millis(6)],
        "the other direction keeps its rate"
    );
}
