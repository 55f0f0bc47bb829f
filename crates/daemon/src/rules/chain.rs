//! Chains of iptables that lead packets to queues.

use super::family::Family;
use super::program::{Program, RuleError};
use super::steps::is_of_owner;
use super::{Announced, Hooks, Offered, Queued};
use crate::config::Subnet;
use hopline_net::announce::Role;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A chain of ours, and where the jump to it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chain {
    family: Family,
    table: String,
    name: String,
    hook: String,
}

/// Most ports of one rule (xt_multiport).
const PORTS: usize = 15;

/// Where machines see packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Those that are passed on.
    Forward,
    /// Those that end here.
    Input,
    /// Those that begin here.
    Output,
}

/// What becomes of the jump to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// It is added.
    Made,
    /// It is there.
    Left,
}

impl Chain {
    /// That of machines in the path: behind the firewall, and yet with both interfaces known.
    pub(super) fn of_machines(owner: &str, family: Family, place: Place) -> Self {
        let (hook, suffix) = match place {
            Place::Forward => ("FORWARD", ""),
            Place::Input => ("INPUT", ".in"),
            Place::Output => ("OUTPUT", ".out"),
        };
        Self::new(family, "security", hook, format!("HOPLINE-{owner}{suffix}"))
    }

    /// That of what comes by interfaces, before it is routed.
    pub(super) fn of_what_comes(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "PREROUTING", format!("HOPLINE-{owner}.in"))
    }

    /// That of what leaves by interfaces, last of all.
    pub(super) fn of_what_leaves(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "POSTROUTING", format!("HOPLINE-{owner}.out"))
    }

    /// That of calls behind the firewall.
    pub(super) fn of_calls(owner: &str, family: Family) -> Self {
        Self::new(family, "mangle", "POSTROUTING", format!("HOPLINE-{owner}.calls"))
    }

    fn new(family: Family, table: &str, hook: &str, name: String) -> Self {
        Self { family, table: table.into(), name, hook: hook.into() }
    }

    /// Returns whether it is one of those above, of any daemon.
    pub(super) fn is_of_a_daemon(&self) -> bool {
        let is_place = match self.table.as_str() {
            "security" => ["FORWARD", "INPUT", "OUTPUT"].contains(&self.hook.as_str()),
            "mangle" => ["PREROUTING", "POSTROUTING"].contains(&self.hook.as_str()),
            _ => false,
        };
        is_place && self.name.strip_prefix("HOPLINE-").is_some_and(is_of_owner)
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What iptables-restore reads: it does all or nothing. A chain that is there is emptied first.
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

    /// The program that reads it.
    pub(super) fn restore(&self, text: String) -> Program {
        Program::new(self.family.restore(), "--noflush --wait").reading(text)
    }

    /// What iptables lists of its table.
    pub(super) fn list(&self) -> Result<String, RuleError> {
        Program::new(self.family.iptables(), &format!("--wait --table {} --list-rules", self.table)).run()
    }

    /// Whether a listing has it.
    pub(super) fn is_in(&self, listing: &str) -> bool {
        listing.lines().any(|line| line == format!("-N {}", self.name))
    }

    /// Returns whether a listing has it and the jump to it.
    pub(super) fn is_reached_in(&self, listing: &str) -> bool {
        let jump = format!("-A {} -j {}", self.hook, self.name);
        self.is_in(listing) && listing.lines().any(|line| line == jump)
    }

    /// What iptables-restore reads to remove it, and every jump to it that there is.
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

/// The rules for packets of a version of IP that a middlebox sees at a place: those of TCP, and never ICMPv6 with its neighbour discovery.
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

/// How directions are named at a place, those of interfaces, of mobile hosts and of the ports of others; and what is left out.
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

/// The rules for handshakes of TCP that cross an interface at a place.
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

/// The rules for packets that come by an interface, and for those that leave.
pub(super) fn rules_for_all(offered: &Offered) -> [String; 2] {
    let Offered { interface, queue } = offered;
    ["-i", "-o"].map(|way| format!("{way} {interface} {}", to_queue(*queue)))
}

pub(super) fn to_queue(queue: u16) -> String {
    format!("-j NFQUEUE --queue-num {queue} --queue-bypass")
}

/// What is said of each, or nothing, once.
fn either<T>(these: &[T], say: impl Fn(&T) -> String) -> Vec<String> {
    if these.is_empty() { vec![String::new()] } else { these.iter().map(say).collect() }
}

fn list_of(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}
