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

pub use crate::arq::Order;
use crate::filter::Turn;
use core::num::NonZeroU8;
use far::Far;
pub use frame::Frame;
use hopline_core::{Duration, Instant, Seq32};
pub use hopline_wire::dproxy::frame::Sending;
use near::Near;
use std::collections::VecDeque;

use super::config::Caching;
use super::{Recovery, RecoveryStats, Samples};

/// Parameters of one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Recovery of missing packets. Default as for TCP, but with an average over recoveries with one request,
    /// a minimum of 2 ms, and 12 attempts: no host behind the link repairs a loss as cheaply.
    pub recovery: Recovery,
    /// Turn of replays, requests and answers at the link. Default first.
    pub turn: Turn,
    /// Order of delivery. Default in order.
    pub order: Order,
    /// Maximum number of cached packets, at least 1; the oldest is evicted. Default 1024.
    pub kept_packets: u32,
    /// Lifetime of a cached packet. Default 500 ms: more than the patience of the other end.
    pub age: Duration,
    /// Maximum number of replays of a packet. Default 16.
    pub replays: u8,
    /// Minimum time between two replays of a packet. Default 250 µs.
    pub replay_interval: Duration,
    /// Minimum time before a tail probe. The probe is sent after half a round trip of the link without a
    /// packet, or after this time if it is longer; twice more, a round trip apart, if no answer comes.
    /// Default [`tail_probe_at`] of an unknown rate. `None`: never.
    pub tail_probe: Option<Duration>,
    /// Forward error correction. Default off.
    pub parity: Parity,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = {
        let attempts = NonZeroU8::new(12).expect("not zero");
        Self {
            recovery: Recovery {
                attempts,
                samples: Samples::OneRequest,
                floor: Duration::from_millis(2),
                ..Recovery::DEFAULT
            },
            turn: Turn::First,
            order: Order::Kept,
            kept_packets: WINDOW as u32,
            age: Duration::from_millis(500),
            replays: 16,
            replay_interval: Duration::from_micros(250),
            tail_probe: Some(LEAST_TAIL_PROBE),
            parity: Parity::Off,
        }
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Shortest silence before a tail probe, and that on a link of unknown rate.
const LEAST_TAIL_PROBE: Duration = Duration::from_millis(4);

/// Returns the silence after which an end sends a tail probe, over a link of this rate: the time of eight
/// packets of 1500 bytes, from 4 to 100 ms, and 4 ms for an unknown rate. Shorter times occur between two
/// ACKs that bring new data: at 6 Mb/s over 802.11, probes after 4 ms cost 14 % of the goodput. Longer times
/// exceed the timeout of a TCP sender.
#[must_use]
pub fn tail_probe_at(rate_bps: Option<u64>) -> Duration {
    const MOST: Duration = Duration::from_millis(100);
    const BITS: u64 = 8 * 1500 * 8;
    let of_rate = |bps: u64| Duration::from_secs_f64(BITS as f64 / bps.max(1) as f64);
    rate_bps.map_or(LEAST_TAIL_PROBE, |bps| of_rate(bps).clamp(LEAST_TAIL_PROBE, MOST))
}

impl Config {
    const fn caching(&self) -> Caching {
        let Self { kept_packets, age, replays, replay_interval, .. } = *self;
        Caching { packets_per_flow: u16::MAX, packets: kept_packets, age, replays, replay_interval }
    }
}

/// Forward error correction: restores lost packets without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Off.
    Off,
    /// One parity frame (exclusive-or) after a number of packets, from which any one of them can be restored.
    /// The number is half the mean distance between requested packets, within these bounds. There is no
    /// parity while less than one in a thousand is lost.
    Adaptive {
        /// Minimum number of packets.
        least: NonZeroU8,
        /// Maximum number of packets.
        most: NonZeroU8,
    },
}

/// Size of the receive window, packets from the first missing one. A packet beyond it moves the window on,
/// past missing packets.
pub const WINDOW: usize = 1024;
/// Maximum number of missing packets. Larger losses are left to the hosts behind the link.
pub const MOST_MISSING: usize = 256;

/// Action of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does<K> {
    /// Send a frame.
    Sends(Turn, Frame<K>),
    /// Deliver a packet that has crossed the link.
    Delivers(K),
    /// Report an accepted packet as dropped: the queue had no room for it.
    Loses(K),
    /// Release a packet: the other end has it, it was evicted, it has expired, or it is a duplicate.
    Discards(K),
}

/// One end of a link. `K`: a packet as the caller stores it; each transmission is a copy of a cached one.
#[derive(Debug)]
pub struct Opaque<K> {
    near: Near<K>,
    far: Far<K>,
    out: VecDeque<Does<K>>,
    stats: Stats,
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets accepted.
    pub packets: u64,
    /// Packets replayed.
    pub replayed: u64,
    /// Requested packets that were replayed a moment ago.
    pub under_way: u64,
    /// Requested packets that are not cached, or were replayed too often.
    pub not_kept: u64,
    /// Packets that the queue refused.
    pub refused: u64,
    /// Tail probes.
    pub tail_probes: u64,
    /// Parity frames sent.
    pub parity: u64,
    /// Packets restored from parity.
    pub restored: u64,
    /// Duplicates of packets that had arrived.
    pub copies: u64,
    /// Number of times that more was missing than is requested.
    pub too_many: u64,
    /// Frames of the former epoch of the other end.
    pub stale: u64,
    /// Epochs of the other end after the first.
    pub restarts: u64,
    /// Invalid frames: for another epoch than the current one, or about packets that were never sent.
    pub senseless: u64,
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
