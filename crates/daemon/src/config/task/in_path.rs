//! Which packets pass a machine.

use super::super::keys::{KindKey, in_path, pair};
use super::super::values::{self, Subnet};
use crate::rules::{Hooks, Queued, Shaped, Versions};
use hopline_config::keys::proxy as machine;
use hopline_config::middlebox;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_net::nfqueue;
use hopline_proxy::{hop_window, snoop};

/// Which packets pass a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPath {
    /// The queue in which they wait.
    pub queue: u16,
    /// The interface that leads to the mobile hosts.
    pub interface: String,
    /// The mobile hosts that are served; empty: all.
    pub subnets: Vec<Subnet>,
    /// The ports of fixed hosts that are served; empty: all.
    pub ports: Vec<u16>,
    /// Bits per second that go out by the interface, if they are to wait here.
    pub rate_bps: Option<u64>,
    /// The hooks at which they are queued.
    pub(crate) hooks: Hooks,
}

/// Queue of the first proxy of a file.
const FIRST_QUEUE: u16 = 26_735;

impl InPath {
    /// Those of the proxy at place `number` of its file, from 0.
    pub(super) fn resolve(kind: KindKey, section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        Ok(Self {
            queue: queue(section, number),
            interface: interface(kind, section)?,
            subnets: subnets(section)?,
            ports: ports(section),
            rate_bps: rate_bps(section),
            hooks: Hooks::Forward,
        })
    }

    /// Moves the rules to a host at the end of the link.
    pub(super) fn of_host(self) -> Self {
        Self { hooks: Hooks::Local, ..self }
    }

    pub(super) fn shaped(&self) -> Option<Shaped> {
        self.rate_bps.map(|rate_bps| Shaped { interface: self.interface.clone(), rate_bps })
    }

    pub(super) fn queued(&self) -> Queued {
        let Self { queue, interface, subnets, ports, hooks, .. } = self.clone();
        let mark = nfqueue::Config::new(queue, &interface).mark;
        Queued { queue, interface, versions: Versions::Both, subnets, ports, hooks, mark }
    }
}

/// Snoop before a link of which nobody knows where its packets wait, unless its rate is told and they wait at this host.
pub(super) fn snoop(section: &Section<'_>, path: &InPath) -> Result<snoop::Config, Problem> {
    let mut config = middlebox::snoop(section)?;
    let is_modern = matches!(config.rules, snoop::Rules::Modern(_));
    if is_modern && path.rate_bps.is_none() && !section.has(machine::HOP_WINDOW.key.name) {
        config.hop_window = Some(hop_window::Config::DEFAULT);
    }
    Ok(config)
}

/// The rate of the link.
pub(super) fn rate_bps(section: &Section<'_>) -> Option<u64> {
    section.number(pair::RATE_MBPS.name).map(|mbps| (mbps * 1e6) as u64)
}

/// The queue of the proxy at place `number`.
pub(super) fn queue(section: &Section<'_>, number: u16) -> u16 {
    section.narrow(in_path::QUEUE.name).unwrap_or(FIRST_QUEUE + number)
}

/// The interface that must be named.
pub(super) fn interface(kind: KindKey, section: &Section<'_>) -> Result<String, Problem> {
    let key = in_path::INTERFACE.name;
    let name = section.word(key).ok_or_else(|| values::missing(section, key, kind.word(), "\"wlan0\""))?;
    values::interface(section, key, name)
}

/// The hosts that are served; empty: all.
pub(super) fn subnets(section: &Section<'_>) -> Result<Vec<Subnet>, Problem> {
    values::parsed_list(section, in_path::SUBNETS.name, "subnet", "10.1.0.0/16")
}

/// The ports that are served; empty: all.
pub(super) fn ports(section: &Section<'_>) -> Vec<u16> {
    section.integers(in_path::PORTS.name).unwrap_or_default().into_iter().map(|(port, _)| port).collect()
}
