//! One scenario for each TCP middlebox, and for each scheme of handoff.

use super::support::SpecBuilder;
use super::support::cells::{HOST, SERVER, STATIONS, between_stations, cbr_every, cells_of};
use super::support::last_hop::{last_hop, linux};
use core::num::NonZeroU8;
use hopline_core::NodeId;
use hopline_radio::phy::errors::{ErrorModel, Probability};
use hopline_sim::Spec;
use hopline_sim::spec::dproxy::opaque;
use hopline_sim::spec::{
    MobileSide, PairKind, PairSpec, ProxyKind, ProxySpec, Scheme, Transport, arq, dproxy, fast_retransmit,
    mtcp, snoop, split,
};
use hopline_transport::{tcp, tpa};
use std::net::Ipv4Addr;

/// Fingerprints, as in `main.rs`.
pub(super) const PINNED: [(&str, u64); 11] = [
    ("Snoop as published", 0xcd16_45b6_aa52_eb0e),
    ("Snoop of ns-2", 0x4230_10eb_f5d4_3c07),
    ("Snoop for today's senders", 0x20e4_627b_0078_217e),
    ("split connections", 0x5917_1f4f_7a2d_6912),
    ("split over TPA", 0x5c55_8aa0_4213_7cfa),
    ("a supervisor host", 0x1c17_1cc2_759d_8cae),
    ("a link that repairs its losses", 0xc3a3_51f2_b352_fc16),
    ("D-Proxy at both ends", 0x2e2f_574f_99a1_97d8),
    ("a link whose ends ask for what is missing", 0xf50d_d35c_d77b_26f5),
    ("Snoop at stations, packets kept at the next", 0x5be0_bfa3_2f24_8bd2),
    ("registration, asking again", 0x0e80_0f7f_c53b_464d),
];

pub(super) fn scenarios() -> Vec<Spec> {
    let past = |kind| last_hop(Some(kind)).seconds(10).bulk(0, 2, linux());
    let split = |mobile| ProxyKind::Split(Box::new(split::Config::new(linux().into(), mobile, 50_000)));
    let tpa: Transport = tpa::Config::tpa(3).into();
    vec![
        past(ProxyKind::Snoop(snoop::Config::published())),
        past(ProxyKind::Snoop(snoop::Config::ns2())),
        past(ProxyKind::Snoop(snoop::Config::modern())),
        past(split(linux().into())),
        past(split(tpa)).change(|spec| spec.flows[0].end_transports[1] = Some(tpa)),
        past(ProxyKind::Mtcp(mtcp::Config::default())),
        past(ProxyKind::Mtcp(mtcp::Config::default())).change(|spec| {
            let parity_every = NonZeroU8::new(8);
            spec.links[1].arq = Some(arq::Config { parity_interval: parity_every, ..arq::Config::default() });
        }),
        paired(PairKind::DProxy(dproxy::Config::new(
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::UNSPECIFIED,
            dproxy::Key::new([7; 32]),
        ))),
        paired(PairKind::Opaque(opaque::Config {
            parity: opaque::Parity::Adaptive { min_group: two(), max_group: two() },
            ..opaque::Config::default()
        })),
        moving(Scheme::Multicast).change(|spec| {
            let kind = ProxyKind::Snoop(snoop::Config::modern());
            let at = |node| ProxySpec { node, mobile: MobileSide::Radios, kind: kind.clone() };
            spec.proxies = STATIONS.map(at).into();
        }),
        moving(Scheme::Registration).change(|spec| {
            cells_of(spec).mobiles[0].fast_retransmit = Some(fast_retransmit::Config::default())
        }),
    ]
}

fn two() -> NonZeroU8 {
    NonZeroU8::new(2).expect("not zero")
}

fn paired(kind: PairKind) -> Spec {
    let spec = last_hop(None).seconds(10).bulk(0, 2, linux());
    spec.change(|spec| spec.pairs = vec![PairSpec { ends: [NodeId(1), NodeId(2)], kind }])
}

fn moving(scheme: Scheme) -> Spec {
    let spec = cbr_every(between_stations(), 700).change(|spec| {
        cells_of(spec).scheme = scheme;
        let radio = spec.radio.as_mut().expect("there are radios");
        radio.errors = ErrorModel::PacketLoss(Probability::new(0.1).expect("a probability"));
    });
    spec.seconds(10).bulk(SERVER.0, HOST.0, tcp::Config::bsd())
}
