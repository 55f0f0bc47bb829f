//! User-defined congestion control algorithms, which set the growth and the reduction of the window
//! ([`Endpoint::with_own_law`](crate::tcp::Endpoint::with_own_law)).
//!
//! The algorithm is called and returns a number of bytes. The endpoint keeps loss detection and retransmission, slow
//! start after a time-out from one segment, idle restarts, and the undoing of spurious reductions. An algorithm must
//! therefore use the window that it is passed, not the one that it returned last.

use super::ask_own::Moment;
use core::fmt::Debug;
use hopline_core::own::OwnFailure;
use hopline_core::{Duration, Instant};

/// Index of a user-defined algorithm in the list of the creator of the endpoints, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLawId(pub u16);

/// User-defined congestion control algorithm of one endpoint.
///
/// Equal calls must give equal results: no clock, no randomness without a seed, no state shared with other instances.
/// Results are bytes. They are limited to the range from one segment to the largest window.
///
/// # Errors
/// Each method returns the reason for a failure in words. The endpoint then continues with RFC 5681 and keeps the reason
/// ([`Endpoint::take_own_failure`](crate::tcp::Endpoint::take_own_failure)). A result that is not a number, or is below
/// 0, is such an error too.
///
/// # Example
///
/// ```
/// use hopline_core::{Length, Seq32};
/// use hopline_transport::tcp::{Config, Endpoint, LawAck, LawLoss, LawTimeout, OwnLaw, Ports};
///
/// /// Window of eight segments, whatever is lost.
/// #[derive(Debug)]
/// struct Constant;
///
/// impl OwnLaw for Constant {
///     fn on_ack(&mut self, ack: &LawAck) -> Result<f64, String> {
///         Ok(8.0 * f64::from(ack.state.mss_bytes))
///     }
///
///     fn on_loss(&mut self, loss: &LawLoss) -> Result<f64, String> {
///         Ok(8.0 * f64::from(loss.state.mss_bytes))
///     }
///
///     fn on_timeout(&mut self, timeout: &LawTimeout) -> Result<f64, String> {
///         Ok(8.0 * f64::from(timeout.state.mss_bytes))
///     }
/// }
///
/// let ports = Ports { local: 40_000, remote: 80 };
/// let endpoint = Endpoint::<Length>::with_own_law(Config::modern(), ports, Seq32(1), Box::new(Constant));
/// assert!(endpoint.is_ok());
/// ```
pub trait OwnLaw: Debug + Send {
    /// Processes an acknowledgment of new data outside fast recovery. Returns the new `cwnd`.
    fn on_ack(&mut self, ack: &LawAck) -> Result<f64, String>;

    /// Processes a loss or an ECN mark, once per window. Returns the new `ssthresh`.
    fn on_loss(&mut self, loss: &LawLoss) -> Result<f64, String>;

    /// Processes an expiry of the retransmission timer. Returns the new `ssthresh`; `cwnd` becomes one segment.
    fn on_timeout(&mut self, timeout: &LawTimeout) -> Result<f64, String>;

    /// Processes the undoing of the last reductions, which were spurious or were held. `cwnd` and `ssthresh` have their
    /// old values or better ones. The default does nothing.
    fn on_undo(&mut self, state: &LawState) -> Result<(), String> {
        let _ = state;
        Ok(())
    }
}

/// State of the connection, passed in every call.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LawState {
    /// Virtual time.
    pub now: Instant,
    /// Congestion window, bytes, with the fraction of an earlier result.
    pub cwnd_bytes: f64,
    /// Slow start threshold, bytes; 2³⁰ before the first loss.
    pub ssthresh_bytes: u32,
    /// Segment size, data bytes.
    pub mss_bytes: u32,
    /// Largest window, bytes.
    pub max_cwnd_bytes: u32,
    /// Data in flight, bytes; for an acknowledgment: after it.
    pub flight_bytes: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
}

/// An acknowledgment of new data.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LawAck {
    /// State of the connection.
    pub state: LawState,
    /// Data newly acknowledged, bytes.
    pub acked_bytes: u64,
    /// Round-trip time sample of this ACK; `None` without one. Whole milliseconds if timestamps give it.
    pub rtt: Option<Duration>,
    /// Window that slow start would set for this acknowledgment, bytes (RFC 5681 §3.1, RFC 3465, as configured).
    pub slow_start_bytes: f64,
    /// `true` if the window limited the sender.
    pub window_was_full: bool,
    /// `true` if the ACK reports an ECN mark. The result then cannot raise the window.
    pub marked: bool,
}

/// Something was lost or marked.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LawLoss {
    /// State of the connection.
    pub state: LawState,
    /// Congestion signal.
    pub sign: LossSign,
    /// Quantity to reduce, bytes: the data in flight (RFC 5681) or the window, as configured.
    pub reduced_bytes: u32,
}

/// Congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSign {
    /// Lost segment: fast retransmit.
    Loss,
    /// ECN mark (RFC 3168), without a loss.
    Mark,
}

/// The retransmission timer expired.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LawTimeout {
    /// State of the connection before the time-out.
    pub state: LawState,
    /// As [`LawLoss::reduced_bytes`].
    pub reduced_bytes: u32,
    /// Use of the result.
    pub answer: TimeoutAnswer,
}

/// Use of the result of a time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAnswer {
    /// The result becomes `ssthresh`.
    Counts,
    /// The result is ignored: `ssthresh` was reduced for this loss before (RFC 5681 §3.1).
    DoesNot,
}

/// State of a user-defined algorithm.
#[derive(Debug)]
pub(crate) struct Own {
    /// Algorithm; `None` after a failure.
    law: Option<Box<dyn OwnLaw>>,
    failure: Option<OwnFailure>,
    /// Time and bytes in flight of the last loss, mark or time-out that was passed to the algorithm since this was
    /// cleared.
    pub(super) reduced: Option<(Moment, u64)>,
}

impl Clone for Own {
    /// Returns a failed copy, since the state of an algorithm cannot be copied.
    fn clone(&self) -> Self {
        let why = "its endpoint was copied, and what a law remembers cannot be".to_owned();
        let failure = Some(OwnFailure::new("clone", why));
        Self { law: None, failure, reduced: None }
    }
}

impl Own {
    pub(super) fn new(law: Box<dyn OwnLaw>) -> Self {
        Self { law: Some(law), failure: None, reduced: None }
    }

    /// Returns the reason for the failure, once.
    pub(super) fn take_failure(&mut self) -> Option<OwnFailure> {
        self.failure.take()
    }

    pub(super) fn ack(&mut self, ack: &LawAck) -> Option<f64> {
        self.ask("on_ack", |law| bytes(law.on_ack(ack)?))
    }

    pub(super) fn loss(&mut self, loss: &LawLoss) -> Option<f64> {
        self.ask("on_loss", |law| bytes(law.on_loss(loss)?))
    }

    pub(super) fn timeout(&mut self, timeout: &LawTimeout) -> Option<f64> {
        self.ask("on_timeout", |law| bytes(law.on_timeout(timeout)?))
    }

    pub(super) fn undo(&mut self, state: &LawState) {
        let _ = self.ask("on_undo", |law| law.on_undo(state));
    }

    /// Calls the algorithm; returns `None` once it has failed.
    fn ask<R>(
        &mut self,
        method: &'static str,
        question: impl FnOnce(&mut dyn OwnLaw) -> Result<R, String>,
    ) -> Option<R> {
        match question(&mut **self.law.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(why) => {
                self.law = None;
                self.failure = Some(OwnFailure::new(method, why));
                None
            }
        }
    }
}

fn bytes(answer: f64) -> Result<f64, String> {
    if answer >= 0.0 {
        return Ok(answer);
    }
    Err(format!("a window of {answer} bytes: it takes a number from 0 on"))
}
