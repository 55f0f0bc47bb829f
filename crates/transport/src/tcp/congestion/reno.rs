//! Reno: fast retransmit and fast recovery, left on the first new ACK (RFC 5681 §3.2).

use super::{AckInput, CongestionState, RecoveryPhase, Response};
use crate::tcp::config::Config;
use hopline_core::settings;

settings! {
    /// Parameters of [`Variant::Reno`](super::Variant::Reno). Start from [`Self::RFC5681`] or [`Self::NS2`] and use the
    /// setters. "Default" is the value of RFC 5681.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RenoConfig {
        /// Condition for a fast retransmit, to limit their number per window of data. Default none.
        guard, with_guard: FastRetransmitGuard,
        /// Effect on `cwnd` of the ACK that ends recovery. Default deflates it.
        exit, with_exit: RenoExit,
    }
}

/// Condition for a fast retransmit, to limit their number per window of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastRetransmitGuard {
    /// No condition: every series of duplicates counts (RFC 5681).
    None,
    /// At most one per window: duplicates count only above the data in flight at the last loss (ns-2, `bugFix_`).
    OncePerWindow,
}

/// Effect on `cwnd` of the ACK that ends recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenoExit {
    /// Removes the inflation (RFC 5681 §3.2 (6)).
    Deflate,
    /// Removes the inflation; the ACK then counts as an ordinary one (ns-2).
    DeflateAndGrow,
}

impl RenoConfig {
    /// As RFC 5681 writes it.
    pub const RFC5681: Self = Self { guard: FastRetransmitGuard::None, exit: RenoExit::Deflate };
    /// `Agent/TCP/Reno` of ns-2.
    pub const NS2: Self = Self { guard: FastRetransmitGuard::OncePerWindow, exit: RenoExit::DeflateAndGrow };
}

pub(super) fn on_new_ack(
    c: &mut CongestionState,
    reno: RenoConfig,
    config: &Config,
    ack: &AckInput,
) -> Response {
    c.leave_recovery();
    if reno.exit == RenoExit::DeflateAndGrow {
        c.grow(config, ack);
    }
    Response::RESTART_TIMER
}

pub(super) fn on_duplicate(
    c: &mut CongestionState,
    reno: RenoConfig,
    config: &Config,
    ack: &AckInput,
) -> Response {
    let allowed = reno.guard == FastRetransmitGuard::None || c.is_past_recover(ack.una);
    inflate_or_enter(c, config, ack, allowed)
}

/// RFC 5681 §3.2 (2)–(4), shared with NewReno.
pub(super) fn inflate_or_enter(
    c: &mut CongestionState,
    config: &Config,
    ack: &AckInput,
    allowed: bool,
) -> Response {
    if c.phase == RecoveryPhase::Recovery {
        c.window.inflation = c.window.inflation.saturating_add(c.window.mss).min(1 << 30);
    } else if c.dup_acks == config.dup_ack_threshold && allowed {
        c.enter_recovery(config, ack);
        c.window.inflation = config.dup_ack_threshold * c.window.mss;
        return Response::ENTER_RECOVERY;
    }
    Response::default()
}
