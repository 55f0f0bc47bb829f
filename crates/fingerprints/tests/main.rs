//! Fingerprints: equal runs are equal, in every build; what may not matter does not.
//!
//! The Makefile runs this target in debug and in release.

mod components;
mod middleboxes;
#[path = "../../sim/tests/support/mod.rs"]
mod support;

use hopline_core::{Duration, Instant};
use hopline_radio::mobility::{Area, RandomWaypoint, SetdestWaypoint};
use hopline_radio::phy::errors::{ErrorModel, GilbertElliott, Probability};
use hopline_radio::phy::propagation::{LogDistance, Propagation, Shadowing, ShadowingDraw};
use hopline_radio::phy::reception::ReceptionModel;
use hopline_radio::{mac, phy};
use hopline_routing::{aodv, dsr, olsr};
use hopline_sim::spec::{ExchangeSpec, RandomVariable};
use hopline_sim::trace::PcapTracer;
use hopline_sim::{NoTrace, Outcome, Spec, World, simulate};
use hopline_transport::pacing::Pacing;
use hopline_transport::{pacing, tcp, tpa};
use support::recorder::record;
use support::{SpecBuilder, chain, disk, grid, link, moving, ns2_tcp, wired};

/// Fingerprints of the scenarios of [`scenarios`] at the last update. A change of behaviour changes them;
/// then copy the values that the test prints, and give the reason in the commit.
const PINNED: [(&str, u64); 17] = [
    ("chain, static routes", 0x463c_81c6_7b59_d507),
    ("chain, AODV", 0xeab6_f56d_70cb_67b7),
    ("grid", 0xb3b9_c2f2_254b_911e),
    ("mobile, AODV, CBR", 0x2ca0_9752_6c9a_0347),
    ("wired with bit errors", 0x4c58_5910_1e77_14f6),
    ("base station", 0x5812_e071_47f9_0554),
    ("SINR, shadowing", 0x4fa2_99fe_15fe_4931),
    ("802.11a", 0x165a_7e64_b4b6_eb1e),
    ("range disk, HELLO", 0x9968_f1bb_30bf_8543),
    ("error bursts, shadowed links", 0x57c7_dffd_bb1f_bb3a),
    ("bursts", 0xbe60_77a7_f913_da68),
    ("web beside a transfer, base station", 0xb7fb_a381_f800_d22e),
    ("chain, AODV, paced", 0xd415_deba_2947_d517),
    ("mobile, OLSR", 0x5913_16a0_cb37_29fe),
    ("chain, HELLO, TPA both ways", 0xcb52_1e91_1e8f_6eb5),
    ("mobile, DSR", 0x0dce_84f8_2a7c_c8c3),
    ("mobile, DSR without cache", 0x7f34_67f5_4b0c_0bfa),
];

fn ber(p: f64) -> ErrorModel {
    ErrorModel::BitErrors(Probability::new(p).expect("a probability"))
}

fn shadowing(deviation_db: f64, draw: ShadowingDraw) -> Propagation {
    let median = LogDistance { exponent: 2.3, reference_m: 1.0 };
    Propagation::Shadowing(Shadowing { median, deviation_db, draw })
}

/// One scenario for each corner of the simulator.
fn scenarios() -> Vec<Spec> {
    vec![
        chain(4).bulk(0, 4, ns2_tcp(8)),
        chain(4).aodv(aodv::Config::ns2_235()).bulk(0, 4, ns2_tcp(32)),
        grid(4).bulk(0, 3, ns2_tcp(3)).bulk(12, 15, ns2_tcp(3)).bulk(1, 13, ns2_tcp(3)),
        mobile(),
        wired(3)
            .link(link(0, 1, 10_000_000, Duration::from_millis(5), 50))
            .link(link(1, 2, 2_000_000, Duration::from_millis(1), 20))
            .change(|spec| spec.links[1].errors = [ber(1e-6); 2])
            .bulk(0, 2, tcp::Config::modern()),
        base_station(),
        chain(3)
            .radio(|radio| {
                radio.phy.reception = ReceptionModel::CumulativeSinr;
                radio.phy.propagation = shadowing(3.0, ShadowingDraw::PerFrame);
            })
            .bulk(0, 3, ns2_tcp(8))
            .bulk(3, 0, ns2_tcp(8)),
        chain(2)
            .radio(|radio| {
                radio.mac = mac::Config::dot11a();
                radio.phy = phy::Config::wavelan();
            })
            .bulk(0, 2, tcp::Config::modern())
            .seconds(3),
        grid(3)
            .change(|spec| spec.radio = Some(disk(220.0)))
            .aodv(aodv::Config::rfc3561_hello())
            .bulk(0, 8, tcp::Config::modern().with_newreno())
            .seconds(5),
        chain(2)
            .radio(|radio| {
                radio.phy.propagation = shadowing(4.0, ShadowingDraw::PerLink);
                radio.errors = ErrorModel::GilbertElliott(GilbertElliott {
                    mean_good: Duration::from_millis(500),
                    mean_bad: Duration::from_millis(50),
                    ber_good: Probability::ZERO,
                    ber_bad: Probability::new(1e-4).expect("a probability"),
                });
            })
            .bulk(0, 2, ns2_tcp(8)),
        chain(3).on_off(0, 3, 500, Duration::from_millis(20), 0.4, 0.3).on_off(
            3,
            1,
            200,
            Duration::from_millis(10),
            0.2,
            0.5,
        ),
        web(),
        chain(4).aodv(aodv::Config::rfc3561()).bulk(
            0,
            4,
            tcp::Config::ns2_2006().with_adaptive_pacing(pacing::Config::AUTHORS),
        ),
        by_olsr(),
        chain(4).aodv(aodv::Config::rfc3561_hello()).bulk(0, 4, tpa::Config::tpa(2)).bulk(
            4,
            0,
            tpa::Config::tpa_star(3).with_pacing(Pacing::Adaptive(pacing::Config::AUTHORS)),
        ),
        mobile().dsr(dsr::Config::rfc4728()),
        mobile().dsr(dsr::Config::rfc4728().without_cache()),
    ]
}

fn web() -> Spec {
    let pages = ExchangeSpec {
        request_bytes: RandomVariable::Constant(350.0),
        response_bytes: RandomVariable::LogNormal { mean: 8000.0, deviation: 10_000.0 },
        think_s: RandomVariable::Exponential { mean: 0.5 },
        transactions: None,
    };
    let heavy = RandomVariable::BoundedPareto { min: 500.0, max: 50_000.0, shape: 1.1 };
    let calls = ExchangeSpec {
        request_bytes: RandomVariable::Uniform { min: 50.0, max: 3000.0 },
        response_bytes: heavy,
        think_s: RandomVariable::Constant(0.1),
        transactions: core::num::NonZeroU64::new(10),
    };
    base_station().exchange(3, 0, tcp::Config::modern(), pages).exchange(3, 1, ns2_tcp(8), calls)
}

fn mobile() -> Spec {
    let model = RandomWaypoint::Setdest(SetdestWaypoint {
        area: Area { width_m: 800.0, height_m: 500.0 },
        max_speed_mps: 20.0,
        pause: Duration::ZERO,
    });
    let mut stream = hopline_core::RandomStream::global(9, 0, hopline_core::Purpose::Mobility);
    let walks: Vec<_> = (0..15)
        .map(|_| model.trajectory(Duration::from_secs(10), &mut stream).expect("a valid model"))
        .collect();
    let spec = moving(walks).aodv(aodv::Config::rfc3561()).bulk(0, 14, ns2_tcp(20).with_sack());
    (1..6).fold(spec, |spec, n| spec.cbr(n, n + 6, 512, Duration::from_millis(250)))
}

/// Two nodes walk by a chain over OLSR: links come and go.
fn by_olsr() -> Spec {
    let config = olsr::Config {
        hello_interval: Duration::from_millis(500),
        tc_interval: Duration::from_secs(1),
        link_sensing: olsr::config::LinkSensing::HelloAndLinkLayer,
        ..olsr::Config::rfc3626()
    };
    chain(3)
        .wireless_node(support::walk(&[(0.0, 0.0, 150.0), (20.0, 600.0, 150.0)]))
        .wireless_node(support::walk(&[(0.0, 600.0, -150.0), (20.0, 0.0, -150.0)]))
        .olsr(config)
        .bulk(0, 3, ns2_tcp(8))
        .cbr(4, 5, 200, Duration::from_millis(100))
        .seconds(20)
}

fn base_station() -> Spec {
    chain(2)
        .wired_node()
        .link(link(2, 3, 10_000_000, Duration::from_millis(20), 50))
        .bulk(3, 0, ns2_tcp(20))
        .cbr(0, 3, 200, Duration::from_millis(40))
}

/// A network in which a good deal goes wrong, for the tests below.
fn congested_network() -> Spec {
    grid(3).aodv(aodv::Config::rfc3561()).bulk(0, 8, ns2_tcp(32)).bulk(2, 6, ns2_tcp(32)).seconds(5)
}

/// Asserts that no share exceeds the whole.
fn assert_shares(name: &str, outcome: &Outcome) {
    for flow in &outcome.flows {
        assert!(flow.duplicates <= flow.retransmissions, "{name}: {flow:?}");
        assert!(flow.spurious_timeouts <= flow.timeouts, "{name}: {flow:?}");
        for packets in [&flow.data, &flow.reverse] {
            let handed = packets.initially_in_flight + packets.sent + packets.middlebox_made;
            let known = packets.received + packets.absorbed + packets.lost;
            assert!(known <= handed, "{name}: {packets:?}");
        }
    }
}

/// Compares with what was pinned. Nothing is pinned that delivers nothing.
fn compare(pinned: &[(&str, u64)], scenarios: Vec<Spec>) {
    assert_eq!(scenarios.len(), pinned.len());
    let found: Vec<(&str, u64)> = pinned
        .iter()
        .zip(scenarios)
        .map(|(&(name, _), spec)| {
            let outcome = simulate(&spec, 1);
            assert!(outcome.flows[0].bytes_received > 10_000, "{name}: {}", outcome.flows[0].bytes_received);
            assert_shares(name, &outcome);
            (name, outcome.fingerprint)
        })
        .collect();
    let digits = |f: u64| {
        format!("{:04x}_{:04x}_{:04x}_{:04x}", f >> 48, f >> 32 & 0xffff, f >> 16 & 0xffff, f & 0xffff)
    };
    let table: String =
        found.iter().map(|(name, f)| format!("    ({name:?}, 0x{}),\n", digits(*f))).collect();
    assert!(found == pinned, "now:\n{table}");
}

#[test]
fn fingerprints_of_scenarios_match() {
    compare(&PINNED, scenarios());
}

#[test]
fn fingerprints_of_components_match() {
    compare(&components::PINNED, components::scenarios());
}

#[test]
fn fingerprints_of_middleboxes_match() {
    compare(&middleboxes::PINNED, middleboxes::scenarios());
}

#[test]
fn repeated_runs_are_equal() {
    for spec in [congested_network(), mobile(), base_station(), web(), by_olsr()] {
        assert_eq!(simulate(&spec, 3), simulate(&spec, 3));
    }
}

#[test]
fn another_seed_and_another_run_differ() {
    let base = simulate(&congested_network(), 1).fingerprint;
    assert_ne!(simulate(&congested_network(), 2).fingerprint, base);
    assert_ne!(simulate(&congested_network().change(|spec| spec.seed = 2), 1).fingerprint, base);
    // Seed and run are no sum.
    let swapped = simulate(&congested_network().change(|spec| spec.seed = 2), 0).fingerprint;
    assert_ne!(swapped, simulate(&congested_network().change(|spec| spec.seed = 0), 2).fingerprint);
}

#[test]
fn tracing_does_not_change_the_run() {
    for spec in [congested_network(), mobile(), base_station(), by_olsr()] {
        let pcap = PcapTracer::new(Vec::new(), &spec).expect("memory takes everything");
        let mut world = World::new(&spec, 1, pcap);
        world.run_until(Instant::ZERO + spec.duration);
        let (traced, pcap) = world.finish();
        assert!(pcap.finish().expect("memory takes everything").len() > 100_000);
        let (noted, notes) = record(&spec, 1);
        assert!(notes.0.len() > 1000);
        let plain = simulate(&spec, 1);
        assert_eq!(traced, plain);
        assert_eq!(noted, plain);
    }
}

/// Runs in steps of `step`.
fn stepped(spec: &Spec, step: Duration) -> Outcome {
    let end = Instant::ZERO + spec.duration;
    let mut world = World::new(spec, 1, NoTrace);
    while world.now() < end {
        let next = (world.now() + step).min(end);
        world.run_until(next);
        assert_eq!(world.now(), next);
    }
    world.finish().0
}

#[test]
fn a_run_in_small_steps_is_the_run_in_one() {
    for spec in [congested_network(), mobile().seconds(3), base_station().seconds(3)] {
        let whole = simulate(&spec, 1);
        // 217 ns is less than light takes over 200 m: every frame is cut on its way to its receivers.
        for step in [Duration::from_millis(17), Duration::from_micros(13)] {
            assert_eq!(stepped(&spec, step), whole);
        }
    }
    let short = congested_network().change(|spec| spec.duration = Duration::from_millis(400));
    assert_eq!(stepped(&short, Duration::from_nanos(217)), simulate(&short, 1));
}

#[test]
fn an_idle_node_out_of_range_changes_nothing() {
    for spec in [chain(4).bulk(0, 4, ns2_tcp(8)), congested_network(), mobile()] {
        let with = spec.clone().wireless_node(support::walk(&[(0.0, 50_000.0, 50_000.0)]));
        let (with, without) = (simulate(&with, 1), simulate(&spec, 1));
        assert_eq!(with.flows, without.flows);
        assert_eq!(with.nodes[..spec.nodes.len()], without.nodes);
        assert_eq!(with.fingerprint, without.fingerprint);
    }
}

#[test]
fn an_idle_node_in_range_changes_receptions_but_not_deliveries() {
    // It draws from its own streams only, and with static routes it has nothing to say. That frames reach a third node
    // in the same nanosecond, as they often do on an even chain, does not matter either.
    let spec = chain(4).bulk(0, 4, ns2_tcp(8));
    let with = spec.clone().wireless_node(support::walk(&[(0.0, 300.0, 100.0)]));
    let (with, without) = (simulate(&with, 1), simulate(&spec, 1));
    assert_eq!(with.flows, without.flows);
    assert_ne!(with.fingerprint, without.fingerprint, "its receptions are part of the trajectory");
}

#[test]
fn a_flow_elsewhere_changes_nothing_here() {
    // Two chains, out of each other's earshot.
    let spec = (0..3).fold(chain(2).bulk(0, 2, ns2_tcp(8)), |spec, n| {
        spec.wireless_node(support::walk(&[(0.0, 200.0 * f64::from(n), 9000.0)]))
    });
    let alone = simulate(&spec, 1);
    let both = simulate(&spec.bulk(3, 5, ns2_tcp(8)), 1);
    assert_eq!(both.flows[0], alone.flows[0]);
    assert!(both.flows[1].bytes_received > 0);
}
