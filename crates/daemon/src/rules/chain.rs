//! Chains of iptables that lead packets to queues.

use super::diverted::{Announced, Hooks, Offered, Queued};
use super::family::Family;
use super::names::is_of_owner;
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
pub(super) enum Place {
    /// Forwarded packets.
    Forward,
    /// Packets for this host.
    Input,
    /// Packets of this host.
    Output,
}

/// Treatment of the jump to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// The jump is added.
    Made,
    /// The jump exists.
    Left,
}

impl Chain {
    /// Returns the chain of middleboxes: after the firewall, and with both interfaces known.
    pub(super) fn of_machines(owner: &str, family: Family, place: Place) -> Self {
        let (hook, suffix) = match place {
            Place::Forward => ("FORWARD", ""),
            Place::Input => ("INPUT", ".in"),
            Place::Output => ("OUTPUT", ".out"),
        };
        Self::new(family, "security", hook, format!("HOPLINE-{owner}{suffix}"))
    }

    /// Returns the chain of incoming packets of interfaces, before routing.
    pub(super) fn of_what_comes(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "PREROUTING", format!("HOPLINE-{owner}.in"))
    }

    /// Returns the chain of outgoing packets of interfaces, the last of all.
    pub(super) fn of_what_leaves(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "POSTROUTING", format!("HOPLINE-{owner}.out"))
    }

    /// Returns the chain of connections after the firewall.
    pub(super) fn of_calls(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "POSTROUTING", format!("HOPLINE-{owner}.calls"))
    }

    fn new(family: Family, table: &str, hook: &str, name: String) -> Self {
        Self { family, table: table.into(), name, hook: hook.into() }
    }

    /// Returns whether it is one of the chains above, of any daemon.
    pub(super) fn is_of_a_daemon(&self) -> bool {
        let is_place = match self.table.as_str() {
            "security" => ["FORWARD", "INPUT", "OUTPUT"].contains(&self.hook.as_str()),
            "mangle" => ["PREROUTING", "POSTROUTING"].contains(&self.hook.as_str()),
            _ => false,
        };
        is_place && self.name.strip_prefix("HOPLINE-").is_some_and(is_of_owner)
    }

    /// Returns the name of the chain.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the input of iptables-restore, which applies all or nothing. An existing chain is emptied first.
    pub(super) fn text(&self, rules: &[String], jump: Jump) -> String {
        let Self { table, name, hook, .. } = self;
        let mut text = format!("*{table}\n:{name} - [0:0]\n");
        for rule in rules {
            let _ = writeln!(text, "-A {name} {rule}");
        }
        if jump == Jump::Made {
            let _ = writeln!(text, "-A {hook} -j {name}");
        }
        text.push_str("COMMIT\n");
        text
    }

    /// Returns the program that reads this input.
    pub(super) fn restore(&self, text: String) -> Program {
        Program::new(self.family.restore(), "--noflush --wait").reading(text)
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
    pub(super) fn unmaking(&self, listing: &str) -> String {
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

/// Returns the rules for packets of an IP version that a middlebox receives at a hook: TCP, and never ICMPv6 with its
/// neighbour discovery.
pub(super) fn rules_of(queued: &Queued, family: Family, place: Place) -> Vec<String> {
    if !queued.sees(family) {
        return Vec::new();
    }
    let Queued { queue, interface, .. } = queued;
    let subnets: Vec<&Subnet> = queued.subnets.iter().filter(|subnet| family.has(subnet)).collect();
    let hosts = |option: &str| either(&subnets, |subnet| format!(" {option} {}", subnet.0));
    let chunks: Vec<&[u16]> = queued.ports.chunks(PORTS).collect();
    let ports = |option: &str| either(&chunks, |ports| format!(" -m multiport {option} {}", list_of(ports)));
    let (ways, but) = ways(queued, place);
    let mut rules = Vec::new();
    for [way, host, port] in ways {
        for host in hosts(host) {
            let rule = |port| format!("{way} {interface}{host} -p tcp{port}{but} {}", to_queue(*queue));
            rules.extend(ports(port).into_iter().map(rule));
        }
    }
    rules
}

/// Returns the options of directions at a hook, for interfaces, mobile hosts and ports of other hosts, and a match of
/// excluded packets.
fn ways(queued: &Queued, place: Place) -> (Vec<[&'static str; 3]>, String) {
    const OUT: [&str; 3] = ["-o", "-d", "--sports"];
    const IN: [&str; 3] = ["-i", "-s", "--dports"];
    match (queued.hooks, place) {
        (Hooks::Forward, Place::Forward) => (vec![OUT, IN], String::new()),
        (Hooks::Local, Place::Input) => (vec![IN], String::new()),
        (Hooks::Local, Place::Output) => (vec![OUT], format!(" -m mark ! --mark {:#x}", queued.mark)),
        _ => (Vec::new(), String::new()),
    }
}

/// Returns the rules for TCP handshakes that cross an interface at a hook.
pub(super) fn rules_for_handshakes(announced: &Announced, place: Place) -> Vec<String> {
    let Announced { queue, interface, role } = announced;
    let ways: &[&str] = match (place, role) {
        (Place::Output, _) => &["-o"],
        (Place::Input, _) => &["-i"],
        (Place::Forward, Role::Called) => &["-o", "-i"],
        (Place::Forward, Role::Caller) => &[],
    };
    let rule = |way| format!("{way} {interface} -p tcp --tcp-flags SYN SYN {}", to_queue(*queue));
    ways.iter().map(rule).collect()
}

/// Returns the rules for incoming and for outgoing packets of an interface.
pub(super) fn rules_for_all(offered: &Offered) -> [String; 2] {
    let Offered { interface, queue } = offered;
    ["-i", "-o"].map(|way| format!("{way} {interface} {}", to_queue(*queue)))
}

pub(super) fn to_queue(queue: u16) -> String {
    format!("-j NFQUEUE --queue-num {queue} --queue-bypass")
}

/// Returns the text of each element, or one empty text if there is none.
fn either<T>(these: &[T], say: impl Fn(&T) -> String) -> Vec<String> {
    if these.is_empty() { vec![String::new()] } else { these.iter().map(say).collect() }
}

fn list_of(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}
