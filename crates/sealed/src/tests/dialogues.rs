//! Datagrams one by one: what opens a connection, and what becomes of it when one is lost.

use super::net::{A, App, B, Net, address, bytes, exchange, transport};
use super::{keys, keys_of, private, shared};
use crate::{
    CloseReason, Credentials, Ecn, Event, Failure, HostConfig, HostEvent, OpenFailure, ResponderConfig, State,
};
use hopline_core::{Duration, Instant};
use hopline_link::Emulation;
use hopline_secure::SessionConfig;
use hopline_wire::secure::DatagramKind;

/// Returns a letter for each datagram: `h` of a handshake, `s` sealed; upper case if A sent it.
fn shape(net: &Net) -> String {
    let letter = |handshake, from| match (handshake, from == address(A)) {
        (true, true) => 'H',
        (true, false) => 'h',
        (false, true) => 'S',
        (false, false) => 's',
    };
    let log = net.log.as_ref().expect("kept");
    log.iter()
        .map(|sent| letter(DatagramKind::of(&sent.bytes) == Some(DatagramKind::Handshake), sent.from))
        .collect()
}

fn read(net: &mut Net, node: usize, key: crate::ConnectionKey) -> Vec<u8> {
    let conn = net.conn(node, key);
    std::iter::from_fn(|| conn.recv()).flatten().collect()
}

#[test]
fn data_are_sent_with_the_first_sealed_datagram_after_one_round_trip() {
    for (credentials, opening) in [(shared(), "HhSs"), (keys(), "HhHSss")] {
        let mut net = Net::pair(&credentials, transport());
        net.log = Some(Vec::new());
        let key = net.connect(&credentials, transport());
        let now = net.now;
        net.conn(A, key).send(now, bytes("hello")).unwrap();
        net.run_for(Duration::from_millis(61));
        let accepted = net.accepted(B).expect("after a round trip and a half");
        assert_eq!(read(&mut net, B, accepted), b"hello");
        net.run_for(Duration::from_secs(5));
        assert_eq!(&shape(&net), opening, "and nothing else");
        let first = net.log.as_ref().unwrap().iter().find(|sent| sent.bytes[0..4] != *b"TPAW").unwrap();
        assert_eq!(first.at - now, Duration::from_millis(40));
        assert_eq!(
            net.events,
            [
                (A, HostEvent::Connection(key, Event::Connected)),
                (B, HostEvent::Accepted(accepted)),
                (B, HostEvent::Connection(accepted, Event::Connected)),
                (B, HostEvent::Connection(accepted, Event::Readable)),
                (A, HostEvent::Changed(key)), // The data have arrived.
            ]
        );
    }
}

#[test]
fn a_connection_without_data_is_confirmed_after_three_datagrams() {
    for credentials in [shared(), keys()] {
        let mut net = Net::pair(&credentials, transport());
        let [at_a, at_b] = net.open(&credentials, transport());
        assert_eq!(net.conn(A, at_a).state(), State::Established);
        assert_eq!(net.conn(B, at_b).state(), State::Established);
        net.run_for(Duration::from_secs(130));
        let next = net.next_time();
        assert!(next.is_none(), "an idle connection without keep-alive does nothing: {next:?}");
    }
}

#[test]
fn each_end_reports_the_key_of_its_peer() {
    let mut net = Net::pair(&keys(), transport());
    let [at_a, at_b] = net.open(&keys(), transport());
    let [peer_a, peer_b] = [net.conn(A, at_a).peer(), net.conn(B, at_b).peer()];
    assert_eq!((peer_a.key, peer_b.key), (Some(private(2).public()), Some(private(1).public())));
    assert_eq!(peer_b.fingerprint, Some(private(1).public().fingerprint()));
    assert_eq!((peer_a.address, peer_b.address), (address(B), address(A)));
    assert_eq!(
        net.conn(B, at_b).path().local,
        Some(address(B).ip()),
        "answers leave from where they were expected"
    );
}

#[test]
fn a_connection_opens_if_any_of_the_first_datagrams_are_lost() {
    for credentials in [shared(), keys()] {
        for first in 0..8 {
            for second in first..8 {
                let mut net = Net::pair(&credentials, transport());
                net.lose = [first, second].into();
                let at_a = net.connect(&credentials, transport());
                let limit = Instant::from_secs(20);
                assert!(net.run_while(limit, |net| net.accepted(B).is_none()), "{first}, {second} lost");
                let at_b = net.accepted(B).unwrap();
                let mut apps = [App::new(A, at_a, 3000), App::new(B, at_b, 5000)];
                assert!(exchange(&mut net, &mut apps, limit), "{first}, {second} lost");
                assert_eq!(apps.map(|app| app.got.received()), [5000, 3000]);
                net.run_for(Duration::from_secs(30));
                for (node, key) in [(A, at_a), (B, at_b)] {
                    let end = HostEvent::Connection(key, Event::Closed(CloseReason::Finished));
                    assert_eq!(net.end_of(node, key), Some(end), "{first}, {second} lost");
                }
            }
        }
    }
}

#[test]
fn under_load_a_cookie_costs_one_more_round_trip() {
    for credentials in [shared(), keys()] {
        let responder = ResponderConfig::default().with_cookie_threshold(0);
        let config = HostConfig { responder, ..HostConfig::default() };
        let mut net = Net::new(2, &config, &Emulation::delay(Duration::from_millis(20)), 1);
        net.nodes[B].host.listen(credentials[B].clone(), transport(), 16).unwrap();
        net.log = Some(Vec::new());
        let key = net.connect(&credentials, transport());
        let now = net.now;
        net.conn(A, key).send(now, bytes("hello")).unwrap();
        net.run_for(Duration::from_millis(101));
        let accepted = net.accepted(B).expect("after two round trips and a half");
        assert_eq!(read(&mut net, B, accepted), b"hello");
        assert!(shape(&net).starts_with("HhHh"));
    }
}

#[test]
fn no_answer_another_shared_key_and_untrusted_keys_are_distinguished() {
    let mut net = Net::pair(&shared(), transport());
    let wrong = Credentials::Shared(crate::PreSharedKey::new([8; 32]));
    let key = net.connect(&[wrong.clone(), wrong], transport());
    net.run_for(Duration::from_secs(60));
    let failed = |failure: Failure| Some(HostEvent::Failed(key, OpenFailure::Handshake(failure)));
    assert_eq!(net.end_of(A, key), failed(Failure::NoAnswer));
    assert_eq!(net.conn(A, key).state(), State::Closed);

    let mut net = Net::pair(&keys(), transport());
    let key = net.connect(&[keys_of(1, 3), keys_of(2, 1)], transport());
    net.run_for(Duration::from_secs(60));
    assert_eq!(net.end_of(A, key), failed(Failure::WrongPeer(private(2).public())));

    let mut net = Net::pair(&keys(), transport());
    let key = net.connect(&[keys_of(9, 2), keys_of(2, 1)], transport());
    net.run_for(Duration::from_secs(60));
    assert_eq!(net.end_of(A, key), failed(Failure::Unconfirmed));
    assert!(net.events.contains(&(B, HostEvent::UntrustedKey(address(A), private(9).public()))));
    assert_eq!(net.nodes[A].host.stats().failed, 1);
}

#[test]
fn a_responder_that_vanishes_after_its_answer_is_detected() {
    for credentials in [shared(), keys()] {
        let mut net = Net::pair(&credentials, transport());
        let key = net.connect(&credentials, transport());
        net.run_for(Duration::from_millis(30));
        net.change_link(A, Emulation::default().with_loss(1.0));
        net.run_for(Duration::from_secs(60));
        let failed = HostEvent::Failed(key, OpenFailure::Handshake(Failure::Unconfirmed));
        assert_eq!(net.end_of(A, key), Some(failed));
        assert_eq!(net.nodes[A].host.stats().failed, 1);
        assert_eq!(net.nodes[B].host.stats().half_open, 0);
    }
}

#[test]
fn an_aborted_connection_ends_at_both_even_if_the_reset_is_lost() {
    for lost in [0, 1] {
        let mut net = Net::pair(&shared(), transport());
        let [at_a, at_b] = net.open(&shared(), transport());
        let now = net.now;
        net.conn(A, at_a).abort(now);
        net.lose = (net.count..net.count + lost).collect();
        net.settle();
        assert!(net.nodes[A].host.remove(at_a));
        net.conn(B, at_b).send(now, bytes("are you there?")).unwrap();
        net.run_for(Duration::from_secs(2));
        let end = HostEvent::Connection(at_b, Event::Closed(CloseReason::Reset));
        assert_eq!(net.end_of(B, at_b), Some(end));
    }
}

#[test]
fn same_seed_twice_gives_the_same_bytes_and_another_does_not() {
    let log = |seed| {
        let emulation = Emulation::delay(Duration::from_millis(20))
            .with_loss(0.2)
            .with_reorder(0.2)
            .with_duplicate(0.1)
            .with_corrupt(0.1)
            .with_extra_delay(Duration::from_millis(30));
        let mut net = Net::new(2, &HostConfig::default(), &emulation, seed);
        net.nodes[B].host.listen(keys()[B].clone(), transport(), 16).unwrap();
        net.log = Some(Vec::new());
        let at_a = net.connect(&keys(), transport());
        net.run_while(Instant::from_secs(20), |net| net.accepted(B).is_none());
        let at_b = net.accepted(B).unwrap();
        exchange(
            &mut net,
            &mut [App::new(A, at_a, 50_000), App::new(B, at_b, 50_000)],
            Instant::from_secs(60),
        );
        net.log.unwrap()
    };
    let one = log(1);
    assert!(one.len() > 100);
    assert_eq!(one, log(1));
    assert_ne!(one, log(2));
}

#[test]
fn datagrams_carry_and_report_ecn_marks_except_handshake_messages() {
    let reductions = |mark| {
        let emulation = Emulation::delay(Duration::from_millis(20)).with_mark(mark);
        let mut net = Net::pair(&keys(), transport());
        net.log = Some(Vec::new());
        let [at_a, at_b] = net.open(&keys(), transport());
        net.change_link(A, emulation);
        let mut apps = [App::new(A, at_a, 1_000_000), App::new(B, at_b, 0)];
        assert!(exchange(&mut net, &mut apps, Instant::from_secs(60)));
        for sent in net.log.as_ref().unwrap() {
            let handshake = DatagramKind::of(&sent.bytes) == Some(DatagramKind::Handshake);
            assert_eq!(sent.ecn == Ecn::NotCapable, handshake || sent.bytes.len() == 28, "{sent:?}");
        }
        net.conn(A, at_a).stats().reductions
    };
    assert_eq!(reductions(0.0), 0);
    assert!(reductions(0.1) > 0);
}

#[test]
fn settings_out_of_range_are_rejected() {
    use crate::{ConfigError, Host, ListenError, Seed};
    let new = |config| Host::new(config, Seed::new([1; 32]));
    let defaults = HostConfig::default;
    assert_eq!(new(HostConfig { connections: 0, ..defaults() }).unwrap_err(), ConfigError::Connections(0));
    assert_eq!(new(HostConfig { burst: 0, ..defaults() }).unwrap_err(), ConfigError::Burst(0));
    assert!(new(HostConfig { confirmation_timeout: Duration::ZERO, ..defaults() }).is_err());
    assert!(new(HostConfig { linger: Duration::ZERO, ..defaults() }).is_err());
    let session = SessionConfig::default().with_window(7);
    assert!(matches!(new(HostConfig { session, ..defaults() }), Err(ConfigError::Secure(_))));
    let mut host = new(defaults()).unwrap();
    let [credentials, _] = shared();
    assert_eq!(host.listen(credentials.clone(), transport(), 0), Err(ListenError::Backlog));
    let bad = transport().with_mss(1);
    assert!(matches!(host.listen(credentials.clone(), bad, 1), Err(ListenError::Transport(_))));
    assert_eq!(host.listen(credentials.clone(), transport(), 1), Ok(()));
    assert_eq!(host.listen(credentials, transport(), 1), Err(ListenError::AlreadyListening));
}
