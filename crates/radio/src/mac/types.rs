//! Inputs and outputs of a MAC.

use super::airtime::RadioState;
use crate::rate::Rate;
use hopline_core::{Duration, Instant, TimerKind};
use hopline_wire::dot11::{Frame, MacAddr};

/// Packet for the MAC to transmit. `M` is a handle in the simulator, bytes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msdu<M> {
    /// The packet.
    pub body: M,
    /// Length in bytes, IP header included, MAC header excluded.
    pub len_bytes: u32,
    /// The next hop, or a group.
    pub to: MacAddr,
}

/// Frame for the physical layer to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission<M> {
    /// The frame.
    pub frame: Frame<M>,
    /// Transmission rate.
    pub rate: Rate,
    /// Length in bytes, FCS included.
    pub len_bytes: u32,
    /// Airtime.
    pub airtime: Duration,
}

/// Result of a reception at the physical layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception<M> {
    /// A frame, intact.
    Frame(Frame<M>),
    /// A frame had begun, and could not be decoded.
    Errored,
}

/// Report of the physical layer other than a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The carrier changed. Own transmissions do not count as carrier.
    Carrier(RadioState),
    /// The station's own transmission is over.
    TransmitEnd,
    /// A frame too weak to disturb the frame being received continues until then (ns-2's capture).
    Captured {
        /// End of the signal.
        until: Instant,
    },
}

/// Event that the MAC reports to the layer above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// An MSDU for this station, or for a group, arrived.
    Deliver {
        /// The packet.
        body: M,
        /// Transmitter of this hop.
        from: MacAddr,
        /// Receiver: this station or a group.
        to: MacAddr,
    },
    /// A packet for this station arrived before an earlier one, and waits in the MAC. Its driver keeps it until
    /// [`Event::DeliverBuffered`]. With [`AckPolicy::BlockAck`](super::config::AckPolicy::BlockAck) only.
    Buffered {
        /// The packet.
        body: M,
    },
    /// As [`Event::Deliver`], for a packet that was [`Event::Buffered`]; the MAC releases it.
    DeliverBuffered {
        /// The packet.
        body: M,
        /// Transmitter of this hop.
        from: MacAddr,
    },
    /// The MSDU was acknowledged, or sent without need of an acknowledgment.
    Sent(Msdu<M>),
    /// The retry limit or the end of its lifetime was reached: link-failure feedback.
    Failed(Msdu<M>),
    /// A data frame between other stations, with [`Tap::Promiscuous`](super::config::Tap::Promiscuous).
    Overheard {
        /// The packet.
        body: M,
        /// Transmitter of this hop.
        from: MacAddr,
        /// Receiver.
        to: MacAddr,
    },
}

/// Reason for which the MAC asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// SIFS is over: the next frame of the exchange is due.
    Sifs,
    /// A CTS, an ACK or data did not arrive in time.
    Response,
    /// Backoff is over.
    Access,
    /// No frame followed an RTS.
    NavReset,
    /// A block agreement has been silent for too long.
    Inactivity,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] =
        &[Self::Sifs, Self::Response, Self::Access, Self::NavReset, Self::Inactivity];
    fn index(self) -> usize {
        self as usize
    }
}

/// Counters of the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// RTS frames sent.
    pub rts_sent: u64,
    /// Data frames sent, retries included.
    pub data_sent: u64,
    /// Data frames retransmitted.
    pub data_retries: u64,
    /// Missing CTS.
    pub cts_timeouts: u64,
    /// Missing ACKs.
    pub ack_timeouts: u64,
    /// BlockAckReq frames sent.
    pub block_ack_reqs_sent: u64,
    /// Missing BlockAcks.
    pub block_ack_timeouts: u64,
    /// MSDUs given up.
    pub failed: u64,
    /// Of these, MSDUs with an expired lifetime.
    pub expired: u64,
    /// Block agreements dropped for inactivity.
    pub agreements_expired: u64,
    /// Action frames sent, retries included.
    pub actions_sent: u64,
    /// Action frames given up.
    pub actions_failed: u64,
    /// Action frames received that matched no request or agreement.
    pub actions_ignored: u64,
    /// Frames of blocks received without an agreement.
    pub without_agreement: u64,
    /// Duplicates discarded.
    pub duplicates: u64,
    /// Frames that could not be decoded.
    pub undecodable: u64,
}

/// State of the station in a frame exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No exchange: idle or contending.
    Idle,
    /// Sending an RTS.
    SendRts,
    /// Waiting for the CTS.
    AwaitCts,
    /// CTS received, SIFS before the data.
    BeforeData,
    /// Sending data.
    SendData,
    /// Waiting for the ACK.
    AwaitAck,
    /// Within a burst or block: SIFS before the next data frame or the BlockAckReq.
    BetweenFrames,
    /// Sending a BlockAckReq.
    SendBlockAckReq,
    /// Waiting for the BlockAck.
    AwaitBlockAck,
    /// RTS received, SIFS before the CTS.
    BeforeCts,
    /// Sending a CTS.
    SendCts,
    /// CTS sent, waiting for the data ([`WholeResponse`](super::config::ResponseTimeout::WholeResponse) only).
    AwaitData,
    /// Data received, SIFS before the ACK.
    BeforeAck,
    /// Sending an ACK.
    SendAck,
    /// BlockAckReq received, SIFS before the BlockAck.
    BeforeBlockAck,
    /// Sending a BlockAck.
    SendBlockAck,
    /// Sending an action frame.
    SendAction,
    /// Waiting for its ACK.
    AwaitActionAck,
}
