//! BBR: sends at the estimated bandwidth of the path, with little more than the bandwidth-delay product in flight.
//!
//! Version 1 is `v1` with `policer`, version 3 is `v3` with `bounds` and `probing`. Their common parts are in `parts` and
//! `filter`. Both receive each acknowledgment after RACK has looked for losses, and set the window and the pacing rate.
//! The window is in bytes; where the rules speak of packets, they are segments of the negotiated size.
//!
//! Facts of `net/ipv4/tcp_bbr.c` (6.x) and of draft-ietf-ccwg-bbr, named where they are used.

mod bounds;
mod common;
mod config;
mod filter;
mod interface;
mod policer;
mod probe_bw;
mod v1;
mod v3;

#[cfg(test)]
pub(crate) use v3::{UndoState, variables::V3Variables};

pub use config::{BbrConfig, BbrVersion, PolicerDetection};

use super::RecoveryPhase;
use crate::tcp::delivery_rate::{LostSegment, RateSample, SendLimit};
use hopline_core::{Duration, Instant, RandomStream};
use v1::V1;
use v3::V3;

/// State of BBR, of either version.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    machine: Version,
    output: ControlOutput,
    cwnd_limited: CwndLimited,
}

/// Model of the path and state of BBR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrModel {
    /// State of the state machine.
    pub state: BbrState,
    /// Estimated bandwidth, data bytes per second; 0 before the first sample.
    pub bandwidth: f64,
    /// Minimum round-trip time of the filter window; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Pacing rate, data bytes per second.
    pub pacing_rate: f64,
    /// v1: source of the bandwidth, a policer or not.
    pub policer_state: PolicerState,
    /// v3: long-term bound of the bytes in flight; `None`: losses have not set it.
    pub inflight_longterm: Option<u64>,
}

/// State of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrState {
    /// The rate grows until delivery does not grow with it.
    Startup,
    /// The queue that Startup built drains.
    Drain,
    /// v1: the bandwidth is probed in a cycle of phases.
    ProbeBw {
        /// Phase of the cycle: 0 sends faster than the bandwidth, 1 slower, 2 to 7 at the bandwidth.
        phase: u8,
    },
    /// v3: sends below the bandwidth.
    ProbeBwDown,
    /// v3: sends at the bandwidth.
    ProbeBwCruise,
    /// v3: sends at the bandwidth, without the short-term bounds.
    ProbeBwRefill,
    /// v3: sends above the bandwidth.
    ProbeBwUp,
    /// The window is small, to measure the minimum round-trip time.
    ProbeRtt,
}

/// Presence of a policer, as estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicerState {
    /// No policer detected.
    NotDetected,
    /// A policer limits the rate.
    Detected,
}

#[derive(Clone, Debug)]
enum Version {
    V1(Box<V1>),
    V3(Box<V3>),
}

/// Outputs of BBR to its endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ControlOutput {
    /// Congestion window, bytes.
    pub(crate) cwnd: u64,
    /// Pacing rate, data bytes per second.
    pub(crate) pacing_rate: f64,
    /// Size of a burst, bytes.
    pub(crate) send_quantum: u64,
}

/// Parameters of a connection at its opening.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionStart {
    pub(crate) now: Instant,
    /// Data bytes of a full segment.
    pub(crate) mss: u64,
    /// The initial window, bytes.
    pub(crate) initial_window: u64,
    /// Round-trip time of the handshake, if known.
    pub(crate) handshake_rtt: Option<Duration>,
}

/// Input of BBR for an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BbrAck {
    pub(crate) now: Instant,
    pub(crate) sample: Option<RateSample>,
    /// Bytes that it reports for the first time.
    pub(crate) acked: u64,
    /// Bytes that were declared lost on this acknowledgment.
    pub(crate) newly_lost: u64,
    /// Totals of delivered and lost bytes of the connection.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    /// Time of the last increase of `delivered`.
    pub(crate) delivered_at: Instant,
    /// Bytes in flight before and after the acknowledgment.
    pub(crate) in_flight_before: u64,
    pub(crate) in_flight: u64,
    pub(crate) phase: RecoveryPhase,
    /// Smoothed round-trip time.
    pub(crate) srtt: Option<Duration>,
    /// Release time of the next burst; in the past if it need not wait.
    pub(crate) next_burst: Instant,
    /// `Detected` if the window was full at any time since the last acknowledgment.
    pub(crate) cwnd_limited: CwndLimited,
}

/// Window utilisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CwndLimited {
    /// The window was not full.
    #[default]
    No,
    /// The window was full.
    Yes,
}

/// Classification of the following delivery rate samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleKind {
    /// Normal samples.
    Normal,
    /// Application-limited samples: the sender keeps less in flight than the path holds, on purpose.
    AppLimited,
}

impl Bbr {
    /// Creates the state before the connection is open. Random numbers come from `random`.
    pub(crate) fn new(config: BbrConfig, random: RandomStream) -> Self {
        let machine = match config.version {
            BbrVersion::V1 { policer } => Version::V1(Box::new(V1::new(config, policer, random))),
            BbrVersion::V3 { loss_threshold, beta, headroom } => {
                let limits = v3::LossParameters { loss_threshold, beta, headroom };
                Version::V3(Box::new(V3::new(config, limits, random)))
            }
        };
        Self {
            machine,
            output: ControlOutput { cwnd: 0, pacing_rate: f64::INFINITY, send_quantum: 0 },
            cwnd_limited: CwndLimited::No,
        }
    }

    /// Starts on an open connection.
    pub(crate) fn start(&mut self, opening: &ConnectionStart) {
        self.output.cwnd = opening.initial_window;
        match &mut self.machine {
            Version::V1(v1) => v1.start(opening, &mut self.output),
            Version::V3(v3) => v3.start(opening, &mut self.output),
        }
    }

    /// Returns the current outputs.
    pub(crate) fn output(&self) -> ControlOutput {
        self.output
    }

    /// Limits the window to `most` bytes, which a limit outside of BBR allows.
    pub(crate) fn limit_window(&mut self, most: u64) {
        self.output.cwnd = self.output.cwnd.min(most);
    }

    /// Records that the window is full now.
    pub(crate) fn set_cwnd_limited(&mut self) {
        self.cwnd_limited = CwndLimited::Yes;
    }

    /// Returns whether the window was full since the last call.
    pub(crate) fn take_cwnd_limited(&mut self) -> CwndLimited {
        core::mem::take(&mut self.cwnd_limited)
    }

    /// Returns the model of the path.
    pub(crate) fn model(&self) -> BbrModel {
        let pacing_rate = self.output.pacing_rate;
        match &self.machine {
            Version::V1(v1) => v1.model(pacing_rate),
            Version::V3(v3) => v3.model(pacing_rate),
        }
    }

    /// Returns the number of segments that a new connection sends unpaced: ten in Linux.
    pub(crate) fn unpaced_segments(&self) -> u32 {
        match self.machine {
            Version::V1(_) => 10,
            Version::V3(_) => 0,
        }
    }

    /// Processes an acknowledgment, after loss detection.
    pub(crate) fn on_ack(&mut self, seen: &BbrAck) -> SampleKind {
        match &mut self.machine {
            Version::V1(v1) => v1.on_ack(seen, &mut self.output),
            Version::V3(v3) => v3.on_ack(seen, &mut self.output),
        }
    }

    /// Processes the loss of a segment, however it was detected. `delivered`: bytes delivered by then.
    pub(crate) fn on_loss(&mut self, loss: &LostSegment, delivered: u64, now: Instant) {
        if let Version::V3(v3) = &mut self.machine {
            v3.on_loss(loss, delivered, now, &self.output);
        }
    }

    /// Saves the window at the start of fast recovery.
    pub(crate) fn on_recovery(&mut self) {
        match &mut self.machine {
            Version::V1(v1) => v1.save_cwnd(self.output.cwnd),
            Version::V3(v3) => v3.on_recovery(self.output.cwnd),
        }
    }

    /// Saves the state at an expiry of the retransmission timer, before its losses are reported.
    pub(crate) fn save_before_timeout(&mut self) {
        if let Version::V3(v3) = &mut self.machine {
            v3.save_before_timeout(self.output.cwnd);
        }
    }

    /// Processes an expiry of the retransmission timer. All overdue data count as lost; `in_flight` bytes remain in
    /// flight.
    pub(crate) fn on_timeout(&mut self, now: Instant, in_flight: u64, delivered: u64, lost_so_far: u64) {
        match &mut self.machine {
            Version::V1(v1) => v1.on_timeout(now, delivered, lost_so_far, self.output.cwnd),
            Version::V3(v3) => v3.on_timeout(),
        }
        let mss = match &self.machine {
            Version::V1(v1) => v1.mss(),
            Version::V3(v3) => v3.mss(),
        };
        self.output.cwnd = in_flight + mss;
    }

    /// Processes the discovery that a loss was spurious.
    pub(crate) fn on_undo(&mut self, now: Instant, delivered: u64, lost_so_far: u64) {
        match &mut self.machine {
            Version::V1(v1) => v1.on_undo(now, delivered, lost_so_far),
            Version::V3(v3) => v3.on_spurious_loss(delivered, &mut self.output),
        }
    }

    /// Processes the repair of the only loss of a flight by a tail loss probe.
    pub(crate) fn on_tail_loss(&mut self, delivered: u64) {
        if let Version::V3(v3) = &mut self.machine {
            v3.note_loss(delivered, self.output.cwnd);
        }
    }

    /// Processes a transmission after nothing was in flight. `limit`: limit of the sender at that time.
    pub(crate) fn on_resume(&mut self, now: Instant, limit: SendLimit, delivered: u64) {
        if limit == SendLimit::Application {
            match &mut self.machine {
                Version::V1(v1) => v1.on_resume(now, &mut self.output),
                Version::V3(v3) => v3.on_resume(now, delivered, &mut self.output),
            }
        }
    }
}
