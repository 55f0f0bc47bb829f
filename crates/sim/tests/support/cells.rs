//! A server, a home agent, stations and a mobile host.

use super::{SpecBuilder, link, standing, walk};
use hopline_core::{Duration, NodeId};
use hopline_radio::mobility::{Position, Trajectory};
use hopline_sim::Spec;
use hopline_sim::spec::{
    AcceptedStations, CellsSpec, Channel, HandoffRule, MobileSpec, NodeSpec, Scheme, StartState,
};

pub(crate) const SERVER: NodeId = NodeId(0);
pub(crate) const HOME: NodeId = NodeId(1);
pub(crate) const STATIONS: [NodeId; 3] = [NodeId(2), NodeId(3), NodeId(4)];
pub(crate) const HOST: NodeId = NodeId(5);

/// A server, a home agent and three stations 300 m apart, on a wired network, and a mobile host near the first.
pub(crate) fn cells(trajectory: Trajectory) -> Spec {
    let mut spec = standing(&[(300.0, 300.0), (300.0, 150.0), (0.0, 0.0), (300.0, 0.0), (600.0, 0.0)]);
    spec.nodes[SERVER.index()].radio_channels.clear();
    spec.nodes[HOME.index()].radio_channels.clear();
    spec.nodes.push(NodeSpec::new("host", trajectory, [Channel(0)]));
    spec.links = vec![link(SERVER.0, HOME.0, 10_000_000, Duration::from_millis(5), 100)];
    for station in STATIONS {
        spec.links.push(link(HOME.0, station.0, 10_000_000, Duration::from_millis(1), 100));
    }
    spec.cells = Some(CellsSpec {
        scheme: Scheme::Multicast,
        home_agent: HOME,
        stations: STATIONS.to_vec(),
        mobiles: vec![MobileSpec {
            node: HOST,
            handoff_decision: HandoffRule::default(),
            buffering_stations: 1,
            station_lifetime: Duration::from_secs(3),
            accepts: AcceptedStations::All,
            fast_retransmit: None,
        }],
        beacon_interval: Duration::from_secs(1),
        buffer_packets: 12,
        cold: StartState::Cold,
        key: None,
    });
    spec
}

/// Along all three stations at 10 m/s.
pub(crate) fn walking() -> Spec {
    cells(walk(&[(0.0, 10.0, 10.0), (5.0, 10.0, 10.0), (63.0, 590.0, 10.0)]))
}

/// Between the first two, where both are heard.
pub(crate) fn between_stations() -> Spec {
    cells(Trajectory::fixed(Position::new(150.0, 10.0)))
}

pub(crate) fn cells_of(spec: &mut Spec) -> &mut CellsSpec {
    spec.cells.as_mut().expect("there are cells")
}

pub(crate) fn cbr_every(spec: Spec, ms: u64) -> Spec {
    spec.change(|spec| {
        cells_of(spec).mobiles[0].handoff_decision = HandoffRule::Periodic(Duration::from_millis(ms))
    })
}
