//! A router that announces, or answers, for the host behind it.

use crate::announce::world::*;
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Offload};
use hopline_middlebox::announce::{Role, TransportSupport};
use hopline_testkit::namespace::host::{address, forward, ip};
use std::net::Ipv4Addr;

const INSIDE: &str = "inside";
const HOST: Ipv4Addr = Ipv4Addr::new(10, 94, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 94, 0, 2);

/// A host behind `router`; the other host finds it there.
fn behind(router: &Namespace, at: Ipv4Addr, other: &Namespace) -> Namespace {
    let host = Namespace::new().unwrap();
    veth::join([&host, router], INSIDE, Offload::SinglePackets).unwrap();
    host.run(|| address(INSIDE, HOST, 24)).unwrap();
    router.run(|| address(INSIDE, ROUTER, 24)).unwrap();
    ip(&host, &format!("route add default via {ROUTER}"));
    ip(other, &format!("route add 10.94.0.0/24 via {at}"));
    forward(router);
    host
}

pub(crate) fn a_router_answers_for_the_host_behind_it() {
    let world = World::new();
    let host = behind(&world.called, CALLED, &world.caller);
    let caller = world.announcer();
    let router = RunningAnnouncer::at(&world.called, Role::Server, Hooks::Forward);
    transfer_between(&world.caller, &host, HOST.into());
    assert_eq!(caller.known.protocols_of(HOST.into()), Some(TransportSupport::Tpa));
    // The router's own connections were not asked for.
    transfer(&world, CALLED);
    assert_eq!(caller.known.protocols_of(CALLED.into()), Some(TransportSupport::TcpOnly));
    assert_eq!(wrong_checksums(&host), 0);
    assert_eq!(router.end().metric("heard_syns"), 1);
    caller.end();
}

pub(crate) fn a_router_announces_for_the_host_behind_it() {
    let world = World::new();
    let host = behind(&world.caller, CALLER, &world.called);
    let router = RunningAnnouncer::at(&world.caller, Role::Client, Hooks::Forward);
    let called = world.responder();
    transfer_between(&host, &world.called, CALLED.into());
    assert_eq!(router.known.protocols_of(CALLED.into()), Some(TransportSupport::Tpa));
    assert_eq!([&host, &world.called].map(wrong_checksums), [0, 0]);
    assert_eq!(router.end().metric("announced_syns"), 1);
    called.end();
}
