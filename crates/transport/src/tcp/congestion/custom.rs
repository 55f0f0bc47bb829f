//! User-defined congestion control algorithms, which set the growth and the reduction of the window
//! ([`Endpoint::with_custom_congestion_control`](crate::tcp::Endpoint::with_custom_congestion_control)).
//!
//! The algorithm is called and returns a number of bytes. The endpoint keeps loss detection and retransmission, slow
//! start after a time-out from one segment, idle restarts, and the undoing of spurious reductions. An algorithm must
//! therefore use the window that it is passed, not the one that it returned last.

use super::custom_calls::RttContext;
use core::fmt::Debug;
use hopline_core::custom_algorithm::CustomAlgorithmError;
use hopline_core::{Duration, Instant};

/// Index of a user-defined algorithm in the list of the creator of the endpoints, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomCongestionControlId(pub u16);

/// User-defined congestion control algorithm of one endpoint.
///
/// Equal calls must give equal results: no clock, no randomness without a seed, no state shared with other instances.
/// Results are bytes. They are limited to the range from one segment to the largest window.
///
/// # Errors
/// Each method returns the reason for a failure in words. The endpoint then continues with RFC 5681 and keeps the reason
/// ([`Endpoint::take_custom_failure`](crate::tcp::Endpoint::take_custom_failure)). A result that is not a number, or is below
/// 0, is such an error too.
///
/// # Example
///
/// ```
/// use hopline_core::{Length, Seq32};
/// use hopline_transport::tcp::{Config, Endpoint, CustomCcAck, CustomCcLoss, CustomCcTimeout, CustomCongestionControl, Ports};
///
/// /// Window of eight segments, whatever is lost.
/// #[derive(Debug)]
/// struct Constant;
///
/// impl CustomCongestionControl for Constant {
///     fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String> {
///         Ok(8.0 * f64::from(ack.state.mss_bytes))
///     }
///
///     fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String> {
///         Ok(8.0 * f64::from(loss.state.mss_bytes))
///     }
///
///     fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String> {
///         Ok(8.0 * f64::from(timeout.state.mss_bytes))
///     }
/// }
///
/// let ports = Ports { local: 40_000, remote: 80 };
/// let endpoint = Endpoint::<Length>::with_custom_congestion_control(Config::modern(), ports, Seq32(1), Box::new(Constant));
/// assert!(endpoint.is_ok());
/// ```
pub trait CustomCongestionControl: Debug + Send {
    /// Processes an acknowledgment of new data outside fast recovery. Returns the new `cwnd`.
    fn on_ack(&mut self, ack: &CustomCcAck) -> Result<f64, String>;

    /// Processes a loss or an ECN mark, once per window. Returns the new `ssthresh`.
    fn on_loss(&mut self, loss: &CustomCcLoss) -> Result<f64, String>;

    /// Processes an expiry of the retransmission timer. Returns the new `ssthresh`; `cwnd` becomes one segment.
    fn on_timeout(&mut self, timeout: &CustomCcTimeout) -> Result<f64, String>;

    /// Processes the undoing of the last reductions, which were spurious or were held. `cwnd` and `ssthresh` have their
    /// old values or better ones. The default does nothing.
    fn on_undo(&mut self, state: &CustomCcState) -> Result<(), String> {
        let _ = state;
        Ok(())
    }
}

/// State of the connection, passed in every call.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CustomCcState {
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
pub struct CustomCcAck {
    /// State of the connection.
    pub state: CustomCcState,
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
pub struct CustomCcLoss {
    /// State of the connection.
    pub state: CustomCcState,
    /// Congestion signal.
    pub signal: CongestionSignal,
    /// Quantity to reduce, bytes: the data in flight (RFC 5681) or the window, as configured.
    pub reduction_base_bytes: u32,
}

/// Congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// Lost segment: fast retransmit.
    Loss,
    /// ECN mark (RFC 3168), without a loss.
    EcnMark,
}

/// The retransmission timer expired.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CustomCcTimeout {
    /// State of the connection before the time-out.
    pub state: CustomCcState,
    /// As [`CustomCcLoss::reduction_base_bytes`].
    pub reduction_base_bytes: u32,
    /// Use of the result.
    pub result_use: TimeoutResultUse,
}

/// Use of the result of a time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutResultUse {
    /// The result becomes `ssthresh`.
    BecomesSsthresh,
    /// The result is ignored: `ssthresh` was reduced for this loss before (RFC 5681 §3.1).
    Ignored,
}

/// State of a user-defined algorithm.
#[derive(Debug)]
pub(crate) struct CustomState {
    /// Algorithm; `None` after a failure.
    algorithm: Option<Box<dyn CustomCongestionControl>>,
    failure: Option<CustomAlgorithmError>,
    /// Time and bytes in flight of the last loss, mark or time-out that was passed to the algorithm since this was
    /// cleared.
    pub(super) last_reduction: Option<(RttContext, u64)>,
}

impl Clone for CustomState {
    /// Returns a failed copy, since the state of an algorithm cannot be copied.
    fn clone(&self) -> Self {
        let why = "its endpoint was copied, and what a law remembers cannot be".to_owned();
        let failure = Some(CustomAlgorithmError::new("clone", why));
        Self { algorithm: None, failure, last_reduction: None }
    }
}

impl CustomState {
    pub(super) fn new(law: Box<dyn CustomCongestionControl>) -> Self {
        Self { algorithm: Some(law), failure: None, last_reduction: None }
    }

    /// Returns the reason for the failure, once.
    pub(super) fn take_failure(&mut self) -> Option<CustomAlgorithmError> {
        self.failure.take()
    }

    pub(super) fn ack(&mut self, ack: &CustomCcAck) -> Option<f64> {
        self.call("on_ack", |law| checked_bytes(law.on_ack(ack)?))
    }

    pub(super) fn loss(&mut self, loss: &CustomCcLoss) -> Option<f64> {
        self.call("on_loss", |law| checked_bytes(law.on_loss(loss)?))
    }

    pub(super) fn timeout(&mut self, timeout: &CustomCcTimeout) -> Option<f64> {
        self.call("on_timeout", |law| checked_bytes(law.on_timeout(timeout)?))
    }

    pub(super) fn undo(&mut self, state: &CustomCcState) {
        let _ = self.call("on_undo", |law| law.on_undo(state));
    }

    /// Calls the algorithm; returns `None` once it has failed.
    fn call<R>(
        &mut self,
        method: &'static str,
        question: impl FnOnce(&mut dyn CustomCongestionControl) -> Result<R, String>,
    ) -> Option<R> {
        match question(&mut **self.algorithm.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(why) => {
                self.algorithm = None;
                self.failure = Some(CustomAlgorithmError::new(method, why));
                None
            }
        }
    }
}

fn checked_bytes(answer: f64) -> Result<f64, String> {
    if answer >= 0.0 {
        return Ok(answer);
    }
    Err(format!("a window of {answer} bytes: it takes a number from 0 on"))
}
