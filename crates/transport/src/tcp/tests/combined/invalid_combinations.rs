//! Valid and invalid combinations of options.

use super::*;
use crate::tcp::{
    AtcpConfig, BusConfig, DataOrder, Detection, DoorConfig, ElfnConfig, RouteFeedback, TcpFConfig,
};

fn door() -> DoorConfig {
    DoorConfig::all(2.0, 2.0)
}

#[test]
fn contradictory_options_are_refused_with_the_reason() {
    let modern = Config::modern();
    let told = [
        RouteFeedback::TcpF(TcpFConfig::PAPER),
        RouteFeedback::Elfn(ElfnConfig::PAPER),
        RouteFeedback::Atcp(AtcpConfig::PAPER),
        RouteFeedback::Bus(BusConfig::PAPER),
    ];
    let by_timestamps = DoorConfig { detection: Detection::Receiver(DataOrder::Timestamps), ..door() };
    let without_stamps = Config { timestamps: OptionOffer::NotOffered, ..modern };
    let mut refused = vec![
        (
            without_stamps.with_door(Some(by_timestamps)),
            "timestamps",
            "TCP-DOOR takes the order of data from them",
        ),
        (
            Config { timestamps: OptionOffer::NotOffered, ..with_eifel(modern.with_door(Some(door()))) },
            "spurious.eifel",
            "it goes by what an ACK echoes",
        ),
        (
            with_dsack_undo(modern.with_newreno()).with_door(Some(door())),
            "spurious.dsack",
            "carries the reports",
        ),
        (
            Config { variant: modern.with_newreno().variant, ..modern.with_rack().with_door(Some(door())) },
            "loss_detection",
            "RACK goes by what the peer holds",
        ),
    ];
    for scheme in told {
        let beside_door = modern.with_feedback(scheme).with_door(Some(door()));
        refused.push((beside_door, "feedback", "TCP-DOOR tells lost routes by itself"));
        refused.push((modern.with_rack().with_feedback(scheme), "feedback", "losses are told by time"));
    }
    for (config, field, reason) in refused {
        let error = config.validate().unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.requirement.contains(reason), "{}", error.requirement);
    }
}

#[test]
fn tcp_door_combines_with_every_modern_option() {
    assert_eq!(Config::linux().with_ecn(EcnMode::Request).with_door(Some(door())).validate(), Ok(()));
    for recovery in [Config::with_reno, Config::with_newreno, Config::with_sack, Config::with_rack] {
        let config =
            recovery(Config::modern().with_cubic().with_ecn(EcnMode::Request).with_door(Some(door())));
        assert_eq!(config.validate(), Ok(()));
    }
}
