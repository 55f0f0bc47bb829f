//! D-Proxy for any packets: the ends number the packets themselves, so that UDP, QUIC and encrypted tunnels
//! benefit as TCP does. The paper uses TCP's sequence numbers and cannot help these; this mode is an
//! extension of hopline. Missing packets are requested by the same rules (§III-C.2, C.3).
//!
//! Each end of a link has one [`Opaque`]. Packets are not acknowledged one by one. The sender keeps
//! transmitted packets for a while, and replays requested ones ahead of all waiting packets. The receiver
//! detects missing numbers, and requests them at once. When the link falls silent, the sender announces the
//! number of its last packet (tail probe), so that tail losses are found too; the answer tells it which
//! packets it can discard. Frames are not authenticated, like those of a link: on a link shared with
//! untrusted hosts, use it inside a tunnel.

mod frame;
mod receiver;
mod sender;
mod types;

pub use crate::arq::DeliveryMode;
pub use frame::Frame;
use hopline_core::{Instant, Seq32};
pub use hopline_wire::dproxy::frame::TransmissionKind;
use receiver::OpaqueReceiver;
use sender::OpaqueSender;
use std::collections::VecDeque;
pub use types::{Config, MAX_MISSING, OpaqueAction, Parity, Stats, WINDOW_PACKETS, tail_probe_delay};

use super::RecoveryStats;

/// One end of a link. `K`: a packet as the caller stores it; each transmission is a copy of a cached one.
#[derive(Debug)]
pub struct Opaque<K> {
    sender: OpaqueSender<K>,
    receiver: OpaqueReceiver<K>,
    actions: VecDeque<OpaqueAction<K>>,
    stats: Stats,
}

impl<K: Clone> Opaque<K> {
    /// Creates an end that has sent and received nothing. `epoch`: must differ from that before the last
    /// restart.
    #[must_use]
    pub fn new(config: Config, epoch: u16) -> Self {
        let (near, far) = (OpaqueSender::new(config, epoch), OpaqueReceiver::new(config));
        Self { sender: near, receiver: far, actions: VecDeque::new(), stats: Stats::default() }
    }

    /// Sends a packet across the link.
    pub fn send(&mut self, now: Instant, packet: K) {
        self.sender.send(now, packet, &mut self.actions, &mut self.stats);
    }

    /// Handles a frame from the other end.
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<K>) {
        let (out, stats) = (&mut self.actions, &mut self.stats);
        match frame {
            Frame::Data { epoch, number, sending, packet } => {
                self.receiver.handle_data(now, (epoch, Seq32(number), sending), packet, out, stats);
            }
            Frame::Parity { epoch, first, of } => {
                self.receiver.handle_parity(now, (epoch, Seq32(first)), of, out, stats);
            }
            Frame::Tail { epoch, last } => {
                self.receiver.handle_tail_probe(now, epoch, Seq32(last), out, stats)
            }
            Frame::Gone { epoch, numbers } => self.receiver.handle_gone(now, epoch, &numbers, out, stats),
            Frame::Request { epoch, numbers } => self.sender.handle_request(now, epoch, &numbers, out, stats),
            Frame::Report { epoch, next } => self.sender.handle_report(now, epoch, next, out, stats),
        }
    }

    /// Records that the link's queue has no room for the packet of this number. This is congestion, and left
    /// to the hosts behind the link: it is not repaired.
    pub fn on_queue_drop(&mut self, number: u32) {
        self.sender.on_queue_drop(number, &mut self.actions, &mut self.stats);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now, &mut self.actions, &mut self.stats);
        self.receiver.handle_timeout(now, &mut self.actions);
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<OpaqueAction<K>> {
        self.actions.pop_front()
    }

    /// Returns the time of the next call of [`Opaque::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.sender.poll_timeout().into_iter().chain(self.receiver.poll_timeout()).min()
    }

    /// Returns the number of stored packets: those of the sender, and received ones that wait for earlier
    /// ones.
    #[must_use]
    pub fn stored_packets(&self) -> usize {
        self.sender.cached_packets() + self.receiver.waiting_packets()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the counters of the recovery.
    #[must_use]
    pub const fn recovery(&self) -> &RecoveryStats {
        self.receiver.recovery()
    }
}

#[cfg(test)]
mod tests;
