use super::super::{MovementError, MovementFormat, Recording, testing};
use hopline_core::Instant;
use hopline_radio::mobility::Position;
use proptest::prelude::*;

fn parse(text: &str) -> Result<Recording, MovementError> {
    Recording::parse(MovementFormat::BonnMotion, text)
}

#[track_caller]
fn assert_rejected(text: &str, line: usize, column: usize, message: &str) -> String {
    testing::assert_rejected(MovementFormat::BonnMotion, text, (line, column), message)
}

#[test]
fn each_line_is_a_node_with_positions_and_times() {
    let file = parse("0.0 10.0 20.0 4.0 10.0 20.0 14.0 30.0 20.0\n\n1 5 5\r\n").unwrap();
    assert_eq!(file.nodes.len(), 2);
    assert!(file.nodes.iter().all(|node| node.name.is_none()));
    let at = |seconds| file.nodes[0].trajectory.position_at(Instant::from_secs(seconds));
    assert_eq!([at(0), at(4), at(9), at(14), at(99)].map(|p| p.x_m), [10.0, 10.0, 20.0, 30.0, 30.0]);
    assert_eq!(file.nodes[1].trajectory.position_at(Instant::ZERO), Position::new(5.0, 5.0));
    assert_eq!(file.nodes[1].first, 44..45);
}

#[test]
fn heights_are_accepted_if_they_are_all_equal() {
    let file = parse("#3D\n# made by hand\n0 1 2 7.5 10 11 2 7.5\n0 0 0 7.5\n").unwrap();
    assert_eq!(file.nodes[0].trajectory.position_at(Instant::from_secs(5)), Position::new(6.0, 2.0));
    assert_eq!(file.nodes.len(), 2);
}

#[test]
fn a_changing_height_is_rejected_at_its_position() {
    let help = assert_rejected("#3D\n0 1 2 0 10 11 2 7.5\n", 2, 17, "a height of 7.5 m after one of 0 m");
    assert!(help.contains("-J 2D"), "{help}");
    assert_rejected("#3D\n0 1 2 3\n0 1 2 4\n", 3, 7, "a height of 4 m after one of 3 m");
}

#[test]
fn undeclared_heights_are_suggested() {
    let help = assert_rejected("0 1 2 0 10 11 2 0\n", 1, 7, "this time is not later than the one before it");
    assert!(help.contains("#3D"), "{help}");
}

#[test]
fn errors_have_their_position() {
    assert_rejected("", 1, 1, "the movement file has no node");
    assert_rejected("# nothing\n\n", 1, 1, "the movement file has no node");
    assert_rejected("0 1\n", 1, 4, "the line ends in the middle of a point");
    assert_rejected("0 1 2\n0 1 2 3\n", 2, 8, "the line ends in the middle of a point");
    assert_rejected("0 1 north\n", 1, 5, "`north` is not a number");
    assert_rejected("0 1 nan", 1, 5, "`nan` is not a number");
    assert_rejected("0 inf 1", 1, 3, "`inf` is not a number");
    assert_rejected("0 1e999 1", 1, 3, "1e999 is out of range");
    assert_rejected("-1 0 0", 1, 1, "-1 is out of range");
    assert_rejected("1e10 0 0", 1, 1, "1e10 is out of range");
    assert_rejected("5 0 0 5 1 1", 1, 7, "this time is not later than the one before it");
    assert_rejected("5 0 0 4 1 1", 1, 7, "this time is not later than the one before it");
    assert_rejected("0 0 0 1e-9 1000 0", 1, 7, "the node would have to be faster than light to be here");
    assert_rejected("0 é 0", 1, 3, "`é` is not a number");
}

#[test]
fn a_number_of_a_million_digits_is_reported_briefly() {
    let error = parse(&format!("0 {} 1", "9".repeat(1_000_000))).unwrap_err();
    assert!(error.message.len() < 100 && error.message.ends_with("is out of range"), "{}", error.message);
    let error = parse(&format!("0 {} 1", "x".repeat(1_000_000))).unwrap_err();
    assert!(error.message.len() < 100, "{}", error.message);
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in "[0-9 .#3D\n\réx+-]{0,80}") {
        if let Err(error) = parse(&text) {
            prop_assert!(text.get(error.span).is_some() && !error.help.is_empty());
        }
    }
}
