//! Valid input is resolved. An error is reported at its line and column, with its remedy.

use super::*;
use hopline_core::{Duration, Instant, NodeId};
use hopline_radio::mac::config::{EifsRule, FirstAccess};
use hopline_radio::phy::errors::ErrorModel;
use hopline_radio::phy::propagation::{Propagation, RangeDisk};
use hopline_radio::phy::reception::ReceptionModel;
use hopline_radio::rate::Rate;
use hopline_routing::aodv::config::LinkSensing;
use hopline_sim::spec::links::Shaper;
use hopline_sim::spec::{Attachment, RoutingSpec, Traffic, Transport};
use hopline_transport::tcp::{AckPolicy, Config, Variant};

/// Two nodes with a flow and a link that has no rate yet; the keys of the link come last.
macro_rules! two_nodes {
    () => {
        "duration_s = 10\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
         [[flow]]\nsrc = \"a\"\ndst = \"b\"\n[[link]]\na = \"a\"\nb = \"b\"\ndelay_ms = 1\n"
    };
}

mod bounds;
mod cells;
mod defaults;
mod door;
mod ends;
mod errors;
mod feedback;
mod files;
mod floods;
mod hello;
mod in_step;
mod laws;
mod losses;
mod neighborhood;
mod no_ack;
mod obstacles;
mod outages;
mod own;
mod pacing;
mod programs;
mod proxies;
mod ranges;
mod rate_traces;
mod recovery;
mod settings;
mod traffic;
mod units;
mod ways;

/// Three nodes in a line and a flow from end to end. Tests put their own lines before it or in its sections.
const CHAIN: &str = "\
duration_s = 10
[nodes]
layout = \"chain\"
count = 3
spacing_m = 200
[radio]
[[flow]]
src = \"n0\"
dst = \"n2\"
";

fn parse(text: &str, settings: &[&str]) -> Result<Scenario, Problems> {
    let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
    let settings: Vec<Setting> = settings.iter().map(|s| Setting::parse("--set", s).unwrap()).collect();
    Scenario::parse(source, Path::new(""), &settings)
}

fn spec(text: &str, settings: &[&str]) -> Spec {
    match parse(text, settings).and_then(|s| s.spec(1)) {
        Ok(spec) => spec,
        Err(problems) => panic!("{problems}"),
    }
}

fn tcp(spec: &Spec, flow: usize) -> Config {
    match spec.flows[flow].traffic.transport() {
        Some(&Transport::Tcp(config)) => config,
        other => panic!("not TCP: {other:?}"),
    }
}

fn start(spec: &Spec, node: usize) -> (f64, f64) {
    let position = spec.nodes[node].trajectory.position_at(Instant::ZERO);
    (position.x_m, position.y_m)
}

#[test]
fn defaults_apply_to_a_small_scenario() {
    let scenario = parse(CHAIN, &[]).unwrap();
    assert_eq!((scenario.seed(), scenario.runs()), (1, 1));
    let spec = scenario.spec(1).unwrap();
    assert_eq!(spec.duration, Duration::from_secs(10));
    assert_eq!(spec.nodes.len(), 3);
    assert_eq!((start(&spec, 2), spec.nodes[2].name.as_str()), ((400.0, 0.0), "n2"));
    assert!(matches!(spec.routing, RoutingSpec::Static));
    assert_eq!(tcp(&spec, 0), Config::modern().with_newreno());
    let flow = &spec.flows[0];
    assert_eq!((flow.name.as_str(), flow.src, flow.dst), ("f0", NodeId(0), NodeId(2)));
    assert_eq!((flow.start, flow.stop), (Instant::ZERO, Instant::FAR_FUTURE));
}

#[test]
fn the_default_radio_is_that_of_ns2() {
    let radio = spec(CHAIN, &[]).radio.unwrap();
    assert_eq!(radio.phy, hopline_radio::phy::Config::ns2_wavelan());
    assert_eq!(radio.mac, hopline_radio::mac::Config::ns2_wavelan());
    assert_eq!(radio.queue.capacity.get(), 49);
    assert_eq!(radio.link_layer_delay, Duration::from_micros(25));
}

#[test]
fn other_presets_follow_the_standard() {
    let radio = spec(CHAIN, &["radio.preset=dot11a"]).radio.unwrap();
    assert_eq!(radio.mac, hopline_radio::mac::Config::dot11a());
    assert_eq!((radio.queue.capacity.get(), radio.link_layer_delay), (50, Duration::ZERO));
    let radio = spec(CHAIN, &["radio.preset=dot11b"]).radio.unwrap();
    assert_eq!(radio.phy.reception, ReceptionModel::LockOnDecodable);
}

/// The scenarios of papers/nred had this form before there were presets.
#[test]
fn qualnet_367_covers_radio_mac_and_queue() {
    let written_out = [
        "radio.preset=dot11b",
        "radio.range_m=367",
        "radio.carrier_sense_range_m=653",
        "radio.reception=cumulative-sinr",
        "mac.data_rate_mbps=2",
        "mac.basic_rate_mbps=2",
        "mac.rts_threshold_bytes=always",
        "queue.capacity_packets=66",
    ];
    let radio = |settings: &[&str]| spec(CHAIN, settings).radio.unwrap();
    let (preset, plain) = (radio(&["radio.preset=qualnet-367"]), radio(&written_out));
    assert_eq!((preset.phy, preset.mac, preset.queue), (plain.phy, plain.mac, plain.queue));
    assert_eq!(preset.link_layer_delay, plain.link_layer_delay);
    let farther = ["radio.carrier_sense_range_m=807", "queue.capacity_packets=5"];
    let preset = radio(&[&["radio.preset=qualnet-367"][..], &farther].concat());
    assert_eq!(preset.phy, radio(&[&written_out[..2], &written_out[3..7], &farther].concat()).phy);
    assert_eq!(preset.queue.capacity.get(), 5);
    let disk = radio(&["radio.preset=qualnet-367", "radio.propagation=range-disk"]).phy.propagation;
    assert_eq!(disk, Propagation::RangeDisk(RangeDisk::QUALNET_367), "the circles are those of the preset");
}

/// The scenarios of papers/nred had this form before there were presets.
#[test]
fn qualnet_is_a_preset_of_tcp() {
    let written_out = [
        "tcp.preset=modern",
        "tcp.mss_bytes=512",
        "tcp.window=32",
        "tcp.initial_window=1",
        "tcp.limited_transmit=off",
        "tcp.timestamps=false",
        "tcp.delayed_ack_ms=200",
        "tcp.initial_rto_s=3",
        "tcp.min_rto_s=1",
        "tcp.clock_granularity_s=0.5",
    ];
    for transport in ["tcp-reno", "tcp-newreno", "tcp-sack", "tcp-cubic", "tcp-door"] {
        let transport = format!("transport={transport}");
        let config = |settings: &[&str]| tcp(&spec(CHAIN, &[settings, &[&transport]].concat()), 0);
        assert_eq!(config(&["tcp.preset=qualnet"]), config(&written_out), "{transport}");
    }
}

#[test]
fn mac_keys_override_the_preset() {
    let settings = [
        "mac.data_rate_mbps=5.5",
        "mac.basic_rate_mbps=2",
        "mac.rts_threshold_bytes=never",
        "mac.short_retry_limit=4",
        "mac.cw_min=15",
        "mac.eifs=standard",
    ];
    let mac = spec(CHAIN, &settings).radio.unwrap().mac;
    assert_eq!((mac.data_rate, mac.basic_rate), (Rate::Cck5_5, Rate::Dsss2));
    assert_eq!((mac.rts_threshold_bytes, mac.short_retry_limit, mac.cw_min), (u32::MAX, 4, 15));
    assert_eq!((mac.eifs, mac.first_access), (EifsRule::Standard, FirstAccess::AlwaysBackoff));
}

#[test]
fn blocks_are_acknowledged_in_the_given_size() {
    use hopline_radio::mac::config::AckPolicy;
    let policy = |settings: &[&str]| spec(CHAIN, settings).radio.unwrap().mac.ack_policy;
    assert_eq!(policy(&[]), AckPolicy::Normal);
    assert_eq!(policy(&["mac.ack_policy=no-ack"]), AckPolicy::NoAck);
    assert_eq!(policy(&["mac.ack_policy=block-ack"]), AckPolicy::block_ack());
    let settings = ["mac.ack_policy=block-ack", "mac.block_size=16", "mac.txop_limit_us=4096"];
    let txop_limit = Some(Duration::from_micros(4096));
    assert_eq!(policy(&settings), AckPolicy::BlockAck { block_size: 16, txop_limit });
}

#[test]
fn ranges_move_the_thresholds_to_the_power_at_that_distance() {
    let phy = spec(CHAIN, &["radio.range_m=367", "radio.carrier_sense_range_m=720"]).radio.unwrap().phy;
    let range = |threshold| phy.propagation.range_for(&phy.radio, threshold);
    assert!((range(phy.radio.rx_threshold_w) - 367.0).abs() < 1e-6);
    assert!((range(phy.radio.cs_threshold_w) - 720.0).abs() < 1e-6);
    let reaches = |distance| phy.propagation.received_w(&phy.radio, distance) >= phy.radio.rx_threshold_w;
    assert!(reaches(367.0) && !reaches(367.1));
}

#[test]
fn tcp_keys_of_a_flow_override_the_general_ones() {
    let text = CHAIN
        .replace("[radio]", "[radio]\n[tcp]\npreset = \"ns2-2.35\"\nwindow = 8\ndelayed_ack_ms = 100")
        + "tcp = { window = \"unclamped\", min_rto_s = 0.5 }\ntransport = \"tcp-sack\"\n";
    let config = tcp(&spec(&text, &[]), 0);
    assert_eq!(config.window_clamp(), None);
    assert_eq!(config.rto().min(), Duration::from_millis(500));
    assert_eq!(config.ack_policy(), AckPolicy::Delayed { timer: Duration::from_millis(100) });
    assert_eq!(config.rto().initial(), Config::ns2_235().rto().initial());
    assert!(matches!(config.variant(), Variant::Sack(_)));
}

#[test]
fn a_cbr_flow_sends_at_its_rate() {
    let text = CHAIN.to_owned() + "kind = \"cbr\"\nrate_kbps = 16.384\npacket_bytes = 512\n";
    match spec(&text, &[]).flows[0].traffic {
        Traffic::Cbr { packet_bytes, interval } => {
            assert_eq!((packet_bytes, interval), (512, Duration::from_millis(250)));
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_grid_is_named_row_by_row() {
    let text = CHAIN.replace("\"chain\"\ncount = 3", "\"grid\"\ncolumns = 2\nrows = 3");
    let spec = spec(&text, &[]);
    assert_eq!(spec.nodes.len(), 6);
    assert_eq!((start(&spec, 1), start(&spec, 4)), ((200.0, 0.0), (0.0, 400.0)));
}

#[test]
fn random_positions_depend_on_seed_and_run_only() {
    let text = CHAIN
        .replace("\"chain\"", "\"random\"\nwidth_m = 1000\nheight_m = 500")
        .replace("spacing_m = 200\n", "");
    let places = |settings: &[&str], run| {
        let spec = parse(&text, settings).unwrap().spec(run).unwrap();
        (0..spec.nodes.len()).map(|n| start(&spec, n)).collect::<Vec<_>>()
    };
    let first = places(&[], 1);
    assert!(first.iter().all(|(x, y)| (0.0..1000.0).contains(x) && (0.0..500.0).contains(y)));
    assert_eq!(first, places(&["tcp.window=2"], 1));
    assert_ne!(first, places(&[], 2));
    assert_ne!(first, places(&["seed=2"], 1));
    assert_eq!(first, places(&["nodes.count=5"], 1)[..3], "more nodes move nobody");
}

#[test]
fn random_flows_join_distinct_nodes_within_their_times() {
    let text = CHAIN.to_owned() + "[flows]\nrandom = 50\nstart_min_s = 1\nstart_max_s = 3\n";
    let spec = spec(&text, &[]);
    assert_eq!(spec.flows.len(), 51);
    for flow in &spec.flows[1..] {
        assert_ne!(flow.src, flow.dst);
        assert!((Instant::from_secs(1)..Instant::from_secs(3)).contains(&flow.start), "{}", flow.start);
    }
    let all: std::collections::BTreeSet<_> = spec.flows.iter().map(|f| (f.src, f.dst)).collect();
    assert_eq!(all.len(), 6, "every ordered pair of three nodes turns up in fifty draws");
}

#[test]
fn moving_nodes_stay_in_their_area_and_differ_from_run_to_run() {
    for model in [
        "model = \"random-waypoint\"",
        "model = \"random-waypoint-stationary\"\nmin_speed_mps = 1\npause_s = 2",
    ] {
        let text = format!("{CHAIN}[mobility]\n{model}\nwidth_m = 300\nheight_m = 200\nmax_speed_mps = 20\n");
        let scenario = parse(&text, &[]).unwrap();
        let places = |run| {
            let spec = scenario.spec(run).unwrap();
            let at = |second| spec.nodes[0].trajectory.position_at(Instant::from_secs(second));
            (0..10).map(at).collect::<Vec<_>>()
        };
        assert!(places(1).iter().all(|p| (0.0..=300.0).contains(&p.x_m) && (0.0..=200.0).contains(&p.y_m)));
        assert_ne!(places(1), places(2));
        assert_ne!(places(1)[0], places(1)[9], "{model}");
    }
}

#[test]
fn waypoints_move_a_node_and_leave_it_there() {
    let text = "duration_s = 60\n[radio]\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\nx_m = 100\n\
        waypoints = [{ at_s = 10, x_m = 100, y_m = 50, speed_mps = 5 }]\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n";
    let spec = spec(text, &[]);
    let y = |second| spec.nodes[1].trajectory.position_at(Instant::from_secs(second)).y_m;
    assert_eq!((y(10), y(15), y(20), y(60)), (0.0, 25.0, 50.0, 50.0));
}

const WIRED: &str = "\
duration_s = 10
[[node]]
name = \"server\"
[[node]]
name = \"client\"
[[link]]
a = \"server\"
b = \"client\"
rate_mbps = 2.5
delay_ms = 1.5
[[flow]]
src = \"server\"
dst = \"client\"
";

#[test]
fn without_a_radio_nodes_are_wired() {
    let spec = spec(WIRED, &["link.0.errors.model=bit", "link.0.errors.bit_error_rate=1e-6"]);
    assert!(spec.radio.is_none() && spec.nodes.iter().all(|n| n.attachment() == Attachment::Wired));
    let link = &spec.links[0];
    assert_eq!((link.a, link.b, link.rate_bps), (NodeId(0), NodeId(1), 2_500_000));
    assert_eq!((link.delay, link.queue.capacity.get()), (Duration::from_micros(1500), 50));
    assert!(link.errors.iter().all(|errors| matches!(errors, ErrorModel::BitErrors(p) if p.get() == 1e-6)));
}

#[test]
fn errors_of_a_link_apply_to_the_named_direction() {
    let lossy = |direction: &[&str]| {
        let loss = ["link.0.errors.model=packet", "link.0.errors.packet_loss=0.2"];
        let errors = spec(WIRED, &[&loss, direction].concat()).links[0].errors;
        errors.map(|errors| matches!(errors, ErrorModel::PacketLoss(p) if p.get() == 0.2))
    };
    assert_eq!(lossy(&[]), [true, true]);
    assert_eq!(lossy(&["link.0.errors.direction=both"]), [true, true]);
    assert_eq!(lossy(&["link.0.errors.direction=a-to-b"]), [true, false]);
    assert_eq!(lossy(&["link.0.errors.direction=b-to-a"]), [false, true]);
}

#[test]
fn jitter_of_a_link_applies_to_the_named_direction() {
    let jitter = |direction: &[&str]| {
        spec(WIRED, &[&["link.0.jitter.max_ms=2.5"], direction].concat()).links[0].impairments.jitter
    };
    let most = Duration::from_micros(2500);
    assert_eq!(spec(WIRED, &[]).links[0].impairments.jitter, [Duration::ZERO; 2]);
    assert_eq!(jitter(&[]), [most; 2]);
    assert_eq!(jitter(&["link.0.jitter.direction=a-to-b"]), [most, Duration::ZERO]);
    assert_eq!(jitter(&["link.0.jitter.direction=b-to-a"]), [Duration::ZERO, most]);
}

#[test]
fn a_shaper_applies_to_the_named_direction() {
    let shaper = |keys: &[&str]| {
        spec(WIRED, &[&["link.0.shaper.rate_mbps=9.5"], keys].concat()).links[0].impairments.shaper
    };
    let paced = Shaper { rate_bps: 9_500_000, burst_bytes: 0, overhead_bytes: 0, mpu_bytes: 0 };
    assert_eq!(spec(WIRED, &[]).links[0].impairments.shaper, [None; 2]);
    assert_eq!(shaper(&[]), [Some(paced); 2]);
    let keys = ["burst_bytes=3000", "overhead_bytes=38", "mpu_bytes=84", "direction=b-to-a"];
    let framed = Shaper { burst_bytes: 3000, overhead_bytes: 38, mpu_bytes: 84, ..paced };
    assert_eq!(
        shaper(&keys.map(|key| format!("link.0.shaper.{key}")).each_ref().map(String::as_str)),
        [None, Some(framed)]
    );
}

#[test]
fn a_link_has_other_delays_from_a_time_on() {
    let delayed = |times: [f64; 2]| {
        let tables = times.map(|from_s| format!("[[link.delay]]\nfrom_s = {from_s}\ndelay_ms = 30\n"));
        let text = WIRED.replace("[[flow]]", &format!("{}[[flow]]", tables.concat()));
        parse(&text, &[]).and_then(|scenario| scenario.spec(1))
    };
    let from = |millis| (Instant::from_millis(millis), Duration::from_millis(30));
    let spec = delayed([1.0, 2.5]).expect("times in order");
    assert_eq!(spec.links[0].impairments.delays, [from(1000), from(2500)]);
    let problems = delayed([1.0, 1.0]).expect_err("times out of order").to_string();
    assert!(problems.contains("a delay from a moment that is not after the one before"), "{problems}");
}

/// Server to client are data, client to server ACKs.
#[test]
fn a_link_may_lose_data_only() {
    let lost = |direction: &str| {
        let direction = format!("link.0.errors.direction={direction}");
        let loss = ["link.0.errors.model=packet", "link.0.errors.packet_loss=0.05", &direction];
        let outcome = hopline_sim::simulate(&spec(WIRED, &loss), 1);
        [0, 1].map(|node: usize| outcome.nodes[node].drops.link_error > 0)
    };
    let (at_server, at_client) = (true, true);
    assert_eq!(lost("both"), [at_server, at_client]);
    assert_eq!(lost("a-to-b"), [false, at_client]);
    assert_eq!(lost("b-to-a"), [at_server, false]);
}

#[test]
fn a_network_may_have_wired_and_wireless_nodes() {
    let text = CHAIN.to_owned()
        + "[[node]]\nname = \"server\"\ninterface = \"wired\"\n\
           [[link]]\na = \"server\"\nb = \"n0\"\nrate_mbps = 10\ndelay_ms = 5\n";
    let spec = spec(&text, &[]);
    let interfaces: Vec<_> = spec.nodes.iter().map(|n| n.attachment()).collect();
    assert_eq!(interfaces[2..], [Attachment::Wireless, Attachment::Wired]);
    assert_eq!(spec.links[0].a, NodeId(3));
}

#[test]
fn gilbert_models_take_their_parameters() {
    let settings = [
        "radio.errors.model=gilbert-packet",
        "radio.errors.good_to_bad=0.01",
        "radio.errors.bad_to_good=0.2",
    ];
    match spec(CHAIN, &settings).radio.unwrap().errors {
        ErrorModel::GilbertPackets(g) => {
            assert_eq!((g.good_to_bad.get(), g.bad_to_good.get()), (0.01, 0.2));
            assert_eq!((g.loss_good.get(), g.loss_bad.get()), (0.0, 1.0));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn aodv_takes_a_preset_and_overrides() {
    let settings = ["routing.protocol=aodv", "routing.aodv.preset=ns2-2.35", "routing.aodv.net_diameter=12"];
    match spec(CHAIN, &settings).routing {
        RoutingSpec::Aodv(config) => {
            assert_eq!((config.net_diameter, config.rreq_retries), (12, 3));
            assert_eq!(config.link_sensing, LinkSensing::LinkLayer);
        }
        other => panic!("{other:?}"),
    }
    let settings =
        ["routing.protocol=aodv", "routing.aodv.link_sensing=hello", "routing.aodv.hello_interval_s=0.5"];
    match spec(CHAIN, &settings).routing {
        RoutingSpec::Aodv(config) => {
            assert_eq!(config.link_sensing.hello().unwrap().interval, Duration::from_millis(500));
        }
        other => panic!("{other:?}"),
    }
}

fn dsr(settings: &[&str]) -> hopline_routing::dsr::Config {
    match spec(CHAIN, &[&["routing.protocol=dsr"], settings].concat()).routing {
        RoutingSpec::Dsr(config) => config,
        other => panic!("{other:?}"),
    }
}

#[test]
fn dsr_has_the_defaults_of_its_rfc_and_overrides() {
    use hopline_routing::dsr::Config;
    use hopline_routing::dsr::config::{
        CachedReplies, GratuitousReplies, NeighbourQueries, NoCache, NoCacheJitter, NoCacheRelays,
        NoCacheSalvage, NoCacheSearches, QueuedPackets, RouteCache, SourceRoutes, Tap, TargetReplies,
    };
    assert_eq!(dsr(&[]), Config::rfc4728());
    assert_eq!(dsr(&["routing.dsr.preset=ns2-2.35"]), Config::ns2());
    assert_eq!(dsr(&["routing.dsr.cache=off"]), Config::rfc4728().without_cache());
    let RouteCache::Paths(paths) = dsr(&[
        "routing.dsr.cache_paths=7",
        "routing.dsr.cache_timeout_s=8",
        "routing.dsr.tap=off",
        "routing.dsr.cached_reply_delay_s=0.5",
        "routing.dsr.gratuitous_holdoff_s=2",
    ])
    .cache
    else {
        panic!("there is a cache")
    };
    assert_eq!((paths.capacity.get(), paths.timeout, paths.tap), (7, Duration::from_secs(8), Tap::Off));
    assert_eq!(paths.cached_replies, CachedReplies::After { per_hop: Duration::from_millis(500) });
    assert_eq!(paths.gratuitous_replies, GratuitousReplies::On { holdoff: Duration::from_secs(2) });
    let config = dsr(&[
        "routing.dsr.cache=off",
        "routing.dsr.uncached_salvage=everywhere",
        "routing.dsr.uncached_relays=search",
        "routing.dsr.uncached_searches=per-packet",
        "routing.dsr.uncached_jitter=by-moment",
        "routing.dsr.nonpropagating_requests=each-time",
        "routing.dsr.source_routes=announced",
        "routing.dsr.release_spacing_s=0.01",
        "routing.dsr.gratuitous_jitter_s=0.03",
        "routing.dsr.nonpropagating_first=off",
        "routing.dsr.request_period_s=1",
        "routing.dsr.request_backoff=3",
        "routing.dsr.originated_jitter_s=0.04",
        "routing.dsr.reply_jitter_s=0.02",
        "routing.dsr.max_path=9",
        "routing.dsr.max_salvage=2",
        "routing.dsr.buffer_packets=5",
        "routing.dsr.target_replies=first",
        "routing.dsr.queued_packets=kept",
    ]);
    let uncached = NoCache {
        relays: NoCacheRelays::Search,
        searches: NoCacheSearches::PerPacket,
        salvage: NoCacheSalvage::Everywhere,
        jitter: NoCacheJitter::ByTimeSlot,
    };
    assert_eq!(config.cache, RouteCache::Off(uncached));
    assert_eq!((config.neighbour_query_timeout, config.request_period), (None, Duration::from_secs(1)));
    assert_eq!((config.request_backoff.get(), config.max_path.get(), config.max_salvage), (3, 9, 2));
    assert_eq!((config.buffer_packets.get(), config.reply_jitter), (5, Duration::from_millis(20)));
    assert_eq!((config.target_replies, config.queued_packets), (TargetReplies::First, QueuedPackets::Kept));
    assert_eq!(
        (config.neighbour_queries, config.source_routes),
        (NeighbourQueries::EachTime, Config::ns2().source_routes)
    );
    assert_eq!(config.release_spacing, Duration::from_millis(10));
    assert_eq!(config.gratuitous_jitter, Duration::from_millis(30));
    assert_eq!(config.originated_jitter, Duration::from_millis(40));
    let ns2 = dsr(&["routing.dsr.preset=ns2-2.35", "routing.dsr.source_routes=in-each"]);
    assert_eq!(ns2.source_routes, SourceRoutes::InEach);
    let patience = Some(Duration::from_millis(50));
    assert_eq!(dsr(&["routing.dsr.nonpropagating_timeout_s=0.05"]).neighbour_query_timeout, patience);
}

fn olsr(settings: &[&str]) -> hopline_routing::olsr::Config {
    match spec(CHAIN, &[&["routing.protocol=olsr"], settings].concat()).routing {
        RoutingSpec::Olsr(config) => config,
        other => panic!("{other:?}"),
    }
}

#[test]
fn olsr_has_the_defaults_of_its_rfc_and_overrides() {
    use hopline_routing::olsr::Config;
    use hopline_routing::olsr::config::{EarlyTc, Hysteresis, LinkSensing, Willingness};
    assert_eq!(olsr(&[]), Config::rfc3626());
    let config = olsr(&[
        "routing.olsr.hello_interval_s=1",
        "routing.olsr.tc_interval_s=2",
        "routing.olsr.neighbour_hold_intervals=4",
        "routing.olsr.topology_hold_intervals=5",
        "routing.olsr.duplicate_hold_time_s=20",
        "routing.olsr.max_jitter_s=0.1",
        "routing.olsr.willingness=6",
        "routing.olsr.link_sensing=hello-and-link-layer",
        "routing.olsr.hysteresis=on",
        "routing.olsr.hysteresis_threshold_low=0.4",
    ]);
    assert_eq!(config.neighbour_hold_time(), Duration::from_secs(4));
    assert_eq!(config.topology_hold_time(), Duration::from_secs(10));
    assert_eq!(config.duplicate_hold_time, Duration::from_secs(20));
    assert_eq!(config.max_jitter(), Duration::from_millis(100));
    assert_eq!(config.willingness, Willingness::HIGH);
    assert_eq!(config.link_sensing, LinkSensing::HelloAndLinkLayer);
    assert_eq!(config.hysteresis, Some(Hysteresis { threshold_low: 0.4, ..Hysteresis::RFC3626 }));
    assert_eq!(config.early_tc, EarlyTc::OnLinkFailure { spacing: Duration::from_millis(500) });
    assert_eq!(olsr(&["routing.olsr.hello_interval_s=1"]).max_jitter(), Duration::from_millis(250));
    assert_eq!(olsr(&["routing.olsr.early_tc=never"]).early_tc, EarlyTc::Never);
    let spacing = Duration::from_secs(3);
    assert_eq!(olsr(&["routing.olsr.early_tc_spacing_s=3"]).early_tc, EarlyTc::OnLinkFailure { spacing });
    assert_eq!(olsr(&["routing.olsr.hysteresis=off"]).hysteresis, None);
}

#[test]
fn every_key_is_documented_and_unique_in_its_table() {
    fn walk(table: &'static [schema::Key]) {
        for (i, key) in table.iter().enumerate() {
            assert!(!key.doc.is_empty(), "{}", key.name);
            assert!(table[..i].iter().all(|other| other.name != key.name), "{} twice", key.name);
            if let schema::Takes::Table(below)
            | schema::Takes::Tables(below)
            | schema::Takes::NumberOrTable(_, _, below)
            | schema::Takes::TextOrTable(below) = key.takes
            {
                walk(below);
            }
        }
    }
    walk(keys::SCENARIO);
}

#[test]
fn effective_parameters_include_defaults_and_settings() {
    let parameters = parse(CHAIN, &["tcp.window=8"]).unwrap().parameters();
    assert_eq!(parameters["tcp"]["window"], 8);
    assert_eq!(parameters["seed"], 1);
    assert_eq!(parameters["radio"]["preset"], "ns2-wavelan");
    assert_eq!(parameters["flow"][0]["dst"], "n2");
}
