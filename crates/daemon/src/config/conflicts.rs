//! Conflicts between proxies of a file: resources that only one proxy can use, and settings on which proxies must agree.

use super::keys::{gateway, in_path, pair, proxy, split};
use super::proxy::Proxy;
use crate::rules::{ConnectionMatch, DivertedConnections, Queued, ShapedInterface, Versions};
use crate::subnet::Subnet;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// Resources that the earlier proxies of the file use. Texts are the places of these proxies in the file.
#[derive(Default)]
pub(super) struct Conflicts {
    names: BTreeMap<String, String>,
    queues: BTreeMap<u16, String>,
    /// UDP addresses and ports.
    sockets: BTreeMap<(IpAddr, u16), String>,
    /// Ports of listeners for captured connections.
    ports: BTreeMap<u16, String>,
    tuns: BTreeMap<String, String>,
    /// Rates by interface, bits per second.
    rates: BTreeMap<String, u64>,
    matches: Vec<PacketMatch>,
}

/// Packets and connections that a proxy receives.
struct PacketMatch {
    proxy: String,
    origin: String,
    queued: Option<Queued>,
    captured: Vec<DivertedConnections>,
}

impl Conflicts {
    /// Rejects a proxy that uses a resource of an earlier proxy, or disagrees with its settings.
    pub(super) fn check(&mut self, proxy: &Proxy, section: &Section<'_>) -> Result<(), Problem> {
        let Proxy { name, task } = proxy;
        let at = |keys: &[&str]| origin_of(section, keys);
        let origin = at(&[proxy::NAME.name, proxy::KIND.key.name]);
        claim(
            &mut self.names,
            name.clone(),
            origin,
            format_args!("are called \"{name}\""),
            "give one of them another name = \"…\"",
        )?;
        for queue in task.queues() {
            let help = "a queue brings its packets to one of them: give the other one another number";
            let origin = at(&[in_path::QUEUE.name, proxy::KIND.key.name]);
            claim(&mut self.queues, queue, origin, format_args!("have queue {queue}"), help)?;
        }
        if let Some((local, port)) = task.udp() {
            let origin = at(&[pair::PORT.name, pair::LOCAL.name]);
            let said = format_args!("have UDP port {port} of {local}");
            claim(
                &mut self.sockets,
                (local, port),
                origin,
                said,
                "give one of them, and its peer, another port = …",
            )?;
        }
        if let Some(port) = task.captured().first().map(|captured| captured.port) {
            let origin = at(&[split::LISTEN_PORT.name, proxy::KIND.key.name]);
            let said = format_args!("take connections at port {port}");
            claim(&mut self.ports, port, origin, said, "give one of them another listen_port = …")?;
        }
        if let Some(tun) = task.tun() {
            let origin = at(&[pair::TUN.name, proxy::KIND.key.name]);
            let said = format!("have the interface {tun}");
            claim(
                &mut self.tuns,
                tun,
                origin,
                format_args!("{said}"),
                "give one of them another tun = \"…\"",
            )?;
        }
        self.check_rate(proxy, section)?;
        self.check_match(proxy, section)
    }

    fn check_rate(&mut self, Proxy { task, .. }: &Proxy, section: &Section<'_>) -> Result<(), Problem> {
        let Some(ShapedInterface { interface, rate_bps }) = task.shaped() else { return Ok(()) };
        match self.rates.insert(interface.clone(), rate_bps) {
            Some(before) if before != rate_bps => {
                let mbps = [before, rate_bps].map(|bps| bps as f64 / 1e6);
                Err(Problem::new(format!("two rates for \"{interface}\": {} and {} Mb/s", mbps[0], mbps[1]))
                    .at(section.origin_of(pair::RATE_MBPS.name))
                    .help("an interface has one: give both proxies the same, or one of them none"))
            }
            _ => Ok(()),
        }
    }

    /// Rejects a proxy that can never receive a packet. If the rules of two proxies match a packet, the first proxy gets it.
    fn check_match(&mut self, Proxy { name, task }: &Proxy, section: &Section<'_>) -> Result<(), Problem> {
        let origin = origin_of(
            section,
            &[in_path::SUBNETS.name, in_path::PORTS.name, in_path::INTERFACE.name, gateway::DIVERT.name],
        );
        let place = origin.to_string();
        let sight = PacketMatch {
            proxy: name.clone(),
            origin: place,
            queued: task.queued(),
            captured: task.captured(),
        };
        if let Some(first) = self.matches.iter().find(|first| first.shadows(&sight)) {
            return Err(Problem::new(format!(
                "the proxy \"{name}\" can never see a packet: \"{}\" has all of them ({})",
                first.proxy, first.origin
            ))
            .at(origin)
            .help("of two proxies whose rules match a packet, the first has it: give one of them other subnets, ports or another interface, or leave one out"));
        }
        self.matches.push(sight);
        Ok(())
    }
}

impl PacketMatch {
    /// Returns whether the `later` proxy of the file never gets a packet, because this one gets all of them.
    fn shadows(&self, later: &Self) -> bool {
        let queued = match (&self.queued, &later.queued) {
            (Some(first), Some(later)) => shadows_packets(first, later),
            _ => false,
        };
        let captured = later
            .captured
            .iter()
            .all(|later| self.captured.iter().any(|first| shadows_connections(first, later)));
        queued || (!later.captured.is_empty() && captured)
    }
}

fn shadows_packets(first: &Queued, later: &Queued) -> bool {
    let reads = first.versions == Versions::Both || later.versions == Versions::V4;
    (&first.interface, first.hooks) == (&later.interface, later.hooks)
        && reads
        && contain(&first.subnets, &later.subnets)
        && contain_ports(&first.ports, &later.ports)
}

fn shadows_connections(first: &DivertedConnections, later: &DivertedConnections) -> bool {
    let by_place = match (&first.connections, &later.connections) {
        (
            ConnectionMatch::ArrivingOn { interface, sources, destinations },
            ConnectionMatch::ArrivingOn { interface: other, sources: of, destinations: to },
        ) => interface == other && contain(sources, of) && contain(destinations, to),
        (
            ConnectionMatch::LeavingBy { interface, destinations },
            ConnectionMatch::LeavingBy { interface: other, destinations: to },
        ) => interface == other && contain(destinations, to),
        _ => false,
    };
    by_place && contain_ports(&first.ports, &later.ports)
}

/// Returns whether each subnet of `later` lies in one of `first`. An empty list means all addresses.
fn contain(first: &[Subnet], later: &[Subnet]) -> bool {
    let lies = |later: &Subnet| first.iter().any(|first| first.0.contains(&later.0));
    first.is_empty() || (!later.is_empty() && later.iter().all(lies))
}

/// Returns whether each port of `later` is one of `first`. An empty list means all ports.
fn contain_ports(first: &[u16], later: &[u16]) -> bool {
    first.is_empty() || (!later.is_empty() && later.iter().all(|port| first.contains(port)))
}

/// Returns the position in the file of the first of `keys` that is set, or else of the section.
fn origin_of<'a>(section: &Section<'a>, keys: &[&str]) -> &'a Origin {
    keys.iter().find(|key| section.has(key)).map_or(section.origin, |key| section.origin_of(key))
}

/// Records that a proxy uses a resource, and rejects it if an earlier proxy does.
fn claim<T: Ord>(
    taken: &mut BTreeMap<T, String>,
    what: T,
    origin: &Origin,
    said: fmt::Arguments<'_>,
    help: &str,
) -> Result<(), Problem> {
    match taken.insert(what, origin.to_string()) {
        None => Ok(()),
        Some(first) => {
            Err(Problem::new(format!("two proxies {said}, the other at {first}")).at(origin).help(help))
        }
    }
}
