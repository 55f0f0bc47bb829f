//! Parts of an endpoint.

use super::block::Block;
use super::secret::Secret;
use crate::send_queue::SendQueue;
use hopline_core::Instant;
use hopline_wire::tpa::Tag;

/// State of the opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpeningState {
    /// Sending time of the first SYN, unless it was retransmitted: its round trip is the first sample.
    pub(super) syn_sent: Option<Instant>,
    /// Number of retransmissions of the SYN, or of the segment that completes the handshake.
    pub(super) retries: u32,
    /// Knowledge of the peer's state.
    pub(super) confirmed: PeerConfirmed,
    pub(super) early_syn: EarlySyn,
}

/// `Yes` if the next retransmission of the SYN comes before its RTO. It counts neither as a retry nor for the back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlySyn {
    No,
    Yes,
}

/// Knowledge of the peer's state: it holds the connection or not. A listener without state creates it on a segment from
/// us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerConfirmed {
    Yes,
    /// Not confirmed: every segment repeats the opening parameters.
    No,
}

/// Connection tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tags {
    /// Our tag, which the peer has to use. `None`: tags are not in use.
    pub(super) local: Option<Tag>,
    /// The peer's tag, which we have to use.
    pub(super) peer: Option<Tag>,
    /// Key of the nonces of our data; with `local` only.
    pub(super) secret: Option<Secret>,
}

/// Identity of a connection, and key of its proofs of receipt. Both must be unpredictable.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Tag that the peer has to use in all its segments.
    pub tag: Tag,
    /// Key of the nonces that the peer has to prove in its acknowledgments.
    pub secret: Secret,
}

/// Segments to send apart from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct PendingSegments {
    pub(super) syn: bool,
    /// A SYN without a tag, to a peer that has not received one from us.
    pub(super) syn_without_tag: bool,
    pub(super) ack: bool,
    /// A probe for the peer's window or for a sign of life.
    pub(super) probe: bool,
    pub(super) reset: bool,
}

/// Sending half. Positions are stream offsets.
#[derive(Clone, Debug)]
pub(super) struct SendHalf<P> {
    pub(super) queue: SendQueue<P>,
    /// The block in transmission.
    pub(super) block: Option<Block>,
    /// Number of the block in transmission, or of the next.
    pub(super) number: u16,
    /// Offset of the first byte that is in no block yet.
    pub(super) next_block_start: u64,
    /// Start of the wait of bytes for a block.
    pub(super) waiting_since: Option<Instant>,
    /// Request of the user to send the waiting data without delay.
    pub(super) flush: FlushState,
    /// State of the user's close.
    pub(super) closing: CloseState,
    /// Peer's window, bytes.
    pub(super) peer_window: u64,
    /// Data bytes of a full segment, from the next block on.
    pub(super) mss: u16,
    /// Limit of `mss` by the peer.
    pub(super) peer_mss: u16,
    /// Limit of `mss` by the path.
    pub(super) path_mss: u16,
    /// Segments in a block: at most as many as the peer has room for, in any order of arrival.
    pub(super) block_segments: u8,
    /// Number of probes since data were sent.
    pub(super) probes: u32,
}

/// Permission to send a short block before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushState {
    No,
    /// Data accepted up to this offset.
    UpTo(u64),
}

/// State of the user's close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseState {
    /// The user has not closed.
    Open,
    /// The FIN has to be sent at the end of the stream.
    FinDue,
    /// The FIN is in the block in transmission.
    FinSent,
    /// The FIN is acknowledged.
    FinAcked,
}
