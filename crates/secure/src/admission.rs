//! Rate limits of an answerer: handshakes that begin, and handshake messages that fail.
//!
//! A handshake costs a quarter of a millisecond, and a cookie that proves an address is cheap for a party that has many. So handshakes are
//! limited in rate, and the limit is fair among network prefixes: a prefix that has begun many within a second leaves room for the others.

use crate::half_open::Proven;
use core::net::IpAddr;
use hopline_core::flood::Allowance;
use hopline_core::{ByPrefix, Duration, Instant};
use std::collections::VecDeque;

/// The time over which handshakes are counted.
const SECOND: Duration = Duration::from_secs(1);

/// Messages in a second that are read for a handshake of which one has failed already; each costs less than 2 µs.
const RETRIES: u32 = 2000;
/// Messages in a second that are read although they did not come from the address of the handshake.
const FROM_ELSEWHERE: u32 = 64;
/// Handshakes in a second that are computed once more from their seed; each costs a quarter of a millisecond.
const REMAKES: u32 = 64;

/// Handshakes that began within the last second, in all and by prefix.
#[derive(Debug, Default)]
struct Begun {
    /// Oldest first; numbered consecutively.
    lately: VecDeque<(Instant, IpAddr)>,
    /// The number of the oldest one.
    first: u64,
    by_prefix: ByPrefix,
}

impl Begun {
    /// Returns how many began within the last second.
    fn count(&mut self, now: Instant) -> usize {
        while let Some(&(at, address)) = self.lately.front()
            && at + SECOND <= now
        {
            self.by_prefix.remove(address, self.first);
            self.lately.pop_front();
            self.first += 1;
        }
        self.lately.len()
    }

    /// Returns whether one more may begin at `address`, if `most` may in a second.
    fn admits(&mut self, now: Instant, address: IpAddr, most: usize) -> bool {
        let all = self.count(now);
        let [site, subsite, host] = self.by_prefix.counts(address);
        // A prefix alone gets half of the rate, n equal ones get n / (n + 1) of it. A wide prefix counts less than the host, so that
        // one with a hostile neighbour differs from it.
        all + host + subsite / 4 + site / 16 < most
    }

    /// Notes that one begins.
    fn note(&mut self, now: Instant, address: IpAddr) {
        self.by_prefix.insert(address, self.first + self.lately.len() as u64);
        self.lately.push_back((now, address));
    }
}

/// Rate limit of handshakes that begin. Hosts at which a trusted peer was have a limit of their own, as high: what one of them begins beyond
/// it counts as that of any other host, and nothing within it counts against others.
#[derive(Debug)]
pub(crate) struct Rate {
    most: usize,
    others: Begun,
    familiar: Begun,
}

impl Rate {
    /// At most `most` in a second of each kind.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, others: Begun::default(), familiar: Begun::default() }
    }

    /// Returns whether half as many have begun within the last second as may of one kind.
    pub(crate) fn is_half_used(&mut self, now: Instant) -> bool {
        self.others.count(now) + self.familiar.count(now) >= self.most.div_ceil(2)
    }

    /// Returns whether one more may begin at `address`.
    pub(crate) fn admits(&mut self, now: Instant, address: IpAddr, proven: Proven) -> bool {
        self.is_familiar(now, address, proven) || self.others.admits(now, address, self.most)
    }

    /// Notes that one begins.
    pub(crate) fn note(&mut self, now: Instant, address: IpAddr, proven: Proven) {
        let begun =
            if self.is_familiar(now, address, proven) { &mut self.familiar } else { &mut self.others };
        begun.note(now, address);
    }

    fn is_familiar(&mut self, now: Instant, address: IpAddr, proven: Proven) -> bool {
        proven == Proven::Familiar && self.familiar.admits(now, address, self.most)
    }
}

/// Budgets for messages that complete no handshake. The first such message of a handshake costs no budget, so that no flood keeps out a
/// handshake that nothing was forged for.
#[derive(Debug)]
pub(crate) struct Failures {
    retries: Allowance,
    from_elsewhere: Allowance,
    /// Handshakes that are computed once more.
    pub(crate) remakes: Allowance,
}

impl Default for Failures {
    fn default() -> Self {
        let [retries, from_elsewhere, remakes] =
            [RETRIES, FROM_ELSEWHERE, REMAKES].map(|a_second| Allowance::new(a_second, Instant::ZERO));
        Self { retries, from_elsewhere, remakes }
    }
}

/// The address that a message came from, compared with that of its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Expected,
    Elsewhere,
}

/// Earlier attempts of messages for a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Attempts {
    #[default]
    None,
    Failed,
}

impl Failures {
    /// Returns whether a message is read.
    pub(crate) fn allow(&mut self, now: Instant, source: Source, attempts: Attempts) -> bool {
        let from_there = source == Source::Expected || self.from_elsewhere.take(now);
        from_there && (attempts == Attempts::None || self.retries.take(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const NOW: Instant = Instant::from_secs(5);

    fn host(network: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, network, host).into()
    }

    /// Begins as many as are admitted, by turns at each of `addresses`.
    fn flood(begun: &mut Begun, now: Instant, addresses: impl Iterator<Item = IpAddr> + Clone) {
        let mut refused = false;
        while !refused {
            refused = true;
            for address in addresses.clone() {
                if begun.admits(now, address, 500) {
                    begun.note(now, address);
                    refused = false;
                }
            }
        }
    }

    #[test]
    fn a_flood_of_one_host_or_of_many_leaves_room_for_a_host_that_has_begun_none() {
        let floods: [Vec<IpAddr>; 3] =
            [vec![host(1, 1)], (0..20).map(|n| host(1, n)).collect(), (0..20).map(|n| host(n, 1)).collect()];
        for flooding in floods {
            let mut begun = Begun::default();
            flood(&mut begun, NOW, flooding.iter().copied());
            assert!((200..500).contains(&begun.count(NOW)), "{}", begun.count(NOW));
            assert!(begun.admits(NOW, host(1, 99), 500), "a neighbour");
            assert!(begun.admits(NOW, host(99, 1), 500), "a stranger");
            assert!(!begun.admits(NOW, flooding[0], 500));
        }
    }

    #[test]
    fn what_began_more_than_a_second_ago_does_not_count() {
        let mut begun = Begun::default();
        flood(&mut begun, NOW, [host(1, 1)].into_iter());
        assert!(!begun.admits(NOW + Duration::from_millis(999), host(1, 1), 500));
        assert!(begun.admits(NOW + SECOND, host(1, 1), 500));
        assert_eq!((begun.count(NOW + SECOND), begun.by_prefix.counts(host(1, 1))), (0, [0; 3]));
    }

    #[test]
    fn only_what_has_failed_or_comes_from_elsewhere_is_limited() {
        let mut failures = Failures::default();
        let allowed = |failures: &mut Failures, source, attempts| {
            (0..10_000).filter(|_| failures.allow(NOW, source, attempts)).count()
        };
        assert_eq!(allowed(&mut failures, Source::Expected, Attempts::Failed), RETRIES as usize);
        assert_eq!(allowed(&mut failures, Source::Elsewhere, Attempts::None), FROM_ELSEWHERE as usize);
        assert_eq!(allowed(&mut failures, Source::Expected, Attempts::None), 10_000);
    }
}
