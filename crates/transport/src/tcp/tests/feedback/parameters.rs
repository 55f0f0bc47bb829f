//! Ranges of parameters, and what does not go together.

use super::*;
use crate::tcp::{AtcpConfig, BusConfig, DoorConfig, ElfnConfig, FixedRtoConfig, ProbeSchedule, TcpFConfig};

fn refused(config: Config) -> &'static str {
    config.validate().expect_err("this is wrong").field
}

#[test]
fn the_values_of_the_papers_are_valid() {
    let all = [
        RouteFeedback::None,
        RouteFeedback::FixedRto(FixedRtoConfig::PAPER),
        RouteFeedback::TcpF(TcpFConfig::PAPER),
        RouteFeedback::Elfn(ElfnConfig::PAPER),
        RouteFeedback::Atcp(AtcpConfig::PAPER),
        RouteFeedback::Bus(BusConfig::PAPER),
    ];
    assert!(all.iter().all(|&feedback| plain().with_feedback(feedback).validate().is_ok()));
    assert_eq!(all.map(RouteFeedback::needs_notification), [false, false, true, true, true, true]);
}

#[test]
fn parameters_out_of_range_are_named() {
    let never = ProbeSchedule::Every(Duration::ZERO);
    for (feedback, field) in [
        (RouteFeedback::FixedRto(FixedRtoConfig { timeouts: 0 }), "feedback.timeouts"),
        (RouteFeedback::FixedRto(FixedRtoConfig { timeouts: 256 }), "feedback.timeouts"),
        (RouteFeedback::TcpF(TcpFConfig { failure_timer: Duration::ZERO }), "feedback.failure_timer"),
        (RouteFeedback::Elfn(ElfnConfig { probing: never, ..ElfnConfig::PAPER }), "feedback.probing"),
        (RouteFeedback::Atcp(AtcpConfig { probing: never, ..AtcpConfig::PAPER }), "feedback.probing"),
        (RouteFeedback::Bus(BusConfig { probing: never }), "feedback.probing"),
    ] {
        assert_eq!(refused(plain().with_feedback(feedback)), field);
    }
}

#[test]
fn freezing_schemes_cannot_use_rack() {
    let rack = plain().with_rack();
    for (feedback, fits) in [
        (RouteFeedback::Elfn(ElfnConfig::PAPER), false),
        (RouteFeedback::Atcp(AtcpConfig::PAPER), false),
        (RouteFeedback::FixedRto(FixedRtoConfig::PAPER), true),
    ] {
        assert_eq!(rack.with_feedback(feedback).validate().is_ok(), fits, "{feedback:?}");
    }
    assert_eq!(refused(rack.with_feedback(RouteFeedback::TcpF(TcpFConfig::PAPER))), "feedback");
}

#[test]
fn tcp_door_excludes_feedback_schemes() {
    let door = plain().with_door(Some(DoorConfig::all(2.0, 2.0)));
    assert_eq!(door.validate(), Ok(()));
    for feedback in [RouteFeedback::Elfn(ElfnConfig::PAPER), RouteFeedback::FixedRto(FixedRtoConfig::PAPER)] {
        assert_eq!(refused(door.with_feedback(feedback)), "feedback");
    }
}
