//! Laws of somebody's own: how the window grows and what a loss leaves of it, said by a machine that is handed over
//! ([`Endpoint::with_own_law`](crate::tcp::Endpoint::with_own_law)).
//!
//! The law is asked and answers with a number of bytes. What is lost and when it is sent again stays ours, as do slow start
//! after a time-out from one segment, idle restarts, and undoing what was wrong. So a law goes by the window that it is told,
//! not by the one that it said last.

use super::ask_own::Moment;
use core::fmt::Debug;
use hopline_core::own::OwnFailure;
use hopline_core::{Duration, Instant};

/// Which of the laws that whoever makes endpoints has at hand, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLawId(pub u16);

/// A window law of one endpoint.
///
/// Equal calls have to give equal answers: no clock, no randomness but what is seeded, nothing shared with other instances. Answers are
/// bytes. What is above the largest window counts as that, what is below one segment as one segment.
///
/// # Errors
/// Each method: why it cannot answer, in words, as long as need be. The endpoint then goes on as by RFC 5681 and keeps the reason
/// ([`Endpoint::take_own_failure`](crate::tcp::Endpoint::take_own_failure)). Not a number, or one below 0, is such an error too.
pub trait OwnLaw: Debug + Send {
    /// New data was acknowledged, outside fast recovery: `cwnd` from now on.
    fn on_ack(&mut self, ack: &LawAck) -> Result<f64, String>;

    /// Something was lost, or the network marked it; once for a window. What is left of the window: `ssthresh`.
    fn on_loss(&mut self, loss: &LawLoss) -> Result<f64, String>;

    /// The retransmission timer expired. `ssthresh` from now on; `cwnd` is one segment.
    fn on_timeout(&mut self, timeout: &LawTimeout) -> Result<f64, String>;

    /// The last reductions, one or several, turned out to be wrong and are undone, or were not to be heeded: `cwnd` and `ssthresh`
    /// are again what they were, or better. Does nothing unless it is written.
    fn on_undo(&mut self, state: &LawState) -> Result<(), String> {
        let _ = state;
        Ok(())
    }
}

/// What a law is told whatever happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawState {
    /// Virtual time.
    pub now: Instant,
    /// Congestion window, bytes; what an earlier answer had beyond whole bytes included.
    pub cwnd_bytes: f64,
    /// Slow start threshold, bytes; 2³⁰ before the first loss.
    pub ssthresh_bytes: u32,
    /// Data of a full segment, bytes.
    pub mss_bytes: u32,
    /// Largest window, bytes.
    pub max_cwnd_bytes: u32,
    /// Data in flight, bytes; of an acknowledgment: after it.
    pub flight_bytes: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
}

/// An acknowledgment of new data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawAck {
    /// As things stand.
    pub state: LawState,
    /// Data newly acknowledged, bytes.
    pub acked_bytes: u64,
    /// The round trip that it ends; `None` if it cannot be told. Whole milliseconds where timestamps tell it.
    pub rtt: Option<Duration>,
    /// What slow start makes of the window with this acknowledgment (RFC 5681 §3.1, RFC 3465, as the endpoint is set).
    pub slow_start_bytes: f64,
    /// Whether the window was what kept the sender from sending more.
    pub window_was_full: bool,
    /// Whether it reports a mark of the network: the answer then counts for no more than the window is.
    pub marked: bool,
}

/// Something was lost or marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawLoss {
    /// As things stand.
    pub state: LawState,
    /// What shows it.
    pub sign: LossSign,
    /// What a reduction is taken of, bytes: of data in flight (RFC 5681), or of the window, as the endpoint is set.
    pub reduced_bytes: u32,
}

/// What shows congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSign {
    /// A segment is missing: fast retransmit.
    Loss,
    /// The network marked a segment (RFC 3168): nothing is missing.
    Mark,
}

/// The retransmission timer expired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawTimeout {
    /// As things stood before.
    pub state: LawState,
    /// As [`LawLoss::reduced_bytes`].
    pub reduced_bytes: u32,
    /// What the answer is for.
    pub answer: TimeoutAnswer,
}

/// Whether the answer to a time-out counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAnswer {
    /// It is `ssthresh`.
    Counts,
    /// `ssthresh` stays: it was reduced for this before (RFC 5681 §3.1).
    DoesNot,
}

/// An own law at work.
#[derive(Debug)]
pub(crate) struct Own {
    /// `None`: it has failed.
    law: Option<Box<dyn OwnLaw>>,
    failure: Option<OwnFailure>,
    /// The law was told of a loss, a mark or a time-out since this was cleared: when, and what was in flight.
    pub(super) reduced: Option<(Moment, u64)>,
}

impl Clone for Own {
    /// What a law remembers cannot be copied: the copy has failed.
    fn clone(&self) -> Self {
        let why = "its endpoint was copied, and what a law remembers cannot be".to_owned();
        let failure = Some(OwnFailure { method: "clone", why });
        Self { law: None, failure, reduced: None }
    }
}

impl Own {
    pub(super) fn new(law: Box<dyn OwnLaw>) -> Self {
        Self { law: Some(law), failure: None, reduced: None }
    }

    /// Why it has failed, once.
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

    /// What the law answers; `None` once it has failed.
    fn ask<R>(
        &mut self,
        method: &'static str,
        question: impl FnOnce(&mut dyn OwnLaw) -> Result<R, String>,
    ) -> Option<R> {
        match question(&mut **self.law.as_mut()?) {
            Ok(answer) => Some(answer),
            Err(why) => {
                self.law = None;
                self.failure = Some(OwnFailure { method, why });
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
