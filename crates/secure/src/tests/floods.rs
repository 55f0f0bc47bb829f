//! Many first messages, from addresses that nobody receives at, and from some where somebody does.

use super::world::OPENER;
use super::{keys, shared};
use crate::{
    Answerer, AnswererConfig, AnswererEvent, Credentials, Opener, OpenerConfig, OpenerEvent, Refused, Seed,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{FIRST_LEN, Message};

const NOW: Instant = Instant::from_secs(5);

fn answerer(credentials: Credentials, config: AnswererConfig) -> Answerer {
    Answerer::new(config, credentials, Bytes::new(), &Seed::new([2; 32])).unwrap()
}

fn opener(credentials: Credentials, number: u32) -> (Opener, Bytes) {
    let mut seed = [1; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    let opened = Opener::open(NOW, OpenerConfig::default(), credentials, Bytes::new(), &Seed::new(seed));
    let mut opener = opened.unwrap();
    let first = opener.poll_transmit().unwrap();
    (opener, first)
}

fn host(number: u32) -> SocketAddr {
    SocketAddr::from(((0x0a00_0000 | number).to_be_bytes(), 1000))
}

/// What is answered.
fn answer(answerer: &mut Answerer, now: Instant, from: SocketAddr, datagram: &Bytes) -> Option<Message> {
    answerer.handle(now, from, &mut datagram.to_vec());
    let (to, answer) = answerer.poll_transmit()?;
    assert_eq!(to, from);
    assert!(answer.len() <= 3 * datagram.len() && answerer.poll_transmit().is_none());
    Some(Message::parse(&answer).unwrap())
}

/// The same first message with the cookie that was given.
fn with_cookie(opener: &mut Opener, retry: Option<Message>) -> Bytes {
    let Some(retry @ Message::Retry { .. }) = retry else { panic!("{retry:?} is no retry") };
    opener.handle(NOW, &retry.to_bytes());
    opener.poll_transmit().unwrap()
}

#[test]
fn a_flood_takes_up_a_bounded_room_and_who_receives_at_its_address_gets_through() {
    for [caller, called] in [[keys(1, &[2]), keys(2, &[1])], [shared(7), shared(7)]] {
        let mut answerer = answerer(called, AnswererConfig::default());
        let (_, first) = opener(caller.clone(), 0);
        let mut retries = 0;
        for number in 0..20_000 {
            match answer(&mut answerer, NOW, host(number), &first) {
                Some(Message::Second { .. }) => assert!(number < 32),
                Some(Message::Retry { .. }) => retries += 1,
                None => assert!(number >= 2000),
                other => panic!("{other:?}"),
            }
        }
        // Few are taken for one that has come before.
        assert!((1968..2100).contains(&retries), "{retries}");
        assert_eq!(answerer.half_open(), 32);
        assert_eq!(answerer.refusals().of(Refused::Cookie), retries);
        assert_eq!(answerer.refusals().of(Refused::Unanswered), 20_000 - 32 - retries);

        // Among so many it is answered when it calls again.
        let (mut honest, first) = opener(caller, 1);
        assert_eq!(answer(&mut answerer, NOW, SocketAddr::from(OPENER), &first), None);
        let retry = answer(&mut answerer, NOW, SocketAddr::from(OPENER), &first);
        let again = with_cookie(&mut honest, retry);
        assert_eq!(again.len(), FIRST_LEN.max(first.len()));
        let second = answer(&mut answerer, NOW, SocketAddr::from(OPENER), &again);
        honest.handle(NOW, &second.expect("an answer").to_bytes());
        assert!(matches!(honest.poll_event(), Some(OpenerEvent::Completed(_))));
    }
}

#[test]
fn what_a_flood_left_is_gone_after_a_while() {
    let mut answerer = answerer(keys(2, &[1]), AnswererConfig::default());
    for number in 0..100 {
        let (_, first) = opener(keys(1, &[2]), number);
        answer(&mut answerer, NOW, host(number), &first);
    }
    assert_eq!(answerer.half_open(), 32);
    assert_eq!(answerer.poll_timeout(), Some(NOW + Duration::from_secs(10)));
    answerer.handle_timeout(NOW + Duration::from_secs(10));
    assert_eq!((answerer.half_open(), answerer.poll_timeout()), (0, None));
    assert_eq!(answerer.refusals().of(Refused::Expired), 32);
}

#[test]
fn a_cookie_is_for_one_address_and_one_message_and_a_while() {
    let config = AnswererConfig { cookies_from: 0, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    let (mut one, first) = opener(keys(1, &[2]), 1);
    let retry = answer(&mut answerer, NOW, host(1), &first);
    let again = with_cookie(&mut one, retry);
    let is_retry = |message| matches!(message, Some(Message::Retry { .. }));
    assert!(is_retry(answer(&mut answerer, NOW, host(2), &again)), "from elsewhere");
    assert!(is_retry(answer(&mut answerer, NOW + Duration::from_secs(60), host(1), &again)), "too late");
    let Ok(Message::First { cookie, .. }) = Message::parse(&again) else { panic!("no first message") };
    let Ok(Message::First { suite, versions, opener: id, noise, .. }) =
        Message::parse(&opener(keys(1, &[2]), 2).1)
    else {
        panic!("no first message")
    };
    let stolen = Message::First { suite, versions, opener: id, noise, cookie }.to_bytes();
    assert!(is_retry(answer(&mut answerer, NOW, host(1), &stolen)), "of another message");
    assert_eq!(answerer.half_open(), 0);
    assert!(matches!(answer(&mut answerer, NOW, host(1), &again), Some(Message::Second { .. })));
}

#[test]
fn one_host_cannot_take_all_the_room() {
    let config = AnswererConfig { half_open: 20, cookies_from: 0, per_host: 5, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    let call = |answerer: &mut Answerer, number: u32, from: SocketAddr| {
        let (mut opener, first) = opener(keys(1, &[2]), number);
        let retry = answer(answerer, NOW, from, &first);
        answer(answerer, NOW, from, &with_cookie(&mut opener, retry)).is_some()
    };
    let port = |number: u32| SocketAddr::from(([10, 0, 0, 1], 1000 + number as u16));
    assert_eq!((0..10).filter(|number| call(&mut answerer, *number, port(*number))).count(), 5);
    assert_eq!(answerer.refusals().of(Refused::Host), 5);
    let network = |number: u32| SocketAddr::from(([0x2001, 0xdb8, 0, 7, 0, 0, 0, number as u16], 1000));
    assert_eq!((20..30).filter(|number| call(&mut answerer, *number, network(*number))).count(), 5);
    assert_eq!((30..60).filter(|number| call(&mut answerer, *number, host(*number))).count(), 10);
    assert_eq!((answerer.half_open(), answerer.refusals().of(Refused::Full)), (20, 20));
}

#[test]
fn who_has_shown_its_address_takes_the_place_of_who_has_not() {
    let config = AnswererConfig { half_open: 8, cookies_from: 8, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    for number in 0..8 {
        assert!(answer(&mut answerer, NOW, host(number), &opener(keys(1, &[2]), number).1).is_some());
    }
    let (mut honest, first) = opener(keys(1, &[2]), 9);
    let retry = answer(&mut answerer, NOW, host(9), &first);
    let again = with_cookie(&mut honest, retry);
    assert!(matches!(answer(&mut answerer, NOW, host(9), &again), Some(Message::Second { .. })));
    assert_eq!(answerer.half_open(), 8);
}

#[test]
fn first_messages_without_the_shared_key_leave_nothing() {
    let mut answerer = answerer(shared(7), AnswererConfig::default());
    for number in 0..1000 {
        assert!(answer(&mut answerer, NOW, host(number), &opener(shared(8), number).1).is_none());
    }
    assert_eq!((answerer.half_open(), answerer.refusals().of(Refused::Unauthentic)), (0, 1000));
}

#[test]
fn a_repeated_first_message_gets_the_same_answer_and_no_more_room() {
    let mut answerer = answerer(keys(2, &[1]), AnswererConfig::default());
    let (_, first) = opener(keys(1, &[2]), 1);
    let second = answer(&mut answerer, NOW, host(1), &first);
    for _ in 0..1000 {
        assert_eq!(answer(&mut answerer, NOW, host(1), &first), second);
    }
    assert_eq!(answerer.half_open(), 1);
}

#[test]
fn in_a_flood_neither_a_message_nor_its_cookie_has_more_answers_than_its_sender_needs() {
    let mut answerer =
        answerer(keys(2, &[1]), AnswererConfig { cookies_from: 0, ..AnswererConfig::default() });
    let (mut caller, first) = opener(keys(1, &[2]), 1);
    let retry = answer(&mut answerer, NOW, host(1), &first);
    let again = with_cookie(&mut caller, retry);
    for number in 2..20_000 {
        answer(&mut answerer, NOW, host(number), &first);
    }
    let mut answers = |ms: u64, times: usize| {
        let now = NOW + Duration::from_millis(ms);
        (0..times).filter(|_| answer(&mut answerer, now, host(1), &again).is_some()).count()
    };
    assert_eq!(answers(0, 1), 1, "with a cookie it is answered at once");
    // Its answer may be lost: it is answered again, when its sender would say it again.
    assert_eq!(answers(400, 1000), 1);
    assert_eq!(answers(420, 1000), 0);
    assert_eq!(answers(1200, 1000), 1);
}

#[test]
fn many_connections_leave_no_trace_once_they_are_accepted() {
    let config = AnswererConfig { half_open: 8, cookies_from: 8, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    for number in 0..100 {
        let (mut opener, first) = opener(keys(1, &[2]), number);
        let second = answer(&mut answerer, NOW, host(number), &first).unwrap();
        opener.handle(NOW, &second.to_bytes());
        let third = opener.poll_transmit().unwrap();
        answerer.handle(NOW, host(number), &mut third.to_vec());
        assert!(matches!(answerer.poll_event(), Some(AnswererEvent::Accepted(_))));
        assert_eq!(answerer.half_open(), 0);
    }
    assert!(answerer.poll_timeout().is_some(), "what was accepted is remembered for a while");
    answerer.handle_timeout(NOW + Duration::from_secs(10));
    assert_eq!(answerer.poll_timeout(), None);
}
