//! Task of split connections.

use super::super::keys::split::ConnectOrderKey;
use super::super::keys::{KindKey, split as keys};
use super::super::values;
use super::{ConnectionMoves, in_path};
use crate::rules::{ConnectionMatch, DivertedConnections};
use crate::subnet::Subnet;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_linux::transparent::LegOptions;
use hopline_middlebox::diversion::Diversion;
use hopline_middlebox::split::{Config, ConnectOrder, LegPolicy, MobileHosts};
use std::num::NonZeroUsize;

/// Selection of the connections to split, and parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitTask {
    /// Interface that leads to the mobile hosts.
    pub interface: String,
    /// Subnets of the served mobile hosts; empty: all.
    pub subnets: Vec<Subnet>,
    /// Destination ports of the connections; empty: all.
    pub ports: Vec<u16>,
    /// Port of the listener.
    pub port: u16,
    /// Parameters.
    pub config: Config,
    /// Moves of connections to other stations, with their mobile hosts. `None`: connections do not move.
    pub connection_moves: Option<ConnectionMoves>,
}

/// Port of the listener of the first proxy of a file.
const FIRST_PORT: u16 = 7070;

impl SplitTask {
    pub(super) fn resolve(section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        let interface = in_path::interface(KindKey::Split, section)?;
        let port = section.integer_as(keys::LISTEN_PORT.name).unwrap_or(FIRST_PORT + number);
        let default = Config::default();
        let size = |key: &str, default: NonZeroUsize| {
            section.integer(key).and_then(|size| NonZeroUsize::new(size as usize)).unwrap_or(default)
        };
        let diversion = Diversion { queue: in_path::queue(section, number), mark: 0, port };
        let onward = match section.get(keys::ONWARD) {
            ConnectOrderKey::ClientFirst => ConnectOrder::ClientFirst(Some(diversion)),
            ConnectOrderKey::ServerFirst => ConnectOrder::ServerFirst(diversion),
        };
        let config = Config {
            connect_order: onward,
            listen: values::diverted_to(port),
            legs: LegPolicy {
                mobile_hosts: MobileHosts::ThroughInterface(interface.clone()),
                mobile: leg(section, keys::MOBILE_CONGESTION.name)?,
                fixed: leg(section, keys::FIXED_CONGESTION.name)?,
            },
            connect_timeout: values::seconds(section, keys::CONNECT_TIMEOUT_S.name)
                .unwrap_or(default.connect_timeout),
            max_connections: size(keys::MAX_CONNECTIONS.name, default.max_connections),
            buffer_bytes: size(keys::BUFFER_BYTES.name, default.buffer_bytes),
            drain: values::seconds(section, keys::DRAIN_S.name).unwrap_or(default.drain),
            workers: default.workers,
            moves: None,
        };
        let (subnets, ports) = (in_path::subnets(section)?, in_path::ports(section));
        let moving = ConnectionMoves::resolve(section)?;
        Ok(Self { interface, subnets, ports, port, config, connection_moves: moving })
    }

    /// Returns whether the running service of `other` can take over this task by a change of its `legs` (the socket options of
    /// the two connections). The selection of connections may differ: only firewall rules depend on it.
    pub(crate) fn is_compatible(&self, other: &Self) -> bool {
        let legs = self.config.legs.clone();
        self.config == Config { legs, ..other.config.clone() }
            && self.connection_moves == other.connection_moves
    }

    /// Sets the mark that diverts connections to this machine.
    pub(super) const fn set_mark(&mut self, mark: u16) {
        match &mut self.config.connect_order {
            ConnectOrder::ServerFirst(diversion) | ConnectOrder::ClientFirst(Some(diversion)) => {
                diversion.mark = mark
            }
            ConnectOrder::ClientFirst(None) => {}
        }
    }

    /// Returns the diverted connections: those from mobile hosts, and those to them.
    pub(super) fn captured(&self) -> Vec<DivertedConnections> {
        let Self { interface, subnets, port, ports, .. } = self;
        let by = ConnectionMatch::ArrivingOn {
            interface: interface.clone(),
            sources: subnets.clone(),
            destinations: Vec::new(),
        };
        let towards =
            ConnectionMatch::LeavingBy { interface: interface.clone(), destinations: subnets.clone() };
        let Some(Diversion { queue, .. }) = self.config.connect_order.diversion() else { return Vec::new() };
        [by, towards]
            .map(|calls| DivertedConnections { port: *port, connections: calls, ports: ports.clone(), queue })
            .into()
    }
}

fn leg(section: &Section<'_>, congestion: &str) -> Result<LegOptions, Problem> {
    Ok(LegOptions::default()
        .with_congestion(values::congestion_control(section, congestion)?)
        .with_user_timeout(values::seconds(section, keys::USER_TIMEOUT_S.name)))
}
