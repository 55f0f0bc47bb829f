//! Rates of links, and `[[link.rate_trace]]`.

use super::Files;
use crate::keys;
use crate::rate_trace::TraceFile;
use crate::schema::Section;
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_sim::spec::links::RateTrace;
use std::sync::Arc;

/// Traces of what `a` sends, and of what `b` sends.
type Traces = [Option<Arc<RateTrace>>; 2];

/// Returns the traces of a link.
pub(super) fn resolve(link: &Section<'_>, files: &Files) -> Result<Traces, Problem> {
    let mut traces: Traces = [None, None];
    for section in link.sections("rate_trace") {
        let file = section.word("file").and_then(|name| files.rate_traces.get(name));
        let file = file.expect("the key is required, and its file has been read");
        let trace = Arc::new(rates(&section, file)?);
        let covers = match section.get(keys::DIRECTION) {
            "a-to-b" => [true, false],
            "b-to-a" => [false, true],
            _both => [true, true],
        };
        for (place, covered) in traces.iter_mut().zip(covers) {
            if covered && place.replace(trace.clone()).is_some() {
                return Err(Problem::new("a second `rate_trace` of a direction")
                    .at(section.origin_of(if section.has("direction") { "direction" } else { "file" }))
                    .help("direction = \"a-to-b\" and \"b-to-a\" give each direction a trace of its own"));
            }
        }
    }
    if let ([Some(_), _] | [_, Some(_)], Some(step)) = (&traces, link.sections("rate").first()) {
        return Err(Problem::new("`rate` beside `rate_trace`")
            .at(step.origin_of("from_s"))
            .help("a link has rates from a file, or from [[link.rate]]: remove one of the two"));
    }
    Ok(traces)
}

fn rates(section: &Section<'_>, file: &TraceFile) -> Result<RateTrace, Problem> {
    if section.has("interval_ms") && !file.has_opportunities() {
        return Err(Problem::new("`interval_ms` with a CSV of rates")
            .at(section.origin_of("interval_ms"))
            .help("a CSV has intervals of its own: remove it"));
    }
    let offset = Duration::from_secs_f64(section.get(keys::rate_trace::OFFSET_S));
    file.rates(section.get(keys::rate_trace::INTERVAL_MS), offset).ok_or_else(|| {
        Problem::new("a trace with less than 1 bit/s on average")
            .at(section.origin_of("file"))
            .help("the trace repeats from its last time on: check the units of that time")
    })
}

/// Returns the rate of the directions without a trace; if there are none, the mean of a trace.
pub(super) fn constant_rate(link: &Section<'_>, traces: &Traces) -> Result<u64, Problem> {
    match (link.number("rate_mbps"), traces) {
        (None, [Some(trace), Some(_)]) => Ok(trace.mean_bps()),
        (Some(_), [Some(_), Some(_)]) => {
            Err(Problem::new("`rate_mbps` beside `rate_trace` of both directions")
                .at(link.origin_of("rate_mbps"))
                .help("remove it, or give the trace a direction"))
        }
        (Some(mbps), _) => Ok(bps(mbps)),
        (None, _) => Err(Problem::new("a link without `rate_mbps`")
            .at(link.origin_of("a"))
            .help("add it, the rate in Mb/s, or [[link.rate_trace]] with a file of rates")),
    }
}

/// Returns a rate in bits per second, at least 1.
pub(super) fn bps(mbps: f64) -> u64 {
    libm::round(mbps * 1e6).max(1.0) as u64
}
