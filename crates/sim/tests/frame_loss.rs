//! Frames lost on their way from one radio to another: by name of the pair, and by noise at each rate of 802.11a.

use crate::support::recorder::{RecordedKind, record};
use crate::support::{SpecBuilder, disk, standing};
use hopline_core::{Duration, NodeId};
use hopline_radio::mac::{self, config::AckPolicy};
use hopline_radio::phy::awgn::frame_error_rate;
use hopline_radio::phy::errors::{ErrorModel, GilbertPackets, Probability};
use hopline_radio::phy::propagation::Propagation;
use hopline_radio::phy::{self, reception::ReceptionModel};
use hopline_radio::rate::Rate;
use hopline_sim::spec::{LossSpec, RadioSpec};
use hopline_sim::{Outcome, Spec, simulate};

const EVERY: Duration = Duration::from_millis(2);

const fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("a probability")
}

fn loss(from: u32, to: u32, errors: ErrorModel) -> LossSpec {
    LossSpec { from: NodeId(from), to: NodeId(to), errors }
}

/// Three nodes that hear one another.
fn three(ack_policy: AckPolicy, losses: &[LossSpec]) -> Spec {
    let mac = mac::Config { ack_policy, ..mac::Config::dot11a() };
    let radio = RadioSpec { mac, losses: losses.to_vec(), ..disk(250.0) };
    standing(&[(0.0, 0.0), (10.0, 0.0), (0.0, 10.0)]).change(|spec| spec.radio = Some(radio))
}

/// Datagrams of a flow that were sent, and that arrived.
fn datagrams(outcome: &Outcome, flow: usize) -> (u64, u64) {
    let flow = &outcome.flows[flow];
    (flow.segments_sent, flow.segments_received)
}

#[test]
fn losses_affect_one_pair_in_one_direction() {
    let all = ErrorModel::PacketLoss(Probability::ONE);
    let spec = three(AckPolicy::NoAck, &[loss(0, 1, all)]);
    let spec = spec.cbr(0, 1, 500, EVERY).cbr(1, 0, 500, micros(3_100)).cbr(0, 2, 500, micros(5_300));
    let outcome = simulate(&spec.seconds(2), 1);
    let (sent, arrived) = datagrams(&outcome, 0);
    assert!(sent > 900 && arrived == 0, "{arrived} of {sent}");
    for flow in [1, 2] {
        let (sent, arrived) = datagrams(&outcome, flow);
        // Some meet a frame of another station in the air.
        assert!(arrived as f64 > 0.9 * sent as f64, "{flow}: {arrived} of {sent}");
    }
}

#[test]
fn a_lost_frame_is_retransmitted() {
    let third = ErrorModel::PacketLoss(probability(0.3));
    let spec = three(AckPolicy::Normal, &[loss(0, 1, third)]).cbr(0, 1, 500, EVERY).seconds(10);
    let (outcome, notes) = record(&spec, 1);
    let (first, again) = (
        notes.count(RecordedKind::DataSent { retry: false }),
        notes.count(RecordedKind::DataSent { retry: true }),
    );
    let share = again as f64 / (first + again) as f64;
    assert!((share - 0.3).abs() < 0.02, "{share}");
    // Node 2 overhears them all. The last may be in flight.
    assert!(
        notes.count(RecordedKind::AckSent).abs_diff(notes.times(1, RecordedKind::DataReceived).len()) <= 1
    );
    assert!(notes.times(2, RecordedKind::DataReceived).len().abs_diff(first + again) <= 1);
    let (sent, arrived) = datagrams(&outcome, 0);
    assert!(arrived + 5 >= sent, "{arrived} of {sent}");
}

#[test]
fn lost_acks_cost_repetitions_and_no_datagram() {
    let half = ErrorModel::PacketLoss(probability(0.5));
    let spec = three(AckPolicy::Normal, &[loss(1, 0, half)]).cbr(0, 1, 500, EVERY).seconds(10);
    let (outcome, notes) = record(&spec, 1);
    let again = notes.count(RecordedKind::DataSent { retry: true }) as f64;
    let all = notes.count(RecordedKind::DataSent { retry: false }) as f64 + again;
    assert!((again / all - 0.5).abs() < 0.02, "{}", again / all);
    let (sent, arrived) = datagrams(&outcome, 0);
    assert!(arrived + 5 >= sent, "{arrived} of {sent}");
}

#[test]
fn loss_bursts_have_their_rate_and_length() {
    let model = GilbertPackets {
        good_to_bad: probability(0.05),
        bad_to_good: probability(0.2),
        loss_good: Probability::ZERO,
        loss_bad: Probability::ONE,
    };
    let losses = [loss(0, 1, ErrorModel::GilbertPackets(model))];
    let spec = three(AckPolicy::NoAck, &losses).cbr(0, 1, 500, EVERY).seconds(100);
    let (_, notes) = record(&spec, 1);
    let sent = notes.times(0, RecordedKind::DataSent { retry: false });
    let arrived = notes.times(1, RecordedKind::DataReceived);
    let lost = 1.0 - arrived.len() as f64 / sent.len() as f64;
    assert!((lost / model.bad_share() - 1.0).abs() < 0.1, "{lost} {}", model.bad_share());
    // A frame each 2 ms: what is longer is a burst.
    let bursts = arrived.windows(2).filter(|pair| pair[1] - pair[0] > EVERY + EVERY / 2).count();
    let mean = (sent.len() - arrived.len()) as f64 / bursts as f64;
    assert!((mean / 5.0 - 1.0).abs() < 0.1, "{mean}");
}

#[test]
fn a_loss_that_no_frame_meets_changes_nothing() {
    let some = ErrorModel::PacketLoss(probability(0.1));
    let of = |losses: &[LossSpec]| {
        let mut spec = three(AckPolicy::NoAck, losses).cbr(0, 1, 500, EVERY);
        spec.radio.as_mut().expect("it is wireless").errors = some;
        simulate(&spec, 1).fingerprint
    };
    assert_eq!(of(&[]), of(&[loss(2, 0, some), loss(2, 1, some)]));
    assert_ne!(of(&[]), of(&[loss(0, 1, some)]));
}

/// 802.11a over free space with the noise of 20 MHz, locked onto from far below what 6 Mb/s needs.
fn noisy(rate: Rate, distance_m: f64) -> (Spec, f64) {
    let mut phy = phy::Config { reception: ReceptionModel::CumulativeSinr, ..phy::Config::wavelan() };
    phy.propagation = Propagation::FreeSpace;
    phy.radio.bandwidth_hz = 20e6;
    phy.radio.rx_threshold_w = phy.radio.noise_floor_w() / 10.0;
    phy.radio.cs_threshold_w = phy.radio.rx_threshold_w;
    let sinr = phy.propagation.received_w(&phy.radio, distance_m) / phy.radio.noise_floor_w();
    let mac = mac::Config { data_rate: rate, ack_policy: AckPolicy::NoAck, ..mac::Config::dot11a() };
    let radio = RadioSpec { phy, mac, ..disk(250.0) };
    (standing(&[(0.0, 0.0), (distance_m, 0.0)]).change(|spec| spec.radio = Some(radio)), sinr)
}

/// The distance at which so many frames of `bits` are lost.
fn distance_m(rate: Rate, bits: u64, lost: f64) -> f64 {
    let (mut near, mut far) = (1.0, 1e6);
    for _ in 0..60 {
        let middle = f64::sqrt(near * far);
        let (_, sinr) = noisy(rate, middle);
        if frame_error_rate(rate, sinr, bits) < lost { near = middle } else { far = middle }
    }
    near
}

#[test]
fn losses_by_noise_match_the_error_rate_of_each_rate() {
    // 1000 bytes, UDP 8, IP 20, LLC and SNAP 8, header 24, FCS 4.
    let bits = 8 * 1064;
    let mut farther = f64::INFINITY;
    let rates = [6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0];
    for mbps in rates {
        let rate = Rate::ALL.into_iter().find(|rate| rate.mbps() == mbps).expect("a rate of 802.11a");
        for expected in [0.5, 0.05] {
            let at = distance_m(rate, bits, expected);
            let (spec, _) = noisy(rate, at);
            let (sent, arrived) = datagrams(&simulate(&spec.cbr(0, 1, 1000, EVERY).seconds(10), 1), 0);
            let lost = 1.0 - arrived as f64 / sent as f64;
            // Four standard deviations.
            let margin = 4.0 * f64::sqrt(expected * (1.0 - expected) / sent as f64);
            assert!((lost - expected).abs() < margin, "{mbps} Mb/s at {at} m: {lost} {expected}");
            if expected == 0.05 && mbps != 9.0 {
                assert!(at < farther, "{mbps} Mb/s reaches {at} m");
                farther = at;
            }
        }
    }
}
