//! Block acknowledgment in a network: losses that no layer above the MAC notices, and the gain of blocks.

use crate::support::recorder::{RecordedKind, record};
use crate::support::{SpecBuilder, chain, disk, ns2_tcp, standing};
use hopline_core::Duration;
use hopline_radio::mac::{
    self,
    config::{AckPolicy, BlockAckSetup},
};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::outcome::DropCounts;
use hopline_sim::spec::RadioSpec;
use hopline_sim::{Outcome, Spec, simulate};
use hopline_transport::tcp;

/// Less than a packet of 1500 bytes takes at 54 Mb/s.
const SATURATING: Duration = Duration::from_micros(200);

fn with_block_ack(mac: mac::Config) -> mac::Config {
    mac::Config { ack_policy: AckPolicy::block_ack(), ..mac }
}

fn with_addba(mac: mac::Config) -> mac::Config {
    mac::Config { block_ack_setup: BlockAckSetup::Addba, ..with_block_ack(mac) }
}

/// Nodes that hear their neighbours only.
fn network(hops: u32, mac: mac::Config) -> Spec {
    let radio = RadioSpec { mac, ..disk(250.0) };
    chain(hops).change(|spec| spec.radio = Some(radio))
}

/// Returns a chain in which one in five frames is lost, and no MSDU is ever given up.
fn lossy(hops: u32, mac: mac::Config) -> Spec {
    let patient = mac::Config { short_retry_limit: 60, long_retry_limit: 60, ..mac };
    let loss = ErrorModel::PacketLoss(Probability::new(0.2).expect("a probability"));
    network(hops, patient).radio(|radio| radio.errors = loss)
}

/// Returns a TCP configuration that times out so late that only a segment that never arrives causes it.
fn patient_tcp() -> tcp::Config {
    let config = ns2_tcp(32);
    let rto = config.rto().with_min(Duration::from_secs(4)).with_initial(Duration::from_secs(4));
    config.with_rto(rto)
}

fn lost(outcome: &Outcome) -> DropCounts {
    outcome.nodes.iter().fold(DropCounts::default(), |sum, node| DropCounts {
        queue_full: sum.queue_full + node.drops.queue_full,
        retry_limit: sum.retry_limit + node.drops.retry_limit,
        ..sum
    })
}

#[test]
fn block_ack_hides_20_percent_loss_from_tcp() {
    for mac in [mac::Config::dot11b(), mac::Config::dot11a(), mac::Config::ns2_wavelan()] {
        let spec = lossy(1, with_block_ack(mac)).transfer(0, 1, patient_tcp(), 2_000_000).seconds(120);
        let outcome = simulate(&spec, 1);
        let flow = &outcome.flows[0];
        assert_eq!(flow.bytes_received, 2_000_000);
        // Out of order, segments would cause duplicate ACKs, and these retransmissions.
        assert_eq!((flow.retransmissions, flow.timeouts), (0, 0));
        assert_eq!(lost(&outcome), DropCounts::default());
    }
}

#[test]
fn datagrams_cross_three_lossy_hops_and_none_is_lost() {
    let every = Duration::from_millis(20);
    let spec = lossy(3, with_block_ack(mac::Config::dot11b())).cbr(0, 3, 1000, every).seconds(20);
    let outcome = simulate(&spec, 1);
    let flow = &outcome.flows[0];
    assert_eq!(lost(&outcome), DropCounts::default());
    // All but the last few, which are on their way when the run ends.
    assert!(flow.segments_received + 12 >= flow.segments_sent, "{flow:?}");
}

#[test]
fn a_saturated_sender_sends_one_block_ack_req_per_block() {
    let spec = network(1, with_block_ack(mac::Config::dot11a())).cbr(0, 1, 1000, SATURATING / 2).seconds(1);
    let (_, notes) = record(&spec, 1);
    let data = notes.count(RecordedKind::DataSent { retry: false });
    let (asked, answered) =
        (notes.count(RecordedKind::BlockAckReqSent), notes.count(RecordedKind::BlockAckSent));
    // The first block goes with the one packet there is.
    assert!(asked.abs_diff(data / 12) <= 3 && asked.abs_diff(answered) <= 1, "{data} {asked} {answered}");
    assert_eq!(
        (notes.count(RecordedKind::DataSent { retry: true }), notes.count(RecordedKind::AckSent)),
        (0, 0)
    );
}

#[test]
fn an_agreement_costs_two_action_frames_once() {
    let spec = network(1, with_addba(mac::Config::dot11a())).cbr(0, 1, 1000, SATURATING / 2).seconds(1);
    let (outcome, notes) = record(&spec, 1);
    assert_eq!(notes.count(RecordedKind::ActionSent), 2);
    let actions: Vec<_> = outcome.nodes.iter().map(|node| node.frames.action).collect();
    assert_eq!(actions, [1, 1]);
    let data = notes.count(RecordedKind::DataSent { retry: false });
    let (singly, asked) =
        (notes.count(RecordedKind::AckSent) - 2, notes.count(RecordedKind::BlockAckReqSent));
    assert!(singly <= 3 && asked.abs_diff(data / 12) <= 3, "{data} {singly} {asked}");
}

#[test]
fn agreements_are_established_on_lossy_links_without_effect_on_tcp() {
    for mac in [mac::Config::dot11b(), mac::Config::dot11a(), mac::Config::ns2_wavelan()] {
        let forgetful = mac::Config { block_ack_timeout: Some(Duration::from_secs(1)), ..with_addba(mac) };
        let spec = lossy(1, forgetful).transfer(0, 1, patient_tcp(), 2_000_000).seconds(120);
        let outcome = simulate(&spec, 1);
        let flow = &outcome.flows[0];
        assert_eq!(flow.bytes_received, 2_000_000);
        assert_eq!((flow.retransmissions, flow.timeouts), (0, 0));
        assert!(outcome.nodes.iter().all(|node| node.frames.action >= 2 && node.frames.block_ack > 100));
    }
}

/// A node out of reach: the block fails, and routing hears of it.
#[test]
fn an_unreachable_neighbour_fails_only_its_block() {
    let spec = standing(&[(0.0, 0.0), (200.0, 0.0)]);
    let loss = ErrorModel::PacketLoss(Probability::ONE);
    let radio = RadioSpec { mac: with_block_ack(mac::Config::dot11b()), errors: loss, ..disk(250.0) };
    let spec = spec.change(|spec| spec.radio = Some(radio)).cbr(0, 1, 1000, Duration::from_millis(10));
    let outcome = simulate(&spec.seconds(5), 1);
    assert_eq!(outcome.flows[0].segments_received, 0);
    assert!(lost(&outcome).retry_limit > 100, "{:?}", lost(&outcome));
}

#[test]
fn the_gain_of_blocks_follows_from_airtime() {
    let goodput = |mac: mac::Config| {
        simulate(&network(1, mac).cbr(0, 1, 1472, SATURATING).seconds(5), 1).flows[0].goodput_bps()
    };
    let gain = |mac: mac::Config| goodput(with_block_ack(mac.clone())) / goodput(mac);
    // 802.11a: DIFS 34, 7.5 slots of 9, 248 µs of data (SIGNAL and 57 symbols of 216 bits; QoS takes one more), SIFS 16
    // and an ACK of 44. In a block of 12, 16 between frames, and at the end a request of 56 and an answer of 68.
    let single = 34.0 + 67.5 + 248.0 + 16.0 + 44.0;
    let block = 34.0 + 67.5 + 12.0 * 252.0 + 11.0 * 16.0 + 16.0 + 56.0 + 16.0 + 68.0;
    let (a, expected) = (gain(mac::Config::dot11a()), 12.0 * single / block);
    assert!((a - 1.42).abs() < 0.01, "{a}");
    assert!((a / expected - 1.0).abs() < 0.01, "{a} {expected}");
    // 802.11b: 50, 15.5 slots of 20, 192 + 1118 µs (1119 with QoS), 10 and 304; in the block 384 and 448.
    let single = 50.0 + 310.0 + 1310.0 + 10.0 + 304.0;
    let block = 50.0 + 310.0 + 12.0 * 1311.0 + 11.0 * 10.0 + 10.0 + 384.0 + 10.0 + 448.0;
    let (b, expected) = (gain(mac::Config::dot11b()), 12.0 * single / block);
    assert!((b - 1.40).abs() < 0.01, "{b}");
    assert!((b / expected - 1.0).abs() < 0.01, "{b} {expected}");
}
