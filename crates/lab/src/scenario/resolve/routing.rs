//! `[routing]`.

use super::super::schema::Section;
use super::super::source::Problem;
use super::seconds;
use hopline_routing::aodv::Config;
use hopline_routing::aodv::config::{Hello, LinkSensing};
use hopline_sim::spec::{FailureNotification, Interface, NodeSpec, RoutingSpec};
use std::num::NonZeroU16;

/// How packets find their way among `nodes`.
pub(super) fn resolve(section: Section<'_>, nodes: &[NodeSpec]) -> Result<RoutingSpec, Problem> {
    let aodv = section.section("aodv");
    if section.word("protocol") != Some("aodv") {
        return match aodv.is_given() {
            false => Ok(RoutingSpec::Static),
            true => Err(Problem::new("[routing.aodv] is given but the protocol is static")
                .at(section.origin_of("aodv"))
                .help("set routing.protocol = \"aodv\"")),
        };
    }
    if let Some(wired) = nodes.iter().find(|n| n.interface == Interface::Wired) {
        return Err(Problem::new(format!("AODV runs on wireless nodes only, and `{}` is wired", wired.name))
            .at(section.origin_of("protocol"))
            .help("use protocol = \"static\" where there are wired nodes"));
    }
    Ok(RoutingSpec::Aodv(config(aodv)))
}

/// What transports are told of routes.
pub(super) fn failure_notification(section: Section<'_>) -> FailureNotification {
    match section.word("failure_notification").expect("has a default") {
        "elfn" => FailureNotification::Elfn,
        _none => FailureNotification::None,
    }
}

fn config(section: Section<'_>) -> Config {
    let mut config = match section.word("preset").expect("has a default") {
        "rfc3561" => Config::rfc3561(),
        "rfc3561-hello" => Config::rfc3561_hello(),
        "ns2-2.35" => Config::ns2_235(),
        other => unreachable!("the key table knows no preset {other}"),
    };
    let byte =
        |key| section.integer(key).map(|n| u8::try_from(n).expect("the key's range is that of the type"));
    apply_sensing(&mut config, section);
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
    config.net_diameter = byte("net_diameter").unwrap_or(config.net_diameter);
    config.rreq_retries = byte("rreq_retries").unwrap_or(config.rreq_retries);
    config.ttl_start = byte("ttl_start").unwrap_or(config.ttl_start);
    let packets =
        section.integer("buffer_packets").and_then(|n| u16::try_from(n).ok()).and_then(NonZeroU16::new);
    config.buffer_packets = packets.unwrap_or(config.buffer_packets);
    config
}

fn apply_sensing(config: &mut Config, section: Section<'_>) {
    let mut hello = config.link_sensing.hello().copied().unwrap_or(Hello::RFC3561);
    hello.interval = seconds(&section, "hello_interval_s").unwrap_or(hello.interval);
    let loss = section.integer("allowed_hello_loss").and_then(|n| u8::try_from(n).ok());
    hello.allowed_loss = loss.unwrap_or(hello.allowed_loss);
    config.link_sensing = match (section.word("link_sensing"), config.link_sensing) {
        (Some("link-layer"), _) | (None, LinkSensing::LinkLayer) => LinkSensing::LinkLayer,
        (Some("hello"), _) | (None, LinkSensing::Hello(_)) => LinkSensing::Hello(hello),
        (Some(_), _) | (None, LinkSensing::Both(_)) => LinkSensing::Both(hello),
    };
}
