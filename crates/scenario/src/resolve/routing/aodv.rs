//! `[routing.aodv]`.

use super::super::super::keys;
use super::super::super::schema::Section;
use super::super::seconds;
use hopline_routing::aodv::Config;
use hopline_routing::aodv::config::{Hello, LinkSensing};
use std::num::NonZeroU16;

pub(super) fn config(section: Section<'_>) -> Config {
    let mut config = section.get(keys::aodv::PRESET)();
    let byte = |key| section.narrow::<u8>(key);
    apply_sensing(&mut config, section);
    let times = [
        ("active_route_timeout_s", &mut config.active_route_timeout),
        ("my_route_timeout_s", &mut config.my_route_timeout),
        ("node_traversal_time_s", &mut config.node_traversal_time),
        ("broadcast_jitter_s", &mut config.broadcast_jitter),
        ("originated_jitter_s", &mut config.originated_jitter),
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
