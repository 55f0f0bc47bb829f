use super::*;
use crate::movements::MovementFormat;

#[test]
fn a_movement_file_of_ns_2_has_no_names() {
    let text = "$node_(1) set X_ 1\n$node_(1) set Y_ 2\n$node_(0) set X_ 3\n$node_(0) set Y_ 4\n";
    let file = Recording::parse(MovementFormat::Ns2, text).unwrap();
    assert_eq!(file.nodes.len(), 2);
    assert_eq!(&text[file.nodes[0].first.clone()], "$node_(0)");
    assert_eq!(file.nodes[0].first.start, 38);
    assert_eq!((&file.nodes[1].name, file.nodes[1].trajectory.position_at(Instant::ZERO).x_m), (&None, 1.0));
}

#[test]
fn an_empty_file_is_rejected_in_every_format() {
    for format in [MovementFormat::Ns2, MovementFormat::BonnMotion, MovementFormat::Sumo, MovementFormat::Csv]
    {
        let error = Recording::parse(format, "").unwrap_err();
        assert_eq!((error.line, error.column), (1, 1));
        assert!(error.help.len() > 10, "{error}");
    }
}

#[test]
fn the_number_of_nodes_is_limited() {
    let mut recorder = Recorder::default();
    for _ in 0..MAX_NODES {
        recorder.node(None, 0..0).unwrap();
    }
    assert_eq!(recorder.node(None, 3..4).unwrap_err().message, "more than 1048576 nodes");
}

#[test]
fn the_number_of_positions_is_limited() {
    let mut recorder = Recorder { samples: MAX_SAMPLES, ..Recorder::default() };
    let node = recorder.node(None, 0..0).unwrap();
    let flaw = recorder.sample(node, Instant::ZERO, Position::default(), 3..4).unwrap_err();
    assert_eq!(flaw.message, "more than 40000000 positions");
}

#[test]
fn degrees_are_rejected_in_every_metric_format() {
    let files = [
        (
            MovementFormat::Csv,
            "node,time_s,x_m,y_m\na,0,-78.695146,35.794948\nb,0,-78.685146,35.794948\n",
            (2, 1),
        ),
        (MovementFormat::BonnMotion, "0 13.405 52.52 60 13.406 52.521\n", (1, 1)),
        (
            MovementFormat::Ns2,
            "$node_(0) set X_ 13.405\n$node_(0) set Y_ 52.52\n$node_(0) set Z_ 0\n$ns_ at 1.0 \"$node_(0) setdest 13.406 52.521 10\"\n",
            (1, 1),
        ),
        (
            MovementFormat::Sumo,
            "<fcd-export><timestep time=\"0\"><vehicle id=\"a\" x=\"-78.695146\" y=\"35.794948\"/></timestep>\
             <timestep time=\"60\"><vehicle id=\"a\" x=\"-78.685146\" y=\"35.794948\"/></timestep></fcd-export>",
            (1, 45),
        ),
    ];
    for (format, text, place) in files {
        let error = Recording::parse(format, text).unwrap_err();
        assert_eq!(
            error.message, "positions look like longitudes and latitudes: all lie within a metre",
            "{format:?}"
        );
        assert!(error.help.contains("project them"), "{error}");
        assert_eq!((error.line, error.column), place, "{format:?}");
    }
}

#[test]
fn small_networks_are_accepted_as_metres() {
    let text = "node,time_s,x_m,y_m\na,0,0,0\nb,0,0.5,0.5\n";
    assert_eq!(Recording::parse(MovementFormat::Csv, text).unwrap().nodes.len(), 2);
}
