//! Policy routing: the rules by which the kernel selects a routing table (ip-rule(8), `RTM_GETRULE` of rtnetlink(7)).
//!
//! Local packets have no incoming interface and no firewall mark, and those of an unbound raw socket have no source
//! address either (`ip_route_output_key`). A rule that matches one of these may select different routes for a forwarded
//! packet and for a local packet in its place.

use crate::error::Error;
use crate::netlink::{attributes, message, messages, ne32};
use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// A routing rule of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Priority; rules are tried in ascending order.
    pub priority: u32,
    /// Routing table that it selects; 0: none, for instance because it jumps to another rule, or rejects packets.
    pub table: u32,
    /// Required firewall mark, if any.
    pub mark: Option<u32>,
    /// `true` if it matches the source address.
    pub matches_source: bool,
    /// Conditions other than the destination, as ip-rule(8) writes them, such as `iif eth0`.
    pub conditions: Vec<String>,
}

/// Attributes of rules (linux/fib_rules.h).
mod fra {
    pub(super) const SRC: u16 = 2;
    pub(super) const IIFNAME: u16 = 3;
    pub(super) const PRIORITY: u16 = 6;
    pub(super) const FWMARK: u16 = 10;
    pub(super) const TABLE: u16 = 15;
    pub(super) const FWMASK: u16 = 16;
    pub(super) const OIFNAME: u16 = 17;
    pub(super) const L3MDEV: u16 = 19;
    pub(super) const UID_RANGE: u16 = 20;
    pub(super) const IP_PROTO: u16 = 22;
    pub(super) const SPORT_RANGE: u16 = 23;
    pub(super) const DPORT_RANGE: u16 = 24;
    pub(super) const DSCP: u16 = 25;
}

/// Bytes of `fib_rule_hdr`.
const RULE: usize = 12;
/// `FIB_RULE_INVERT`: the rule applies to all packets that do not match.
const INVERT: u32 = 2;
/// Maximum bytes of a datagram: the kernel fills the buffer up to this size.
const LONGEST: usize = 32 << 10;

impl Rule {
    /// Returns whether it matches more than the destination.
    #[must_use]
    pub const fn has_other_criteria(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Returns whether a hopline daemon has created it: for diverted connections with this mark, or for the tunnel of a
    /// base station.
    #[must_use]
    pub fn is_from_daemon(&self, capture_mark: u16) -> bool {
        let is_of_capture = self.mark == Some(u32::from(capture_mark) << 16);
        is_of_capture || self.is_from_station()
    }

    /// Returns whether a base station has made it.
    const fn is_from_station(&self) -> bool {
        const STATION: u32 = 1021;
        self.table == STATION && self.priority == STATION
    }

    fn read(body: &[u8]) -> Option<Self> {
        let &[family, _, source_bits, tos, table, _, _, _] = body.first_chunk()?;
        let flags = ne32(body, 8)?;
        let mut rule = Self {
            priority: 0,
            table: table.into(),
            mark: None,
            matches_source: false,
            conditions: Vec::new(),
        };
        let looks_at_source = &mut rule.matches_source;
        let mut says = |condition: String| rule.conditions.push(condition);
        if tos != 0 {
            says(format!("tos {tos:#x}"));
        }
        let (mut mark, mut mask) = (None, None);
        for (kind, value) in attributes(body.get(RULE..)?).map_while(Result::ok) {
            match kind {
                fra::SRC => {
                    *looks_at_source = true;
                    says(format!("from {}/{source_bits}", address(family, value)?));
                }
                fra::IIFNAME => says(format!("iif {}", name(value))),
                fra::OIFNAME => says(format!("oif {}", name(value))),
                fra::PRIORITY => rule.priority = ne32(value, 0)?,
                fra::TABLE => rule.table = ne32(value, 0)?,
                fra::FWMARK => mark = ne32(value, 0),
                fra::FWMASK => mask = ne32(value, 0),
                fra::L3MDEV if value.first() != Some(&0) => says("l3mdev".into()),
                fra::UID_RANGE => says(format!("uidrange {}-{}", ne32(value, 0)?, ne32(value, 4)?)),
                fra::IP_PROTO if value.first() != Some(&0) => says(format!("ipproto {}", value.first()?)),
                fra::SPORT_RANGE => says(format!("sport {}", range(value)?)),
                fra::DPORT_RANGE => says(format!("dport {}", range(value)?)),
                fra::DSCP => says(format!("dscp {}", value.first()?)),
                _ => {}
            }
        }
        // The kernel reports a full mask even without a mark.
        if mark.unwrap_or(0) != 0 || mask.is_some_and(|mask| mask != u32::MAX) {
            let mark = mark.unwrap_or(0);
            rule.mark = Some(mark);
            let mask =
                mask.filter(|mask| *mask != u32::MAX).map_or_else(String::new, |mask| format!("/{mask:#x}"));
            rule.conditions.push(format!("fwmark {mark:#x}{mask}"));
        }
        if flags & INVERT != 0 {
            rule.conditions.insert(0, "not".into());
        }
        Some(rule)
    }
}

/// Prints the rule as ip-rule(8) does.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { priority, table, conditions, .. } = self;
        write!(f, "{priority}: {} lookup {table}", conditions.join(" "))
    }
}

/// Returns the IPv4 and IPv6 rules of this host, in the calling thread's namespace.
///
/// # Errors
/// Errors of the system.
pub fn rules() -> Result<Vec<Rule>, Error> {
    let failed = |e| Error::new("reading the rules of routing", e);
    Rules::open().map_err(failed)?.read().map_err(failed)
}

/// Socket for reading rules.
#[derive(Debug)]
struct Rules(Socket);

impl Rules {
    fn open() -> io::Result<Self> {
        let kind = Type::from(libc::SOCK_RAW).nonblocking();
        let route = Protocol::from(libc::NETLINK_ROUTE);
        Socket::new(Domain::from(libc::AF_NETLINK), kind, Some(route)).map(Self)
    }

    fn read(&mut self) -> io::Result<Vec<Rule>> {
        let mut rules = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut body = [0; RULE];
            body[0] = family as u8;
            self.0.send(&message(libc::RTM_GETRULE, libc::NLM_F_DUMP, &body))?;
            while self.read_some(&mut rules)? == DumpState::Incomplete {}
        }
        Ok(rules)
    }

    fn read_some(&mut self, rules: &mut Vec<Rule>) -> io::Result<DumpState> {
        const DONE: u16 = libc::NLMSG_DONE as u16;
        const ERROR: u16 = libc::NLMSG_ERROR as u16;
        let mut datagram = vec![0; LONGEST];
        let len = self.0.read(&mut datagram)?;
        for message in messages(&datagram[..len]) {
            let message = message.map_err(|_| ErrorKind::InvalidData)?;
            match message.kind {
                libc::RTM_NEWRULE => rules.extend(Rule::read(message.body)),
                DONE => return Ok(DumpState::Complete),
                // A kernel without this IP version has no rules for it.
                ERROR => return Ok(DumpState::Complete),
                _ => {}
            }
        }
        Ok(DumpState::Incomplete)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpState {
    Incomplete,
    Complete,
}

/// Cached rules of this host, read regularly.
#[derive(Debug)]
pub struct Policy {
    rules: Rules,
    own: OwnRules,
    read: Option<Instant>,
    state: Selection,
    matches_sources: bool,
}

/// Rules of hopline's own, which are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnRules {
    /// No rule.
    None,
    /// Rule for packets with this mark.
    Marked(u32),
    /// Rule for packets with this mark, and the rules of a base station.
    MarkedAndOfStation(u32),
}

impl OwnRules {
    fn contains(self, rule: &Rule) -> bool {
        match self {
            Self::None => false,
            Self::Marked(mark) => rule.mark == Some(mark),
            Self::MarkedAndOfStation(mark) => rule.mark == Some(mark) || rule.is_from_station(),
        }
    }
}

/// Kind of route selection on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// By the destination only.
    ByDestination,
    /// By further criteria.
    ByMore,
}

/// Time for which rules, and routes derived from them, are cached.
pub const CACHE_TIME: Duration = Duration::from_secs(1);

impl Policy {
    /// Opens the cache in the calling thread's namespace.
    pub fn open(own: OwnRules) -> Result<Self, Error> {
        let rules = Rules::open().map_err(|e| Error::new("opening a netlink socket of rules", e))?;
        Ok(Self { rules, own, read: None, state: Selection::ByDestination, matches_sources: false })
    }

    /// Returns the current kind of route selection. If the rules cannot be read, returns the previous one.
    pub fn state(&mut self, now: Instant) -> Selection {
        if self.read.is_none_or(|read| now.saturating_duration_since(read) >= CACHE_TIME) {
            self.read = Some(now);
            let own = self.own;
            let counts = |rule: &Rule| rule.has_other_criteria() && !own.contains(rule);
            if let Ok(rules) = self.rules.read() {
                self.state =
                    if rules.iter().any(counts) { Selection::ByMore } else { Selection::ByDestination };
                self.matches_sources = rules.iter().any(|rule| rule.matches_source);
            }
        }
        self.state
    }

    /// Returns whether a rule matched source addresses at the last read.
    pub const fn matches_sources(&self) -> bool {
        self.matches_sources
    }
}

fn name(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

fn range(value: &[u8]) -> Option<String> {
    let &[a, b, c, d] = value.first_chunk()?;
    let [first, last] = [[a, b], [c, d]].map(u16::from_ne_bytes);
    Some(if first == last { first.to_string() } else { format!("{first}-{last}") })
}

fn address(family: u8, value: &[u8]) -> Option<IpAddr> {
    if i32::from(family) == libc::AF_INET {
        Some(Ipv4Addr::from(*value.first_chunk::<4>()?).into())
    } else {
        Some(Ipv6Addr::from(*value.first_chunk::<16>()?).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    fn rule(header: [u8; 8], flags: u32, said: &[(u16, &[u8])]) -> Rule {
        let mut body = Vec::from(header);
        body.extend(flags.to_ne_bytes());
        said.iter().for_each(|(kind, value)| body.extend(attribute(*kind, value)));
        for len in 0..body.len() {
            // No truncated message causes a panic.
            let _ = Rule::read(&body[..len]);
        }
        Rule::read(&body).unwrap()
    }

    const V4: [u8; 8] = [libc::AF_INET as u8, 0, 0, 0, 254, 0, 0, 1];
    const ALL: [u8; 4] = u32::MAX.to_ne_bytes();

    #[test]
    fn the_default_rules_match_the_destination_only() {
        let main =
            rule(V4, 0, &[(fra::TABLE, &254u32.to_ne_bytes()), (fra::PRIORITY, &32_766u32.to_ne_bytes())]);
        assert!(!main.has_other_criteria(), "{main}");
        let to = rule([2, 24, 0, 0, 100, 0, 0, 1], 0, &[(1, &[10, 9, 0, 0]), (fra::FWMASK, &ALL)]);
        assert!(!to.has_other_criteria(), "{to}");
    }

    #[test]
    fn every_other_condition_is_reported_as_configured() {
        let (five, mask) = (5u32.to_ne_bytes(), 0xffu32.to_ne_bytes());
        let ports = [80u16.to_ne_bytes(), 81u16.to_ne_bytes()].concat();
        let users = [0u32.to_ne_bytes(), 9u32.to_ne_bytes()].concat();
        for (said, expected) in [
            (vec![(fra::IIFNAME, &b"eth0\0"[..])], "iif eth0"),
            (vec![(fra::OIFNAME, &b"eth1\0"[..])], "oif eth1"),
            (vec![(fra::FWMARK, &five[..]), (fra::FWMASK, &ALL[..])], "fwmark 0x5"),
            (vec![(fra::FWMARK, &five[..]), (fra::FWMASK, &mask[..])], "fwmark 0x5/0xff"),
            (vec![(fra::L3MDEV, &[1][..])], "l3mdev"),
            (vec![(fra::IP_PROTO, &[6][..]), (fra::DPORT_RANGE, &ports[..])], "ipproto 6 dport 80-81"),
            (vec![(fra::UID_RANGE, &users[..])], "uidrange 0-9"),
        ] {
            let read = rule(V4, 0, &said);
            assert!(read.has_other_criteria());
            assert_eq!(read.to_string(), format!("0: {expected} lookup 254"));
        }
        let own = rule(V4, 0, &[(fra::FWMARK, &0x686f_0000u32.to_ne_bytes()), (fra::FWMASK, &ALL)]);
        assert!(own.is_from_daemon(0x686f) && !own.is_from_daemon(1), "{own}");
        let station = 1021u32.to_ne_bytes();
        let station =
            rule(V4, 0, &[(fra::IIFNAME, b"tun0\0"), (fra::PRIORITY, &station), (fra::TABLE, &station)]);
        assert!(station.is_from_daemon(0x686f), "{station}");
        let from =
            rule([2, 0, 24, 0, 100, 0, 0, 1], INVERT, &[(fra::SRC, &[10, 9, 0, 0]), (fra::PRIORITY, &five)]);
        assert_eq!(from.to_string(), "5: not from 10.9.0.0/24 lookup 100");
    }

    #[test]
    fn the_rules_of_the_kernel_are_listed() {
        let rules = rules().unwrap();
        assert!(rules.iter().any(|rule| rule.table == 254), "{rules:?}");
    }
}
