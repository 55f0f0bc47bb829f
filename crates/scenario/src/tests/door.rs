//! `tcp-door` and `[door]`.

use super::*;
use hopline_transport::tcp::{
    AckOrder, DataOrder, Detection, DisabledRetransmissions, DoorConfig, HeldTimerBackoff, HeldVariables,
    LateRule, RepeatedEvent, UndoReach,
};

fn door(settings: &[&str]) -> DoorConfig {
    let settings = [&["transport=tcp-door"], settings].concat();
    tcp(&spec(CHAIN, &settings), 0).door().expect("tcp-door has it")
}

/// Returns the problem of the chain over TCP-DOOR with these lines in `[door]`: `line:column message | help`.
#[track_caller]
fn problem(lines: &str) -> String {
    let text = CHAIN.replace("[nodes]", &format!("transport = \"tcp-door\"\n[door]\n{lines}\n[nodes]"));
    let problems = parse(&text, &[]).and_then(|s| s.spec(1)).expect_err("this is wrong");
    let problem = &problems.0[0];
    let (line, column) = problem.at.as_ref().expect("every problem of a file has a place").line_column();
    format!("{line}:{column} {} | {}", problem.message, problem.help.as_deref().unwrap_or("-"))
}

#[test]
fn tcp_door_is_sack_with_all_mechanisms() {
    assert_eq!(
        tcp(&spec(CHAIN, &["transport=tcp-door"]), 0),
        Config::modern().with_sack().with_door(Some(DoorConfig::all(2.0, 2.0)))
    );
    let config = tcp(&spec(CHAIN, &["transport=tcp-door", "tcp.preset=ns2-2001", "tcp.window=32"]), 0);
    let sack = Config::ns2_2001().with_sack().with_window_clamp(Some(32));
    assert_eq!(config, sack.with_door(Some(DoorConfig::all(2.0, 2.0))));
}

#[test]
fn the_56_settings_of_the_study_can_be_configured() {
    let mut settings = Vec::new();
    let times = ["1", "2", "4", "8"];
    for config in ["all", "sd", "rd"] {
        let pairs =
            times.iter().flat_map(|t1| times.map(|t2| [format!("door.t1={t1}"), format!("door.t2={t2}")]));
        settings.extend(pairs.map(|[t1, t2]| vec![format!("door.config={config}"), t1, t2]));
    }
    for (config, key) in [("td", "t1"), ("ir", "t2")] {
        settings.extend(times.map(|t| vec![format!("door.config={config}"), format!("door.{key}={t}")]));
    }
    let written: Vec<DoorConfig> = settings
        .iter()
        .map(|settings| door(&settings.iter().map(String::as_str).collect::<Vec<_>>()))
        .collect();
    assert_eq!(written, DoorConfig::study_settings().collect::<Vec<_>>());
}

#[test]
fn every_choice_can_be_set() {
    let config = door(&[
        "door.t1=0.5",
        "door.t2=1000",
        "door.ack_order=numbers",
        "door.data_order=timestamps",
        "door.reordering_events=each",
        "door.feedback_acks=3",
        "door.disabled_changes=reductions",
        "door.disabled_retransmissions=first",
        "door.disabled_timer=backs-off",
        "door.repeated_event=continue",
        "door.undo_scope=latest",
    ]);
    let expected = DoorConfig::all(0.5, 1000.0)
        .with_detection(Detection::Both(AckOrder::Numbers, DataOrder::Timestamps))
        .with_late(LateRule::Each)
        .with_feedback_acks(3)
        .with_held(HeldVariables::Reductions)
        .with_retransmissions(DisabledRetransmissions::FirstSegment)
        .with_held_timer(HeldTimerBackoff::Exponential)
        .with_repeated_event(RepeatedEvent::Continue)
        .with_reach(UndoReach::Latest);
    assert_eq!(config, expected);
    assert_eq!(door(&["door.reordering_events=after-previous"]).late(), LateRule::AfterPrevious);
}

#[test]
fn another_recovery_algorithm_can_be_chosen() {
    for (word, below) in
        [("newreno", Config::modern().with_newreno()), ("reno", Config::modern().with_reno())]
    {
        let recovery = format!("door.recovery={word}");
        let config = tcp(&spec(CHAIN, &["transport=tcp-door", &recovery]), 0);
        assert_eq!(config, below.with_door(Some(DoorConfig::all(2.0, 2.0))));
    }
}

#[test]
fn settings_of_a_flow_override_those_for_all() {
    let two = CHAIN.to_owned() + "[[flow]]\nsrc = \"n2\"\ndst = \"n0\"\ntransport = \"tcp-sack\"\n";
    let settings = ["transport=tcp-door", "door.t1=8", "door.t2=4", "flow.0.door.t2=1"];
    let both = spec(&two, &settings);
    assert_eq!(tcp(&both, 0).door(), Some(DoorConfig::all(8.0, 1.0)));
    assert_eq!(tcp(&both, 1).door(), None, "another transport has none");
    let own = spec(&two, &["transport=tcp-door", "door.t1=8", "flow.0.door.config=ir"]);
    assert_eq!(tcp(&own, 0).door(), Some(DoorConfig::instant_recovery(2.0)), "T1 was said of the others");
}

#[test]
fn contradictory_settings_are_rejected_with_the_reason() {
    assert_eq!(
        problem("config = \"ir\"\nt1 = 2"),
        "5:6 config = \"ir\" disables nothing | remove `t1`, or take another config"
    );
    assert_eq!(
        problem("t2 = 4\nconfig = \"td\""),
        "4:6 config = \"td\" recovers nothing | remove `t2`, or take another config"
    );
    assert_eq!(
        problem("config = \"rd\"\nack_order = \"numbers\""),
        "5:13 config = \"rd\" does not look at the order of ACKs | remove `ack_order`, or take another config"
    );
    assert_eq!(
        problem("config = \"sd\"\ndata_order = \"tpsn\""),
        "5:14 config = \"sd\" does not look at the order of data | remove `data_order`, or take another config"
    );
    assert_eq!(
        problem("data_order = \"timestamps\"\n[tcp]\ntimestamps = false"),
        "4:14 no timestamps to take the order of data from | set tcp.timestamps = true, or data_order = \"tpsn\""
    );
    assert_eq!(problem("t1 = 0"), "4:6 `door.t1` = 0 is out of range | it takes a number from 0.001 to 1000");
    assert!(problem("config = \"dr\"").starts_with("4:10 `door.config` does not know \"dr\""));
    assert!(problem("feedback_acks = 0").contains("out of range"));
}
