//! Link-layer retransmission (ARQ) with optional forward error correction. It hides losses from TCP (in the
//! spirit of Paul, Ayanoglu, La Porta, Chen, Sabnani, Gitlin, "An asymmetric protocol for digital cellular
//! communications", INFOCOM 1995; the text at hand names link-level schemes and describes none).
//!
//! Each end of a link has one [`Arq`]. Packets travel in numbered frames. Each frame that arrives is
//! acknowledged together with all others that have arrived. A link keeps the order: a frame that was sent
//! before one that arrived, and has not arrived itself, is lost. It is retransmitted at once, ahead of all
//! waiting packets. A timer is needed only for the last frame. A packet is given up after the last attempt,
//! or if the queue refuses it. An empty frame then takes its place, so that the receiver does not wait for
//! it. A full queue remains a signal of congestion for TCP.

mod receiver;
mod sender;
mod types;
mod wire_format;

use hopline_core::{Instant, Seq16};
use receiver::Receiver;
use sender::Sender;
use std::collections::VecDeque;
pub use types::{ArqAction, Config, DeliveryMode, Frame, Stats, WINDOW_FRAMES};

/// One end of a link. `K`: a packet as the caller stores it; each retransmission is a copy.
#[derive(Debug)]
pub struct Arq<K> {
    sender: Sender<K>,
    receiver: Receiver<K>,
    actions: VecDeque<ArqAction<K>>,
    stats: Stats,
}

impl<K: Clone> Arq<K> {
    /// Creates an end that has sent and received nothing. `epoch`: must differ from that before the last
    /// restart.
    #[must_use]
    pub fn new(config: Config, epoch: u16) -> Self {
        let (out, stats) = (VecDeque::new(), Stats::default());
        Self {
            sender: Sender::new(config, epoch),
            receiver: Receiver::new(config.order),
            actions: out,
            stats,
        }
    }

    /// Sends a packet across the link.
    pub fn send(&mut self, now: Instant, packet: K) {
        self.sender.send(now, packet, &mut self.actions, &mut self.stats);
    }

    /// Handles a frame from the other end.
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<K>) {
        let (out, stats) = (&mut self.actions, &mut self.stats);
        match frame {
            Frame::Data { epoch, first, number, content } => {
                self.receiver.handle_data(epoch, Some(first), number, content, out, stats);
                self.receiver.send_ack(out);
            }
            Frame::Parity { epoch, of } => {
                self.receiver.handle_parity(epoch, of, out, stats);
                self.receiver.send_ack(out);
            }
            Frame::Ack { epoch, next, beyond } => {
                self.sender.handle_ack(now, (epoch, next, beyond), out, stats);
            }
        }
    }

    /// Records that the link's queue has no room for the frame of this number.
    pub fn on_queue_drop(&mut self, number: Seq16) {
        self.sender.on_queue_drop(number, &mut self.actions, &mut self.stats);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now, &mut self.actions, &mut self.stats);
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<ArqAction<K>> {
        self.actions.pop_front()
    }

    /// Returns the time of the next call of [`Arq::handle_timeout`].
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        self.sender.poll_timeout()
    }

    /// Returns the number of stored packets: those of the sender, and received ones that wait for earlier
    /// ones.
    #[must_use]
    pub fn stored_packets(&self) -> usize {
        self.sender.stored_packets() + self.receiver.waiting_packets()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
