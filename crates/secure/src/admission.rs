//! Rate limits of a responder: handshakes that begin, and handshake messages that fail.
//!
//! A handshake costs a quarter of a millisecond, and a cookie that proves an address is cheap for a party
//! that has many. So handshakes are limited in rate, and the limit is fair among network prefixes: a prefix
//! that has begun many within a second leaves room for the others.

use core::net::IpAddr;
use hopline_core::request_admission::TokenBucket;
use hopline_core::{Duration, Instant, PrefixCounter};
use std::collections::VecDeque;

/// Handshakes are counted over an eighth of a second. Over a second, a party that has begun all that it may
/// would wait for the rest of it, and with it any other behind the same address.
const WINDOWS_PER_SECOND: usize = 8;
/// Handshakes that may begin at once, whatever the limit: fewer cannot be shared fairly.
const MIN_BURST: usize = 16;

/// Messages in a second that are read for a handshake of which one has failed already; each costs less than 2 µs.
const MAX_RETRIES: u32 = 2000;
/// Messages in a second that are read although they did not come from the address of the handshake.
const MAX_FROM_ELSEWHERE: u32 = 64;
/// Handshakes in a second that are computed once more from their seed; each costs a quarter of a millisecond.
const MAX_REMAKES: u32 = 64;

/// Handshakes that began lately, in all and by prefix.
#[derive(Debug)]
struct RecentHandshakes {
    /// The time over which they are counted, and how many may begin in it.
    window: Duration,
    max: usize,
    /// Oldest first; numbered consecutively.
    recent: VecDeque<(Instant, IpAddr)>,
    /// The number of the oldest one.
    first: u64,
    by_prefix: PrefixCounter,
}

impl RecentHandshakes {
    /// Creates an empty limit of at most `a_second`.
    fn new(a_second: usize) -> Self {
        let most = a_second.div_ceil(WINDOWS_PER_SECOND).max(MIN_BURST).min(a_second);
        let span = Duration::from_secs(1) * most as u64 / a_second as u64;
        Self {
            window: span,
            max: most,
            recent: VecDeque::new(),
            first: 0,
            by_prefix: PrefixCounter::default(),
        }
    }

    /// Returns how many began lately.
    fn count(&mut self, now: Instant) -> usize {
        while let Some(&(at, address)) = self.recent.front()
            && at + self.window <= now
        {
            self.by_prefix.remove(address, self.first);
            self.recent.pop_front();
            self.first += 1;
        }
        self.recent.len()
    }

    /// Returns the time at which the oldest one counts no longer.
    fn next_release(&self) -> Option<Instant> {
        self.recent.front().map(|&(at, _)| at + self.window)
    }

    /// Returns whether one more may begin at `address`.
    fn admits(&mut self, now: Instant, address: IpAddr) -> bool {
        let all = self.count(now);
        let [site, subsite, host] = self.by_prefix.counts(address);
        // A prefix alone gets half of the rate, n equal ones get n / (n + 1) of it. A wide prefix counts less
        // than the host, so that one with a hostile neighbour differs from it.
        all + host + subsite / 4 + site / 16 < self.max
    }

    /// Notes that one begins.
    fn record(&mut self, now: Instant, address: IpAddr) {
        self.by_prefix.insert(address, self.first + self.recent.len() as u64);
        self.recent.push_back((now, address));
    }
}

/// Rate limit of handshakes that begin. Hosts at which a trusted peer was have a limit of their own, as high:
/// what one of them begins beyond it counts as that of any other host, and nothing within it counts against
/// others.
#[derive(Debug)]
pub(crate) struct HandshakeRate {
    other_hosts: RecentHandshakes,
    known_hosts: RecentHandshakes,
}

impl HandshakeRate {
    /// Creates limits of at most `a_second` of each kind; one at least.
    pub(crate) fn new(a_second: usize) -> Self {
        Self { other_hosts: RecentHandshakes::new(a_second), known_hosts: RecentHandshakes::new(a_second) }
    }

    /// Returns whether half as many have begun lately as may of one kind.
    pub(crate) fn is_half_used(&mut self, now: Instant) -> bool {
        self.other_hosts.count(now) + self.known_hosts.count(now) >= self.other_hosts.max.div_ceil(2)
    }

    /// Forgets those that count no longer.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.other_hosts.count(now);
        self.known_hosts.count(now);
    }

    /// Returns the next time at which more may begin than before, if any began lately.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        self.other_hosts.next_release().into_iter().chain(self.known_hosts.next_release()).min()
    }

    /// Returns whether one more may begin at `address`.
    pub(crate) fn admits(&mut self, now: Instant, address: IpAddr, proven: AddressProof) -> bool {
        self.is_known_host(now, address, proven) || self.other_hosts.admits(now, address)
    }

    /// Notes that one begins.
    pub(crate) fn record(&mut self, now: Instant, address: IpAddr, proven: AddressProof) {
        let begun = if self.is_known_host(now, address, proven) {
            &mut self.known_hosts
        } else {
            &mut self.other_hosts
        };
        begun.record(now, address);
    }

    fn is_known_host(&mut self, now: Instant, address: IpAddr, proven: AddressProof) -> bool {
        proven == AddressProof::KnownHost && self.known_hosts.admits(now, address)
    }
}

/// Budgets for messages that complete no handshake. The first such message of a handshake costs no budget, so
/// that no flood keeps out a handshake that nothing was forged for.
#[derive(Debug)]
pub(crate) struct FailureBudgets {
    retries: TokenBucket,
    from_elsewhere: TokenBucket,
    /// Handshakes that are computed once more.
    pub(crate) remakes: TokenBucket,
}

impl Default for FailureBudgets {
    fn default() -> Self {
        let [retries, from_elsewhere, remakes] = [MAX_RETRIES, MAX_FROM_ELSEWHERE, MAX_REMAKES]
            .map(|a_second| TokenBucket::new(a_second, Instant::ZERO));
        Self { retries, from_elsewhere, remakes }
    }
}

/// Proof that an initiator receives at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressProof {
    /// It came with a cookie from a host at which a trusted peer was lately.
    KnownHost,
    /// It came with a cookie.
    ByCookie,
    /// No proof yet.
    None,
}

/// The address that a message came from, compared with that of its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceMatch {
    Expected,
    Different,
}

/// Earlier attempts of messages for a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Attempts {
    #[default]
    None,
    Failed,
}

impl FailureBudgets {
    /// Returns whether a message is read.
    pub(crate) fn allow(&mut self, now: Instant, source: SourceMatch, attempts: Attempts) -> bool {
        let from_there = source == SourceMatch::Expected || self.from_elsewhere.take(now);
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
    fn flood(begun: &mut RecentHandshakes, now: Instant, addresses: impl Iterator<Item = IpAddr> + Clone) {
        let mut refused = false;
        while !refused {
            refused = true;
            for address in addresses.clone() {
                if begun.admits(now, address) {
                    begun.record(now, address);
                    refused = false;
                }
            }
        }
    }

    #[test]
    fn a_flood_of_one_host_or_many_leaves_room_for_a_host_without_handshakes() {
        let floods: [Vec<IpAddr>; 3] =
            [vec![host(1, 1)], (0..20).map(|n| host(1, n)).collect(), (0..20).map(|n| host(n, 1)).collect()];
        for flooding in floods {
            let mut begun = RecentHandshakes::new(500);
            flood(&mut begun, NOW, flooding.iter().copied());
            assert!((25..63).contains(&begun.count(NOW)), "{}", begun.count(NOW));
            assert!(begun.admits(NOW, host(1, 99)), "a neighbour");
            assert!(begun.admits(NOW, host(99, 1)), "a stranger");
            assert!(!begun.admits(NOW, flooding[0]));
        }
    }

    #[test]
    fn handshakes_before_the_window_do_not_count() {
        let mut begun = RecentHandshakes::new(500);
        flood(&mut begun, NOW, [host(1, 1)].into_iter());
        assert!(!begun.admits(NOW + Duration::from_millis(125), host(1, 1)));
        let later = NOW + Duration::from_millis(126);
        assert!(begun.admits(later, host(1, 1)));
        assert_eq!((begun.count(later), begun.by_prefix.counts(host(1, 1))), (0, [0; 3]));
    }

    #[test]
    fn ten_seconds_admit_ten_times_as_many_as_one() {
        for a_second in [1, 3, 15, 17, 500, 3000] {
            let mut begun = RecentHandshakes::new(a_second);
            let mut all = 0;
            for at in (0..10_000_000).step_by(250) {
                let now = NOW + Duration::from_micros(at);
                // Another network each time.
                if begun.admits(now, Ipv4Addr::from_bits((at as u32).wrapping_mul(1_000_003)).into()) {
                    begun.record(now, Ipv4Addr::from_bits((at as u32).wrapping_mul(1_000_003)).into());
                    all += 1;
                }
            }
            let may = 10 * a_second.min(4000);
            assert!(
                (may * 9 / 10..=may + a_second.div_ceil(WINDOWS_PER_SECOND).max(MIN_BURST)).contains(&all),
                "{all} of {a_second}"
            );
        }
    }

    #[test]
    fn only_retries_and_messages_from_elsewhere_are_limited() {
        let mut failures = FailureBudgets::default();
        let allowed = |failures: &mut FailureBudgets, source, attempts| {
            (0..10_000).filter(|_| failures.allow(NOW, source, attempts)).count()
        };
        assert_eq!(allowed(&mut failures, SourceMatch::Expected, Attempts::Failed), MAX_RETRIES as usize);
        assert_eq!(
            allowed(&mut failures, SourceMatch::Different, Attempts::None),
            MAX_FROM_ELSEWHERE as usize
        );
        assert_eq!(allowed(&mut failures, SourceMatch::Expected, Attempts::None), 10_000);
    }
}
