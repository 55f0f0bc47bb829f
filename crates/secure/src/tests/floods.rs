//! Many first messages, from addresses at which no host receives, and from some at which a host does.

use super::world::{INITIATOR, sealed};
use super::{keys, shared};
use crate::{
    Credentials, Initiator, InitiatorConfig, InitiatorEvent, Refused, Responder, ResponderConfig,
    ResponderEvent, Seed,
};
use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_wire::secure::{HANDSHAKE_1_LEN, HandshakeMessage};
use std::collections::VecDeque;

const NOW: Instant = Instant::from_secs(5);

fn responder(credentials: Credentials, config: ResponderConfig) -> Responder {
    Responder::new(config, credentials, Bytes::new(), &Seed::new([2; 32])).unwrap()
}

fn initiator(credentials: Credentials, number: u32) -> (Initiator, Bytes) {
    let mut seed = [1; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    let opened =
        Initiator::open(NOW, InitiatorConfig::default(), credentials, Bytes::new(), &Seed::new(seed));
    let mut initiator = opened.unwrap();
    let first = initiator.poll_transmit().unwrap();
    (initiator, first)
}

fn host(number: u32) -> SocketAddr {
    SocketAddr::from(((0x0a00_0000 | number).to_be_bytes(), 1000))
}

/// Returns the answer, beside what was due before.
fn answer(
    responder: &mut Responder,
    now: Instant,
    from: SocketAddr,
    datagram: &Bytes,
) -> Option<HandshakeMessage> {
    responder.handle_timeout(now);
    while responder.poll_transmit().is_some() {}
    responder.handle_datagram(now, from, &mut datagram.to_vec());
    let (to, answer) = responder.poll_transmit()?;
    assert_eq!(to, from);
    assert!(answer.len() <= 3 * datagram.len() && responder.poll_transmit().is_none());
    Some(HandshakeMessage::parse(&answer).unwrap())
}

/// The same first message with the cookie that was given.
fn with_cookie(initiator: &mut Initiator, retry: Option<HandshakeMessage>) -> Bytes {
    let Some(retry @ HandshakeMessage::Retry { .. }) = retry else { panic!("{retry:?} is no retry") };
    initiator.handle_datagram(NOW, &retry.to_bytes());
    initiator.poll_transmit().unwrap()
}

#[test]
fn a_flood_takes_bounded_memory_and_a_host_that_receives_at_its_address_connects() {
    for [caller, called] in [[keys(1, &[2]), keys(2, &[1])], [shared(7), shared(7)]] {
        let mut responder = responder(called, ResponderConfig::default());
        let (_, first) = initiator(caller.clone(), 0);
        let mut retries = 0;
        for number in 0..20_000 {
            match answer(&mut responder, NOW, host(number), &first) {
                Some(HandshakeMessage::Handshake2 { .. }) => assert!(number < 32),
                Some(HandshakeMessage::Retry { .. }) => retries += 1,
                None => assert!(number >= 2000),
                other => panic!("{other:?}"),
            }
        }
        // Few are taken for one that has come before.
        assert!((1968..2100).contains(&retries), "{retries}");
        assert_eq!(responder.half_open(), 32);
        assert_eq!(responder.refusals().of(Refused::Cookie), retries);
        assert_eq!(responder.refusals().of(Refused::Unanswered), 20_000 - 32 - retries);

        // Among so many it is answered when it calls again.
        let (mut honest, first) = initiator(caller, 1);
        assert_eq!(answer(&mut responder, NOW, SocketAddr::from(INITIATOR), &first), None);
        let retry = answer(&mut responder, NOW, SocketAddr::from(INITIATOR), &first);
        let again = with_cookie(&mut honest, retry);
        assert_eq!(again.len(), HANDSHAKE_1_LEN.max(first.len()));
        let second = answer(&mut responder, NOW, SocketAddr::from(INITIATOR), &again);
        honest.handle_datagram(NOW, &second.expect("an answer").to_bytes());
        assert!(matches!(honest.poll_event(), Some(InitiatorEvent::Completed(_))));
    }
}

#[test]
fn the_state_of_a_flood_expires() {
    let mut responder = responder(keys(2, &[1]), ResponderConfig::default());
    for number in 0..100 {
        let (_, first) = initiator(keys(1, &[2]), number);
        answer(&mut responder, NOW, host(number), &first);
    }
    assert_eq!(responder.half_open(), 32);
    assert_eq!(responder.poll_timeout(), Some(NOW + Duration::from_secs(10)));
    responder.handle_timeout(NOW + Duration::from_secs(10));
    assert_eq!((responder.half_open(), responder.poll_timeout()), (0, None));
    assert_eq!(responder.refusals().of(Refused::Expired), 32);
}

#[test]
fn a_cookie_is_valid_for_one_address_one_message_and_a_limited_time() {
    let config = ResponderConfig { cookie_threshold: 0, ..ResponderConfig::default() };
    let mut responder = responder(keys(2, &[1]), config);
    let (mut one, first) = initiator(keys(1, &[2]), 1);
    let retry = answer(&mut responder, NOW, host(1), &first);
    let again = with_cookie(&mut one, retry);
    let is_retry = |message| matches!(message, Some(HandshakeMessage::Retry { .. }));
    assert!(is_retry(answer(&mut responder, NOW, host(2), &again)), "from elsewhere");
    assert!(is_retry(answer(&mut responder, NOW + Duration::from_secs(60), host(1), &again)), "too late");
    let Ok(HandshakeMessage::Handshake1 { cookie, .. }) = HandshakeMessage::parse(&again) else {
        panic!("no first message")
    };
    let Ok(HandshakeMessage::Handshake1 { suite, versions, initiator_id: id, noise, .. }) =
        HandshakeMessage::parse(&initiator(keys(1, &[2]), 2).1)
    else {
        panic!("no first message")
    };
    let stolen = HandshakeMessage::Handshake1 { suite, versions, initiator_id: id, noise, cookie }.to_bytes();
    assert!(is_retry(answer(&mut responder, NOW, host(1), &stolen)), "of another message");
    assert_eq!(responder.half_open(), 0);
    assert!(matches!(
        answer(&mut responder, NOW, host(1), &again),
        Some(HandshakeMessage::Handshake2 { .. })
    ));
}

/// A first message from there with the cookie that is asked for; whether it is answered.
fn call(responder: &mut Responder, now: Instant, number: u32, from: SocketAddr) -> bool {
    let (mut initiator, first) = initiator(keys(1, &[2]), number);
    let retry = answer(responder, now, from, &first);
    matches!(
        answer(responder, now, from, &with_cookie(&mut initiator, retry)),
        Some(HandshakeMessage::Handshake2 { .. })
    )
}

/// Returns how long a known peer at `at` with round trips of 100 ms needs. What the responder sends elsewhere
/// goes to `flood`.
fn time_to_connect(
    responder: &mut Responder,
    mut now: Instant,
    at: SocketAddr,
    mut flood: impl FnMut(&mut Responder, Instant, &[Bytes]),
) -> Duration {
    let began = now;
    let mut initiator =
        Initiator::open(now, InitiatorConfig::default(), keys(1, &[2]), Bytes::new(), &Seed::new([9; 32]))
            .unwrap();
    let mut flying: VecDeque<(Instant, bool, Bytes)> = VecDeque::new();
    let way = Duration::from_millis(50);
    loop {
        responder.handle_timeout(now);
        let answers: Vec<_> = std::iter::from_fn(|| responder.poll_transmit()).collect();
        let (own, elsewhere): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(to, _)| *to == at);
        flying.extend(own.into_iter().map(|(_, sent)| (now + way, false, sent)));
        flood(responder, now, &elsewhere.into_iter().map(|(_, sent)| sent).collect::<Vec<_>>());
        initiator.handle_timeout(now);
        flying.extend(std::iter::from_fn(|| initiator.poll_transmit()).map(|sent| (now + way, true, sent)));
        while let Some((_, to_answerer, datagram)) = flying.pop_front_if(|(due, ..)| *due <= now) {
            if to_answerer {
                responder.handle_datagram(now, at, &mut datagram.to_vec());
                let answers = std::iter::from_fn(|| responder.poll_transmit());
                flying.extend(answers.map(|(_, sent)| (now + way, false, sent)));
            } else {
                initiator.handle_datagram(now, &datagram);
            }
        }
        if let Some(ResponderEvent::Accepted(_)) = responder.poll_event() {
            return now.since(began);
        }
        now += Duration::from_millis(1);
        assert!(now < began + Duration::from_secs(20), "it never gets in: {:?}", responder.refusals());
    }
}

/// Handshakes that are never finished, one in a millisecond, each from the next address of `addresses`.
fn unfinished_handshakes(
    addresses: impl Fn(u32) -> SocketAddr,
) -> impl FnMut(&mut Responder, Instant, &[Bytes]) {
    let (_, first) = initiator(keys(1, &[2]), 7);
    let Ok(HandshakeMessage::Handshake1 { suite, versions, initiator_id: initiator, noise, .. }) =
        HandshakeMessage::parse(&first)
    else {
        panic!("no first message")
    };
    let mut number = 0;
    move |responder, now, _| {
        number += 1;
        let from = addresses(number);
        if let Some(HandshakeMessage::Retry { cookie, .. }) = answer(responder, now, from, &first) {
            let noise = noise.clone();
            let again = HandshakeMessage::Handshake1 {
                suite,
                versions,
                initiator_id: initiator,
                cookie: Some(cookie),
                noise,
            };
            answer(responder, now, from, &again.to_bytes());
        }
    }
}

/// Smaller than by default, so that a flood costs less to compute.
fn small() -> ResponderConfig {
    ResponderConfig {
        max_half_open: 64,
        cookie_threshold: 8,
        handshakes_per_second: 100,
        ..ResponderConfig::default()
    }
}

/// A host of a /24.
fn net(network: u32, of_it: u32) -> SocketAddr {
    host((network << 8) | of_it)
}

fn v6(site: u16, subnet: u32) -> SocketAddr {
    SocketAddr::from(([0x2001, 0xdb8, site, subnet as u16, 0, 0, 0, 1], 1000))
}

#[test]
fn a_known_peer_connects_during_any_flood_of_handshakes_from_proven_addresses() {
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
            let mut responder = responder(keys(2, &[1]), small());
            let mut flood = unfinished_handshakes(addresses);
            let mut now = NOW;
            while now < NOW + Duration::from_millis(1500) {
                flood(&mut responder, now, &[]);
                now += Duration::from_millis(1);
            }
            let took = time_to_connect(&mut responder, now, at, flood);
            // Alone it takes 250 ms, with the round trip of a cookie.
            assert!(took < Duration::from_secs(1), "{what}, {at}: {took}, {:?}", responder.refusals());
            assert!(responder.half_open() <= 64);
        }
    }
}

/// A party with a key that opens connections at `address`, one as soon as the last one is established.
fn repeated_connections(address: SocketAddr) -> impl FnMut(&mut Responder, Instant, &[Bytes]) {
    let mut number = 0;
    let mut next = move |now| {
        number += 1;
        let mut seed = [3; 32];
        seed[..4].copy_from_slice(&u32::to_be_bytes(number));
        let credentials = keys(1, &[2]);
        Initiator::open(now, InitiatorConfig::default(), credentials, Bytes::new(), &Seed::new(seed)).unwrap()
    };
    let mut initiator = None;
    move |responder, now, deferred| {
        let initiator = initiator.get_or_insert_with(|| next(now));
        deferred.iter().for_each(|answer| initiator.handle_datagram(now, answer));
        initiator.handle_timeout(now);
        for _ in 0..10 {
            while let Some(sent) = initiator.poll_transmit() {
                responder.handle_datagram(now, address, &mut sent.to_vec());
                while let Some((_, answer)) = responder.poll_transmit() {
                    initiator.handle_datagram(now, &answer);
                }
            }
            if matches!(initiator.poll_event(), Some(InitiatorEvent::Completed(_))) {
                while let Some(third) = initiator.poll_transmit() {
                    responder.handle_datagram(now, address, &mut third.to_vec());
                }
                *initiator = next(now);
            }
        }
        while responder.poll_event().is_some() {}
    }
}

#[test]
fn repeated_connections_delay_another_one_of_the_host_by_less_than_a_retry() {
    for began in (0..500).step_by(20) {
        let mut responder = responder(keys(2, &[1]), ResponderConfig::default());
        let mut flood = repeated_connections(host(1));
        let mut now = NOW;
        while now < NOW + Duration::from_millis(500 + began) {
            responder.handle_timeout(now);
            let deferred: Vec<_> =
                std::iter::from_fn(|| responder.poll_transmit().map(|(_, sent)| sent)).collect();
            flood(&mut responder, now, &deferred);
            now += Duration::from_millis(1);
        }
        let at = SocketAddr::from(([10, 0, 0, 1], 2000));
        let took = time_to_connect(&mut responder, now, at, flood);
        // Alone it takes 250 ms, with the round trip of a cookie.
        assert!(took < Duration::from_millis(400), "after {began} ms: {took}, {:?}", responder.refusals());
    }
}

#[test]
fn while_a_first_message_is_deferred_the_responder_wakes_at_releases_only() {
    let config = ResponderConfig {
        max_half_open: 1024,
        cookie_threshold: 0,
        handshakes_per_second: 64,
        ..ResponderConfig::default()
    };
    let mut responder = responder(keys(2, &[1]), config);
    time_to_connect(&mut responder, NOW, host(1), |_, _, _| ());
    // One of a host at which a trusted peer was, then as many as may begin elsewhere, half a window later.
    let now = NOW + Duration::from_secs(1);
    assert!(call(&mut responder, now, 1, host(1)));
    let later = now + Duration::from_millis(125);
    assert!((2..40).filter(|&number| call(&mut responder, later, number, host(number << 8))).count() < 38);
    // The first release is of the other kind, and lets none of those begin that wait.
    let first = responder.poll_timeout().unwrap();
    assert!(first > later);
    responder.handle_timeout(first);
    assert!(responder.poll_timeout().unwrap() > first);
}

#[test]
fn a_full_table_evicts_the_oldest_handshake_of_the_largest_prefix() {
    let config = ResponderConfig { max_half_open: 8, cookie_threshold: 0, ..ResponderConfig::default() };
    let mut responder = responder(keys(2, &[1]), config);
    let port = |number: u32| SocketAddr::from(([10, 0, 0, 1], 1000 + number as u16));
    assert!(call(&mut responder, NOW, 0, host(7 << 8)));
    assert!((1..=7).all(|number| call(&mut responder, NOW, number, port(number))));
    let firsts = responder.half_open();
    assert!((8..20).all(|number| call(&mut responder, NOW, number, v6(number as u16, 0))));
    assert_eq!((firsts, responder.half_open()), (8, 8));
    assert_eq!(responder.refusals().of(Refused::Evicted), 12);
    // The single handshake of another network has outlived those of the host with seven.
    let of_the_other = answer(&mut responder, NOW, host(7 << 8), &initiator(keys(1, &[2]), 0).1);
    assert!(
        of_the_other.is_none_or(|message| !matches!(message, HandshakeMessage::Handshake2 { .. })),
        "it was the oldest at last"
    );
}

#[test]
fn failing_and_unfinished_handshakes_are_rate_limited() {
    let mut responder = responder(keys(2, &[1]), small());
    let mut flood = unfinished_handshakes(|number| net(number, 1));
    for ms in 0..2000 {
        flood(&mut responder, NOW + Duration::from_millis(ms), &[]);
    }
    let begun = responder.refusals().of(Refused::Evicted)
        + responder.refusals().of(Refused::Expired)
        + responder.half_open() as u64;
    // At once 16 may begin, beside 200 in two seconds.
    assert!((150..=216).contains(&begun), "{begun}");
    assert!(responder.refusals().of(Refused::Full) > 1000);
}

#[test]
fn a_host_with_a_trusted_peer_keeps_its_slot() {
    let config = ResponderConfig {
        max_half_open: 8,
        cookie_threshold: 0,
        handshakes_per_second: 800,
        ..ResponderConfig::default()
    };
    let mut responder = responder(keys(2, &[1]), config);
    time_to_connect(&mut responder, NOW, host(1), |_, _, _| ());
    let now = NOW + Duration::from_secs(1);
    assert!(call(&mut responder, now, 1, host(1)));
    assert!((2..90).all(|number| call(&mut responder, now, number, host(number << 8))));
    assert_eq!(responder.half_open(), 8);
    let first = initiator(keys(1, &[2]), 1).1;
    assert!(
        matches!(answer(&mut responder, now, host(1), &first), Some(HandshakeMessage::Handshake2 { .. })),
        "the same answer"
    );
    // The rate is used up, but not for such a host.
    assert!((100..200).filter(|number| call(&mut responder, now, *number, host(number << 8))).count() < 20);
    assert!(call(&mut responder, now, 200, host(1)));
}

#[test]
fn a_flood_from_a_host_with_a_trusted_peer_leaves_room_for_other_hosts() {
    let config = ResponderConfig {
        max_half_open: 1024,
        cookie_threshold: 0,
        handshakes_per_second: 800,
        ..ResponderConfig::default()
    };
    let mut responder = responder(keys(2, &[1]), config);
    time_to_connect(&mut responder, NOW, host(1), |_, _, _| ());
    let now = NOW + Duration::from_secs(1);
    let answered = (0..200).filter(|number| call(&mut responder, now, *number, host(1))).count();
    assert!((50..=100).contains(&answered), "{answered}");
    assert!(call(&mut responder, now, 200, host(9 << 8)), "a stranger");
    time_to_connect(&mut responder, now, host(8 << 8), |_, _, _| ());
    let later = now + Duration::from_millis(999);
    assert!(call(&mut responder, later, 201, host(8 << 8)), "another host of a trusted peer");
}

#[test]
fn under_load_the_handshake_timeout_is_shorter() {
    let config = ResponderConfig { max_half_open: 8, cookie_threshold: 0, ..ResponderConfig::default() };
    let mut responder = responder(keys(2, &[1]), config);
    assert!((0..4).all(|number| call(&mut responder, NOW, number, host(number << 8))));
    assert_eq!(responder.poll_timeout(), Some(NOW + Duration::from_secs(10)));
    assert!(call(&mut responder, NOW, 4, host(4 << 8)));
    assert_eq!(responder.poll_timeout(), Some(NOW + Duration::from_millis(2500)));
    responder.handle_timeout(NOW + Duration::from_millis(2500));
    assert_eq!(responder.half_open(), 4, "one gone, and the others have time again");
}

/// The id that the responder has chosen stands in the third message.
fn third(responder: &mut Responder, from: SocketAddr, number: u32) -> Bytes {
    let (mut initiator, first) = initiator(keys(1, &[2]), number);
    let second = answer(responder, NOW, from, &first).unwrap();
    initiator.handle_datagram(NOW, &second.to_bytes());
    initiator.poll_transmit().unwrap()
}

#[test]
fn failing_third_messages_have_a_bounded_budget_and_block_no_other_handshake() {
    let mut responder = responder(keys(2, &[1]), ResponderConfig::default());
    let attacked = third(&mut responder, host(1), 1);
    let other = third(&mut responder, host(2), 2);
    let garbage = |byte: u8| [&attacked[..13], &[byte; 92]].concat();
    let damaged = |byte: u8| {
        let mut damaged = attacked.to_vec();
        *damaged.last_mut().unwrap() ^= byte;
        damaged
    };
    for number in 0..10_000_u32 {
        let byte = 1 | number as u8;
        responder.handle_datagram(NOW, host(1), &mut garbage(byte));
        responder.handle_datagram(NOW, host(1), &mut damaged(byte));
        responder.handle_datagram(NOW, host(3), &mut garbage(byte));
        responder.handle_datagram(NOW, host(1), &mut [&attacked[..13], &[byte; 63]].concat());
    }
    let of = |refused| responder.refusals().of(refused);
    assert_eq!(of(Refused::Malformed), 10_000, "too short to be one");
    let read = of(Refused::Unauthentic);
    assert!((10..=100).contains(&read), "{read}");
    assert_eq!(of(Refused::OverBudget), 30_000 - read);

    responder.handle_datagram(NOW, host(2), &mut other.to_vec());
    assert!(matches!(responder.poll_event(), Some(ResponderEvent::Accepted(_))), "another handshake");
    let later = NOW + Duration::from_secs(1);
    responder.handle_datagram(later, host(1), &mut attacked.to_vec());
    assert!(matches!(responder.poll_event(), Some(ResponderEvent::Accepted(_))), "the attacked one, too");
}

#[test]
fn failing_datagrams_under_a_shared_key_share_the_same_budget() {
    let mut responder = responder(shared(7), ResponderConfig::default());
    let (mut initiator, first) = initiator(shared(7), 1);
    let second = answer(&mut responder, NOW, host(1), &first).unwrap();
    initiator.handle_datagram(NOW, &second.to_bytes());
    let Some(InitiatorEvent::Completed(mut established)) = initiator.poll_event() else { panic!("no keys") };
    let genuine = sealed(&mut established.session, b"data");
    let forged = [&genuine[..12], &[7; 1400]].concat();
    for _ in 0..10_000 {
        responder.handle_datagram(NOW, host(1), &mut forged.clone());
    }
    assert_eq!(responder.refusals().of(Refused::Unauthentic), 2001);
    responder.handle_datagram(NOW + Duration::from_secs(1), host(1), &mut genuine.to_vec());
    assert!(matches!(responder.poll_event(), Some(ResponderEvent::Accepted(_))));
}

#[test]
fn an_initiator_with_a_proven_address_replaces_one_without() {
    let config = ResponderConfig { max_half_open: 8, cookie_threshold: 8, ..ResponderConfig::default() };
    let mut responder = responder(keys(2, &[1]), config);
    for number in 0..8 {
        assert!(answer(&mut responder, NOW, host(number), &initiator(keys(1, &[2]), number).1).is_some());
    }
    let (mut honest, first) = initiator(keys(1, &[2]), 9);
    let retry = answer(&mut responder, NOW, host(9), &first);
    let again = with_cookie(&mut honest, retry);
    assert!(matches!(
        answer(&mut responder, NOW, host(9), &again),
        Some(HandshakeMessage::Handshake2 { .. })
    ));
    assert_eq!(responder.half_open(), 8);
}

#[test]
fn first_messages_without_the_shared_key_leave_no_state() {
    let mut responder = responder(shared(7), ResponderConfig::default());
    for number in 0..1000 {
        assert!(answer(&mut responder, NOW, host(number), &initiator(shared(8), number).1).is_none());
    }
    assert_eq!((responder.half_open(), responder.refusals().of(Refused::Unauthentic)), (0, 1000));
}

#[test]
fn a_repeated_first_message_gets_the_same_answer_and_no_second_slot() {
    let mut responder = responder(keys(2, &[1]), ResponderConfig::default());
    let (_, first) = initiator(keys(1, &[2]), 1);
    let second = answer(&mut responder, NOW, host(1), &first);
    for _ in 0..1000 {
        assert_eq!(answer(&mut responder, NOW, host(1), &first), second);
    }
    assert_eq!(responder.half_open(), 1);
}

#[test]
fn during_a_flood_messages_and_cookies_get_no_more_answers_than_their_senders_need() {
    let mut responder =
        responder(keys(2, &[1]), ResponderConfig { cookie_threshold: 0, ..ResponderConfig::default() });
    let (mut caller, first) = initiator(keys(1, &[2]), 1);
    let retry = answer(&mut responder, NOW, host(1), &first);
    let again = with_cookie(&mut caller, retry);
    for number in 2..20_000 {
        answer(&mut responder, NOW, host(number), &first);
    }
    let mut answers = |ms: u64, times: usize| {
        let now = NOW + Duration::from_millis(ms);
        (0..times).filter(|_| answer(&mut responder, now, host(1), &again).is_some()).count()
    };
    assert_eq!(answers(0, 1), 1, "with a cookie it is answered at once");
    // Its answer may be lost: it is answered again, when its sender would say it again.
    assert_eq!(answers(400, 1000), 1);
    assert_eq!(answers(420, 1000), 0);
    assert_eq!(answers(1200, 1000), 1);
}

#[test]
fn accepted_connections_leave_no_state() {
    let config = ResponderConfig { max_half_open: 8, cookie_threshold: 8, ..ResponderConfig::default() };
    let mut responder = responder(keys(2, &[1]), config);
    for number in 0..100 {
        let now = NOW + Duration::from_millis(4) * u64::from(number);
        let (mut initiator, first) = initiator(keys(1, &[2]), number);
        let second = answer(&mut responder, now, host(number), &first).unwrap();
        initiator.handle_datagram(now, &second.to_bytes());
        let third = initiator.poll_transmit().unwrap();
        responder.handle_datagram(now, host(number), &mut third.to_vec());
        assert!(matches!(responder.poll_event(), Some(ResponderEvent::Accepted(_))));
        assert_eq!(responder.half_open(), 0);
    }
    assert!(responder.poll_timeout().is_some(), "what was accepted is remembered for a while");
    responder.handle_timeout(NOW + Duration::from_secs(11));
    assert_eq!(responder.poll_timeout(), None);
}
