//! `[[flow]]`, `flows.file` and random flows.

use super::super::keys;
use super::super::schema::Section;
use super::super::source::Problem;
use super::{Files, Names, instant, node_named, tcp};
use hopline_core::{Duration, Instant, NodeId, Purpose, Stream};
use hopline_sim::spec::{FlowSpec, Traffic};
use std::collections::BTreeSet;

/// All flows: those of `[[flow]]`, those of the file, the random ones.
pub(super) fn resolve(
    scenario: Section<'_>,
    files: &Files,
    names: &Names,
    seed: u64,
    run: u64,
) -> Result<Vec<FlowSpec>, Problem> {
    let listed = scenario.sections("flow");
    let from_file = files.flows.iter().map(|node| Section::new(node, keys::FLOW));
    let mut flows = Vec::new();
    let mut taken = BTreeSet::new();
    for section in listed.into_iter().chain(from_file) {
        let flow = flow(scenario, &section, names, flows.len())?;
        if !taken.insert(flow.name.clone()) {
            return Err(Problem::new(format!("a second flow named `{}`", flow.name))
                .at(section.origin_of("name"))
                .help("names of flows are unique"));
        }
        flows.push(flow);
    }
    add_random(scenario, names.len(), seed, run, &mut flows)?;
    if flows.is_empty() {
        return Err(Problem::new("no flows: nothing would be sent")
            .at(scenario.origin_of("flows"))
            .help("add [[flow]] with src and dst"));
    }
    Ok(flows)
}

fn flow(
    scenario: Section<'_>,
    section: &Section<'_>,
    names: &Names,
    number: usize,
) -> Result<FlowSpec, Problem> {
    let src = node_named(section, "src", names)?;
    let dst = node_named(section, "dst", names)?;
    if src == dst {
        return Err(Problem::new("a flow from a node to itself")
            .at(section.origin_of("dst"))
            .help("src and dst are different nodes"));
    }
    let start = instant(section, "start_s").expect("has a default");
    let stop = instant(section, "stop_s").unwrap_or(Instant::FAR_FUTURE);
    if stop <= start {
        return Err(Problem::new("the flow stops before it starts")
            .at(section.origin_of("stop_s"))
            .help(format!("stop_s must be above start_s = {}", start.as_secs_f64())));
    }
    let name = section.word("name").map_or_else(|| format!("f{number}"), str::to_owned);
    let traffic = match section.word("kind") {
        Some("cbr") => cbr(section)?,
        _bulk => bulk(scenario, section)?,
    };
    Ok(FlowSpec { name, src, dst, start, stop, traffic })
}

fn bulk(scenario: Section<'_>, section: &Section<'_>) -> Result<Traffic, Problem> {
    refuse(section, &["rate_kbps", "packet_bytes"], "cbr")?;
    let transport = section.word("transport").or(scenario.word("transport")).expect("has a default");
    let tcp = tcp::resolve(transport, scenario.section("tcp"), section.section("tcp"))?;
    Ok(Traffic::Bulk { tcp, bytes: section.integer("bytes") })
}

fn cbr(section: &Section<'_>) -> Result<Traffic, Problem> {
    refuse(section, &["transport", "bytes", "tcp"], "bulk")?;
    let packet_bytes = section.small("packet_bytes").expect("has a default");
    let Some(rate_kbps) = section.number("rate_kbps") else {
        return Err(Problem::new("a cbr flow without `rate_kbps`")
            .at(section.origin_of("kind"))
            .help("add rate_kbps, the rate of its payload in kb/s"));
    };
    let interval = Duration::from_secs_f64(f64::from(packet_bytes) * 8.0 / (rate_kbps * 1e3));
    Ok(Traffic::Cbr { packet_bytes, interval: interval.max(Duration::from_nanos(1)) })
}

/// Keys that belong to flows of another kind.
fn refuse(section: &Section<'_>, keys: &[&str], kind: &str) -> Result<(), Problem> {
    match keys.iter().find(|key| section.has(key)) {
        None => Ok(()),
        Some(key) => Err(Problem::new(format!("`{key}` is for flows of kind \"{kind}\" only"))
            .at(section.origin_of(key))
            .help(format!("remove it, or set kind = \"{kind}\""))),
    }
}

fn add_random(
    scenario: Section<'_>,
    nodes: usize,
    seed: u64,
    run: u64,
    flows: &mut Vec<FlowSpec>,
) -> Result<(), Problem> {
    let section = scenario.section("flows");
    let Some(count) = section.integer("random") else { return Ok(()) };
    let nodes = u32::try_from(nodes).expect("the key table bounds the number of nodes");
    if nodes < 2 {
        return Err(Problem::new("random flows need at least two nodes").at(section.origin_of("random")));
    }
    let first = section.number("start_min_s").expect("has a default");
    let last = section.number("start_max_s").expect("has a default").max(first);
    let transport = scenario.word("transport").expect("has a default");
    let general = scenario.section("tcp");
    let config = tcp::resolve(transport, general, general)?;
    let mut stream = Stream::global(seed, run, Purpose::Traffic);
    for _ in 0..count {
        let src = stream.below(nodes);
        // Any other node: those above `src` move down by one.
        let other = stream.below(nodes - 1);
        let dst = other + u32::from(other >= src);
        flows.push(FlowSpec {
            name: format!("f{}", flows.len()),
            src: NodeId(src),
            dst: NodeId(dst),
            start: Instant::ZERO + Duration::from_secs_f64(stream.uniform(first, last)),
            stop: Instant::FAR_FUTURE,
            traffic: Traffic::Bulk { tcp: config, bytes: None },
        });
    }
    Ok(())
}
