//! Fixed RTO (Dyer, Boppana, MobiHoc 2001): time-outs in a row are a lost route, not congestion, and the timeout stops doubling, so
//! that a new route is noticed soon. Nobody has to tell the sender anything.

use super::{Feedback, FeedbackState};
use crate::tcp::endpoint::Endpoint;
use hopline_core::{Instant, Payload};

/// Parameters of [`Feedback::FixedRto`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRtoConfig {
    /// Time-outs in a row, without an acknowledgment of new data in between, from which on the timeout keeps its length.
    /// Range 1–255, default 2.
    pub timeouts: u32,
}

impl FixedRtoConfig {
    /// As described.
    pub const PAPER: Self = Self { timeouts: 2 };
}

impl<P: Payload> Endpoint<P> {
    /// A time-out: whether the timeout keeps its length.
    pub(in crate::tcp) fn keeps_rto(&mut self, now: Instant) -> bool {
        let Feedback::FixedRto(config) = self.config.feedback else { return false };
        if self.snd.retries < config.timeouts {
            return false;
        }
        if self.route.state == FeedbackState::Active {
            self.route.state = FeedbackState::RtoFixed;
            self.route.since = now;
        }
        self.stats.feedback.fixed_timeouts += 1;
        true
    }

    /// New data was acknowledged.
    pub(in crate::tcp) fn end_fixed_rto(&mut self) {
        if self.route.state == FeedbackState::RtoFixed {
            self.route.state = FeedbackState::Active;
        }
    }

    /// Whether to give up at a time-out, where time-outs follow each other so soon that their number says nothing.
    pub(in crate::tcp) fn gives_up_by_time(&self, now: Instant) -> Option<bool> {
        (self.route.state == FeedbackState::RtoFixed).then(|| self.is_out_of_patience(now))
    }
}
