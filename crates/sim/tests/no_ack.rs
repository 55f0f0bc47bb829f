//! Cost of the MAC's acknowledgments, against the airtime worked out by hand: one saturated sender of UDP.

use crate::support::{SpecBuilder, disk, standing};
use hopline_core::Duration;
use hopline_radio::Rate;
use hopline_radio::mac::{self, config::AckPolicy};
use hopline_sim::simulate;
use hopline_sim::spec::RadioSpec;

/// 802.11a in µs (IEEE 802.11-2020 Table 17-21): DIFS, the mean of a backoff from 0 to 15 slots of 9 µs, SIFS.
const DIFS: f64 = 34.0;
const BACKOFF: f64 = 7.5 * 9.0;
const SIFS: f64 = 16.0;
/// UDP payload, in bytes, of a packet of 1500.
const PAYLOAD: u32 = 1472;
/// A data frame with it: three addresses 24, LLC and SNAP 8, FCS 4.
const FRAME: u32 = 1500 + 24 + 8 + 4;
const ACK: u32 = 14;

/// A rate, and the one at which it is acknowledged if the basic rates are 6, 12 and 24 Mb/s; each with the bits of a
/// symbol (Table 17-4).
struct Case {
    data: (Rate, u32),
    control: (Rate, u32),
}

const CASES: [Case; 3] = [
    Case { data: (Rate::Ofdm54, 216), control: (Rate::Ofdm24, 96) },
    Case { data: (Rate::Ofdm24, 96), control: (Rate::Ofdm24, 96) },
    Case { data: (Rate::Ofdm6, 24), control: (Rate::Ofdm6, 24) },
];

/// Preamble and SIGNAL 20 µs, then symbols of 4 µs for SERVICE (16 bits), the frame, and the tail (6 bits).
fn airtime_us(bytes: u32, bits_each_symbol: u32) -> f64 {
    f64::from(20 + 4 * (16 + 8 * bytes + 6).div_ceil(bits_each_symbol))
}

/// Returns the payload carried over the air, in bits per second, by the formula.
fn expected_bps(case: &Case, policy: AckPolicy) -> f64 {
    let answer = match policy {
        AckPolicy::NoAck => 0.0,
        _ => SIFS + airtime_us(ACK, case.control.1),
    };
    let cycle_us = DIFS + BACKOFF + airtime_us(FRAME, case.data.1) + answer;
    f64::from(8 * PAYLOAD) * 1e6 / cycle_us
}

/// The same in bursts of this many microseconds: frames, each with its answer, SIFS apart.
fn expected_in_bursts_bps(case: &Case, policy: AckPolicy, limit_us: f64) -> f64 {
    let answer = match policy {
        AckPolicy::NoAck => 0.0,
        _ => SIFS + airtime_us(ACK, case.control.1),
    };
    let exchange_us = airtime_us(FRAME, case.data.1) + answer;
    let frames = ((limit_us + SIFS) / (exchange_us + SIFS)).floor().max(1.0);
    let cycle_us = DIFS + BACKOFF + frames * (exchange_us + SIFS) - SIFS;
    frames * f64::from(8 * PAYLOAD) * 1e6 / cycle_us
}

fn measured_bps(case: &Case, ack_policy: AckPolicy) -> f64 {
    measured_in_bursts_bps(case, ack_policy, None)
}

fn measured_in_bursts_bps(case: &Case, ack_policy: AckPolicy, burst_limit: Option<Duration>) -> f64 {
    let mac = mac::Config {
        data_rate: case.data.0,
        basic_rate: case.control.0,
        ack_policy,
        burst_limit,
        ..mac::Config::dot11a()
    };
    let radio = RadioSpec { mac, ..disk(250.0) };
    // More than goes without backoff at 54 Mb/s.
    let saturating = Duration::from_micros(200);
    let spec = standing(&[(0.0, 0.0), (10.0, 0.0)])
        .change(|spec| spec.radio = Some(radio))
        .cbr(0, 1, PAYLOAD, saturating)
        .seconds(5);
    simulate(&spec, 1).flows[0].goodput_bps()
}

#[test]
fn airtimes_of_frames_are_those_of_the_digest() {
    assert_eq!((airtime_us(FRAME, 216), airtime_us(ACK, 96)), (248.0, 28.0));
    for Case { data: (rate, bits), .. } in CASES {
        let airtime = rate.airtime(FRAME, hopline_radio::rate::Preamble::Long);
        assert_eq!(airtime.as_micros() as f64, airtime_us(FRAME, bits));
    }
}

#[test]
fn airtimes_with_and_without_acks_match_the_formula() {
    let within = |measured: f64, expected: f64| (measured / expected - 1.0).abs() < 0.02;
    for case in CASES {
        let rate = case.data.0.mbps();
        let [normal, no_ack] = [AckPolicy::Normal, AckPolicy::NoAck].map(|policy| {
            let (measured, expected) = (measured_bps(&case, policy), expected_bps(&case, policy));
            assert!(within(measured, expected), "{rate} {policy:?}: {measured} {expected}");
            (measured, expected)
        });
        let (measured, expected) = (no_ack.0 / normal.0, no_ack.1 / normal.1);
        assert!(within(measured, expected), "{rate}: {measured} {expected}");
    }
}

#[test]
fn airtimes_of_bursts_match_the_formula() {
    for case in CASES {
        for policy in [AckPolicy::Normal, AckPolicy::NoAck] {
            for limit_us in [100, 1500, 3000, 10_000] {
                let limit = Duration::from_micros(limit_us);
                let measured = measured_in_bursts_bps(&case, policy, Some(limit));
                let expected = expected_in_bursts_bps(&case, policy, limit_us as f64);
                let rate = case.data.0.mbps();
                assert!(
                    (measured / expected - 1.0).abs() < 0.02,
                    "{rate} {policy:?} {limit_us} µs: {measured} {expected}"
                );
            }
        }
    }
}

/// Both always have a datagram, and draw from 0 to 15: about one frame in sixteen goes out in the slot of the other's.
#[test]
fn losses_without_acks_are_collisions() {
    let mac = mac::Config { ack_policy: AckPolicy::NoAck, ..mac::Config::dot11a() };
    let radio = RadioSpec { mac, ..disk(250.0) };
    let every = Duration::from_micros(200);
    let spec = standing(&[(0.0, 0.0), (10.0, 0.0)])
        .change(|spec| spec.radio = Some(radio))
        .cbr(0, 1, PAYLOAD, every)
        .cbr(1, 0, PAYLOAD, every)
        .seconds(10);
    let outcome = simulate(&spec, 1);
    let frames = outcome.nodes.iter().map(|node| node.data_frames);
    let (sent, collided) = frames.fold((0, 0), |(s, c), frames| (s + frames.sent, c + frames.collided));
    let received: u64 = outcome.flows.iter().map(|flow| flow.segments_received).sum();
    // The last of each may be in the air.
    assert!(sent.abs_diff(received + collided) <= 2, "{sent} {received} {collided}");
    let share = collided as f64 / sent as f64;
    assert!((0.08..0.14).contains(&share), "{share}");
    assert_eq!(outcome.nodes[0].ack_frames.sent, 0);
}
