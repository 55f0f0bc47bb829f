//! `tcp.feedback`, the transports that are named after its schemes, and `[feedback]`.

use super::super::keys;
use super::super::schema::Section;
use super::seconds;
use hopline_config::source::Problem;
use hopline_transport::tcp::{
    AtcpConfig, BusConfig, ElfnConfig, FixedRtoConfig, ProbeSchedule, RouteFeedback, TcpFConfig,
};

/// Returns the scheme of a `flow` over `transport`: that of its name, that of its own table, or that of all.
pub(super) fn resolve(
    transport: &str,
    scenario: Section<'_>,
    flow: Section<'_>,
) -> Result<RouteFeedback, Problem> {
    let (general, own) = (scenario.section("tcp"), flow.section("tcp"));
    let named = if flow.has("transport") { flow } else { scenario }.origin_of("transport");
    let section = if own.has("feedback") { own } else { general };
    let (scheme, origin) = match (scheme_of(transport), section.word("feedback")) {
        (None, word) => (word.unwrap_or("none"), section.origin_of("feedback")),
        (Some(scheme), None) => (scheme, named),
        (Some(scheme), Some(word)) if scheme == word => (scheme, named),
        (Some(_), Some(word)) => {
            return Err(Problem::new(format!("{transport} with feedback = \"{word}\""))
                .at(section.origin_of("feedback"))
                .help("transport = \"tcp-sack\" goes with any feedback; or remove `feedback`"));
        }
    };
    let feedback = configured(scheme, scenario.section("feedback"));
    let notification = scenario.section("routing").word("failure_notification");
    if feedback.needs_notification() && notification == Some("none") {
        return Err(Problem::new(format!("{scheme} acts on being told of lost routes, and nobody tells"))
            .at(origin)
            .help("set routing.failure_notification = \"elfn\""));
    }
    Ok(feedback)
}

/// Returns the scheme that a transport is named after.
fn scheme_of(transport: &str) -> Option<&str> {
    match transport {
        "tcp-f" | "atcp" | "tcp-bus" => Some(transport),
        "tcp-elfn" => Some("elfn"),
        "tcp-fixed-rto" => Some("fixed-rto"),
        _ => None,
    }
}

/// Returns the values of the papers, and what `section` puts over them. The key table bounds each of them.
fn configured(scheme: &str, section: Section<'_>) -> RouteFeedback {
    match scheme {
        "none" => RouteFeedback::None,
        "tcp-f" => {
            let paper = TcpFConfig::PAPER;
            let failure_timer = seconds(&section, "failure_timer_s").unwrap_or(paper.failure_timer());
            RouteFeedback::TcpF(TcpFConfig::PAPER.with_failure_timer(failure_timer))
        }
        "elfn" => RouteFeedback::Elfn(elfn(section)),
        "atcp" => {
            let paper = AtcpConfig::PAPER;
            RouteFeedback::Atcp(
                AtcpConfig::PAPER
                    .with_probing(probing(section, paper.probing()))
                    .with_route_return(section.get(keys::feedback::RETURNS).unwrap_or(paper.route_return())),
            )
        }
        "tcp-bus" => {
            RouteFeedback::Bus(BusConfig::PAPER.with_probing(probing(section, BusConfig::PAPER.probing())))
        }
        "fixed-rto" => {
            let timeouts = section.integer_u32("timeouts").unwrap_or(FixedRtoConfig::PAPER.timeouts());
            RouteFeedback::FixedRto(FixedRtoConfig::PAPER.with_timeouts(timeouts))
        }
        other => unreachable!("the key table knows no scheme {other}"),
    }
}

fn elfn(section: Section<'_>) -> ElfnConfig {
    let paper = ElfnConfig::PAPER;
    paper
        .with_probing(probing(section, paper.probing()))
        .with_route_return(section.get(keys::feedback::RETURNS).unwrap_or(paper.route_return()))
        .with_cwnd(section.get(keys::feedback::CWND_AFTER).unwrap_or(paper.cwnd()))
        .with_rto(section.get(keys::feedback::RTO_AFTER).unwrap_or(paper.rto()))
        .with_in_flight(section.get(keys::feedback::IN_FLIGHT).unwrap_or(paper.in_flight()))
}

fn probing(section: Section<'_>, default: ProbeSchedule) -> ProbeSchedule {
    let interval = seconds(&section, "probe_interval_s");
    match section.word("probing") {
        Some("persist-timer") => ProbeSchedule::PersistTimer,
        Some(_interval) => ProbeSchedule::Every(interval.unwrap_or(keys::PROBE_INTERVAL)),
        None => interval.map_or(default, ProbeSchedule::Every),
    }
}
