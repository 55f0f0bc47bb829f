//! Network prefixes, and members of a table counted by the prefixes of their addresses.
//!
//! A host has one IPv4 address, but any number of IPv6 addresses, and a site has a /56 or a /48 (RFC 6177). A limit per
//! address is therefore ineffective. A full table can instead remove a member of the [heaviest](PrefixCounter::heaviest) prefix.
//! An attacker with one prefix, however wide, then displaces its own members.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Number of prefixes, of different lengths, by which an address is counted.
pub const PREFIX_LEVELS: usize = 3;

/// Lengths of prefixes of IPv6: a site, a small site, a link.
const V6_LENGTHS: [u32; PREFIX_LEVELS] = [48, 56, 64];
/// Lengths of IPv4 prefixes: the longest that is routed between networks, and twice the full address.
const V4_LENGTHS: [u32; PREFIX_LEVELS] = [24, 32, 32];

/// A network prefix of one of the [`PREFIX_LEVELS`].
///
/// # Example
///
/// ```
/// use hopline_core::Prefix;
///
/// let address = |text: &str| text.parse().expect("an address");
/// // A host chooses any address of its /64.
/// assert_eq!(Prefix::of_host(address("2001:db8::1")), Prefix::of_host(address("2001:db8::2")));
/// assert_ne!(Prefix::of_host(address("192.0.2.1")), Prefix::of_host(address("192.0.2.2")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    family: Family,
    /// The prefix in the highest bits, zeros below.
    bits: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Family {
    V4,
    V6,
}

impl Family {
    const fn lengths(self) -> [u32; PREFIX_LEVELS] {
        match self {
            Self::V4 => V4_LENGTHS,
            Self::V6 => V6_LENGTHS,
        }
    }
}

impl Prefix {
    /// Returns the prefixes that `address` is in, the widest first. An IPv4 address that is mapped into IPv6 counts as the IPv4 address.
    #[must_use]
    pub fn all_of(address: IpAddr) -> [Self; PREFIX_LEVELS] {
        let (family, bits) = match address.to_canonical() {
            IpAddr::V4(ip) => (Family::V4, u128::from(ip.to_bits()) << 96),
            IpAddr::V6(ip) => (Family::V6, ip.to_bits()),
        };
        family.lengths().map(|length| Self { family, bits: bits & !host_mask(length) })
    }

    /// Returns the prefix from which one host can choose its addresses: a /64 of IPv6, an address of IPv4.
    #[must_use]
    pub fn of_host(address: IpAddr) -> Self {
        let [.., narrowest] = Self::all_of(address);
        narrowest
    }

    /// Returns the last prefix, of any level, within this one of `level`.
    const fn last_subprefix(self, level: usize) -> Self {
        Self { family: self.family, bits: self.bits | host_mask(self.family.lengths()[level]) }
    }
}

/// The bits behind a prefix of `length`, which is above zero.
const fn host_mask(length: u32) -> u128 {
    u128::MAX >> (length - 1) >> 1
}

/// Members of a table by the prefixes of their addresses. Members are numbers: the lower, the older.
///
/// # Example
///
/// ```
/// use hopline_core::PrefixCounter;
///
/// let mut table = PrefixCounter::default();
/// let address = |text: &str| text.parse().expect("an address");
/// for (member, host) in ["2001:db8::1", "2001:db8:0:1::1", "192.0.2.1"].into_iter().enumerate() {
///     table.insert(address(host), member as u64);
/// }
/// // Two members are in one /48.
/// assert_eq!(table.counts(address("2001:db8::2")), [2, 2, 1]);
/// assert_eq!(table.heaviest().next(), Some(0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct PrefixCounter {
    levels: [BTreeMap<Prefix, BTreeSet<u64>>; PREFIX_LEVELS],
}

impl PrefixCounter {
    /// Adds a member.
    pub fn insert(&mut self, address: IpAddr, member: u64) {
        for (level, prefix) in self.levels.iter_mut().zip(Prefix::all_of(address)) {
            level.entry(prefix).or_default().insert(member);
        }
    }

    /// Removes a member that was inserted with `address`, if it is there.
    pub fn remove(&mut self, address: IpAddr, member: u64) {
        for (level, prefix) in self.levels.iter_mut().zip(Prefix::all_of(address)) {
            let Some(members) = level.get_mut(&prefix) else { return };
            members.remove(&member);
            if members.is_empty() {
                level.remove(&prefix);
            }
        }
    }

    /// Returns the number of members in each prefix of `address`, the widest first.
    #[must_use]
    pub fn counts(&self, address: IpAddr) -> [usize; PREFIX_LEVELS] {
        let prefixes = Prefix::all_of(address);
        core::array::from_fn(|at| self.levels[at].get(&prefixes[at]).map_or(0, BTreeSet::len))
    }

    /// Returns whether a prefix of `heavy` has more members than the prefix of `light` at the same level, even after one
    /// member of `heavy` has been replaced by one of `light`. Compares the widest level at which the prefixes differ.
    #[must_use]
    pub fn outweighs(&self, heavy: IpAddr, light: IpAddr) -> bool {
        let differ = Prefix::all_of(heavy).into_iter().zip(Prefix::all_of(light)).map(|(a, b)| a != b);
        let weights = self.counts(heavy).into_iter().zip(self.counts(light));
        differ.zip(weights).find(|(differ, _)| *differ).is_some_and(|(_, (heavy, light))| heavy > light + 1)
    }

    /// Returns the members of the heaviest prefix, the oldest first. The search starts at the widest prefix with the most
    /// members, and continues within it down to the narrowest. Of equal prefixes, the one with the oldest member counts as
    /// heaviest.
    pub fn heaviest(&self) -> impl Iterator<Item = u64> {
        let mut members = None;
        let mut within = None;
        for (at, level) in self.levels.iter().enumerate() {
            let all = match within {
                None => level.range(..),
                Some((first, last)) => level.range(first..=last),
            };
            let heaviest =
                all.max_by_key(|(_, members)| (members.len(), core::cmp::Reverse(members.first().copied())));
            let Some((prefix, of_it)) = heaviest else { break };
            within = Some((*prefix, prefix.last_subprefix(at)));
            members = Some(of_it);
        }
        members.into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn counter_of(addresses: &[&str]) -> PrefixCounter {
        let mut table = PrefixCounter::default();
        for (member, address) in (0..).zip(addresses) {
            table.insert(ip(address), member);
        }
        table
    }

    fn heaviest(addresses: &[&str]) -> Vec<u64> {
        counter_of(addresses).heaviest().collect()
    }

    #[test]
    fn an_address_is_counted_by_its_prefixes() {
        let table =
            counter_of(&["2001:db8:1:100::1", "2001:db8:1:101::1", "2001:db8:1:200::1", "2001:db8:2::1"]);
        assert_eq!(table.counts(ip("2001:db8:1:100::9")), [3, 2, 1]);
        assert_eq!(table.counts(ip("2001:db8:3::1")), [0, 0, 0]);
        let table = counter_of(&["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2", "::1"]);
        assert_eq!(table.counts(ip("10.0.0.1")), [3, 2, 2]);
        assert_eq!(table.counts(ip("::2")), [1, 1, 1], "IPv4 is not within ::/48");
    }

    #[test]
    fn addresses_that_one_host_can_have_are_one_prefix() {
        let same = |one, other| Prefix::of_host(ip(one)) == Prefix::of_host(ip(other));
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("10.0.0.1", "::ffff:10.0.0.1") && !same("10.0.0.1", "10.0.0.2"));
    }

    #[test]
    fn a_wide_prefix_outweighs_single_hosts() {
        let site =
            ["2001:db8:1::1", "10.0.0.1", "2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:aa00::1", "::1"];
        assert_eq!(heaviest(&site), [2, 3], "the /64 with two, of the /48 with four");
        assert_eq!(heaviest(&["::1", "10.0.0.1", "10.0.0.2", "10.0.0.2"]), [2, 3]);
    }

    #[test]
    fn prefixes_are_compared_at_the_first_level_that_differs() {
        let table = counter_of(&["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.1.1"]);
        assert!(table.outweighs(ip("10.0.0.2"), ip("10.0.1.1")), "three against one");
        assert!(!table.outweighs(ip("10.0.0.1"), ip("10.0.0.2")), "two against one of the same network");
        assert!(table.outweighs(ip("10.0.0.1"), ip("10.0.0.9")));
        assert!(!table.outweighs(ip("10.0.0.1"), ip("10.0.0.1")));
    }

    #[test]
    fn of_equal_prefixes_the_one_with_the_oldest_member_is_the_heaviest() {
        assert_eq!(heaviest(&["10.9.0.1", "10.0.0.1", "::1"]), [0]);
        assert_eq!(heaviest(&[]), [0; 0]);
    }

    #[test]
    fn removed_members_leave_no_state() {
        let mut table = counter_of(&["10.0.0.1", "::1"]);
        table.remove(ip("10.0.0.1"), 7);
        assert_eq!(table.counts(ip("10.0.0.1")), [1, 1, 1]);
        table.remove(ip("10.0.0.1"), 0);
        table.remove(ip("::1"), 1);
        assert!(table.levels.iter().all(BTreeMap::is_empty));
    }
}
