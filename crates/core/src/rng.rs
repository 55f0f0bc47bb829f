//! Named random streams and our own samplers: the same numbers on every machine, in every build.
//!
//! A stream is keyed by (seed, run, node, purpose). Adding a node, or drawing more numbers from one stream, leaves every
//! other stream unchanged. The generator is PCG XSL RR 128/64 (`rand_pcg::Pcg64`); transcendentals come from `libm`.

use crate::id::NodeId;
use crate::time::Duration;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// Purpose of a stream. The number is part of the key: never reuse one, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
#[non_exhaustive]
pub enum Purpose {
    /// Placement of nodes.
    Placement = 1,
    /// Movement of nodes: positions and speeds.
    Mobility = 2,
    /// Backoff of the medium access.
    Backoff = 3,
    /// Jitter of a routing agent.
    Routing = 4,
    /// Sizes and times of an application; start times of random flows.
    Traffic = 5,
    /// Bit errors and error bursts on what a node receives.
    Errors = 6,
    /// Shadowing of a path.
    Shadowing = 7,
    /// Initial sequence numbers and other transport choices.
    Transport = 8,
    /// Decisions of a queue.
    Queue = 9,
    /// Link emulation in tests.
    Emulation = 10,
    /// Resampling in statistics.
    Bootstrap = 11,
    /// Delay of an application's start after its planned time.
    Start = 12,
    /// Decisions about the queue of a neighbourhood.
    Neighborhood = 13,
    /// Draws of a middlebox.
    Proxy = 14,
    /// Time at which a base station becomes audible during a handoff.
    Handoff = 15,
    /// End nodes of a flow, if they are drawn at random.
    Pairs = 16,
    /// Draws of a user-defined congestion control algorithm.
    CustomCongestionControl = 17,
    /// Times at which a rate-based transport probes for bandwidth.
    Probing = 18,
    /// Choice of the packets of a link that arrive late.
    Reordering = 19,
    /// Delay jitter of each packet of a link.
    Jitter = 20,
    /// Delays before requests for link-layer addresses.
    Arp = 21,
    /// The first IP identification of a node.
    Identification = 22,
    /// Random networks for a comparison.
    Networks = 23,
}

/// One stream of random numbers.
///
/// # Example
///
/// ```
/// use hopline_core::{NodeId, Purpose, RandomStream};
///
/// let mut losses = RandomStream::new(7, 0, NodeId(1), Purpose::Errors);
/// let lost = (0..1000).filter(|_| losses.bernoulli(0.1)).count();
/// assert!((70..130).contains(&lost));
/// // The same key gives the same numbers.
/// let again = |_| RandomStream::new(7, 0, NodeId(1), Purpose::Errors).bits();
/// assert_eq!(again(()), again(()));
/// ```
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64);

impl RandomStream {
    /// The stream of `node` for `purpose`, in run `run` of an experiment with seed `seed`.
    #[must_use]
    pub fn new(seed: u64, run: u64, node: NodeId, purpose: Purpose) -> Self {
        Self::keyed(seed, run, u64::from(node.0), purpose)
    }

    /// A stream that belongs to no node but to the run as a whole.
    #[must_use]
    pub fn global(seed: u64, run: u64, purpose: Purpose) -> Self {
        Self::keyed(seed, run, u64::MAX, purpose)
    }

    /// The stream of any numbered `owner` (a link, a pair of nodes) for `purpose`.
    #[must_use]
    pub fn keyed(seed: u64, run: u64, owner: u64, purpose: Purpose) -> Self {
        let mut key = 0x6a09_e667_f3bc_c908; // the first 64 bits of the fraction of √2: nothing up the sleeve
        let mut words = [0u64; 4];
        for part in [seed, run, owner, purpose as u64] {
            key = mix(key ^ part);
        }
        for word in &mut words {
            key = mix(key);
            *word = key;
        }
        let wide = |high: u64, low: u64| (u128::from(high) << 64) | u128::from(low);
        Self(Pcg64::new(wide(words[0], words[1]), wide(words[2], words[3])))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in [low, high); `low` if the range is empty.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform among 0, 1, …, `n` − 1, without bias; 0 if `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        // Lemire's multiply-and-reject.
        let n = u64::from(n);
        loop {
            let product = (self.bits() >> 32) * n;
            let low = product & 0xffff_ffff;
            if low >= n || low >= (0x1_0000_0000 - n) % n.max(1) {
                return (product >> 32) as u32;
            }
        }
    }

    /// Uniform in [0, `limit`), in whole nanoseconds; zero if `limit` is zero.
    pub fn duration_below(&mut self, limit: Duration) -> Duration {
        let product = u128::from(self.bits()) * u128::from(limit.as_nanos());
        Duration::from_nanos((product >> 64) as u64)
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// Normal with the given mean and standard deviation (polar method). The second value is discarded, so that each call
    /// depends on the stream's state alone.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        loop {
            let (u, v) = (self.uniform(-1.0, 1.0), self.uniform(-1.0, 1.0));
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return mean + deviation * u * libm::sqrt(-2.0 * libm::log(s) / s);
            }
        }
    }

    /// True with probability `p`; never for `p` ≤ 0, always for `p` ≥ 1.
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}

/// The finaliser of SplitMix64: every input bit moves every output bit.
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> RandomStream {
        RandomStream::new(1, 1, NodeId(0), Purpose::Backoff)
    }

    #[test]
    fn a_key_always_gives_the_same_numbers() {
        let mut s = stream();
        let first: Vec<u64> = (0..3).map(|_| s.bits()).collect();
        assert_eq!(first, GOLDEN);
    }

    const GOLDEN: [u64; 3] =
        [16_473_589_938_261_417_371, 1_598_229_275_329_591_375, 9_961_019_328_109_930_288];

    #[test]
    fn any_part_of_the_key_changes_the_stream() {
        let a = stream().bits();
        assert_ne!(a, RandomStream::new(2, 1, NodeId(0), Purpose::Backoff).bits());
        assert_ne!(a, RandomStream::new(1, 2, NodeId(0), Purpose::Backoff).bits());
        assert_ne!(a, RandomStream::new(1, 1, NodeId(1), Purpose::Backoff).bits());
        assert_ne!(a, RandomStream::new(1, 1, NodeId(0), Purpose::Routing).bits());
        assert_ne!(a, RandomStream::global(1, 1, Purpose::Backoff).bits());
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut s = stream();
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[s.below(7) as usize] += 1;
        }
        // Binomial(70 000, 1/7): deviation 93; six of them.
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 560), "{seen:?}");
        assert_eq!(s.below(0), 0);
        assert_eq!(s.below(1), 0);
    }

    #[test]
    fn samplers_have_the_moments_they_promise() {
        let mut s = stream();
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || s.exponential(2.0)) - 2.0).abs() < 0.03);
        assert!((mean(&mut || s.normal(5.0, 3.0)) - 5.0).abs() < 0.04);
        assert!((mean(&mut || (s.normal(0.0, 3.0)).powi(2)) - 9.0).abs() < 0.2);
        assert!((mean(&mut || f64::from(u8::from(s.bernoulli(0.3)))) - 0.3).abs() < 0.007);
        assert!(
            (mean(&mut || s.duration_below(Duration::from_nanos(1000)).as_nanos() as f64) - 499.5).abs()
                < 4.0
        );
    }

    #[test]
    fn certain_and_impossible_are_exact() {
        let mut s = stream();
        assert!((0..1000).all(|_| s.bernoulli(1.0) && !s.bernoulli(0.0)));
    }
}
