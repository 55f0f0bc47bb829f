//! D-Proxy for whatever crosses a link: its ends number the packets themselves, so that UDP, QUIC and encrypted tunnels gain as TCP does.
//! The paper reads TCP's numbers and cannot help these; this mode is ours. What is missing is asked for by the same rules (§III-C.2, C.3).
//!
//! Both ends of a link have one [`Opaque`] each. Nothing is acknowledged packet by packet. The near end keeps what it has sent for a
//! while, and sends again what it is asked for, ahead of all that waits. The far end sees from the numbers what is missing, and asks at
//! once. When a link falls silent the near end tells the number of its last packet, so that a lost tail is found too; the answer tells it
//! what need not be kept. Frames are not authenticated, as those of a link are not: who shares the link with strangers puts a tunnel
//! around it.

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

/// How one end of a link behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Recovery of missing packets. Default as TCP's, with an average of recoveries with one request, 2 ms at least, and 12 attempts: no host behind the link
    /// repairs what is given up here as cheaply.
    pub recovery: Recovery,
    /// Turn of packets that are sent again, of questions and of answers at the link. Default first.
    pub turn: Turn,
    /// Whether packets wait for earlier ones. Default they do.
    pub order: Order,
    /// Most packets that are kept, at least 1; the oldest makes room. Default 1024.
    pub kept_packets: u32,
    /// How long a packet is kept. Default 500 ms: more than the patience of the other end.
    pub age: Duration,
    /// How often a packet is sent again at most. Default 16.
    pub replays: u8,
    /// A packet that was sent again is not sent once more within this time. Default 250 µs.
    pub replay_interval: Duration,
    /// After half a round trip of the link without a packet, and so long at least, the other end is told of the last one; twice more, a
    /// round trip apart, if it does not answer. Default as [`tail_probe_at`] says of a link whose rate is not known. `None`: never.
    pub tail_probe: Option<Duration>,
    /// What makes lost packets again without asking. Default nothing.
    pub parity: Parity,
}

impl Default for Config {
    fn default() -> Self {
        let attempts = NonZeroU8::new(12).expect("not zero");
        Self {
            recovery: Recovery {
                attempts,
                samples: Samples::OneRequest,
                floor: Duration::from_millis(2),
                ..Recovery::default()
            },
            turn: Turn::First,
            order: Order::Kept,
            kept_packets: WINDOW as u32,
            age: Duration::from_millis(500),
            replays: 16,
            replay_interval: Duration::from_micros(250),
            tail_probe: Some(tail_probe_at(None)),
            parity: Parity::Off,
        }
    }
}

/// Returns the silence after which an end tells of its last packet, over a link of this rate: the time of eight packets of 1500 bytes, from
/// 4 to 100 ms, and 4 ms where the rate is not known. Shorter silences are those between two ACKs that bring new data: at 6 Mb/s over
/// 802.11 probes after 4 ms cost 14 % of the goodput. Longer ones come after the time-out of a TCP sender.
#[must_use]
pub fn tail_probe_at(rate_bps: Option<u64>) -> Duration {
    const LEAST: Duration = Duration::from_millis(4);
    const MOST: Duration = Duration::from_millis(100);
    const BITS: u64 = 8 * 1500 * 8;
    let of_rate = |bps: u64| Duration::from_secs_f64(BITS as f64 / bps.max(1) as f64);
    rate_bps.map_or(LEAST, |bps| of_rate(bps).clamp(LEAST, MOST))
}

impl Config {
    const fn caching(&self) -> Caching {
        let Self { kept_packets, age, replays, replay_interval, .. } = *self;
        Caching { packets_per_flow: u16::MAX, packets: kept_packets, age, replays, replay_interval }
    }
}

/// What makes lost packets again without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Nothing.
    Off,
    /// After some packets their exclusive-or, from which any one of them can be made: after half the number among which one is lost, as
    /// far as the other end has asked, within these bounds; while less than one in a thousand is lost, none.
    Adaptive {
        /// Least number of packets.
        least: NonZeroU8,
        /// Most.
        most: NonZeroU8,
    },
}

/// Numbers from the first that is missing that are told apart. What is farther ahead moves on without what is missing.
pub const WINDOW: usize = 1024;
/// Most packets that may be missing at once. What lost more is left to those behind the link.
pub const MOST_MISSING: usize = 256;

/// What an end does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does<K> {
    /// It sends a frame.
    Sends(Turn, Frame<K>),
    /// A packet has crossed the link.
    Delivers(K),
    /// The queue had no room for a packet that it had taken.
    Loses(K),
    /// It lets go of a packet: the other end has it, others need its room, it is too old, or it is another copy.
    Discards(K),
}

/// One end of a link. `K`: a packet as whoever drives the machine keeps it; each that is sent is a copy of one that is kept.
#[derive(Debug)]
pub struct Opaque<K> {
    near: Near<K>,
    far: Far<K>,
    out: VecDeque<Does<K>>,
    stats: Stats,
}

/// What an end has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets taken.
    pub packets: u64,
    /// Packets sent again.
    pub replayed: u64,
    /// Packets wished for that were sent again just now.
    pub under_way: u64,
    /// Packets wished for that are not kept, or were sent again too often.
    pub not_kept: u64,
    /// Packets that the queue refused.
    pub refused: u64,
    /// Frames that told of a last packet.
    pub tail_probes: u64,
    /// Frames of parity sent.
    pub parity: u64,
    /// Packets made again from parity.
    pub restored: u64,
    /// Copies of packets that had arrived.
    pub copies: u64,
    /// Times that more was missing than is asked for.
    pub too_many: u64,
    /// Frames of the other end's former life.
    pub stale: u64,
    /// Lives of the other end that have begun, beside the first.
    pub restarts: u64,
    /// Frames that made no sense: for another life than this one, or for what was never sent.
    pub senseless: u64,
}

impl<K: Clone> Opaque<K> {
    /// An end that has sent and received nothing. `epoch`: another one than in its last life.
    #[must_use]
    pub fn new(config: Config, epoch: u16) -> Self {
        let (near, far) = (Near::new(config, epoch), Far::new(config));
        Self { near, far, out: VecDeque::new(), stats: Stats::default() }
    }

    /// A packet is to cross the link.
    pub fn send(&mut self, now: Instant, packet: K) {
        self.near.send(now, packet, &mut self.out, &mut self.stats);
    }

    /// A frame has come from the other end.
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

    /// The queue of the link has no room for the packet of this number. That is congestion, and the business of those behind the link: it
    /// is not repaired.
    pub fn refused(&mut self, number: u32) {
        self.near.refused(number, &mut self.out, &mut self.stats);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.near.handle_timeout(now, &mut self.out, &mut self.stats);
        self.far.handle_timeout(now, &mut self.out);
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Does<K>> {
        self.out.pop_front()
    }

    /// When to call [`Opaque::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.near.due().into_iter().chain(self.far.due()).min()
    }

    /// Number of packets that it holds: those of the sending half, and received ones that wait for earlier ones.
    #[must_use]
    pub fn held(&self) -> usize {
        self.near.held() + self.far.held()
    }

    /// What it has done.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What it has done about what was missing.
    #[must_use]
    pub const fn recovery(&self) -> &RecoveryStats {
        self.far.recovery()
    }
}

#[cfg(test)]
mod tests;
