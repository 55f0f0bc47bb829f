//! Connection tracking of this network namespace: detection of its use and its beginning.
//!
//! A rule with a conntrack expression enables tracking for every packet of the namespace. So the rules that need it
//! ([`translated`](super::translated), [`zones`](super::zones)) are made only if another program has enabled it. Signs are
//! rules in listings, or tracked connections, for whatever reason.
//!
//! Tracking that has begun is never considered ended: connections outlive the rules that track them, and those of the daemon
//! track too.

use super::program::Program;
use hopline_linux::ruleset::Ruleset;
use std::fs;
use std::path::Path;

/// Use of connection tracking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// No program tracks connections.
    Absent,
    /// Another program has enabled connection tracking.
    InUse,
}

/// Number of tracked connections in the namespace of the reader, and the folder of the module.
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const MODULE: &str = "/sys/module/nf_conntrack";

/// Programs that list rules. Some may be missing, and the kernel has two kinds of iptables tables.
const LISTINGS: [[&str; 2]; 5] = [
    ["nft", "--stateless list ruleset"],
    ["iptables-save", ""],
    ["ip6tables-save", ""],
    ["iptables-legacy-save", ""],
    ["ip6tables-legacy-save", ""],
];

/// Words of rules that enable connection tracking: of nft(8), and of iptables-extensions(8) after `-m` and `-j`.
const WORDS: [&str; 6] = ["ct", "masquerade", "snat", "dnat", "redirect", "synproxy"];
const MATCHES: [&str; 7] =
    ["conntrack", "state", "connmark", "connbytes", "connlimit", "connlabel", "helper"];
const TARGETS: [&str; 9] = [
    "MASQUERADE",
    "SNAT",
    "DNAT",
    "REDIRECT",
    "NETMAP",
    "CONNMARK",
    "CONNSECMARK",
    "SYNPROXY",
    "FLOWOFFLOAD",
];

impl Tracking {
    /// Inspects this machine.
    #[must_use]
    pub fn detect() -> Self {
        TrackingMonitor::start().tracking
    }
}

/// Detection of the beginning of connection tracking. A check reads a file and queries the kernel; rules are listed only if
/// they have changed.
#[derive(Debug)]
pub struct TrackingMonitor {
    tracking: Tracking,
    ruleset: Option<Ruleset>,
    /// Value at the last check; `None` if the kernel does not report it.
    count: Option<u64>,
    generation: Option<u32>,
}

impl TrackingMonitor {
    /// Inspects this machine for the first time.
    pub(super) fn start() -> Self {
        let mut ruleset = Ruleset::open().ok();
        // Read before the rules are listed: the next check detects a change in between.
        let (count, generation) = (count(), generation(ruleset.as_mut()));
        let is_hidden = count.is_none() && Path::new(MODULE).exists();
        let tracking = match tracking_of_listed_rules() {
            _ if is_hidden => Tracking::InUse,
            Some(tracking) => tracking,
            // No program lists rules: tracked connections are the indication, though they may outlive the rules.
            None if count.unwrap_or(0) > 0 => Tracking::InUse,
            None => Tracking::Absent,
        };
        Self { tracking, ruleset, count, generation }
    }

    /// Returns the result of the last check.
    #[must_use]
    pub fn tracking(&self) -> Tracking {
        self.tracking
    }

    /// Checks again, until tracking is in use.
    pub(crate) fn check(&mut self) -> Tracking {
        if self.tracking == Tracking::InUse {
            return self.tracking;
        }
        let (count, generation) = (count(), generation(self.ruleset.as_mut()));
        let is_more = count > self.count;
        let is_changed = generation != self.generation;
        (self.count, self.generation) = (count, generation);
        if is_more || (is_changed && tracking_of_listed_rules() == Some(Tracking::InUse)) {
            self.tracking = Tracking::InUse;
        }
        self.tracking
    }
}

/// Words of rules for NAT.
const TRANSLATING: [&str; 4] = ["masquerade", "snat", "dnat", "redirect"];
const TRANSLATING_TARGETS: [&str; 5] = ["MASQUERADE", "SNAT", "DNAT", "REDIRECT", "NETMAP"];

/// Returns whether rules of this machine translate addresses; `None` if no program lists rules.
#[must_use]
pub fn translates() -> Option<bool> {
    let listings: Vec<String> =
        LISTINGS.iter().filter_map(|[name, words]| Program::new(name, words).run().ok()).collect();
    let has = |text: &String| translates_in(text);
    (!listings.is_empty()).then(|| listings.iter().any(has))
}

/// Returns whether a listing has a NAT rule, in another table of nft than those of daemons.
fn translates_in(listing: &str) -> bool {
    let mut is_ours = false;
    let foreign = listing.lines().filter(|line| {
        if line.starts_with("table ") {
            is_ours = line.starts_with("table inet hopline-");
        }
        !is_ours
    });
    has_rule_with(&foreign.collect::<Vec<_>>().join("\n"), &TRANSLATING, &[], &TRANSLATING_TARGETS)
}

fn count() -> Option<u64> {
    fs::read_to_string(COUNT).ok()?.trim().parse().ok()
}

fn generation(ruleset: Option<&mut Ruleset>) -> Option<u32> {
    ruleset?.generation().ok()
}

/// Returns the use of tracking by the listed rules; `None` if no program lists them.
fn tracking_of_listed_rules() -> Option<Tracking> {
    let listings = LISTINGS.iter().filter_map(|[name, words]| Program::new(name, words).run().ok());
    let tracking = |text: String| if enables_tracking(&text) { Tracking::InUse } else { Tracking::Absent };
    listings.map(tracking).reduce(|one, other| if one == Tracking::InUse { one } else { other })
}

/// Returns whether a listing of nft or iptables-save has a rule that enables connection tracking.
fn enables_tracking(listing: &str) -> bool {
    has_rule_with(listing, &WORDS, &MATCHES, &TARGETS)
}

/// Returns whether a listing has a rule with one of these words of nft, or of these matches or targets of iptables.
fn has_rule_with(listing: &str, of_nft: &[&str], matches: &[&str], targets: &[&str]) -> bool {
    listing.lines().any(|line| {
        // Comments and names of interfaces are in quotation marks.
        let bare: String = line.split('"').step_by(2).collect();
        let words: Vec<&str> = bare.split_whitespace().collect();
        match words.as_slice() {
            [] => false,
            [first, ..] if first.starts_with(['#', '*', ':']) => false,
            ["-A", ..] => words.windows(2).any(|pair| {
                (pair[0] == "-m" && matches.contains(&pair[1]))
                    || (pair[0] == "-j" && targets.contains(&pair[1]))
            }),
            // Named objects are not rules yet.
            ["table" | "chain" | "set" | "map" | "ct", .., "{"] => false,
            words => words.iter().enumerate().any(|(at, word)| of_nft.contains(word) && !is_name(words, at)),
        }
    })
}

/// Returns whether a word is the name of a chain that a rule calls.
fn is_name(words: &[&str], at: usize) -> bool {
    at > 0 && ["jump", "goto"].contains(&words[at - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_enable_tracking_are_recognised_in_each_syntax() {
        for rule in [
            "ct state established,related accept",
            "oifname \"eth0\" counter packets 0 bytes 0 masquerade",
            "meta l4proto tcp redirect to :80",
            "ip daddr 192.0.2.1 dnat ip to 10.0.0.1",
            "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "-A FORWARD -m state --state NEW -j ACCEPT",
            "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE",
            "-A PREROUTING -j NETMAP --to 10.0.0.0/24",
        ] {
            assert!(
                enables_tracking(&format!("table ip nat {{\n\tchain a {{\n\t\t{rule}\n\t}}\n}}\n")),
                "{rule}"
            );
        }
    }

    #[test]
    fn names_comments_and_stateless_rules_do_not_enable_tracking() {
        for rule in [
            "chain snat {",
            "set ct {",
            "ct helper sip5060 {",
            "type nat hook postrouting priority srcnat; policy accept;",
            "jump masquerade",
            "notrack",
            "accept comment \"ct state new\"",
            "iifname \"ct\" accept",
            "*nat",
            ":POSTROUTING ACCEPT [0:0]",
            "-A FORWARD -m comment --comment \"-j MASQUERADE\" -j ACCEPT",
            "-A PREROUTING -j CT --notrack",
            "-A FORWARD -j HOPLINE-x",
        ] {
            assert!(!enables_tracking(&format!("{rule}\n")), "{rule}");
        }
    }

    #[test]
    fn nat_rules_are_distinguished_from_tracking_rules() {
        let translates = translates_in;
        for rule in [
            "oifname \"eth0\" masquerade",
            "ip daddr 192.0.2.1 dnat ip to 10.0.0.1",
            "-A POSTROUTING -j SNAT --to 192.0.2.1",
        ] {
            assert!(translates(rule), "{rule}");
        }
        for rule in [
            "ct state new accept",
            "chain snat {",
            "-A FORWARD -m state --state NEW -j ACCEPT",
            "type nat hook postrouting priority srcnat;",
            "table inet hopline-x.nat {\n\tchain zones {\n\t\tct original zone 7 snat to :1024-9999",
        ] {
            assert!(!translates(rule), "{rule}");
        }
    }

    fn watch() -> TrackingMonitor {
        TrackingMonitor { tracking: Tracking::Absent, ruleset: None, count: count(), generation: None }
    }

    #[test]
    fn tracking_in_use_stays_in_use() {
        let mut watch = TrackingMonitor { tracking: Tracking::InUse, count: Some(u64::MAX), ..watch() };
        assert_eq!((watch.check(), watch.tracking()), (Tracking::InUse, Tracking::InUse));
    }

    #[test]
    fn connections_left_from_earlier_tracking_are_not_tracking_in_use() {
        let mut watch = TrackingMonitor { count: Some(u64::MAX), ..watch() };
        assert_eq!((watch.check(), watch.count), (Tracking::Absent, count()));
    }
}
