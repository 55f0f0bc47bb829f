//! What this machine must be told so that packets come to the proxies: rules of iptables and nftables, and routes.
//!
//! What a daemon makes bears its name, is written down before it is made, and goes when the daemon goes; nothing else is touched.
//! Packets that wait for a machine are taken behind the firewall, from the table `security`: what the firewall drops no machine sees, and
//! none sends again. While nobody reads a queue its packets pass (`--queue-bypass`); while nobody listens connections pass (nftables'
//! `tproxy` goes on to the next rule then, that of iptables drops).

mod apply;
mod chain;
mod destinations;
mod family;
mod held;
mod journal;
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
pub(crate) use family::{Family, Ipv6};
pub(crate) use program::Program;
pub use program::RuleError;
pub use tracking::{Tracking, Watch, translates};
pub(crate) use tun::{Claim, Tun};
pub use tun::{Leave, Owner};

use crate::config::{Capture, Config, Subnet};
use chain::{Chain, Place};
use hopline_net::announce::Role;
use std::fmt;
use steps::Step;

/// The rules of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whose they are.
    owner: String,
    /// Of the machine on which they are made.
    ipv6: Ipv6,
    /// Of the same machine.
    tracking: Tracking,
    capture: Capture,
    queued: Vec<Queued>,
    offered: Vec<Offered>,
    announced: Vec<Announced>,
    captured: Vec<Captured>,
    shaped: Vec<Shaped>,
    /// Names of the TUN interfaces of its tunnels.
    tuns: Vec<String>,
}

/// Packets that wait in a queue for what a machine says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) queue: u16,
    /// The interface that leads to the mobile hosts.
    pub(crate) interface: String,
    /// Versions of IP that the middlebox reads.
    pub(crate) versions: Versions,
    /// The mobile hosts; empty: all.
    pub(crate) subnets: Vec<Subnet>,
    /// The ports of fixed hosts; empty: all.
    pub(crate) ports: Vec<u16>,
    pub(crate) hooks: Hooks,
    /// Mark of packets that the middlebox sends by itself.
    pub(crate) mark: u32,
}

/// Versions of IP that a middlebox reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// IPv4 alone.
    V4,
    /// IPv4 and IPv6.
    Both,
}

/// Hooks at which packets are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// On a router: packets that are forwarded.
    Forward,
    /// At the end of a link: packets that begin or end here, apart from those that are sent again.
    Local,
}

/// An interface all of whose packets wait in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) queue: u16,
    pub(crate) interface: String,
}

/// An interface whose handshakes of TCP wait in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) queue: u16,
    pub(crate) interface: String,
    /// Of who calls, this host's own wait; of who is called, also those of hosts behind it.
    pub(crate) role: Role,
}

/// An interface that sends no faster than this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shaped {
    pub(crate) interface: String,
    pub(crate) rate_bps: u64,
}

/// Connections that end at a listener of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Where it listens, for both versions of IP.
    pub(crate) port: u16,
    pub(crate) calls: Calls,
    /// The ports that are called; empty: all.
    pub(crate) ports: Vec<u16>,
    /// The queue in which their SYNs wait behind the firewall.
    pub(crate) queue: u16,
}

/// Whose calls are meant. No subnets: whosever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Those that come by an interface.
    By { interface: String, sources: Vec<Subnet>, destinations: Vec<Subnet> },
    /// Those that would leave by it.
    Towards { interface: String, destinations: Vec<Subnet> },
}

impl Calls {
    /// Subnets of one of which a call comes, or to which it goes.
    pub(crate) fn subnets(&self) -> impl Iterator<Item = &Subnet> {
        let (sources, destinations) = match self {
            Self::By { sources, destinations, .. } => (sources.as_slice(), destinations),
            Self::Towards { destinations, .. } => (&[][..], destinations),
        };
        sources.iter().chain(destinations)
    }
}

impl Queued {
    /// Returns whether forwarded packets are queued.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.hooks == Hooks::Forward
    }

    /// Returns whether it is for packets of a version of IP: subnets of the other version alone mean none of this one.
    pub(crate) fn sees(&self, family: Family) -> bool {
        let is_read = self.versions == Versions::Both || family == Family::V4;
        is_read && (self.subnets.is_empty() || self.subnets.iter().any(|subnet| family.has(subnet)))
    }
}

impl Rules {
    /// Returns the rules that the proxies of `config` need on this machine, with those for connection tracking where that is in use.
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
            steps.extend(Step::captured(&self.owner, of_chains, self.capture, &self.captured));
            let rules = held::rules(&self.captured);
            let chain = |&family: &Family| Step::chain(Chain::of_calls(&self.owner, family), &rules);
            steps.extend(of_chains.iter().map(chain));
        }
        steps.extend(self.shaped.iter().map(Step::shaped));
        steps
    }

    /// Returns those steps that can be made now: the queue of an interface that is not there comes with the interface.
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

    /// Returns whether there are other rules where connections are tracked.
    pub(crate) fn mind_tracking(&self) -> bool {
        !self.forwarded().is_empty() || !self.captured.is_empty()
    }

    fn forwarded(&self) -> Vec<&Queued> {
        self.queued.iter().filter(|queued| queued.is_forwarded()).collect()
    }

    /// Those of machines in the path.
    fn rules_at(&self, family: Family, place: Place) -> Vec<String> {
        let queued = self.queued.iter().flat_map(|queued| chain::rules_of(queued, family, place));
        let announced =
            self.announced.iter().flat_map(|announced| chain::rules_for_handshakes(announced, place));
        queued.chain(announced).collect()
    }
}

/// As one would type them.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps().iter().flat_map(|step| &step.make).try_for_each(|program| writeln!(f, "{program}"))
    }
}

/// Returns the entries of a journal that undoing takes, one word list each; for a fuzz target.
#[doc(hidden)]
#[must_use]
pub fn listed(journal: &[u8]) -> Vec<String> {
    journal::listed(journal)
        .iter()
        .map(|made| serde_json::to_string(made).expect("words and numbers"))
        .collect()
}

/// A journal to which the last of what it lists is added again, if it lists anything.
#[doc(hidden)]
#[must_use]
pub fn with_one_more(journal: &[u8]) -> Option<Vec<u8>> {
    let made = journal::listed(journal).pop()?;
    Some([journal, journal::added(&made, journal.last().copied()).as_bytes()].concat())
}

#[cfg(test)]
mod tests;
