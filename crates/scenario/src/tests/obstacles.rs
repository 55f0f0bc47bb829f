//! `[[obstacle]]`.

use super::*;
use hopline_radio::mobility::Position;
use hopline_radio::phy::obstacles::Obstacle;

fn obstacles(text: &str) -> Vec<Obstacle> {
    spec(&(CHAIN.to_owned() + text), &[]).radio.expect("it has one").obstacles
}

fn problem(text: &str) -> String {
    parse(text, &[]).expect_err("this is wrong").to_string()
}

#[test]
fn a_rectangle_has_four_corners_and_a_polygon_the_given_ones() {
    let found = obstacles(
        "[[obstacle]]\nx_m = 10\ny_m = -5\nwidth_m = 20\nheight_m = 10\nloss_db = 6\n\
         [[obstacle]]\nloss_db = 3.5\ncorners = [{ x_m = 1, y_m = 2 }, { x_m = 3, y_m = 4 }]\n",
    );
    let corners = |all: &[(f64, f64)]| all.iter().map(|&(x, y)| Position::new(x, y)).collect::<Vec<_>>();
    assert_eq!(found[0].corners, corners(&[(10.0, -5.0), (30.0, -5.0), (30.0, 5.0), (10.0, 5.0)]));
    assert_eq!((found[1].corners.clone(), found[1].loss_db), (corners(&[(1.0, 2.0), (3.0, 4.0)]), 3.5));
    assert!(obstacles("").is_empty());
}

#[test]
fn errors_are_named() {
    let wrong = |text: &str| problem(&(CHAIN.to_owned() + "[[obstacle]]\n" + text));
    assert!(wrong("x_m = 1\n").contains("`obstacle.0` has no `loss_db`"));
    assert!(wrong("loss_db = 1\nx_m = 1\ny_m = 1\nwidth_m = 2\n").contains("an obstacle without `height_m`"));
    assert!(wrong("loss_db = 1\ncorners = [{ x_m = 1, y_m = 2 }]\n").contains("an obstacle of 1 corners"));
    assert!(wrong("loss_db = 1\ncorners = []\n").contains("an obstacle of 0 corners"));
    assert!(
        wrong("loss_db = 1\nx_m = 1\ncorners = [{ x_m = 1, y_m = 2 }]\n")
            .contains("`x_m` of an obstacle with corners")
    );
    assert!(wrong("loss_db = -1\n").contains("`obstacle.0.loss_db` = -1 is out of range"));
    let wired = problem(&(CHAIN.replace("[radio]\n", "") + "[[obstacle]]\nloss_db = 1\n"));
    assert!(wired.contains("[[obstacle]] without [radio]"), "{wired}");
}
