//! Handshakes of two kernels over one cable.

use crate::announce::world::*;
use hopline_core::Duration as Span;
use hopline_linux::Error;
use hopline_middlebox::announce::{Announcements, Config, Role, TransportSupport};
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
    let (caller, called) = (world.announcer(), world.responder());
    let sights = [
        HandshakeCounter::of(&world.called, HandshakeFilter::Pass),
        HandshakeCounter::of(&world.caller, HandshakeFilter::Pass),
    ];
    assert_eq!(caller.known.protocols_of(ip), None);
    transfer(&world, ip);
    assert_eq!(caller.known.protocols_of(ip), Some(TransportSupport::Tpa));
    // The called host learns nothing: a forged SYN could deceive it.
    assert_eq!(called.known.protocols_of(CALLER.into()), None);
    for sight in sights {
        assert!(sight.counts()[0] >= 1, "the call and the answer bear marks on the way");
    }
    // Both kernels verify the checksums of altered packets.
    assert_eq!([&world.caller, &world.called].map(wrong_checksums), [0, 0]);
    let (caller, called) = (caller.end(), called.end());
    assert_eq!(
        ["announced_syns", "tpa_answers", "tcp_only_answers"].map(|name| caller.metric(name)),
        [1, 1, 0]
    );
    assert_eq!(called.metric("heard_syns"), 1);
    assert!(called.metric("answered_syns") >= 1, "more where the answer was sent again");
}

pub(crate) fn a_host_that_does_not_answer_is_called_unmarked_afterwards() {
    let world = World::new();
    let caller = world.announcer();
    let sight = HandshakeCounter::of(&world.called, HandshakeFilter::Pass);
    transfer(&world, CALLED);
    assert_eq!(caller.known.protocols_of(CALLED.into()), Some(TransportSupport::TcpOnly));
    assert_eq!(sight.counts()[0], 1);
    assert_eq!(wrong_checksums(&world.called), 0, "a marked call has the right one");
    transfer(&world, CALLED);
    assert_eq!(sight.counts()[0], 1);
    let ended = caller.end();
    assert_eq!(["announced_syns", "tcp_only_answers"].map(|name| ended.metric(name)), [1, 1]);
    assert!(ended.metric("untouched_syns") >= 2, "the second call, and the answer to it");
}

pub(crate) fn knowledge_expires() {
    let world = World::new();
    let mut config = Config::new(Role::Client, CABLE, QUEUE);
    config.machine.host_lifetime = Span::from_millis(300);
    let caller = RunningAnnouncer::with(&world.caller, &config, Hooks::Local);
    transfer(&world, CALLED);
    sleep(Duration::from_millis(301));
    assert_eq!(caller.known.protocols_of(CALLED.into()), None);
    // The host has learned to speak TPA meanwhile.
    let _called = world.responder();
    transfer(&world, CALLED);
    let ended = caller.end();
    assert_eq!(
        ["announced_syns", "tcp_only_answers", "tpa_answers"].map(|name| ended.metric(name)),
        [2, 1, 1]
    );
}

pub(crate) fn an_unanswered_syn_is_marked_once() {
    let world = World::new();
    let caller = world.announcer();
    let sight = HandshakeCounter::of(&world.called, HandshakeFilter::DropAll);
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
    assert_eq!(caller.known.protocols_of(CALLED.into()), None, "silence teaches nothing");
    assert_eq!(caller.end().metric("announced_syns"), 1);
}

pub(crate) fn a_path_that_drops_marked_syns_costs_one_retransmission() {
    let world = World::new();
    let (caller, called) = (world.announcer(), world.responder());
    let sight = HandshakeCounter::of(&world.called, HandshakeFilter::DropMarked);
    transfer(&world, CALLED);
    assert_eq!(sight.counts()[0], 1, "the first one was dropped");
    assert_eq!(caller.known.protocols_of(CALLED.into()), Some(TransportSupport::TcpOnly));
    assert_eq!(called.end().metric("heard_syns"), 0);
    // From now on no handshake is marked, and none is lost.
    for _ in 0..3 {
        transfer(&world, CALLED);
    }
    assert_eq!(sight.counts()[0], 1);
    assert_eq!(caller.end().metric("announced_syns"), 1);
}

pub(crate) fn handshakes_pass_after_the_service_has_ended() {
    let world = World::new();
    let (caller, called) = (world.announcer(), world.responder());
    let known = caller.known.clone();
    let sight = HandshakeCounter::of(&world.called, HandshakeFilter::Pass);
    caller.end();
    called.end();
    transfer(&world, CALLED);
    assert_eq!(sight.counts()[0], 0);
    assert_eq!(known.protocols_of(CALLED.into()), None);
}

pub(crate) fn packets_that_do_not_cross_the_interface_are_unchanged() {
    let world = World::new();
    let elsewhere = Config::new(Role::Client, "lo", QUEUE);
    let caller = RunningAnnouncer::with(&world.caller, &elsewhere, Hooks::Local);
    let sight = HandshakeCounter::of(&world.called, HandshakeFilter::Pass);
    transfer(&world, CALLED);
    assert_eq!(sight.counts()[0], 0);
    let ended = caller.end();
    assert!(ended.metric("unseen_syns") >= 2);
    assert_eq!(ended.metric("announced_syns"), 0);
}

pub(crate) fn a_returning_interface_is_used_again() {
    let world = World::new();
    let (caller, _called) = (world.announcer(), world.responder());
    ip(&world.caller, &format!("link delete {CABLE}"));
    until("it is said", || caller.has_notice("the interface cable has gone"));
    world.join();
    until("it is said", || caller.has_notice("exists again"));
    transfer(&world, CALLED);
    assert!(caller.end().metric("announced_syns") >= 1);
}

pub(crate) fn errors_are_named() {
    let world = World::new();
    let open = |interface| {
        let config = Config::new(Role::Client, interface, QUEUE);
        world.caller.run(|| Announcements::open(&config).map(drop)).unwrap()
    };
    assert!(matches!(open("nowhere"), Err(Error::NoSuchInterface { .. })));
    let caller = world.announcer();
    let taken = open(CABLE).unwrap_err().to_string();
    assert!(taken.contains("NFQUEUE 7"), "{taken}");
    assert_eq!(caller.known.protocols_of(Ipv4Addr::LOCALHOST.into()), None);
    caller.end();
}
