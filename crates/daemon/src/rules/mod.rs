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
mod held_syns;
mod journal;
mod matches;
mod names;
mod program;
mod retransmissions;
mod shaping;
mod steps;
mod table;
mod tracking;
mod tun;
mod zones;

pub use apply::Removed;
pub(crate) use apply::{change, set_up, undo};
pub(crate) use claim::Claim;
pub use claim::Keep;
pub use diverted::DiversionMark;
pub(crate) use diverted::{
    ConnectionMatch, DivertedConnections, FullyQueuedInterface, HandshakeQueue, Hooks, Queued,
    ShapedInterface, UnforwardedPackets, Versions,
};
pub(crate) use family::{Family, Ipv6Support};
pub(crate) use program::Program;
pub use program::RuleError;
pub use tracking::{Tracking, TrackingMonitor, translates};
pub use tun::Owner;
pub(crate) use tun::Tun;

use crate::config::Config;
use chain::{Chain, Hook};
use std::fmt;
use steps::Step;

/// Rules of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Name of the daemon.
    owner: String,
    /// IPv6 on the machine of the rules.
    ipv6: Ipv6Support,
    /// Use of connection tracking on that machine.
    tracking: Tracking,
    diversion: DiversionMark,
    queued: Vec<Queued>,
    offered: Vec<FullyQueuedInterface>,
    announced: Vec<HandshakeQueue>,
    diverted: Vec<DivertedConnections>,
    guarded: Vec<UnforwardedPackets>,
    shaped: Vec<ShapedInterface>,
    /// Names of the TUN interfaces of its tunnels.
    tuns: Vec<String>,
}

impl Rules {
    /// Returns the rules that the proxies of `config` need on this machine, including those for connection tracking if it is
    /// in use.
    #[must_use]
    pub fn of(config: &Config, tracking: Tracking) -> Self {
        let tasks = || config.proxies.iter().map(|proxy| &proxy.task);
        let mut shaped: Vec<ShapedInterface> = tasks().filter_map(|task| task.shaped()).collect();
        // Proxies of an interface agree on its rate.
        shaped.sort_by(|one, other| one.interface.cmp(&other.interface));
        shaped.dedup();
        Self {
            owner: config.name.clone(),
            ipv6: Ipv6Support::detect(),
            tracking,
            diversion: config.diversion,
            queued: tasks().filter_map(|task| task.queued()).collect(),
            offered: tasks().filter_map(|task| task.offered()).collect(),
            announced: tasks().filter_map(|task| task.announced()).collect(),
            diverted: tasks().flat_map(|task| task.captured()).collect(),
            guarded: tasks().filter_map(|task| task.guarded()).collect(),
            shaped,
            tuns: tasks().filter_map(|task| task.tun()).collect(),
        }
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let of_chains = self.ipv6.families_of_chains();
        for &family in of_chains {
            for place in [Hook::Forward, Hook::Input, Hook::Output] {
                let rules = self.rules_at(family, place);
                if !rules.is_empty() {
                    steps.push(Step::chain(Chain::for_middleboxes(&self.owner, family, place), &rules));
                }
            }
        }
        if self.tracking == Tracking::InUse && self.uses_tracking() {
            let zoned = (!self.diverted.is_empty()).then_some(self.diversion);
            steps.push(Step::for_tracking(&self.owner, of_chains, &self.forwarded(), zoned));
        }
        if !self.offered.is_empty() {
            steps.extend(Step::for_full_queues(&self.owner, of_chains, &self.offered));
        }
        if !self.diverted.is_empty() {
            steps.extend(Step::for_diverted(
                &self.owner,
                of_chains,
                self.diversion,
                (&self.diverted, &self.guarded),
            ));
            let rules = held_syns::rules(&self.diverted);
            let chain = |&family: &Family| Step::chain(Chain::for_connections(&self.owner, family), &rules);
            steps.extend(of_chains.iter().map(chain));
        }
        steps.extend(self.shaped.iter().map(Step::shaped));
        steps
    }

    /// Returns the steps that can be done now: the queue of a missing interface is made when the interface appears.
    fn steps_possible_now(&self) -> Vec<Step> {
        self.steps().into_iter().filter(|step| step.object.has_location()).collect()
    }

    /// Returns a sentence about the rules that need connection tracking; `None` if there are never any.
    #[must_use]
    pub fn tracking_note(&self) -> Option<&'static str> {
        self.uses_tracking().then_some(match self.tracking {
            Tracking::Absent => {
                "connection tracking is not in use on this machine: rules that need it are made when it begins"
            }
            Tracking::InUse => "connection tracking is in use on this machine: there are rules for it",
        })
    }

    /// Returns whether connection tracking needs further rules.
    pub(crate) fn uses_tracking(&self) -> bool {
        !self.forwarded().is_empty() || !self.diverted.is_empty()
    }

    fn forwarded(&self) -> Vec<&Queued> {
        self.queued.iter().filter(|queued| queued.is_forwarded()).collect()
    }

    /// Returns the rules of middleboxes.
    fn rules_at(&self, family: Family, place: Hook) -> Vec<String> {
        let queued = self.queued.iter().flat_map(|queued| chain::rules_of(queued, family, place));
        let announced =
            self.announced.iter().flat_map(|announced| chain::rules_for_handshakes(announced, place));
        queued.chain(announced).collect()
    }
}

/// Writes the commands as a user would type them.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps().iter().flat_map(|step| &step.create).try_for_each(|program| writeln!(f, "{program}"))
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
