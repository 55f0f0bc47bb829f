//! `[door]` and `flow.door`.

use super::super::choice::Choice;
use super::super::keys;
use super::super::schema::Section;
use hopline_config::source::Problem;
use hopline_transport::tcp::{AckOrder, DataOrder, Detection, DoorConfig, OptionOffer};

/// Keys that are of no use in a configuration, and why.
const KEYS_WITHOUT_EFFECT: [(&str, &[&str], &str); 4] = [
    (
        "ir",
        &["t1", "disabled_changes", "disabled_retransmissions", "disabled_timer", "repeated_event"],
        "disables nothing",
    ),
    ("td", &["t2", "undo_scope"], "recovers nothing"),
    ("rd", &["ack_order"], "does not look at the order of ACKs"),
    ("sd", &["data_order", "feedback_acks"], "does not look at the order of data"),
];

/// Returns the TCP below TCP-DOOR.
pub(super) fn base_transport(sections: [Section<'_>; 2]) -> &'static str {
    match word(sections, "recovery") {
        Some("newreno") => "tcp-newreno",
        Some("reno") => "tcp-reno",
        _ => "tcp-sack",
    }
}

/// Returns the configuration that `sections`, the later over the earlier, describe; `timestamps`: whether the
/// endpoint offers them.
pub(super) fn resolve(sections: [Section<'_>; 2], timestamps: OptionOffer) -> Result<DoorConfig, Problem> {
    let name = word(sections, "config").unwrap_or("all");
    reject_keys_without_effect(sections, name)?;
    let number = |key| section_with(sections, key).and_then(|s| s.number(key)).unwrap_or(keys::DOOR_TIME);
    let (t1, t2) = (number("t1"), number("t2"));
    let mut door = match name {
        "sd" => DoorConfig::sender_detection(t1, t2),
        "rd" => DoorConfig::receiver_detection(t1, t2),
        "td" => DoorConfig::temporary_disabling(t1),
        "ir" => DoorConfig::instant_recovery(t2),
        _all => DoorConfig::all(t1, t2),
    };
    door = door.with_detection(detection(sections, door.detection()));
    if let (Some(DataOrder::Timestamps), OptionOffer::NotOffered) = (door.detection().data(), timestamps) {
        let at = section_with(sections, "data_order").expect("timestamps are not the default");
        return Err(Problem::new("no timestamps to take the order of data from")
            .at(at.origin_of("data_order"))
            .help("set tcp.timestamps = true, or data_order = \"tpsn\""));
    }
    Ok(apply(door, sections))
}

/// Refuses a key beside a configuration that has no use for it. A key given for all flows does not bind a
/// flow that has a configuration of its own.
fn reject_keys_without_effect(sections: [Section<'_>; 2], name: &str) -> Result<(), Problem> {
    let own_config = sections[1].has("config");
    for (config, keys, why) in KEYS_WITHOUT_EFFECT.iter().filter(|(config, ..)| *config == name) {
        for section in sections.iter().skip(usize::from(own_config)) {
            if let Some(key) = keys.iter().find(|key| section.has(key)) {
                return Err(Problem::new(format!("config = \"{config}\" {why}"))
                    .at(section.origin_of(key))
                    .help(format!("remove `{key}`, or take another config")));
            }
        }
    }
    Ok(())
}

fn detection(sections: [Section<'_>; 2], detection: Detection) -> Detection {
    let acks = chosen(sections, keys::door::ACK_ORDER).unwrap_or(AckOrder::Adsn);
    let data = chosen(sections, keys::door::DATA_ORDER).unwrap_or(DataOrder::Tpsn);
    match detection {
        Detection::Sender(_) => Detection::Sender(acks),
        Detection::Receiver(_) => Detection::Receiver(data),
        Detection::Both(..) => Detection::Both(acks, data),
    }
}

fn apply(mut door: DoorConfig, sections: [Section<'_>; 2]) -> DoorConfig {
    if let Some(acks) = section_with(sections, "feedback_acks").and_then(|s| s.integer_as("feedback_acks")) {
        door = door.with_feedback_acks(acks);
    }
    for section in sections {
        door = door
            .with_late(section.get(keys::door::LATE).unwrap_or(door.late()))
            .with_held(section.get(keys::door::HELD).unwrap_or(door.held()))
            .with_retransmissions(section.get(keys::door::RESENDS).unwrap_or(door.retransmissions()))
            .with_held_timer(section.get(keys::door::HELD_TIMER).unwrap_or(door.held_timer()))
            .with_repeated_event(section.get(keys::door::AGAIN).unwrap_or(door.repeated_event()))
            .with_reach(section.get(keys::door::REACH).unwrap_or(door.reach()));
    }
    door
}

/// Returns the section that has the say on `key`.
fn section_with<'a>(sections: [Section<'a>; 2], key: &str) -> Option<Section<'a>> {
    sections.into_iter().rev().find(|section| section.has(key))
}

fn word<'a>(sections: [Section<'a>; 2], key: &str) -> Option<&'a str> {
    section_with(sections, key).and_then(|section| section.word(key))
}

fn chosen<T: Copy>(sections: [Section<'_>; 2], key: Choice<T>) -> Option<T> {
    let [general, own] = sections.map(|section| section.get(key));
    own.or(general)
}
