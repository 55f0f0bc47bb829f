//! Connections that the system diverts to the entrance, and that keep both their addresses.

use crate::gateway::helpers::*;
use hopline_core::Duration as Span;
use hopline_harness::{Need, Test};
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_middlebox::gateway::{
    Allowed, Entrance, EntranceConfig, Exit, ExitConfig, ListenerConfig, SourceAddress,
};
use hopline_testkit::namespace::host::{address as up, succeed};
use hopline_testkit::namespace::{LINK, RunningService};
use hopline_testkit::{Emulation, Side};
use hopline_tools::link::NamespaceLink;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(crate) fn tests() -> Vec<Test> {
    let needs = [LINK, Need::Program("iptables"), Need::Program("ip")];
    hopline_harness::tests!(needs; both_addresses_are_kept, a_client_of_the_gateway_itself_is_reset).into()
}

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 1);
const ENTRANCE: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 1);
const EXIT: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 2);
const CABLE: &str = "cable";
const EXIT_PORT: u16 = 7172;
const DIVERTED_TO: u16 = 7001;

/// A client and an entrance on one side of a link that loses packets, an exit and a server on the other.
struct World {
    client: Namespace,
    link: NamespaceLink,
    server: Namespace,
    entrance: RunningService,
    _exit: RunningService,
}

impl World {
    fn new() -> Self {
        let lossy = Emulation::delay(Span::from_millis(2)).with_rate(Some(20_000_000)).with_loss(0.03);
        let link = NamespaceLink::new(lossy.clone(), lossy, 7).unwrap();
        let [client, server] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
        for (host, address, gateway, its) in
            [(&client, CLIENT, link.host(Side::A), ENTRANCE), (&server, SERVER, link.host(Side::B), EXIT)]
        {
            veth::join([host, gateway], CABLE, Offload::SinglePackets).unwrap();
            host.run(|| up(CABLE, address, 24)).unwrap();
            gateway.run(|| up(CABLE, its, 24)).unwrap();
            succeed(host, "ip", &format!("route add default via {its}"));
            // Packets with the mark are for this machine, whatever address they have.
            succeed(gateway, "ip", "rule add fwmark 1 lookup 100");
            succeed(gateway, "ip", "route add local 0.0.0.0/0 dev lo table 100");
        }
        let divert = format!("-i {CABLE} -p tcp -j TPROXY --on-port {DIVERTED_TO} --tproxy-mark 1");
        succeed(link.host(Side::A), "iptables", &format!("-w -t mangle -A PREROUTING {divert}"));
        let find = format!("-i {CABLE} -p tcp -m socket --transparent -j MARK --set-mark 1");
        succeed(link.host(Side::B), "iptables", &format!("-w -t mangle -A PREROUTING {find}"));
        let exit =
            link.run_in_b(|| RunningService::new(Exit::open(&exit_config(link.address_b().into())).unwrap()));
        let config = entrance_config((link.address_b(), EXIT_PORT).into());
        let entrance = link.run_in_a(|| RunningService::new(Entrance::open(&config).unwrap()));
        Self { client, link, server, entrance, _exit: exit }
    }
}

fn exit_config(ip: IpAddr) -> ExitConfig {
    let allowed = Allowed::Listed(vec![format!("{SERVER} 80").parse().unwrap()]);
    ExitConfig {
        listen: (ip, EXIT_PORT).into(),
        allowed,
        source_address: SourceAddress::Client,
        ..ExitConfig::new(vec![peer()])
    }
}

fn entrance_config(exit: SocketAddr) -> EntranceConfig {
    let way = ListenerConfig::Transparent { listen: (Ipv4Addr::UNSPECIFIED, DIVERTED_TO).into() };
    EntranceConfig { source_address: SourceAddress::Client, ..EntranceConfig::new(way, exit, name(), key(1)) }
}

fn both_addresses_are_kept() {
    let world = World::new();
    let listener = world.server.run(|| std::net::TcpListener::bind((SERVER, 80)).unwrap()).unwrap();
    let client = world.client.run(|| connect((SERVER, 80).into())).unwrap();
    let server = accept(&listener);
    assert_eq!(client.peer_addr().unwrap(), SocketAddr::from((SERVER, 80)));
    assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
    exchange(&client, &server, 200_000);
    world.entrance.await_metric("finished_connections", |figure| figure == 1);
    assert_eq!(world.entrance.metric("tpa_connections"), 1, "not by TCP");
    // Another port is not allowed there.
    let refused = world.client.run(|| connect((SERVER, 81).into())).unwrap();
    assert_reset(&refused);
    assert!(world.link.stats().forward.losses > 0);
}

fn a_client_of_the_gateway_itself_is_reset() {
    let world = World::new();
    let client = world.client.run(|| connect((ENTRANCE, DIVERTED_TO).into())).unwrap();
    assert_reset(&client);
    world.entrance.await_metric("unintelligible_connections", |figure| figure == 1);
}
