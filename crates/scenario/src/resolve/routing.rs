//! `[routing]`.

mod aodv;
mod dsr;
mod olsr;

use super::super::keys::{self, Protocol};
use super::super::schema::Section;
use hopline_config::source::Problem;
use hopline_sim::spec::{Attachment, FailureNotification, NodeSpec, RadioSpec, RoutingSpec};

/// Protocols that have a table of parameters.
const PROTOCOLS: [&str; 3] = ["aodv", "olsr", "dsr"];

/// Returns the routing of packets among `nodes`.
pub(super) fn resolve(
    section: Section<'_>,
    nodes: &[NodeSpec],
    radio: Option<&RadioSpec>,
) -> Result<RoutingSpec, Problem> {
    let protocol = keys::of_routing::PROTOCOL.word(&section);
    let idle = PROTOCOLS.into_iter().find(|table| *table != protocol && section.section(table).is_given());
    if let Some(table) = idle {
        return Err(Problem::new(format!("[routing.{table}] is given but the protocol is {protocol}"))
            .at(section.origin_of(table))
            .help(format!("set routing.protocol = \"{table}\"")));
    }
    let chosen = section.get(keys::of_routing::PROTOCOL);
    if chosen != Protocol::Static && nodes.iter().all(|node| node.attachment() == Attachment::Wired) {
        let name = protocol.to_uppercase();
        return Err(Problem::new(format!("{name} runs on nodes with a radio, and there is none"))
            .at(section.origin_of("protocol"))
            .help("use protocol = \"static\", or add [radio]"));
    }
    let first_access = radio.map(|radio| radio.mac.first_access);
    match chosen {
        Protocol::Static => Ok(RoutingSpec::Static),
        Protocol::Aodv => aodv::config(section.section("aodv"), first_access).map(RoutingSpec::Aodv),
        Protocol::Dsr => dsr::config(section.section("dsr"), first_access).map(RoutingSpec::Dsr),
        Protocol::Olsr => olsr::config(section.section("olsr")).map(RoutingSpec::Olsr),
    }
}

/// Returns the notifications about routes to transports.
pub(super) fn failure_notification(section: Section<'_>) -> FailureNotification {
    section.get(keys::of_routing::FAILURE_NOTIFICATION)
}
