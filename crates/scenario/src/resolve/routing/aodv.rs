//! `[routing.aodv]`.

use super::super::super::keys;
use super::super::super::schema::Section;
use super::super::{jitter, seconds};
use hopline_config::source::Problem;
use hopline_radio::mac::config::FirstAccess;
use hopline_routing::aodv::Config;
use hopline_routing::aodv::config::{Hello, HelloSchedule, LinkSensing};
use std::num::NonZeroU16;

pub(super) fn config(section: Section<'_>, first_access: Option<FirstAccess>) -> Result<Config, Problem> {
    let mut config = section.get(keys::aodv::PRESET)();
    let byte = |key| section.integer_as::<u8>(key);
    apply_sensing(&mut config, section)?;
    let times = [
        ("active_route_timeout_s", &mut config.active_route_timeout),
        ("my_route_timeout_s", &mut config.my_route_timeout),
        ("node_traversal_time_s", &mut config.node_traversal_time),
        ("broadcast_jitter_s", &mut config.broadcast_jitter),
        ("buffer_time_s", &mut config.buffer_time),
    ];
    for (key, field) in times {
        *field = seconds(&section, key).unwrap_or(*field);
    }
    config.originated_jitter =
        jitter::of(&section, "originated_jitter_s", config.originated_jitter, first_access);
    config.net_diameter = byte("net_diameter").unwrap_or(config.net_diameter);
    config.rreq_retries = byte("rreq_retries").unwrap_or(config.rreq_retries);
    config.ttl_start = byte("ttl_start").unwrap_or(config.ttl_start);
    let packets =
        section.integer("buffer_packets").and_then(|n| u16::try_from(n).ok()).and_then(NonZeroU16::new);
    config.buffer_packets = packets.unwrap_or(config.buffer_packets);
    Ok(config)
}

fn apply_sensing(config: &mut Config, section: Section<'_>) -> Result<(), Problem> {
    let hello = hello(config.link_sensing.hello(), section)?;
    config.link_sensing = match (section.word("link_sensing"), config.link_sensing) {
        (Some("link-layer"), _) | (None, LinkSensing::LinkLayer) => LinkSensing::LinkLayer,
        (Some("hello"), _) | (None, LinkSensing::Hello(_)) => LinkSensing::Hello(hello),
        (Some(_), _) | (None, LinkSensing::Both(_)) => LinkSensing::Both(hello),
    };
    Ok(())
}

/// Returns HELLO messages as the preset and the keys have them.
fn hello(of_preset: Option<&Hello>, section: Section<'_>) -> Result<Hello, Problem> {
    let interval = seconds(&section, "hello_interval_s");
    let mut hello = match of_preset {
        Some(hello) => Hello { interval: interval.unwrap_or(hello.interval), ..*hello },
        None => Hello::every(interval.unwrap_or(Hello::RFC3561.interval)),
    };
    hello.allowed_loss = section.integer_as("allowed_hello_loss").unwrap_or(hello.allowed_loss);
    hello.slack = seconds(&section, "hello_slack_s").unwrap_or(hello.slack);
    section.set_if_given(keys::aodv::HELLO_WHEN, &mut hello.senders);
    section.set_if_given(keys::aodv::SIGN_OF_LIFE, &mut hello.liveness);
    hello.schedule = schedule(hello.schedule, section)?;
    Ok(hello)
}

fn schedule(of_preset: HelloSchedule, section: Section<'_>) -> Result<HelloSchedule, Problem> {
    let jitter = seconds(&section, "hello_jitter_s");
    let chosen = section.get(keys::aodv::HELLO_SCHEDULE);
    match (chosen.unwrap_or(of_preset), of_preset, jitter) {
        (HelloSchedule::Periodic, _, Some(_)) => {
            Err(Problem::new("hello_jitter_s has no effect with hello_schedule = \"periodic\"")
                .at(section.origin_of("hello_jitter_s"))
                .help("leave it out, or set hello_schedule = \"after-broadcast\""))
        }
        (HelloSchedule::AfterBroadcast { .. }, _, Some(jitter)) => {
            Ok(HelloSchedule::AfterBroadcast { jitter })
        }
        // The word itself says nothing of jitter.
        (HelloSchedule::AfterBroadcast { .. }, kept @ HelloSchedule::AfterBroadcast { .. }, None) => Ok(kept),
        (schedule, _, None) => Ok(schedule),
    }
}
