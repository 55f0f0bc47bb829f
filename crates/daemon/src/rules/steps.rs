//! Steps of making rules, and the removal of each.

use super::chain::{Chain, JumpState};
use super::diverted::{
    DiversionMark, DivertedConnections, FullyQueuedInterface, Queued, ShapedInterface, UnforwardedPackets,
};
use super::family::Family;
use super::names::{is_owner_name, is_plain};
use super::program::{Program, RuleError};
use super::shaping::{self, Shaper};
use super::tun::Tun;
use super::{chain, destinations, retransmissions, table, zones};
use hopline_linux::route_lookup::Routes;
use serde::{Deserialize, Serialize};

/// Object to be made, with its programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) object: CreatedObject,
    pub(super) create: Vec<Program>,
    /// Programs that update an intact object; empty if it needs no update.
    pub(super) update: Vec<Program>,
}

/// Object that was made, or may have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CreatedObject {
    /// Chain of iptables, and the jump to it.
    Chain(Chain),
    /// Table of nftables with this name.
    Table(String),
    /// Queueing discipline of an interface.
    Queue(Shaper),
    /// Routing rule, identified by these arguments of ip(8).
    Rule(Family, String),
    /// Route of the table with this number.
    Route(Family, u32),
    /// TUN interface.
    Tun(Tun),
}

/// Preference of the routing rule: after the table of local addresses, and before every rule of the administrator. An
/// earlier rule would forward packets of captured connections.
const PREFERENCE: u32 = 0;
/// Preference in earlier versions of the daemon, which may have left a rule.
const FORMER_PREFERENCE: u32 = 1_000;

impl Step {
    /// Returns the chains that lead all packets of interfaces to queues.
    pub(super) fn for_full_queues(
        owner: &str,
        families: &[Family],
        offered: &[FullyQueuedInterface],
    ) -> Vec<Self> {
        let rules: Vec<[String; 2]> = offered.iter().map(chain::rules_for_all).collect();
        let [coming, leaving] =
            [0, 1].map(|way| rules.iter().map(|both| both[way].clone()).collect::<Vec<_>>());
        let of_family = |&family: &Family| {
            [
                Self::chain(Chain::for_incoming(owner, family), &coming),
                Self::chain(Chain::for_outgoing(owner, family), &leaving),
            ]
        };
        families.iter().flat_map(of_family).collect()
    }

    /// Returns a chain with these rules.
    pub(super) fn chain(chain: Chain, rules: &[String]) -> Self {
        let [make, remake] =
            [JumpState::Add, JumpState::Keep].map(|jump| chain.restore(chain.text(rules, jump)));
        Self { object: CreatedObject::Chain(chain), create: vec![make], update: vec![remake] }
    }

    /// Returns the queueing discipline of an interface with a configured rate.
    pub(super) fn shaped(shaped: &ShapedInterface) -> Self {
        let make = shaping::programs(shaped);
        Self {
            object: CreatedObject::Queue(Shaper::at(&shaped.interface)),
            update: make.clone(),
            create: make,
        }
    }

    /// Returns the table of nftables with all rules that need connection tracking: for packets that middleboxes retransmit
    /// on routers with NAT, and for onward connections.
    pub(super) fn for_tracking(
        owner: &str,
        families: &[Family],
        forwarded: &[&Queued],
        zoned: Option<DiversionMark>,
    ) -> Self {
        let name = format!("hopline-{owner}.nat");
        let of_calls = |capture| zones::chains(capture) + &destinations::chains(families);
        let chains = retransmissions::chains(families, forwarded) + &zoned.map_or_else(String::new, of_calls);
        let text = format!("table inet {name} {{\n{chains}}}\n");
        Self::table(name, text)
    }

    /// Returns a table of nftables with this text.
    fn table(name: String, text: String) -> Self {
        let nft = Program::new("nft", "--file -");
        let remake = vec![nft.clone().with_input(format!("delete table inet {name}\n{text}"))];
        Self { object: CreatedObject::Table(name), create: vec![nft.with_input(text)], update: remake }
    }

    /// Returns the table of nftables that leads connections to listeners, and the routes for it.
    pub(super) fn for_diverted(
        owner: &str,
        families: &[Family],
        capture: DiversionMark,
        (captured, guarded): (&[DivertedConnections], &[UnforwardedPackets]),
    ) -> Vec<Self> {
        let name = table::name(owner);
        let text = table::text(&name, families, capture, (captured, guarded));
        let mut steps = Vec::new();
        for &family in families {
            let mark = u32::from(capture.mark) << 16;
            let rule = format!("fwmark {mark:#x}/0xffff0000 lookup {} pref {PREFERENCE}", capture.table);
            let make = vec![ip(family, "route add", &route(capture.table))];
            steps.push(Self {
                object: CreatedObject::Route(family, capture.table),
                create: make,
                update: Vec::new(),
            });
            let make = vec![ip(family, "rule add", &rule)];
            steps.push(Self { object: CreatedObject::Rule(family, rule), create: make, update: Vec::new() });
        }
        steps.push(Self::table(name, text));
        steps
    }
}

impl CreatedObject {
    /// Returns the object of another program in its place, if there is one.
    pub(super) fn other_object(&self) -> Option<String> {
        match self {
            Self::Queue(shaper) => shaper
                .other_discipline()
                .map(|kind| format!("{kind} at the interface {}", shaper.interface())),
            _ => None,
        }
    }

    /// Returns whether this machine has the object that it is a part of.
    pub(super) fn has_location(&self) -> bool {
        match self {
            Self::Queue(shaper) => {
                Routes::open().map_or(true, |routes| routes.interface(shaper.interface()).is_some())
            }
            _ => true,
        }
    }

    /// Returns whether its name is one that daemons give. Its words become arguments of programs that change the rules of
    /// the machine.
    pub(super) fn belongs_to_a_daemon(&self) -> bool {
        match self {
            Self::Chain(chain) => chain.belongs_to_a_daemon(),
            Self::Table(name) => name.strip_prefix("hopline-").is_some_and(is_owner_name),
            Self::Queue(shaper) => is_interface(shaper.interface()),
            Self::Rule(_, words) => is_routing_rule(words),
            Self::Route(..) => true,
            Self::Tun(tun) => is_interface(&tun.name),
        }
    }

    /// Returns whether it exists.
    pub(super) fn exists(&self) -> Result<bool, RuleError> {
        match self {
            Self::Chain(chain) => Ok(chain.is_in(&chain.list()?)),
            Self::Table(name) => Ok(Program::new("nft", "list tables")
                .run()?
                .lines()
                .any(|line| line == format!("table inet {name}"))),
            Self::Queue(shaper) => Ok(shaper.exists()),
            Self::Rule(family, rule) => Ok(!ip(*family, "rule show", rule).run()?.trim().is_empty()),
            Self::Route(family, table) => is_routed(*family, *table),
            Self::Tun(tun) => Ok(tun.exists()),
        }
    }

    /// Returns whether it and the jump to it exist. Another program may have removed either, for instance by `nft flush
    /// ruleset`.
    pub(super) fn is_intact(&self) -> Result<bool, RuleError> {
        match self {
            Self::Chain(chain) => Ok(chain.is_reached_in(&chain.list()?)),
            _ => self.exists(),
        }
    }

    /// Removes it.
    pub(super) fn remove(&self) -> Result<(), RuleError> {
        let program = match self {
            Self::Chain(chain) => chain.restore(chain.removal(&chain.list()?)),
            Self::Table(name) => Program::new("nft", &format!("delete table inet {name}")),
            Self::Queue(shaper) => {
                return shaper.removal().iter().try_for_each(|program| program.run().map(drop));
            }
            Self::Tun(tun) => tun.removal(),
            Self::Rule(family, rule) => ip(*family, "rule del", rule),
            Self::Route(family, table) => ip(*family, "route del", &route(*table)),
        };
        program.run().map(drop)
    }

    /// Returns the error that it, or `other` in its place, belongs to another program.
    pub(super) fn conflict(&self, other: Option<String>) -> RuleError {
        let instead = match self {
            Self::Chain(_) | Self::Table(_) => "another name = \"…\"",
            Self::Queue(_) => "no rate_mbps",
            Self::Tun(_) => "another tun = \"…\"",
            Self::Rule(..) | Self::Route(..) => "another mark and route_table",
        };
        RuleError::Conflict { what: other.unwrap_or_else(|| self.name()), instead }
    }

    /// Returns its description for people.
    fn name(&self) -> String {
        match self {
            Self::Chain(chain) => format!("the chain {} of iptables", chain.name()),
            Self::Table(name) => format!("the table {name} of nftables"),
            Self::Queue(shaper) => format!("the queue of {}", shaper.interface()),
            Self::Tun(tun) => format!("the interface {}", tun.name),
            Self::Rule(family, rule) => format!("the routing rule `{} {rule}`", family.option()),
            Self::Route(family, table) => format!("the route `{} {}`", family.option(), route(*table)),
        }
    }
}

/// Returns whether the kernel accepts it as an interface name (dev_valid_name), and programs do not mistake it for an
/// option.
fn is_interface(name: &str) -> bool {
    let is_of_names = |c: char| !c.is_whitespace() && !c.is_control() && !"/:".contains(c);
    (1..=15).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_of_names)
}

/// Returns whether the words are those of [`Step::for_diverted`].
fn is_routing_rule(words: &str) -> bool {
    let is_ours =
        |preference: &str| [PREFERENCE, FORMER_PREFERENCE].iter().any(|ours| ours.to_string() == preference);
    let numbers = words.strip_prefix("fwmark 0x").and_then(|rest| {
        let (rest, _) = rest.rsplit_once(" pref ").filter(|(_, preference)| is_ours(preference))?;
        rest.split_once("/0xffff0000 lookup ")
    });
    numbers.is_some_and(|(mark, table)| {
        u32::from_str_radix(mark, 16).is_ok()
            && is_plain(mark)
            && is_plain(table)
            && table.parse::<u32>().is_ok()
    })
}

/// Returns a local route for all addresses: packets that use this table are for this machine.
fn route(table: u32) -> String {
    format!("local default dev lo table {table}")
}

/// Returns whether a table contains it. Listing needs other arguments than making it (ip-route(8)).
fn is_routed(family: Family, table: u32) -> Result<bool, RuleError> {
    let listed = ip(family, "route show", &format!("table {table} type local exact default dev lo")).run();
    match listed {
        Ok(listed) => Ok(!listed.trim().is_empty()),
        // The kernel has no table of this number yet.
        Err(RuleError::Refused { why, .. }) if why.contains("does not exist") => Ok(false),
        Err(error) => Err(error),
    }
}

fn ip(family: Family, what: &str, words: &str) -> Program {
    Program::new("ip", &format!("{} {what} {words}", family.option()))
}

/// Removes the object if it is there, and returns whether it was.
pub(super) fn unmake(made: &CreatedObject) -> Result<bool, RuleError> {
    let is_there = made.exists()?;
    if is_there {
        made.remove()?;
    }
    Ok(is_there)
}
