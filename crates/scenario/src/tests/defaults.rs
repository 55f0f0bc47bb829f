//! Defaults as the key tables state them are those that a scenario has.

use super::rate_traces::TRACED;
use super::*;
use crate::keys;
use crate::schema::{self, Key, Literal, Takes, join};
use std::collections::{BTreeMap, BTreeSet};

/// A server, a base station and a mobile host on wires.
pub(super) const WIRED: &str = "\
duration_s = 10
[[node]]
name = \"s\"
[[node]]
name = \"bs\"
[[node]]
name = \"m\"
[[link]]
a = \"s\"
b = \"bs\"
rate_mbps = 10
delay_ms = 1
[[link]]
a = \"bs\"
b = \"m\"
rate_mbps = 2
delay_ms = 1
[[flow]]
src = \"s\"
dst = \"m\"
[[proxy]]
node = \"bs\"
mobile = [\"m\"]
kind = \"none\"
";

/// Two nodes that repair what the link between them loses.
const PAIR: &str =
    concat!(two_nodes!(), "rate_mbps = 10\n[[proxy]]\nnode = \"a\"\npeer = \"b\"\nkind = \"d-proxy\"\n");

/// Three wireless nodes, one of which does not hear another for a while.
pub(super) const OUTAGE: &str = "\
duration_s = 10
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[radio]
[[flow]]
src = \"n0\"
dst = \"n2\"
[[outage]]
from = \"n0\"
to = \"n1\"
end_s = 1
";

/// The file of [`TRACED`]. Its length divides no power of ten, so that offsets differ.
const TRACE: &str = "1\n30\n31\n70\n";

/// Three wireless nodes, one of which loses frames of another.
pub(super) const LOSS: &str = "\
duration_s = 10
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[radio]
[[radio.loss]]
from = \"n0\"
to = \"n1\"
[[flow]]
src = \"n0\"
dst = \"n2\"
";

/// Two stations, one with a middlebox, and a mobile host.
const CELLS: &str = "\
duration_s = 10
[radio]
[[node]]
name = \"s\"
interface = \"wired\"
[[node]]
name = \"b1\"
[[node]]
name = \"b2\"
x_m = 200
[[node]]
name = \"m\"
x_m = 100
[[link]]
a = \"s\"
b = \"b1\"
rate_mbps = 10
delay_ms = 1
[[link]]
a = \"s\"
b = \"b2\"
rate_mbps = 10
delay_ms = 1
[[flow]]
src = \"s\"
dst = \"m\"
[cells]
home_agent = \"s\"
[[mobile]]
node = \"m\"
[[proxy]]
node = \"b1\"
kind = \"none\"
";

/// Three wireless nodes, and a program at one of them.
pub(super) const PROGRAM: &str = "\
duration_s = 10
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[radio]
[[program]]
node = \"n0\"
command = [\"ping\", \"n2\"]
";

/// Two nodes placed one by one, and a node that floods notices.
const PLACED: &str = "\
duration_s = 10
[radio]
[[node]]
name = \"a\"
[[node]]
name = \"b\"
x_m = 100
[[flow]]
src = \"a\"
dst = \"b\"
[[notice_flood]]
node = \"b\"
";

/// Scenarios in which keys have an effect, each a text and the settings over it.
pub(super) fn scenarios() -> Vec<(&'static str, Vec<String>)> {
    let mut all = Vec::new();
    let mut add = |text, settings: &[&str]| {
        all.push((text, settings.iter().map(|s| (*s).to_owned()).collect::<Vec<String>>()));
    };
    let needs_notification =
        |transport: &&&str| ["tcp-f", "tcp-elfn", "atcp", "tcp-bus"].contains(*transport);
    for transport in keys::TRANSPORTS.iter().filter(|transport| !needs_notification(transport)) {
        add(CHAIN, &[&format!("transport={transport}")]);
    }
    for preset in ["linux", "ns2-2.35", "ns2-2006", "ns2-2001", "qualnet", "bsd"] {
        add(CHAIN, &[&format!("tcp.preset={preset}"), "transport=tcp-sack"]);
    }
    for more in
        ["congestion_control=cubic", "pacing=adaptive", "feedback=elfn", "feedback=atcp", "feedback=tcp-bus"]
    {
        add(
            CHAIN,
            &[
                &format!("tcp.{more}"),
                "transport=tcp-sack",
                "routing.protocol=aodv",
                "routing.failure_notification=elfn",
            ],
        );
    }
    for feedback in ["tcp-f", "tcp-elfn", "atcp", "tcp-bus"] {
        add(
            CHAIN,
            &[&format!("transport={feedback}"), "routing.protocol=aodv", "routing.failure_notification=elfn"],
        );
    }
    add(CHAIN, &["transport=tcp-elfn", "routing.protocol=olsr", "routing.failure_notification=elfn"]);
    add(
        CHAIN,
        &[
            "transport=tpa",
            "routing.protocol=olsr",
            "routing.failure_notification=elfn",
            "tpa.notification=elfn",
        ],
    );
    for law in ["bbr", "bbr3", "prague"] {
        add(
            CHAIN,
            &[&format!("tcp.congestion_control={law}"), "transport=tcp-sack", "tcp.loss_detection=rack"],
        );
    }
    for preset in ["ns2-wavelan", "ns3-wavelan", "dot11b", "dot11a", "madwifi", "qualnet-367"] {
        add(CHAIN, &[&format!("radio.preset={preset}")]);
        add(CHAIN, &[&format!("radio.preset={preset}"), "radio.address_resolution=arp"]);
    }
    add(CHAIN, &["radio.reception=cumulative-sinr"]);
    add(CHAIN, &["radio.propagation=shadowing"]);
    for policy in ["no-ack", "block-ack"] {
        add(CHAIN, &[&format!("mac.ack_policy={policy}")]);
    }
    for discipline in ["red", "codel", "fq-codel", "pie", "dualpi2"] {
        add(CHAIN, &[&format!("queue.discipline={discipline}")]);
    }
    add(CHAIN, &["queue.discipline=red", "queue.measure=bytes"]);
    add(CHAIN, &["queue.discipline=dualpi2", "queue.scheduler=ts-fifo"]);
    add(CHAIN, &["queue.discipline=pie", "queue.delay_estimate=dequeue-rate"]);
    for preset in ["rfc3561", "rfc3561-hello", "aodv-uu", "ns2-2.35"] {
        for sensing in ["hello", "link-layer"] {
            add(
                CHAIN,
                &[
                    "routing.protocol=aodv",
                    &format!("routing.aodv.preset={preset}"),
                    &format!("routing.aodv.link_sensing={sensing}"),
                ],
            );
        }
    }
    add(
        CHAIN,
        &[
            "routing.protocol=aodv",
            "routing.aodv.link_sensing=hello",
            "routing.aodv.hello_schedule=after-broadcast",
        ],
    );
    add(CHAIN, &["routing.protocol=aodv", "radio.preset=dot11b"]);
    for hysteresis in ["on", "off"] {
        add(CHAIN, &["routing.protocol=olsr", &format!("routing.olsr.hysteresis={hysteresis}")]);
    }
    for preset in ["rfc4728", "ns2-2.35"] {
        for cache in ["paths", "off"] {
            add(
                CHAIN,
                &[
                    "routing.protocol=dsr",
                    &format!("routing.dsr.preset={preset}"),
                    &format!("routing.dsr.cache={cache}"),
                ],
            );
        }
    }
    for guard in ["on", "off"] {
        add(CHAIN, &["neighborhood_red.share=1", &format!("neighborhood_red.guard={guard}")]);
    }
    add(CHAIN, &["neighborhood_red.share=1", "neighborhood_red.delivery=broadcast"]);
    add(CHAIN, &["neighborhood_red.share=1", "neighborhood_red.incoming=relayed"]);
    for kind in ["cbr", "on-off"] {
        add(CHAIN, &[&format!("flow.0.kind={kind}"), "flow.0.rate_kbps=8"]);
    }
    add(CHAIN, &["flows.random=1", "flows.kind=cbr", "flows.rate_kbps=8"]);
    add(CHAIN, &["flows.random=1"]);
    add(CHAIN, &["animation.to_s=5"]);
    add(CHAIN, &["neighborhood_red.delivery=unicast"]);
    add(CHAIN, &["routing.protocol=dsr"]);
    add(CHAIN, &["transport=tpa", "routing.protocol=olsr", "routing.failure_notification=elfn"]);
    add(PLACED, &[]);
    add(
        PLACED,
        &[
            "mobility.model=random-waypoint",
            "mobility.width_m=100",
            "mobility.height_m=100",
            "mobility.max_speed_mps=1",
        ],
    );
    add(OUTAGE, &[]);
    add(LOSS, &[]);
    for (text, errors) in [(CHAIN, "radio.errors"), (LOSS, "radio.loss.0"), (WIRED, "link.0.errors")] {
        let of = |key: &str| format!("{errors}.{key}");
        add(text, &[&of("model=packet"), &of("packet_loss=0.1")]);
        add(text, &[&of("model=gilbert-packet"), &of("good_to_bad=0.1"), &of("bad_to_good=0.1")]);
        add(
            text,
            &[
                &of("model=gilbert-elliott"),
                &of("mean_good_s=1"),
                &of("mean_bad_s=1"),
                &of("bit_error_rate_bad=0.5"),
            ],
        );
    }
    for disturbance in ["jitter.max_ms=1", "slots.interval_ms=1"] {
        add(WIRED, &[&format!("link.0.{disturbance}")]);
    }
    add(WIRED, &["link.0.policer.rate_mbps=1", "link.0.policer.burst_bytes=3000"]);
    add(WIRED, &["link.0.shaper.rate_mbps=1"]);
    add(TRACED, &[]);
    add(TRACED, &["link.0.rate_mbps=1", "link.0.rate_trace.0.direction=a-to-b"]);
    add(WIRED, &["link.0.reordering.fraction=0.1", "link.0.reordering.extra_delay_ms=1"]);
    for kind in ["snoop", "split", "mtcp", "nack", "ack-pacing"] {
        add(WIRED, &[&format!("proxy.0.kind={kind}")]);
    }
    for preset in ["published", "ns2-2.35"] {
        add(WIRED, &["proxy.0.kind=snoop", &format!("proxy.0.preset={preset}")]);
    }
    add(WIRED, &["link.0.arq.kind=selective", "proxy.0.kind=none"]);
    for kind in ["d-proxy", "opaque"] {
        add(PAIR, &[&format!("proxy.0.kind={kind}")]);
    }
    add(PROGRAM, &[]);
    add(CELLS, &[]);
    add(CELLS, &["proxy.0.kind=split"]);
    all
}

/// Returns what the scenario is, to be compared. As [`Scenario::parse`], which would resolve it once more.
pub(super) fn resolved(text: &str, settings: &[String]) -> Result<String, Problems> {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
    let mut document = document::parse(&source)?;
    for setting in settings {
        document::set(&mut document, &Setting::parse("--set", setting)?)?;
    }
    schema::check_document(&document, "the scenario", keys::SCENARIO)?;
    let trace = Source { name: "t".into(), text: TRACE.into() };
    let folder = Folder::transferred("", [trace]);
    let mut files = resolve::Files::default();
    if text == TRACED {
        files = resolve::Files::load(Section::new(&document, keys::SCENARIO), &folder, &files)?;
    }
    let scenario = Scenario {
        source,
        folder,
        document,
        settings: Vec::new(),
        files,
        machines: CustomAlgorithms::default(),
        used_for: if text == PROGRAM { ScenarioUse::Emulation } else { ScenarioUse::Simulation },
    };
    // The place of a command differs with what stands before it.
    let programs: Vec<_> = scenario
        .programs(1)?
        .into_iter()
        .map(|program| (program.name, program.node, program.command, program.start, program.stop))
        .collect();
    Ok(format!("{:?}, {} runs, {:?}, {programs:?}", scenario.spec(1)?, scenario.runs(), scenario.animation()))
}

/// Returns every key with its path, each table at its first place only. Elements of lists are at place 0.
pub(super) fn every_key() -> Vec<(String, &'static Key)> {
    fn below(
        path: &str,
        keys: &'static [Key],
        seen: &mut Vec<&'static [Key]>,
        all: &mut Vec<(String, &'static Key)>,
    ) {
        for key in keys {
            let path = join(path, key.name);
            all.push((path.clone(), key));
            let (table, path) = match key.takes {
                Takes::Table(table) | Takes::NumberOrTable(_, _, table) | Takes::TextOrTable(table) => {
                    (table, path)
                }
                Takes::Tables(table) => (table, format!("{path}.0")),
                _ => continue,
            };
            if !seen.contains(&table) {
                seen.push(table);
                below(&path, table, seen, all);
            }
        }
    }
    let mut all = Vec::new();
    below("", keys::SCENARIO, &mut Vec::new(), &mut all);
    all
}

fn written(path: &str, value: Literal) -> Option<String> {
    Some(match value {
        Literal::Number(x) => format!("{path}={x}"),
        Literal::Integer(i) => format!("{path}={i}"),
        Literal::Word(word) => format!("{path}={word}"),
        Literal::Flag(flag) => format!("{path}={flag}"),
        Literal::Text(_) => return None,
    })
}

/// Returns values of a key, at least one of which is not its default.
fn others(path: &str, key: &Key) -> Vec<String> {
    let values: Vec<Literal> = match key.takes {
        Takes::Number(min, max) | Takes::NumberOrTable(min, max, _) => {
            let half = |x: f64| (min + x) / 2.0;
            vec![
                Literal::Number(min.max(0.37)),
                Literal::Number(half(max)),
                Literal::Number(half(1.0).clamp(min, max)),
                Literal::Number(min),
                Literal::Number(max),
            ]
        }
        Takes::Integer(min, max) | Takes::IntegerOr(min, max, _) => [min, min + 1, min + 6, 77, 5000, max]
            .into_iter()
            .filter(|i| (min..=max).contains(i))
            .map(Literal::Integer)
            .collect(),
        Takes::Word(words) | Takes::WordOrUserDefined(words) => {
            words.iter().copied().map(Literal::Word).collect()
        }
        Takes::Flag => vec![Literal::Flag(true), Literal::Flag(false)],
        _ => Vec::new(),
    };
    values.into_iter().filter_map(|value| written(path, value)).collect()
}

/// Settings that the other values of a key need.
const COMPANIONS: &[(&str, &[&str])] = &[
    ("flows.kind", &["flows.rate_kbps=8"]),
    ("mobility.model", &["mobility.width_m=100", "mobility.height_m=100", "mobility.max_speed_mps=1"]),
    ("radio.errors.model", &["radio.errors.packet_loss=0.1"]),
    ("radio.loss.0.model", &["radio.loss.0.packet_loss=0.1"]),
    ("link.0.errors.model", &["link.0.errors.packet_loss=0.1"]),
    ("link.0.rate_trace.0.direction", &["link.0.rate_mbps=1"]),
];

/// Keys with a single value, so that there is no other one to compare with.
const SINGLE_VALUED: &[&str] = &["routing.olsr.preset"];

#[test]
fn a_scenario_without_a_key_is_that_with_its_stated_default() {
    let all = scenarios();
    let is_refused = |(text, settings): &&(&str, Vec<String>)| resolved(text, settings).is_err();
    let refused: Vec<_> = all.iter().filter(is_refused).map(|(_, settings)| settings).collect();
    assert!(refused.is_empty(), "no scenarios: {refused:#?}");
    let scenarios: Vec<_> = all
        .into_iter()
        .filter_map(|(text, settings)| resolved(text, &settings).ok().map(|spec| (text, settings, spec)))
        .collect();
    let mut wrong = BTreeMap::new();
    let mut untouched = BTreeSet::new();
    let mut compared = 0;
    for (path, key) in every_key() {
        let Some(value) = key.default.value() else { continue };
        let exceptions = match key.default {
            schema::Default::Of(_, exceptions) => exceptions,
            _ => &[],
        };
        let (mut effective, mut as_stated) = (0, 0);
        for (text, settings, without) in &scenarios {
            if settings.iter().any(|setting| setting.starts_with(&format!("{path}="))) {
                continue;
            }
            // A key of a table that is not there brings the whole table along.
            let is_there = |table: &str| {
                text.contains(&format!("[{table}]"))
                    || settings.iter().any(|setting| setting.starts_with(&format!("{table}.")))
            };
            let brought = ["radio", "neighborhood_red", "animation"]
                .into_iter()
                .find(|table| path.starts_with(&format!("{table}.")));
            if brought.is_some_and(|table| !is_there(table)) {
                continue;
            }
            let with = |setting: String| resolved(text, &[&settings[..], &[setting]].concat()).ok();
            let companions = COMPANIONS.iter().find(|(of, _)| *of == path).map_or(&[][..], |(_, more)| more);
            let companions: Vec<String> = companions.iter().map(|&more| more.to_owned()).collect();
            let with_companions =
                |setting| resolved(text, &[&settings[..], &companions, &[setting]].concat()).ok();
            if !others(&path, key).into_iter().filter_map(with_companions).any(|other| other != *without) {
                continue;
            }
            effective += 1;
            let is = |value| written(&path, value).and_then(with).as_ref() == Some(without);
            let has_text = exceptions.iter().any(|e| matches!(e.value, Literal::Text(_)));
            if is(value) {
                as_stated += 1;
            } else if !has_text && !exceptions.iter().any(|e| is(e.value)) {
                wrong.entry(path.clone()).or_insert_with(Vec::new).push(settings.clone());
            }
        }
        match (effective, as_stated) {
            (0, _) => _ = untouched.insert(path),
            (_, 0) => _ = wrong.entry(path).or_default(),
            _ => compared += 1,
        }
    }
    assert!(wrong.is_empty(), "stated, but not so: {wrong:#?}");
    let expected: BTreeSet<String> = SINGLE_VALUED.iter().map(|&path| path.into()).collect();
    assert_eq!(untouched, expected, "no scenario shows their default; {compared} are compared");
}

#[test]
fn a_former_name_is_answered_with_the_present_one_at_its_place() {
    let first = |text: &str, settings: &[&str]| match parse(text, settings) {
        Ok(_) => panic!("{settings:?}: no such key"),
        Err(Problems(problems)) => problems[0].to_string(),
    };
    let text = format!("{CHAIN}[wide]\nkeep = 0.9\n");
    assert_eq!(
        first(&text, &[]),
        "test.toml:11:1: unknown key `keep` in `wide` (did you mean `decrease_factor`?)"
    );
    for (setting, help) in [
        ("wide.unproven=0.1", "unknown key `unproven` in `wide` (did you mean `max_unobserved_loss`?)"),
        ("tcp.law=cubic", "unknown key `law` in `tcp` (did you mean `congestion_control`?)"),
        ("door.again=continue", "unknown key `again` in `door` (did you mean `repeated_event`?)"),
        ("link.0.late.share=0.1", "unknown key `late` in `link.0` (did you mean `reordering`?)"),
    ] {
        let said = first(WIRED, &[setting]);
        assert!(said.ends_with(help), "{said}");
    }
}

#[test]
fn no_former_name_is_that_of_a_key_beside_it() {
    let all = every_key();
    for (path, key) in &all {
        let table = path.strip_suffix(key.name).expect("a path ends with the name");
        for former in key.former {
            let count = all.iter().filter(|(path, _)| *path == format!("{table}{former}")).count();
            assert_eq!(count, 0, "{table}{former} is a key, and {path} was called so");
        }
    }
}

/// Keys without a default, which other keys need or make useless: those of a kind, a model or a layout.
const NEEDED_AT_TIMES: &[&str] = &[
    "flow.0.class",
    "flow.0.dst",
    "flow.0.file",
    "flow.0.on_s.deviation",
    "flow.0.on_s.max",
    "flow.0.on_s.mean",
    "flow.0.on_s.min",
    "flow.0.on_s.shape",
    "flow.0.pairs",
    "flow.0.rate_kbps",
    "flow.0.src",
    "flows.class",
    "flows.file",
    "flows.random",
    "flows.rate_kbps",
    "link.0.errors.bad_to_good",
    "link.0.errors.bit_error_rate",
    "link.0.errors.bit_error_rate_bad",
    "link.0.errors.good_to_bad",
    "link.0.errors.mean_bad_s",
    "link.0.errors.mean_good_s",
    "link.0.errors.nth",
    "link.0.errors.packet_loss",
    "mobility.file",
    "mobility.max_speed_mps",
    "mobility.min_speed_mps",
    "nodes.columns",
    "nodes.count",
    "nodes.file",
    "nodes.height_m",
    "nodes.rows",
    "nodes.spacing_m",
    "nodes.width_m",
    "obstacle.0.height_m",
    "obstacle.0.width_m",
    "obstacle.0.x_m",
    "obstacle.0.y_m",
    "proxy.0.peer",
    "question.bound",
    "radio.errors.bad_to_good",
    "radio.errors.bit_error_rate",
    "radio.errors.bit_error_rate_bad",
    "radio.errors.good_to_bad",
    "radio.errors.mean_bad_s",
    "radio.errors.mean_good_s",
    "radio.errors.nth",
    "radio.errors.packet_loss",
    "radio.loss.0.bad_to_good",
    "radio.loss.0.bit_error_rate",
    "radio.loss.0.bit_error_rate_bad",
    "radio.loss.0.good_to_bad",
    "radio.loss.0.mean_bad_s",
    "radio.loss.0.mean_good_s",
    "radio.loss.0.nth",
    "radio.loss.0.packet_loss",
];

#[test]
fn every_optional_key_states_its_default_or_what_it_follows_from() {
    let is_value =
        |key: &Key| !matches!(key.takes, Takes::Table(_) | Takes::Tables(_) | Takes::Lists | Takes::Settings);
    let unsaid: BTreeSet<String> = every_key()
        .into_iter()
        .filter(|(_, key)| is_value(key) && key.default == schema::Default::Unset)
        .map(|(path, _)| path)
        .collect();
    assert_eq!(unsaid, NEEDED_AT_TIMES.iter().map(|&path| path.into()).collect());
}
