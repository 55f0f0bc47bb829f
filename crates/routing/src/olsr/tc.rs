//! TC messages (RFC 3626 §9): a relay's advertisement of its MPR selectors, and handling of received ones.

use super::agent::{Olsr, OutdatedState};
use super::config::EarlyTc;
use super::stats::IgnoredReason;
use super::topology::TcEffect;
use super::types::Timer;
use crate::is_host;
use hopline_core::Instant;
use hopline_wire::olsr::{Body, Message, Tc};

/// TTL of a message to the whole network.
const WHOLE_NETWORK: u8 = 255;

impl Olsr {
    /// Records that the set of MPR selectors changed.
    pub(super) fn on_selectors_change(&mut self, now: Instant) {
        // Next hops depend on the selectors if paths are equally long.
        self.mark_outdated(OutdatedState::Table);
        self.advertising.ansn += 1;
        if self.selectors.is_empty() && self.advertising.last_sent.is_some() {
            self.advertising.withdrawing_until = now + self.config.topology_hold_time();
        }
    }

    /// Sends a TC message early after the loss of a selector with its link (§9.3).
    pub(super) fn send_tc_early(&mut self, now: Instant) {
        let EarlyTc::OnLinkFailure { spacing } = self.config.early_tc else { return };
        let earliest = self.advertising.last_sent.map_or(now, |latest| now.max(latest + spacing));
        // Both ends of a lost link detect the loss at about the same time.
        let early = earliest + self.stream.duration_below(self.config.max_jitter());
        if self.timers.get(Timer::Tc).is_none_or(|due| early < due) {
            self.timers.set(Timer::Tc, early);
        }
    }

    /// Sends a TC message (§9.3).
    pub(super) fn send_tc(&mut self, now: Instant) {
        let next = self.emission_interval(self.config.tc_interval);
        self.timers.set(Timer::Tc, now + next);
        if self.selectors.is_empty() && self.advertising.withdrawing_until <= now {
            return;
        }
        let tc = Tc { ansn: self.advertising.ansn, neighbours: self.selectors.iter().collect() };
        self.advertising.last_sent = Some(now);
        self.stats.tcs_sent += 1;
        self.originate(now, WHOLE_NETWORK, self.config.topology_hold_time(), Body::Tc(tc));
    }

    /// Handles a TC message that arrived over a symmetric link and for the first time (§9.5).
    pub(super) fn handle_tc(&mut self, now: Instant, message: &Message, tc: &Tc) {
        let (own, last) = (self.address, message.originator);
        let (hosts, rest): (Vec<_>, Vec<_>) =
            tc.neighbours.iter().partition(|to| is_host(**to) && **to != last);
        for _ in rest {
            self.stats.ignore(IgnoredReason::BadAddress);
        }
        // A link back to this node adds no route.
        let told = hosts.into_iter().copied().filter(|to| *to != own);
        let until = now + message.validity.duration();
        let told = self.topology.apply_tc(last, tc.ansn, told, until);
        match told {
            TcEffect::Stale => self.stats.ignore(IgnoredReason::StaleTopology),
            TcEffect::Renewed => {}
            TcEffect::Changed => self.mark_outdated(OutdatedState::Table),
            TcEffect::Overflowed => {
                self.stats.ignore(IgnoredReason::TableFull);
                self.mark_outdated(OutdatedState::Table);
            }
        }
    }
}
