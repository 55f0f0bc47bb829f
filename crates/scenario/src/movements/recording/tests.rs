use super::*;

#[test]
fn a_movement_file_of_ns_2_is_a_recording_without_names() {
    let text = "$node_(1) set X_ 1\n$node_(1) set Y_ 2\n$node_(0) set X_ 3\n$node_(0) set Y_ 4\n";
    let file = Recording::parse(MovementFormat::Ns2, text).unwrap();
    assert_eq!(file.nodes.len(), 2);
    assert_eq!(&text[file.nodes[0].first.clone()], "$node_(0)");
    assert_eq!(file.nodes[0].first.start, 38);
    assert_eq!((&file.nodes[1].name, file.nodes[1].path.position_at(Instant::ZERO).x_m), (&None, 1.0));
}

#[test]
fn an_empty_file_is_none_in_any_format() {
    for format in [MovementFormat::Ns2, MovementFormat::BonnMotion, MovementFormat::Sumo, MovementFormat::Csv]
    {
        let error = Recording::parse(format, "").unwrap_err();
        assert_eq!((error.line, error.column), (1, 1));
        assert!(error.help.len() > 10, "{error}");
    }
}

#[test]
fn nodes_have_a_limit() {
    let mut recorder = Recorder::default();
    for _ in 0..MOST_RECORDED_NODES {
        recorder.node(None, 0..0).unwrap();
    }
    assert_eq!(recorder.node(None, 3..4).unwrap_err().message, "more than 1048576 nodes");
}

#[test]
fn positions_have_a_limit() {
    let mut recorder = Recorder { samples: MOST_SAMPLES, ..Recorder::default() };
    let node = recorder.node(None, 0..0).unwrap();
    let flaw = recorder.sample(node, Instant::ZERO, Position::default(), 3..4).unwrap_err();
    assert_eq!(flaw.message, "more than 40000000 positions");
}
