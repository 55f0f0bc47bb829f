//! BBR: sending at the bandwidth that the path has been seen to have, with little more in flight than it holds.
//!
//! Version 1 is `v1` with `policer`, version 3 `v3` with `bounds` and `probing`; what they share is in `parts` and `filter`. Both are told
//! of each acknowledgment when RACK has looked for losses, and say how large the window is, and at which rate segments leave. The
//! window is in bytes; where rules speak of packets, they are segments of the negotiated size.
//!
//! Facts of `net/ipv4/tcp_bbr.c` (6.x) and of draft-ietf-ccwg-bbr, named where they are used.

mod bounds;
mod config;
mod control;
mod filter;
mod parts;
mod policer;
mod probing;
mod v1;
mod v3;

pub use config::{BbrConfig, BbrVersion, PolicerDetection};

use super::Phase;
use crate::tcp::delivery_rate::{Limit, Loss, RateSample};
use hopline_core::{Duration, Instant, Stream};
use v1::V1;
use v3::V3;

/// BBR at work.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    machine: Version,
    orders: Orders,
    filled: Filled,
}

/// What BBR thinks of the path, and what it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrModel {
    /// What it does.
    pub state: BbrState,
    /// Bandwidth that it goes by, data bytes per second; 0 before the first sample.
    pub bandwidth: f64,
    /// The least round trip of late; `None` before the first.
    pub min_rtt: Option<Duration>,
    /// Data bytes per second at which segments leave.
    pub pacing_rate: f64,
    /// v1: whether the bandwidth is a policer's.
    pub policer: Policed,
    /// v3: most bytes in flight that losses allow for long; `None`: they have not bounded it.
    pub inflight_longterm: Option<u64>,
}

/// What BBR does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrState {
    /// The rate grows until that brings no more.
    Startup,
    /// What that queued drains.
    Drain,
    /// v1: the bandwidth is probed in turns.
    ProbeBw {
        /// The turn: 0 sends more, 1 less, 2 to 7 as much as arrives.
        turn: u8,
    },
    /// v3: less than arrives is sent.
    ProbeBwDown,
    /// v3: as much as arrives is sent.
    ProbeBwCruise,
    /// v3: the same, without the bounds that hold for a while.
    ProbeBwRefill,
    /// v3: more is sent.
    ProbeBwUp,
    /// The window is small, so that the least round trip shows.
    ProbeRtt,
}

/// Whether somebody is thought to drop what is beyond a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policed {
    /// Nobody.
    No,
    /// Somebody.
    Yes,
}

#[derive(Clone, Debug)]
enum Version {
    V1(Box<V1>),
    V3(Box<V3>),
}

/// What BBR has its endpoint do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Orders {
    /// Bytes that may be in flight.
    pub(crate) cwnd: u64,
    /// Data bytes per second.
    pub(crate) rate: f64,
    /// Bytes that leave together.
    pub(crate) train: u64,
}

/// A connection as it opens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) now: Instant,
    /// Data bytes of a full segment.
    pub(crate) mss: u64,
    /// The initial window, bytes.
    pub(crate) window: u64,
    /// The round trip of the handshake, if it is known.
    pub(crate) round_trip: Option<Duration>,
}

/// An acknowledgment, as BBR sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) now: Instant,
    pub(crate) sample: Option<RateSample>,
    /// Bytes that it reports for the first time.
    pub(crate) acked: u64,
    /// Bytes that were taken for lost with it.
    pub(crate) lost: u64,
    /// The same, so far.
    pub(crate) delivered: u64,
    pub(crate) lost_so_far: u64,
    /// When `delivered` last grew.
    pub(crate) delivered_at: Instant,
    /// Bytes in flight, before and after it.
    pub(crate) in_flight_before: u64,
    pub(crate) in_flight: u64,
    pub(crate) phase: Phase,
    /// The smoothed round trip.
    pub(crate) smoothed: Option<Duration>,
    /// When the next train may leave; in the past if it need not wait.
    pub(crate) due: Instant,
    /// Whether the window was full at any time since the last acknowledgment.
    pub(crate) filled: Filled,
}

/// Whether the window was full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Filled {
    /// It was not.
    #[default]
    No,
    /// It was.
    Yes,
}

/// What samples are to be taken for from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Samples {
    /// What they are.
    AsTheyAre,
    /// The sender's own limit: less was in flight than the path holds, on purpose.
    Limited,
}

impl Bbr {
    /// State before the connection is open; what it draws, it draws from `random`.
    pub(crate) fn new(config: BbrConfig, random: Stream) -> Self {
        let machine = match config.version {
            BbrVersion::V1 { policer } => Version::V1(Box::new(V1::new(config, policer, random))),
            BbrVersion::V3 { loss_threshold, beta, headroom } => {
                let limits = v3::Limits { loss_threshold, beta, headroom };
                Version::V3(Box::new(V3::new(config, limits, random)))
            }
        };
        Self { machine, orders: Orders { cwnd: 0, rate: f64::INFINITY, train: 0 }, filled: Filled::No }
    }

    /// The connection is open.
    pub(crate) fn open(&mut self, opening: &Opening) {
        self.orders.cwnd = opening.window;
        match &mut self.machine {
            Version::V1(v1) => v1.open(opening, &mut self.orders),
            Version::V3(v3) => v3.open(opening, &mut self.orders),
        }
    }

    /// What is to be done.
    pub(crate) fn orders(&self) -> Orders {
        self.orders
    }

    /// The window is smaller than was said: something else limits it.
    pub(crate) fn limit_window(&mut self, most: u64) {
        self.orders.cwnd = self.orders.cwnd.min(most);
    }

    /// The window is full now.
    pub(crate) fn note_filled(&mut self) {
        self.filled = Filled::Yes;
    }

    /// Whether it was since this was asked last.
    pub(crate) fn take_filled(&mut self) -> Filled {
        core::mem::take(&mut self.filled)
    }

    /// What it thinks.
    pub(crate) fn model(&self) -> BbrModel {
        let pacing_rate = self.orders.rate;
        match &self.machine {
            Version::V1(v1) => v1.model(pacing_rate),
            Version::V3(v3) => v3.model(pacing_rate),
        }
    }

    /// Segments that leave at once when the connection is new, whatever the rate: ten in Linux.
    pub(crate) fn free_segments(&self) -> u32 {
        match self.machine {
            Version::V1(_) => 10,
            Version::V3(_) => 0,
        }
    }

    /// An acknowledgment was taken, and losses were looked for.
    pub(crate) fn on_ack(&mut self, seen: &Seen) -> Samples {
        match &mut self.machine {
            Version::V1(v1) => v1.on_ack(seen, &mut self.orders),
            Version::V3(v3) => v3.on_ack(seen, &mut self.orders),
        }
    }

    /// A segment was taken for lost, whatever brought that to light. By then so many bytes were delivered.
    pub(crate) fn on_loss(&mut self, loss: &Loss, delivered: u64, now: Instant) {
        if let Version::V3(v3) = &mut self.machine {
            v3.on_loss(loss, delivered, now, &self.orders);
        }
    }

    /// Fast recovery begins.
    pub(crate) fn on_recovery(&mut self) {
        match &mut self.machine {
            Version::V1(v1) => v1.save_window(self.orders.cwnd),
            Version::V3(v3) => v3.save_window(self.orders.cwnd),
        }
    }

    /// The retransmission timer expired, and what should have arrived is taken for lost. So much is still in flight.
    pub(crate) fn on_timeout(&mut self, now: Instant, in_flight: u64, delivered: u64, lost_so_far: u64) {
        match &mut self.machine {
            Version::V1(v1) => v1.on_timeout(now, delivered, lost_so_far, self.orders.cwnd),
            Version::V3(v3) => v3.on_timeout(self.orders.cwnd),
        }
        let mss = match &self.machine {
            Version::V1(v1) => v1.mss(),
            Version::V3(v3) => v3.mss(),
        };
        self.orders.cwnd = in_flight + mss;
    }

    /// What was taken for lost was not.
    pub(crate) fn on_undo(&mut self, now: Instant, delivered: u64, lost_so_far: u64) {
        match &mut self.machine {
            Version::V1(v1) => v1.on_undo(now, delivered, lost_so_far),
            Version::V3(v3) => v3.on_undo(delivered, &mut self.orders),
        }
    }

    /// A probe repaired the only loss of its flight.
    pub(crate) fn on_tail_loss(&mut self, delivered: u64) {
        if let Version::V3(v3) = &mut self.machine {
            v3.note_loss(delivered, self.orders.cwnd);
        }
    }

    /// Data leave though nothing was in flight, as many as `limit` let.
    pub(crate) fn on_resume(&mut self, now: Instant, limit: Limit, delivered: u64) {
        if limit == Limit::Application {
            match &mut self.machine {
                Version::V1(v1) => v1.on_resume(now, &mut self.orders),
                Version::V3(v3) => v3.on_resume(now, delivered, &mut self.orders),
            }
        }
    }
}
