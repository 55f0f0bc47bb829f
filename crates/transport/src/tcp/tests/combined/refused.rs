//! Valid and invalid combinations of options.

use super::*;
use crate::tcp::{AtcpConfig, BusConfig, DataOrder, Detection, DoorConfig, ElfnConfig, Feedback, TcpFConfig};

fn door() -> DoorConfig {
    DoorConfig::all(2.0, 2.0)
}

#[test]
fn pairs_that_contradict_each_other_are_refused_with_the_reason() {
    let modern = Config::modern();
    let told = [
        Feedback::TcpF(TcpFConfig::PAPER),
        Feedback::Elfn(ElfnConfig::PAPER),
        Feedback::Atcp(AtcpConfig::PAPER),
        Feedback::Bus(BusConfig::PAPER),
    ];
    let by_timestamps = DoorConfig { detection: Detection::Receiver(DataOrder::Timestamps), ..door() };
    let without_stamps = Config { timestamps: Offer::No, ..modern };
    let mut refused = vec![
        (without_stamps.with_door(by_timestamps), "timestamps", "TCP-DOOR takes the order of data from them"),
        (
            Config { timestamps: Offer::No, ..with_eifel(modern.with_door(door())) },
            "spurious.eifel",
            "it goes by what an ACK echoes",
        ),
        (with_dsack_undo(modern.with_newreno()).with_door(door()), "spurious.dsack", "carries the reports"),
        (
            Config { variant: modern.with_newreno().variant, ..modern.with_rack().with_door(door()) },
            "loss_detection",
            "RACK goes by what the peer holds",
        ),
    ];
    for scheme in told {
        let beside_door = modern.with_feedback(scheme).with_door(door());
        refused.push((beside_door, "feedback", "TCP-DOOR tells lost routes by itself"));
        refused.push((modern.with_rack().with_feedback(scheme), "feedback", "losses are told by time"));
    }
    for (config, field, reason) in refused {
        let error = config.validate().unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.must.contains(reason), "{}", error.must);
    }
}

#[test]
fn tcp_door_goes_with_everything_that_a_present_day_host_does() {
    assert_eq!(Config::linux().with_ecn().with_door(door()).validate(), Ok(()));
    for recovery in [Config::with_reno, Config::with_newreno, Config::with_sack, Config::with_rack] {
        let config = recovery(Config::modern().with_cubic().with_ecn().with_door(door()));
        assert_eq!(config.validate(), Ok(()));
    }
}
