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

mod far;
mod frame;
mod near;
mod types;

pub use crate::arq::Order;
use far::Far;
pub use frame::Frame;
use hopline_core::{Instant, Seq32};
pub use hopline_wire::dproxy::frame::Sending;
use near::Near;
use std::collections::VecDeque;
pub use types::{Config, Does, MOST_MISSING, Parity, Stats, WINDOW, tail_probe_at};

use super::RecoveryStats;

/// One end of a link. `K`: a packet as the caller stores it; each transmission is a copy of a cached one.
#[derive(Debug)]
pub struct Opaque<K> {
    near: Near<K>,
    far: Far<K>,
    out: VecDeque<Does<K>>,
    stats: Stats,
}

impl<K: Clone> Opaque<K> {
    /// Creates an end that has sent and received nothing. `epoch`: must differ from that before the last
    /// restart.
    #[must_use]
    pub fn new(config: Config, epoch: u16) -> Self {
        let (near, far) = (Near::new(config, epoch), Far::new(config));
        Self { near, far, out: VecDeque::new(), stats: Stats::default() }
    }

    /// Sends a packet across the link.
    pub fn send(&mut self, now: Instant, packet: K) {
        self.near.send(now, packet, &mut self.out, &mut self.stats);
    }

    /// Handles a frame from the other end.
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<K>) {
        let (out, stats) = (&mut self.out, &mut self.stats);
        match frame {
            Frame::Data { epoch, number, sending, packet } => {
                self.far.take(now, (epoch, Seq32(number), sending), packet, out, stats);
            }
            Frame::Parity { epoch, first, of } => {
                self.far.take_parity(now, (epoch, Seq32(first)), of, out, stats);
            }
            Frame::Tail { epoch, last } => self.far.hear_tail(now, epoch, Seq32(last), out, stats),
            Frame::Gone { epoch, numbers } => self.far.hear_gone(now, epoch, &numbers, out, stats),
            Frame::Request { epoch, numbers } => self.near.replay(now, epoch, &numbers, out, stats),
            Frame::Report { epoch, next } => self.near.hear_report(now, epoch, next, out, stats),
        }
    }

    /// Records that the link's queue has no room for the packet of this number. This is congestion, and left
    /// to the hosts behind the link: it is not repaired.
    pub fn refused(&mut self, number: u32) {
        self.near.refused(number, &mut self.out, &mut self.stats);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.near.handle_timeout(now, &mut self.out, &mut self.stats);
        self.far.handle_timeout(now, &mut self.out);
    }

    /// Returns the next action.
    pub fn poll(&mut self) -> Option<Does<K>> {
        self.out.pop_front()
    }

    /// Returns the time of the next call of [`Opaque::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.near.due().into_iter().chain(self.far.due()).min()
    }

    /// Returns the number of stored packets: those of the sender, and received ones that wait for earlier
    /// ones.
    #[must_use]
    pub fn held(&self) -> usize {
        self.near.held() + self.far.held()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the counters of the recovery.
    #[must_use]
    pub const fn recovery(&self) -> &RecoveryStats {
        self.far.recovery()
    }
}

#[cfg(test)]
mod tests;
