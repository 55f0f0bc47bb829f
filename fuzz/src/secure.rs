//! Encryption layer: handshakes at both ends, sealed datagrams, key files.

use crate::machines::Choices;
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_secure::keys::{KeyFileError, KnownPeers, private_key, private_key_file, shared_key};
use hopline_secure::{
    Accepted, Cipher, ConnectionId, Credentials, Established, Initiator, InitiatorConfig, InitiatorEvent,
    Method, Opened, Order, PathConfig, PathEvent, Paths, PreSharedKey, PrivateKey, PublicKey, Responder,
    ResponderConfig, ResponderEvent, Sealer, Seed, Session, Trust,
};
use hopline_wire::secure::{Control, HANDSHAKE_1_LEN, HEADER_LEN, HandshakeMessage, SealedHeader};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Most steps of a script: handshakes cost far more than steps of other scripts.
const MOST_STEPS: usize = 24;
/// Most simultaneous handshakes of the responder.
const HALF_OPEN: u16 = 4;

/// First packet number of a script; the connection was accepted with the one before.
const FIRST: u64 = 1;

/// Bytes of a datagram. A parsed message, header or control frame survives emitting and parsing again.
pub fn secure_message(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    if let Ok(message) = HandshakeMessage::parse(&bytes) {
        let again = message.to_bytes();
        assert_eq!(HandshakeMessage::parse(&again).as_ref(), Ok(&message));
        assert!(again.len() <= bytes.len());
    }
    if let Ok(header) = SealedHeader::parse(data) {
        assert_eq!(header.bytes()[..], data[..HEADER_LEN]);
    }
    if let Ok(control) = Control::parse(data) {
        assert_eq!(control.bytes()[..], data[..control.bytes().len()]);
    }
}

/// Script for an initiator: messages of its responder, genuine or damaged, any others, and time. It shares keys only with
/// its responder, sends no more messages than its tries and a few cookies, and ends.
pub fn secure_opener(data: &[u8]) {
    let mut choices = Choices(data);
    let method = choices.pick(&[Method::SharedKey, Method::PublicKeys]);
    let (mut initiator, first) = open(method, 1);
    let mut responder = responder(method, ResponderConfig::default());
    let second = answer(&mut responder, Instant::ZERO, address(0), &first).expect("it is answered");
    let (mut now, mut sent, mut completed) = (Instant::ZERO, 1, None);
    let local = initiator.local_id();
    for _ in 0..MOST_STEPS {
        match choices.byte() % 6 {
            0 => now += Duration::from_millis(u64::from(choices.u16() % 8000)),
            1 => initiator.handle_datagram(now, &second),
            2 => initiator.handle_datagram(now, &damaged(&second, &mut choices)),
            3 => {
                let cookie = [choices.byte(); 16];
                initiator
                    .handle_datagram(now, &HandshakeMessage::Retry { initiator: local, cookie }.to_bytes());
            }
            4 => initiator.confirm(),
            _ => initiator.handle_datagram(now, &anything(&mut choices, local)),
        }
        initiator.handle_timeout(now);
        sent += std::iter::from_fn(|| initiator.poll_transmit()).count();
        while let Some(event) = initiator.poll_event() {
            if let InitiatorEvent::Completed(established) = event {
                assert!(completed.replace(established).is_none(), "completed twice");
            }
        }
        if choices.is_over() {
            break;
        }
    }
    while let Some(due) = initiator.poll_timeout() {
        initiator.handle_timeout(due);
        sent += std::iter::from_fn(|| initiator.poll_transmit()).count();
    }
    // Two messages, ten tries each, the first with up to three cookies a try.
    assert!(sent <= 2 * 10 + 3 * 10, "{sent} messages");
    if let Some(established) = completed {
        assert_eq!(established.parameters, b"of the responder"[..]);
        assert_eq!(established.peer, (method == Method::PublicKeys).then(|| public(2)));
    }
}

/// Longest time that a first message is deferred: as long as its initiator waits.
const MOST_DEFERRED: Duration = Duration::from_millis(400);

/// Script for a responder: first messages from several addresses, replies to its answers, all of them repeated and damaged,
/// any others, and time. A connection is opened only with an initiator that has the keys, once. Each datagram gets at most
/// one answer, of at most three times its length. State is bounded, and expires.
pub fn secure_answerer(data: &[u8]) {
    let mut choices = Choices(data);
    let method = choices.pick(&[Method::SharedKey, Method::PublicKeys]);
    let config = ResponderConfig::default()
        .with_max_half_open(HALF_OPEN)
        .with_cookie_threshold(2)
        .with_handshakes_per_second(3);
    let mut responder = responder(method, config);
    let mut callers = Vec::new();
    let (mut now, mut accepted) = (Instant::ZERO, BTreeSet::new());
    for _ in 0..MOST_STEPS {
        let from = address(choices.byte() % 6);
        let datagram = match choices.byte() % 6 {
            0 => {
                now += Duration::from_millis(u64::from(choices.u16() % 8000));
                let answers = answer_deferred(&mut responder, now);
                answers.iter().for_each(|answer| hear(&mut callers, now, answer));
                continue;
            }
            1 => {
                let (initiator, first) = open(method, choices.byte() % 4);
                callers.push((initiator, first.clone()));
                first
            }
            2 | 3 => match pick(&mut choices, &callers) {
                Some((_, last)) => last.clone(),
                None => anything(&mut choices, ConnectionId::new([1; 8]).expect("no magic number")),
            },
            4 => match pick(&mut choices, &callers) {
                Some((_, last)) => damaged(last, &mut choices),
                None => continue,
            },
            _ => anything(&mut choices, ConnectionId::new([2; 8]).expect("no magic number")),
        };
        if let Some(answer) = answer(&mut responder, now, from, &datagram) {
            hear(&mut callers, now, &answer);
        }
        while let Some(event) = responder.poll_event() {
            if let ResponderEvent::Accepted(Accepted { established, .. }) = event {
                assert_eq!(established.parameters, b"of the initiator"[..]);
                assert_eq!(established.peer, (method == Method::PublicKeys).then(|| public(1)));
                assert!(accepted.insert(established.binding), "accepted twice");
            }
        }
        assert!(responder.half_open() <= HALF_OPEN.into());
        if choices.is_over() {
            break;
        }
    }
    while let Some(due) = responder.poll_timeout() {
        assert!(due <= now + MOST_DEFERRED + config.handshake_timeout());
        responder.handle_timeout(due);
    }
    assert_eq!(responder.half_open(), 0);
}

/// Script for two ends with keys: datagrams are sealed, and arrive in any order, repeated, damaged, from any address, or are
/// arbitrary. Each is opened once, with the sealed content, and no other is. Only an opened datagram migrates a connection,
/// and little is sent to an address that is not validated.
pub fn secure_datagram(data: &[u8]) {
    let mut choices = Choices(data);
    let [mut ours, mut theirs] = sessions(choices.pick(&[Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305]));
    let mut paths =
        Paths::new(PathConfig::default(), address(0), &Seed::new([3; 32])).expect("defaults are right");
    let (mut now, mut sealed, mut opened) = (Instant::ZERO, Vec::<Vec<u8>>::new(), BTreeSet::new());
    let mut flows: [(u64, u64); 6] = [(0, 0); 6];
    while !choices.is_over() {
        let way = choices.byte() % 6;
        let from = address(way);
        let mut datagram = match choices.byte() % 5 {
            0 => {
                let payload = vec![choices.byte(); usize::from(choices.byte())];
                let mut datagram = [&[0; HEADER_LEN][..], &payload, &[0; 16]].concat();
                let number = ours.sealer.seal(&mut datagram).expect("there is room");
                assert_eq!(number, FIRST + sealed.len() as u64);
                sealed.push(datagram);
                continue;
            }
            1 => {
                now += Duration::from_millis(u64::from(choices.u16()));
                paths.handle_timeout(now);
                drain(&mut paths, now, &mut flows);
                continue;
            }
            2 => match pick(&mut choices, &sealed) {
                Some(datagram) => datagram.clone(),
                None => continue,
            },
            3 => match pick(&mut choices, &sealed) {
                Some(datagram) => damaged(&Bytes::copy_from_slice(datagram), &mut choices).to_vec(),
                None => continue,
            },
            _ => anything(&mut choices, theirs.unsealer.local_id()).to_vec(),
        };
        let (len, before) = (datagram.len(), datagram.clone());
        if let Ok(Opened { number, order, payload }) = theirs.unsealer.open(&mut datagram) {
            assert_eq!(sealed[(number - FIRST) as usize], before, "what was never sealed");
            assert!(payload.windows(2).all(|pair| pair[0] == pair[1]), "another content");
            assert_eq!(order == Order::Newest, opened.last().is_none_or(|last| number > *last));
            assert!(opened.insert(number), "opened twice");
            flows[usize::from(way)].0 += len as u64;
            paths.record_received(now, from, len, order);
            drain(&mut paths, now, &mut flows);
        }
    }
    assert!(paths.candidates().count() <= 4);
    assert_eq!(paths.active(), address(0), "nobody has answered a challenge");
}

/// Text of a key file, or of a file of known peers. Errors have a position; accepted files survive writing and reading
/// again.
pub fn secure_files(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let placed = |mistake: &KeyFileError| {
        assert!(mistake.span.start <= mistake.span.end && mistake.span.end <= text.len());
        assert!(text.is_char_boundary(mistake.span.start) && text.is_char_boundary(mistake.span.end));
        let (line, column) = mistake.line_column(text);
        assert!(line >= 1 && column >= 1 && !mistake.message.is_empty() && !mistake.help.is_empty());
    };
    match private_key(text) {
        Ok(key) => {
            let again = private_key(&private_key_file(&key)).expect("what is written is right");
            assert_eq!(again.public(), key.public());
        }
        Err(mistake) => placed(&mistake),
    }
    if let Err(mistake) = shared_key(text) {
        placed(&mistake);
    }
    match KnownPeers::parse(text) {
        Ok(known) => {
            let again: String =
                known.peers().iter().map(|peer| KnownPeers::line(&peer.name, &peer.key)).collect();
            let again = KnownPeers::parse(&again).expect("what is written is right");
            assert_eq!(again.peers().len(), known.peers().len());
            assert!(
                known
                    .peers()
                    .iter()
                    .all(|peer| again.get(&peer.name).is_some_and(|other| other.key == peer.key))
            );
        }
        Err(mistakes) => {
            assert!((1..=20).contains(&mistakes.len()));
            mistakes.iter().for_each(placed);
        }
    }
}

fn address(of: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, of / 2], 1000 + u16::from(of)))
}

fn public(key: u8) -> PublicKey {
    PrivateKey::new([key; 32]).public()
}

fn credentials(method: Method, own: u8, other: u8) -> Credentials {
    match method {
        Method::SharedKey => Credentials::Shared(PreSharedKey::new([7; 32])),
        Method::PublicKeys => {
            let trust = Trust::Only(vec![public(other)]);
            Credentials::Keys { private: PrivateKey::new([own; 32]), trust }
        }
    }
}

fn open(method: Method, seed: u8) -> (Initiator, Bytes) {
    let parameters = Bytes::from_static(b"of the initiator");
    let seed = Seed::new([seed; 32]);
    let opened = Initiator::open(
        Instant::ZERO,
        InitiatorConfig::default(),
        credentials(method, 1, 2),
        parameters,
        &seed,
    );
    let mut initiator = opened.expect("defaults are right");
    let first = initiator.poll_transmit().expect("it begins");
    (initiator, first)
}

fn responder(method: Method, config: ResponderConfig) -> Responder {
    let parameters = Bytes::from_static(b"of the responder");
    let made = Responder::new(config, credentials(method, 2, 1), parameters, &Seed::new([99; 32]));
    made.expect("the settings are right")
}

/// Returns the answer, and checks its limits.
fn answer(responder: &mut Responder, now: Instant, from: SocketAddr, datagram: &Bytes) -> Option<Bytes> {
    assert_eq!(answer_deferred(responder, now).len(), 0, "what waited was answered at its time");
    responder.handle_datagram(now, from, &mut datagram.to_vec());
    let (to, answer) = responder.poll_transmit()?;
    assert_eq!(to, from);
    assert!(answer.len() <= 3 * datagram.len() && responder.poll_transmit().is_none());
    Some(answer)
}

/// Returns the answers to deferred first messages, and checks that each goes to the address it came from.
fn answer_deferred(responder: &mut Responder, now: Instant) -> Vec<Bytes> {
    let waiting: Vec<_> = (0..=u8::MAX).map(address).filter(|&at| responder.defers(at)).collect();
    responder.handle_timeout(now);
    let answers: Vec<_> = std::iter::from_fn(|| responder.poll_transmit()).collect();
    assert!(answers.iter().all(|(to, answer)| waiting.contains(to) && answer.len() <= 3 * HANDSHAKE_1_LEN));
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Passes an answer to all initiators. Their next message replaces their last.
fn hear(callers: &mut [(Initiator, Bytes)], now: Instant, answer: &Bytes) {
    for (initiator, last) in callers {
        initiator.handle_datagram(now, answer);
        if let Some(next) = follow(initiator) {
            *last = next;
        }
    }
}

/// Returns the next message of an initiator: a first message with a cookie, a third one, or its first sealed datagram under
/// a shared key.
fn follow(initiator: &mut Initiator) -> Option<Bytes> {
    let next = initiator.poll_transmit();
    match initiator.poll_event() {
        Some(InitiatorEvent::Completed(mut established)) if next.is_none() => {
            let mut empty = vec![0; Sealer::OVERHEAD];
            established.session.sealer.seal(&mut empty).expect("there is room");
            Some(empty.into())
        }
        _ => next,
    }
}

fn sessions(cipher: Cipher) -> [Session; 2] {
    let config = InitiatorConfig::default().with_cipher(cipher);
    let method = Method::SharedKey;
    let opened =
        Initiator::open(Instant::ZERO, config, credentials(method, 1, 2), Bytes::new(), &Seed::new([1; 32]));
    let mut initiator = opened.expect("defaults are right");
    let mut responder = responder(method, ResponderConfig::default());
    let first = initiator.poll_transmit().expect("it begins");
    let second = answer(&mut responder, Instant::ZERO, address(0), &first).expect("it is answered");
    initiator.handle_datagram(Instant::ZERO, &second);
    let Some(InitiatorEvent::Completed(Established { session: mut ours, .. })) = initiator.poll_event()
    else {
        panic!("no keys")
    };
    let mut empty = vec![0; Sealer::OVERHEAD];
    ours.sealer.seal(&mut empty).expect("there is room");
    responder.handle_datagram(Instant::ZERO, address(0), &mut empty);
    let Some(ResponderEvent::Accepted(Accepted { established: Established { session: theirs, .. }, .. })) =
        responder.poll_event()
    else {
        panic!("not accepted")
    };
    [ours, theirs]
}

/// Takes the control frames to send, and events, and checks the limits.
fn drain(paths: &mut Paths, now: Instant, flows: &mut [(u64, u64); 6]) {
    while let Some((to, control)) = paths.poll_control(now) {
        let len = Sealer::OVERHEAD + control.bytes().len();
        assert!(paths.allowance(to) >= len as u64);
        paths.record_sent(to, len);
        let flow = (0..6).find(|way| address(*way) == to).expect("one of ours");
        let (received, sent) = &mut flows[usize::from(flow)];
        *sent += len as u64;
        assert!(to == address(0) || *sent <= 3 * *received, "{sent} bytes for {received}");
    }
    while let Some(event) = paths.poll_event() {
        assert!(matches!(event, PathEvent::Abandoned { .. }), "nobody has answered a challenge");
    }
}

fn pick<'a, T>(choices: &mut Choices<'_>, of: &'a [T]) -> Option<&'a T> {
    of.get(usize::from(choices.byte()).checked_rem(of.len())?)
}

/// Returns the datagram with one random change.
fn damaged(datagram: &Bytes, choices: &mut Choices<'_>) -> Bytes {
    let mut bytes = datagram.to_vec();
    let at = usize::from(choices.u16()) % bytes.len().max(1);
    match choices.byte() % 4 {
        0 => bytes.truncate(at),
        1 => bytes.push(choices.byte()),
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (choices.byte() % 8)),
    }
    bytes.into()
}

/// Returns a message with a valid header, or any bytes.
fn anything(choices: &mut Choices<'_>, id: ConnectionId) -> Bytes {
    let len = usize::from(choices.byte());
    let content = Bytes::from_iter((0..len).map(|_| choices.byte()));
    match choices.byte() % 5 {
        0 => HandshakeMessage::Handshake2 { initiator_id: id, noise: content }.to_bytes(),
        1 => HandshakeMessage::Handshake3 { responder_id: id, noise: content }.to_bytes(),
        2 => Bytes::from([&id.bytes()[..], &content].concat()),
        3 => Bytes::from([&b"TPAW"[..], &content].concat()),
        _ => content,
    }
}
