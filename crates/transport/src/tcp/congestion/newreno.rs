//! NewReno: recovery lasts until everything in flight at its start is acknowledged (RFC 6582).

use super::{AckInput, CongestionState, ImmediateRetransmission, Response, TimerAction, reno};
use crate::tcp::config::Config;
use hopline_core::settings;

settings! {
    /// Parameters of [`Variant::NewReno`](super::Variant::NewReno). Start from [`Self::RFC6582`] or a preset of ns-2 and
    /// use the setters. "Default" is the value of RFC 6582.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct NewRenoConfig {
        /// Partial ACKs that restart the retransmission timer. Default the first only.
        timer, with_timer: NewRenoTimer,
        /// Effect of a partial ACK on the inflated window. Default deflates it.
        partial_ack, with_partial_ack: PartialAck,
        /// `cwnd` after recovery. Default by the data in flight.
        exit, with_exit: NewRenoExit,
    }
}

/// Partial ACKs that restart the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewRenoTimer {
    /// The first only: many losses end in a time-out (RFC 6582 §3.2 (3), §4).
    Impatient,
    /// Every one.
    SlowButSteady,
}

/// Effect of a partial ACK on the inflated window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialAck {
    /// Takes away what it acknowledges and gives one segment back (RFC 6582 §3.2 (3)).
    Deflate,
    /// Takes all inflation away (ns-2 before May 2003).
    DropInflation,
}

/// `cwnd` after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewRenoExit {
    /// `min(ssthresh, max(FlightSize, SMSS) + SMSS)`: no burst (RFC 6582 §3.2 (3), option 1).
    FlightSize,
    /// `ssthresh` (option 2).
    Ssthresh,
    /// The remainder after partial ACKs; the last ACK counts as an ordinary one (ns-2).
    Residual,
}

impl NewRenoConfig {
    /// As RFC 6582 recommends.
    pub const RFC6582: Self = Self {
        timer: NewRenoTimer::Impatient,
        partial_ack: PartialAck::Deflate,
        exit: NewRenoExit::FlightSize,
    };
    /// `Agent/TCP/Newreno` of ns-2 since May 2003.
    pub const NS2: Self = Self {
        timer: NewRenoTimer::Impatient,
        partial_ack: PartialAck::Deflate,
        exit: NewRenoExit::Residual,
    };
    /// `Agent/TCP/Newreno` of ns-2 before May 2003.
    pub const NS2_2001: Self = Self {
        timer: NewRenoTimer::SlowButSteady,
        partial_ack: PartialAck::DropInflation,
        exit: NewRenoExit::Residual,
    };
}

pub(super) fn on_new_ack(
    c: &mut CongestionState,
    newreno: NewRenoConfig,
    config: &Config,
    ack: &AckInput,
) -> Response {
    if ack.una < c.recover {
        return on_partial_ack(c, newreno, ack);
    }
    c.leave_recovery();
    match newreno.exit {
        NewRenoExit::FlightSize => {
            let flight = (ack.nxt - ack.una).min(1 << 30) as u32;
            c.window.cwnd = c.window.ssthresh.min(flight.max(c.window.mss) + c.window.mss);
        }
        NewRenoExit::Ssthresh => c.set_window_after_recovery(),
        NewRenoExit::Residual => c.grow(config, ack),
    }
    Response::RESTART_TIMER
}

pub(super) fn on_duplicate(c: &mut CongestionState, config: &Config, ack: &AckInput) -> Response {
    // RFC 6582 §3.2 (2)
    let allowed = c.is_past_recover(ack.una);
    reno::inflate_or_enter(c, config, ack, allowed)
}

/// RFC 6582 §3.2 (3), partial acknowledgments.
fn on_partial_ack(c: &mut CongestionState, newreno: NewRenoConfig, ack: &AckInput) -> Response {
    match newreno.partial_ack {
        PartialAck::Deflate => deflate(c, ack.acked),
        PartialAck::DropInflation => c.window.inflation = 0,
    }
    c.partial_acks += 1;
    let restarts = newreno.timer == NewRenoTimer::SlowButSteady || c.partial_acks == 1;
    let timer = if restarts { TimerAction::Restart } else { TimerAction::Keep };
    Response { retransmission: ImmediateRetransmission::FirstUnacked, timer, ..Response::NOTHING }
}

/// Deflates the window for a partial ACK: the inflation first, then `cwnd`. Adds one segment back if at least one was
/// acknowledged.
fn deflate(c: &mut CongestionState, acked: u64) {
    let w = &mut c.window;
    let back = if acked >= u64::from(w.mss) { w.mss } else { 0 };
    let acked = acked.min(1 << 30) as u32;
    let from_inflation = acked.min(w.inflation);
    w.inflation -= from_inflation;
    w.cwnd = w.cwnd.saturating_sub(acked - from_inflation).max(w.mss);
    w.inflation += back;
}
