//! An entrance that uses the exit only for hosts that have announced TPA in a handshake.

use crate::gateway::helpers::*;
use hopline_core::Duration as Span;
use hopline_harness::{Need, Test};
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_middlebox::announce::{Announcements, Config, HostProtocols, Role, TransportSupport};
use hopline_middlebox::gateway::{
    Allowed, Entrance, EntranceConfig, Exit, ExitConfig, ListenerConfig, SourceAddress,
};
use hopline_middlebox::nfqueue::{self, Queue};
use hopline_testkit::namespace::LINK as NEED_OF_LINK;
use hopline_testkit::namespace::RunningService;
use hopline_testkit::namespace::host::{address as up, forward as forwards, ip, open_with_retries, succeed};
use hopline_testkit::namespace::last_hop::LINK;
use hopline_testkit::{Emulation, Side};
use hopline_tools::link::{NamespaceLink, Setup};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

pub(crate) fn tests() -> Vec<Test> {
    let needs = [NEED_OF_LINK, Need::Program("iptables"), Need::Program("ip"), Need::Of(why_no_queue)];
    hopline_harness::tests!(needs;
        the_first_connection_uses_tcp_and_later_ones_tpa,
        both_addresses_are_kept_over_either_transport,
        destinations_that_the_exit_rejects_use_tcp,
        a_host_without_a_reachable_exit_is_connected_by_tcp,
        a_host_that_lost_its_exit_is_detected_by_the_next_handshake,
    )
    .into()
}

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 95, 0, 1);
const ENTRANCE: Ipv4Addr = Ipv4Addr::new(10, 95, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
const EXIT: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 2);
const CABLE: &str = "cable";
const EXIT_PORT: u16 = 7172;
const DIVERTED_TO: u16 = 7001;
const QUEUE: u16 = 7;

/// A client and an entrance at one end of a link, an exit and a server at the other.
struct World {
    client: Namespace,
    link: NamespaceLink,
    server: Namespace,
    listener: TcpListener,
}

/// An entrance with its announcement service.
struct AnnouncedEntrance {
    entrance: RunningService,
    announcements: RunningService,
    known: HostProtocols,
}

impl World {
    fn new() -> Self {
        let air = Emulation::delay(Span::from_millis(2)).with_rate(Some(20_000_000));
        let setup = Setup::new(air.clone(), air, 7);
        let link = NamespaceLink::with(setup).unwrap();
        let [client, server] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
        for (host, address, gateway, its, beyond) in [
            (&client, CLIENT, link.host(Side::A), ENTRANCE, "10.96.0.0/24"),
            (&server, SERVER, link.host(Side::B), EXIT, "10.95.0.0/24"),
        ] {
            veth::join([host, gateway], CABLE, Offload::SinglePackets).unwrap();
            host.run(|| up(CABLE, address, 24)).unwrap();
            gateway.run(|| up(CABLE, its, 24)).unwrap();
            ip(host, &format!("route add default via {its}"));
            ip(gateway, &format!("route add {beyond} dev {LINK}"));
            // Packets with the mark are local, whatever their destination.
            ip(gateway, "rule add fwmark 1 lookup 100");
            ip(gateway, "route add local 0.0.0.0/0 dev lo table 100");
            let find = "-w -t mangle -A PREROUTING -p tcp -m socket --transparent -j MARK --set-mark 1";
            succeed(gateway, "iptables", find);
            forwards(gateway);
        }
        let divert = format!("-i {CABLE} -p tcp -j TPROXY --on-port {DIVERTED_TO} --tproxy-mark 1");
        succeed(link.host(Side::A), "iptables", &format!("-w -t mangle -A PREROUTING {divert}"));
        let listener = server.run(|| TcpListener::bind((SERVER, 80)).unwrap()).unwrap();
        Self { client, link, server, listener }
    }

    /// Starts the exit, and the announcer for the hosts behind it.
    fn exit(&self, sources: SourceAddress) -> [RunningService; 2] {
        let address = self.link.address_b().into();
        let allowed = Allowed::Listed(vec![format!("{SERVER} 80").parse().unwrap()]);
        let config = ExitConfig {
            listen: (address, EXIT_PORT).into(),
            allowed,
            source_address: sources,
            ..exit_config(address)
        };
        let exit = self.link.run_in_b(|| RunningService::new(Exit::open(&config).unwrap()));
        let answers = announcements(self.link.host(Side::B), Role::Server, ["FORWARD -o", "FORWARD -i"]);
        [exit, RunningService::new(answers)]
    }

    fn entrance(&self, sources: SourceAddress) -> AnnouncedEntrance {
        let announcements = announcements(self.link.host(Side::A), Role::Client, ["OUTPUT -o", "INPUT -i"]);
        let way = ListenerConfig::Transparent { listen: (Ipv4Addr::UNSPECIFIED, DIVERTED_TO).into() };
        let exit = (self.link.address_b(), EXIT_PORT).into();
        let config = EntranceConfig {
            source_address: sources,
            fallback_after: Duration::from_millis(500),
            ..entrance_config(way, exit)
        };
        let known = announcements.host_protocols();
        let open =
            || RunningService::new(Entrance::open(&config).unwrap().restrict_to_tpa_hosts(known.clone()));
        let entrance = self.link.run_in_a(open);
        AnnouncedEntrance { entrance, announcements: RunningService::new(announcements), known }
    }

    /// Connects the client to the server, and transfers bytes in both directions. Returns the client's address and the
    /// one that the server sees.
    fn connect(&self) -> [SocketAddr; 2] {
        let client = self.client.run(|| connect((SERVER, 80).into())).unwrap();
        let server = accept(&self.listener);
        let addresses = [client.local_addr().unwrap(), server.peer_addr().unwrap()];
        exchange(&client, &server, 50_000);
        addresses
    }
}

fn announcements(host: &Namespace, role: Role, places: [&str; 2]) -> Announcements {
    for place in places {
        let rule = format!(
            "-w -A {place} {LINK} -p tcp --tcp-flags SYN SYN -j NFQUEUE --queue-num {QUEUE} --queue-bypass"
        );
        succeed(host, "iptables", &rule);
    }
    open_with_retries(host, || Announcements::open(&Config::new(role, LINK, QUEUE)))
}

/// Waits until the entrance has carried these numbers of connections: by TCP for lack of an announcement, by TPA, and by
/// TCP for lack of an exit.
fn await_carried(entrance: &RunningService, expected: [u64; 3]) {
    let names = ["unannounced_connections", "tpa_connections", "tcp_connections"];
    for (name, value) in names.into_iter().zip(expected) {
        entrance.await_metric(name, |figure| figure == value);
    }
}

fn the_first_connection_uses_tcp_and_later_ones_tpa() {
    let world = World::new();
    let (_exit, asking) = (world.exit(SourceAddress::Gateway), world.entrance(SourceAddress::Gateway));
    world.connect();
    await_carried(&asking.entrance, [1, 0, 0]);
    assert_eq!(asking.known.protocols_of(SERVER.into()), Some(TransportSupport::Tpa));
    for _ in 0..2 {
        world.connect();
    }
    await_carried(&asking.entrance, [1, 2, 0]);
    asking.announcements.await_metric("tpa_answers", |figure| figure == 1);
}

fn both_addresses_are_kept_over_either_transport() {
    let world = World::new();
    let (_exit, asking) = (world.exit(SourceAddress::Client), world.entrance(SourceAddress::Client));
    for carried_so_far in [[1, 0, 0], [1, 1, 0]] {
        let [client, seen] = world.connect();
        assert_eq!(client.ip(), seen.ip());
        await_carried(&asking.entrance, carried_so_far);
    }
}

fn destinations_that_the_exit_rejects_use_tcp() {
    let world = World::new();
    let (exit, asking) = (world.exit(SourceAddress::Gateway), world.entrance(SourceAddress::Gateway));
    world.connect();
    let listener = world.server.run(|| TcpListener::bind((SERVER, 81)).unwrap()).unwrap();
    let client = world.client.run(|| connect((SERVER, 81).into())).unwrap();
    let server = accept(&listener);
    exchange(&client, &server, 50_000);
    await_carried(&asking.entrance, [2, 0, 0]);
    assert_eq!(asking.known.protocols_of(SERVER.into()), Some(TransportSupport::Tpa));
    exit[0].await_metric("not_allowed_requests", |figure| figure == 1);
}

fn a_host_without_a_reachable_exit_is_connected_by_tcp() {
    let world = World::new();
    let asking = world.entrance(SourceAddress::Gateway);
    for _ in 0..2 {
        world.connect();
    }
    assert_eq!(asking.known.protocols_of(SERVER.into()), Some(TransportSupport::TcpOnly));
    // The exit is not considered absent, since no connection needed it.
    await_carried(&asking.entrance, [2, 0, 0]);
    assert_eq!(asking.entrance.metric("exit_absences"), 0);
    // A destination without such a host is refused as usual.
    let refused = world.client.run(|| connect((SERVER, 81).into())).unwrap();
    assert_reset(&refused);
}

fn a_host_that_lost_its_exit_is_detected_by_the_next_handshake() {
    let world = World::new();
    let exit = world.exit(SourceAddress::Gateway);
    let asking = world.entrance(SourceAddress::Gateway);
    for _ in 0..2 {
        world.connect();
    }
    await_carried(&asking.entrance, [1, 1, 0]);
    drop(exit);
    asking.entrance.await_metric("exit_present", |figure| figure == 0);
    // The host still counts as one with TPA, which is tried; then its handshake shows the change.
    world.connect();
    await_carried(&asking.entrance, [1, 1, 1]);
    assert_eq!(asking.known.protocols_of(SERVER.into()), Some(TransportSupport::TcpOnly));
    world.connect();
    await_carried(&asking.entrance, [2, 1, 1]);
}

/// Returns the reason that NFQUEUE is not available, found by trial.
fn why_no_queue() -> Option<String> {
    let tried = || Namespace::new()?.run(|| Queue::open(&nfqueue::Config::new(0, "lo")).map(drop))?;
    tried().err().map(|error| error.to_string())
}
