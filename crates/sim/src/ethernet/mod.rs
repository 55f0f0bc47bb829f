//! Ethernet frames from outside: programs and kernels outside a world use its radios and wires as one Ethernet.
//!
//! A node of [`Spec::ethernet_taps`](crate::Spec::ethernet_taps) is a bridge with two ports: the tap, with the hosts
//! outside, and the interfaces of the node, with all taps that these reach in one hop. [`World::inject_frame`] brings a
//! frame in at a tap. [`World::inject_frame_over`] sends it over one [`Medium`] alone: then the host outside has an
//! [interface](HostInterface) for each, and is no bridge between them. Between nodes it is a packet like any other, with queues, medium
//! access, errors and middleboxes.
//! [`World::poll_frame`] hands it out at the tap that it reaches. No routing agent and no table is asked: frames for other
//! hops are a matter of routers outside. A caller steps the world with [`World::next_due`] and [`World::run_until`].
//!
//! | destination of a frame | goes to |
//! |---|---|
//! | address of a node's radio ([`MacAddr::of_node`](hopline_wire::dot11::MacAddr::of_node)) | that node |
//! | address that the tap has learnt from a frame of another tap | the node of that tap |
//! | address that was learnt at this tap, or of the node itself | nowhere: it is filtered |
//! | group address (broadcast, multicast) | all neighbours |
//! | any other | all neighbours, as a bridge floods (IEEE Std 802.1Q-2018 §8.8) |
//!
//! A frame for all neighbours is sent once by each radio, at the basic rate and without an ACK (IEEE Std 802.11-2020
//! §10.3.6), and once over each wire. A frame for one node is acknowledged and repeated as the MAC is configured.
//!
//! On the air a frame is as long as an IP packet with its payload: LLC/SNAP takes the place of the EtherType. The radios'
//! addresses take the place of source and destination. The fourth address, which a frame of a host behind a bridge
//! would have, is not counted.
//!
//! [`World`]: crate::World
//! [`World::inject_frame`]: crate::World::inject_frame
//! [`World::inject_frame_over`]: crate::World::inject_frame_over
//! [`World::poll_frame`]: crate::World::poll_frame
//! [`World::next_due`]: crate::World::next_due
//! [`World::run_until`]: crate::World::run_until

mod address_table;
mod host_interfaces;
mod passing;
mod taps;

pub use host_interfaces::HostInterface;
pub(crate) use taps::Taps;

use crate::drops::DropCounts;
use bytes::Bytes;
use hopline_core::{Instant, NodeId};
use hopline_wire::ParseError;
use hopline_wire::dot11::LLC_SNAP_LEN;
use hopline_wire::ethernet::HEADER_LEN;

/// Longest MSDU of 802.11 (IEEE Std 802.11-2020 §9.2.4.8.1), in bytes.
const MAX_MSDU_LEN: usize = 2304;

/// Longest frame that comes in, its header included and without frame check sequence, in bytes: 2310. A tap has an MTU of
/// at most 2296.
pub const MAX_FRAME_LEN: usize = HEADER_LEN + MAX_MSDU_LEN - LLC_SNAP_LEN;

/// Medium that joins a node to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// The radios of the node.
    Radio,
    /// The wires to this neighbour.
    Wire(NodeId),
}

/// A frame that leaves the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressFrame {
    /// Time at which it reached its node.
    pub at: Instant,
    /// The node that it reached.
    pub node: NodeId,
    /// The medium by which it came.
    pub medium: Medium,
    /// The frame, from its destination address on: as it came in, but for the ECN field that a queue has set.
    pub frame: Bytes,
}

/// Reason that a frame was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// No bridge would forward it.
    Malformed(ParseError),
    /// It is longer than [`MAX_FRAME_LEN`].
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The node is no Ethernet tap ([`Spec::ethernet_taps`](crate::Spec::ethernet_taps)).
    NoTap(NodeId),
}

impl core::fmt::Display for FrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "no Ethernet frame: {error}"),
            Self::TooLong { len } => {
                write!(f, "a frame of {len} bytes is too long for 802.11: at most {MAX_FRAME_LEN} bytes")
            }
            Self::NoTap(node) => write!(f, "{node} is no Ethernet tap"),
        }
    }
}

impl core::error::Error for FrameError {}

/// Fate of the frames that came in at a tap, since the start of the run: a warm-up counts.
///
/// `accepted` is the sum of `delivered`, `dropped.total()` and `held`; the end of a run checks it. A frame for all
/// neighbours counts once, however many taps it reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounts {
    /// Frames that came in and were sent to a neighbour, or to all.
    pub accepted: u64,
    /// Frames of these that were sent to all neighbours since their destination was not known.
    pub flooded: u64,
    /// Frames that came in for a host behind the same tap. They are not sent.
    pub filtered: u64,
    /// Frames that were refused since no bridge would forward them.
    pub malformed: u64,
    /// Frames that were refused since they are longer than [`MAX_FRAME_LEN`].
    pub too_long: u64,
    /// Accepted frames that have reached another tap.
    pub delivered: u64,
    /// Accepted frames that are gone without having reached another tap, by the last reason for which a copy was dropped.
    pub dropped: DropCounts,
    /// Accepted frames that are under way: queued, in service, in the air or on a wire.
    pub held: u64,
    /// Frames that have left at this tap, each copy counted.
    pub emitted: u64,
}
