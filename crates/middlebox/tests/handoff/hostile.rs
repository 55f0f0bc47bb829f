//! Strangers, and what they repeat.

use crate::handoff::stream::Stream;
use crate::handoff::world::{FORWARD, HOME, HOST, PORT, REGISTER, Reception, SERVER, STATIONS, World};
use hopline_core::Duration as Span;
use hopline_linux::Namespace;
use hopline_middlebox::handoff::Scheme;
use hopline_testkit::streams::until;
use hopline_wire::handoff::{Message, MessageBody, PriorReception, RequestAction, TaggedMessage};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;

const LONG: Span = Span::from_secs(3600);

/// Sends a message as an attacker would, in the namespace of a host and from an address of choice.
fn say(as_one_of: &Namespace, from: Ipv4Addr, to: Ipv4Addr, bytes: &[u8], times: u32) {
    let socket = as_one_of.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        socket.set_broadcast(true).unwrap();
        let interface = match (from, to) {
            (SERVER, _) => "cable",
            (_, HOME) => "wire",
            _ => "radio",
        };
        socket.bind_device(Some(interface.as_bytes())).unwrap();
        socket.bind(&SocketAddrV4::new(from, PORT).into()).unwrap();
        socket
    });
    let (socket, to) = (socket.unwrap(), SocketAddrV4::new(to, PORT).into());
    (0..times).for_each(|_| drop(socket.send_to(bytes, &to)));
}

/// With a proof that is none.
fn forged(says: MessageBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    TaggedMessage { message: Message { number: u64::MAX, body: says }, tag: [9; 16] }.emit(&mut bytes);
    bytes
}

pub(crate) fn forged_messages_are_counted_and_ignored() {
    let world = World::new(Reception::CurrentStation);
    let mut all = world.deployment(Scheme::Registration, LONG);
    until("a registration", || all.home.metric("registrations") > 0);
    let station = world.air.station().unwrap();
    let lifetime = Span::from_secs(60);
    let request = |asks| forged(MessageBody::Request { mobile: HOST, lifetime, action: asks });
    let elsewhere =
        RequestAction::Register { care_of: STATIONS[1 - station], prior_reception: PriorReception::None };
    // All hosts share the radio. An attacker in the mobile host's namespace is one that uses the address of that host.
    say(
        &world.stations[1 - station],
        STATIONS[1 - station],
        Ipv4Addr::BROADCAST,
        &forged(MessageBody::Beacon { station: STATIONS[1 - station] }),
        5,
    );
    say(&world.mobile, HOST, STATIONS[station], &request(RequestAction::Stop), 5);
    say(&world.mobile, HOST, STATIONS[station], &request(elsewhere), 5);
    say(&world.stations[1 - station], STATIONS[1 - station], HOME, &request(elsewhere), 5);
    let stream = Stream::run(&world, many(100));
    all.end();
    stream.assert_complete("hostile");
    assert_eq!(all.mobile.metric("forged"), 5);
    assert_eq!(all.stations[station].metric("forged"), 10);
    assert_eq!(all.home.metric("forged"), 5);
    assert_eq!(
        (all.mobile.metric("handoffs"), all.stations[1 - station].metric("delivered_packets")),
        (0, 0)
    );
}

pub(crate) fn repeated_messages_are_rejected() {
    thread::scope(|scope| {
        scope.spawn(|| repeat(Scheme::Registration, REGISTER));
        // Here, as it checks something that depends on time.
        repeat(Scheme::Multicast, FORWARD);
    });
}

fn repeat(scheme: Scheme, kind: u8) {
    let world = World::new(Reception::AllStations);
    let mut all = world.deployment(scheme, Span::from_millis(300));
    until("three handoffs", || world.air.changes().len() > 3);
    let first = world.air.first_request(kind);
    STATIONS.iter().for_each(|&station| say(&world.mobile, HOST, station, &first, 3));
    say(&world.stations[0], STATIONS[0], HOME, &first, 3);
    let stream = Stream::run(&world, many(100));
    all.end();
    assert!(all.sum_of_stations("replayed") >= 3, "{}", all.stations[0].show());
    if scheme == Scheme::Registration {
        // Three said here, and what a station has passed on that did not know the host any more.
        assert!(all.home.metric("replayed") >= 3, "{}", all.home.show());
    } else {
        assert_eq!(all.home.metric("foreign"), 3);
        stream.assert_complete("hostile");
    }
}

pub(crate) fn a_flood_is_counted_and_packets_continue() {
    let world = World::new(Reception::AllStations);
    let mut all = world.deployment(Scheme::Multicast, LONG);
    until("a first station", || world.air.station().is_some());
    let stop = forged(MessageBody::Request {
        mobile: HOST,
        lifetime: Span::from_secs(60),
        action: RequestAction::Stop,
    });
    let stream = thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                say(&world.server, SERVER, HOME, &stop, 500);
                say(&world.server, SERVER, HOME, b"nonsense", 500);
            }
        });
        Stream::run(&world, many(200))
    });
    all.end();
    assert!(all.home.metric("forged") > 1000 && all.home.metric("malformed") > 1000, "{}", all.home.show());
    assert_eq!(all.home.metric("unsent_messages"), 0, "nothing is answered");
    stream.assert_complete("hostile");
}

/// Enough after so many datagrams.
pub(crate) fn many(datagrams: u32) -> impl FnMut() -> bool + Send {
    let mut sent = 0;
    move || {
        sent += 1;
        sent > datagrams
    }
}
