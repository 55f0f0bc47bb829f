//! Which mobile hosts are asked: those that show that they keep what they send.
//!
//! A host that keeps nothing takes a question for a duplicate ACK. It is found out by what it does: what it sends again only after the fixed
//! host has reported the loss, or late, is no answer. So a host has a few questions; each is paid for, an answer pays some of them back,
//! and a host that has none left is not asked until a long time has passed.

use hopline_core::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Which mobile hosts are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All: they are known to keep what they send.
    All,
    /// Those that answer. So many questions are asked in vain, each about another packet, before a host is left alone.
    Answering {
        /// Questions in vain.
        questions: u8,
    },
}

/// An answer pays back so many questions: packets that were late and not lost look like answers, now and then.
const PAID_BACK: u8 = 4;
/// A host that was left alone is asked once after so long.
const SILENCE: Duration = Duration::from_secs(600);
/// Most hosts that are remembered.
const HOSTS: usize = 4096;

/// Table of mobile hosts.
#[derive(Debug)]
pub(super) struct Hosts {
    asks: Asks,
    known: BTreeMap<IpAddr, Host>,
}

#[derive(Clone, Copy, Debug)]
struct Host {
    questions: u8,
    has_answered: bool,
    asked: Instant,
}

impl Hosts {
    pub(super) const fn new(asks: Asks) -> Self {
        Self { asks, known: BTreeMap::new() }
    }

    /// From now on these hosts are asked; what is known of hosts stays.
    pub(super) const fn set_asks(&mut self, asks: Asks) {
        self.asks = asks;
    }

    /// Returns whether a host may be asked now; then it has one question less.
    pub(super) fn may_ask(&mut self, now: Instant, mobile: IpAddr) -> bool {
        let Asks::Answering { questions } = self.asks else { return true };
        if self.known.len() >= HOSTS && !self.known.contains_key(&mobile) {
            self.known.pop_first();
        }
        let host = self.known.entry(mobile).or_insert(Host { questions, has_answered: false, asked: now });
        if host.questions == 0 && now.since(host.asked) >= SILENCE {
            host.questions = 1;
        }
        let may = host.questions > 0;
        if may {
            (host.questions, host.asked) = (host.questions - 1, now);
        }
        may
    }

    /// Returns whether a host has shown that it keeps what it sends: only then a question is repeated.
    pub(super) fn has_answered(&self, mobile: IpAddr) -> bool {
        self.asks == Asks::All || self.known.get(&mobile).is_some_and(|host| host.has_answered)
    }

    /// A host has sent again what it was asked for.
    pub(super) fn answers(&mut self, mobile: IpAddr) {
        let Asks::Answering { questions } = self.asks else { return };
        if let Some(host) = self.known.get_mut(&mobile) {
            host.has_answered = true;
            host.questions = host.questions.saturating_add(PAID_BACK).min(questions);
        }
    }
}
