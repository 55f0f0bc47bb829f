//! TPA endpoint.

use super::Choices;
use bytes::Bytes;
use hopline_core::{Duration, Instant, LinkId, StateMachine};
use hopline_transport::Signal;
use hopline_transport::tpa::{
    AckEvery, BlockNumbers, CompleteBlock, Config, CongestedBackoff, CountReset, EchoRule, Endpoint,
    FreezeExit, Identity, MergedExit, Notification, RoundStart, Secret, SimultaneousTimeouts, State,
};
use hopline_wire::tpa::{
    Ack, Bitmap, ChallengeToken, Control, Opening, POSITIONS, Receipt, Segment, SegmentPosition, Tag, TxStat,
};
use std::num::NonZeroU64;

/// Drives a TPA endpoint with any sequence of segments, timeouts, signals and calls. Checks that it never panics, keeps its
/// memory within its buffer and its window within cwndmax, and has a timer set while it expects something from the peer.
pub fn tpa_endpoint(data: &[u8]) {
    let mut choices = Choices(data);
    let config = any_config(&mut choices);
    let mut peer =
        Peer { heard: Segment::default(), tag: choices.pick(&[None, tag(7)]), nonces: Default::default() };
    let endpoint = match peer.tag {
        Some(tag) => Endpoint::tagged(config, Identity { tag, secret: Secret([7; 16]) }),
        None => Endpoint::new(config),
    };
    let mut endpoint = endpoint.expect("within the ranges");
    let mut now = Instant::ZERO;
    while !choices.is_over() {
        operate(&mut endpoint, &mut choices, &mut now, &peer);
        drain(&mut endpoint, now, &mut peer);
        check(&endpoint);
    }
}

fn tag(n: u64) -> Option<Tag> {
    NonZeroU64::new(n).map(Tag)
}

/// State that a plausible peer knows.
struct Peer {
    /// Latest segment of the endpoint.
    heard: Segment<Bytes>,
    /// Tag of the endpoint.
    tag: Option<Tag>,
    /// Nonces of the positions of the latest block.
    nonces: [u16; POSITIONS as usize],
}

impl Peer {
    fn hear(&mut self, segment: Segment<Bytes>) {
        if let Some(place) = segment.position {
            self.nonces[usize::from(place.position)] = segment.receipt.nonce;
        }
        self.heard = segment;
    }

    fn proof_of(&self, received: Bitmap) -> u16 {
        received.positions().fold(0, |proof, position| proof ^ self.nonces[usize::from(position)])
    }
}

fn any_config(choices: &mut Choices<'_>) -> Config {
    let mut c = Config::tpa(1 + choices.byte() % 12);
    c = c.with_block_segments(1 + choices.byte() % 12).with_mss(choices.pick(&[1, 20, 500, 1460]));
    c = c
        .with_receive_buffer(u32::from(c.mss()) * u32::from(c.block_segments()) * choices.pick(&[1, 3]))
        .with_send_buffer(Some(50_000))
        .with_block_numbers(choices.pick(&[BlockNumbers::Bits16, BlockNumbers::Bits8]))
        .with_rounds(choices.pick(&[RoundStart::AllSent, RoundStart::AllResolved]));
    c = c.with_ack(c.ack().with_every(choices.pick(&[AckEvery::Other, AckEvery::Window])));
    c = c.with_ack(
        c.ack().with_complete_block(choices.pick(&[CompleteBlock::AckAtOnce, CompleteBlock::AckAsUsual])),
    );
    c = c.with_ack(c.ack().with_echo(choices.pick(&[EchoRule::Last, EchoRule::First])));
    let mut f = c.failures();
    f = f
        .with_notification(choices.pick(&[
            Notification::None,
            Notification::Elfn,
            Notification::ElfnAndRecovery,
        ]))
        .with_th_cong(choices.pick(&[1, 2, 200]));
    f = f
        .with_th_route(choices.pick(&[None, Some(3)]).filter(|_| f.notification() != Notification::None))
        .with_th_ack(choices.pick(&[1, 2]))
        .with_count_reset(choices.pick(&[CountReset::AnyNewAck, CountReset::LatestTransmission]))
        .with_simultaneous(choices.pick(&[SimultaneousTimeouts::Each, SimultaneousTimeouts::Once]))
        .with_congested_backoff(choices.pick(&[
            CongestedBackoff::WhenMerged,
            CongestedBackoff::Always,
            CongestedBackoff::Never,
        ]))
        .with_freeze_exit(choices.pick(&[FreezeExit::LatestTransmission, FreezeExit::AnyNewAck]))
        .with_merged_exit(choices.pick(&[MergedExit::RouteChange, MergedExit::Plain]));
    c = c.with_failures(f);
    c = c
        .with_keep_alive(choices.pick(&[None, Some(Duration::from_secs(30))]))
        .with_silence_limit(choices.pick(&[Some(Duration::from_secs(120)), None]));
    c
}

fn operate(endpoint: &mut Endpoint<Bytes>, choices: &mut Choices<'_>, now: &mut Instant, peer: &Peer) {
    match choices.byte() % 18 {
        0 => {
            let _ = endpoint.connect(*now);
        }
        1 => {
            let _ = endpoint.listen();
        }
        2 => {
            let len = usize::from(choices.byte()) * 64;
            let _ = endpoint.send(*now, Bytes::from(vec![0; len]));
        }
        3 => endpoint.flush(*now),
        4 => {
            let _ = endpoint.recv();
        }
        5 if choices.byte() < 32 => {
            let _ = endpoint.close(*now);
        }
        6 if choices.byte() < 8 => endpoint.abort(*now),
        7 => endpoint.handle_signal(*now, choices.pick(&[Signal::RouteLost, Signal::RouteFound])),
        8 => {
            *now += Duration::from_millis(u64::from(choices.byte()) * u64::from(choices.byte()));
            endpoint.handle_timeout(*now);
        }
        9 | 10 => {
            if let Some((at, _)) = endpoint.poll_timeout() {
                *now = at.max(*now);
                endpoint.handle_timeout(*now);
            }
        }
        _ => {
            let segment = any_segment(choices, peer);
            endpoint.handle_packet(*now, LinkId::ONLY, segment);
        }
    }
}

/// Returns a segment near the one that the endpoint expects, or anywhere.
fn any_segment(choices: &mut Choices<'_>, peer: &Peer) -> Segment<Bytes> {
    let near = |choices: &mut Choices<'_>, base: u16| match choices.byte() {
        0..160 => base,
        160..240 => base.wrapping_add(u16::from(choices.byte() % 4)).wrapping_sub(1),
        _ => choices.u32() as u16,
    };
    let received = peer.heard.ack.unwrap_or_default();
    let control = choices.pick(&[
        Control::None,
        Control::None,
        Control::None,
        Control::None,
        Control::Syn,
        Control::Fin,
        Control::Rst,
        Control::StatelessReset,
        Control::Echo(ChallengeToken(0)),
    ]);
    // As the parser has it: only data and FIN have a position, and a FIN always has one.
    let place = match control {
        Control::Syn | Control::Rst | Control::Challenge(_) | Control::Echo(_) | Control::StatelessReset => {
            None
        }
        Control::Fin => Some(any_place(choices, received)),
        Control::None => choices.pick(&[true, false]).then(|| any_place(choices, received)),
    };
    let len = match choices.byte() {
        _ if place.is_none() => 0,
        0..32 => 0,
        32..250 => usize::from(choices.byte()) * 6,
        _ => 40_000,
    };
    let ack = (choices.byte() < 230).then(|| any_ack(choices, peer, near));
    let proof = ack.filter(|_| choices.byte() < 240).map_or(7, |ack| peer.proof_of(ack.bitmap));
    Segment {
        block: near(choices, received.block),
        position: place,
        tx: choices.byte(),
        ack,
        control,
        tx_stat: choices.pick(&[TxStat::Normal, TxStat::Congested]),
        window: choices.pick(&[60_000, 0, 1, 1500]),
        tag: if choices.byte() < 240 { peer.tag } else { None },
        receipt: Receipt { nonce: 0, proof },
        opening: (control == Control::Syn || choices.byte() < 20).then(|| any_opening(choices)),
        payload: Bytes::from(vec![0; len]),
    }
}

/// Returns the next missing position, or any.
fn any_place(choices: &mut Choices<'_>, received: Ack) -> SegmentPosition {
    let missing = (!received.bitmap.bits()).trailing_zeros() as u8 % 12;
    let position = if choices.byte() < 160 { missing } else { choices.byte() % 12 };
    SegmentPosition { position, is_last: choices.byte() < 60 }
}

fn any_ack(choices: &mut Choices<'_>, peer: &Peer, near: impl Fn(&mut Choices<'_>, u16) -> u16) -> Ack {
    let block = near(choices, peer.heard.block);
    let upto = peer.heard.position.map_or(0, |place| place.position + 1);
    let bitmap = match choices.byte() {
        0..128 => Bitmap::first(upto),
        128..220 => Bitmap::first(upto).and(Bitmap::from_bits(choices.u32() as u16)),
        _ => Bitmap::from_bits(choices.u32() as u16),
    };
    let tx = if choices.byte() < 200 { peer.heard.tx } else { choices.byte() };
    Ack { block, bitmap, tx }
}

fn any_opening(choices: &mut Choices<'_>) -> Opening {
    Opening {
        tag: choices.pick(&[None, tag(8), tag(9)]),
        mss: choices.pick(&[0, 1, 100, 1460, u16::MAX]),
        block_segments: 1 + choices.byte() % 12,
        cwnd_max: choices.byte().max(1),
    }
}

fn drain(endpoint: &mut Endpoint<Bytes>, now: Instant, peer: &mut Peer) {
    let mut sent = 0;
    while let Some(segment) = endpoint.poll_transmit(now) {
        // The latest segment with data, and the latest acknowledgment.
        let data = if segment.position.is_some() { segment.clone() } else { peer.heard.clone() };
        peer.hear(Segment { ack: segment.ack.or(peer.heard.ack), ..data });
        sent += 1;
        assert!(sent < 100, "the endpoint does not stop sending");
    }
    while endpoint.poll_event().is_some() {}
}

/// Checks the invariants of a TPA endpoint at rest.
pub(super) fn check(endpoint: &Endpoint<Bytes>) {
    let config = endpoint.config();
    assert!(
        endpoint.received_unread() <= u64::from(config.receive_buffer()),
        "more kept than the buffer holds"
    );
    assert!(endpoint.in_flight() <= config.cwnd_max(), "more in flight than the window");
    assert!(endpoint.unacknowledged() <= config.send_buffer().unwrap_or(u64::MAX));
    let timer = endpoint.poll_timeout().is_some();
    assert!(timer || endpoint.in_flight() == 0, "data in flight and no timer set");
    // An endpoint that was notified of a route failure may wait silently for a notification of the route.
    let open = !matches!(endpoint.state(), State::Closed | State::Listen | State::SynReceived);
    assert!(
        timer || !open || endpoint.cwnd() == 0 || endpoint.unacknowledged() == 0,
        "data and no timer set"
    );
}
