use super::*;
use crate::run::{NoObserver, untraced};
use hopline_config::document::Setting;
use hopline_config::source::Source;
use hopline_core::Duration;
use hopline_scenario::Scenario;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Two hops, then a wire; a transfer that ends, datagrams, and a flow without a route.
const MIXED: &str = "\
duration_s = 20
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[radio]
[[node]]
name = \"server\"
interface = \"wired\"
[[node]]
name = \"island\"
x_m = 9000
[[link]]
a = \"n2\"
b = \"server\"
rate_mbps = 10
delay_ms = 20
[[flow]]
name = \"file\"
src = \"server\"
dst = \"n0\"
bytes = 100000
[[flow]]
name = \"voice\"
kind = \"cbr\"
src = \"n0\"
dst = \"n2\"
rate_kbps = 16
packet_bytes = 200
[[flow]]
name = \"lost\"
src = \"n0\"
dst = \"island\"
";

fn with_run(text: &str, check: impl FnOnce(&Spec, &Run, &[Metric<'_>])) {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
    let scenario = Scenario::parse(source, PathBuf::new(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let spec = scenario.spec(1).unwrap_or_else(|e| panic!("{e}"));
    let run = untraced(&spec, 1, &NoObserver).expect("nobody interrupts");
    check(&spec, &run, &of_run(&spec, &run));
}

fn value(all: &[Metric<'_>], scope: Scope<'_>, name: &str) -> Option<f64> {
    all.iter().find(|m| m.scope == scope && m.name() == name).map(|m| m.value)
}

#[test]
fn names_are_unique_within_a_level_and_end_in_their_unit() {
    let names: BTreeSet<_> = CATALOGUE.iter().map(|info| (info.level(), info.name)).collect();
    assert_eq!(names.len(), CATALOGUE.len());
    for info in CATALOGUE {
        let suffix = match info.unit {
            "1" => continue,
            "bit/s" => "_bps",
            "%" => "_pct",
            "s" | "s/MB" => "_s",
            "J" | "J/MB" => "_j",
            "B" => "bytes",
            other => panic!("{}: unknown unit {other}", info.name),
        };
        assert!(info.name.contains(suffix), "{} is in {}", info.name, info.unit);
        assert!(!info.doc.is_empty());
        assert_eq!(find(info.level(), info.name), Some(info));
    }
    assert_eq!(find(Level::Node, "goodput_bps"), None);
}

#[test]
fn values_are_finite_and_unique() {
    with_run(MIXED, |_, _, all| {
        assert!(all.iter().all(|m| m.value.is_finite()), "{all:?}");
        let keys: BTreeSet<_> = all.iter().map(|m| (m.scope, m.name())).collect();
        assert_eq!(keys.len(), all.len());
        assert!(all.is_sorted_by_key(|m| m.info.level()));
    });
}

#[test]
fn undefined_metrics_are_omitted() {
    with_run(MIXED, |_, _, all| {
        let flow = |name, metric| value(all, Scope::Flow(name), metric);
        for absent in
            ["delay_mean_s", "delay_p50_s", "jitter_mean_s", "srtt_mean_s", "completion_s", "rtx_index_pct"]
        {
            assert_eq!(flow("lost", absent), None, "{absent}");
        }
        assert_eq!((flow("lost", "goodput_bps"), flow("lost", "packet_loss_pct")), (Some(0.0), Some(100.0)));
        for absent in ["timeouts", "retransmissions", "rtx_index_pct", "cwnd_mean_bytes", "back_packets_sent"]
        {
            assert_eq!(flow("voice", absent), None, "{absent}");
        }
        assert_eq!(value(all, Scope::Node("server"), "transmitting_pct"), None);
        assert_eq!(value(all, Scope::Node("server"), "frames_sent"), None);
        assert_eq!(value(all, Scope::Node("server"), "drops"), Some(0.0));
    });
}

#[test]
fn counters_of_tcp_door_exist_for_its_flows() {
    let text = MIXED.replace("name = \"file\"", "name = \"file\"\ntransport = \"tcp-door\"");
    with_run(&text, |_, run, all| {
        let flow = |name, metric| value(all, Scope::Flow(name), metric);
        let (door, received) = (run.outcome.flows[0].door_stats, run.outcome.flows[0].bytes_received);
        assert_eq!((received, door.ack_events, door.malformed), (100_000, 0, 0), "one path keeps its order");
        for metric in ["door_ack_events", "door_data_events", "door_notified_events", "door_disabled_periods"]
        {
            assert_eq!(flow("file", metric), Some(0.0));
        }
        for metric in ["door_spared_timeouts", "door_spared_fast_retransmits", "door_recoveries"] {
            assert_eq!(flow("file", metric), Some(0.0));
            assert_eq!((flow("voice", metric), flow("lost", metric)), (None, None));
        }
    });
}

#[test]
fn values_match_the_outcome() {
    with_run(MIXED, |_, run, all| {
        let outcome = &run.outcome;
        let file = &outcome.flows[0];
        let of_run = |metric| value(all, Scope::Run, metric);
        let flow = |name, metric| value(all, Scope::Flow(name), metric);
        assert_eq!(of_run("aggregate_goodput_bps"), Some(outcome.aggregate_goodput_bps()));
        assert_eq!(of_run("jain"), Some(outcome.jain()));
        assert_eq!(flow("file", "bytes_received"), Some(100_000.0));
        assert_eq!(flow("file", "completion_s"), Some(file.active_time.as_secs_f64()));
        assert_eq!(flow("file", "delay_mean_s"), file.data.delays.mean_s());
        // Three hops in each direction; the wire alone takes 20 ms.
        assert_eq!((flow("file", "hops_mean"), flow("voice", "hops_mean")), (Some(3.0), Some(2.0)));
        assert!(flow("file", "delay_p50_s") > Some(0.02) && flow("file", "back_delay_mean_s") > Some(0.02));
        assert!(flow("file", "delay_p50_s") <= flow("file", "delay_p95_s"));
        assert!(flow("file", "delay_p99_s") <= flow("file", "delay_max_s"));
        let frames: u64 = outcome.nodes.iter().map(|n| n.frames.total()).sum();
        let segments: u64 = outcome.flows.iter().map(|f| f.segments_received).sum();
        assert_eq!(of_run("frames_per_segment"), Some(frames as f64 / segments as f64));
        // Two hops with RTS, CTS, data and ACK each for a datagram, twice that with TCP's acknowledgment.
        assert!((8.0..20.0).contains(&(frames as f64 / segments as f64)));
        let shares = ["transmitting_pct", "receiving_pct", "sensing_pct", "nav_pct", "idle_pct"];
        for scope in [Scope::Run, Scope::Node("n1"), Scope::Node("island")] {
            let total: f64 = shares.iter().filter_map(|share| value(all, scope, share)).sum();
            assert!((total - 100.0).abs() < 1e-9, "{scope:?}: {total}");
        }
        // Power of a WaveLAN card in each state, W, over 20 s at each of the radios.
        let watts = [1.327, 0.967, 0.967, 0.843, 0.843];
        let of_n1 =
            shares.iter().zip(watts).filter_map(|(share, w)| Some(w * value(all, Scope::Node("n1"), share)?));
        let expected = of_n1.sum::<f64>() / 100.0 * 20.0;
        let energy = value(all, Scope::Node("n1"), "energy_j").unwrap();
        assert!((energy - expected).abs() < 1e-6, "{energy} {expected}");
        assert!(of_run("energy_j").unwrap() > energy && of_run("energy_per_megabyte_j").is_some());
    });
}

#[test]
fn the_warm_up_is_not_counted() {
    let later = MIXED.replace("duration_s = 20", "duration_s = 20\nwarmup_s = 15");
    with_run(MIXED, |_, whole, _| {
        with_run(&later, |_, run, all| {
            assert_eq!(run.outcome.fingerprint, whole.outcome.fingerprint);
            let flow = |name, metric| value(all, Scope::Flow(name), metric);
            // The file had arrived by then.
            assert!(whole.outcome.flows[0].completion.is_some_and(|t| t < Duration::from_secs(15)));
            assert_eq!(
                (flow("file", "bytes_received"), flow("file", "packets_sent")),
                (Some(0.0), Some(0.0))
            );
            for absent in ["goodput_bps", "completion_s", "delay_mean_s", "srtt_mean_s", "cwnd_mean_bytes"] {
                assert_eq!(flow("file", absent), None, "{absent}");
            }
            // 16 kb/s in packets of 200 bytes: ten each second, first and last included.
            assert_eq!(flow("voice", "packets_sent"), Some(51.0));
            assert!((flow("voice", "goodput_bps").unwrap() - 16_000.0).abs() <= 320.0);
        });
    });
}

#[test]
fn minimum_and_maximum_goodput_are_those_of_flows() {
    with_run(MIXED, |_, run, all| {
        let of_run = |metric| value(all, Scope::Run, metric);
        let file = run.outcome.flows[0].goodput_bps();
        assert_eq!((of_run("goodput_max_bps"), of_run("goodput_min_bps")), (Some(file), Some(0.0)));
    });
}

#[test]
fn spurious_retransmissions_are_relative_to_all_retransmissions() {
    let text = "duration_s = 20\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
        [tcp]\nwindow = 1\n[[link]]\na = \"a\"\nb = \"b\"\nrate_mbps = 1\ndelay_ms = 5\n\
        errors = { model = \"packet\", packet_loss = 0.1 }\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n";
    with_run(text, |_, run, all| {
        let flow = &run.outcome.flows[0];
        let share = value(all, Scope::Flow("f0"), "spurious_rtx_pct").unwrap();
        assert_eq!(value(all, Scope::Flow("f0"), "spurious_rtx"), Some(flow.duplicates as f64));
        assert_eq!(share, 100.0 * flow.duplicates as f64 / flow.retransmissions as f64);
        // Data and ACKs have the same loss, and one segment is in flight: each lost ACK causes a spurious
        // retransmission.
        assert!((30.0..70.0).contains(&share), "{share}");
    });
    with_run(MIXED, |_, _, all| {
        assert_eq!(value(all, Scope::Flow("voice"), "spurious_rtx_pct"), None);
    });
}

#[test]
fn wired_runs_have_no_airtime_and_one_flow_no_fairness() {
    let text = "duration_s = 2\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
        [[link]]\na = \"a\"\nb = \"b\"\nrate_mbps = 1\ndelay_ms = 5\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n";
    with_run(text, |_, _, all| {
        for absent in ["frames_per_segment", "airtime_per_megabyte_s", "idle_pct", "jain", "jain_2s"] {
            assert_eq!(value(all, Scope::Run, absent), None, "{absent}");
        }
        assert!(value(all, Scope::Run, "aggregate_goodput_bps") > Some(500_000.0));
    });
}

#[test]
fn every_two_varying_flows_have_a_correlation() {
    with_run(MIXED, |spec, run, _| {
        assert_eq!(pairs(spec, run), [], "one ends at once, one is constant, one is silent")
    });
    let two = "\
duration_s = 30
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[radio]
[[flow]]
name = \"b\"
src = \"n0\"
dst = \"n2\"
[[flow]]
name = \"a\"
src = \"n2\"
dst = \"n0\"
";
    with_run(two, |spec, run, all| {
        let pairs = pairs(spec, run);
        let [pair] = &pairs[..] else { panic!("{pairs:?}") };
        assert_eq!((pair.scope, pair.name()), (Scope::Pair("b", "a"), "goodput_correlation"));
        assert_eq!(pair.scope.subject(), "a with b", "whichever comes first");
        assert!(pair.value < 0.0, "they share one channel: {}", pair.value);
        assert!(all.iter().all(|m| m.info.level() != Level::Pair), "only who asks gets them");
    });
}

#[test]
fn kinds_and_classes_have_the_joint_metrics_of_their_flows() {
    let mixed = MIXED.replacen("[[flow]]", "[[flow]]\nclass = \"mine\"", 1);
    with_run(&mixed, |spec, run, all| {
        let group = |name, metric| value(all, Scope::Group(name), metric);
        assert_eq!(spec.flows[0].labels.class, "mine");
        let of_first = run.outcome.flows[0].goodput_bps();
        assert_eq!(group("mine", "goodput_bps"), Some(of_first));
        let cbr = spec.flows.iter().zip(&run.outcome.flows).filter(|(flow, _)| flow.labels.kind == "cbr");
        assert_eq!(group("cbr", "goodput_bps"), Some(cbr.map(|(_, f)| f.goodput_bps()).sum()));
        assert_eq!(group("cbr", "responses"), None);
        let (lost, there) = (group("cbr", "packet_loss_pct").unwrap(), group("cbr", "delivery_pct").unwrap());
        assert!((lost + there - 100.0).abs() < 1e-9);
        assert_eq!(group("mine", "delay_p95_s"), value(all, Scope::Flow(&spec.flows[0].name), "delay_p95_s"));
    });
}

#[test]
fn flows_of_one_kind_are_a_group_with_the_metrics_of_the_run() {
    with_run(crate::testing::TWO_HOPS, |_, _, all| {
        let group = |metric| value(all, Scope::Group("bulk"), metric);
        assert_eq!(group("goodput_bps"), value(all, Scope::Run, "aggregate_goodput_bps"));
        assert!(value(all, Scope::Run, "delay_p99_s") >= value(all, Scope::Run, "delay_p50_s"));
        assert_eq!(value(all, Scope::Run, "response_p95_s"), None);
        assert_eq!(value(all, Scope::Run, "completion_max_s"), None, "it has no end");
    });
}

/// Runs a scenario of a paper for some seconds, with `settings`.
fn with_paper(file: &str, settings: &[&str], check: impl FnOnce(&Run, &[Metric<'_>])) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../papers").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let source = Arc::new(Source { name: file.into(), text });
    let settings: Vec<Setting> = settings.iter().map(|s| Setting::parse("--set", s).unwrap()).collect();
    let folder = path.parent().unwrap();
    let scenario = Scenario::parse(source, folder, &settings).unwrap_or_else(|e| panic!("{file}: {e}"));
    let spec = scenario.spec(1).unwrap_or_else(|e| panic!("{file}: {e}"));
    let run = untraced(&spec, 1, &NoObserver).expect("nobody interrupts");
    check(&run, &of_run(&spec, &run));
}

#[test]
fn shares_lie_between_0_and_100_with_duplicated_packets() {
    const BRIDGED: &[&str] =
        &["duration_s=3", "warmup_s=1", "mac.ack_policy=no-ack", "radio.loss.0.packet_loss=0.05"];
    const WAVELAN: &[&str] =
        &["duration_s=40", "link.1.errors.model=bit", "link.1.errors.bit_error_rate=3.8e-6"];
    const CELLS: &[&str] = &["duration_s=10", "mobile.0.handoff_every_s=1"];
    let cases: [(&str, &[&str], &[&str]); 12] = [
        ("dproxy/scenarios/bridged.toml", BRIDGED, &["proxy.0.kind=d-proxy"]),
        ("dproxy/scenarios/bridged.toml", BRIDGED, &["proxy.0.kind=d-proxy", "proxy.0.order_rule=off"]),
        ("dproxy/scenarios/bridged.toml", BRIDGED, &["proxy.0.kind=snoop"]),
        ("dproxy/scenarios/bridged.toml", BRIDGED, &["proxy.0.kind=snoop", "proxy.0.preset=published"]),
        ("dproxy/scenarios/bridged.toml", BRIDGED, &["proxy.0.kind=split"]),
        ("dproxy/scenarios/bridged.toml", BRIDGED, &["proxy.0.kind=opaque"]),
        ("snoop/scenarios/wavelan.toml", WAVELAN, &["proxy.0.kind=snoop"]),
        ("snoop/scenarios/wavelan.toml", WAVELAN, &["proxy.0.kind=split"]),
        ("snoop/scenarios/cells.toml", CELLS, &[]),
        ("snoop/scenarios/cells.toml", CELLS, &["mobile.0.listens=current", "warmup_s=3"]),
        ("snoop/scenarios/cells.toml", CELLS, &["cells.scheme=registration"]),
        ("snoop/scenarios/cells.toml", CELLS, &["proxy.0.preset=modern", "proxy.1.preset=modern"]),
    ];
    for (file, base, settings) in cases {
        with_paper(file, &[base, settings].concat(), |run, all| {
            let shares = all.iter().filter(|m| m.info.unit == "%" && m.name() != "rtx_index_pct");
            for share in shares {
                assert!((0.0..=100.0).contains(&share.value), "{file} {settings:?}: {share:?}");
            }
            let flow = &run.outcome.flows[0];
            assert!(flow.bytes_received > 0, "{file} {settings:?}");
            if flow.data.middlebox_made == 0 {
                let handed = flow.data.sent + flow.data.initially_in_flight;
                assert!(flow.data.received <= handed, "{file} {settings:?}: {:?}", flow.data);
            }
        });
    }
}

#[test]
fn a_packet_with_a_delivered_copy_is_not_lost_and_copies_are_no_spurious_retransmissions() {
    let settings = ["duration_s=5", "warmup_s=1", "mac.ack_policy=no-ack", "radio.loss.0.packet_loss=0.05"];
    let with = |more: &'static str| [&settings[..], &[more]].concat();
    with_paper("dproxy/scenarios/bridged.toml", &with("proxy.0.kind=none"), |_, all| {
        let flow = |name| value(all, Scope::Flow("f0"), name);
        assert!(flow("packet_loss_pct") > Some(4.0) && flow("copies_received") == Some(0.0));
    });
    with_paper("dproxy/scenarios/bridged.toml", &with("proxy.0.kind=d-proxy"), |run, all| {
        let flow = |name| value(all, Scope::Flow("f0"), name);
        let resent = run.outcome.nodes[1].proxies.retransmitted;
        assert!(resent > 100, "{resent}");
        assert!(flow("packet_loss_pct") < Some(0.5), "{:?}", flow("packet_loss_pct"));
        assert!(flow("copies_received") > Some(0.0));
        assert!(flow("spurious_rtx") <= flow("retransmissions"));
    });
}

#[test]
fn a_former_name_is_answered_with_the_present_one() {
    let origin = Origin::of_option("--metric", "x");
    for (former, present) in FORMER {
        let levels: Vec<Level> =
            CATALOGUE.iter().filter(|metric| metric.name == present).map(MetricInfo::level).collect();
        assert!(!levels.is_empty(), "{present} is a metric");
        for level in levels {
            let problem = find_at(level, former, &origin).unwrap_err().to_string();
            assert!(problem.contains(&format!("did you mean \"{present}\"?")), "{problem}");
        }
    }
}
