//! Attackers that forge, repeat, cut or flood.

use super::net::{A, App, B, Net, Sent, address, bytes, exchange, transport};
use super::{keys, shared};
use crate::{
    ConnectionKey, Dropped, Ecn, Host, HostConfig, InitiatorConfig, Path, ResetKey, ResponderConfig, Seed,
    State,
};
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{ConnectionId, HandshakeMessage};
use proptest::prelude::*;

const ATTACKER: ([u8; 4], u16) = ([10, 6, 6, 6], 666);

/// A connection that has carried something, and all its datagrams.
fn recorded_connection() -> (Net, [ConnectionKey; 2], Vec<Sent>) {
    let mut net = Net::pair(&keys(), transport());
    net.log = Some(Vec::new());
    let at = net.open(&keys(), transport());
    let now = net.now;
    net.conn(A, at[A]).send(now, vec![1; 5000].into()).unwrap();
    net.conn(B, at[B]).send(now, vec![2; 5000].into()).unwrap();
    net.run_for(Duration::from_secs(1));
    let log = net.log.take().unwrap();
    (net, at, log)
}

/// It still carries data in both directions, and its ends are where they were.
#[track_caller]
fn assert_works(net: &mut Net, at: [ConnectionKey; 2]) {
    let now = net.now;
    for node in [A, B] {
        let conn = net.conn(node, at[node]);
        let _ = std::iter::from_fn(|| conn.recv()).count();
        conn.send(now, bytes("still there")).unwrap();
    }
    net.run_for(Duration::from_secs(2));
    for node in [A, B] {
        let conn = net.conn(node, at[node]);
        assert_eq!(conn.recv().as_deref(), Some(&b"still there"[..]));
        assert_eq!((conn.state(), conn.path().peer), (State::Established, address(1 - node)));
    }
}

#[test]
fn forged_cut_and_repeated_datagrams_are_counted_and_change_nothing() {
    let (mut net, at, log) = recorded_connection();
    let before = [A, B].map(|node| net.conn(node, at[node]).stats().packets_received);
    let mut sealed = 0;
    for sent in &log {
        let to = if sent.to == address(A) { A } else { B };
        let mut forged = sent.bytes.clone();
        *forged.last_mut().unwrap() ^= 1;
        let mut from = SocketAddr::from(ATTACKER);
        if sent.bytes.starts_with(b"TPAW") {
            forged.truncate(30);
            // From elsewhere, a first message is another one, and is answered.
            from = sent.from;
        } else {
            sealed += 1;
        }
        for datagram in [&sent.bytes[..], &forged, &sent.bytes[..20.min(sent.bytes.len())], &[], b"TPAW"] {
            let drops = net.nodes[to].host.stats().drops.total();
            net.inject(from, sent.to, datagram);
            net.run_for(Duration::from_millis(1));
            let stats = net.nodes[to].host.stats();
            assert_eq!(stats.drops.total(), drops + 1, "{datagram:?} of {sent:?}");
        }
    }
    let unopened: u64 =
        [A, B].iter().map(|node| net.nodes[*node].host.stats().drops.of(Dropped::Unopened)).sum();
    assert_eq!(unopened, 3 * sealed, "a copy, a forgery and a piece of each");
    let rejections: u64 = [A, B].iter().map(|node| net.conn(*node, at[*node]).rejections().total()).sum();
    assert_eq!(rejections, unopened);
    // A repeated third message is taken as a sign that the initiator has received nothing, and the initiator
    // gets an empty datagram.
    let [at_a, at_b] = [A, B].map(|node| net.conn(node, at[node]).stats().packets_received - before[node]);
    assert_eq!((at_a, at_b), (3, 0));
    assert_works(&mut net, at);
}

#[test]
fn a_recorded_handshake_opens_no_new_connection() {
    let (_, _, log) = recorded_connection();
    let mut host = Host::new(HostConfig::default(), Seed::new([99; 32])).unwrap();
    host.listen(keys()[B].clone(), transport(), 16).unwrap();
    for sent in log.iter().filter(|sent| sent.to == address(B)) {
        host.handle_datagram(Instant::ZERO, Path::to(sent.from), Ecn::NotCapable, &mut sent.bytes.clone());
    }
    assert_eq!((host.stats().accepted, host.poll_event()), (0, None));
}

#[test]
fn a_third_party_cannot_forge_a_stateless_reset() {
    let (mut net, at, log) = recorded_connection();
    let ids: std::collections::BTreeSet<ConnectionId> = log
        .iter()
        .filter(|sent| !sent.bytes.starts_with(b"TPAW"))
        .filter_map(|sent| ConnectionId::new(sent.bytes[..8].try_into().unwrap()))
        .collect();
    assert_eq!(ids.len(), 2);
    for id in ids {
        for token in [[0; 16], [7; 16]] {
            for node in [A, B] {
                net.inject(
                    address(1 - node),
                    address(node),
                    &HandshakeMessage::StatelessReset { id, token }.to_bytes(),
                );
            }
        }
    }
    net.run_for(Duration::from_secs(1));
    let unproven: u64 =
        [A, B].iter().map(|node| net.nodes[*node].host.stats().drops.of(Dropped::Unproven)).sum();
    assert_eq!(unproven, 4);
    assert_works(&mut net, at);
}

#[test]
fn answers_to_unknown_datagrams_are_no_longer_than_those_and_rate_limited() {
    let config = HostConfig { reset_key: Some(ResetKey::new([1; 32])), ..HostConfig::default() };
    let mut host = Host::new(config, Seed::new([1; 32])).unwrap();
    let mut buffer = Vec::new();
    let mut say = |host: &mut Host, datagram: &[u8]| {
        let thief = Path::to(SocketAddr::from(ATTACKER));
        host.handle_datagram(Instant::ZERO, thief, Ecn::NotCapable, &mut datagram.to_vec());
        host.poll_transmit(Instant::ZERO, &mut buffer)?;
        assert!(buffer.len() <= datagram.len());
        Some(core::mem::take(&mut buffer))
    };
    assert!((0..29).all(|len| say(&mut host, &vec![5; len]).is_none()));
    let answer = say(&mut host, &[5; 29]).expect("it is long enough");
    assert_eq!(say(&mut host, &answer), None, "two hosts would go on for ever");
    let answered = (0..5000).filter(|_| say(&mut host, &[5; 100]).is_some()).count();
    assert_eq!(answered, 999, "in a second");
    assert_eq!(host.stats().drops.of(Dropped::Unknown), 29 - 8 + 1 + 5000);
}

#[test]
fn a_flood_of_handshakes_takes_bounded_memory_and_honest_initiators_connect() {
    let responder = ResponderConfig::default().with_max_half_open(20).with_cookie_threshold(10);
    let config = HostConfig { responder, ..HostConfig::default() };
    let mut host = Host::new(config.clone(), Seed::new([1; 32])).unwrap();
    host.listen(keys()[B].clone(), transport(), 16).unwrap();
    let mut caller = Host::new(HostConfig::default(), Seed::new([2; 32])).unwrap();
    caller.connect(Instant::ZERO, Path::to(address(B)), keys()[A].clone(), transport()).unwrap();
    let mut first = Vec::new();
    let _ = caller.poll_transmit(Instant::ZERO, &mut first);
    // The answers are never fetched.
    for number in 0..5000u32 {
        let from = Path::to(SocketAddr::new(core::net::Ipv4Addr::from(number | 0x1e00_0000).into(), 1));
        host.handle_datagram(Instant::ZERO, from, Ecn::NotCapable, &mut first.clone());
    }
    assert_eq!(host.stats().half_open, 10);
    assert!(host.stats().drops.of(Dropped::Unfetched) > 900, "{:?}", host.stats());

    let mut net = Net::pair(&keys(), transport());
    net.nodes[B].host = host;
    let at_a = net.connect(&keys(), transport());
    assert!(net.run_while(Instant::from_secs(5), |net| net.accepted(B).is_none()));
    let at_b = net.accepted(B).unwrap();
    let mut apps = [App::new(A, at_a, 1000), App::new(B, at_b, 1000)];
    assert!(exchange(&mut net, &mut apps, Instant::from_secs(10)));
}

#[test]
fn an_initiator_connects_during_a_flood() {
    // A recorded first message, repeated from any address; and the same changed each time, which cannot be
    // told from an honest call.
    let recorded = |_: u32, _: &mut [u8]| {};
    let forged = |number: u32, call: &mut [u8]| call[60..64].copy_from_slice(&number.to_be_bytes());
    assert_eq!(opened_under_flood(recorded), 0, "at the first call");
    let again = InitiatorConfig::default().initial_wait().as_nanos() / 1_000_000;
    assert!([0, again].contains(&opened_under_flood(forged)), "at the second call at the latest");
}

/// Returns the number of milliseconds after which a caller has a connection, while in each of them 80 calls
/// come from anywhere.
fn opened_under_flood(mut forge: impl FnMut(u32, &mut [u8])) -> u64 {
    const BEGIN: u64 = 1000;
    let mut host = Host::new(HostConfig::default(), Seed::new([1; 32])).unwrap();
    host.listen(keys()[B].clone(), transport(), 16).unwrap();
    let call = |host: &mut Host, now| {
        host.connect(now, Path::to(address(B)), keys()[A].clone(), transport()).unwrap();
    };
    let (mut recorder, mut first) =
        (Host::new(HostConfig::default(), Seed::new([2; 32])).unwrap(), Vec::new());
    call(&mut recorder, Instant::ZERO);
    let _ = recorder.poll_transmit(Instant::ZERO, &mut first);
    let mut caller = Host::new(HostConfig::default(), Seed::new([3; 32])).unwrap();
    let mut number = 0;
    for ms in 0..10_000 {
        let now = Instant::from_millis(ms);
        for _ in 0..80 {
            number += 1;
            let from = core::net::Ipv4Addr::from(0x1e00_0000 + number);
            let mut forged = first.clone();
            forge(number, &mut forged);
            host.handle_datagram(now, Path::to((from, 1).into()), Ecn::NotCapable, &mut forged);
        }
        if ms == BEGIN {
            call(&mut caller, now);
        }
        caller.handle_timeout(now);
        carry(&mut caller, &mut host, now);
        if host.stats().accepted > 0 {
            return ms - BEGIN;
        }
    }
    panic!("never: {:?}", host.stats());
}

/// Delivers the datagrams between a caller and a host, without delay. Datagrams to other addresses are lost.
fn carry(caller: &mut Host, host: &mut Host, now: Instant) {
    let mut said = Vec::new();
    loop {
        let mut quiet = true;
        while caller.poll_transmit(now, &mut said).is_some() {
            host.handle_datagram(now, Path::to(address(A)), Ecn::NotCapable, &mut said);
            said.clear();
            quiet = false;
        }
        while let Some(transmit) = host.poll_transmit(now, &mut said) {
            if transmit.path.peer == address(A) {
                caller.handle_datagram(now, Path::to(address(B)), Ecn::NotCapable, &mut said);
                quiet = false;
            }
            said.clear();
        }
        if quiet {
            return;
        }
    }
}

#[test]
fn a_host_that_does_not_listen_accepts_nothing() {
    let mut net = Net::new(2, &HostConfig::default(), &Default::default(), 1);
    net.connect(&shared(), transport());
    net.run_for(Duration::from_millis(10));
    let stats = net.nodes[B].host.stats();
    assert_eq!((stats.drops.of(Dropped::NotListening), stats.connections), (1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn arbitrary_datagrams_do_not_panic(
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<(u16, u8, u16)>()), 1..60),
        raw in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
    ) {
        let (mut net, at, log) = recorded_connection();
        for (which, (place, value, len)) in noise {
            let sent = which.get(&log);
            let mut bytes = sent.bytes.clone();
            let place = usize::from(place) % bytes.len();
            bytes[place] ^= value;
            bytes.truncate(bytes.len().min(usize::from(len)));
            net.inject(sent.from, sent.to, &bytes);
        }
        for bytes in raw {
            net.inject(address(A), address(B), &bytes);
            net.inject(address(B), address(A), &[b"TPAW", &bytes[..]].concat());
        }
        net.run_for(Duration::from_secs(1));
        assert_works(&mut net, at);
    }
}
