//! Role of a node for mobile hosts: home agent, base station or mobile host.

use crate::alarm::WakeUp;
use crate::outcome::HandoffLog;
use crate::packet::Handle;
use crate::spec::{AcceptedStations, CellsSpec, MobileSpec};
use hopline_core::{Instant, NodeId, Purpose, RandomStream};
use hopline_proxy::handoff::{HomeAgent, Identity, Mobile, MobileConfig, Station, StationConfig};
use hopline_wire::handoff::{MessageBody, RequestAction, TaggedMessage};

/// State machines of a node.
#[derive(Debug)]
pub(crate) struct MobilityRole {
    pub(crate) home: Option<HomeAgent>,
    pub(crate) station: Option<Station<Handle>>,
    pub(crate) mobile: Option<MobileHost>,
    pub(crate) alarm: WakeUp,
}

/// A mobile host.
#[derive(Debug)]
pub(crate) struct MobileHost {
    pub(crate) machine: Mobile,
    pub(crate) log: HandoffLog,
    accepts: AcceptedStations,
}

/// Returns the role of `node` for mobile hosts, if it has one.
pub(crate) fn role(spec: &CellsSpec, node: NodeId, (seed, run): (u64, u64)) -> Option<Box<MobilityRole>> {
    let identity = Identity { key: spec.key, ..Identity::new(node.ipv4()) };
    let home = (spec.home_agent == node).then(|| {
        let mobiles = spec.mobiles.iter().map(|mobile| mobile.node.ipv4());
        HomeAgent::new(identity, spec.scheme, mobiles)
    });
    let station = spec.stations.contains(&node).then(|| {
        let config = StationConfig {
            beacon_interval: spec.beacon_interval,
            buffer_packets: spec.buffer_packets,
            start_state: spec.cold,
            ..StationConfig::new(identity, spec.home_agent.ipv4())
        };
        let mut random = RandomStream::keyed(seed, run, node.0.into(), Purpose::Handoff);
        Station::new(config, Instant::ZERO, &mut random)
    });
    let mobile = spec.mobiles.iter().find(|mobile| mobile.node == node).map(|mobile| {
        let MobileSpec {
            handoff_decision: decide,
            buffering_stations: buffering,
            station_lifetime: lifetime,
            accepts: listens,
            ..
        } = *mobile;
        let config = MobileConfig {
            handoff_rule: decide,
            buffering_stations: buffering,
            lifetime,
            ..MobileConfig::new(identity, spec.scheme)
        };
        MobileHost { machine: Mobile::new(config), log: HandoffLog::default(), accepts: listens }
    });
    let is_any = home.is_some() || station.is_some() || mobile.is_some();
    is_any.then(|| Box::new(MobilityRole { home, station, mobile, alarm: WakeUp::OFF }))
}

impl MobilityRole {
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(station) = &mut self.station {
            station.handle_timeout(now);
        }
        if let Some(host) = &mut self.mobile {
            host.machine.handle_timeout(now);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let station = self.station.as_ref().map(Station::poll_timeout);
        let mobile = self.mobile.as_ref().and_then(|host| host.machine.poll_timeout());
        station.into_iter().chain(mobile).min()
    }
}

impl MobileHost {
    /// Returns whether everything from this neighbour but beacons is ignored.
    pub(super) fn is_ignored(&self, neighbour: NodeId) -> bool {
        let is_current = self.machine.station() == Some(neighbour.ipv4());
        self.accepts == AcceptedStations::Current && !is_current
    }
}

/// Returns whether a message is one that a station has passed on to the home agent.
pub(super) const fn is_forwarded_registration(tagged: &TaggedMessage) -> bool {
    matches!(tagged.message.body, MessageBody::Request { action: RequestAction::Register { .. }, .. })
}
