//! End of slow start before the first loss: the choice of the algorithm, and its state.

use super::hystart::{HyStart, HyStartConfig};
use super::hystart_pp::{HyStartPlusPlus, HyStartPlusPlusConfig};
use super::slow_start_input::{PacingUse, SlowStartAck, SlowStartVerdict};

/// Algorithm that ends slow start before it overflows the queue of the bottleneck. For Reno and
/// CUBIC; BBR and user-defined algorithms have rules of their own.
///
/// HyStart and HyStart++ need a round-trip time sample from each acknowledgment: timestamps, or RACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// None: slow start ends at `ssthresh`, or with a loss or a mark (RFC 5681 §3.1).
    Rfc5681,
    /// HyStart of Linux: ends slow start when a train of ACKs lasts as long as the path, or when the delay rises
    /// (Ha and Rhee 2011).
    HyStart(HyStartConfig),
    /// HyStart++: a rise of the delay slows the growth for some round trips, then ends slow start (RFC 9406).
    HyStartPlusPlus(HyStartPlusPlusConfig),
}

impl SlowStart {
    /// Checks the parameters.
    pub(crate) fn validate(&self) -> Result<(), (&'static str, &'static str)> {
        match self {
            Self::Rfc5681 => Ok(()),
            Self::HyStart(config) => config.validate(),
            Self::HyStartPlusPlus(config) => config.validate(),
        }
    }
}

/// State of the configured algorithm.
#[derive(Clone, Debug)]
pub(super) enum SlowStartState {
    Rfc5681,
    HyStart(Box<HyStart>),
    HyStartPlusPlus(Box<HyStartPlusPlus>),
}

impl SlowStartState {
    pub(super) fn new(slow_start: SlowStart) -> Self {
        match slow_start {
            SlowStart::Rfc5681 => Self::Rfc5681,
            SlowStart::HyStart(config) => Self::HyStart(Box::new(HyStart::new(config))),
            SlowStart::HyStartPlusPlus(config) => {
                Self::HyStartPlusPlus(Box::new(HyStartPlusPlus::new(config)))
            }
        }
    }

    /// Processes an acknowledgment before the window grows: Linux decides first.
    pub(super) fn before_growth(&mut self, ack: &SlowStartAck) -> SlowStartVerdict {
        match self {
            Self::Rfc5681 | Self::HyStartPlusPlus(_) => SlowStartVerdict::Continue,
            Self::HyStart(hystart) => hystart.on_ack(ack),
        }
    }

    /// Processes an acknowledgment after the window has grown: RFC 9406 §4.2 decides then.
    pub(super) fn after_growth(&mut self, ack: &SlowStartAck) -> SlowStartVerdict {
        match self {
            Self::Rfc5681 | Self::HyStart(_) => SlowStartVerdict::Continue,
            Self::HyStartPlusPlus(hystart) => hystart.on_ack(ack),
        }
    }

    /// Returns the growth of the window for `acked` bytes; `None`: as usual.
    pub(super) fn growth(&self, acked: u32, mss: u32, pacing: PacingUse) -> Option<u32> {
        match self {
            Self::Rfc5681 | Self::HyStart(_) => None,
            Self::HyStartPlusPlus(hystart) => hystart.growth(acked, mss, pacing),
        }
    }

    /// Processes a reduction of the window for a loss or a mark.
    pub(super) fn on_reduction(&mut self) {
        match self {
            Self::Rfc5681 | Self::HyStart(_) => {}
            Self::HyStartPlusPlus(hystart) => hystart.on_reduction(),
        }
    }

    /// Processes an expiry of the retransmission timer, which starts a new slow start.
    pub(super) fn on_timeout(&mut self) {
        match self {
            Self::Rfc5681 => {}
            Self::HyStart(hystart) => hystart.on_timeout(),
            Self::HyStartPlusPlus(hystart) => hystart.on_timeout(),
        }
    }
}
