//! Handshakes of two kernels over one cable.

use crate::announce::world::*;
use hopline_core::Duration as Span;
use hopline_linux::Error;
use hopline_middlebox::announce::{Announcements, Config, Role, Speaks};
use hopline_testkit::namespace::host::ip;
use hopline_testkit::streams::until;
use socket2::{Domain, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::sleep;
use std::time::Duration;

pub(crate) fn two_ends_learn_each_other_over_ipv4() {
    two_ends_learn_each_other(CALLED.into());
}

pub(crate) fn two_ends_learn_each_other_over_ipv6() {
    two_ends_learn_each_other(CALLED_V6.into());
}

fn two_ends_learn_each_other(ip: IpAddr) {
    let world = World::new();
    let (caller, called) = (world.announcing(), world.answering());
    let sights = [Sight::of(&world.called, Seen::Passes), Sight::of(&world.caller, Seen::Passes)];
    assert_eq!(caller.known.speaks(ip), None);
    talk(&world, ip);
    assert_eq!(caller.known.speaks(ip), Some(Speaks::Tpa));
    // The called host learns nothing: a forged SYN could deceive it.
    assert_eq!(called.known.speaks(CALLER.into()), None);
    for sight in sights {
        assert!(sight.counts()[0] >= 1, "the call and the answer bear marks on the way");
    }
    // Both kernels verify the checksums of altered packets.
    assert_eq!([&world.caller, &world.called].map(wrong_checksums), [0, 0]);
    let (caller, called) = (caller.end(), called.end());
    assert_eq!(
        ["announced_syns", "tpa_answers", "tcp_only_answers"].map(|name| caller.figure(name)),
        [1, 1, 0]
    );
    assert_eq!(called.figure("heard_syns"), 1);
    assert!(called.figure("answered_syns") >= 1, "more where the answer was sent again");
}

pub(crate) fn a_host_that_does_not_answer_is_called_without_a_mark_from_then_on() {
    let world = World::new();
    let caller = world.announcing();
    let sight = Sight::of(&world.called, Seen::Passes);
    talk(&world, CALLED);
    assert_eq!(caller.known.speaks(CALLED.into()), Some(Speaks::TcpOnly));
    assert_eq!(sight.counts()[0], 1);
    assert_eq!(wrong_checksums(&world.called), 0, "a marked call has the right one");
    talk(&world, CALLED);
    assert_eq!(sight.counts()[0], 1);
    let ended = caller.end();
    assert_eq!(["announced_syns", "tcp_only_answers"].map(|name| ended.figure(name)), [1, 1]);
    assert!(ended.figure("untouched_syns") >= 2, "the second call, and the answer to it");
}

pub(crate) fn what_is_remembered_is_forgotten_in_its_time() {
    let world = World::new();
    let mut config = Config::new(Role::Caller, CABLE, QUEUE);
    config.machine.remember = Span::from_millis(300);
    let caller = Standing::with(&world.caller, &config, Hooks::Local);
    talk(&world, CALLED);
    sleep(Duration::from_millis(301));
    assert_eq!(caller.known.speaks(CALLED.into()), None);
    // The host has learned to speak TPA meanwhile.
    let _called = world.answering();
    talk(&world, CALLED);
    let ended = caller.end();
    assert_eq!(
        ["announced_syns", "tcp_only_answers", "tpa_answers"].map(|name| ended.figure(name)),
        [2, 1, 1]
    );
}

pub(crate) fn a_call_that_nobody_answers_is_marked_once() {
    let world = World::new();
    let caller = world.announcing();
    let sight = Sight::of(&world.called, Seen::IsDropped);
    let socket = world
        .caller
        .run(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).unwrap();
            let begun = socket.connect(&SocketAddr::from((CALLED, 80)).into());
            assert_eq!(begun.unwrap_err().raw_os_error(), Some(libc::EINPROGRESS));
            socket
        })
        .unwrap();
    let [marked, plain] = sight.await_counts(|[_, plain]| plain >= 2);
    drop(socket);
    assert!(marked == 1 && plain >= 2, "{marked} {plain}");
    assert_eq!(caller.known.speaks(CALLED.into()), None, "silence teaches nothing");
    assert_eq!(caller.end().figure("announced_syns"), 1);
}

pub(crate) fn who_drops_marked_calls_costs_one_retransmission() {
    let world = World::new();
    let (caller, called) = (world.announcing(), world.answering());
    let sight = Sight::of(&world.called, Seen::MarkedIsDropped);
    talk(&world, CALLED);
    assert_eq!(sight.counts()[0], 1, "the first one was dropped");
    assert_eq!(caller.known.speaks(CALLED.into()), Some(Speaks::TcpOnly));
    assert_eq!(called.end().figure("heard_syns"), 0);
    // From now on no handshake is marked, and none is lost.
    for _ in 0..3 {
        talk(&world, CALLED);
    }
    assert_eq!(sight.counts()[0], 1);
    assert_eq!(caller.end().figure("announced_syns"), 1);
}

pub(crate) fn handshakes_pass_when_the_service_has_gone() {
    let world = World::new();
    let (caller, called) = (world.announcing(), world.answering());
    let known = caller.known.clone();
    let sight = Sight::of(&world.called, Seen::Passes);
    caller.end();
    called.end();
    talk(&world, CALLED);
    assert_eq!(sight.counts()[0], 0);
    assert_eq!(known.speaks(CALLED.into()), None);
}

pub(crate) fn what_does_not_cross_the_interface_is_left_alone() {
    let world = World::new();
    let elsewhere = Config::new(Role::Caller, "lo", QUEUE);
    let caller = Standing::with(&world.caller, &elsewhere, Hooks::Local);
    let sight = Sight::of(&world.called, Seen::Passes);
    talk(&world, CALLED);
    assert_eq!(sight.counts()[0], 0);
    let ended = caller.end();
    assert!(ended.figure("unseen_syns") >= 2);
    assert_eq!(ended.figure("announced_syns"), 0);
}

pub(crate) fn an_interface_that_vanishes_is_followed_when_it_returns() {
    let world = World::new();
    let (caller, _called) = (world.announcing(), world.answering());
    ip(&world.caller, &format!("link delete {CABLE}"));
    until("it is said", || caller.says("the interface cable has gone"));
    world.join();
    until("it is said", || caller.says("there again"));
    talk(&world, CALLED);
    assert!(caller.end().figure("announced_syns") >= 1);
}

pub(crate) fn mistakes_are_named() {
    let world = World::new();
    let open = |interface| {
        let config = Config::new(Role::Caller, interface, QUEUE);
        world.caller.run(|| Announcements::open(&config).map(drop)).unwrap()
    };
    assert!(matches!(open("nowhere"), Err(Error::NoSuchInterface { .. })));
    let caller = world.announcing();
    let taken = open(CABLE).unwrap_err().to_string();
    assert!(taken.contains("NFQUEUE 7"), "{taken}");
    assert_eq!(caller.known.speaks(Ipv4Addr::LOCALHOST.into()), None);
    caller.end();
}
