//! `[routing]`.

mod aodv;
mod dsr;
mod olsr;

use super::super::schema::Section;
use super::super::source::Problem;
use hopline_sim::spec::{FailureNotification, RoutingSpec};

/// Protocols that have a table of parameters.
const PROTOCOLS: [&str; 3] = ["aodv", "olsr", "dsr"];

/// How packets find their way among `nodes`.
pub(super) fn resolve(section: Section<'_>) -> Result<RoutingSpec, Problem> {
    let protocol = section.word("protocol").expect("has a default");
    let idle = PROTOCOLS.into_iter().find(|table| *table != protocol && section.section(table).is_given());
    if let Some(table) = idle {
        return Err(Problem::new(format!("[routing.{table}] is given but the protocol is {protocol}"))
            .at(section.origin_of(table))
            .help(format!("set routing.protocol = \"{table}\"")));
    }
    if protocol == "static" {
        return Ok(RoutingSpec::Static);
    }
    match protocol {
        "aodv" => Ok(RoutingSpec::Aodv(aodv::config(section.section("aodv")))),
        "dsr" => dsr::config(section.section("dsr")).map(RoutingSpec::Dsr),
        "olsr" => olsr::config(section.section("olsr")).map(RoutingSpec::Olsr),
        other => unreachable!("the key table knows no protocol {other}"),
    }
}

/// What transports are told of routes.
pub(super) fn failure_notification(section: Section<'_>) -> FailureNotification {
    match section.word("failure_notification").expect("has a default") {
        "elfn" => FailureNotification::Elfn,
        _none => FailureNotification::None,
    }
}
