//! Role of a node for mobile hosts: home agent, base station or mobile host.

use crate::alarm::Alarm;
use crate::outcome::HandoffLog;
use crate::packet::Handle;
use crate::spec::{CellsSpec, Listens, MobileSpec};
use hopline_core::{Instant, NodeId, Purpose, Stream};
use hopline_proxy::handoff::{HomeAgent, Identity, Mobile, MobileConfig, Station, StationConfig};
use hopline_wire::handoff::{Asks, Says, Tagged};

/// State machines of a node.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) home: Option<HomeAgent>,
    pub(crate) station: Option<Station<Handle>>,
    pub(crate) mobile: Option<Host>,
    pub(crate) alarm: Alarm,
}

/// A mobile host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) machine: Mobile,
    pub(crate) log: HandoffLog,
    listens: Listens,
}

/// Returns the role of `node` for mobile hosts, if it has one.
pub(crate) fn role(spec: &CellsSpec, node: NodeId, (seed, run): (u64, u64)) -> Option<Box<Role>> {
    let identity = Identity { key: spec.key, ..Identity::new(node.ipv4()) };
    let home = (spec.home_agent == node).then(|| {
        let mobiles = spec.mobiles.iter().map(|mobile| mobile.node.ipv4());
        HomeAgent::new(identity, spec.scheme, mobiles)
    });
    let station = spec.stations.contains(&node).then(|| {
        let config = StationConfig {
            beacon_interval: spec.beacon_interval,
            buffer_packets: spec.buffer_packets,
            cold: spec.cold,
            ..StationConfig::new(identity, spec.home_agent.ipv4())
        };
        let mut random = Stream::keyed(seed, run, node.0.into(), Purpose::Handoff);
        Station::new(config, Instant::ZERO, &mut random)
    });
    let mobile = spec.mobiles.iter().find(|mobile| mobile.node == node).map(|mobile| {
        let MobileSpec { decide, buffering, lifetime, listens, .. } = *mobile;
        let config = MobileConfig { decide, buffering, lifetime, ..MobileConfig::new(identity, spec.scheme) };
        Host { machine: Mobile::new(config), log: HandoffLog::default(), listens }
    });
    let is_any = home.is_some() || station.is_some() || mobile.is_some();
    is_any.then(|| Box::new(Role { home, station, mobile, alarm: Alarm::OFF }))
}

impl Role {
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(station) = &mut self.station {
            station.handle_timeout(now);
        }
        if let Some(host) = &mut self.mobile {
            host.machine.handle_timeout(now);
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let station = self.station.as_ref().map(Station::poll_timeout);
        let mobile = self.mobile.as_ref().and_then(|host| host.machine.poll_timeout());
        station.into_iter().chain(mobile).min()
    }
}

impl Host {
    /// Returns whether everything from this neighbour but beacons is ignored.
    pub(super) fn ignores(&self, neighbour: NodeId) -> bool {
        let is_current = self.machine.station() == Some(neighbour.ipv4());
        self.listens == Listens::Current && !is_current
    }
}

/// Returns whether a message is one that a station has passed on to the home agent.
pub(super) const fn is_registration(tagged: &Tagged) -> bool {
    matches!(tagged.message.says, Says::Request { asks: Asks::Register { .. }, .. })
}
