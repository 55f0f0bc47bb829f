//! Frames that do not arrive: each counts once, with its reason, at the tap where it came in.

use super::{Dialogue, experiment, near, tap};
use crate::support::{SpecBuilder, link, standing, wired};
use hopline_core::{Duration, NodeId};
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::TapCounts;
use hopline_sim::spec::LossSpec;
use hopline_wire::dot11::MacAddr;

fn lossy(from: u32, to: u32, share: f64) -> LossSpec {
    let share = Probability::new(share).expect("a share");
    LossSpec { from: NodeId(from), to: NodeId(to), errors: ErrorModel::PacketLoss(share) }
}

#[test]
fn a_unicast_frame_without_an_answer_is_repeated_and_given_up() {
    let spec = near(2).radio(|radio| radio.losses.push(lossy(0, 1, 1.0)));
    let mut talk = Dialogue::new(&spec);
    talk.inject(100, 0, &experiment(tap(0), tap(1), 50));
    assert_eq!(talk.left_at(1_000), [] as [u32; 0]);
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!((counts.accepted, counts.dropped.retry_limit, counts.dropped.total()), (1, 1, 1));
    assert_eq!(talk.finish().nodes[0].frames.data, 7, "the short retry limit");
}

#[test]
fn a_lost_broadcast_is_not_repeated() {
    let spec = near(3).radio(|radio| radio.losses.push(lossy(0, 1, 1.0)));
    let mut talk = Dialogue::new(&spec);
    talk.inject(100, 0, &experiment(tap(0), MacAddr::BROADCAST, 50));
    assert_eq!(talk.left_at(1_000), [2]);
    assert_eq!(talk.world.tap_counts(NodeId(0)).delivered, 1, "one of two neighbours is enough");
    assert_eq!(talk.finish().nodes[0].frames.data, 1);
}

#[test]
fn a_broadcast_that_no_tap_hears_counts_as_lost() {
    let far = standing(&[(0.0, 0.0), (400.0, 0.0)]).ethernet_taps(0..2);
    let mut talk = Dialogue::new(&far);
    talk.inject(100, 0, &experiment(tap(0), MacAddr::BROADCAST, 50));
    talk.inject(200, 0, &experiment(tap(0), tap(1), 50));
    assert_eq!(talk.left_at(1_000), [] as [u32; 0]);
    let TapCounts { accepted, dropped, held, .. } = talk.world.tap_counts(NodeId(0));
    assert_eq!((accepted, dropped.link_error, dropped.retry_limit, held), (2, 1, 1, 0));
}

#[test]
fn losses_are_repaired_by_the_mac_at_the_price_of_repetitions() {
    let spec = near(2).radio(|radio| radio.losses.push(lossy(0, 1, 0.3)));
    let mut talk = Dialogue::new(&spec);
    for n in 0..500 {
        talk.inject(10 * n, 0, &experiment(tap(0), tap(1), 50));
    }
    assert_eq!(talk.left_at(6_000).len(), 500, "seven attempts fail once in 4,600 times");
    let sent = talk.finish().nodes[0].frames.data as f64;
    assert!((sent / 500.0 - 1.0 / 0.7).abs() < 0.1, "{sent}");
}

#[test]
fn a_frame_whose_ack_is_lost_arrives_once() {
    let spec = near(2).radio(|radio| radio.losses.push(lossy(1, 0, 1.0)));
    let mut talk = Dialogue::new(&spec);
    talk.inject(100, 0, &experiment(tap(0), tap(1), 50));
    assert_eq!(talk.left_at(1_000), [1]);
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!((counts.delivered, counts.dropped.total()), (1, 0));
    let outcome = talk.finish();
    assert_eq!((outcome.nodes[0].frames.data, outcome.nodes[0].drops.retry_limit), (7, 1));
}

#[test]
fn a_node_without_a_tap_drops_what_is_for_it_alone() {
    let mut talk = Dialogue::new(&near(3).ethernet_taps(0..2));
    talk.inject(100, 0, &experiment(tap(0), tap(2), 50));
    talk.inject(200, 0, &experiment(tap(0), MacAddr::BROADCAST, 50));
    assert_eq!(talk.left_at(1_000), [1]);
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!((counts.accepted, counts.delivered, counts.dropped.no_route), (2, 1, 1));
    assert_eq!(talk.finish().nodes[2].drops.no_route, 1);
}

#[test]
fn a_broadcast_that_reaches_no_tap_at_all_counts_once() {
    let mut talk = Dialogue::new(&near(3).ethernet_taps([0]));
    talk.inject(100, 0, &experiment(tap(0), MacAddr::BROADCAST, 50));
    assert_eq!(talk.left_at(1_000), [] as [u32; 0]);
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!((counts.accepted, counts.dropped.total()), (1, 1));
}

#[test]
fn a_tap_without_an_interface_drops_its_frames() {
    let mut talk = Dialogue::new(&wired(2).ethernet_taps(0..2));
    for to in [tap(1), MacAddr::BROADCAST] {
        talk.inject(100, 0, &experiment(tap(0), to, 50));
    }
    assert_eq!(talk.left_at(200), [] as [u32; 0]);
    assert_eq!(talk.world.tap_counts(NodeId(0)).dropped.unresolved, 2);
}

#[test]
fn frames_under_way_at_the_end_are_held() {
    let slow = link(0, 1, 1_000_000, Duration::from_secs(1), 10);
    let mut talk = Dialogue::new(&wired(2).link(slow).ethernet_taps(0..2));
    (0..3).for_each(|_| talk.inject(100, 0, &experiment(tap(0), tap(1), 1000)));
    talk.run_until(500);
    let counts = talk.world.tap_counts(NodeId(0));
    assert_eq!((counts.accepted, counts.delivered, counts.held), (3, 0, 3));
    let _ = talk.finish();
}
