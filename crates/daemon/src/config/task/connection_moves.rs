//! Split connections that move with their mobile hosts: settings of the split proxy, with those of the base station in the
//! same file.

use super::super::keys::split::{MOVES, move_keys as keys};
use super::super::values;
use crate::rules::UnforwardedPackets;
use crate::subnet::Subnet;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_middlebox::handoff::VisitorList;
use hopline_middlebox::split::{BaseStation, MoveConfig, MoveKey};
use std::net::Ipv4Addr;

/// Default TCP port at which stations request connections from each other.
const PORT: u16 = 7071;
/// Maximum number of other stations. Each has a thread.
const MAX_STATIONS: usize = 64;

/// Moves of connections between stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionMoves {
    /// Addresses of the other stations.
    pub stations: Vec<Ipv4Addr>,
    /// TCP port at which all stations listen for requests.
    pub port: u16,
    /// The base station of the same file. `None` only until the whole file has been read.
    pub(crate) base_station: Option<StationInfo>,
}

/// The base station that has the same radio interface as the split proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StationInfo {
    pub(in crate::config) address: Ipv4Addr,
    /// Network of the mobile hosts.
    pub(in crate::config) network: Subnet,
    pub(in crate::config) key: MoveKey,
    pub(in crate::config) mark: u32,
}

impl ConnectionMoves {
    pub(super) fn resolve(section: &Section<'_>) -> Result<Option<Self>, Problem> {
        let inner = section.section(MOVES.name);
        if !inner.is_given() {
            return Ok(None);
        }
        let key = keys::STATIONS.name;
        let stations: Vec<Ipv4Addr> = values::parsed_list(&inner, key, "IPv4 address", "192.0.2.12")?;
        let refused =
            |what: String, help: &str| Err(Problem::new(what).at(inner.origin_of(key)).help(help.to_owned()));
        if stations.is_empty() {
            return refused(
                "`moves` without other stations".into(),
                "name their addresses: stations = [\"192.0.2.12\"]",
            );
        }
        if stations.len() > MAX_STATIONS {
            return refused(
                format!("{} stations", stations.len()),
                "each has a thread: name the 64 at most from which hosts come",
            );
        }
        let twice = stations.iter().enumerate().find(|(at, station)| stations[..*at].contains(station));
        if let Some((_, station)) = twice {
            return refused(format!("the station {station} twice"), "name each once");
        }
        Ok(Some(Self {
            stations,
            port: inner.integer_as(keys::PORT.name).unwrap_or(PORT),
            base_station: None,
        }))
    }

    /// Returns the settings of the proxy.
    pub(crate) fn move_config(&self, wireless: &str, visitors: VisitorList) -> Option<MoveConfig> {
        let StationInfo { address, key, mark, .. } = self.base_station.as_ref()?;
        let at = |address: &Ipv4Addr| (*address, self.port).into();
        Some(MoveConfig {
            listen: at(address),
            key: *key,
            stations: self.stations.iter().map(at).collect(),
            base_station: Some(BaseStation { visitors, wireless: wireless.into(), mark: *mark }),
        })
    }

    /// Returns the packets that belong to connections of mobile hosts, and must not be forwarded if no socket of this station
    /// receives them. `interface`, `subnets` and `ports` are those of the split proxy.
    pub(super) fn guarded(
        &self,
        interface: &str,
        subnets: &[Subnet],
        ports: &[u16],
    ) -> Option<UnforwardedPackets> {
        let network = self.base_station.as_ref()?.network;
        let ours: Vec<Subnet> = subnets.iter().filter(|subnet| subnet.is_ipv4()).copied().collect();
        let hosts = match (subnets.is_empty(), ours.is_empty()) {
            (true, _) => vec![network],
            // It serves only IPv6 hosts, and connections move over IPv4 only.
            (false, true) => return None,
            (false, false) => ours,
        };
        Some(UnforwardedPackets { interface: interface.to_owned(), network, hosts, ports: ports.to_vec() })
    }
}
