//! Messages one by one.

use super::world::{Ends, Fate, OPENER, Outcome, World, sealed};
use super::{keys, private, shared};
use crate::{
    Answerer, AnswererConfig, AnswererEvent, Cipher, ConfigError, Credentials, Failure, Opener, OpenerConfig,
    Reason, Refused, Seed, SessionConfig, Trust, Versions,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{FIRST_LEN, Message};

#[test]
fn both_ciphers_work_with_both_methods() {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        for credentials in [[shared(7), shared(7)], [keys(1, &[2]), keys(2, &[1])]] {
            let [opener, answerer] = credentials;
            let mut ends = Ends::of(opener, answerer);
            ends.opener.0.cipher = cipher;
            assert_eq!(World::new(ends, &[]).run(), Outcome::Works, "{cipher:?}");
        }
    }
}

#[test]
fn each_knows_the_other_by_its_public_key() {
    let anyone = |key| Credentials::Keys { private: private(key), trust: Trust::Anyone };
    let mut world = World::new(Ends::of(anyone(1), anyone(2)), &[]);
    assert_eq!(world.run(), Outcome::Works);
    assert_eq!(world.opened.unwrap().peer, Some(private(2).public()));
    let accepted = world.accepted.into_values().next().unwrap();
    assert_eq!(accepted.established.peer, Some(private(1).public()));
    assert_eq!(accepted.address, SocketAddr::from(OPENER));
}

#[test]
fn the_newest_common_version_is_taken_and_others_are_refused() {
    let run = |opener: (u8, u8), answerer: (u8, u8)| {
        let mut ends = Ends::of(keys(1, &[2]), keys(2, &[1]));
        ends.opener.0.versions = Versions { oldest: opener.0, newest: opener.1 };
        ends.answerer.0.versions = Versions { oldest: answerer.0, newest: answerer.1 };
        let mut world = World::new(ends, &[]);
        let outcome = world.run();
        (outcome, world.opened.map(|opened| opened.version))
    };
    assert_eq!(run((1, 3), (1, 2)), (Outcome::Works, Some(2)));
    assert_eq!(run((1, 2), (1, 9)), (Outcome::Works, Some(2)));
    let refused =
        |oldest, newest| Failure::Refused { reason: Reason::Version, versions: Versions { newest, oldest } };
    assert_eq!(run((3, 4), (1, 2)), (Outcome::Failed(refused(1, 2)), None));
    assert_eq!(run((1, 1), (2, 2)), (Outcome::Failed(refused(2, 2)), None));
}

#[test]
fn ends_with_different_methods_say_so() {
    let mut world = World::new(Ends::of(shared(7), keys(2, &[1])), &[]);
    let Outcome::Failed(failure) = world.run() else { panic!("there is nothing in common") };
    assert_eq!(
        failure.to_string(),
        "refused: one end has a shared key, the other a key of its own; it speaks versions 1 to 1"
    );
}

#[test]
fn ends_that_change_keys_at_different_numbers_do_not_meet() {
    let mut ends = Ends::of(shared(7), shared(7));
    ends.opener.0.session = SessionConfig { window: 1024, rekey_after: 1024, ..SessionConfig::default() };
    assert_eq!(World::new(ends, &[]).run(), Outcome::Failed(Failure::NoAnswer));
}

/// Times in milliseconds at which the first message is sent, and at which the initiator gives up.
#[test]
fn a_first_message_is_repeated_at_growing_intervals_until_the_opener_gives_up() {
    let mut opener =
        Opener::open(Instant::ZERO, OpenerConfig::default(), shared(1), Bytes::new(), &Seed::new([1; 32]))
            .unwrap();
    let first = opener.poll_transmit().unwrap();
    assert_eq!(first.len(), FIRST_LEN);
    let mut sent = vec![0];
    let mut end = 0;
    while let Some(due) = opener.poll_timeout() {
        opener.handle_timeout(due);
        opener.handle_timeout(due);
        end = due.as_nanos() / 1_000_000;
        if let Some(again) = opener.poll_transmit() {
            assert_eq!(again, first, "the same message");
            sent.push(end);
        }
        assert!(opener.poll_transmit().is_none(), "once");
    }
    assert_eq!(sent, [0, 400, 1200, 2800, 5800, 8800, 11_800, 14_800, 17_800, 20_800]);
    assert_eq!(end, 23_800);
    assert!(matches!(opener.poll_event(), Some(crate::OpenerEvent::Failed(Failure::NoAnswer))));
}

#[test]
fn a_third_message_that_nothing_shows_to_have_come_is_given_up() {
    let fates: Vec<Fate> = [Fate::Arrives; 2].into_iter().chain([Fate::Lost; 1000]).collect();
    let mut world = World::new(Ends::of(keys(1, &[2]), keys(2, &[1])), &fates);
    assert_eq!(world.run(), Outcome::Failed(Failure::Unproven));
    assert!(world.accepted.is_empty());
    assert_eq!(world.answerer.half_open(), 0, "it was given up there, too");
    assert_eq!(world.answerer.refusals().of(Refused::Expired), 1);
}

#[test]
fn an_opener_that_does_not_hear_of_it_is_told_again() {
    let lost = [Fate::Arrives, Fate::Arrives, Fate::Arrives, Fate::Lost];
    let fates: Vec<Fate> = lost.into_iter().chain([Fate::Lost; 8]).collect();
    let mut world = World::new(Ends::of(keys(1, &[2]), keys(2, &[1])), &fates);
    assert_eq!(world.run(), Outcome::Works);
}

#[test]
fn sealed_datagrams_that_overtake_the_third_message_are_counted() {
    let fates = [Fate::Arrives, Fate::Arrives, Fate::Late { millis: 100 }];
    let mut world = World::new(Ends::of(keys(1, &[2]), keys(2, &[1])), &fates);
    assert_eq!(world.run(), Outcome::Works);
    assert_eq!(world.answerer.refusals().of(Refused::Early), 1);
}

#[test]
fn settings_and_parameters_out_of_range_are_refused() {
    let seed = Seed::new([1; 32]);
    let long = Bytes::from(vec![0; 257]);
    let opened = Opener::open(Instant::ZERO, OpenerConfig::default(), shared(1), long.clone(), &seed);
    assert_eq!(opened.unwrap_err(), ConfigError::Parameters(257));
    let made = Answerer::new(AnswererConfig::default(), shared(1), long, &seed);
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
    let opener = |change: fn(&mut OpenerConfig)| {
        let mut config = OpenerConfig::default();
        change(&mut config);
        config.validate().is_err()
    };
    assert!(opener(|config| config.tries = 0) && opener(|config| config.first_wait = Duration::ZERO));
    assert!(opener(|config| config.longest_wait = Duration::from_millis(399)));
    assert!(opener(|config| config.versions = Versions { newest: 1, oldest: 2 }));
    let answerer = |change: fn(&mut AnswererConfig)| {
        let mut config = AnswererConfig::default();
        change(&mut config);
        config.validate().is_err()
    };
    assert!(answerer(|config| config.half_open = 0) && answerer(|config| config.cookies_from = 257));
    assert!(answerer(|config| config.a_second = 0) && answerer(|config| config.patience = Duration::ZERO));
}

#[test]
fn parameters_of_the_greatest_length_are_answered_by_less_than_three_times_what_came() {
    for credentials in [[shared(7), shared(7)], [keys(1, &[2]), keys(2, &[1])]] {
        let [of_opener, of_answerer] = credentials;
        let (now, seed) = (Instant::ZERO, Seed::new([1; 32]));
        let mut opener = Opener::open(now, OpenerConfig::default(), of_opener, Bytes::new(), &seed).unwrap();
        let parameters = Bytes::from(vec![7; 256]);
        let mut answerer = Answerer::new(AnswererConfig::default(), of_answerer, parameters, &seed).unwrap();
        let first = opener.poll_transmit().unwrap();
        answerer.handle(now, SocketAddr::from(OPENER), &mut first.to_vec());
        let (_, second) = answerer.poll_transmit().unwrap();
        assert!(second.len() <= 3 * first.len(), "{} > 3 · {}", second.len(), first.len());
        assert!(answerer.poll_transmit().is_none());
    }
}

#[test]
fn under_a_shared_key_a_connection_is_accepted_with_its_first_sealed_datagram() {
    let (now, seed) = (Instant::ZERO, Seed::new([1; 32]));
    let mut opener = Opener::open(now, OpenerConfig::default(), shared(7), Bytes::new(), &seed).unwrap();
    let mut answerer = Answerer::new(AnswererConfig::default(), shared(7), Bytes::new(), &seed).unwrap();
    let here = SocketAddr::from(OPENER);
    let first = opener.poll_transmit().unwrap();
    answerer.handle(now, here, &mut first.to_vec());
    assert!(answerer.poll_event().is_none(), "who has recorded a first message has no key");
    let (_, second) = answerer.poll_transmit().unwrap();
    opener.handle(now, &second);
    let Some(crate::OpenerEvent::Completed(mut established)) = opener.poll_event() else { panic!("no keys") };
    assert_eq!((opener.poll_timeout(), opener.poll_transmit()), (None, None));
    let data = sealed(&mut established.session, b"data");
    let there = SocketAddr::from(([10, 0, 0, 9], 9));
    answerer.handle(now, there, &mut data.to_vec());
    let Some(AnswererEvent::Accepted(accepted)) = answerer.poll_event() else { panic!("not accepted") };
    assert_eq!((accepted.address, accepted.from), (here, there));
    assert_eq!(accepted.first.unwrap().payload, "data");
    answerer.handle(now, here, &mut first.to_vec());
    assert!(answerer.poll_transmit().is_none(), "a first message that is late begins nothing");
    assert_eq!(answerer.refusals().of(Refused::Late), 1);
    let Ok(Message::Second { .. }) = Message::parse(&second) else { panic!("no second message") };
}
