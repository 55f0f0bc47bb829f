//! Handshake of TPA connections with a stateless listener.

use super::Choices;
use super::tpa::check;
use bytes::Bytes;
use hopline_core::{Duration, Instant, LinkId, StateMachine};
use hopline_transport::tpa::{Config, Endpoint, Listener, Secret, State, Verdict};
use hopline_wire::tpa::{Ack, Control, Opening, Segment, SegmentPosition, Tag};
use std::num::NonZeroU64;

/// Shortest lifetime of a tag, seconds; the longest is twice this.
const LIFETIME: u64 = 30;

/// Tag from the listener, with its address, parameters and time.
struct Given {
    tag: Tag,
    address: u8,
    opening: Opening,
    at: Instant,
}

/// Sends a listener SYNs and second handshake messages, from several addresses. Checks that a connection is opened only from
/// a challenge of the listener, from the challenged address and in time, and that the connection works.
pub fn tpa_listener(data: &[u8]) {
    let mut choices = Choices(data);
    let listener = Listener::new(Config::tpa(3), Secret([choices.byte(); 16])).expect("a preset");
    let mut given: Vec<Given> = Vec::new();
    let mut now = Instant::ZERO;
    while !choices.is_over() {
        match choices.byte() % 4 {
            0 => now += Duration::from_millis(u64::from(choices.u32() % 45_000)),
            1 => call(&listener, &mut choices, now, &mut given),
            2 => complete(&listener, &mut choices, now, &given),
            _ => anything(&listener, &mut choices, now),
        }
    }
}

fn any_opening(choices: &mut Choices<'_>) -> Opening {
    Opening {
        tag: NonZeroU64::new(u64::from(choices.byte() % 3)).map(Tag),
        mss: choices.pick(&[0, 1000, 1460]),
        block_segments: 1 + choices.byte() % 12,
        cwnd_max: choices.pick(&[1, 3, 255]),
    }
}

fn call(listener: &Listener, choices: &mut Choices<'_>, now: Instant, given: &mut Vec<Given>) {
    let (address, opening) = (choices.byte() % 4, any_opening(choices));
    let syn = Segment { control: Control::Syn, opening: Some(opening), ..Segment::<Bytes>::default() };
    match listener.handle(now, &[address], syn) {
        Verdict::Reply(reply) => {
            assert_eq!((reply.control, reply.tag), (Control::Syn, opening.tag));
            let tag = reply.opening.and_then(|opening| opening.tag).expect("a listener gives a tag");
            given.push(Given { tag, address, opening, at: now });
        }
        Verdict::Refused(_) => assert!(opening.tag.is_none(), "only a caller without tag is refused"),
        Verdict::Accepted(_) => panic!("a SYN proves nothing"),
    }
}

/// Repeats a tag of the listener, perhaps with something changed.
fn complete(listener: &Listener, choices: &mut Choices<'_>, now: Instant, given: &[Given]) {
    if given.is_empty() {
        return;
    }
    let Given { mut tag, mut address, mut opening, at } = given[usize::from(choices.byte()) % given.len()];
    match choices.byte() {
        0..20 => address = choices.byte() % 4,
        20..40 => opening = any_opening(choices),
        40..60 => tag = Tag(NonZeroU64::new(u64::from(choices.u32())).unwrap_or(NonZeroU64::MIN)),
        _ => {}
    }
    let place = choices.pick(&[None, Some(SegmentPosition { position: 0, is_last: true })]);
    let first = Segment {
        control: if place.is_some() { choices.pick(&[Control::None, Control::Fin]) } else { Control::None },
        position: place,
        ack: Some(Ack { block: u16::MAX, ..Ack::default() }),
        window: 10_000,
        tag: Some(tag),
        opening: Some(opening),
        payload: Bytes::from(vec![0; if place.is_some() { 100 } else { 0 }]),
        ..Segment::default()
    };
    let epoch = |at: Instant| at.as_nanos() / Duration::from_secs(LIFETIME).as_nanos();
    let right = given
        .iter()
        .any(|g| (g.tag, g.address, g.opening) == (tag, address, opening) && epoch(now) - epoch(g.at) <= 1);
    match listener.handle(now, &[address], first.clone()) {
        Verdict::Accepted(endpoint) => {
            assert!(right, "accepted what was not asked for, given {at}");
            try_out(endpoint, now, first);
        }
        Verdict::Refused(_) => assert!(!right, "refused what was asked for, given {at}"),
        Verdict::Reply(_) => panic!("only a SYN is answered"),
    }
}

/// Passes the first segment again, which must change nothing, and sends.
fn try_out(mut endpoint: Endpoint<Bytes>, now: Instant, first: Segment<Bytes>) {
    assert!(matches!(endpoint.state(), State::Established | State::CloseWait));
    assert!(endpoint.poll_transmit(now).is_some(), "the peer waits for a sign");
    let unread = endpoint.received_unread();
    endpoint.handle_packet(now, LinkId::ONLY, first);
    assert_eq!(endpoint.received_unread(), unread);
    endpoint.send(now, Bytes::from_static(b"data")).expect("open");
    endpoint.flush(now);
    while endpoint.poll_transmit(now).is_some() {}
    check(&endpoint);
}

/// Passes a segment that no challenge requested.
fn anything(listener: &Listener, choices: &mut Choices<'_>, now: Instant) {
    let control = choices.pick(&[Control::None, Control::Syn, Control::Fin, Control::Rst]);
    let segment = Segment {
        block: choices.u32() as u16,
        ack: choices.pick(&[None, Some(Ack::default())]),
        control,
        tag: NonZeroU64::new(u64::from(choices.byte())).map(Tag),
        opening: choices.pick(&[true, false]).then(|| any_opening(choices)),
        ..Segment::<Bytes>::default()
    };
    assert_eq!(Listener::refuse(&segment).is_some(), control == Control::Syn && segment.opening.is_some());
    assert!(!matches!(listener.handle(now, &[0], segment), Verdict::Accepted(_)), "a guessed tag");
}
