//! The peer of dialogues with a TPA endpoint.
//!
//! What the endpoint sends is told as `describe_tpa` of the test kit tells it, `0:2. (1000) tx 2`; what it acknowledges
//! is left out of data as long as it has received nothing. It never sends anything by itself.

use crate::tpa::nonces::Nonces;
use crate::tpa::{Config, DropReason, Endpoint, Event, Identity, PathState, Secret, State};
use hopline_core::{Duration, Length, StateMachine};
use hopline_testkit::packet::describe_tpa;
use hopline_wire::tpa::{Ack, Bitmap, Control, Opening, Segment, SegmentPosition, Tag, TxStat};
use std::num::NonZeroU64;

/// Acknowledgment of a peer that has received nothing.
const NOTHING: Ack = Ack { block: u16::MAX, bitmap: Bitmap::EMPTY, tx: 0 };

pub(super) type Script = crate::test_script::Script<Peer>;

pub(super) struct Peer;

/// Segment of the peer, under construction.
#[derive(Clone, Copy)]
pub(super) struct SegmentBuilder(pub(super) Segment<Length>);

fn bare() -> SegmentBuilder {
    SegmentBuilder(Segment { ack: Some(NOTHING), window: 60_000, ..Segment::default() })
}

/// An acknowledgment of `positions` of `block`, on account of transmission `tx`.
pub(super) fn ack(block: u16, positions: &[u8], tx: u8) -> SegmentBuilder {
    let mut bitmap = Bitmap::EMPTY;
    positions.iter().for_each(|&position| bitmap.insert(position));
    SegmentBuilder(Segment { ack: Some(Ack { block, bitmap, tx }), ..bare().0 })
}

/// 1000 bytes in `position` of `block`; the transmission has the same number as the position.
pub(super) fn data(block: u16, position: u8) -> SegmentBuilder {
    let place = Some(SegmentPosition { position, is_last: false });
    SegmentBuilder(Segment { block, position: place, tx: position, payload: Length(1000), ..bare().0 })
}

/// Returns the opening segment of the peer.
pub(super) fn syn() -> SegmentBuilder {
    SegmentBuilder(Segment { control: Control::Syn, ack: None, opening: Some(offer()), ..bare().0 })
}

pub(super) fn syn_ack() -> SegmentBuilder {
    SegmentBuilder(Segment { ack: Some(Ack::default()), ..syn().0 })
}

pub(super) fn rst(block: u16) -> SegmentBuilder {
    SegmentBuilder(Segment { control: Control::Rst, ack: None, block, ..bare().0 })
}

/// An empty segment of `block`: what a question is.
pub(super) fn probe(block: u16) -> SegmentBuilder {
    data(block, 0).len(0)
}

/// The peer's opening parameters: segments of 1000 bytes, as round numbers are easier to read.
pub(super) fn offer() -> Opening {
    Opening { tag: None, mss: 1000, block_segments: 12, cwnd_max: 3 }
}

impl SegmentBuilder {
    pub(super) fn len(mut self, len: u64) -> Self {
        self.0.payload = Length(len);
        self
    }
    pub(super) fn tx(mut self, tx: u8) -> Self {
        self.0.tx = tx;
        self
    }
    /// The last segment of its block.
    pub(super) fn last(mut self) -> Self {
        self.0.position = self.0.position.map(|place| SegmentPosition { is_last: true, ..place });
        self
    }
    /// The last segment of the stream.
    pub(super) fn fin(mut self) -> Self {
        self.0.control = Control::Fin;
        self.last()
    }
    pub(super) fn congested(mut self) -> Self {
        self.0.tx_stat = TxStat::Congested;
        self
    }
    pub(super) fn win(mut self, window: u16) -> Self {
        self.0.window = window;
        self
    }
    pub(super) fn tag(mut self, tag: Tag) -> Self {
        self.0.tag = Some(tag);
        self
    }
    /// To the endpoint with [`identity`] `n`, with the proof of what it acknowledges of the first block.
    pub(super) fn with_proof(mut self, n: u8) -> Self {
        let received = self.0.ack.unwrap_or_default().bitmap;
        self.0.receipt.proof = Nonces::for_block(Some(identity(n).secret), 0).proof(received);
        self.tag(tag(n.into()))
    }
    pub(super) fn opening(mut self, opening: Opening) -> Self {
        self.0.opening = Some(opening);
        self
    }
    /// With an acknowledgment of `positions` of `block`.
    pub(super) fn acks(mut self, block: u16, positions: &[u8], tx: u8) -> Self {
        self.0.ack = ack(block, positions, tx).0.ack;
        self
    }
}

/// Returns the identity of an endpoint with `tag(n)`.
pub(super) fn identity(n: u8) -> Identity {
    Identity { tag: tag(n.into()), secret: Secret([n; 16]) }
}

pub(super) fn tag(n: u64) -> Tag {
    Tag(NonZeroU64::new(n).unwrap())
}

/// Returns TPA-3 with segments of 1000 bytes and blocks of four.
pub(super) fn plain() -> Config {
    Config { mss: 1000, block_segments: 4, ..Config::tpa(3) }
}

impl Script {
    /// A closed endpoint at time 0.
    pub(super) fn new(config: Config) -> Self {
        Self::with_endpoint(Endpoint::new(config).unwrap())
    }

    pub(super) fn with_endpoint(endpoint: Endpoint<Length>) -> Self {
        Self::new_between(endpoint, Peer)
    }

    pub(super) fn connecting(config: Config) -> Self {
        let mut s = Self::new(config);
        s.endpoint.connect(s.now).unwrap();
        assert_eq!(s.transmits(), "S");
        s
    }

    /// Connected actively at 100 ms after a round trip of 100 ms: the RTO is 300 ms.
    pub(super) fn connected(config: Config) -> Self {
        let mut s = Self::connecting(config);
        s.receive_at(100, syn_ack());
        assert_eq!(s.transmits(), "ack -1:[] tx 0");
        assert_eq!(s.events(), [Event::Connected]);
        assert_eq!((s.state(), s.endpoint.rto()), (State::Established, Duration::from_millis(300)));
        s
    }

    /// Connected, with so many bytes handed over and flushed at 100 ms.
    pub(super) fn sending(config: Config, bytes: u64) -> Self {
        let mut s = Self::connected(config);
        s.write_and_flush(bytes);
        s
    }

    /// Passes `bytes` bytes to the endpoint, to be sent at once.
    pub(super) fn write_and_flush(&mut self, bytes: u64) {
        self.endpoint.send(self.now, Length(bytes)).unwrap();
        self.endpoint.flush(self.now);
    }

    /// Delivers a segment of the peer now. Returns the answer.
    pub(super) fn exchange(&mut self, p: SegmentBuilder) -> String {
        self.receive(p);
        self.transmits()
    }

    /// Returns the time of the next timer, in milliseconds.
    pub(super) fn next_timer(&self) -> u64 {
        self.endpoint.poll_timeout().map_or(u64::MAX, |(at, _)| at.as_nanos() / 1_000_000)
    }

    pub(super) fn path(&self) -> PathState {
        self.endpoint.path()
    }

    pub(super) fn drops(&self, reason: DropReason) -> u64 {
        self.endpoint.stats().drops.count(reason)
    }

    /// Everything about the endpoint but its counters.
    pub(super) fn snapshot(&self) -> String {
        let mut endpoint = self.endpoint.clone();
        endpoint.stats = Default::default();
        format!("{endpoint:?}")
    }
}

impl crate::test_script::Peer for Peer {
    type Endpoint = Endpoint<Length>;
    type Segment = SegmentBuilder;

    fn complete(&self, segment: SegmentBuilder) -> Segment<Length> {
        segment.0
    }

    fn describe(&self, segment: &Segment<Length>) -> String {
        let text = describe_tpa(segment);
        if segment.position.is_some() { text.replace(" ack -1:[] tx 0", "") } else { text }
    }
}
