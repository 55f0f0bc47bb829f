//! Resources that each proxy of a file needs for itself, and settings on which proxies must agree.

use super::keys::{gateway, in_path, pair, proxy, split};
use super::proxy::Proxy;
use crate::rules::{Calls, Captured, Queued, Shaped, Versions};
use crate::subnet::Subnet;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// Resources of the earlier proxies of the file.
#[derive(Default)]
pub(super) struct Taken {
    names: BTreeMap<String, String>,
    queues: BTreeMap<u16, String>,
    /// UDP addresses and ports.
    sockets: BTreeMap<(IpAddr, u16), String>,
    /// Ports of listeners for captured connections.
    ports: BTreeMap<u16, String>,
    tuns: BTreeMap<String, String>,
    /// Rates by interface, bits per second.
    rates: BTreeMap<String, u64>,
    sights: Vec<Sight>,
}

/// Packets and connections that a proxy receives.
struct Sight {
    proxy: String,
    place: String,
    queued: Option<Queued>,
    captured: Vec<Captured>,
}

impl Taken {
    /// Rejects a resource of an earlier proxy, or a different setting.
    pub(super) fn take(&mut self, proxy: &Proxy, section: &Section<'_>) -> Result<(), Problem> {
        let Proxy { name, task } = proxy;
        let at = |keys: &[&str]| place(section, keys);
        let origin = at(&[proxy::NAME.name, proxy::KIND.key.name]);
        once(
            &mut self.names,
            name.clone(),
            origin,
            format_args!("are called \"{name}\""),
            "give one of them another name = \"…\"",
        )?;
        for queue in task.queues() {
            let help = "a queue brings its packets to one of them: give the other one another number";
            let origin = at(&[in_path::QUEUE.name, proxy::KIND.key.name]);
            once(&mut self.queues, queue, origin, format_args!("have queue {queue}"), help)?;
        }
        if let Some((local, port)) = task.udp() {
            let origin = at(&[pair::PORT.name, pair::LOCAL.name]);
            let said = format_args!("have UDP port {port} of {local}");
            once(
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
            once(&mut self.ports, port, origin, said, "give one of them another listen_port = …")?;
        }
        if let Some(tun) = task.tun() {
            let origin = at(&[pair::TUN.name, proxy::KIND.key.name]);
            let said = format!("have the interface {tun}");
            once(
                &mut self.tuns,
                tun,
                origin,
                format_args!("{said}"),
                "give one of them another tun = \"…\"",
            )?;
        }
        self.take_rate(proxy, section)?;
        self.take_sight(proxy, section)
    }

    fn take_rate(&mut self, Proxy { task, .. }: &Proxy, section: &Section<'_>) -> Result<(), Problem> {
        let Some(Shaped { interface, rate_bps }) = task.shaped() else { return Ok(()) };
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

    /// Rejects a proxy that can never receive a packet: if the rules of two proxies match, the first gets the packet.
    fn take_sight(&mut self, Proxy { name, task }: &Proxy, section: &Section<'_>) -> Result<(), Problem> {
        let origin = place(
            section,
            &[in_path::SUBNETS.name, in_path::PORTS.name, in_path::INTERFACE.name, gateway::DIVERT.name],
        );
        let place = origin.to_string();
        let sight = Sight { proxy: name.clone(), place, queued: task.queued(), captured: task.captured() };
        if let Some(first) = self.sights.iter().find(|first| first.hides(&sight)) {
            return Err(Problem::new(format!(
                "the proxy \"{name}\" can never see a packet: \"{}\" has all of them ({})",
                first.proxy, first.place
            ))
            .at(origin)
            .help("of two proxies whose rules match a packet, the first has it: give one of them other subnets, ports or another interface, or leave one out"));
        }
        self.sights.push(sight);
        Ok(())
    }
}

impl Sight {
    fn hides(&self, later: &Self) -> bool {
        let queued = match (&self.queued, &later.queued) {
            (Some(first), Some(later)) => hides_packets(first, later),
            _ => false,
        };
        let captured =
            later.captured.iter().all(|later| self.captured.iter().any(|first| hides_calls(first, later)));
        queued || (!later.captured.is_empty() && captured)
    }
}

fn hides_packets(first: &Queued, later: &Queued) -> bool {
    let reads = first.versions == Versions::Both || later.versions == Versions::V4;
    (&first.interface, first.hooks) == (&later.interface, later.hooks)
        && reads
        && contain(&first.subnets, &later.subnets)
        && have(&first.ports, &later.ports)
}

fn hides_calls(first: &Captured, later: &Captured) -> bool {
    let by_place = match (&first.calls, &later.calls) {
        (
            Calls::By { interface, sources, destinations },
            Calls::By { interface: other, sources: of, destinations: to },
        ) => interface == other && contain(sources, of) && contain(destinations, to),
        (
            Calls::Towards { interface, destinations },
            Calls::Towards { interface: other, destinations: to },
        ) => interface == other && contain(destinations, to),
        _ => false,
    };
    by_place && have(&first.ports, &later.ports)
}

/// Returns whether each of `later` lies in one of `first`. An empty list means all.
fn contain(first: &[Subnet], later: &[Subnet]) -> bool {
    let lies = |later: &Subnet| first.iter().any(|first| first.0.contains(&later.0));
    first.is_empty() || (!later.is_empty() && later.iter().all(lies))
}

fn have(first: &[u16], later: &[u16]) -> bool {
    first.is_empty() || (!later.is_empty() && later.iter().all(|port| first.contains(port)))
}

/// Returns the position of the first key that is set.
fn place<'a>(section: &Section<'a>, keys: &[&str]) -> &'a Origin {
    keys.iter().find(|key| section.has(key)).map_or(section.origin, |key| section.origin_of(key))
}

/// Records a resource of a proxy, and rejects one of an earlier proxy.
fn once<T: Ord>(
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
