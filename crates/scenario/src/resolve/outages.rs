//! `[[outage]]`.

use super::super::keys;
use super::super::schema::Section;
use super::{Names, instant, instant_of, node_named, seconds};
use hopline_config::source::Problem;
use hopline_core::Instant;
use hopline_sim::spec::{Attachment, LinkSpec, NodeSpec, OutageEffect, OutageSpec};

/// Returns all outages, one for each direction.
pub(super) fn resolve(
    scenario: Section<'_>,
    nodes: &[NodeSpec],
    links: &[LinkSpec],
    names: &Names,
) -> Result<Vec<OutageSpec>, Problem> {
    let mut outages = Vec::new();
    for section in scenario.sections("outage") {
        let first = outage(&section, nodes, links, names)?;
        for outage in repeated(&section, first, instant_of(&scenario, keys::scenario::DURATION_S))? {
            outages.push(outage);
            if section.flag("both_ways") == Some(true) {
                outages.push(OutageSpec { from: outage.to, to: outage.from, ..outage });
            }
        }
    }
    Ok(outages)
}

fn outage(
    section: &Section<'_>,
    nodes: &[NodeSpec],
    links: &[LinkSpec],
    names: &Names,
) -> Result<OutageSpec, Problem> {
    let from = node_named(section, keys::outage::FROM, names)?;
    let to = node_named(section, keys::outage::TO, names)?;
    if from == to {
        return Err(Problem::new("an outage between a node and itself")
            .at(section.origin_of("to"))
            .help("from and to are different nodes"));
    }
    let linked = links.iter().any(|link| [(link.a, link.b), (link.b, link.a)].contains(&(from, to)));
    let over_the_air = [from, to].iter().all(|node| nodes[node.index()].attachment() == Attachment::Wireless);
    if !linked && !over_the_air {
        let [from, to] = [from, to].map(|node| &nodes[node.index()].name);
        return Err(Problem::new(format!("an outage between `{from}` and `{to}`, which have no link"))
            .at(section.origin_of("to"))
            .help("an outage is of a [[link]], or of the air between two wireless nodes"));
    }
    let start = instant_of(section, keys::outage::START_S);
    let end = instant(section, "end_s").unwrap_or(Instant::FAR_FUTURE);
    if end <= start {
        return Err(Problem::new("the outage is over before it begins")
            .at(section.origin_of("end_s"))
            .help(format!("end_s must be above start_s = {}", start.as_secs_f64())));
    }
    let blocks = match section.get(keys::outage::BLOCKS) {
        "packets" => OutageEffect::Packets,
        _frames => OutageEffect::Frames,
    };
    Ok(OutageSpec { from, to, start, end, blocks })
}

/// Returns the outage, and its repetitions until the run is over.
fn repeated(section: &Section<'_>, first: OutageSpec, run_ends: Instant) -> Result<Vec<OutageSpec>, Problem> {
    const MOST: u64 = 100_000;
    let Some(every) = seconds(section, "every_s") else { return Ok(vec![first]) };
    let lasts = first.end.since(first.start);
    let times = run_ends.since(first.start).as_nanos().div_ceil(every.as_nanos()).max(1);
    let wrong = |what: &str, help: String| Problem::new(what).at(section.origin_of("every_s")).help(help);
    if every <= lasts {
        return Err(match section.number("end_s") {
            None => wrong("an outage without end comes again", "give end_s as well".to_owned()),
            Some(_) => wrong(
                "the outage comes again before it is over",
                format!("every_s must be above the {} s that it lasts", lasts.as_secs_f64()),
            ),
        });
    }
    if times > MOST {
        return Err(wrong(
            &format!("the outage comes {times} times"),
            format!("no more than {MOST} times in a run: a longer every_s"),
        ));
    }
    let later = |n: u64| every.saturating_mul(n);
    Ok((0..times)
        .map(|n| OutageSpec { start: first.start + later(n), end: first.end + later(n), ..first })
        .collect())
}
