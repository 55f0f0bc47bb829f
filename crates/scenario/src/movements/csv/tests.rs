use super::super::{MovementError, MovementFormat, Recording, testing};
use hopline_core::Instant;
use proptest::prelude::*;

fn parse(text: &str) -> Result<Recording, MovementError> {
    Recording::parse(MovementFormat::Csv, text)
}

fn names(file: &Recording) -> Vec<&str> {
    file.nodes.iter().map(|node| node.name.as_deref().unwrap_or("-")).collect()
}

#[track_caller]
fn assert_rejected(text: &str, line: usize, column: usize, message: &str) -> String {
    testing::assert_rejected(MovementFormat::Csv, text, (line, column), message)
}

#[test]
fn rows_of_several_nodes_may_be_mixed() {
    let file =
        parse("node,time_s,x_m,y_m\ncar,0,10,20\n# a comment\nbus, 0, 0, -5\n\ncar,2,14,20\r\n").unwrap();
    assert_eq!(names(&file), ["car", "bus"]);
    let at = |ms| file.nodes[0].trajectory.position_at(Instant::from_millis(ms)).x_m;
    assert_eq!([at(0), at(500), at(2000), at(9000)], [10.0, 11.0, 14.0, 14.0]);
    assert_eq!(file.nodes[1].trajectory.position_at(Instant::ZERO).y_m, -5.0);
}

#[test]
fn columns_may_be_in_any_order_and_in_spreadsheet_format() {
    let file = parse("\u{feff}y_m,x_m,node,time_s\r\n2,1,a,0\r\n").unwrap();
    let start = file.nodes[0].trajectory.position_at(Instant::ZERO);
    assert_eq!((names(&file), start.x_m, start.y_m), (vec!["a"], 1.0, 2.0));
}

#[test]
fn semicolons_separate_if_the_header_has_them() {
    let file = parse("\u{feff}node;time_s;x_m;y_m\r\na,b;0;1.5;2\r\n").unwrap();
    assert_eq!((names(&file), file.nodes[0].trajectory.position_at(Instant::ZERO).x_m), (vec!["a,b"], 1.5));
    let help = assert_rejected("\u{feff}node;time_s;x_m;y_m\na;0;1,5;2\n", 2, 5, "`1,5` is not a number");
    assert_eq!(help, "decimals stand behind a point: 1.5");
    let help = assert_rejected("node;time_s;x_m;y_m\na,0,1,2\n", 2, 1, "4 columns in the header, 1 here");
    assert_eq!(help, "every line has a node, a time, x and y, separated by semicolons");
    assert_rejected("\u{feff}node;t;x_m;y_m\n", 1, 6, "unknown column `t`");
}

#[test]
fn numbered_nodes_are_ordered_by_number_and_unnamed() {
    let file = parse("node,time_s,x_m,y_m\n2,0,2,0\n0,0,0,0\n1,0,1,0\n").unwrap();
    assert_eq!(names(&file), ["-", "-", "-"]);
    let starts: Vec<f64> = file.nodes.iter().map(|n| n.trajectory.position_at(Instant::ZERO).x_m).collect();
    assert_eq!(starts, [0.0, 1.0, 2.0]);
    let mixed = parse("node,time_s,x_m,y_m\n2,0,2,0\n01,0,0,0\n").unwrap();
    assert_eq!(names(&mixed), ["2", "01"]);
}

#[test]
fn a_gap_in_the_numbers_is_rejected() {
    assert_rejected("node,time_s,x_m,y_m\n0,0,0,0\n2,0,0,0\n", 3, 1, "there is a node 2, but no node 1");
    assert_rejected("node,time_s,x_m,y_m\n1,0,0,0\n", 2, 1, "there is a node 1, but no node 0");
}

#[test]
fn errors_have_their_position() {
    const HEADER: &str = "node,time_s,x_m,y_m\n";
    let second =
        |row: &str, column, message: &str| assert_rejected(&format!("{HEADER}{row}"), 2, column, message);
    assert_rejected("", 1, 1, "an empty file");
    assert_rejected("\u{feff}", 1, 1, "an empty file");
    assert_rejected(HEADER, 1, 1, "the movement file has no node");
    assert_rejected("node,t,x_m,y_m\n", 1, 6, "unknown column `t`");
    assert_rejected("node,time_s,x_m\n", 1, 1, "no column `y_m`");
    assert_rejected("node,node,x_m,y_m\n", 1, 6, "a second column `node`");
    assert_rejected("node\ttime_s\tx_m\ty_m\n", 1, 1, "unknown column `node\\ttime_s\\tx_m\\ty_m`");
    second("a,0,1", 1, "4 columns in the header, 3 here");
    second("a,0,1,2,3", 1, "4 columns in the header, 5 here");
    second(",0,1,2", 1, "a node without a name");
    second("\"a\",0,1,2", 1, "`\\\"a\\\"` has quotes");
    second("a,,1,2", 3, "a number is missing here");
    second("a,0,nan,2", 5, "`nan` is not a number");
    second("a,0,1,-inf", 7, "`-inf` is not a number");
    second("a,0,1,1e99", 7, "1e99 is out of range");
    second("a,-1,1,2", 3, "-1 is out of range");
}

#[test]
fn time_must_increase() {
    let later = |time: &str| format!("node,time_s,x_m,y_m\na,5,0,0\nb,0,0,0\na,{time},1,0\n");
    for time in ["5", "4.9", "5.0000000001"] {
        let help = assert_rejected(&later(time), 4, 3, "this time is not later than the one before it");
        assert!(help.contains("before it is"), "{help}");
    }
    assert!(parse(&later("5.000001")).is_ok());
    assert_rejected(&later("5.000000001"), 4, 3, "the node would have to be faster than light to be here");
}

#[test]
fn names_have_a_maximum_length() {
    let row = |length| format!("node,time_s,x_m,y_m\n{},0,0,0\n", "n".repeat(length));
    assert!(parse(&row(255)).is_ok());
    assert!(parse(&row(1_000_000)).unwrap_err().message.ends_with("is too long a name"));
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(rows in "[0-9ab,. \n\"é#-]{0,80}", header in prop::bool::ANY) {
        let text = if header { format!("node,time_s,x_m,y_m\n{rows}") } else { rows };
        if let Err(error) = parse(&text) {
            prop_assert!(text.get(error.span).is_some() && !error.help.is_empty());
        }
    }
}
