use super::*;
use crate::phy::propagation::ratio_to_db;
use proptest::prelude::*;

fn at(x_m: f64, y_m: f64) -> Position {
    Position::new(x_m, y_m)
}

fn obstacle(loss_db: f64, corners: &[(f64, f64)]) -> Obstacle {
    Obstacle { corners: corners.iter().map(|&(x, y)| at(x, y)).collect(), loss_db }
}

/// Returns a building from (10, 10) to (30, 20) with walls of 6 dB.
fn building() -> Obstacles {
    Obstacles::new(&[obstacle(6.0, &[(10.0, 10.0), (30.0, 10.0), (30.0, 20.0), (10.0, 20.0)])])
}

/// Returns the loss between two points, in dB.
fn loss_db(obstacles: &Obstacles, from: (f64, f64), to: (f64, f64)) -> f64 {
    let [from, to] = [from, to].map(|(x, y)| at(x, y));
    assert_eq!(obstacles.gain(from, to).to_bits(), obstacles.gain(to, from).to_bits(), "both ways alike");
    // A loss of none is not −0.
    (-ratio_to_db(obstacles.gain(from, to)) * 1e6).round() / 1e6 + 0.0
}

#[test]
fn each_crossed_wall_adds_its_loss() {
    let building = building();
    assert_eq!(loss_db(&building, (0.0, 15.0), (40.0, 15.0)), 12.0, "in and out");
    assert_eq!(loss_db(&building, (0.0, 15.0), (20.0, 15.0)), 6.0, "in");
    assert_eq!(loss_db(&building, (12.0, 12.0), (28.0, 18.0)), 0.0, "within");
    assert_eq!(loss_db(&building, (0.0, 9.0), (40.0, 9.0)), 0.0, "past it");
    assert_eq!(loss_db(&building, (0.0, 25.0), (5.0, 0.0)), 0.0, "across its lines but not its walls");
}

#[test]
fn losses_of_several_obstacles_add_up() {
    let walls = Obstacles::new(&[
        obstacle(3.0, &[(10.0, -5.0), (10.0, 5.0)]),
        obstacle(4.5, &[(20.0, -5.0), (20.0, 5.0)]),
    ]);
    assert_eq!(loss_db(&walls, (0.0, 0.0), (15.0, 0.0)), 3.0);
    assert_eq!(loss_db(&walls, (0.0, 0.0), (30.0, 0.0)), 7.5);
    assert_eq!(loss_db(&walls, (0.0, 6.0), (30.0, 6.0)), 0.0, "beyond their ends");
    assert_eq!(loss_db(&walls, (10.0, -9.0), (10.0, 9.0)), 0.0, "along a wall");
    let yard = Obstacles::new(&[obstacle(
        1.0,
        &[(0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (6.0, 9.0), (6.0, 3.0), (3.0, 3.0), (3.0, 9.0), (0.0, 9.0)],
    )]);
    assert_eq!(loss_db(&yard, (-1.0, 6.0), (10.0, 6.0)), 4.0, "two wings and the yard between them");
}

#[test]
fn without_obstacles_there_is_no_loss() {
    assert!(Obstacles::default().is_empty() && Obstacles::new(&[]).is_empty());
    assert_eq!(Obstacles::default().gain(at(0.0, 0.0), at(1.0, 1.0)), 1.0);
    assert_eq!(
        loss_db(&Obstacles::new(&[obstacle(0.0, &[(1.0, -1.0), (1.0, 1.0)])]), (0.0, 0.0), (2.0, 0.0)),
        0.0
    );
}

#[test]
fn a_line_through_corners_crosses_a_whole_number_of_sides() {
    let building = building();
    // Along the diagonal, through both corners; and past one corner, touching it.
    assert_eq!(loss_db(&building, (0.0, 5.0), (40.0, 25.0)), 12.0);
    assert!([0.0, 12.0].contains(&loss_db(&building, (5.0, 15.0), (15.0, 5.0))));
    assert!([0.0, 12.0].contains(&loss_db(&building, (0.0, 10.0), (40.0, 10.0))), "along a wall");
    assert_eq!(loss_db(&building, (20.0, 15.0), (20.0, 15.0)), 0.0, "two radios of one place");
}

proptest! {
    /// From outside to outside a line crosses an even number of walls of a building, from outside to inside an odd one.
    #[test]
    fn crossings_are_consistent_with_sides(x1 in -50.0..50.0, y1 in -50.0..50.0, x2 in -50.0..50.0, y2 in -50.0..50.0) {
        let inside = |x: f64, y: f64| (10.0..30.0).contains(&x) && (10.0..20.0).contains(&y);
        let crossed = loss_db(&building(), (x1, y1), (x2, y2)) / 6.0;
        let odd = inside(x1, y1) != inside(x2, y2);
        prop_assert_eq!(crossed as u32 % 2 == 1, odd, "{}", crossed);
        prop_assert!(crossed <= 2.0);
    }
}
