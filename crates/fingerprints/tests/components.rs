//! One scenario for each part that may stand in the path of a packet, or that decides what a sender does.

use super::support::{SpecBuilder, at, chain, disk, grid, link, ns2_tcp, standing, wired};
use super::{mobile, support};
use hopline_core::{Duration, NodeId};
use hopline_queue::neighborhood_red::config::{Limits, NoticeLimits};
use hopline_queue::{
    CoDelConfig, DualPi2Config, FqCoDelConfig, PieConfig, RedConfig, SignalAction, neighborhood_red,
};
use hopline_radio::mac::config::AckPolicy;
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_radio::phy::propagation::{Propagation, RangeDisk};
use hopline_radio::phy::reception::ReceptionModel;
use hopline_routing::{aodv, dsr};
use hopline_sim::Spec;
use hopline_sim::spec::{AddressResolution, Discipline, NeighborhoodSpec, NodeSet, OutageEffect, OutageSpec};
use hopline_transport::tcp::{
    AtcpConfig, BbrConfig, BusConfig, Config, CongestionControl, CubicConfig, DoorConfig, EcnMode,
    ElfnConfig, FixedRtoConfig, RouteFeedback, TcpFConfig,
};
use std::collections::BTreeSet;

const RED: RedConfig = RedConfig { max_probability: 0.1, ..RedConfig::PAPER };
const CODEL: CoDelConfig = CoDelConfig { target: Duration::from_millis(15), ..CoDelConfig::RFC8289 };
const FQ: FqCoDelConfig = FqCoDelConfig { codel: CODEL, ..FqCoDelConfig::RFC8290 };
const NEIGHBORHOOD: neighborhood_red::Config = neighborhood_red::Config::PAPER;

/// Fingerprints, as in the file beside this one.
pub(super) const PINNED: [(&str, u64); 24] = [
    ("RED", 0x5050_4a77_e412_1bd1),
    ("RED, marks", 0xbeec_4cba_fb05_d808),
    ("marks over the air", 0x6a7d_3d98_4ab2_f278),
    ("CoDel", 0xda86_7dc5_69f4_729b),
    ("FQ-CoDel", 0xfa7c_dfd6_7a25_da12),
    ("PIE", 0x239b_933b_2228_4799),
    ("DualPI2", 0xb463_11f7_d957_9814),
    ("Neighborhood RED", 0x06b3_b343_2a5b_81ee),
    ("Neighborhood RED, marks", 0x14ae_1f39_75a8_d305),
    ("Neighborhood RED, guarded", 0xf4a7_5133_ad37_8081),
    ("TCP-DOOR", 0x1072_999a_4dd2_750d),
    ("TCP-F", 0x2f7d_ff42_1154_1480),
    ("ELFN", 0x2d1c_53ea_c7e7_8fdb),
    ("ATCP", 0x1ed1_8fc8_96e9_9c5a),
    ("TCP-BuS", 0x90b3_2853_9d78_29ed),
    ("Fixed RTO", 0x173c_8388_448c_23b0),
    ("CUBIC, RACK, PRR", 0xe98d_4ebd_b413_822d),
    ("BBR v1", 0x37a5_9e5a_bea4_fbd3),
    ("BBR v3", 0x3354_89d9_5da9_e7ed),
    ("BlockAck", 0x2edb_0e19_bd1b_0916),
    ("NoAck", 0xe6ec_cf5f_4f46_3e0c),
    ("outages", 0x5a07_aae7_ab1e_43f7),
    ("AODV, powers that add up", 0x9ef4_87a8_8f9a_b3ad),
    ("ns-2's DSR and ARP", 0x863a_5fde_9862_2bdb),
];

pub(super) fn scenarios() -> Vec<Spec> {
    let marking = Discipline::Red(RedConfig { action: SignalAction::Mark, ..RED });
    let ecn = Config::linux().with_ecn(EcnMode::Request);
    vec![
        bottleneck(Discipline::Red(RED), Config::linux()),
        bottleneck(marking, ecn),
        chain(3).radio(|radio| radio.queue.discipline = eager()).bulk(0, 3, ecn),
        bottleneck(Discipline::CoDel(CODEL), Config::linux()),
        bottleneck(Discipline::FqCoDel(FQ), Config::linux()),
        bottleneck(Discipline::Pie(PieConfig::LINUX), Config::linux()),
        bottleneck(Discipline::DualPi2(DualPi2Config::RFC9332), ecn),
        neighborhood(NEIGHBORHOOD, narrow(Config::ns2_235())),
        neighborhood(
            neighborhood_red::Config { action: SignalAction::Mark, ..NEIGHBORHOOD },
            narrow(Config::linux().with_ecn(EcnMode::Request)),
        ),
        neighborhood(
            neighborhood_red::Config { notice_limits: NoticeLimits::On(Limits::DEFAULT), ..NEIGHBORHOOD },
            narrow(Config::ns2_235()),
        ),
        door(),
        told(RouteFeedback::TcpF(TcpFConfig::PAPER)),
        told(RouteFeedback::Elfn(ElfnConfig::PAPER)),
        told(RouteFeedback::Atcp(AtcpConfig::PAPER)),
        told(RouteFeedback::Bus(BusConfig::PAPER)),
        told(RouteFeedback::FixedRto(FixedRtoConfig::PAPER)),
        lossy_path(Config::linux().with_congestion_control(CongestionControl::Cubic(CubicConfig::LINUX))),
        lossy_path(Config::linux().with_bbr(BbrConfig::V1)),
        lossy_path(Config::linux().with_bbr(BbrConfig::V3)),
        acknowledged(AckPolicy::block_ack()),
        acknowledged(AckPolicy::NoAck),
        cut(grid(3).aodv(aodv::Config::rfc3561_hello()).bulk(0, 8, ns2_tcp(8)), (1, 2)),
        added_powers(),
        ns2_dsr(),
    ]
}

/// A transfer, and a packet each 20 ms.
fn bottleneck(discipline: Discipline, over: Config) -> Spec {
    support::bottleneck(100, discipline)
        .bulk(0, 2, over)
        .cbr(0, 2, 160, Duration::from_millis(20))
        .seconds(20)
}

/// RED that marks early.
fn eager() -> Discipline {
    let thresholds = RedConfig { min_threshold: 1.0, max_threshold: 20.0, weight: 0.2, ..RED };
    Discipline::Red(RedConfig { action: SignalAction::Mark, ..thresholds })
}

fn narrow(over: Config) -> Config {
    over.with_mss(512).with_window_clamp(Some(32))
}

/// Three lanes of one hop, side by side, of which neighbours hear each other.
fn neighborhood(config: neighborhood_red::Config, over: Config) -> Spec {
    let places: Vec<_> = (0..6).map(|n| (350.0 * f64::from(n % 2), 350.0 * f64::from(n / 2))).collect();
    let circles = RangeDisk { transmission_m: 367.0, interference_m: 653.0, carrier_sense_m: 653.0 };
    let mut radio = disk(367.0);
    radio.phy.propagation = Propagation::RangeDisk(circles);
    radio.neighborhood = Some(NeighborhoodSpec {
        config,
        members: NodeSet::All,
        observed: BTreeSet::new(),
        observed_weight: config.weight,
    });
    let lanes = standing(&places).change(|spec| spec.radio = Some(radio));
    lanes.bulk(0, 1, over).bulk(2, 3, over).bulk(4, 5, over).seconds(20)
}

fn door() -> Spec {
    let over = Config::ns2_2001().with_door(Some(DoorConfig::all(2.0, 4.0)));
    mobile().change(|spec| spec.flows.clear()).dsr(dsr::Config::ns2()).bulk(0, 14, over).seconds(20)
}

/// Returns a transfer over AODV with ends that are notified of a link which is cut meanwhile.
fn told(feedback: RouteFeedback) -> Spec {
    let over = ns2_tcp(8).with_sack().with_feedback(feedback);
    cut(chain(3).aodv(aodv::Config::rfc3561()).bulk(0, 3, over).seconds(30).elfn(), (1, 2))
}

/// `spec` with the link between two nodes cut from 4 s to 9 s.
fn cut(spec: Spec, (a, b): (u32, u32)) -> Spec {
    let outage = |from, to| OutageSpec {
        from: NodeId(from),
        to: NodeId(to),
        start: at(4.0),
        end: at(9.0),
        blocks: OutageEffect::Frames,
    };
    spec.change(|spec| spec.outages.extend([outage(a, b), outage(b, a)]))
}

fn lossy_path(config: Config) -> Spec {
    let mut path = link(0, 1, 20_000_000, Duration::from_millis(10), 100);
    path.errors = [ErrorModel::PacketLoss(Probability::new(0.01).expect("a probability")); 2];
    wired(2).link(path).bulk(0, 1, config)
}

fn acknowledged(ack_policy: AckPolicy) -> Spec {
    let loss = ErrorModel::PacketLoss(Probability::new(0.05).expect("a probability"));
    let mut radio = disk(250.0);
    radio.mac.ack_policy = ack_policy;
    radio.errors = loss;
    chain(2).change(|spec| spec.radio = Some(radio)).bulk(0, 2, ns2_tcp(8))
}

fn added_powers() -> Spec {
    grid(4)
        .radio(|radio| radio.phy.reception = ReceptionModel::CumulativeSinr)
        .aodv(aodv::Config::rfc3561())
        .bulk(0, 5, ns2_tcp(8))
        .bulk(3, 12, ns2_tcp(8))
}

fn ns2_dsr() -> Spec {
    mobile().dsr(dsr::Config::ns2()).radio(|radio| radio.address_resolution = AddressResolution::Arp)
}
