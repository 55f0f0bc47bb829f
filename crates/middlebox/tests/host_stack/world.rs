//! A stack at host A of a link, with a route to it from host B.

use hopline_core::Duration as Span;
use hopline_middlebox::gateway::ListenerConfig;
use hopline_middlebox::host_stack::{AcceptPort, HostStack, HostStackConfig};
use hopline_testkit::Emulation;
use hopline_testkit::namespace::RunningService;
use hopline_tools::link::{EndConfig, EndRole, NamespaceLink, Setup};
use hopline_transport::tcp::{Config, DoorConfig};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Address of the stack.
pub(crate) const STACK: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// Port at which the stack accepts.
pub(crate) const PORT: u16 = 2222;

/// A link with a network for the stack behind host A.
pub(crate) fn link(way: &Emulation) -> NamespaceLink {
    let networks = vec!["10.88.0.0/24".parse().unwrap(), "fd88::/64".parse().unwrap()];
    let ends = [EndConfig { role: EndRole::Host, networks }, EndConfig::default()];
    NamespaceLink::with(Setup { ends, ..Setup::new(way.clone(), way.clone(), 7) }).unwrap()
}

pub(crate) fn good() -> Emulation {
    Emulation::delay(Span::from_millis(5)).with_rate(Some(50_000_000))
}

pub(crate) fn bad() -> Emulation {
    Emulation::delay(Span::from_millis(5))
        .with_rate(Some(20_000_000))
        .with_loss(0.02)
        .with_reorder(0.05)
        .with_extra_delay(Span::from_millis(15))
        .with_duplicate(0.02)
}

pub(crate) fn door() -> Config {
    Config::linux().with_sack().with_door(Some(DoorConfig::all(2.0, 2.0)))
}

pub(crate) fn config(tcp: Config) -> HostStackConfig {
    let tcp = tcp.with_time_wait(Span::from_millis(200));
    let addresses: Vec<IpAddr> = vec![STACK.into(), "fd88::2".parse().unwrap()];
    HostStackConfig::new(tcp, addresses).unwrap()
}

/// Runs a stack through which programs of this host reach `to`; returns where they enter.
pub(crate) fn forwarding(config: HostStackConfig, to: SocketAddr) -> (RunningService, SocketAddr) {
    let way = ListenerConfig::Forward {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        to: to.to_string().parse().unwrap(),
    };
    entered_by(config, way)
}

pub(crate) fn entered_by(config: HostStackConfig, way: ListenerConfig) -> (RunningService, SocketAddr) {
    let host = HostStack::open(HostStackConfig { listeners: vec![way], ..config }).unwrap();
    let entry = host.local_addrs().unwrap()[0];
    (RunningService::new(host), entry)
}

/// Runs a stack through which peers reach the program at `to`.
pub(crate) fn accepting(config: HostStackConfig, to: SocketAddr) -> RunningService {
    let accept = vec![AcceptPort { port: PORT, to: to.to_string().parse().unwrap() }];
    RunningService::new(HostStack::open(HostStackConfig { accept, ..config }).unwrap())
}
