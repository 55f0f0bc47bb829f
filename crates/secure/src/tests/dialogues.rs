//! Messages one by one.

use super::world::{DatagramFate, Ends, INITIATOR, Outcome, World, sealed};
use super::{keys, private, shared};
use crate::{
    Cipher, ConfigError, Credentials, Failure, Initiator, InitiatorConfig, RefusalReason, Refused, Responder,
    ResponderConfig, ResponderEvent, Seed, SessionConfig, Trust, Versions,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{HANDSHAKE_1_LEN, HandshakeMessage};

#[test]
fn both_ciphers_work_with_both_methods() {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        for credentials in [[shared(7), shared(7)], [keys(1, &[2]), keys(2, &[1])]] {
            let [initiator, responder] = credentials;
            let mut ends = Ends::of(initiator, responder);
            ends.initiator.0.cipher = cipher;
            assert_eq!(World::new(ends, &[]).run(), Outcome::Works, "{cipher:?}");
        }
    }
}

#[test]
fn each_end_knows_the_public_key_of_the_other() {
    let anyone = |key| Credentials::Keys { private: private(key), trust: Trust::Anyone };
    let mut world = World::new(Ends::of(anyone(1), anyone(2)), &[]);
    assert_eq!(world.run(), Outcome::Works);
    assert_eq!(world.opened.unwrap().peer, Some(private(2).public()));
    let accepted = world.accepted.into_values().next().unwrap();
    assert_eq!(accepted.established.peer, Some(private(1).public()));
    assert_eq!(accepted.address, SocketAddr::from(INITIATOR));
}

#[test]
fn the_newest_common_version_is_chosen_and_others_are_refused() {
    let run = |initiator: (u8, u8), responder: (u8, u8)| {
        let mut ends = Ends::of(keys(1, &[2]), keys(2, &[1]));
        ends.initiator.0.versions = Versions { oldest: initiator.0, newest: initiator.1 };
        ends.responder.0.versions = Versions { oldest: responder.0, newest: responder.1 };
        let mut world = World::new(ends, &[]);
        let outcome = world.run();
        (outcome, world.opened.map(|opened| opened.version))
    };
    assert_eq!(run((1, 3), (1, 2)), (Outcome::Works, Some(2)));
    assert_eq!(run((1, 2), (1, 9)), (Outcome::Works, Some(2)));
    let refused = |oldest, newest| Failure::Refused {
        reason: RefusalReason::Version,
        versions: Versions { newest, oldest },
    };
    assert_eq!(run((3, 4), (1, 2)), (Outcome::Failed(refused(1, 2)), None));
    assert_eq!(run((1, 1), (2, 2)), (Outcome::Failed(refused(2, 2)), None));
}

#[test]
fn ends_with_different_methods_report_it() {
    let mut world = World::new(Ends::of(shared(7), keys(2, &[1])), &[]);
    let Outcome::Failed(failure) = world.run() else { panic!("there is nothing in common") };
    assert_eq!(
        failure.to_string(),
        "refused: one end has a shared key, the other a key of its own; it speaks versions 1 to 1"
    );
}

#[test]
fn ends_with_different_rekeying_numbers_fail_to_connect() {
    let mut ends = Ends::of(shared(7), shared(7));
    ends.initiator.0.session = SessionConfig { window: 1024, rekey_after: 1024, ..SessionConfig::default() };
    assert_eq!(World::new(ends, &[]).run(), Outcome::Failed(Failure::NoAnswer));
}

/// Times in milliseconds at which the first message is sent, and at which the initiator gives up.
#[test]
fn a_first_message_is_repeated_with_back_off_until_the_initiator_gives_up() {
    let mut initiator = Initiator::open(
        Instant::ZERO,
        InitiatorConfig::default(),
        shared(1),
        Bytes::new(),
        &Seed::new([1; 32]),
    )
    .unwrap();
    let first = initiator.poll_transmit().unwrap();
    assert_eq!(first.len(), HANDSHAKE_1_LEN);
    let mut sent = vec![0];
    let mut end = 0;
    while let Some(due) = initiator.poll_timeout() {
        initiator.handle_timeout(due);
        initiator.handle_timeout(due);
        end = due.as_nanos() / 1_000_000;
        if let Some(again) = initiator.poll_transmit() {
            assert_eq!(again, first, "the same message");
            sent.push(end);
        }
        assert!(initiator.poll_transmit().is_none(), "once");
    }
    assert_eq!(sent, [0, 400, 1200, 2800, 5800, 8800, 11_800, 14_800, 17_800, 20_800]);
    assert_eq!(end, 23_800);
    assert!(matches!(initiator.poll_event(), Some(crate::InitiatorEvent::Failed(Failure::NoAnswer))));
}

#[test]
fn an_unconfirmed_third_message_is_given_up() {
    let fates: Vec<DatagramFate> =
        [DatagramFate::Arrives; 2].into_iter().chain([DatagramFate::Lost; 1000]).collect();
    let mut world = World::new(Ends::of(keys(1, &[2]), keys(2, &[1])), &fates);
    assert_eq!(world.run(), Outcome::Failed(Failure::Unconfirmed));
    assert!(world.accepted.is_empty());
    assert_eq!(world.responder.half_open(), 0, "it was given up there, too");
    assert_eq!(world.responder.refusals().of(Refused::Expired), 1);
}

#[test]
fn an_initiator_without_confirmation_is_confirmed_again() {
    let lost = [DatagramFate::Arrives, DatagramFate::Arrives, DatagramFate::Arrives, DatagramFate::Lost];
    let fates: Vec<DatagramFate> = lost.into_iter().chain([DatagramFate::Lost; 8]).collect();
    let mut world = World::new(Ends::of(keys(1, &[2]), keys(2, &[1])), &fates);
    assert_eq!(world.run(), Outcome::Works);
}

#[test]
fn sealed_datagrams_that_overtake_the_third_message_are_counted_as_early() {
    let fates = [DatagramFate::Arrives, DatagramFate::Arrives, DatagramFate::Late { millis: 100 }];
    let mut world = World::new(Ends::of(keys(1, &[2]), keys(2, &[1])), &fates);
    assert_eq!(world.run(), Outcome::Works);
    assert_eq!(world.responder.refusals().of(Refused::Early), 1);
}

#[test]
fn settings_and_parameters_out_of_range_are_rejected() {
    let seed = Seed::new([1; 32]);
    let long = Bytes::from(vec![0; 257]);
    let opened = Initiator::open(Instant::ZERO, InitiatorConfig::default(), shared(1), long.clone(), &seed);
    assert_eq!(opened.unwrap_err(), ConfigError::Parameters(257));
    let made = Responder::new(ResponderConfig::default(), shared(1), long, &seed);
    assert_eq!(made.unwrap_err(), ConfigError::Parameters(257));
    let session =
        |window, rekey_after| SessionConfig { window, rekey_after, ..SessionConfig::default() }.validate();
    let time = |secs| {
        let rekey_after_time = Duration::from_secs(secs);
        SessionConfig { rekey_after_time, ..SessionConfig::default() }.validate()
    };
    assert!(time(0).is_err() && time(1).is_ok() && time(86_401).is_err());
    assert_eq!(session(960, 1 << 20), Err(ConfigError::Window(960)));
    assert_eq!(session(1025, 1 << 20), Err(ConfigError::Window(1025)));
    assert_eq!(session(4096, 4095), Err(ConfigError::RekeyAfter { after: 4095, window: 4096 }));
    assert!(session(4096, (1 << 23) + 1).is_err() && session(1024, 1024).is_ok());
    let initiator = |change: fn(&mut InitiatorConfig)| {
        let mut config = InitiatorConfig::default();
        change(&mut config);
        config.validate().is_err()
    };
    assert!(
        initiator(|config| config.max_tries = 0) && initiator(|config| config.initial_wait = Duration::ZERO)
    );
    assert!(initiator(|config| config.max_wait = Duration::from_millis(399)));
    assert!(initiator(|config| config.versions = Versions { newest: 1, oldest: 2 }));
    let responder = |change: fn(&mut ResponderConfig)| {
        let mut config = ResponderConfig::default();
        change(&mut config);
        config.validate().is_err()
    };
    assert!(
        responder(|config| config.max_half_open = 0) && responder(|config| config.cookie_threshold = 257)
    );
    assert!(
        responder(|config| config.handshakes_per_second = 0)
            && responder(|config| config.handshake_timeout = Duration::ZERO)
    );
}

#[test]
fn the_longest_parameters_respect_the_amplification_limit() {
    for credentials in [[shared(7), shared(7)], [keys(1, &[2]), keys(2, &[1])]] {
        let [of_opener, of_answerer] = credentials;
        let (now, seed) = (Instant::ZERO, Seed::new([1; 32]));
        let mut initiator =
            Initiator::open(now, InitiatorConfig::default(), of_opener, Bytes::new(), &seed).unwrap();
        let parameters = Bytes::from(vec![7; 256]);
        let mut responder =
            Responder::new(ResponderConfig::default(), of_answerer, parameters, &seed).unwrap();
        let first = initiator.poll_transmit().unwrap();
        responder.handle_datagram(now, SocketAddr::from(INITIATOR), &mut first.to_vec());
        let (_, second) = responder.poll_transmit().unwrap();
        assert!(second.len() <= 3 * first.len(), "{} > 3 · {}", second.len(), first.len());
        assert!(responder.poll_transmit().is_none());
    }
}

#[test]
fn with_a_shared_key_a_connection_is_accepted_with_its_first_sealed_datagram() {
    let (now, seed) = (Instant::ZERO, Seed::new([1; 32]));
    let mut initiator =
        Initiator::open(now, InitiatorConfig::default(), shared(7), Bytes::new(), &seed).unwrap();
    let mut responder = Responder::new(ResponderConfig::default(), shared(7), Bytes::new(), &seed).unwrap();
    let here = SocketAddr::from(INITIATOR);
    let first = initiator.poll_transmit().unwrap();
    responder.handle_datagram(now, here, &mut first.to_vec());
    assert!(responder.poll_event().is_none(), "who has recorded a first message has no key");
    let (_, second) = responder.poll_transmit().unwrap();
    initiator.handle_datagram(now, &second);
    let Some(crate::InitiatorEvent::Completed(mut established)) = initiator.poll_event() else {
        panic!("no keys")
    };
    assert_eq!((initiator.poll_timeout(), initiator.poll_transmit()), (None, None));
    let data = sealed(&mut established.session, b"data");
    let there = SocketAddr::from(([10, 0, 0, 9], 9));
    responder.handle_datagram(now, there, &mut data.to_vec());
    let Some(ResponderEvent::Accepted(accepted)) = responder.poll_event() else { panic!("not accepted") };
    assert_eq!((accepted.address, accepted.from), (here, there));
    assert_eq!(accepted.initial.unwrap().payload, "data");
    responder.handle_datagram(now, here, &mut first.to_vec());
    assert!(responder.poll_transmit().is_none(), "a first message that is late begins nothing");
    assert_eq!(responder.refusals().of(Refused::Late), 1);
    let Ok(HandshakeMessage::Handshake2 { .. }) = HandshakeMessage::parse(&second) else {
        panic!("no second message")
    };
}
