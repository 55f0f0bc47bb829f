//! Frame bursts: use of the rest of a transmission opportunity (802.11-2020 §10.23.2.8, §10.23.2.9). Each frame reserves its
//! own response and no more. Stations that receive the burst wait for DIFS, which the SIFS between frames never leaves.

use super::config::AckPolicy;
use super::{Mac, Service, State};
use core::fmt::Debug;
use hopline_core::Instant;

impl<M: Copy + Debug> Mac<M> {
    /// Starts the limit of a burst, when the medium is won. Blocks have a limit of their own.
    pub(super) fn open_burst(&mut self, now: Instant) {
        let limit = match self.config.ack_policy {
            AckPolicy::Normal | AckPolicy::NoAck => self.config.burst_limit,
            AckPolicy::BlockAck { .. } => None,
        };
        self.burst_until = limit.map_or(Instant::ZERO, |limit| now + limit);
    }

    /// Returns whether there may be time for another frame.
    pub(super) fn is_burst_open(&self, now: Instant) -> bool {
        self.burst_until > now + self.config.sifs
    }

    /// Continues a burst SIFS after a successful frame. The next frame follows if there is one and it fits. Otherwise the
    /// medium is released, and the rest contends as always.
    pub(super) fn continue_burst(&mut self, now: Instant) {
        debug_assert_eq!(self.state, State::BetweenFrames, "a burst goes on after SIFS");
        match self.service {
            Service::Single(current)
                if now + self.data_airtime(&current) + self.response_airtime(&current.msdu)
                    <= self.burst_until =>
            {
                self.send_data(now, &current);
            }
            _ => self.finish_msdu(now),
        }
    }
}
