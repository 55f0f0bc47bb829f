//! A router that announces, or answers, for the host behind it.

use crate::announce::world::*;
use hopline_linux::Namespace;
use hopline_linux::veth::{self, Trains};
use hopline_middlebox::announce::{Role, Speaks};
use hopline_testkit::namespace::host::{address, forward, ip};
use std::net::Ipv4Addr;

const INSIDE: &str = "inside";
const HOST: Ipv4Addr = Ipv4Addr::new(10, 94, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 94, 0, 2);

/// A host behind `router`; the other host finds it there.
fn behind(router: &Namespace, at: Ipv4Addr, other: &Namespace) -> Namespace {
    let host = Namespace::new().unwrap();
    veth::join([&host, router], INSIDE, Trains::Never).unwrap();
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
    let caller = world.announcing();
    let router = Standing::at(&world.called, Role::Called, Hooks::Forward);
    talk_between(&world.caller, &host, HOST.into());
    assert_eq!(caller.known.speaks(HOST.into()), Some(Speaks::Tpa));
    // The router's own connections were not asked for.
    talk(&world, CALLED);
    assert_eq!(caller.known.speaks(CALLED.into()), Some(Speaks::TcpOnly));
    assert_eq!(wrong_checksums(&host), 0);
    assert_eq!(router.end().figure("heard_syns"), 1);
    caller.end();
}

pub(crate) fn a_router_calls_for_the_host_behind_it() {
    let world = World::new();
    let host = behind(&world.caller, CALLER, &world.called);
    let router = Standing::at(&world.caller, Role::Caller, Hooks::Forward);
    let called = world.answering();
    talk_between(&host, &world.called, CALLED.into());
    assert_eq!(router.known.speaks(CALLED.into()), Some(Speaks::Tpa));
    assert_eq!([&host, &world.called].map(wrong_checksums), [0, 0]);
    assert_eq!(router.end().figure("announced_syns"), 1);
    called.end();
}
