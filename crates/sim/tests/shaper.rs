//! A shaper in front of a wired link: rate, bursts, and a bottleneck in a home gateway.

use crate::support::recorder::{RecordedKind, record};
use crate::support::{SpecBuilder, link, wired};
use hopline_core::{Duration, Instant};
use hopline_queue::FqCoDelConfig;
use hopline_sim::outcome::DropCounts;
use hopline_sim::spec::Discipline;
use hopline_sim::spec::links::Shaper;
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp::Config;

/// Longer than any of these runs: a CBR flow that sends one packet.
const ONCE: Duration = Duration::from_secs(1000);
/// Length of a UDP payload that gives a packet of 1250 bytes: 10 ms at 1 Mb/s.
const PAYLOAD: u32 = 1222;
const MEGABIT: Shaper = Shaper { rate_bps: 1_000_000, burst_bytes: 0, overhead_bytes: 0, mpu_bytes: 0 };

/// A link of 1 Gb/s without a delay, with a shaper in the direction from node 0. A packet takes 10 us.
fn shaped(shaper: Shaper) -> Spec {
    let mut link = link(0, 1, 1_000_000_000, Duration::ZERO, 1000);
    link.impairments.shaper = [Some(shaper), None];
    wired(2).link(link)
}

/// Returns the microseconds at which `packets` packets arrive that are sent at each of `sent`.
fn arrivals_us(shaper: Shaper, sent: &[f64], packets: usize) -> Vec<u64> {
    let flows = sent.iter().flat_map(|at| core::iter::repeat_n(*at, packets));
    let spec = flows.fold(shaped(shaper), |spec, at| spec.cbr(0, 1, PAYLOAD, ONCE).from(at));
    let (_, notes) = record(&spec, 1);
    notes.times(1, RecordedKind::WireReceived).iter().map(|at| at.as_nanos() / 1000).collect()
}

#[test]
fn packets_leave_at_the_rate_and_an_idle_link_earns_no_more_than_a_burst() {
    assert_eq!(arrivals_us(MEGABIT, &[0.0, 1.0], 3), [10, 10_010, 20_010, 1_000_010, 1_010_010, 1_020_010]);
    // 2500 bytes of credit: two packets, and the one that overdraws it.
    let burst = Shaper { burst_bytes: 2500, ..MEGABIT };
    let of_burst = |at: u64| [10, 20, 30, 10_010, 20_010].map(|after| at + after);
    assert_eq!(arrivals_us(burst, &[0.0, 5.0], 5), [of_burst(0), of_burst(5_000_000)].concat());
}

#[test]
fn overhead_and_a_least_length_count() {
    let framed = Shaper { overhead_bytes: 1250, ..MEGABIT };
    assert_eq!(arrivals_us(framed, &[0.0], 3), [10, 20_010, 40_010]);
    let long = Shaper { mpu_bytes: 5000, ..framed };
    assert_eq!(arrivals_us(long, &[0.0], 3), [10, 40_010, 80_010]);
}

#[test]
fn the_rate_is_exact_over_a_long_time() {
    // 3 Mb/s offered for 1000 s. A packet of 1250 bytes takes 10 000 / 0.7 us of the shaper's time.
    let shaper = Shaper { rate_bps: 700_000, ..MEGABIT };
    let spec = shaped(shaper).cbr(0, 1, PAYLOAD, Duration::from_micros(3333)).seconds(1000);
    let outcome = simulate(&spec, 1);
    assert_eq!(outcome.flows[0].segments_received, 70_000);
}

#[test]
fn the_other_direction_is_not_shaped() {
    let every = Duration::from_millis(2);
    let spec = shaped(MEGABIT).cbr(0, 1, PAYLOAD, every).until(1.0).cbr(1, 0, PAYLOAD, every).until(1.0);
    let outcome = simulate(&spec.seconds(1), 1);
    assert_eq!([0, 1].map(|flow: usize| outcome.flows[flow].segments_received), [100, 500]);
}

#[test]
fn packets_beyond_the_rate_wait_and_a_full_queue_drops_them() {
    let mut spec = shaped(MEGABIT).cbr(0, 1, PAYLOAD, Duration::from_millis(1)).until(2.0).seconds(20);
    spec.links[0].queue.capacity = 100.try_into().expect("not 0");
    let (outcome, notes) = record(&spec, 1);
    // 2000 are sent, and 200 leave in these 2 s; 100 wait then.
    let drops = outcome.nodes[0].drops;
    assert_eq!(drops, DropCounts { queue_full: drops.queue_full, ..DropCounts::default() });
    assert!(drops.queue_full.abs_diff(1700) <= 1, "{}", drops.queue_full);
    let times = notes.times(1, RecordedKind::WireReceived);
    assert_eq!(times.len() as u64, 2000 - drops.queue_full);
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) == Duration::from_millis(10)));
}

/// A sender behind a home gateway and a modem with 10 Mb/s and a queue of 1000 packets: four transfers, and a probe each
/// 10 ms. The gateway has FQ-CoDel, and perhaps a shaper.
fn home(shaper: Option<Shaper>) -> Spec {
    let mut to_modem = link(1, 2, 1_000_000_000, Duration::ZERO, 10_000);
    to_modem.queue.discipline = Discipline::FqCoDel(FqCoDelConfig::RFC8290);
    to_modem.impairments.shaper = [shaper, None];
    let network = wired(4).link(link(0, 1, 1_000_000_000, Duration::ZERO, 10_000)).link(to_modem).link(link(
        2,
        3,
        10_000_000,
        Duration::from_millis(10),
        1000,
    ));
    let network = (0..4).fold(network, |network, _| network.bulk(0, 3, Config::linux()));
    network.cbr(0, 3, 160, Duration::from_millis(10)).warmup(5.0).seconds(30)
}

/// Returns the median and the 95 % quantile of the probes' delays, in milliseconds.
fn delays_ms(outcome: &Outcome) -> [f64; 2] {
    let delays = &outcome.flows.last().expect("the probes").data.delays;
    [0.5, 0.95].map(|quantile| 1e3 * delays.quantile(quantile).expect("probes arrived").as_secs_f64())
}

#[test]
fn a_shaper_below_the_rate_of_a_modem_keeps_its_queue_empty() {
    let shaper = Shaper { rate_bps: 9_500_000, ..MEGABIT };
    let [without, with] = [None, Some(shaper)].map(|shaper| simulate(&home(shaper), 1));
    for outcome in [&without, &with] {
        let bytes: u64 = outcome.flows[..4].iter().map(|flow| flow.bytes_received).sum();
        println!(
            "{:.1?} ms, {:.2} Mb/s, modem: {} packets",
            delays_ms(outcome),
            8e-6 * bytes as f64 / 25.0,
            outcome.nodes[2].queues.max_packets
        );
    }
    assert!(delays_ms(&without)[0] > 500.0 && without.nodes[2].queues.max_packets == 1000);
    assert!(delays_ms(&with)[1] < 15.0, "{:?} ms", delays_ms(&with));
    assert!(with.nodes[2].queues.max_packets <= 1, "{} packets", with.nodes[2].queues.max_packets);
    let bytes: u64 = with.flows[..4].iter().map(|flow| flow.bytes_received).sum();
    assert!(bytes as f64 * 8.0 / 25.0 > 0.9 * 9.5e6, "{bytes} bytes");
}

#[test]
fn a_shaped_link_is_deterministic() {
    let spec =
        home(Some(Shaper { rate_bps: 9_500_000, burst_bytes: 5000, ..MEGABIT })).warmup(0.0).seconds(5);
    assert_eq!(simulate(&spec, 1).fingerprint, simulate(&spec, 1).fingerprint);
}

#[test]
fn a_packet_that_arrives_while_the_shaper_waits_does_not_leave_early() {
    let spec = [0.0, 0.001, 0.009, 0.0101]
        .into_iter()
        .fold(shaped(MEGABIT), |spec, at| spec.cbr(0, 1, PAYLOAD, ONCE).from(at));
    let (_, notes) = record(&spec, 1);
    let expected = [10, 10_010, 20_010, 30_010].map(|us: u64| Instant::from_nanos(1000 * us));
    assert_eq!(notes.times(1, RecordedKind::WireReceived), expected);
}
