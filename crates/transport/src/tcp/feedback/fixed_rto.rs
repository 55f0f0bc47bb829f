//! Fixed RTO (Dyer, Boppana, MobiHoc 2001): consecutive time-outs mean a lost route, not congestion. The timeout stops
//! doubling, so that the sender notices a new route soon. No notification is needed.

use super::{FeedbackState, RouteFeedback};
use crate::tcp::endpoint::Endpoint;
use hopline_core::{Instant, Payload, settings};

settings! {
    /// Parameters of [`RouteFeedback::FixedRto`]. Start from [`Self::PAPER`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FixedRtoConfig {
        /// Number of consecutive time-outs, without an acknowledgment of new data in between, from which on the timeout is
        /// constant. Range 1–255, default 2.
        timeouts, with_timeouts: u32,
    }
}

impl FixedRtoConfig {
    /// Parameters of the paper.
    pub const PAPER: Self = Self { timeouts: 2 };
}

impl<P: Payload> Endpoint<P> {
    /// Returns whether the next time-out keeps the timeout constant.
    pub(super) fn keeps_rto_constant(&self, config: FixedRtoConfig) -> bool {
        self.snd.retries + 1 >= config.timeouts
    }

    /// Records a time-out that kept the timeout constant.
    pub(in crate::tcp) fn record_fixed_rto(&mut self, now: Instant) {
        if let RouteFeedback::FixedRto(_) = self.config.feedback {
            if self.route.state == FeedbackState::Active {
                self.route.state = FeedbackState::RtoFixed;
                self.route.since = now;
            }
            self.stats.feedback.fixed_timeouts += 1;
        }
    }

    /// Leaves the fixed state after an acknowledgment of new data.
    pub(in crate::tcp) fn end_fixed_rto(&mut self) {
        if self.route.state == FeedbackState::RtoFixed {
            self.route.state = FeedbackState::Active;
        }
    }
}
