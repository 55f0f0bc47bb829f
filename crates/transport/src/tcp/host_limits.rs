//! Calls for a host stack that drives endpoints with real packets: path MTU, and bounds that lengths alone do not give.

use super::config::MIN_MSS;
use super::endpoint::Endpoint;
use super::input::TIMESTAMPS_LEN;
use crate::connection::State;
use hopline_core::{Payload, Seq32};

/// Limits of received data that a host sets below those of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Receive buffer, bytes; at most that of the configuration.
    pub buffer: u64,
    /// Unread pieces from which on data are dropped, while their acknowledgments are still taken. Pieces that fill a gap may exceed it.
    pub unread_pieces: usize,
    /// Pieces out of order that are kept; at most as many as the configured buffer permits.
    pub unordered_pieces: usize,
}

/// Memory of received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveMemory {
    /// Bytes of the announced window that have not arrived in order.
    pub announced: u64,
    /// Bytes that wait for [`Endpoint::recv`].
    pub unread: u64,
    /// Pieces in which they wait. Each takes memory of its own, however short it is.
    pub unread_pieces: usize,
    /// Pieces out of order.
    pub unordered_pieces: usize,
}

impl<P: Payload> Endpoint<P> {
    /// Returns whether `seq` was sent and is not acknowledged. A report of a router that quotes another number is stale or forged
    /// (RFC 5927 §4.1).
    #[must_use]
    pub fn is_outstanding(&self, seq: Seq32) -> bool {
        let from_una = i64::from(seq.distance_from(self.snd.seq(self.snd.una)));
        (0..(self.snd.max - self.snd.una) as i64).contains(&from_una)
    }

    /// Returns the sequence number that is expected next from the peer ("RCV.NXT").
    #[must_use]
    pub fn next_expected(&self) -> Seq32 {
        self.rcv.seq(self.rcv.nxt)
    }

    /// Lowers the largest segment to `mss` bytes, options included as in [`Config::mss`](super::Config::mss), and sends the first
    /// outstanding one again: a router has dropped what was larger (RFC 1191 §6.4, RFC 8201). A larger `mss` than the present one changes
    /// nothing.
    pub fn lower_mss(&mut self, mss: u32) {
        let door = self.door.as_deref().map_or(0, super::door::DoorState::fixed_len);
        let options = if self.options.timestamps { TIMESTAMPS_LEN } else { 0 } + door;
        let limit = mss.max(MIN_MSS).saturating_sub(options);
        if limit < self.snd.mss && limit > 0 && self.state().is_synchronized() {
            self.snd.mss = limit;
            self.snd.retransmit_first = self.snd.outstanding() && self.state().may_transmit();
            if let Some(rack) = &mut self.rack {
                rack.mark_too_large(limit.into());
            }
        }
    }

    /// Sets the limits of received data, as often as they change. A window that was announced is kept (RFC 9293 §3.8.6.2.1): a smaller
    /// limit takes effect as data arrive.
    pub fn set_receive_limits(&mut self, limits: ReceiveLimits) {
        self.rcv.buffer = limits.buffer.min(self.config.receive_buffer.into());
        self.rcv.max_ready_pieces = limits.unread_pieces;
        self.rcv.reassembly.set_limit(limits.unordered_pieces);
    }

    /// Returns the memory that received data take, and that the announced window may yet take.
    #[must_use]
    pub fn receive_memory(&self) -> ReceiveMemory {
        let rcv = &self.rcv;
        // Data out of order lie in the window.
        let opens = matches!(self.state(), State::Listen | State::SynSent | State::SynReceived);
        let promised =
            if opens || self.state().may_receive() { rcv.right_edge.saturating_sub(rcv.nxt) } else { 0 };
        ReceiveMemory {
            announced: promised.max(rcv.reassembly.len()),
            unread: rcv.ready_bytes,
            unread_pieces: rcv.ready.len(),
            unordered_pieces: rcv.reassembly.piece_count(),
        }
    }
}
