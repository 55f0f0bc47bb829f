//! Walls between nodes. Their effect follows from the powers that arrive.

use crate::support::{self, SpecBuilder, chain, standing};
use hopline_core::{Duration, Instant};
use hopline_radio::mobility::{Position, SetdestCommand, Trajectory};
use hopline_radio::phy::obstacles::Obstacle;
use hopline_sim::spec::NodeSpec;
use hopline_sim::{Spec, simulate};

fn wall(loss_db: f64, corners: &[(f64, f64)]) -> Obstacle {
    Obstacle { corners: corners.iter().map(|&(x, y)| Position::new(x, y)).collect(), loss_db }
}

fn with_obstacles(spec: Spec, obstacles: Vec<Obstacle>) -> Spec {
    spec.radio(|radio| radio.obstacles = obstacles)
}

/// Bytes that a stream of 10 packets a second over one hop of 200 m delivers in 10 s through these walls.
fn delivered(obstacles: Vec<Obstacle>) -> u64 {
    let spec = with_obstacles(chain(1).cbr(0, 1, 100, Duration::from_millis(100)).seconds(10), obstacles);
    simulate(&spec, 1).flows[0].bytes_received
}

#[test]
fn frames_are_decoded_if_walls_leave_enough_power() {
    // Two-ray ground: 0.28183815 W · (1.5 m / 200 m)⁴ = 8.9175e-10 W, which is 3.877 dB above 3.652e-10 W.
    let across = [(100.0, -10.0), (100.0, 10.0)];
    assert_eq!(delivered(vec![wall(3.87, &across)]), 10_000);
    assert_eq!(delivered(vec![wall(3.89, &across)]), 0);
    let building = [(90.0, -10.0), (110.0, -10.0), (110.0, 10.0), (90.0, 10.0)];
    assert_eq!(delivered(vec![wall(1.93, &building)]), 10_000, "two walls");
    assert_eq!(delivered(vec![wall(1.95, &building)]), 0);
    assert_eq!(delivered(vec![wall(90.0, &[(100.0, 1.0), (100.0, 10.0)])]), 10_000, "beside the line");
}

#[test]
fn routes_lead_around_a_wall() {
    // A triangle with sides of 200 m; a wall stands between n0 and n1.
    let around = |obstacles| {
        let spec = standing(&[(0.0, 0.0), (200.0, 0.0), (100.0, 173.0)]);
        let spec = with_obstacles(spec.cbr(0, 1, 100, Duration::from_millis(100)).seconds(10), obstacles);
        let outcome = simulate(&spec, 1);
        (outcome.flows[0].bytes_received, outcome.nodes[2].frames.data)
    };
    let (direct, forwarded) = around(vec![]);
    assert!(direct >= 9_900 && forwarded == 0, "{direct} {forwarded}");
    let (led, forwarded) = around(vec![wall(20.0, &[(100.0, -10.0), (100.0, 10.0)])]);
    assert!(led >= 9_900 && forwarded >= 99, "{led} {forwarded}");
}

#[test]
fn a_node_behind_a_wall_is_not_received() {
    // n1 walks along y = 200 m from x = −100 m to 100 m at 10 m/s; the wall hides x from −50 m to 50 m from
    // n0: 10 s of 20 s.
    let orders = [SetdestCommand { at: Instant::ZERO, to: Position::new(100.0, 200.0), speed_mps: 10.0 }];
    let walk = Trajectory::from_setdest(Position::new(-100.0, 200.0), &orders);
    let walking = |obstacles| {
        let mut spec = standing(&[(0.0, 0.0), (-100.0, 200.0)]);
        let NodeSpec { name, radio_channels: radios, .. } = spec.nodes[1].clone();
        spec.nodes[1] = NodeSpec::new(name, walk.clone(), radios);
        let spec = with_obstacles(spec.cbr(0, 1, 100, Duration::from_millis(10)).seconds(20), obstacles);
        let flow = simulate(&spec, 1).flows.remove(0);
        flow.series.iter().map(|sample| sample.bytes_received).collect::<Vec<u64>>()
    };
    let free = walking(vec![]);
    let hidden = walking(vec![wall(30.0, &[(-25.0, 100.0), (25.0, 100.0)])]);
    assert_eq!((free[4], hidden[4]), (hidden[4], free[4]), "until it comes behind the wall all is as before");
    assert!(free[14] > free[5] + 50_000);
    assert!(hidden[13] <= hidden[5] + 1_000, "{hidden:?}");
    assert!(hidden[19] > hidden[15] + 20_000, "{hidden:?}");
}

#[test]
fn walls_off_the_path_change_nothing() {
    let spec = chain(3).bulk(0, 3, support::ns2_tcp(4)).seconds(5);
    let fingerprint = |spec: &Spec| simulate(spec, 1).fingerprint;
    let aside = with_obstacles(spec.clone(), vec![wall(40.0, &[(0.0, 50.0), (600.0, 50.0)])]);
    assert_eq!(fingerprint(&spec), fingerprint(&aside));
}
