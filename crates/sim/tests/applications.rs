//! On-off sources, requests and responses: when they speak, what they count, how they end.

use crate::support::{SpecBuilder, chain, exchange, link, ns2_tcp, standing, wired};
use core::num::NonZeroU64;
use hopline_core::{Duration, Instant};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::outcome::Connected;
use hopline_sim::spec::{ExchangeSpec, RandomVariable, RecordedPacket, Traffic, Transport};
use hopline_sim::{NoTrace, Spec, World, simulate};
use hopline_transport::tcp;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Two nodes, one link of 10 Mb/s and 50 ms.
fn long_wire() -> Spec {
    wired(2).link(link(0, 1, 10_000_000, ms(50), 50))
}

/// Pages and pauses of every size.
fn web_browsing(think_s: f64) -> ExchangeSpec {
    ExchangeSpec {
        request_bytes: RandomVariable::Uniform { min: 200.0, max: 2000.0 },
        response_bytes: RandomVariable::BoundedPareto { min: 500.0, max: 100_000.0, shape: 1.1 },
        think_s: RandomVariable::Exponential { mean: think_s },
        transactions: None,
    }
}

#[test]
fn bursts_have_their_rate_and_their_share_of_the_time() {
    let spec = long_wire().on_off(0, 1, 200, ms(10), 0.5, 1.5).seconds(400);
    let flow = simulate(&spec, 1).flows.remove(0);
    // A quarter of 40 000 packets; some 200 cycles, each with a deviation of half its length.
    assert!((9_000..11_500).contains(&flow.segments_sent), "{}", flow.segments_sent);
    let per_second: Vec<u64> =
        flow.series.windows(2).map(|w| w[1].bytes_received - w[0].bytes_received).collect();
    assert!(per_second.iter().all(|&bytes| bytes <= 101 * 200), "never above the rate");
    assert!(per_second.contains(&0), "silent for seconds");
}

#[test]
fn bursts_stop_and_a_stopped_source_is_silent() {
    let spec = long_wire().on_off(0, 1, 200, ms(10), 0.5, 0.5).from(1.0).until(3.0).seconds(10);
    let flow = simulate(&spec, 1).flows.remove(0);
    assert_eq!(flow.active_time, Duration::from_secs(2));
    assert!(flow.data.first_sent >= Some(Instant::from_secs(1)));
    assert!(flow.data.last_sent < Some(Instant::from_secs(3)));
    assert!((20..=200).contains(&flow.segments_sent), "{}", flow.segments_sent);
}

#[test]
fn a_response_takes_a_handshake_a_request_and_itself() {
    // 100 ms there and back for the handshake, 100 ms for the first request and its answer, less than 1 ms of sending.
    let spec = long_wire().exchange(0, 1, ns2_tcp(20), exchange(300.0, 1000.0, 1.0, 3)).seconds(10);
    let flow = simulate(&spec, 1).flows.remove(0);
    let seconds = |time: Option<Duration>| time.expect("responses came").as_secs_f64();
    assert_eq!((flow.requests, flow.responses.count()), (3, 3));
    assert!((0.200..0.203).contains(&seconds(flow.responses.max())), "{:?}", flow.responses.max());
    assert!((0.100..0.103).contains(&seconds(flow.responses.min())), "{:?}", flow.responses.min());
    // Two pauses of 1 s between three transactions.
    assert!((2.400..2.408).contains(&seconds(flow.completion)), "{:?}", flow.completion);
    assert_eq!(flow.completion, Some(flow.active_time));
    assert_eq!(flow.bytes_received, 3000);
}

#[test]
fn segments_of_requests_and_responses_both_count_and_only_responses_are_goodput() {
    // 2 segments a request, 4 a response.
    let spec = long_wire().exchange(0, 1, ns2_tcp(20), exchange(2000.0, 5000.0, 0.0, 5)).seconds(20);
    let flow = simulate(&spec, 1).flows.remove(0);
    assert_eq!((flow.segments_sent, flow.segments_received, flow.retransmissions), (30, 30, 0));
    assert_eq!(flow.bytes_received, 25_000);
    assert_eq!(flow.goodput_bps(), 200_000.0 / flow.active_time.as_secs_f64());
    assert!(flow.data.received_bytes > 25_000 && (10_000..25_000).contains(&flow.reverse.received_bytes));
}

#[test]
fn a_connection_whose_last_response_came_is_closed_by_both_ends() {
    let spec = chain(2).exchange(0, 2, ns2_tcp(8), exchange(100.0, 3000.0, 0.1, 4)).seconds(60);
    let mut world = World::new(&spec, 1, NoTrace);
    world.run_until(Instant::from_secs(60));
    assert_eq!(world.packets(), 0);
    let flow = world.finish().0.flows.remove(0);
    assert_eq!((flow.responses.count(), flow.bytes_received), (4, 12_000));
    // SYN, 4 requests, acknowledgments of 12 segments at most, FIN, and the ACK of the other FIN.
    assert!(flow.reverse.sent <= 20, "{}", flow.reverse.sent);
    assert!(flow.reverse.last_sent < Some(Instant::from_secs(5)), "{:?}", flow.reverse.last_sent);
}

#[test]
fn a_stopped_exchange_is_silent_and_its_unfinished_response_does_not_count() {
    // The second request leaves at 1.2 s, and its response is 100 ms away when the client stops.
    let spec =
        long_wire().exchange(0, 1, ns2_tcp(20), exchange(300.0, 1000.0, 1.0, 0)).until(1.25).seconds(10);
    let flow = simulate(&spec, 1).flows.remove(0);
    assert_eq!((flow.requests, flow.responses.count(), flow.bytes_received), (2, 1, 1000));
    assert_eq!((flow.completion, flow.active_time), (None, ms(1250)));
    assert!(flow.reverse.last_sent < Some(Instant::from_millis(1400)), "{:?}", flow.reverse.last_sent);
}

#[test]
fn a_run_that_ends_during_a_response_counts_received_bytes() {
    let spec = long_wire().exchange(0, 1, ns2_tcp(20), exchange(100.0, 50_000_000.0, 0.0, 0)).seconds(5);
    let flow = simulate(&spec, 1).flows.remove(0);
    assert_eq!((flow.requests, flow.responses.count()), (1, 0));
    assert_eq!(flow.segments_received, 1 + flow.bytes_received.div_ceil(1460));
    assert!(flow.bytes_received > 500_000);
}

#[test]
fn losses_delay_responses_without_losing_any() {
    let errors = ErrorModel::PacketLoss(Probability::new(0.05).expect("a probability"));
    let clean =
        long_wire().exchange(0, 1, tcp::Config::modern(), exchange(500.0, 20_000.0, 0.1, 50)).seconds(300);
    let lossy = clean.clone().change(|spec| spec.links[0].errors = [errors; 2]);
    let [clean, lossy] = [clean, lossy].map(|spec| simulate(&spec, 1).flows.remove(0));
    assert_eq!((clean.responses.count(), lossy.responses.count()), (50, 50));
    assert_eq!((clean.bytes_received, lossy.bytes_received), (1_000_000, 1_000_000));
    assert!(clean.retransmissions == 0 && lossy.retransmissions > 20, "{}", lossy.retransmissions);
    assert!(lossy.responses.mean_s() > clean.responses.mean_s());
    assert!(lossy.segments_received == clean.segments_received);
}

#[test]
fn a_server_out_of_reach_never_answers() {
    let spec =
        standing(&[(0.0, 0.0), (1000.0, 0.0)]).exchange(0, 1, ns2_tcp(8), web_browsing(1.0)).seconds(30);
    let flow = simulate(&spec, 1).flows.remove(0);
    assert_eq!((flow.connected, flow.requests, flow.responses.count()), (Connected::Never, 1, 0));
    assert_eq!((flow.segments_sent, flow.segments_received), (0, 0));
}

#[test]
fn random_draws_are_per_flow() {
    let alone = long_wire().exchange(0, 1, ns2_tcp(20), web_browsing(0.5)).seconds(60);
    // A second pair of nodes, with traffic of every kind.
    let beside = alone
        .clone()
        .wired_node()
        .wired_node()
        .link(link(2, 3, 1_000_000, ms(5), 20))
        .on_off(2, 3, 500, ms(7), 0.3, 0.2)
        .exchange(3, 2, ns2_tcp(4), web_browsing(0.2));
    let (alone, beside) = (simulate(&alone, 1), simulate(&beside, 1));
    assert_eq!(alone.flows[0], beside.flows[0]);
    assert!(beside.flows.iter().all(|flow| flow.bytes_received > 10_000));
    assert!(alone.flows[0].responses.count() > 20);
}

#[test]
fn page_sizes_do_not_depend_on_transfer_times() {
    // Half the rate: the same sizes in the same order, later.
    let sizes = |rate_bps: u64| {
        let spec = wired(2).link(link(0, 1, rate_bps, ms(1), 50));
        let spec = spec.exchange(
            0,
            1,
            ns2_tcp(20),
            ExchangeSpec { transactions: NonZeroU64::new(20), ..web_browsing(0.1) },
        );
        simulate(&spec.seconds(100), 1).flows.remove(0)
    };
    let (fast, slow) = (sizes(2_000_000), sizes(1_000_000));
    assert_eq!(fast.bytes_received, slow.bytes_received);
    assert!(fast.completion < slow.completion && slow.completion.is_some());
}

/// Packets at milliseconds since the start of the flow, with so many bytes.
fn recorded(over: Option<Transport>, packets: &[(u64, u64)]) -> Traffic {
    let packet = |&(at, bytes): &(u64, u64)| RecordedPacket { at: ms(at), bytes };
    Traffic::Recorded { over, packets: packets.iter().map(packet).collect() }
}

#[test]
fn recorded_datagrams_keep_their_times_and_sizes() {
    let packets = [(250, 100), (250, 1400), (1000, 1), (4000, 500)];
    let spec = long_wire().flow(0, 1, recorded(None, &packets)).from(2.0).seconds(10);
    let flow = simulate(&spec, 1).flows.remove(0);
    assert_eq!((flow.segments_sent, flow.segments_received, flow.bytes_received), (4, 4, 2001));
    assert_eq!(flow.data.first_sent, Some(Instant::from_millis(2250)));
    assert_eq!(flow.data.last_sent, Some(Instant::from_millis(6000)));
    let at_the_end_of_second = |second: usize| flow.series[second - 1].bytes_received;
    assert_eq!([2, 3, 4, 6, 7].map(at_the_end_of_second), [0, 1500, 1501, 1501, 2001]);
}

#[test]
fn a_recording_over_a_transport_is_replayed_and_closed() {
    let packets = [(0, 3000), (500, 10), (2000, 100_000)];
    let spec = long_wire().flow(0, 1, recorded(Some(ns2_tcp(20).into()), &packets)).seconds(20);
    let flow = simulate(&spec, 1).flows.remove(0);
    assert_eq!(flow.bytes_received, 103_010);
    let completion = flow.completion.expect("it came to its end").as_secs_f64();
    assert!((2.1..6.0).contains(&completion), "{completion}");
    assert_eq!(flow.series[0].bytes_received, 3010);
    assert_eq!(flow.segments_received, flow.segments_sent - flow.retransmissions);
    assert!(flow.data.last_sent < Some(Instant::from_secs(8)), "{:?}", flow.data.last_sent);
}

#[test]
fn a_stopped_recording_is_silent() {
    let packets = [(0, 100), (1000, 100), (2000, 100), (3000, 100)];
    for over in [None, Some(ns2_tcp(20).into())] {
        let spec = long_wire().flow(0, 1, recorded(over, &packets)).until(1.5).seconds(10);
        let flow = simulate(&spec, 1).flows.remove(0);
        assert_eq!((flow.bytes_received, flow.completion), (200, None));
        assert_eq!(flow.active_time, ms(1500));
        assert!(flow.data.last_sent < Some(Instant::from_millis(1600)), "{:?}", flow.data.last_sent);
    }
}
