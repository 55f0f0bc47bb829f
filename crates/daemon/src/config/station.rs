//! Association of split proxies with the base stations of the same file.

use super::keys::split::MOVES;
use super::proxy::Proxy;
use super::task::{ConnectionMoves, StationInfo, StationTask, Task};
use crate::subnet::Subnet;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_middlebox::handoff::StationConfig;
use hopline_middlebox::split::{MobileHosts, MoveKey, Network};
use ipnet::{IpNet, Ipv4Net};

/// Gives each split proxy with `moves` the address, network, key and mark of the base station with the same interface.
pub(super) fn join(proxies: &mut [Proxy], sections: &[Section<'_>]) -> Result<(), Problem> {
    let mut taken: Vec<String> = Vec::new();
    for at in 0..proxies.len() {
        let Task::Split(task) = &proxies[at].task else { continue };
        let Some(moving) = &task.connection_moves else { continue };
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
        let beside = StationInfo {
            address: *address,
            network: Subnet(IpNet::V4(net)),
            key: MoveKey::of(key).expect("stations have the network's key"),
            mark: *mark,
        };
        taken.push(interface.clone());
        // Mobile hosts are known by their network: the routes of this machine lead to the home agent, not to the radio.
        let among: Network = net.to_string().parse().expect("both read networks");
        if let Task::Split(task) = &mut proxies[at].task {
            task.config.legs.mobile_hosts = MobileHosts::InNetworks(vec![among]);
            task.config.legs.mobile = task.config.legs.mobile.clone().with_mark(beside.mark);
            task.connection_moves = Some(ConnectionMoves { base_station: Some(beside), ..moving });
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
