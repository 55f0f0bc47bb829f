//! `[[flow]]`, `flows.file` and random flows.

use super::super::keys::{self, FlowKind};
use super::super::schema::Section;
use super::super::user_defined::{ScenarioUse, ScenarioWithMachines};
use super::ends::{self, Endpoints, Network};
use super::{Files, OwnedKeys, draw, instant, instant_of, reject_foreign_keys, seconds_of, transport};
use hopline_config::source::Problem;
use hopline_core::{Duration, Instant, NodeId, Purpose, RandomStream};
use hopline_sim::spec::{ExchangeSpec, FlowLabels, FlowSpec, RandomVariable, Traffic};
use std::collections::BTreeSet;
use std::num::NonZeroU64;

/// Returns all flows: those of `[[flow]]`, those of the file, the random ones.
pub(super) fn resolve(
    scenario: ScenarioWithMachines<'_>,
    files: &Files,
    network: Network<'_>,
    seed: u64,
    run: u64,
) -> Result<Vec<FlowSpec>, Problem> {
    let listed = scenario.sections("flow");
    let from_file = files.flows.iter().map(|node| Section::new(node, keys::FLOW));
    let mut flows = Vec::new();
    let mut taken = BTreeSet::new();
    for section in listed.into_iter().chain(from_file) {
        let joined = network.endpoints(&section, ends::draws(seed, run, flows.len()))?;
        for (index, ends) in joined.into_iter().enumerate() {
            let number = flows.len();
            let late = RandomStream::keyed(seed, run, number as u64, Purpose::Start).uniform(0.0, 1.0);
            let name = match section.word("name") {
                Some(name) if section.has("pairs") => format!("{name}{index}"),
                Some(name) => name.to_owned(),
                None => format!("f{number}"),
            };
            if !taken.insert(name.clone()) {
                return Err(Problem::new(format!("a second flow named `{name}`"))
                    .at(section.origin_of("name"))
                    .help("names of flows are unique"));
            }
            flows.push(flow(scenario, files, &section, name, ends, late)?);
        }
    }
    add_random(scenario, network.nodes.len(), seed, run, &mut flows)?;
    if flows.is_empty() && scenario.used_for == ScenarioUse::Simulation {
        return Err(Problem::new("no flows: nothing would be sent")
            .at(scenario.origin_of("flows"))
            .help("add [[flow]] with src and dst"));
    }
    Ok(flows)
}

/// Returns the flow of this name that `section` describes, between `src` and `dst`; it starts at `late` of
/// its jitter, 0 to 1.
fn flow(
    scenario: ScenarioWithMachines<'_>,
    files: &Files,
    section: &Section<'_>,
    name: String,
    (src, dst): Endpoints,
    late: f64,
) -> Result<FlowSpec, Problem> {
    let start = instant_of(section, keys::flow::START_S);
    let jitter = seconds_of(section, keys::flow::START_JITTER_S);
    let stop = instant(section, "stop_s").unwrap_or(Instant::FAR_FUTURE);
    // Whatever is drawn: a file is right or wrong for all runs.
    if stop <= start + jitter {
        let latest = if jitter.is_zero() { "start_s" } else { "start_s + start_jitter_s" };
        return Err(Problem::new("the flow stops before it starts")
            .at(section.origin_of("stop_s"))
            .help(format!("stop_s must be above {latest} = {}", (start + jitter).as_secs_f64())));
    }
    let start = start + Duration::from_secs_f64(jitter.as_secs_f64() * late);
    let traffic = traffic(scenario, files, section)?;
    let carrier = match &traffic {
        Traffic::Cbr { .. } => "udp-cbr",
        Traffic::OnOff { .. } => "udp-on-off",
        Traffic::Recorded { over: None, .. } => "udp-recorded",
        Traffic::Bulk { .. } | Traffic::Exchange { .. } | Traffic::Recorded { over: Some(_), .. } => {
            transport::named(*scenario, *section)
        }
    };
    let labels = FlowLabels {
        transport: carrier.to_owned(),
        kind: keys::flow::KIND.word(section).to_owned(),
        class: class(section)?,
    };
    Ok(FlowSpec { name, src, dst, start, stop, traffic, end_transports: [None, None], labels })
}

/// Returns the class of a flow; empty without one. Questions know flows by class and by kind: no class is
/// called like a kind.
fn class(section: &Section<'_>) -> Result<String, Problem> {
    let class = section.word("class").unwrap_or_default();
    if keys::flow::KIND.words().contains(&class) {
        return Err(Problem::new(format!("a class called like a kind of flow: \"{class}\""))
            .at(section.origin_of("class"))
            .help("questions name flows by class and by kind; give the class another name"));
    }
    Ok(class.to_owned())
}

/// Keys that belong to some kinds of flows only.
const OWNED: &[OwnedKeys] = &[
    (&["bulk"], &["bytes"]),
    (&["bulk", "request-response", "http", "recorded"], &["transport", "tcp", "door", "tpa"]),
    (&["recorded"], &["file"]),
    (&["cbr", "on-off"], &["rate_kbps", "packet_bytes"]),
    (&["on-off"], &["on_s", "off_s"]),
    (&["request-response", "http"], &["request_bytes", "response_bytes", "think_s", "transactions"]),
];

fn traffic(
    scenario: ScenarioWithMachines<'_>,
    files: &Files,
    section: &Section<'_>,
) -> Result<Traffic, Problem> {
    reject_foreign_keys(section, "kind", keys::flow::KIND.word(section), OWNED)?;
    match section.get(keys::flow::KIND) {
        FlowKind::Bulk => Ok(Traffic::Bulk {
            over: transport::resolve(scenario, *section)?,
            bytes: section.integer("bytes"),
        }),
        FlowKind::Cbr => {
            let (packet_bytes, interval) = rate(section)?;
            Ok(Traffic::Cbr { packet_bytes, interval })
        }
        FlowKind::OnOff => {
            let (packet_bytes, interval) = rate(section)?;
            let time = |key| Ok(draw::resolve(section, key)?.unwrap_or(ON_OFF_S));
            Ok(Traffic::OnOff { packet_bytes, interval, on: time("on_s")?, off: time("off_s")? })
        }
        FlowKind::RequestResponse => {
            exchange(scenario, section, [None, None, Some(RandomVariable::Constant(0.0))])
        }
        FlowKind::Http => exchange(scenario, section, HTTP.map(Some)),
        FlowKind::Recorded => recorded(scenario, files, section),
    }
}

/// Returns the traffic of a recording, over the transport that the flow names, or as datagrams.
fn recorded(
    scenario: ScenarioWithMachines<'_>,
    files: &Files,
    section: &Section<'_>,
) -> Result<Traffic, Problem> {
    let Some(recording) = section.word("file").and_then(|file| files.recorded.get(file)) else {
        return Err(Problem::new("a recorded flow without `file`")
            .at(section.origin_of("kind"))
            .help("add file, the name of a CSV with the header time_s,bytes"));
    };
    let packets = recording.packets.clone();
    if section.has("transport") {
        return Ok(Traffic::Recorded { over: Some(transport::resolve(scenario, *section)?), packets });
    }
    if let Some(key) = ["tcp", "door", "tpa"].into_iter().find(|key| section.has(key)) {
        return Err(Problem::new(format!(
            "`{key}` of a recorded flow without `transport`: it sends datagrams"
        ))
        .at(section.origin_of(key))
        .help("add transport, or remove it"));
    }
    if packets.iter().any(|packet| packet.bytes > MAX_UDP_DATA) {
        return Err(Problem::new("more bytes than a datagram has")
            .at(&recording.largest)
            .help(format!("at most {MAX_UDP_DATA}; over a transport, flow.transport, it may be more")));
    }
    Ok(Traffic::Recorded { over: None, packets })
}

/// Most data of a UDP datagram over IPv4.
const MAX_UDP_DATA: u64 = 65_507;

/// ns-2's exponential on-off source: `burst_time_` and `idle_time_` of 500 ms (ns-2.35, tcl/lib/ns-default.tcl).
const ON_OFF_S: RandomVariable = RandomVariable::Exponential { mean: 0.5 };

/// Web browsing as standards bodies model it: a request of 350 bytes, a main object of log-normal size, and an
/// exponential reading time (3GPP TR 25.892 and IEEE 802.16m-08/004r5, HTTP traffic models; ns-3 has the same).
const HTTP: [RandomVariable; 3] = [
    RandomVariable::Constant(350.0),
    RandomVariable::LogNormal { mean: 10_710.0, deviation: 25_032.0 },
    RandomVariable::Exponential { mean: 30.0 },
];

/// Requests and responses; `defaults` of request, response and think time.
fn exchange(
    scenario: ScenarioWithMachines<'_>,
    section: &Section<'_>,
    defaults: [Option<RandomVariable>; 3],
) -> Result<Traffic, Problem> {
    let [request, response, think] = defaults;
    let take = |key: &str, default: Option<RandomVariable>| {
        draw::resolve(section, key)?.or(default).ok_or_else(|| {
            Problem::new(format!("a request-response flow without `{key}`"))
                .at(section.origin_of("kind"))
                .help(format!("add {key}, or set kind = \"http\" for typical sizes"))
        })
    };
    let exchange = ExchangeSpec {
        request_bytes: take("request_bytes", request)?,
        response_bytes: take("response_bytes", response)?,
        think_s: take("think_s", think)?,
        transactions: section.integer("transactions").and_then(NonZeroU64::new),
    };
    Ok(Traffic::Exchange { over: transport::resolve(scenario, *section)?, exchange })
}

/// Returns the bytes of a packet, and the time from one to the next.
fn rate(section: &Section<'_>) -> Result<(u32, Duration), Problem> {
    let packet_bytes = section.integer_u32("packet_bytes").unwrap_or(512);
    let Some(rate_kbps) = section.number("rate_kbps") else {
        let kind = keys::flow::KIND.word(section);
        return Err(Problem::new(format!("a flow of kind \"{kind}\" without `rate_kbps`"))
            .at(section.origin_of("kind"))
            .help("add rate_kbps, the rate of its payload in kb/s"));
    };
    let interval = Duration::from_secs_f64(f64::from(packet_bytes) * 8.0 / (rate_kbps * 1e3));
    Ok((packet_bytes, interval.max(Duration::from_nanos(1))))
}

fn add_random(
    scenario: ScenarioWithMachines<'_>,
    nodes: usize,
    seed: u64,
    run: u64,
    flows: &mut Vec<FlowSpec>,
) -> Result<(), Problem> {
    let section = scenario.section("flows");
    let Some(count) = section.integer("random") else { return Ok(()) };
    let nodes = u32::try_from(nodes).expect("a network has at most keys::NODES");
    if nodes < 2 {
        return Err(Problem::new("random flows need at least two nodes").at(section.origin_of("random")));
    }
    let first = section.get(keys::flows::START_MIN_S);
    let last = section.get(keys::flows::START_MAX_S).max(first);
    let (traffic, carrier) = random_traffic(scenario, section)?;
    let kind = section.get(keys::flows::KIND).to_owned();
    let labels = FlowLabels { transport: carrier.to_owned(), kind, class: class(&section)? };
    let mut stream = RandomStream::global(seed, run, Purpose::Traffic);
    for _ in 0..count {
        let src = stream.below(nodes);
        // Any other node: those above `src` move down by one.
        let other = stream.below(nodes - 1);
        let dst = other + u32::from(other >= src);
        flows.push(FlowSpec {
            end_transports: [None, None],
            name: format!("f{}", flows.len()),
            src: NodeId(src),
            dst: NodeId(dst),
            start: Instant::ZERO + Duration::from_secs_f64(stream.uniform(first, last)),
            stop: Instant::FAR_FUTURE,
            traffic: traffic.clone(),
            labels: labels.clone(),
        });
    }
    Ok(())
}

/// Returns the traffic of each random flow, and the name of its transport.
fn random_traffic<'a>(
    scenario: ScenarioWithMachines<'a>,
    section: Section<'a>,
) -> Result<(Traffic, &'a str), Problem> {
    let kind = section.get(keys::flows::KIND);
    reject_foreign_keys(&section, "kind", kind, &[(&["cbr"], &["rate_kbps", "packet_bytes"])])?;
    if kind == "cbr" {
        let (packet_bytes, interval) = rate(&section)?;
        return Ok((Traffic::Cbr { packet_bytes, interval }, "udp-cbr"));
    }
    let over = transport::resolve(scenario, *scenario)?;
    Ok((Traffic::Bulk { over, bytes: None }, transport::named(*scenario, *scenario)))
}
