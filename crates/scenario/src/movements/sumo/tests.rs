use super::super::{MovementError, MovementFormat, Recording, testing};
use hopline_core::Instant;
use hopline_radio::mobility::Position;
use proptest::prelude::*;

/// Output of SUMO 1.8, but for the numbers.
const FILE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>

<!-- generated on Tue Feb 23 08:36:14 2021 by Eclipse SUMO sumo Version 1.8.0
<configuration>
    <fcd-output value="fcd.xml"/>
</configuration>
-->

<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://sumo.dlr.de/xsd/fcd_file.xsd">
    <timestep time="0.00"/>
    <timestep time="1.00">
        <vehicle id="car.0" x="100.00" y="50.00" angle="90.00" type="t" speed="10.00" pos="5.10" lane="e1_0" slope="0.00"/>
    </timestep>
    <timestep time="2.00">
        <vehicle id="car.0" x="110.00" y="50.00" angle="90.00" type="t" speed="10.00" pos="15.10" lane="e1_0" slope="0.00"/>
        <person id="walker" x="5.00" y="6.00" angle="0.00" speed="1.00" pos="1.00" edge="e1" slope="0.00"/>
    </timestep>
    <timestep time="3.00">
        <person id="walker" x="5.00" y="7.00" angle="0.00" speed="1.00" pos="2.00" edge="e1" slope="0.00"/>
    </timestep>
    <timestep time="4.00">
        <vehicle id="car.0" x="110.00" y="70.00" angle="0.00" type="t" speed="10.00" pos="15.10" lane="e2_0" slope="0.00"/>
    </timestep>
</fcd-export>
"#;

fn parse(text: &str) -> Result<Recording, MovementError> {
    Recording::parse(MovementFormat::Sumo, text)
}

/// A step at 0 s with `inside`.
fn step(inside: &str) -> String {
    format!("<fcd-export><timestep time=\"0\">{inside}</timestep></fcd-export>")
}

#[track_caller]
fn refused(text: &str, line: usize, column: usize, message: &str) -> String {
    testing::assert_rejected(MovementFormat::Sumo, text, (line, column), message)
}

#[test]
fn vehicles_and_persons_are_nodes_in_order_of_appearance() {
    let file = parse(FILE).unwrap();
    let names: Vec<_> = file.nodes.iter().map(|n| n.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["car.0", "walker"]);
    assert_eq!(&FILE[file.nodes[1].first.clone()], "walker");
}

#[test]
fn absent_nodes_stand_still_and_gaps_are_interpolated() {
    let file = parse(FILE).unwrap();
    let at = |node: usize, ms| file.nodes[node].trajectory.position_at(Instant::from_millis(ms));
    assert_eq!([at(0, 0), at(0, 1000)], [Position::new(100.0, 50.0); 2]);
    assert_eq!(at(0, 1500), Position::new(105.0, 50.0));
    assert_eq!(at(0, 3000), Position::new(110.0, 60.0), "half of the way while it was away");
    assert_eq!(at(0, 9999), Position::new(110.0, 70.0));
    assert_eq!([at(1, 0), at(1, 3500)], [Position::new(5.0, 6.0), Position::new(5.0, 7.0)]);
}

#[test]
fn entities_in_ids_are_resolved() {
    let file = parse(&step("<vehicle id=\"a&amp;b&#33;\" x=\"1\" y=\"2\"/>")).unwrap();
    assert_eq!(file.nodes[0].name.as_deref(), Some("a&b!"));
}

#[test]
fn degrees_are_rejected() {
    let told = FILE.replace("<fcd-output value=\"fcd.xml\"/>", "<fcd-output.geo value=\"true\"/>");
    let help = refused(&told, 5, 6, "positions are longitudes and latitudes");
    assert!(help.contains("--fcd-output.geo false"), "{help}");
    let drive = |x: [&str; 2], y: &str, speed: &str| {
        let vehicle = |x| format!("<vehicle id=\"a\" x=\"{x}\" y=\"{y}\" speed=\"{speed}\"/>");
        let (a, b) = (vehicle(x[0]), vehicle(x[1]));
        format!(
            "<fcd-export><timestep time=\"0\">{a}</timestep><timestep time=\"1\">{b}</timestep></fcd-export>"
        )
    };
    let error = parse(&drive(["13.404100", "13.404299"], "52.5", "13.9")).unwrap_err();
    assert!(error.message.starts_with("positions look like longitudes"), "{error}");
    assert_eq!(error.column, 51);
    for metres in [["13", "26.9"], ["200.1", "200.100001"], ["13", "13.1"]] {
        assert!(parse(&drive(metres, "52.5", "13.9")).is_ok(), "{metres:?}");
    }
    assert!(parse(&drive(["13", "13"], "52.5", "0")).is_ok(), "who stands does not drive");
    refused(&step("<vehicle id=\"a\" lon=\"1\" lat=\"2\"/>"), 1, 53, "a longitude");
}

#[test]
fn a_truncated_file_is_rejected() {
    let whole = FILE.trim_end().len();
    for end in 0..whole {
        let error = parse(&FILE[..end]).unwrap_err();
        assert!(FILE[..end].get(error.span.clone()).is_some(), "{error}");
    }
    let cut = &FILE[..FILE.find("    <timestep time=\"3.00\"").unwrap()];
    refused(cut, 17, 16, "the file ends before </fcd-export>");
    refused("", 1, 1, "there is no <fcd-export>");
    refused("<fcd-export></fcd-export>", 1, 1, "the movement file has no node");
}

#[test]
fn errors_have_their_position() {
    let one = |vehicle: &str, column: usize, message: &str| refused(&step(vehicle), 1, 31 + column, message);
    one("<vehicle x=\"1\" y=\"2\"/>", 1, "<vehicle> has no `id`");
    one("<person id=\"a\" y=\"2\"/>", 1, "<person> has no `x`");
    one("<vehicle id=\"\" x=\"1\" y=\"2\"/>", 14, "a node without a name");
    one("<vehicle id=\"a\" x=\"1\" y=\"2\" x=\"1\"/>", 32, "a second `x`");
    one("<vehicle id=\"a\" x=\"NaN\" y=\"2\"/>", 20, "`NaN` is not a number");
    one("<vehicle id=\"a\" x=\"1\" y=\"inf\"/>", 26, "`inf` is not a number");
    one("<vehicle id=\"a\" x=\"-1073741824\" y=\"1\"/>", 20, "-1073741824 is out of range");
    one("<vehicle id=\"a\" x=\"\" y=\"2\"/>", 20, "a number is missing here");
    one("<tram/>", 1, "<tram> is out of place");
    one("<vehicle id=\"a\" x=\"1\" y=\"2\"><vehicle/></vehicle>", 29, "<vehicle> is out of place");
    one("text", 1, "text between the tags");
    let vehicle = "<vehicle id=\"a\" x=\"1\" y=\"2\"/>";
    one(&vehicle.repeat(2), 43, "`a` is twice in this step");
    one(
        &format!("{vehicle}{}", vehicle.replace("vehicle", "person")),
        42,
        "a person with the id of a vehicle, `a`",
    );
    refused("<routes/>", 1, 1, "<routes> is out of place");
    refused("<fcd-export><vehicle/></fcd-export>", 1, 13, "<vehicle> is out of place");
    refused("<fcd-export><timestep/></fcd-export>", 1, 13, "<timestep> has no `time`");
    refused("<fcd-export/><fcd-export/>", 1, 14, "<fcd-export> is out of place");
    let error = parse("<fcd-export><timestep time=\"0\"></fcd-export>").unwrap_err();
    assert!(error.message.starts_with("invalid XML:") && error.column > 12, "{error}");
}

#[test]
fn time_steps_must_increase() {
    let steps = |times: [&str; 2]| {
        format!(
            "<fcd-export>\n<timestep time=\"{}\"/>\n<timestep time=\"{}\"/>\n</fcd-export>",
            times[0], times[1]
        )
    };
    for times in [["1", "1"], ["2", "1"]] {
        refused(&steps(times), 3, 17, "this time is not later than the one before it");
    }
    refused(&steps(["0", "00:00:10"]), 3, 17, "`00:00:10` is not a number");
    refused(&steps(["-1", "1"]), 2, 17, "-1 is out of range");
}

#[test]
fn entity_expansion_is_limited() {
    let bomb = "<!DOCTYPE a [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>";
    refused(&format!("{bomb}{FILE}"), 1, 1, "a document type");
    let error = parse(&step("<vehicle id=\"&b;\" x=\"1\" y=\"2\"/>")).unwrap_err();
    assert!(error.message.starts_with("invalid XML:"), "{error}");
    let deep = format!("<fcd-export>{}", "<timestep time=\"1\">".repeat(100_000));
    refused(&deep, 1, 32, "<timestep> is out of place");
}

#[test]
fn very_long_tags_are_parsed_in_linear_time_and_reported_briefly() {
    let many: String = (0..200_000).map(|i| format!(" a{i}=\"\"")).collect();
    assert_eq!(parse(&step(&format!("<vehicle{many} id=\"a\" x=\"1\" y=\"2\"/>"))).unwrap().nodes.len(), 1);
    let name = "n".repeat(1_000_000);
    for text in [format!("<{name}>"), step(&format!("<{name}/>")), format!("</{name}>")] {
        assert!(parse(&text).unwrap_err().message.len() < 100);
    }
}

proptest! {
    #[test]
    fn a_damaged_file_does_not_panic(
        cut in 0..FILE.len(), length in 0usize..60, put in "[ -~\\n]{0,6}",
    ) {
        let end = (cut + length).min(FILE.len()); // the file is ASCII
        let text = format!("{}{put}{}", &FILE[..cut], &FILE[end..]);
        if let Err(error) = parse(&text) {
            prop_assert!(text.get(error.span).is_some() && !error.help.is_empty());
        }
    }
}

#[test]
fn a_byte_order_mark_shifts_no_position() {
    let marked = |text: &str| format!("\u{feff}{text}");
    let file = parse(&marked(FILE)).unwrap();
    assert_eq!(
        file.nodes.iter().map(|n| n.name.as_deref().unwrap()).collect::<Vec<_>>(),
        ["car.0", "walker"]
    );
    assert_eq!(&marked(FILE)[file.nodes[1].first.clone()], "walker");
    let wrong = |text: &str, place, message: &str| {
        testing::assert_rejected(MovementFormat::Sumo, &marked(text), place, message)
    };
    wrong("<export/>", (1, 1), "<export> is out of place");
    wrong("<fcd-export><step/></fcd-export>", (1, 13), "<step> is out of place");
    wrong("<fcd-export>\n <step/>\n</fcd-export>", (2, 2), "<step> is out of place");
    wrong("<fcd-export>\n", (1, 13), "the file ends before </fcd-export>");
    wrong("<fcd-export><timestep time=\"x\"/></fcd-export>", (1, 29), "`x` is not a number");
    wrong("", (1, 1), "there is no <fcd-export>");
    let cut = parse(&marked("<fcd-export></fcd>")).unwrap_err();
    assert!(cut.message.starts_with("invalid XML") && marked("<fcd-export></fcd>").get(cut.span).is_some());
    assert_eq!((cut.line, cut.column), (1, 13));
}
