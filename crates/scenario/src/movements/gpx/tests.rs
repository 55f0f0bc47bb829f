use super::super::{MovementError, MovementFormat, Recording, testing};
use hopline_core::Instant;

/// A file with these tracks.
fn file(tracks: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<gpx version=\"1.1\" xmlns=\"http://www.topografix.com/GPX/1/1\">{tracks}</gpx>\n"
    )
}

/// A point of 1 May 2024, 10 o'clock and so many seconds.
fn point(lat: f64, lon: f64, second: &str) -> String {
    format!(
        "<trkpt lat=\"{lat}\" lon=\"{lon}\"><ele>34.5</ele><time>2024-05-01T10:00:{second}Z</time></trkpt>"
    )
}

fn track(name: &str, points: &[String]) -> String {
    format!("<trk><name>{name}</name><trkseg>{}</trkseg></trk>", points.concat())
}

fn parse(text: &str) -> Result<Recording, MovementError> {
    Recording::parse(MovementFormat::Gpx, text)
}

#[track_caller]
fn refused(tracks: &str, place: (usize, usize), message: &str) -> String {
    testing::assert_rejected(MovementFormat::Gpx, &file(tracks), place, message)
}

/// Returns the position of node `node` at so many seconds after the beginning.
fn at(recording: &Recording, node: usize, seconds: u64) -> (f64, f64) {
    let position = recording.nodes[node].trajectory.position_at(Instant::from_secs(seconds));
    (position.x_m, position.y_m)
}

fn names(recording: &Recording) -> Vec<&str> {
    recording.nodes.iter().map(|node| node.name.as_deref().unwrap_or("-")).collect()
}

#[test]
fn each_track_is_a_node_on_the_clock_of_the_earliest() {
    let text = file(
        &(track("late", &[point(52.0, 13.0, "10"), point(52.001, 13.0, "20")])
            + &track("early", &[point(52.0, 13.0, "02"), point(52.0, 13.001, "12")])),
    );
    let recording = parse(&text).unwrap();
    assert_eq!(names(&recording), ["late", "early"]);
    assert_eq!(at(&recording, 0, 0), (0.0, 0.0), "it stands where it begins");
    let half_way = at(&recording, 0, 13);
    let there = at(&recording, 0, 100);
    assert!((half_way.1 * 2.0 - there.1).abs() < 1e-6 && half_way.0 == 0.0, "{half_way:?} {there:?}");
}

#[test]
fn degrees_are_converted_by_the_ellipsoid_at_the_first_point() {
    // Lengths of a degree on WGS 84 (NGA.STND.0036, the series of its radii): at the equator 110,574 m to the north and
    // 111,320 m to the east, at 60° 111,412 m and 55,800 m.
    for (lat, north_m, east_m) in [(0.0, 110_574.3, 111_319.5), (60.0, 111_412.3, 55_800.0)] {
        let points = [point(lat, 10.0, "00"), point(lat + 0.01, 10.0, "10"), point(lat, 10.01, "20")];
        let recording = parse(&file(&track("a", &points))).unwrap();
        let (north, east) = (at(&recording, 0, 10).1, at(&recording, 0, 20).0);
        assert!((north - north_m / 100.0).abs() < 0.05, "{lat}: {north}");
        assert!((east - east_m / 100.0).abs() < 0.05, "{lat}: {east}");
    }
}

#[test]
fn the_date_line_is_crossed_the_short_way() {
    let points = [point(0.0, 179.999, "00"), point(0.0, -179.999, "59")];
    let recording = parse(&file(&track("ship", &points))).unwrap();
    assert!((at(&recording, 0, 59).0 - 222.639).abs() < 0.01, "{:?}", at(&recording, 0, 59));
}

#[test]
fn other_elements_of_gpx_are_ignored() {
    let text = file(
        &("<metadata><name>x</name><time>2020-01-01T00:00:00Z</time></metadata><wpt lat=\"0\" lon=\"0\"/>"
            .to_owned()
            + "<rte><rtept lat=\"1\" lon=\"2\"/></rte>"
            + "<trk><extensions><name>no</name></extensions><name> a &amp; <![CDATA[b]]>&#33; </name><trkseg/><trkseg>"
            + "<trkpt lat=\"1\" lon=\"2\"><time>2024-05-01T12:00:00.5+02:00</time><extensions><hr>99</hr></extensions></trkpt>"
            + "</trkseg><trkseg><trkpt lat=\"1\" lon=\"2.001\"><time>2024-05-01T10:00:10.5</time></trkpt></trkseg></trk>"
            + "<trk><name>empty</name></trk>"),
    );
    let recording = parse(&text).unwrap();
    assert_eq!(names(&recording), ["a & b!"]);
    assert_eq!(at(&recording, 0, 0), (0.0, 0.0));
    assert!((at(&recording, 0, 10).0 - 111.3).abs() < 0.1, "{:?}", at(&recording, 0, 10));
    let prefixed = text.replace("<trk", "<g:trk").replace("</trk", "</g:trk");
    assert_eq!(names(&parse(&prefixed).unwrap()), ["a & b!"], "whatever the prefix");
    assert_eq!(names(&parse(&format!("\u{feff}{text}")).unwrap()), ["a & b!"]);
}

#[test]
fn names_are_used_only_if_all_tracks_have_one() {
    let unnamed = "<trk><trkseg>".to_owned() + &point(0.0, 0.0, "00") + "</trkseg></trk>";
    let recording = parse(&file(&(track("a", &[point(0.0, 0.0, "00")]) + &unnamed))).unwrap();
    assert_eq!(names(&recording), ["-", "-"]);
}

#[test]
fn a_stationary_node_may_repeat_its_position() {
    let points = [point(1.0, 2.0, "00"), point(1.0, 2.0, "00"), point(1.0, 2.0, "05")];
    assert!(parse(&file(&track("a", &points))).is_ok());
    let elsewhere = [point(1.0, 2.0, "00"), point(1.1, 2.0, "00")];
    assert!(parse(&file(&track("a", &elsewhere))).unwrap_err().message.contains("not later"));
}

#[test]
fn errors_have_their_position() {
    let one = |point: &str| track("a", &[point.to_owned()]);
    refused(&one("<trkpt lat=\"1\"/>"), (2, 89), "<trkpt> has no `lon`");
    refused(&one("<trkpt lat=\"91\" lon=\"0\"/>"), (2, 101), "a point without a time");
    let far = "<trkpt lat=\"91\" lon=\"0\"><time>2024-05-01T10:00:00Z</time></trkpt>";
    refused(&one(far), (2, 101), "91 is out of range");
    refused(&one(&far.replace("91", "1").replace("\"0\"", "\"181\"")), (2, 109), "181 is out of range");
    refused(&one(&far.replace("91", "nan")), (2, 101), "`nan` is not a number");
    let timed = |time: &str| one(&format!("<trkpt lat=\"1\" lon=\"2\"><time>{time}</time></trkpt>"));
    for time in ["", "yesterday", "2024-13-01T10:00:00Z", "2024-05-01", "2300-01-01T00:00:00Z"] {
        refused(&timed(time), (2, 118), &format!("`{time}` is not a time"));
    }
    let back = track("a", &[point(1.0, 2.0, "05"), point(1.0, 2.001, "04")]);
    assert!(parse(&file(&back)).unwrap_err().message.contains("not later than the one before it"));
    let two = track("a", &[point(1.0, 2.0, "00")]);
    assert!(parse(&file(&(two.clone() + &two))).unwrap_err().message.contains("a second track named `a`"));
    let apart = track("a", &[point(1.0, 2.0, "00")]) + &track("b", &[point(50.0, 2.0, "00")]);
    assert!(parse(&file(&apart)).unwrap_err().message.contains("more than 1000 km"));
    let late = track("a", &[point(1.0, 2.0, "00"), point(1.0, 2.001, "10").replace("2024", "2060")]);
    assert!(parse(&file(&late)).unwrap_err().message.contains("more than 1e9 s after the earliest"));
    refused("", (1, 1), "the movement file has no node");
    for (text, message) in [
        ("<kml/>", "<kml> is out of place"),
        ("<gpx><trk>", "the file ends before </gpx>"),
        ("", "there is no <gpx>"),
        ("<!DOCTYPE gpx [<!ENTITY a \"b\">]><gpx/>", "a document type"),
        ("<gpx><trk><name>&a;</name></trk></gpx>", "an unknown entity"),
    ] {
        assert_eq!(parse(text).unwrap_err().message, message, "{text}");
    }
}
