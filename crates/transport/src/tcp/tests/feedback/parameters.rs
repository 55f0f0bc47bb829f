//! Ranges of parameters, and what does not go together.

use super::*;
use crate::tcp::{AtcpConfig, BusConfig, DoorConfig, ElfnConfig, FixedRtoConfig, Probing, TcpFConfig};

fn refused(config: Config) -> &'static str {
    config.validate().expect_err("this is wrong").field
}

#[test]
fn the_values_of_the_papers_are_valid() {
    let all = [
        Feedback::None,
        Feedback::FixedRto(FixedRtoConfig::PAPER),
        Feedback::TcpF(TcpFConfig::PAPER),
        Feedback::Elfn(ElfnConfig::PAPER),
        Feedback::Atcp(AtcpConfig::PAPER),
        Feedback::Bus(BusConfig::PAPER),
    ];
    assert!(all.iter().all(|&feedback| plain().with_feedback(feedback).validate().is_ok()));
    assert_eq!(all.map(Feedback::needs_notification), [false, false, true, true, true, true]);
}

#[test]
fn what_is_out_of_range_is_named() {
    let never = Probing::Every(Duration::ZERO);
    for (feedback, field) in [
        (Feedback::FixedRto(FixedRtoConfig { timeouts: 0 }), "feedback.timeouts"),
        (Feedback::FixedRto(FixedRtoConfig { timeouts: 256 }), "feedback.timeouts"),
        (Feedback::TcpF(TcpFConfig { failure_timer: Duration::ZERO }), "feedback.failure_timer"),
        (Feedback::Elfn(ElfnConfig { probing: never, ..ElfnConfig::PAPER }), "feedback.probing"),
        (Feedback::Atcp(AtcpConfig { probing: never, ..AtcpConfig::PAPER }), "feedback.probing"),
        (Feedback::Bus(BusConfig { probing: never }), "feedback.probing"),
    ] {
        assert_eq!(refused(plain().with_feedback(feedback)), field);
    }
}

#[test]
fn who_tells_losses_by_time_cannot_be_frozen() {
    let rack = plain().with_rack();
    for (feedback, fits) in [
        (Feedback::Elfn(ElfnConfig::PAPER), false),
        (Feedback::Atcp(AtcpConfig::PAPER), false),
        (Feedback::FixedRto(FixedRtoConfig::PAPER), true),
    ] {
        assert_eq!(rack.with_feedback(feedback).validate().is_ok(), fits, "{feedback:?}");
    }
    assert_eq!(refused(rack.with_feedback(Feedback::TcpF(TcpFConfig::PAPER))), "feedback");
}

#[test]
fn tcp_door_goes_with_none_of_them() {
    let door = plain().with_door(DoorConfig::all(2.0, 2.0));
    assert_eq!(door.validate(), Ok(()));
    for feedback in [Feedback::Elfn(ElfnConfig::PAPER), Feedback::FixedRto(FixedRtoConfig::PAPER)] {
        assert_eq!(refused(door.with_feedback(feedback)), "feedback");
    }
}
