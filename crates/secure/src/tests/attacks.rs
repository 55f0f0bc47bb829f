//! Attackers that change, forge, repeat or invent messages.

use super::world::{Ends, INITIATOR, Outcome, World, sealed};
use super::{keys, private, shared};
use crate::{
    Cipher, ConnectionId, Credentials, Established, Failure, Initiator, InitiatorConfig, InitiatorEvent,
    Order, PathConfig, PathEvent, Paths, RefusalReason, Refused, Rejection, Responder, ResponderConfig,
    ResponderEvent, Seed, Versions,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::Instant;
use hopline_wire::secure::{Control, HandshakeMessage, Method, Suite};

const NOW: Instant = Instant::ZERO;

/// An initiator with its first message, and a responder; both speak versions 1 to 3.
struct Bench {
    initiator: Initiator,
    responder: Responder,
    first: Bytes,
}

impl Bench {
    fn new([initiator, responder]: [Credentials; 2]) -> Self {
        let versions = Versions { newest: 3, oldest: 1 };
        let of_opener = InitiatorConfig { versions, ..InitiatorConfig::default() };
        let of_answerer = ResponderConfig { versions, ..ResponderConfig::default() };
        let mut initiator =
            Initiator::open(NOW, of_opener, initiator, Bytes::new(), &Seed::new([1; 32])).unwrap();
        let responder = Responder::new(of_answerer, responder, Bytes::new(), &Seed::new([2; 32])).unwrap();
        let first = initiator.poll_transmit().unwrap();
        Self { initiator, responder, first }
    }

    /// Returns the responder's answer to this datagram.
    fn answer(&mut self, datagram: &[u8]) -> Option<Bytes> {
        self.responder.handle_datagram(NOW, SocketAddr::from(INITIATOR), &mut datagram.to_vec());
        self.responder.poll_transmit().map(|(_, answer)| answer)
    }

    /// Returns the result of the handshake if the initiator accepts this datagram.
    fn deliver(&mut self, datagram: &Bytes) -> Option<Established> {
        self.initiator.handle_datagram(NOW, datagram);
        match self.initiator.poll_event() {
            Some(InitiatorEvent::Completed(established)) => Some(established),
            Some(InitiatorEvent::Failed(failure)) => panic!("{failure}"),
            None => None,
        }
    }

    /// Returns the failure, and the number of messages sent, if there is no further answer.
    fn wait(mut self) -> (Failure, usize) {
        let mut sent = 0;
        while let Some(due) = self.initiator.poll_timeout() {
            self.initiator.handle_timeout(due);
            sent += std::iter::from_fn(|| self.initiator.poll_transmit()).count();
        }
        match self.initiator.poll_event() {
            Some(InitiatorEvent::Failed(failure)) => (failure, sent),
            other => panic!("{other:?}"),
        }
    }
}

fn methods() -> [[Credentials; 2]; 2] {
    [[shared(7), shared(7)], [keys(1, &[2]), keys(2, &[1])]]
}

/// A first message, of which something is changed.
fn changed(first: &Bytes, change: impl FnOnce(&mut Suite, &mut Versions)) -> Bytes {
    let Ok(HandshakeMessage::Handshake1 { mut suite, mut versions, initiator_id: initiator, cookie, noise }) =
        HandshakeMessage::parse(first)
    else {
        panic!("no first message")
    };
    change(&mut suite, &mut versions);
    HandshakeMessage::Handshake1 { suite, versions, initiator_id: initiator, cookie, noise }.to_bytes()
}

#[test]
fn a_downgrade_is_detected() {
    for credentials in methods() {
        let mut bench = Bench::new(credentials);
        let first = bench.first.clone();
        let lowered = changed(&first, |_, versions| versions.newest = 1);
        let weaker = changed(&first, |suite, _| suite.cipher = Cipher::ChaCha20Poly1305);
        for tampered in [lowered, weaker] {
            if let Some(second) = bench.answer(&tampered) {
                assert!(bench.deliver(&second).is_none(), "an answer to what was never said");
            }
        }
        let [mut at_answerer, at_opener] = [bench.responder.refusals(), bench.initiator.refusals()]
            .map(|counts| counts.of(Refused::Unauthentic));
        at_answerer += at_opener;
        assert_eq!(at_answerer, 2, "one end or the other notices each");
        let second = bench.answer(&first).expect("what was really said is answered, too");
        assert_eq!(bench.deliver(&second).expect("and believed").version, 3);
    }
}

#[test]
fn a_wrong_shared_key_looks_like_no_answer() {
    let mut bench = Bench::new([shared(7), shared(8)]);
    let first = bench.first.clone();
    assert_eq!(bench.answer(&first), None);
    assert_eq!(bench.responder.refusals().of(Refused::Unauthentic), 1);
    assert_eq!(bench.responder.half_open(), 0);
    assert_eq!(bench.wait().0, Failure::NoAnswer);
}

#[test]
fn a_responder_with_another_key_is_untrusted_and_the_right_one_may_still_answer() {
    let trusting = |key| Credentials::Keys { private: private(key), trust: crate::Trust::Anyone };
    let mut bench = Bench::new([keys(1, &[2]), trusting(3)]);
    let first = bench.first.clone();
    let false_second = bench.answer(&first).unwrap();
    assert!(bench.deliver(&false_second).is_none());
    assert_eq!(bench.initiator.refusals().of(Refused::Stranger), 1);
    let mut right = Bench::new([keys(1, &[2]), keys(2, &[1])]);
    let second = right.answer(&first).unwrap();
    assert_eq!(bench.deliver(&second).unwrap().peer, Some(private(2).public()));

    let mut alone = Bench::new([keys(1, &[2]), trusting(3)]);
    assert!(alone.deliver(&false_second).is_none());
    assert_eq!(alone.wait(), (Failure::WrongPeer(private(3).public()), 2), "two more tries, and why");
}

#[test]
fn an_initiator_that_pins_a_fingerprint_reveals_its_key_to_no_other_responder() {
    let wanting = |key| {
        let trust = crate::Trust::Fingerprint(private(key).public().fingerprint());
        Credentials::Keys { private: private(1), trust }
    };
    let trusting = Credentials::Keys { private: private(3), trust: crate::Trust::Anyone };
    let mut bench = Bench::new([wanting(2), trusting.clone()]);
    let first = bench.first.clone();
    let second = bench.answer(&first).unwrap();
    assert!(bench.deliver(&second).is_none(), "there is no third message");
    assert_eq!(bench.wait().0, Failure::WrongPeer(private(3).public()));
    let mut bench = Bench::new([wanting(3), trusting]);
    let first = bench.first.clone();
    let second = bench.answer(&first).unwrap();
    assert_eq!(bench.deliver(&second).unwrap().peer, Some(private(3).public()));
}

#[test]
fn an_initiator_with_another_key_is_reported_as_untrusted() {
    let mut world = World::new(Ends::of(keys(9, &[2]), keys(2, &[1])), &[]);
    assert_eq!(world.run(), Outcome::Failed(Failure::Unconfirmed));
    assert!(world.accepted.is_empty());
    assert_eq!(world.responder.refusals().of(Refused::Stranger), 1);

    let mut bench = Bench::new([keys(9, &[2]), keys(2, &[1])]);
    let first = bench.first.clone();
    let second = bench.answer(&first).unwrap();
    assert!(bench.deliver(&second).is_some());
    let third = bench.initiator.poll_transmit().unwrap();
    assert_eq!(bench.answer(&third), None);
    let Some(ResponderEvent::UntrustedKey { address, key }) = bench.responder.poll_event() else {
        panic!("not told")
    };
    assert_eq!((address, key), (SocketAddr::from(INITIATOR), private(9).public()));
    assert_eq!(bench.responder.half_open(), 0);
}

#[test]
fn a_forged_refusal_does_not_end_a_handshake() {
    for credentials in methods() {
        let mut bench = Bench::new(credentials);
        let first = bench.first.clone();
        let initiator = bench.initiator.local_id();
        let versions = Versions { newest: 1, oldest: 1 };
        let refusal =
            HandshakeMessage::Refusal { initiator, reason: RefusalReason::Version, versions }.to_bytes();
        assert!(bench.deliver(&refusal).is_none());
        let second = bench.answer(&first).unwrap();
        assert!(bench.deliver(&second).is_some());
    }
}

#[test]
fn forged_cookies_are_answered_a_limited_number_of_times() {
    let mut bench = Bench::new(methods()[0].clone());
    let initiator = bench.initiator.local_id();
    for number in 1..=100 {
        bench
            .initiator
            .handle_datagram(NOW, &HandshakeMessage::Retry { initiator, cookie: [number; 16] }.to_bytes());
    }
    let sent: Vec<Bytes> = std::iter::from_fn(|| bench.initiator.poll_transmit()).collect();
    assert_eq!(sent.len(), 3);
    let second = bench.answer(&sent[2]).expect("a false cookie does no harm where none is needed");
    assert!(bench.deliver(&second).is_some());
}

#[test]
fn misdirected_and_malformed_datagrams_are_counted() {
    let mut bench = Bench::new(methods()[1].clone());
    let first = bench.first.clone();
    let somebody = ConnectionId::new([9; 8]).unwrap();
    let noise = Bytes::from_static(&[1; 64]);
    for (datagram, refused) in [
        (first.clone(), Refused::Malformed),
        (
            HandshakeMessage::Handshake2 { initiator_id: somebody, noise: noise.clone() }.to_bytes(),
            Refused::Unknown,
        ),
        (
            HandshakeMessage::Handshake2 { initiator_id: bench.initiator.local_id(), noise: noise.clone() }
                .to_bytes(),
            Refused::Unauthentic,
        ),
        (Bytes::from_static(b"TPAW"), Refused::Malformed),
    ] {
        let before = bench.initiator.refusals().of(refused);
        assert!(bench.deliver(&datagram).is_none());
        assert_eq!(bench.initiator.refusals().of(refused), before + 1, "{datagram:?}");
    }
    for (datagram, refused) in [
        (
            HandshakeMessage::Handshake2 { initiator_id: somebody, noise: noise.clone() }.to_bytes(),
            Refused::Malformed,
        ),
        (
            HandshakeMessage::Handshake3 { responder_id: somebody, noise: noise.clone() }.to_bytes(),
            Refused::Unknown,
        ),
        (Bytes::from_static(&[1; 40]), Refused::Unknown),
        (Bytes::from_static(&[1; 4]), Refused::Malformed),
        (Bytes::new(), Refused::Malformed),
    ] {
        let before = bench.responder.refusals().of(refused);
        assert_eq!(bench.answer(&datagram), None);
        assert_eq!(bench.responder.refusals().of(refused), before + 1, "{datagram:?}");
    }
    let second = bench.answer(&first).unwrap();
    let mut established = bench.deliver(&second).unwrap();
    assert!(bench.deliver(&second).is_none());
    assert_eq!(bench.initiator.refusals().of(Refused::Late), 1);
    let early = sealed(&mut established.session, b"early");
    assert_eq!(bench.answer(&early), None);
    assert_eq!(bench.responder.refusals().of(Refused::Early), 1);
}

#[test]
fn a_damaged_third_message_does_not_break_the_handshake() {
    let mut bench = Bench::new(methods()[1].clone());
    let first = bench.first.clone();
    let second = bench.answer(&first).unwrap();
    bench.deliver(&second).unwrap();
    let third = bench.initiator.poll_transmit().unwrap();
    let mut damaged = third.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    bench.answer(&damaged);
    assert!(bench.responder.poll_event().is_none());
    bench.answer(&third);
    assert!(matches!(bench.responder.poll_event(), Some(ResponderEvent::Accepted(_))));
    bench.answer(&third);
    assert!(matches!(bench.responder.poll_event(), Some(ResponderEvent::Unconfirmed(_))));
}

#[test]
fn a_recorded_handshake_opens_nothing() {
    for credentials in methods() {
        let mut bench = Bench::new(credentials.clone());
        let first = bench.first.clone();
        let second = bench.answer(&first).unwrap();
        let mut established = bench.deliver(&second).unwrap();
        let mut recorded = vec![first];
        recorded.extend(bench.initiator.poll_transmit());
        recorded.push(sealed(&mut established.session, b"data"));

        // The same responder after it has begun anew, with other randomness.
        let seed = Seed::new([3; 32]);
        let mut responder =
            Responder::new(ResponderConfig::default(), credentials[1].clone(), Bytes::new(), &seed).unwrap();
        for datagram in &recorded {
            responder.handle_datagram(NOW, SocketAddr::from(INITIATOR), &mut datagram.to_vec());
        }
        assert!(responder.poll_event().is_none());
    }
}

/// Forged and replayed datagrams never move a connection; the peer does.
#[test]
fn only_a_holder_of_the_keys_can_move_a_connection() {
    let mut world = World::new(Ends::of(shared(7), shared(7)), &[]);
    assert_eq!(world.run(), Outcome::Works);
    let mut at_opener = world.opened.unwrap().session;
    let mut accepted = world.accepted.into_values().next().unwrap();
    let mut paths = Paths::new(PathConfig::default(), accepted.address, &Seed::new([5; 32])).unwrap();
    let [thief, new] = [666, 4001].map(|port| SocketAddr::from(([10, 0, 0, 6], port)));
    let mut hear = |from: SocketAddr, datagram: &Bytes, paths: &mut Paths| {
        let opened =
            accepted.established.session.unsealer.open(&mut datagram.to_vec()).map(|opened| opened.order)?;
        paths.record_received(NOW, from, datagram.len(), opened);
        Ok::<Order, Rejection>(opened)
    };

    let genuine = sealed(&mut at_opener, b"data");
    let forged = Bytes::from([&genuine[..20], b"forged and long enough"].concat());
    assert_eq!(hear(thief, &forged, &mut paths), Err(Rejection::Forged));
    assert_eq!(hear(SocketAddr::from(INITIATOR), &genuine, &mut paths), Ok(Order::Newest));
    assert_eq!(hear(thief, &genuine, &mut paths), Err(Rejection::Repeated));
    assert_eq!((paths.candidates().count(), paths.poll_control(NOW)), (0, None));

    // A datagram that was caught and sent on from elsewhere: the thief is challenged, and cannot answer.
    assert_eq!(hear(thief, &sealed(&mut at_opener, b"caught"), &mut paths), Ok(Order::Newest));
    assert!(matches!(paths.poll_control(NOW), Some((to, Control::Challenge(_))) if to == thief));
    assert_eq!(paths.active(), SocketAddr::from(INITIATOR));

    assert_eq!(hear(new, &sealed(&mut at_opener, b"moved"), &mut paths), Ok(Order::Newest));
    let Some((to, Control::Challenge(challenge))) = paths.poll_control(NOW) else { panic!("no challenge") };
    assert_eq!(to, new);
    let response = Control::Response(challenge);
    assert_eq!(hear(new, &sealed(&mut at_opener, &response.bytes()), &mut paths), Ok(Order::Newest));
    paths.handle_control(NOW, new, response);
    assert!(matches!(paths.poll_event(), Some(PathEvent::Moved { to, .. }) if to == new));
    assert_eq!(paths.active(), new);
}

#[test]
fn methods_cannot_be_mixed() {
    let mut bench = Bench::new(methods()[0].clone());
    let first = changed(&bench.first.clone(), |suite, _| suite.method = Method::PublicKeys);
    let refusal = bench.answer(&first).unwrap();
    assert!(matches!(
        HandshakeMessage::parse(&refusal),
        Ok(HandshakeMessage::Refusal { reason: RefusalReason::Method, .. })
    ));
    assert_eq!(bench.responder.half_open(), 0);
}
