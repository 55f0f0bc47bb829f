//! What this machine must be told so that packets come to the proxies: rules of iptables and nftables, and routes.
//!
//! What a daemon makes bears its name, is written down before it is made, and goes when the daemon goes; nothing else is touched.
//! Packets that wait for a machine are taken behind the firewall, from the table `security`: what the firewall drops no machine sees, and
//! none sends again. While nobody reads a queue its packets pass (`--queue-bypass`); while nobody listens connections pass (nftables'
//! `tproxy` goes on to the next rule then, that of iptables drops).

mod apply;
mod chain;
mod journal;
mod program;
mod steps;
mod table;

pub use apply::{Undone, change, set_up, undo};
pub use program::RuleError;

use crate::config::{Capture, Config, Subnet};
use std::fmt;
use steps::Step;

/// The rules of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whose they are.
    owner: String,
    capture: Capture,
    queued: Vec<Queued>,
    captured: Vec<Captured>,
}

/// Packets that wait in a queue for what a machine says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) queue: u16,
    /// The interface that leads to the mobile hosts.
    pub(crate) interface: String,
    /// The mobile hosts; empty: all.
    pub(crate) subnets: Vec<Subnet>,
    /// The ports of fixed hosts; empty: all.
    pub(crate) ports: Vec<u16>,
}

/// Connections that end at a listener of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// Where it listens, for both versions of IP.
    pub(crate) port: u16,
    pub(crate) calls: Calls,
    /// The ports that are called; empty: all.
    pub(crate) ports: Vec<u16>,
}

/// Whose calls are meant. No subnets: whosever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Those that come by an interface.
    By { interface: String, sources: Vec<Subnet>, destinations: Vec<Subnet> },
    /// Those that would leave by it.
    Towards { interface: String, destinations: Vec<Subnet> },
}

impl Rules {
    /// Those that the proxies of `config` need.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let tasks = || config.proxies.iter().map(|proxy| &proxy.task);
        let queued = tasks().filter_map(|task| task.in_path()).map(|path| Queued {
            queue: path.queue,
            interface: path.interface.clone(),
            subnets: path.subnets.clone(),
            ports: path.ports.clone(),
        });
        let captured = tasks().flat_map(|task| task.captured());
        Self {
            owner: config.name.clone(),
            capture: config.capture,
            queued: queued.collect(),
            captured: captured.collect(),
        }
    }

    fn steps(&self) -> Vec<Step> {
        let chain = (!self.queued.is_empty()).then(|| Step::chain(&self.owner, &self.queued));
        let captured =
            (!self.captured.is_empty()).then(|| Step::captured(&self.owner, self.capture, &self.captured));
        chain.into_iter().chain(captured.into_iter().flatten()).collect()
    }
}

/// As one would type them.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps().iter().try_for_each(|step| writeln!(f, "{}", step.make))
    }
}

#[cfg(test)]
mod tests;
