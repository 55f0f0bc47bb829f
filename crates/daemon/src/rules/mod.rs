//! Rules that divert packets to the proxies: rules of iptables and nftables, and routes.
//!
//! Rules of a daemon contain its name, are written to a journal before they are made, and are removed when the daemon ends.
//! Nothing else is changed. Packets for a middlebox are queued after the firewall, from the table `security`: a middlebox
//! neither receives nor retransmits packets that the firewall drops. Without a reader of a queue its packets pass
//! (`--queue-bypass`). Without a listener connections pass (`tproxy` of nftables continues with the next rule then; that of
//! iptables drops).

mod apply;
mod chain;
mod claim;
mod destinations;
mod diverted;
mod family;
mod held;
mod journal;
mod matches;
mod names;
mod program;
mod shaping;
mod steps;
mod table;
mod tracking;
mod translated;
mod tun;
mod zones;

pub use apply::Undone;
pub(crate) use apply::{change, set_up, undo};
pub(crate) use claim::Claim;
pub use claim::Leave;
pub use diverted::Capture;
pub(crate) use diverted::{Announced, Calls, Captured, Guarded, Hooks, Offered, Queued, Shaped, Versions};
pub(crate) use family::{Family, Ipv6};
pub(crate) use program::Program;
pub use program::RuleError;
pub use tracking::{Tracking, Watch, translates};
pub use tun::Owner;
pub(crate) use tun::Tun;

use crate::config::Config;
use chain::{Chain, Place};
use std::fmt;
use steps::Step;

/// Rules of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Name of the daemon.
    owner: String,
    /// IPv6 on the machine of the rules.
    ipv6: Ipv6,
    /// Use of connection tracking on that machine.
    tracking: Tracking,
    capture: Capture,
    queued: Vec<Queued>,
    offered: Vec<Offered>,
    announced: Vec<Announced>,
    captured: Vec<Captured>,
    guarded: Vec<Guarded>,
    shaped: Vec<Shaped>,
    /// Names of the TUN interfaces of its tunnels.
    tuns: Vec<String>,
}

impl Rules {
    /// Returns the rules that the proxies of `config` need on this machine, including those for connection tracking if it is
    /// in use.
    #[must_use]
    pub fn of(config: &Config, tracking: Tracking) -> Self {
        let tasks = || config.proxies.iter().map(|proxy| &proxy.task);
        let mut shaped: Vec<Shaped> = tasks().filter_map(|task| task.shaped()).collect();
        // Proxies of an interface agree on its rate.
        shaped.sort_by(|one, other| one.interface.cmp(&other.interface));
        shaped.dedup();
        Self {
            owner: config.name.clone(),
            ipv6: Ipv6::here(),
            tracking,
            capture: config.capture,
            queued: tasks().filter_map(|task| task.queued()).collect(),
            offered: tasks().filter_map(|task| task.offered()).collect(),
            announced: tasks().filter_map(|task| task.announced()).collect(),
            captured: tasks().flat_map(|task| task.captured()).collect(),
            guarded: tasks().filter_map(|task| task.guarded()).collect(),
            shaped,
            tuns: tasks().filter_map(|task| task.tun()).collect(),
        }
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let of_chains = self.ipv6.families_of_chains();
        for &family in of_chains {
            for place in [Place::Forward, Place::Input, Place::Output] {
                let rules = self.rules_at(family, place);
                if !rules.is_empty() {
                    steps.push(Step::chain(Chain::of_machines(&self.owner, family, place), &rules));
                }
            }
        }
        if self.tracking == Tracking::InUse && self.mind_tracking() {
            let zoned = (!self.captured.is_empty()).then_some(self.capture);
            steps.push(Step::tracked(&self.owner, of_chains, &self.forwarded(), zoned));
        }
        if !self.offered.is_empty() {
            steps.extend(Step::offered(&self.owner, of_chains, &self.offered));
        }
        if !self.captured.is_empty() {
            steps.extend(Step::captured(
                &self.owner,
                of_chains,
                self.capture,
                (&self.captured, &self.guarded),
            ));
            let rules = held::rules(&self.captured);
            let chain = |&family: &Family| Step::chain(Chain::of_calls(&self.owner, family), &rules);
            steps.extend(of_chains.iter().map(chain));
        }
        steps.extend(self.shaped.iter().map(Step::shaped));
        steps
    }

    /// Returns the steps that can be done now: the queue of a missing interface is made when the interface appears.
    fn steps_now(&self) -> Vec<Step> {
        self.steps().into_iter().filter(|step| step.what.has_its_place()).collect()
    }

    /// Returns a sentence about the rules that need connection tracking; `None` if there are never any.
    #[must_use]
    pub fn on_tracking(&self) -> Option<&'static str> {
        self.mind_tracking().then_some(match self.tracking {
            Tracking::Absent => {
                "connection tracking is not in use on this machine: rules that need it are made when it begins"
            }
            Tracking::InUse => "connection tracking is in use on this machine: there are rules for it",
        })
    }

    /// Returns whether connection tracking needs further rules.
    pub(crate) fn mind_tracking(&self) -> bool {
        !self.forwarded().is_empty() || !self.captured.is_empty()
    }

    fn forwarded(&self) -> Vec<&Queued> {
        self.queued.iter().filter(|queued| queued.is_forwarded()).collect()
    }

    /// Returns the rules of middleboxes.
    fn rules_at(&self, family: Family, place: Place) -> Vec<String> {
        let queued = self.queued.iter().flat_map(|queued| chain::rules_of(queued, family, place));
        let announced =
            self.announced.iter().flat_map(|announced| chain::rules_for_handshakes(announced, place));
        queued.chain(announced).collect()
    }
}

/// Writes the commands as a user would type them.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps().iter().flat_map(|step| &step.make).try_for_each(|program| writeln!(f, "{program}"))
    }
}

/// Returns the entries of a journal that removal would handle, one word list each; for a fuzz target.
#[doc(hidden)]
#[must_use]
pub fn listed(journal: &[u8]) -> Vec<String> {
    journal::listed(journal)
        .iter()
        .map(|made| serde_json::to_string(made).expect("words and numbers"))
        .collect()
}

/// Returns the journal with its last entry added again, if it has any.
#[doc(hidden)]
#[must_use]
pub fn with_one_more(journal: &[u8]) -> Option<Vec<u8>> {
    let made = journal::listed(journal).pop()?;
    Some([journal, journal::added(&made, journal.last().copied()).as_bytes()].concat())
}

#[cfg(test)]
mod tests;
