//! Split connections that follow their mobile hosts: what the split proxy of a station learns from the base station beside it.

use super::super::Proxy;
use super::super::keys::split::{MOVES, moves as keys};
use super::super::values::{self, Subnet};
use super::{SplitTask, StationTask, Task};
use crate::rules::Guarded;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_middlebox::handoff::{StationConfig, VisitorList};
use hopline_middlebox::split::{BaseStation, MobileHosts, MoveKey, Moves, Network};
use ipnet::{IpNet, Ipv4Net};
use std::net::Ipv4Addr;

/// TCP port at which stations ask each other.
const PORT: u16 = 7071;
/// Most other stations: each has a thread.
const MOST_STATIONS: usize = 64;

/// Moves of connections between stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moving {
    /// Addresses of the other stations.
    pub stations: Vec<Ipv4Addr>,
    /// The port of all.
    pub port: u16,
    /// The base station beside the proxy. `None` only until the whole file has been read.
    pub(crate) beside: Option<Beside>,
}

/// The base station with the same radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    address: Ipv4Addr,
    /// Network of the mobile hosts.
    network: Subnet,
    key: MoveKey,
    mark: u32,
}

impl Moving {
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
        if stations.len() > MOST_STATIONS {
            return refused(
                format!("{} stations", stations.len()),
                "each has a thread: name the 64 at most from which hosts come",
            );
        }
        let twice = stations.iter().enumerate().find(|(at, station)| stations[..*at].contains(station));
        if let Some((_, station)) = twice {
            return refused(format!("the station {station} twice"), "name each once");
        }
        Ok(Some(Self { stations, port: inner.narrow(keys::PORT.name).unwrap_or(PORT), beside: None }))
    }

    /// Returns the settings of the proxy.
    pub(crate) fn moves(&self, wireless: &str, visitors: VisitorList) -> Option<Moves> {
        let Beside { address, key, mark, .. } = self.beside.as_ref()?;
        let at = |address: &Ipv4Addr| (*address, self.port).into();
        Some(Moves {
            listen: at(address),
            key: *key,
            stations: self.stations.iter().map(at).collect(),
            base_station: Some(BaseStation { visitors, wireless: wireless.into(), mark: *mark }),
        })
    }

    /// Packets that belong to a connection of a mobile host, and that no socket here takes.
    pub(super) fn guarded(&self, task: &SplitTask) -> Option<Guarded> {
        let network = self.beside.as_ref()?.network;
        let ours: Vec<Subnet> = task.subnets.iter().filter(|subnet| subnet.is_ipv4()).copied().collect();
        let hosts = match (task.subnets.is_empty(), ours.is_empty()) {
            (true, _) => vec![network],
            // It serves hosts of IPv6 alone.
            (false, true) => return None,
            (false, false) => ours,
        };
        Some(Guarded { interface: task.interface.clone(), network, hosts, ports: task.ports.clone() })
    }
}

/// Tells each split proxy with `moves` of the base station beside it.
pub(in crate::config) fn join(proxies: &mut [Proxy], sections: &[Section<'_>]) -> Result<(), Problem> {
    let mut taken: Vec<String> = Vec::new();
    for at in 0..proxies.len() {
        let Task::Split(task) = &proxies[at].task else { continue };
        let Some(moving) = &task.moving else { continue };
        let (name, interface, moving) = (&proxies[at].name, &task.interface, moving.clone());
        let refused = |what: String, help: String| {
            Err(Problem::new(what).at(sections[at].origin_of(MOVES.name)).help(help))
        };
        let of_radio = proxies.iter().find_map(|proxy| match &proxy.task {
            Task::BaseStation(station) if station.config.wireless == *interface => Some(station.as_ref()),
            _ => None,
        });
        let Some(station) = of_radio else {
            return refused(
                format!(
                    "connections of the proxy \"{name}\" cannot move: no base-station of this file has the interface {interface}"
                ),
                help_without_station(proxies),
            );
        };
        if taken.contains(interface) {
            return refused(
                format!("two proxies move connections of hosts beyond {interface}"),
                "stations ask one of them: leave out `moves` of the other one".into(),
            );
        }
        let StationTask { config: StationConfig { address, network, key, mark, .. }, .. } = station;
        let here = proxies.iter().filter_map(|proxy| match &proxy.task {
            Task::BaseStation(station) => Some(station.config.address),
            _ => None,
        });
        if let Some(address) = here.into_iter().find(|here| moving.stations.contains(here)) {
            return refused(
                format!("{address} is this station: its base-station has that address"),
                "`stations` are the other ones".into(),
            );
        }
        let net = Ipv4Net::new(network.0, network.1).expect("it was read as a network");
        let beside = Beside {
            address: *address,
            network: Subnet(IpNet::V4(net)),
            key: MoveKey::of(key).expect("stations have the network's key"),
            mark: *mark,
        };
        taken.push(interface.clone());
        // The routes of this machine lead to the home agent, not to the radio.
        let among: Network = net.to_string().parse().expect("both read networks");
        if let Task::Split(task) = &mut proxies[at].task {
            task.config.legs.mobile_hosts = MobileHosts::Among(vec![among]);
            task.config.legs.mobile.mark = beside.mark;
            task.moving = Some(Moving { beside: Some(beside), ..moving });
        }
    }
    Ok(())
}

fn help_without_station(proxies: &[Proxy]) -> String {
    let others = proxies.iter().filter_map(|proxy| match &proxy.task {
        Task::BaseStation(station) => Some(format!("\"{}\" has {}", proxy.name, station.config.wireless)),
        _ => None,
    });
    match others.collect::<Vec<_>>().as_slice() {
        [] => "add a proxy of kind \"base-station\" to this file: it says which hosts have come, and has the key".into(),
        others => format!("both have the interface of the radio: {}", others.join(", ")),
    }
}
