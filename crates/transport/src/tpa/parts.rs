//! What an endpoint is made of.

use super::block::Block;
use super::listener::Secret;
use crate::send_queue::SendQueue;
use hopline_core::Instant;
use hopline_wire::tpa::Tag;

/// How the connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) role: Role,
    /// When the first SYN left, until it was sent again: its round trip is the first sample.
    pub(super) syn_sent: Option<Instant>,
    /// Times a SYN, or what completes the handshake, was sent again.
    pub(super) retries: u32,
    /// Whether the peer is known to hold the connection.
    pub(super) confirmed: Confirmed,
    pub(super) hurry: Hurry,
}

/// Whether the next repetition of the SYN comes before its time: it counts for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hurry {
    No,
    Yes,
}

/// Who began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    NotYet,
    Active,
    Passive,
}

/// Whether the peer is known to hold the connection. A listener that keeps no state learns of it from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmed {
    Yes,
    /// Every segment repeats the opening parameters.
    NotYet,
}

/// Connection tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tags {
    /// Ours: the peer must show it. `None`: tags are not in use.
    pub(super) local: Option<Tag>,
    /// The peer's: we show it.
    pub(super) peer: Option<Tag>,
    /// Key of the nonces of our data; with `local` only.
    pub(super) secret: Option<Secret>,
}

/// What a connection is known by, and what makes its acknowledgments trustworthy. Both must be unpredictable.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The tag that the peer has to show in all its segments.
    pub tag: Tag,
    /// The key of the nonces that the peer has to show in its acknowledgments.
    pub secret: Secret,
}

/// What is owed to the peer apart from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Owed {
    pub(super) syn: bool,
    /// A SYN as for someone who has not heard of us.
    pub(super) call: bool,
    pub(super) ack: bool,
    /// A question for its window or a sign of life.
    pub(super) question: bool,
    pub(super) reset: bool,
}

/// The sending half. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct Sender<P> {
    pub(super) queue: SendQueue<P>,
    /// The block in transmission.
    pub(super) block: Option<Block>,
    /// Number of the block in transmission, or of the next.
    pub(super) number: u16,
    /// Offset of the first byte that is in no block yet.
    pub(super) unblocked: u64,
    /// Since when bytes wait to become a block.
    pub(super) waiting: Option<Instant>,
    /// The user wants what waits to go without delay.
    pub(super) flush: Flush,
    /// Whether the user closed.
    pub(super) closing: Closing,
    /// Bytes the peer has room for.
    pub(super) peer_window: u64,
    /// Bytes of a full segment, from the next block on.
    pub(super) mss: u16,
    /// The same as far as the peer is concerned.
    pub(super) peer_mss: u16,
    /// The same as far as the path is concerned.
    pub(super) path_mss: u16,
    /// Segments in a block: no more than the peer has room for, whatever arrives first.
    pub(super) block_segments: u8,
    /// Questions since data were sent.
    pub(super) questions: u32,
}

/// Whether a short block may go before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    No,
    /// What was handed over up to this offset.
    UpTo(u64),
}

/// What became of the user's close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The user has not closed.
    Open,
    /// A FIN will end the stream.
    FinDue,
    /// The FIN is in the block in transmission.
    FinSent,
    /// The peer has it.
    FinAcked,
}
