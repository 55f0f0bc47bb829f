//! Tasks of home agents, base stations and mobile hosts.

use super::super::keys::{KindKey, handoff as keys, pair};
use super::super::values;
use super::{in_path, secret};
use crate::rules::{Hooks, Queued, Versions};
use crate::subnet::Subnet;
use hopline_config::keys::{cells, mobile};
use hopline_config::middlebox;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem};
use hopline_core::Duration;
use hopline_middlebox::handoff::{
    HOST_KEY_LEN, HandoffRule, HomeConfig, MobileConfig, Scheme, SignalSource, StationConfig,
};
use hopline_middlebox::nfqueue;
use hopline_proxy::handoff::Key;
use hopline_proxy::snoop;
use ipnet::IpNet;
use std::net::Ipv4Addr;
use std::num::NonZeroU8;
use std::path::PathBuf;

pub(super) fn home_agent(section: &Section<'_>) -> Result<HomeConfig, Problem> {
    let kind = KindKey::HomeAgent;
    let key = Key::new(secret::key(kind, section)?);
    let mut config =
        HomeConfig::new(address(kind, section, keys::ADDRESS.name)?, network(kind, section)?, key);
    config.mobiles = values::parsed_list(section, keys::MOBILES.name, "address", "10.9.0.7")?;
    config.interfaces = interfaces(kind, section)?;
    config.scheme = section.get(cells::SCHEME);
    config.stations = values::parsed_list(section, keys::STATIONS.name, "address", "192.0.2.11")?;
    if config.scheme == Scheme::Registration && config.stations.is_empty() {
        return Err(values::missing(section, keys::STATIONS.name, kind.word(), "[\"192.0.2.11\"]"));
    }
    config.mtu = section.integer_as(pair::MTU.name).unwrap_or(config.mtu);
    Ok(config)
}

/// Base station, and the middlebox on the path to its mobile hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct StationTask {
    /// Configuration of the station.
    pub config: StationConfig,
    /// Number of the NFQUEUE of Snoop, and configuration of Snoop.
    pub snoop: Option<(u16, snoop::Config)>,
}

impl StationTask {
    /// Returns the packets that wait for Snoop.
    pub(super) fn queued(&self) -> Option<Queued> {
        let (queue, _) = self.snoop?;
        Some(Queued {
            queue,
            interface: self.config.wireless.clone(),
            // Handoff, and the messages about connections between stations, exist over IPv4 only.
            versions: Versions::V4,
            subnets: Vec::new(),
            ports: Vec::new(),
            hooks: Hooks::Forward,
            mark: nfqueue::Config::new(queue, &self.config.wireless).mark,
        })
    }
}

pub(super) fn base_station(section: &Section<'_>, number: u16) -> Result<StationTask, Problem> {
    let kind = KindKey::BaseStation;
    let ends = [address(kind, section, keys::ADDRESS.name)?, address(kind, section, keys::HOME_AGENT.name)?];
    let wired = interface(kind, section, keys::WIRED.name, "eth0")?;
    let wireless = in_path::interface(kind, section)?;
    let key = Key::new(secret::key(kind, section)?);
    let mut config = StationConfig::new(ends, network(kind, section)?, [&wired, &wireless], key);
    config.beacon_interval = Duration::from_secs_f64(section.get(cells::BEACON_S));
    config.buffer_packets =
        section.integer_as(cells::BUFFER_PACKETS.key.name).unwrap_or(config.buffer_packets);
    config.cold = section.get(cells::START);
    let inner = section.section(keys::SNOOP.name);
    let snoop = inner.is_given().then(|| Ok((in_path::queue(&inner, number), middlebox::snoop(&inner)?)));
    Ok(StationTask { config, snoop: snoop.transpose()? })
}

pub(super) fn mobile_host(section: &Section<'_>) -> Result<MobileConfig, Problem> {
    let kind = KindKey::MobileHost;
    let home = address(kind, section, keys::ADDRESS.name)?;
    // The command runs on a machine that has the key of the network.
    let key =
        secret::key_by::<HOST_KEY_LEN>(kind, section, &format!("hopline proxy host-key NETWORK.KEY {home}"))?;
    let mut config = MobileConfig::new(home, Key::host(key));
    config.interfaces = interfaces(kind, section)?;
    config.scheme = section.get(cells::SCHEME);
    config.decide = match section.number(keys::HANDOFF_EVERY_S.name) {
        Some(every) => HandoffRule::Periodic(Duration::from_secs_f64(every)),
        None => HandoffRule::Stronger {
            margin_db: section.get(mobile::HYSTERESIS_DB),
            beacons: section.integer_as(mobile::BEACONS.key.name).expect("it has a default"),
        },
    };
    config.buffering_stations =
        section.integer_as(mobile::BUFFERING.key.name).unwrap_or(config.buffering_stations);
    if let Some(lifetime) = section.number(keys::LIFETIME_S.name) {
        config.lifetime = Duration::from_secs_f64(lifetime);
    }
    config.fast_retransmit = section.integer_as(mobile::FAST_RETRANSMIT.name).and_then(NonZeroU8::new);
    if let Some(path) = section.word(keys::SIGNALS.name) {
        config.signals = SignalSource::File(PathBuf::from(path));
    }
    Ok(config)
}

/// Returns the line for the key file of the mobile host with this home address. `network`: path of the file with the
/// network's key.
///
/// # Errors
/// The [`Problem`] of the file.
pub(crate) fn host_key(network: &str, home: Ipv4Addr) -> Result<String, Problem> {
    let origin = Origin::of_option("the network's key", network);
    let network = Key::new(secret::read_secret(network, &origin)?);
    let bytes = network.derive_host_key(home).expect("it is the network's");
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn address(kind: KindKey, section: &Section<'_>, key: &str) -> Result<Ipv4Addr, Problem> {
    values::parsed(section, key, "IPv4 address", "192.0.2.1")?
        .ok_or_else(|| values::missing(section, key, kind.word(), "\"192.0.2.1\""))
}

fn network(kind: KindKey, section: &Section<'_>) -> Result<(Ipv4Addr, u8), Problem> {
    let key = keys::NETWORK.name;
    let subnet: Option<Subnet> = values::parsed(section, key, "network", "10.9.0.0/24")?;
    match subnet.map(|subnet| subnet.0) {
        Some(IpNet::V4(net)) => Ok((net.addr(), net.prefix_len())),
        Some(IpNet::V6(net)) => {
            Err(Problem::new(format!("{net}: handoff is of IPv4")).at(section.origin_of(key)))
        }
        None => Err(values::missing(section, key, kind.word(), "\"10.9.0.0/24\"")),
    }
}

fn interfaces(kind: KindKey, section: &Section<'_>) -> Result<Vec<String>, Problem> {
    let key = keys::INTERFACES.name;
    let named = section.texts(key);
    if named.is_empty() {
        return Err(values::missing(section, key, kind.word(), "[\"wlan0\"]"));
    }
    named.into_iter().map(|name| values::interface(section, key, name)).collect()
}

fn interface(kind: KindKey, section: &Section<'_>, key: &str, example: &str) -> Result<String, Problem> {
    let name = section
        .word(key)
        .ok_or_else(|| values::missing(section, key, kind.word(), &format!("\"{example}\"")))?;
    values::interface(section, key, name)
}
