//! Whatever the network: no panic, the same twice, and nothing that physics forbids.

use crate::support::{SpecBuilder, link, moving, ns2_tcp, walk};
use hopline_core::{Duration, Instant, NodeId};
use hopline_radio::mac::config::AckPolicy;
use hopline_radio::mobility::Trajectory;
use hopline_radio::phy::errors::{ErrorModel, GilbertElliott, GilbertPackets, Probability};
use hopline_radio::phy::propagation::{LogDistance, Propagation, RangeDisk, Shadowing, ShadowingDraw};
use hopline_radio::phy::reception::ReceptionModel;
use hopline_radio::{Rate, mac};
use hopline_routing::aodv;
use hopline_sim::spec::{Attachment, ExchangeSpec, LossSpec, RandomVariable, RoutingSpec, Traffic};
use hopline_sim::{NoTrace, Outcome, Spec, World, simulate};
use hopline_transport::tcp;
use proptest::prelude::*;

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("a probability")
}

/// Somewhere in 600 m × 600 m, standing or walking, slowly or very fast.
fn trajectory() -> impl Strategy<Value = Trajectory> {
    let point = (0.0..600.0, 0.0..600.0);
    prop_oneof![
        3 => point.clone().prop_map(|(x, y)| walk(&[(0.0, x, y)])),
        1 => (point.clone(), point.clone(), point, 0.1..4.0).prop_map(|(a, b, c, turn)| {
            walk(&[(0.0, a.0, a.1), (turn, b.0, b.1), (5.0, 4.0 * c.0, c.1)])
        }),
    ]
}

fn errors() -> impl Strategy<Value = ErrorModel> {
    prop_oneof![
        3 => Just(ErrorModel::None),
        1 => (0.0..0.5).prop_map(|p| ErrorModel::PacketLoss(probability(p))),
        1 => (0.0..1e-4).prop_map(|p| ErrorModel::BitErrors(probability(p))),
        1 => (0.0..0.1, 0.1..1.0).prop_map(|(into, out)| {
            ErrorModel::GilbertPackets(GilbertPackets {
                good_to_bad: probability(into),
                bad_to_good: probability(out),
                loss_good: Probability::ZERO,
                loss_bad: Probability::ONE,
            })
        }),
        1 => (0u64..500, 0u64..100).prop_map(|(good, bad)| {
            ErrorModel::GilbertElliott(GilbertElliott {
                mean_good: Duration::from_millis(good),
                mean_bad: Duration::from_millis(bad),
                ber_good: Probability::ZERO,
                ber_bad: probability(1e-4),
            })
        }),
    ]
}

fn propagation() -> impl Strategy<Value = Propagation> {
    let draw = prop_oneof![Just(ShadowingDraw::PerLink), Just(ShadowingDraw::PerFrame)];
    prop_oneof![
        3 => Just(Propagation::TwoRayGround),
        1 => Just(Propagation::FreeSpace),
        1 => Just(Propagation::LogDistance(LogDistance { exponent: 3.0, reference_m: 1.0 })),
        1 => (0.0..8.0, draw).prop_map(|(deviation_db, draw)| {
            let median = LogDistance { exponent: 2.3, reference_m: 1.0 };
            Propagation::Shadowing(Shadowing { median, deviation_db, draw })
        }),
        1 => Just(Propagation::RangeDisk(RangeDisk::default())),
    ]
}

fn reception() -> impl Strategy<Value = ReceptionModel> {
    prop_oneof![
        Just(ReceptionModel::LockOnSensed),
        Just(ReceptionModel::LockOnDecodable),
        Just(ReceptionModel::CumulativeSinr),
    ]
}

fn medium_access() -> impl Strategy<Value = mac::Config> {
    let b = prop_oneof![Just(Rate::Dsss1), Just(Rate::Dsss2), Just(Rate::Cck5_5), Just(Rate::Cck11)];
    let a = prop_oneof![Just(Rate::Ofdm6), Just(Rate::Ofdm24), Just(Rate::Ofdm54)];
    let config = prop_oneof![
        2 => Just(mac::Config::ns2_wavelan()),
        2 => b.prop_map(|data_rate| mac::Config { data_rate, ..mac::Config::dot11b() }),
        1 => a.prop_map(|data_rate| mac::Config { data_rate, ..mac::Config::dot11a() }),
    ];
    let threshold = prop_oneof![Just(0), Just(500), Just(2347)];
    let tap = prop_oneof![Just(mac::config::Tap::Off), Just(mac::config::Tap::Promiscuous)];
    let nav_reset =
        prop_oneof![Just(mac::config::NavReset::Never), Just(mac::config::NavReset::AfterSilentRts)];
    (config, threshold, tap, nav_reset, acknowledgment()).prop_map(
        |(config, rts_threshold_bytes, tap, nav_reset, waits)| {
            let Acknowledgment { policy: ack_policy, least, burst_limit, msdu_lifetime, block_ack_timeout } =
                waits;
            let no_ack_bytes = least..=u32::MAX;
            let config = mac::Config {
                ack_policy,
                no_ack_bytes,
                burst_limit,
                msdu_lifetime,
                block_ack_timeout,
                ..config
            };
            mac::Config { rts_threshold_bytes, tap, nav_reset, ..config }
        },
    )
}

/// Acknowledgment policy of frames, and the time that a sender waits for an acknowledgment.
#[derive(Clone, Debug)]
struct Acknowledgment {
    policy: AckPolicy,
    least: u32,
    burst_limit: Option<Duration>,
    msdu_lifetime: Option<Duration>,
    block_ack_timeout: Option<Duration>,
}

fn acknowledgment() -> impl Strategy<Value = Acknowledgment> {
    let policy = prop_oneof![
        3 => Just(AckPolicy::Normal),
        1 => Just(AckPolicy::NoAck),
        2 => (1u8..=64).prop_map(|block_size| AckPolicy::BlockAck { block_size, txop_limit: None }),
    ];
    let time = || prop::option::weighted(0.3, (100u64..50_000).prop_map(Duration::from_micros));
    (policy, 0u32..1500, time(), time(), time()).prop_map(
        |(policy, least, burst_limit, msdu_lifetime, block_ack_timeout)| Acknowledgment {
            policy,
            least,
            burst_limit,
            msdu_lifetime,
            block_ack_timeout,
        },
    )
}

fn transport() -> impl Strategy<Value = tcp::Config> {
    prop_oneof![
        (1u32..40).prop_map(ns2_tcp),
        Just(tcp::Config::modern()),
        Just(tcp::Config::modern().with_newreno()),
        Just(tcp::Config::ns2_2001().with_reno()),
    ]
}

fn routing() -> impl Strategy<Value = Option<aodv::Config>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(aodv::Config::rfc3561())),
        1 => Just(Some(aodv::Config::rfc3561_hello())),
        1 => Just(Some(aodv::Config::ns2_235())),
    ]
}

#[derive(Clone, Debug)]
enum Load {
    Bulk(tcp::Config),
    Transfer(tcp::Config, u64),
    Cbr(u32, u64),
    OnOff(u32, u64, f64, f64),
    Exchange(tcp::Config, ExchangeSpec),
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        3 => transport().prop_map(Load::Bulk),
        1 => (transport(), 1u64..200_000).prop_map(|(tcp, bytes)| Load::Transfer(tcp, bytes)),
        2 => (1u32..3000, 2u64..400).prop_map(|(bytes, ms)| Load::Cbr(bytes, ms)),
        1 => (1u32..3000, 2u64..400, 0.0..0.5, 0.0..0.5).prop_map(|(b, ms, on, off)| Load::OnOff(b, ms, on, off)),
        2 => (transport(), 1.0..5000.0, 1.0..100_000.0, 0.0..0.5).prop_map(|(tcp, ask, answer, think)| {
            Load::Exchange(tcp, ExchangeSpec {
                request_bytes: RandomVariable::Exponential { mean: ask },
                response_bytes: RandomVariable::BoundedPareto { min: 1.0, max: answer, shape: 1.1 },
                think_s: RandomVariable::Uniform { min: 0.0, max: think },
                transactions: core::num::NonZeroU64::new(ask as u64 % 8),
            })
        }),
    ]
}

/// Sender, distance to the receiver in ids, load, start and time until the stop in seconds.
type FlowDraw = (prop::sample::Index, prop::sample::Index, Load, f64, Option<f64>);

fn flow() -> impl Strategy<Value = FlowDraw> {
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), load(), 0.0..2.0, prop::option::of(0.1..2.0))
}

fn with_flow(spec: Spec, (src, skip, load, start, length): FlowDraw) -> Spec {
    let nodes = spec.nodes.len();
    let src = src.index(nodes);
    let dst = (src + 1 + skip.index(nodes - 1)) % nodes;
    let (src, dst) = (src as u32, dst as u32);
    let spec = match load {
        Load::Bulk(tcp) => spec.bulk(src, dst, tcp),
        Load::Transfer(tcp, bytes) => spec.transfer(src, dst, tcp, bytes),
        Load::Cbr(bytes, ms) => spec.cbr(src, dst, bytes, Duration::from_millis(ms)),
        Load::OnOff(bytes, ms, on, off) => spec.on_off(src, dst, bytes, Duration::from_millis(ms), on, off),
        Load::Exchange(tcp, exchange) => spec.exchange(src, dst, tcp, exchange),
    };
    let spec = spec.from(start);
    match length {
        Some(length) => spec.until(start + length),
        None => spec,
    }
}

/// Wires from the first node to one or two hosts behind it, if there are any.
fn with_hosts(spec: Spec, hosts: usize, errors: [ErrorModel; 2]) -> Spec {
    (0..hosts).fold(spec, |spec, _| {
        let host = spec.nodes.len() as u32;
        let wire = link(0, host, 5_000_000, Duration::from_millis(3), 10);
        spec.wired_node().link(hopline_sim::spec::LinkSpec { errors, ..wire })
    })
}

prop_compose! {
    fn network()(
        trajectories in prop::collection::vec(trajectory(), 2..=12),
        (propagation, reception, medium_access) in (propagation(), reception(), medium_access()),
        (radio_errors, pair_errors, wire_errors) in (errors(), errors(), prop::array::uniform2(errors())),
        routing in routing(),
        hosts in 0usize..=2,
        link_layer_us in prop_oneof![Just(0u64), Just(25)],
        flows in prop::collection::vec(flow(), 1..=4),
        seed in any::<u64>(),
        secs in 2u64..=3,
    ) -> Spec {
        let spec = moving(trajectories).seconds(secs).change(|spec| spec.seed = seed).radio(|radio| {
            radio.phy.propagation = propagation;
            radio.phy.reception = reception;
            radio.mac = medium_access;
            radio.errors = radio_errors;
            radio.losses = vec![LossSpec { from: NodeId(0), to: NodeId(1), errors: pair_errors }];
            radio.link_layer_delay = Duration::from_micros(link_layer_us);
        });
        // AODV is for wireless networks only.
        let spec = match routing {
            Some(config) => spec.aodv(config),
            None => with_hosts(spec, hosts, wire_errors),
        };
        flows.into_iter().fold(spec, with_flow)
    }
}

/// Most that one hop can carry, in bits per second.
fn capacity_bps(spec: &Spec) -> f64 {
    let air = spec.radio.as_ref().map_or(0, |radio| radio.mac.data_rate.bps());
    let wire = spec.links.iter().map(|link| link.rate_bps).max().unwrap_or(0);
    air.max(wire) as f64
}

fn check(spec: &Spec, outcome: &Outcome) -> Result<(), TestCaseError> {
    for (flow, declared) in outcome.flows.iter().zip(&spec.flows) {
        let segment = match &declared.traffic {
            Traffic::Bulk { over, .. } | Traffic::Exchange { over, .. } => u64::from(over.mss()),
            Traffic::Cbr { packet_bytes, .. } | Traffic::OnOff { packet_bytes, .. } => {
                u64::from(*packet_bytes)
            }
            Traffic::Recorded { over: Some(over), .. } => u64::from(over.mss()),
            Traffic::Recorded { over: None, packets } => {
                packets.iter().map(|packet| packet.bytes).max().unwrap_or(0)
            }
        };
        prop_assert!(flow.goodput_bps() <= capacity_bps(spec), "{flow:?}");
        prop_assert!(flow.bytes_received <= flow.segments_sent * segment);
        prop_assert!(flow.segments_received <= flow.segments_sent);
        prop_assert!(flow.retransmissions <= flow.segments_sent);
        prop_assert!(flow.duplicates <= flow.retransmissions);
        prop_assert!(flow.responses.count() <= flow.requests);
        for packets in [&flow.data, &flow.reverse] {
            prop_assert!(packets.received + packets.lost <= packets.sent, "{packets:?}");
            prop_assert!(packets.received_bytes + packets.lost_bytes <= packets.sent_bytes, "{packets:?}");
            prop_assert_eq!(packets.delays.count(), packets.received);
        }
        prop_assert!(flow.active_time <= spec.duration);
        prop_assert_eq!(flow.series.len() as u64, spec.duration / Duration::from_secs(1));
        prop_assert!(flow.series.iter().all(|sample| sample.bytes_received <= flow.bytes_received));
    }
    for (node, declared) in outcome.nodes.iter().zip(&spec.nodes) {
        let a = node.airtime;
        let total = a.transmitting + a.receiving + a.sensing + a.nav + a.idle;
        let expected =
            if declared.attachment() == Attachment::Wireless { spec.duration } else { Duration::ZERO };
        prop_assert_eq!(total, expected);
        for frames in [node.data_frames, node.ack_frames] {
            prop_assert!(frames.collided <= frames.sent, "{frames:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_network_is_deterministic(spec in network(), run in any::<u64>()) {
        let outcome = simulate(&spec, run);
        check(&spec, &outcome)?;
        prop_assert_eq!(simulate(&spec, run), outcome);
    }
    #[test]
    fn no_packet_remains_after_datagrams_stop(spec in network(), run in any::<u64>()) {
        prop_assume!(!matches!(&spec.routing, RoutingSpec::Aodv(config) if config.link_sensing.hello().is_some()));
        let spec = spec.change(|spec| {
            // What waits at a receiver for a block that its sender has given up.
            if let Some(radio) = &mut spec.radio {
                radio.mac.block_ack_timeout.get_or_insert(Duration::from_millis(100));
            }
            for flow in &mut spec.flows {
                let interval = Duration::from_millis(7);
                flow.traffic = Traffic::Cbr { packet_bytes: 700, interval };
                flow.stop = flow.start + Duration::from_secs(1);
            }
        });
        let mut world = World::new(&spec, run, NoTrace);
        world.run_until(Instant::from_secs(120));
        prop_assert_eq!(world.packets(), 0);
        let (outcome, _) = world.finish();
        prop_assert!(outcome.flows.iter().all(|flow| flow.segments_sent == 143));
    }
}
