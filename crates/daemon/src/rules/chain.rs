//! Chains of iptables that lead packets to queues.

use super::diverted::{FullyQueuedInterface, HandshakeQueue, Hooks, Queued};
use super::family::Family;
use super::names::is_owner_name;
use super::program::{Program, RuleError};
use crate::subnet::Subnet;
use hopline_middlebox::announce::Role;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Chain of the daemon, and the place of the jump to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chain {
    family: Family,
    table: String,
    name: String,
    hook: String,
}

/// Most ports of one rule (xt_multiport).
const PORTS: usize = 15;

/// Hook of a middlebox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// Forwarded packets.
    Forward,
    /// Packets for this host.
    Input,
    /// Packets of this host.
    Output,
}

/// Treatment of the jump to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpState {
    /// The jump is added.
    Add,
    /// The jump exists.
    Keep,
}

impl Chain {
    /// Returns the chain of middleboxes: after the firewall, and with both interfaces known.
    pub(super) fn for_middleboxes(owner: &str, family: Family, place: Hook) -> Self {
        let (hook, suffix) = match place {
            Hook::Forward => ("FORWARD", ""),
            Hook::Input => ("INPUT", ".in"),
            Hook::Output => ("OUTPUT", ".out"),
        };
        Self::new(family, "security", hook, format!("HOPLINE-{owner}{suffix}"))
    }

    /// Returns the chain of incoming packets of interfaces, before routing.
    pub(super) fn for_incoming(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "PREROUTING", format!("HOPLINE-{owner}.in"))
    }

    /// Returns the chain of outgoing packets of interfaces, the last of all.
    pub(super) fn for_outgoing(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "POSTROUTING", format!("HOPLINE-{owner}.out"))
    }

    /// Returns the chain that leads SYNs of diverted connections to their queue, after the firewall.
    pub(super) fn for_connections(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "POSTROUTING", format!("HOPLINE-{owner}.calls"))
    }

    fn new(family: Family, table: &str, hook: &str, name: String) -> Self {
        Self { family, table: table.into(), name, hook: hook.into() }
    }

    /// Returns whether it is one of the chains above, of any daemon.
    pub(super) fn belongs_to_a_daemon(&self) -> bool {
        let is_place = match self.table.as_str() {
            "security" => ["FORWARD", "INPUT", "OUTPUT"].contains(&self.hook.as_str()),
            "mangle" => ["PREROUTING", "POSTROUTING"].contains(&self.hook.as_str()),
            _ => false,
        };
        is_place && self.name.strip_prefix("HOPLINE-").is_some_and(is_owner_name)
    }

    /// Returns the name of the chain.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the input of iptables-restore, which applies all or nothing. An existing chain is emptied first.
    pub(super) fn text(&self, rules: &[String], jump: JumpState) -> String {
        let Self { table, name, hook, .. } = self;
        let mut text = format!("*{table}\n:{name} - [0:0]\n");
        for rule in rules {
            let _ = writeln!(text, "-A {name} {rule}");
        }
        if jump == JumpState::Add {
            let _ = writeln!(text, "-A {hook} -j {name}");
        }
        text.push_str("COMMIT\n");
        text
    }

    /// Returns the program that reads this input.
    pub(super) fn restore(&self, text: String) -> Program {
        Program::new(self.family.restore(), "--noflush --wait").with_input(text)
    }

    /// Returns the listing of its table by iptables.
    pub(super) fn list(&self) -> Result<String, RuleError> {
        Program::new(self.family.iptables(), &format!("--wait --table {} --list-rules", self.table)).run()
    }

    /// Returns whether a listing contains it.
    pub(super) fn is_in(&self, listing: &str) -> bool {
        listing.lines().any(|line| line == format!("-N {}", self.name))
    }

    /// Returns whether a listing contains it and the jump to it.
    pub(super) fn is_reached_in(&self, listing: &str) -> bool {
        let jump = format!("-A {} -j {}", self.hook, self.name);
        self.is_in(listing) && listing.lines().any(|line| line == jump)
    }

    /// Returns the input of iptables-restore that removes it, and every jump to it.
    pub(super) fn removal(&self, listing: &str) -> String {
        let Self { table, name, .. } = self;
        let jump = format!("-j {name}");
        let jumps = listing.lines().filter(|line| line.starts_with("-A ") && line.ends_with(&jump));
        let mut text = format!("*{table}\n");
        for line in jumps {
            let _ = writeln!(text, "{}", line.replacen("-A", "-D", 1));
        }
        let _ = writeln!(text, "-F {name}\n-X {name}\nCOMMIT");
        text
    }
}

/// Returns the rules for packets of an IP version that a middlebox receives at a hook. They match TCP alone, so that IPv6
/// neighbour discovery never waits in a queue.
pub(super) fn rules_of(queued: &Queued, family: Family, place: Hook) -> Vec<String> {
    if !queued.applies_to(family) {
        return Vec::new();
    }
    let Queued { queue, interface, .. } = queued;
    let subnets: Vec<&Subnet> = queued.subnets.iter().filter(|subnet| family.has(subnet)).collect();
    let hosts = |option: &str| texts_or_empty(&subnets, |subnet| format!(" {option} {}", subnet.0));
    let chunks: Vec<&[u16]> = queued.ports.chunks(PORTS).collect();
    let ports = |option: &str| {
        texts_or_empty(&chunks, |ports| format!(" -m multiport {option} {}", port_list(ports)))
    };
    let (directions, exclusion) = direction_options(queued, place);
    let mut rules = Vec::new();
    for [way, host, port] in directions {
        for host in hosts(host) {
            let rule =
                |port| format!("{way} {interface}{host} -p tcp{port}{exclusion} {}", queue_target(*queue));
            rules.extend(ports(port).into_iter().map(rule));
        }
    }
    rules
}

/// Returns for each direction at a hook the options of iptables for the interface, the mobile host and the other host's
/// port, and a match that excludes injected packets by their mark.
fn direction_options(queued: &Queued, place: Hook) -> (Vec<[&'static str; 3]>, String) {
    const OUT: [&str; 3] = ["-o", "-d", "--sports"];
    const IN: [&str; 3] = ["-i", "-s", "--dports"];
    match (queued.hooks, place) {
        (Hooks::Forward, Hook::Forward) => (vec![OUT, IN], String::new()),
        (Hooks::Local, Hook::Input) => (vec![IN], String::new()),
        (Hooks::Local, Hook::Output) => (vec![OUT], format!(" -m mark ! --mark {:#x}", queued.mark)),
        _ => (Vec::new(), String::new()),
    }
}

/// Returns the rules for TCP handshakes that cross an interface at a hook.
pub(super) fn rules_for_handshakes(handshakes: &HandshakeQueue, place: Hook) -> Vec<String> {
    let HandshakeQueue { queue, interface, role } = handshakes;
    let ways: &[&str] = match (place, role) {
        (Hook::Output, _) => &["-o"],
        (Hook::Input, _) => &["-i"],
        (Hook::Forward, Role::Server) => &["-o", "-i"],
        (Hook::Forward, Role::Client) => &[],
    };
    let rule = |way| format!("{way} {interface} -p tcp --tcp-flags SYN SYN {}", queue_target(*queue));
    ways.iter().map(rule).collect()
}

/// Returns the rules for incoming and for outgoing packets of an interface.
pub(super) fn rules_for_all(whole: &FullyQueuedInterface) -> [String; 2] {
    let FullyQueuedInterface { interface, queue } = whole;
    ["-i", "-o"].map(|way| format!("{way} {interface} {}", queue_target(*queue)))
}

pub(super) fn queue_target(queue: u16) -> String {
    format!("-j NFQUEUE --queue-num {queue} --queue-bypass")
}

/// Returns the text of each element, or one empty text if there is none.
fn texts_or_empty<T>(these: &[T], say: impl Fn(&T) -> String) -> Vec<String> {
    if these.is_empty() { vec![String::new()] } else { these.iter().map(say).collect() }
}

fn port_list(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}
