use super::*;
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_radio::mobility::{Area, RandomWaypoint, SetdestWaypoint, StationaryWaypoint};
use proptest::prelude::*;

/// Written by `setdest -v 1 -n 3 -p 2.0 -M 10 -t 60 -x 600 -y 400` (ns-2.35).
const SETDEST: &str = r#"#
# nodes: 3, pause: 2.00, max speed: 10.00, max x: 600.00, max y: 400.00
#
$node_(0) set X_ 314.723215685792
$node_(0) set Y_ 318.361501819266
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 578.517831706374
$node_(1) set Y_ 258.111929727551
$node_(1) set Z_ 0.000000000000
$node_(2) set X_ 339.711517062968
$node_(2) set Y_ 76.861225158706
$node_(2) set Z_ 0.000000000000
$god_ set-dist 0 1 16777215
$god_ set-dist 0 2 1
$god_ set-dist 1 2 16777215
$ns_ at 2.000000000000 "$node_(0) setdest 436.838247594972 143.617569159822 1.832168260843"
$ns_ at 2.000000000000 "$node_(1) setdest 88.496345702382 71.594714301569 9.032310724426"
$ns_ at 2.000000000000 "$node_(2) setdest 568.377072974674 239.280531967606 6.748165593859"
$ns_ at 4.338221963400 "$god_ set-dist 0 1 1"
$ns_ at 36.457613934226 "$god_ set-dist 1 2 2"
$ns_ at 43.563607418076 "$node_(2) setdest 568.377072974674 239.280531967606 0.000000000000"
$ns_ at 45.563607418076 "$node_(2) setdest 106.562363441328 183.814856464390 8.502442289262"
$ns_ at 51.282835791673 "$god_ set-dist 0 1 16777215"
#
# Destination Unreachables: 4
#
"#;

const PLACED: &str = "$node_(0) set X_ 1\n$node_(0) set Y_ 2\n";

fn error(text: &str) -> MovementError {
    Movements::parse(text).unwrap_err()
}

/// The error of `line` when it is the third line of a good file.
fn third(line: &str) -> MovementError {
    let text = format!("{PLACED}{line}\n");
    let error = error(&text);
    assert_eq!(error.line, 3, "{error}");
    assert_eq!(error.span.start, PLACED.len() + error.column - 1, "ASCII: columns are bytes");
    assert!(error.span.end <= text.len());
    error
}

#[test]
fn a_setdest_file_moves_its_nodes() {
    let paths = Movements::parse(SETDEST).unwrap().trajectories();
    assert_eq!(
        paths[0].position_at(Instant::from_secs(2)),
        Position::new(314.723_215_685_792, 318.361_501_819_266)
    );
    let velocity = paths[1].velocity_at(Instant::from_secs(10)).speed_mps();
    assert!((velocity - 9.032_310_724_426).abs() < 1e-6, "{velocity}");
    // Node 2 arrives when setdest tells it to stop, and stays for the pause.
    let there = Position::new(568.377_072_974_674, 239.280_531_967_606);
    for nanos in [43_563_607_418, 44_000_000_000, 45_563_607_418] {
        assert!(paths[2].position_at(Instant::from_nanos(nanos)).distance_m(there) < 1e-6);
    }
    assert!(paths[2].position_at(Instant::from_secs(46)).distance_m(there) > 3.0);
}

/// Made by `setdest -v 1` (ns-2.35), with a turn and a stop on the way added at the end.
const TURNS: &str = r#"$node_(0) set X_ 111.328893563806
$node_(0) set Y_ 375.113189412175
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 202.106339120799
$node_(1) set Y_ 137.086282138235
$node_(1) set Z_ 0.000000000000
$node_(2) set X_ 96.667339910475
$node_(2) set Y_ 17.394453198194
$node_(2) set Z_ 0.000000000000
$ns_ at 2.000000000000 "$node_(0) setdest 536.128424693531 218.170732115282 0.314831355467"
$ns_ at 2.000000000000 "$node_(1) setdest 470.251188662892 293.263803189358 0.324337307239"
$ns_ at 2.000000000000 "$node_(2) setdest 118.997695937641 337.326121182142 7.602886848943"
$ns_ at 44.182663829057 "$node_(2) setdest 118.997695937641 337.326121182142 0.000000000000"
$ns_ at 46.182663829057 "$node_(2) setdest 556.073794295860 388.494259493148 2.744655737395"
$ns_ at 17.0 "$node_(1) setdest 10.0 10.0 20.0"
$ns_ at 25.0 "$node_(0) setdest 300.0 200.0 0.0"
"#;

#[test]
fn positions_match_ns_2() {
    // Time in s, node, x and y as ns-2.35 has them after `log-movement`.
    let ns2 = [
        (3.0, 0, 111.624214644, 375.004082851),
        (3.0, 1, 202.386604098, 137.249518872),
        (3.0, 2, 97.196712738, 24.978888104),
        (10.0, 0, 113.691462209, 374.240336922),
        (10.0, 1, 204.348458941, 138.392176009),
        (10.0, 2, 100.902322531, 78.069932448),
        (17.5, 0, 115.906370314, 373.422037712),
        (17.5, 1, 197.963633863, 134.027298824),
        (17.5, 2, 104.872618738, 134.953194245),
        (30.0, 0, 118.121278418, 372.603738502),
        (30.0, 1, 10.000000000, 10.000000000),
        (30.0, 2, 111.489779083, 229.758630573),
        (46.0, 0, 118.121278418, 372.603738502),
        (46.0, 1, 10.000000000, 10.000000000),
        (46.0, 2, 118.997695938, 337.326121182),
        (59.0, 0, 118.121278418, 372.603738502),
        (59.0, 1, 10.000000000, 10.000000000),
        (59.0, 2, 153.938252480, 341.416583316),
    ];
    let paths = Movements::parse(TURNS).unwrap().trajectories();
    for (t, node, x_m, y_m) in ns2 {
        let here = paths[node].position_at(Instant::ZERO + Duration::from_secs_f64(t));
        assert!(here.distance_m(Position { x_m, y_m }) < 1e-8, "node {node} at {t} s: {here:?}");
    }
}

#[test]
fn names_numbers_line_ends_and_spaces_may_vary() {
    let text = "\r\n  # hi\r\n$n(0)\tset  X_ 8.34e1 ;# start\r\n$n(0) set Y_ .5;\r\n$n(0) set Z_ -0.0\r\n\
                $sim at 1e0 \" $n(0) setdest +90. 4.48E+1 1e-1 \"  \r\n$sim at 3 \"$god set-dist 0 0 0\"\r";
    let movements = Movements::parse(text).unwrap();
    let order = SetdestCommand { at: Instant::from_secs(1), to: Position::new(90.0, 44.8), speed_mps: 0.1 };
    let first = 10..15;
    assert_eq!(
        movements.nodes,
        [Movement { start: Position::new(83.4, 0.5), set_destinations: vec![order], first }]
    );
}

#[test]
fn an_empty_file_has_no_nodes() {
    assert_eq!(Movements::parse("").unwrap().nodes, []);
    assert_eq!(Movements::parse("# nothing\n\n").unwrap().nodes, []);
}

#[test]
fn commands_need_not_be_sorted() {
    let text =
        format!("{PLACED}$ns_ at 10 \"$node_(0) setdest 1 12 1\"\n$ns_ at 0 \"$node_(0) setdest 1 7 1\"\n");
    let path = &Movements::parse(&text).unwrap().trajectories()[0];
    assert_eq!(path.position_at(Instant::from_secs(7)), Position::new(1.0, 7.0));
    assert_eq!(path.position_at(Instant::from_secs(12)), Position::new(1.0, 9.0));
}

#[test]
fn a_malformed_line_is_an_error_at_its_position() {
    let cases = [
        ("hello", 1, "`hello` is not known here"),
        ("node_(0) set X_ 1", 1, "`node_(0)` is not known here"),
        ("$node_(x) set X_ 1", 1, "`$node_(x)` is not a node"),
        ("$node_(-1) set X_ 1", 1, "`$node_(-1)` is not a node"),
        ("$node_(99999999999) set X_ 1", 1, "`$node_(99999999999)` is not a node"),
        ("$node_(0", 1, "`$node_(0` is not a node"),
        ("$node_(1) put X_ 1", 11, "`put` is not known here"),
        ("$node_(1) set W_ 1", 15, "`W_` is not known here"),
        ("$node_(1) set X_", 17, "something is missing here"),
        ("$node_(1) set X_ 12m", 18, "`12m` is not a number"),
        ("$node_(1) set X_ nan", 18, "`nan` is not a number"),
        ("$node_(1) set X_ inf", 18, "`inf` is not a number"),
        ("$node_(1) set X_ 1e999", 18, "1e999 is out of range"),
        ("$node_(1) set Z_ 3.5", 18, "3.5 is out of range"),
        ("$node_(1) set X_ 1 2", 20, "the statement is over before this"),
        ("$node_(1) set X_ 1; $node_(1) set Y_ 2", 21, "the statement is over before this"),
        ("$node_(0) setdest 1 2 3", 11, "`setdest` has no time"),
        ("$ns_ in 2.0 \"$node_(0) setdest 1 2 3\"", 6, "`in` is not known here"),
        ("$ns_ at -1 \"$node_(0) setdest 1 2 3\"", 9, "-1 is out of range"),
        ("$ns_ at \"$node_(0) setdest 1 2 3\"", 9, "`\\\"` is out of place"),
        ("$ns_ at 2 $node_(0) setdest 1 2 3", 11, "the order must be in double quotes"),
        ("$ns_ at 2", 10, "the order must be in double quotes"),
        ("$ns_ at 2 \"$node_(0) setdest 1 2 3", 11, "this quote is not closed"),
        ("$ns_ at 2 \"$node_(0) setdest 1 2\"", 33, "something is missing here"),
        ("$ns_ at 2 \"$node_(0) setdest 1 2 3 4\"", 36, "the statement is over before this"),
        ("$ns_ at 2 \"$node_(0) setdest 1 2 -3\"", 34, "-3 is out of range"),
        ("$ns_ at 2 \"$node_(0) reset\"", 22, "`reset` is not known here"),
        ("$ns_ at 2 \"$node_(0) setdest 1 2 3\" 4", 37, "the statement is over before this"),
        ("$ns_ at 2 \"\"", 12, "something is missing here"),
        ("$god_ set-dist 0 1", 19, "something is missing here"),
        ("$ns_ at 2 \"$god_ set-dist 0 1 x\"", 31, "`x` is not a number"),
        ("$", 1, "`$` is not known here"),
        ("$node_(0) set X_ 1", 1, "X_ of node 0 is set twice"),
    ];
    for (line, column, message) in cases {
        let error = third(line);
        assert_eq!((error.column, error.message.as_str()), (column, message), "{line}");
        assert!(!error.help.is_empty());
    }
}

#[test]
fn an_error_has_a_valid_example() {
    let error = third("$ns_ at 2 \"$node_(0) setdest 1 2 fast\"");
    assert_eq!(
        error.to_string(),
        "line 3, column 34: `fast` is not a number; expected the speed in metres per second, at least 0 and at most \
         that of light, such as 1.3"
    );
}

#[test]
fn columns_count_characters_and_spans_count_bytes() {
    let name = error("$ns_ at 2 \"$né_(0) setdest\"\n");
    assert_eq!((name.line, name.column), (1, 12));
    let text = "# äöü\n  $node_(0) sét é X_";
    let verb = error(text);
    assert_eq!((verb.line, verb.column, &text[verb.span]), (2, 13, "sét"));
    let text = "# äöü\n$né(0) set X_ 1";
    assert_eq!(&text[error(text).span], "$né(0)");
    let text = "$n(0) set X_ 1 é é";
    let more = error(text);
    assert_eq!((more.column, &text[more.span]), (16, "é é"));
}

#[test]
fn every_node_needs_a_position() {
    let half = error("# first\n$node_(0) set Y_ 1\n");
    assert_eq!((half.line, half.column, half.message.as_str()), (2, 1, "node 0 is not placed"));
    let gap = error(&PLACED.replace("(0)", "(4000000000)"));
    assert_eq!((gap.line, gap.message.as_str()), (2, "node 0 is not placed"));
    let moved = error("$ns_ at 1 \"$node_(0) setdest 1 2 3\"");
    assert_eq!((moved.line, moved.column), (1, 12));
}

#[test]
fn movements_round_trip() {
    let (area, pause) = (Area { width_m: 1000.0, height_m: 750.0 }, Duration::from_secs(3));
    let models = [
        RandomWaypoint::Setdest(SetdestWaypoint { area, max_speed_mps: 20.0, pause }),
        RandomWaypoint::Stationary(StationaryWaypoint {
            area,
            min_speed_mps: 0.5,
            max_speed_mps: 9.0,
            pause,
        }),
    ];
    let mut paths = vec![Trajectory::fixed(Position::new(1.0, 2.0))];
    for (n, model) in models.iter().cycle().take(10).enumerate() {
        let mut stream = RandomStream::new(1, 1, NodeId(n as u32), Purpose::Mobility);
        paths.push(model.trajectory(Duration::from_secs(400), &mut stream).unwrap());
    }
    let back = Movements::parse(&to_ns_movements(&paths)).unwrap().trajectories();
    for (before, after) in paths.iter().zip(&back) {
        for ms in (0..400_000).step_by(997) {
            let t = Instant::from_millis(ms);
            assert!(before.position_at(t).distance_m(after.position_at(t)) < 1e-5, "{ms} ms");
        }
    }
}

#[test]
fn the_written_file_is_valid_in_ns_2() {
    let path = Trajectory::through(&[
        (Instant::from_millis(1_500), Position::new(10.0, 20.0)),
        (Instant::from_millis(6_500), Position::new(40.0, 60.0)),
    ]);
    let text = to_ns_movements(&[path.unwrap()]);
    assert_eq!(
        text,
        "$node_(0) set X_ 10\n$node_(0) set Y_ 20\n$node_(0) set Z_ 0\n\
         $ns_ at 1.500000000 \"$node_(0) setdest 40 60 10\"\n"
    );
}

#[test]
fn movement_above_the_speed_limit_is_not_written() {
    // 0.3 m at the speed of light take 1.0007 ns, which is rounded to 1 ns.
    let text = format!("{PLACED}$ns_ at 1 \"$node_(0) setdest 1.3 2 299792458\"\n");
    let path = Movements::parse(&text).unwrap().trajectories();
    let back = Movements::parse(&to_ns_movements(&path)).unwrap().trajectories();
    assert_eq!(back[0].position_at(Instant::from_secs(2)), Position::new(1.3, 2.0));
}

/// Pieces of good files, put together at random: gets further into the parser than plain noise.
fn shuffled() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "$node_(0)",
        "$node_(1",
        "$ns_",
        "$god_",
        " ",
        " ",
        " ",
        "\n",
        "\r\n",
        "\"",
        "at",
        "set",
        "X_",
        "Y_",
        "Z_",
        "setdest",
        "set-dist",
        "1e400",
        "-3",
        "0",
        "7.25",
        "#",
        ";",
        "é",
        "\u{0}",
        "$",
        "(",
        ")",
        "1e",
        "--",
        "+",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match Movements::parse(text) {
        Ok(movements) => {
            for path in movements.trajectories() {
                prop_assert!(path.position_at(Instant::from_secs(50)).is_finite());
            }
        }
        Err(e) => {
            prop_assert!(e.line >= 1 && e.line <= text.split('\n').count());
            prop_assert!(e.column >= 1);
            prop_assert!(text.get(e.span.clone()).is_some(), "{e:?}");
            prop_assert!(!e.message.is_empty() && !e.help.is_empty());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn almost_valid_text_does_not_panic(text in shuffled()) {
        check(&text)?;
    }

    #[test]
    fn a_damaged_file_does_not_panic(
        cut in 0..SETDEST.len(), length in 0usize..40, put in "[ -~\\n]{0,6}",
    ) {
        let end = (cut + length).min(SETDEST.len()); // the file is ASCII
        let text = format!("{}{put}{}", &SETDEST[..cut], &SETDEST[end..]);
        check(&text)?;
    }
}
