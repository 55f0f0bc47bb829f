//! Matches of rules of nftables on addresses and ports.

use super::diverted::{ConnectionMatch, DivertedConnections, UnforwardedPackets};
use super::family::Family;
use crate::subnet::Subnet;

/// Returns the match of a rule on addresses; `None` if there are some, and none of this version.
fn match_addresses(family: Family, what: &str, subnets: &[Subnet]) -> Option<String> {
    let ours: Vec<_> = subnets.iter().filter(|subnet| family.has(subnet)).map(|subnet| subnet.0).collect();
    let none_is = ours.is_empty() && !subnets.is_empty();
    (!none_is).then(|| set(&format!(" {} {what}", family.header()), &ours))
}

/// Returns the match of a rule on the calls that a listener takes; `None` if no call of this version is meant.
pub(super) fn match_connections(captured: &DivertedConnections, family: Family) -> Option<String> {
    let protocol = family.protocol();
    let between = match &captured.connections {
        ConnectionMatch::ArrivingOn { interface, sources, destinations } => {
            let (sources, destinations) =
                (match_addresses(family, "saddr", sources)?, match_addresses(family, "daddr", destinations)?);
            format!("iifname \"{interface}\" meta nfproto {protocol}{sources}{destinations}")
        }
        ConnectionMatch::LeavingBy { interface, destinations } => {
            let destinations = match_addresses(family, "daddr", destinations)?;
            format!(
                "iifname != \"{interface}\" oifname \"{interface}\" meta nfproto {protocol}{destinations}"
            )
        }
    };
    Some(format!("{between}{}", set(" tcp dport", &captured.ports)))
}

/// Returns the match of a rule on packets between two mobile hosts: either may be at another station, and the marks of halves to
/// mobile hosts lead to the radio of this one. `None` if no mobile host has this version.
pub(super) fn between_mobile_hosts(
    UnforwardedPackets { network, .. }: &UnforwardedPackets,
    family: Family,
) -> Option<String> {
    let network = [*network];
    let ends = (match_addresses(family, "saddr", &network)?, match_addresses(family, "daddr", &network)?);
    Some(format!("meta nfproto {}{}{}", family.protocol(), ends.0, ends.1))
}

/// Returns the matches of rules on packets of connections that are at another station, in both directions.
pub(super) fn match_unknown_connections(guarded: &UnforwardedPackets, family: Family) -> Vec<String> {
    let UnforwardedPackets { interface, hosts, ports, network: _ } = guarded;
    let ways = [("iifname", "saddr"), ("oifname", "daddr")];
    let of_way = |(way, end): (&str, &str)| {
        let hosts = match_addresses(family, end, hosts)?;
        Some(format!("{way} \"{interface}\" meta nfproto {}{hosts}", family.protocol()))
    };
    let with_ports = |of_way: String| match ports.as_slice() {
        [] => vec![of_way],
        // Of calls by mobile hosts, and of calls for them.
        ports => {
            ["dport", "sport"].map(|end| format!("{of_way}{}", set(&format!(" tcp {end}"), ports))).into()
        }
    };
    ways.into_iter().filter_map(of_way).flat_map(with_ports).collect()
}

/// `what { … }`, or nothing where everything is meant.
fn set<T: ToString>(what: &str, these: &[T]) -> String {
    match these {
        [] => String::new(),
        these => {
            let these: Vec<String> = these.iter().map(T::to_string).collect();
            format!("{what} {{ {} }}", these.join(", "))
        }
    }
}
