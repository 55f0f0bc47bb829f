//! Selection of the packets that a middlebox receives.

use super::super::keys::{KindKey, in_path, pair};
use super::super::values;
use crate::rules::{Hooks, Queued, ShapedInterface, Versions};
use crate::subnet::Subnet;
use hopline_config::keys::proxy as machine;
use hopline_config::middlebox;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_middlebox::nfqueue;
use hopline_proxy::{hop_window, snoop};

/// Selection of the packets that a middlebox receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketSelection {
    /// Number of the NFQUEUE of the packets.
    pub queue: u16,
    /// Interface that leads to the mobile hosts.
    pub interface: String,
    /// Served mobile hosts; empty: all.
    pub subnets: Vec<Subnet>,
    /// TCP ports of fixed hosts that are served; empty: all.
    pub ports: Vec<u16>,
    /// Rate of the interface, bits per second, if packets are to be queued in this host.
    pub rate_bps: Option<u64>,
    /// Netfilter hooks at which packets are queued.
    pub(crate) hooks: Hooks,
}

/// NFQUEUE of the first proxy of a file.
const FIRST_QUEUE: u16 = 26_735;

impl PacketSelection {
    /// Returns the packets of the proxy at position `number` of its file, from 0.
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

    /// Selects the packets of this host in place of forwarded ones.
    pub(super) fn for_host(self) -> Self {
        Self { hooks: Hooks::Local, ..self }
    }

    pub(super) fn shaped(&self) -> Option<ShapedInterface> {
        self.rate_bps.map(|rate_bps| ShapedInterface { interface: self.interface.clone(), rate_bps })
    }

    pub(super) fn queued(&self) -> Queued {
        let Self { queue, interface, subnets, ports, hooks, .. } = self.clone();
        let mark = nfqueue::Config::new(queue, &interface).mark;
        Queued { queue, interface, versions: Versions::Both, subnets, ports, hooks, mark }
    }
}

/// Returns the configuration of Snoop. Without a configured rate, packets may wait in a queue beyond this host. Snoop `modern`
/// then limits the number of packets on the last hop, unless the file sets `hop_window`.
pub(super) fn snoop(section: &Section<'_>, path: &PacketSelection) -> Result<snoop::Config, Problem> {
    let mut config = middlebox::snoop(section)?;
    let is_modern = matches!(config.rules, snoop::Rules::Modern(_));
    if is_modern && path.rate_bps.is_none() && !section.has(machine::HOP_WINDOW.key.name) {
        config.hop_window = Some(hop_window::Config::DEFAULT);
    }
    Ok(config)
}

/// Returns the rate of the link, bits per second.
pub(super) fn rate_bps(section: &Section<'_>) -> Option<u64> {
    section.number(pair::RATE_MBPS.name).map(|mbps| (mbps * 1e6) as u64)
}

/// Returns the number of the NFQUEUE of the proxy at position `number` of its file, from 0.
pub(super) fn queue(section: &Section<'_>, number: u16) -> u16 {
    section.integer_as(in_path::QUEUE.name).unwrap_or(FIRST_QUEUE + number)
}

/// Returns `interface`, which is mandatory.
pub(super) fn interface(kind: KindKey, section: &Section<'_>) -> Result<String, Problem> {
    let key = in_path::INTERFACE.name;
    let name = section.word(key).ok_or_else(|| values::missing(section, key, kind.word(), "\"wlan0\""))?;
    values::interface(section, key, name)
}

/// Returns the subnets of the served mobile hosts; empty: all.
pub(super) fn subnets(section: &Section<'_>) -> Result<Vec<Subnet>, Problem> {
    values::parsed_list(section, in_path::SUBNETS.name, "subnet", "10.1.0.0/16")
}

/// Returns the served TCP ports; empty: all.
pub(super) fn ports(section: &Section<'_>) -> Vec<u16> {
    section.integers(in_path::PORTS.name).unwrap_or_default().into_iter().map(|(port, _)| port).collect()
}
