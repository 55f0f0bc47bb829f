//! Tasks of proxies in pairs, one at each end of a link, which repair its losses.

use super::super::keys::{KindKey, pair as keys};
use super::super::values;
use super::{in_path, secret};
use crate::rules::{Hooks, Owner, Queued, ShapedInterface, Tun, Versions};
use crate::subnet::Subnet;
use hopline_config::keys::proxy as machine;
use hopline_config::middlebox;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_middlebox::opaque::Shaping;
use hopline_middlebox::{dproxy, opaque};
use hopline_proxy::dproxy::{Key, Translation};
use hopline_proxy::tunnel::RecoveryScheme;
use ipnet::IpNet;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;

/// D-Proxy for TCP packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DProxyTask {
    /// Position of D-Proxy.
    pub position: keys::Position,
    /// Configuration of D-Proxy.
    pub config: dproxy::Config,
    /// Rate of the interface, bits per second, if packets are to be queued in this host.
    pub rate_bps: Option<u64>,
}

/// Tunnel that repairs losses of packets of any protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelTask {
    kind: KindKey,
    /// Addresses of its TUN interface.
    pub addresses: Vec<IpNet>,
    /// Configuration of the tunnel.
    pub config: opaque::Config,
    /// Daemon that owns the TUN interface.
    pub owner: Owner,
}

impl DProxyTask {
    pub(super) fn resolve(section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        let kind = KindKey::DProxy;
        let ends = ends(kind, section)?;
        let key = Key::new(secret::key(kind, section)?);
        let interface = in_path::interface(kind, section)?;
        let mut config = dproxy::Config::new(in_path::queue(section, number), interface, ends, key);
        let hopline_proxy::dproxy::Config { queue_position: turn, recovery, .. } = config.machine;
        config.machine = middlebox::d_proxy(section, ends[0], ends[1], key);
        config.machine.translation = Translation::Possible;
        if !section.has(machine::TURN.key.name) {
            config.machine.queue_position = turn;
        }
        if !section.has(machine::RECOVERY_SAMPLES.key.name) {
            config.machine.recovery.sample_rule = recovery.sample_rule;
        }
        if !section.has(machine::MIN_TIMER_MS.name) {
            config.machine.recovery.min_average = recovery.min_average;
        }
        config.port = section.integer_as(keys::PORT.name).unwrap_or(config.port);
        let stands = section.get(keys::STANDS).unwrap_or(keys::Position::Router);
        Ok(Self { position: stands, config, rate_bps: in_path::rate_bps(section) })
    }

    pub(super) fn shaped(&self) -> Option<ShapedInterface> {
        let interface = &self.config.queue.mobile;
        self.rate_bps.map(|rate_bps| ShapedInterface { interface: interface.clone(), rate_bps })
    }

    /// Returns the packets that wait for its verdict.
    pub(super) fn queued(&self) -> Queued {
        let queue = &self.config.queue;
        let hooks = match self.position {
            keys::Position::Router => Hooks::Forward,
            keys::Position::Host => Hooks::Local,
        };
        Queued {
            queue: queue.number,
            interface: queue.mobile.clone(),
            versions: Versions::Both,
            subnets: Vec::new(),
            ports: Vec::new(),
            hooks,
            mark: queue.mark,
        }
    }
}

impl TunnelTask {
    pub(super) fn resolve(kind: KindKey, section: &Section<'_>) -> Result<Self, Problem> {
        let [local, peer] = ends(kind, section)?;
        for (key, address) in [(keys::LOCAL.name, local), (keys::PEER.name, peer)] {
            if matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
                let problem = Problem::new(format!("`{key}` = \"{address}\" is a link-local address"));
                let help = "its interface is not known; a global or unique local address would do";
                return Err(problem.at(section.origin_of(key)).help(help));
            }
        }
        let mut config = opaque::Config::new(local, peer, Key::new(secret::key(kind, section)?));
        if kind == KindKey::Arq {
            config.repair = RecoveryScheme::Arq(middlebox::arq(&section.section(keys::ARQ.name)));
        } else {
            config.repair = RecoveryScheme::Nack(middlebox::opaque(section, in_path::rate_bps(section)));
        }
        if let Some(name) = section.word(keys::TUN.name) {
            config.tun = values::interface(section, keys::TUN.name, name)?;
        }
        config.port = section.integer_as(keys::PORT.name).unwrap_or(config.port);
        config.mtu = section.integer_as(keys::MTU.name).unwrap_or(config.mtu);
        config.shaping = in_path::rate_bps(section).and_then(NonZeroU64::new).map(Shaping::new);
        config.tun_mtu().map_err(|must| {
            let is_of_mtu = must.contains("`mtu`") && section.has(keys::MTU.name);
            let key = if is_of_mtu { keys::MTU.name } else { keys::LOCAL.name };
            Problem::new(must).at(section.origin_of(key))
        })?;
        let routes = values::parsed_list(section, keys::ROUTES.name, "network", "10.1.0.0/16")?;
        config.routes = routes.into_iter().map(|Subnet(net)| (net.addr(), net.prefix_len())).collect();
        config.lifetime = section.get(keys::TUN_LIFETIME);
        let addresses = values::interface_addresses(section, keys::TUN_ADDRESSES.name)?;
        // The owner is set later: it is known once the keys of the daemon are read.
        let owner = Owner { name: String::new(), folder: PathBuf::new() };
        Ok(Self { kind, addresses, config, owner })
    }

    /// Returns whether a route into the tunnel contains the peer's own address.
    pub(crate) fn has_route_to_peer(&self) -> bool {
        let mut routes = self.config.routes.iter().filter_map(|&(net, bits)| IpNet::new(net, bits).ok());
        routes.any(|route| route.contains(&self.config.peer))
    }

    /// Returns the TUN interface, with the addresses and routes that the daemon sets.
    pub(crate) fn interface(&self) -> Tun {
        let routes = self.config.routes.iter().filter_map(|&(address, bits)| IpNet::new(address, bits).ok());
        Tun::new(&self.config.tun, self.addresses.iter().copied(), routes.map(|route| route.trunc()))
    }
}

impl TunnelTask {
    pub(super) const fn kind(&self) -> KindKey {
        self.kind
    }
}

/// Returns the addresses of the two ends of the link: `local`, then `peer`.
fn ends(kind: KindKey, section: &Section<'_>) -> Result<[IpAddr; 2], Problem> {
    const EXAMPLE: &str = "192.0.2.1";
    let end = |key: &str| {
        values::parsed(section, key, "address", EXAMPLE)?
            .ok_or_else(|| values::missing(section, key, kind.word(), &format!("\"{EXAMPLE}\"")))
    };
    let ends: [IpAddr; 2] = [end(keys::LOCAL.name)?, end(keys::PEER.name)?];
    let [local, peer] = ends;
    let wrong = |key: &str, address: IpAddr, is: &str, help: &str| {
        let problem = Problem::new(format!("`{key}` = \"{address}\" {is}"));
        Err(problem.at(section.origin_of(key)).help(help))
    };
    for (key, address) in [(keys::LOCAL.name, local), (keys::PEER.name, peer)] {
        let is_group = address.is_multicast() || matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        if address.is_unspecified() || is_group {
            return wrong(key, address, "is no address of a host", "it is that of one end of the link");
        }
    }
    if local == peer {
        let help = "`local` is this end's address on the link, `peer` the other end's; at the other end they are swapped";
        return wrong(keys::PEER.name, peer, "is `local` too", help);
    }
    if local.is_ipv4() != peer.is_ipv4() {
        let help =
            "both are addresses of IPv4, or both of IPv6: packets of either version cross the link then";
        return wrong(keys::PEER.name, peer, "is of another version of IP than `local`", help);
    }
    Ok(ends)
}
