//! Many first messages, from addresses at which no host receives, and from some at which a host does.

use super::world::{OPENER, sealed};
use super::{keys, shared};
use crate::{
    Answerer, AnswererConfig, AnswererEvent, Credentials, Opener, OpenerConfig, OpenerEvent, Refused, Seed,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{FIRST_LEN, Message};
use std::collections::VecDeque;

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

/// Returns the answer, beside what was due before.
fn answer(answerer: &mut Answerer, now: Instant, from: SocketAddr, datagram: &Bytes) -> Option<Message> {
    answerer.handle_timeout(now);
    while answerer.poll_transmit().is_some() {}
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

/// A first message from there with the cookie that is asked for; whether it is answered.
fn call(answerer: &mut Answerer, now: Instant, number: u32, from: SocketAddr) -> bool {
    let (mut opener, first) = opener(keys(1, &[2]), number);
    let retry = answer(answerer, now, from, &first);
    matches!(answer(answerer, now, from, &with_cookie(&mut opener, retry)), Some(Message::Second { .. }))
}

/// Returns how long a known peer at `at` with round trips of 100 ms needs. What the responder sends elsewhere
/// goes to `flood`.
fn time_to_get_in(
    answerer: &mut Answerer,
    mut now: Instant,
    at: SocketAddr,
    mut flood: impl FnMut(&mut Answerer, Instant, &[Bytes]),
) -> Duration {
    let began = now;
    let mut opener =
        Opener::open(now, OpenerConfig::default(), keys(1, &[2]), Bytes::new(), &Seed::new([9; 32])).unwrap();
    let mut flying: VecDeque<(Instant, bool, Bytes)> = VecDeque::new();
    let way = Duration::from_millis(50);
    loop {
        answerer.handle_timeout(now);
        let answers: Vec<_> = std::iter::from_fn(|| answerer.poll_transmit()).collect();
        let (own, elsewhere): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(to, _)| *to == at);
        flying.extend(own.into_iter().map(|(_, sent)| (now + way, false, sent)));
        flood(answerer, now, &elsewhere.into_iter().map(|(_, sent)| sent).collect::<Vec<_>>());
        opener.handle_timeout(now);
        flying.extend(std::iter::from_fn(|| opener.poll_transmit()).map(|sent| (now + way, true, sent)));
        while let Some((_, to_answerer, datagram)) = flying.pop_front_if(|(due, ..)| *due <= now) {
            if to_answerer {
                answerer.handle(now, at, &mut datagram.to_vec());
                let answers = std::iter::from_fn(|| answerer.poll_transmit());
                flying.extend(answers.map(|(_, sent)| (now + way, false, sent)));
            } else {
                opener.handle(now, &datagram);
            }
        }
        if let Some(AnswererEvent::Accepted(_)) = answerer.poll_event() {
            return now.since(began);
        }
        now += Duration::from_millis(1);
        assert!(now < began + Duration::from_secs(20), "it never gets in: {:?}", answerer.refusals());
    }
}

/// Handshakes that are never finished, one in a millisecond, each from the next address of `addresses`.
fn never_finished(addresses: impl Fn(u32) -> SocketAddr) -> impl FnMut(&mut Answerer, Instant, &[Bytes]) {
    let (_, first) = opener(keys(1, &[2]), 7);
    let Ok(Message::First { suite, versions, opener, noise, .. }) = Message::parse(&first) else {
        panic!("no first message")
    };
    let mut number = 0;
    move |answerer, now, _| {
        number += 1;
        let from = addresses(number);
        if let Some(Message::Retry { cookie, .. }) = answer(answerer, now, from, &first) {
            let noise = noise.clone();
            let again = Message::First { suite, versions, opener, cookie: Some(cookie), noise };
            answer(answerer, now, from, &again.to_bytes());
        }
    }
}

/// Smaller than by default, so that a flood costs less to compute.
fn small() -> AnswererConfig {
    AnswererConfig { half_open: 64, cookies_from: 8, a_second: 100, ..AnswererConfig::default() }
}

/// A host of a /24.
fn net(network: u32, of_it: u32) -> SocketAddr {
    host((network << 8) | of_it)
}

fn v6(site: u16, subnet: u32) -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, site, subnet as u16, 0, 0, 0, 1], 1000))
}

#[test]
fn a_known_peer_gets_in_during_any_flood_of_handshakes_from_proven_addresses() {
    let one_host: fn(u32) -> SocketAddr = |number| SocketAddr::from(([10, 0, 1, 1], 1000 + number as u16));
    let twenty_hosts: fn(u32) -> SocketAddr = |number| net(1, number % 20);
    let twenty_networks: fn(u32) -> SocketAddr = |number| net(number % 20, 7);
    let one_subsite: fn(u32) -> SocketAddr = |number| v6(7, number % 256);
    let one_site: fn(u32) -> SocketAddr = |number| v6(7, number % 65_536);
    let floods = [
        ("one host", one_host),
        ("20 hosts", twenty_hosts),
        ("20 networks", twenty_networks),
        ("a /56", one_subsite),
        ("a /48", one_site),
    ];
    for (what, addresses) in floods {
        for at in [net(100, 1), net(1, 99)] {
            let mut answerer = answerer(keys(2, &[1]), small());
            let mut flood = never_finished(addresses);
            let mut now = NOW;
            while now < NOW + Duration::from_millis(1500) {
                flood(&mut answerer, now, &[]);
                now += Duration::from_millis(1);
            }
            let took = time_to_get_in(&mut answerer, now, at, flood);
            // Alone it takes 250 ms, with the round trip of a cookie.
            assert!(took < Duration::from_secs(1), "{what}, {at}: {took}, {:?}", answerer.refusals());
            assert!(answerer.half_open() <= 64);
        }
    }
}

/// A party with a key that opens connections at `address`, one as soon as the last one is established.
fn connects_on_and_on(address: SocketAddr) -> impl FnMut(&mut Answerer, Instant, &[Bytes]) {
    let mut number = 0;
    let mut next = move |now| {
        number += 1;
        let mut seed = [3; 32];
        seed[..4].copy_from_slice(&u32::to_be_bytes(number));
        let credentials = keys(1, &[2]);
        Opener::open(now, OpenerConfig::default(), credentials, Bytes::new(), &Seed::new(seed)).unwrap()
    };
    let mut opener = None;
    move |answerer, now, deferred| {
        let opener = opener.get_or_insert_with(|| next(now));
        deferred.iter().for_each(|answer| opener.handle(now, answer));
        opener.handle_timeout(now);
        for _ in 0..10 {
            while let Some(sent) = opener.poll_transmit() {
                answerer.handle(now, address, &mut sent.to_vec());
                while let Some((_, answer)) = answerer.poll_transmit() {
                    opener.handle(now, &answer);
                }
            }
            if matches!(opener.poll_event(), Some(OpenerEvent::Completed(_))) {
                while let Some(third) = opener.poll_transmit() {
                    answerer.handle(now, address, &mut third.to_vec());
                }
                *opener = next(now);
            }
        }
        while answerer.poll_event().is_some() {}
    }
}

#[test]
fn connections_opened_one_after_the_other_delay_another_one_of_the_host_by_less_than_a_retry() {
    for began in (0..500).step_by(20) {
        let mut answerer = answerer(keys(2, &[1]), AnswererConfig::default());
        let mut flood = connects_on_and_on(host(1));
        let mut now = NOW;
        while now < NOW + Duration::from_millis(500 + began) {
            answerer.handle_timeout(now);
            let deferred: Vec<_> =
                std::iter::from_fn(|| answerer.poll_transmit().map(|(_, sent)| sent)).collect();
            flood(&mut answerer, now, &deferred);
            now += Duration::from_millis(1);
        }
        let at = SocketAddr::from(([10, 0, 0, 1], 2000));
        let took = time_to_get_in(&mut answerer, now, at, flood);
        // Alone it takes 250 ms, with the round trip of a cookie.
        assert!(took < Duration::from_millis(400), "after {began} ms: {took}, {:?}", answerer.refusals());
    }
}

#[test]
fn while_a_first_message_waits_the_answerer_is_woken_at_releases_and_not_at_once() {
    let config =
        AnswererConfig { half_open: 1024, cookies_from: 0, a_second: 64, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    time_to_get_in(&mut answerer, NOW, host(1), |_, _, _| ());
    // One of a host at which a trusted peer was, then as many as may begin elsewhere, half a window later.
    let now = NOW + Duration::from_secs(1);
    assert!(call(&mut answerer, now, 1, host(1)));
    let later = now + Duration::from_millis(125);
    assert!((2..40).filter(|&number| call(&mut answerer, later, number, host(number << 8))).count() < 38);
    // The first release is of the other kind, and lets none of those begin that wait.
    let first = answerer.poll_timeout().unwrap();
    assert!(first > later);
    answerer.handle_timeout(first);
    assert!(answerer.poll_timeout().unwrap() > first);
}

#[test]
fn a_full_table_gives_up_the_oldest_handshake_of_the_heaviest_prefix() {
    let config = AnswererConfig { half_open: 8, cookies_from: 0, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    let port = |number: u32| SocketAddr::from(([10, 0, 0, 1], 1000 + number as u16));
    assert!(call(&mut answerer, NOW, 0, host(7 << 8)));
    assert!((1..=7).all(|number| call(&mut answerer, NOW, number, port(number))));
    let firsts = answerer.half_open();
    assert!((8..20).all(|number| call(&mut answerer, NOW, number, v6(number as u16, 0))));
    assert_eq!((firsts, answerer.half_open()), (8, 8));
    assert_eq!(answerer.refusals().of(Refused::Evicted), 12);
    // The single handshake of another network has outlived those of the host with seven.
    let of_the_other = answer(&mut answerer, NOW, host(7 << 8), &opener(keys(1, &[2]), 0).1);
    assert!(
        of_the_other.is_none_or(|message| !matches!(message, Message::Second { .. })),
        "it was the oldest at last"
    );
}

#[test]
fn handshakes_that_fail_or_never_end_are_begun_at_a_limited_rate() {
    let mut answerer = answerer(keys(2, &[1]), small());
    let mut flood = never_finished(|number| net(number, 1));
    for ms in 0..2000 {
        flood(&mut answerer, NOW + Duration::from_millis(ms), &[]);
    }
    let begun = answerer.refusals().of(Refused::Evicted)
        + answerer.refusals().of(Refused::Expired)
        + answerer.half_open() as u64;
    // At once 16 may begin, beside 200 in two seconds.
    assert!((150..=216).contains(&begun), "{begun}");
    assert!(answerer.refusals().of(Refused::Full) > 1000);
}

#[test]
fn a_host_at_which_a_trusted_peer_was_keeps_its_place() {
    let config = AnswererConfig { half_open: 8, cookies_from: 0, a_second: 800, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    time_to_get_in(&mut answerer, NOW, host(1), |_, _, _| ());
    let now = NOW + Duration::from_secs(1);
    assert!(call(&mut answerer, now, 1, host(1)));
    assert!((2..90).all(|number| call(&mut answerer, now, number, host(number << 8))));
    assert_eq!(answerer.half_open(), 8);
    let first = opener(keys(1, &[2]), 1).1;
    assert!(
        matches!(answer(&mut answerer, now, host(1), &first), Some(Message::Second { .. })),
        "the same answer"
    );
    // The rate is used up, but not for such a host.
    assert!((100..200).filter(|number| call(&mut answerer, now, *number, host(number << 8))).count() < 20);
    assert!(call(&mut answerer, now, 200, host(1)));
}

#[test]
fn a_flood_from_a_host_at_which_a_trusted_peer_was_leaves_room_for_other_hosts() {
    let config =
        AnswererConfig { half_open: 1024, cookies_from: 0, a_second: 800, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    time_to_get_in(&mut answerer, NOW, host(1), |_, _, _| ());
    let now = NOW + Duration::from_secs(1);
    let answered = (0..200).filter(|number| call(&mut answerer, now, *number, host(1))).count();
    assert!((50..=100).contains(&answered), "{answered}");
    assert!(call(&mut answerer, now, 200, host(9 << 8)), "a stranger");
    time_to_get_in(&mut answerer, now, host(8 << 8), |_, _, _| ());
    let later = now + Duration::from_millis(999);
    assert!(call(&mut answerer, later, 201, host(8 << 8)), "another host of a trusted peer");
}

#[test]
fn under_load_a_handshake_may_take_less_time() {
    let config = AnswererConfig { half_open: 8, cookies_from: 0, ..AnswererConfig::default() };
    let mut answerer = answerer(keys(2, &[1]), config);
    assert!((0..4).all(|number| call(&mut answerer, NOW, number, host(number << 8))));
    assert_eq!(answerer.poll_timeout(), Some(NOW + Duration::from_secs(10)));
    assert!(call(&mut answerer, NOW, 4, host(4 << 8)));
    assert_eq!(answerer.poll_timeout(), Some(NOW + Duration::from_millis(2500)));
    answerer.handle_timeout(NOW + Duration::from_millis(2500));
    assert_eq!(answerer.half_open(), 4, "one gone, and the others have time again");
}

/// The id that the responder has chosen stands in the third message.
fn third(answerer: &mut Answerer, from: SocketAddr, number: u32) -> Bytes {
    let (mut opener, first) = opener(keys(1, &[2]), number);
    let second = answer(answerer, NOW, from, &first).unwrap();
    opener.handle(NOW, &second.to_bytes());
    opener.poll_transmit().unwrap()
}

#[test]
fn third_messages_that_fail_cost_a_bounded_budget_and_keep_out_no_other_handshake() {
    let mut answerer = answerer(keys(2, &[1]), AnswererConfig::default());
    let attacked = third(&mut answerer, host(1), 1);
    let other = third(&mut answerer, host(2), 2);
    let garbage = |byte: u8| [&attacked[..13], &[byte; 92]].concat();
    let damaged = |byte: u8| {
        let mut damaged = attacked.to_vec();
        *damaged.last_mut().unwrap() ^= byte;
        damaged
    };
    for number in 0..10_000_u32 {
        let byte = 1 | number as u8;
        answerer.handle(NOW, host(1), &mut garbage(byte));
        answerer.handle(NOW, host(1), &mut damaged(byte));
        answerer.handle(NOW, host(3), &mut garbage(byte));
        answerer.handle(NOW, host(1), &mut [&attacked[..13], &[byte; 63]].concat());
    }
    let of = |refused| answerer.refusals().of(refused);
    assert_eq!(of(Refused::Malformed), 10_000, "too short to be one");
    let read = of(Refused::Unauthentic);
    assert!((10..=100).contains(&read), "{read}");
    assert_eq!(of(Refused::OverBudget), 30_000 - read);

    answerer.handle(NOW, host(2), &mut other.to_vec());
    assert!(matches!(answerer.poll_event(), Some(AnswererEvent::Accepted(_))), "another handshake");
    let later = NOW + Duration::from_secs(1);
    answerer.handle(later, host(1), &mut attacked.to_vec());
    assert!(matches!(answerer.poll_event(), Some(AnswererEvent::Accepted(_))), "the attacked one, too");
}

#[test]
fn datagrams_that_complete_no_handshake_under_a_shared_key_cost_the_same_budget() {
    let mut answerer = answerer(shared(7), AnswererConfig::default());
    let (mut opener, first) = opener(shared(7), 1);
    let second = answer(&mut answerer, NOW, host(1), &first).unwrap();
    opener.handle(NOW, &second.to_bytes());
    let Some(OpenerEvent::Completed(mut established)) = opener.poll_event() else { panic!("no keys") };
    let genuine = sealed(&mut established.session, b"data");
    let forged = [&genuine[..12], &[7; 1400]].concat();
    for _ in 0..10_000 {
        answerer.handle(NOW, host(1), &mut forged.clone());
    }
    assert_eq!(answerer.refusals().of(Refused::Unauthentic), 2001);
    answerer.handle(NOW + Duration::from_secs(1), host(1), &mut genuine.to_vec());
    assert!(matches!(answerer.poll_event(), Some(AnswererEvent::Accepted(_))));
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
        let now = NOW + Duration::from_millis(4) * u64::from(number);
        let (mut opener, first) = opener(keys(1, &[2]), number);
        let second = answer(&mut answerer, now, host(number), &first).unwrap();
        opener.handle(now, &second.to_bytes());
        let third = opener.poll_transmit().unwrap();
        answerer.handle(now, host(number), &mut third.to_vec());
        assert!(matches!(answerer.poll_event(), Some(AnswererEvent::Accepted(_))));
        assert_eq!(answerer.half_open(), 0);
    }
    assert!(answerer.poll_timeout().is_some(), "what was accepted is remembered for a while");
    answerer.handle_timeout(NOW + Duration::from_secs(11));
    assert_eq!(answerer.poll_timeout(), None);
}
