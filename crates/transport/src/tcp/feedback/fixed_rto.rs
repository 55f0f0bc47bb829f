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
    /// Whether the next time-out is one in which the timeout keeps its length.
    pub(super) fn fixes_rto(&self, config: FixedRtoConfig) -> bool {
        self.snd.retries + 1 >= config.timeouts
    }

    /// A time-out in which the timeout kept its length.
    pub(in crate::tcp) fn note_fixed_rto(&mut self, now: Instant) {
        if let Feedback::FixedRto(_) = self.config.feedback {
            if self.route.state == FeedbackState::Active {
                self.route.state = FeedbackState::RtoFixed;
                self.route.since = now;
            }
            self.stats.feedback.fixed_timeouts += 1;
        }
    }

    /// New data was acknowledged.
    pub(in crate::tcp) fn end_fixed_rto(&mut self) {
        if self.route.state == FeedbackState::RtoFixed {
            self.route.state = FeedbackState::Active;
        }
    }
}
