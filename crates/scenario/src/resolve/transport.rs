//! Transport of a flow.

use super::super::keys;
use super::super::schema::Section;
use super::super::user_defined::ScenarioWithMachines;
use super::{quic, tcp, tpa, wide};
use hopline_config::source::Problem;
use hopline_sim::spec::Transport;

/// Returns the transport of the flow that `section` describes, or, if that is the scenario itself, of flows
/// made by a rule.
pub(super) fn resolve(
    scenario: ScenarioWithMachines<'_>,
    section: Section<'_>,
) -> Result<Transport, Problem> {
    let transport = named(*scenario, section);
    if transport == "quic" {
        quic::check_built(quic::IS_BUILT, if section.has("transport") { section } else { *scenario })?;
        quic::resolve(scenario, section.section("quic")).map(Transport::Quic)
    } else if transport == "tpa-wide" {
        wide::resolve(*scenario, section.section("wide")).map(Transport::Wide)
    } else if transport.starts_with("tpa") {
        tpa::resolve(transport, *scenario, section.section("tpa")).map(Transport::Tpa)
    } else {
        tcp::resolve(transport, scenario, section).map(Transport::Tcp)
    }
}

/// Returns the name of that transport.
pub(super) fn named<'a>(scenario: Section<'a>, section: Section<'a>) -> &'a str {
    section.word("transport").unwrap_or_else(|| scenario.get(keys::scenario::TRANSPORT))
}
