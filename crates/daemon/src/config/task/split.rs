//! Connections split in two.

use super::super::keys::split::OnwardKey;
use super::super::keys::{KindKey, split as keys};
use super::super::values::{self, Subnet};
use super::in_path;
use crate::rules::{Calls, Captured};
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_net::diversion::Diversion;
use hopline_net::split::{Config, Legs, MobileHosts, Onward};
use hopline_net::transparent::LegOptions;
use std::num::NonZeroUsize;

/// Which connections are split, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitTask {
    /// The interface that leads to the mobile hosts.
    pub interface: String,
    /// The mobile hosts that are served; empty: all.
    pub subnets: Vec<Subnet>,
    /// The ports that are called; empty: all.
    pub ports: Vec<u16>,
    /// Where connections are taken.
    pub port: u16,
    /// How.
    pub config: Config,
}

/// Where the first proxy of a file listens.
const FIRST_PORT: u16 = 7070;

impl SplitTask {
    pub(super) fn resolve(section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        let interface = in_path::interface(KindKey::Split, section)?;
        let port = section.narrow(keys::LISTEN_PORT.name).unwrap_or(FIRST_PORT + number);
        let default = Config::default();
        let size = |key: &str, default: NonZeroUsize| {
            section.integer(key).and_then(|size| NonZeroUsize::new(size as usize)).unwrap_or(default)
        };
        let diversion = Diversion { queue: in_path::queue(section, number), mark: 0, port };
        let onward = match section.get(keys::ONWARD) {
            OnwardKey::After => Onward::After(Some(diversion)),
            OnwardKey::First => Onward::First(diversion),
        };
        let config = Config {
            onward,
            listen: values::diverted_to(port),
            legs: Legs {
                mobile_hosts: MobileHosts::Through(interface.clone()),
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
        Ok(Self { interface, subnets, ports, port, config })
    }

    /// Whether what was opened for `other` can do this, told of its halves: rules alone say which connections come.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let legs = self.config.legs.clone();
        self.config == Config { legs, ..other.config.clone() }
    }

    /// Sets the mark by which calls are led to this machine.
    pub(super) const fn set_mark(&mut self, mark: u16) {
        match &mut self.config.onward {
            Onward::First(diversion) | Onward::After(Some(diversion)) => diversion.mark = mark,
            Onward::After(None) => {}
        }
    }

    /// Calls of mobile hosts, and calls for them.
    pub(super) fn captured(&self) -> Vec<Captured> {
        let Self { interface, subnets, port, ports, .. } = self;
        let by =
            Calls::By { interface: interface.clone(), sources: subnets.clone(), destinations: Vec::new() };
        let towards = Calls::Towards { interface: interface.clone(), destinations: subnets.clone() };
        let Some(Diversion { queue, .. }) = self.config.onward.diversion() else { return Vec::new() };
        [by, towards].map(|calls| Captured { port: *port, calls, ports: ports.clone(), queue }).into()
    }
}

fn leg(section: &Section<'_>, congestion: &str) -> Result<LegOptions, Problem> {
    Ok(LegOptions {
        congestion: values::congestion_control(section, congestion)?,
        user_timeout: values::seconds(section, keys::USER_TIMEOUT_S.name),
        ..LegOptions::default()
    })
}
