//! Every parameter of Neighborhood RED.

use crate::packet_access::SignalAction;
use core::num::NonZeroU16;
use hopline_core::Duration;

/// Parameters of a node. The values of [`Config::PAPER`] are those of the paper's §6.1; unpublished ones are hopline's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Tinterval: sampling period of the radio's times. Above 0; default 100 ms, good from there to 1 s.
    pub sampling: Duration,
    /// wq: weight of the latest interval in the averages. Above 0, at most 1; default 0.2, good from 0.1 to 0.4.
    pub weight: f64,
    /// W: rate of the channel, bits per second, not 0. Default 2,000,000.
    pub bandwidth_bps: u64,
    /// C: mean packet length in bits, not 0, which scales the averages. Not published; 8192 makes the saturated average 244,
    /// for "about 240" in the paper's figure.
    pub packet_bits: u32,
    /// minth: average below which there is no congestion. At least 0, below `max_threshold`. Default 100 on a channel of 2
    /// Mb/s, which means busy for 41 % of the time; in proportion to the rate on [other channels](Self::for_bandwidth).
    pub min_threshold: f64,
    /// maxth: average from which on neighbours must drop all packets. Default 240, in the same proportion: 98 % of the time.
    pub max_threshold: f64,
    /// maxp: the neighbourhood's drop probability as the average reaches `max_threshold`. Above 0, at most 1; default 0.14,
    /// good from 0.1 to 0.2.
    pub max_probability: f64,
    /// TNCN: period at which a node checks whether it has to send a notice. Above 0. Not published; at most half of the
    /// lifetime; default 500 ms.
    pub notice_interval: Duration,
    /// lifeTime: lifetime of a notice. At least twice `notice_interval` (§5.2), at most 65.535 s; default 2 s.
    pub lifetime: Duration,
    /// Condition under which a node is starved (§5.2's third condition). Default below half of the average of all.
    pub starvation: StarvationTest,
    /// Time for which a node remains on a flow's path after the flow's last packet. Above 0. Not published; default 60 s. A
    /// starved flow is silent for as long as its retransmission timer has been backed off, and 60 s is the least that RFC
    /// 6298 §2.5 allows for a largest timeout. A node that forgets the flow earlier sends no notices at the worst
    /// congestion.
    pub flow_memory: Duration,
    /// Time for which a neighbour remains active after its last frame. Above 0. Not published; default 1 s.
    pub neighbour_memory: Duration,
    /// Transmission of notices. Default unicast.
    pub delivery: Delivery,
    /// Node that drops the packets addressed to a neighbour of the starved node. Default the neighbour.
    pub incoming: IncomingPolicy,
    /// Jitter of [`Delivery::Broadcast`] and [`IncomingPolicy::Relayed`]: a notice is relayed after a random time below this. It
    /// keeps the neighbours of the starved node from colliding, as they receive its notice at the same instant (RFC 5148
    /// §5.3). Not published; default 10 ms, as AODV and DSR.
    pub relay_jitter: Duration,
    /// Action on a packet that is chosen. Default drop; marking is the paper's §8.
    pub action: SignalAction,
    /// Limits to the effect of notices on this node. Default no limits, as published.
    pub notice_limits: NoticeLimits,
    /// Most neighbours in the neighbour table. Default 64.
    pub neighbours: NonZeroU16,
}

/// Condition under which a node is starved: the sum of its own averages is below a threshold, which the paper does not give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StarvationTest {
    /// This share of the average of all. Above 0, at most 1.
    BelowShare(f64),
    /// The fair share of that average: one part for itself and one for each active neighbour.
    BelowFairShare,
}

/// Transmission of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Unicast to a neighbour drawn at random, acknowledged and retransmitted; all other neighbours overhear it (§5.2).
    Unicast,
    /// Broadcast, once.
    Broadcast,
    /// No notices: the node monitors its neighbourhood, and requests nothing.
    None,
}

/// Node that drops the packets addressed to a neighbour of the starved node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingPolicy {
    /// The neighbour, after receiving them: their airtime is spent already (§5.3).
    Dropped,
    /// Their senders: the neighbour relays the notice, once (the paper's §8). It drops none itself.
    Relayed,
}

/// Limits to the effect of notices on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeLimits {
    /// No limits.
    Off,
    /// These limits.
    On(Limits),
}

/// Limits to the effect of notices. With limits, a node obeys notices only of nodes from which it has received frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest lifetime that is accepted, and longest time for which a starved node sends no notices in favour of more
    /// starved nodes. Above 0; default 2 s.
    pub max_lifetime: Duration,
    /// Least time between accepted notices of a neighbour, and between relayed notices. Default 200 ms.
    pub min_spacing: Duration,
    /// Rest after a period of [`max_lifetime`](Self::max_lifetime) in which all packets had to be dropped. During it, every notice
    /// counts at most as an average just below `max_threshold`, whatever its sender. Default 10 s.
    pub recovery_time: Duration,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        max_lifetime: Duration::from_secs(2),
        min_spacing: Duration::from_millis(200),
        recovery_time: Duration::from_secs(10),
    };
}

/// Longest lifetime that a notice can express.
const MAX_LIFETIME: Duration = Duration::from_millis(65_535);

impl Config {
    /// Parameters of the paper, on a channel of 2 Mb/s.
    pub const PAPER: Self = Self {
        sampling: Duration::from_millis(100),
        weight: 0.2,
        bandwidth_bps: 2_000_000,
        packet_bits: 8192,
        min_threshold: 100.0,
        max_threshold: 240.0,
        max_probability: 0.14,
        notice_interval: Duration::from_millis(500),
        lifetime: Duration::from_secs(2),
        starvation: StarvationTest::BelowShare(0.5),
        flow_memory: Duration::from_secs(60),
        neighbour_memory: Duration::from_secs(1),
        delivery: Delivery::Unicast,
        incoming: IncomingPolicy::Dropped,
        relay_jitter: Duration::from_millis(10),
        action: SignalAction::Drop,
        notice_limits: NoticeLimits::Off,
        neighbours: NonZeroU16::new(64).expect("not zero"),
    };

    /// Returns the parameters of the paper, on a channel of `bandwidth_bps`, not 0. The averages are W/C times the share of
    /// time that the channel is busy (§5.1), and the thresholds were chosen for W = 2 Mb/s: the "heavy congestion" of §6.2
    /// is 240 there, and 1320 at 11 Mb/s. The thresholds are therefore in proportion to W, and stand for the same busy time
    /// at every rate.
    #[must_use]
    pub fn for_bandwidth(bandwidth_bps: u64) -> Self {
        let times = bandwidth_bps as f64 / Self::PAPER.bandwidth_bps as f64;
        Self {
            bandwidth_bps,
            min_threshold: Self::PAPER.min_threshold * times,
            max_threshold: Self::PAPER.max_threshold * times,
            ..Self::PAPER
        }
    }

    /// The largest `normalizedPb` below that of total congestion: `maxp / maxth`.
    #[must_use]
    pub fn max_partial_pb(&self) -> f64 {
        self.max_probability / self.max_threshold
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// Text of the requirement that the first invalid field violates.
    pub fn validate(&self) -> Result<(), &'static str> {
        let share = |p: f64| p > 0.0 && p <= 1.0;
        let suffering = match self.starvation {
            StarvationTest::BelowShare(of) => share(of),
            StarvationTest::BelowFairShare => true,
        };
        let guard = match self.notice_limits {
            NoticeLimits::Off => true,
            NoticeLimits::On(limits) => !limits.max_lifetime.is_zero(),
        };
        let rules = [
            (!self.sampling.is_zero(), "a sampling interval above 0"),
            (share(self.weight), "a weight above 0 and at most 1"),
            (self.bandwidth_bps > 0, "a bandwidth above 0"),
            (self.packet_bits > 0, "a mean packet above 0"),
            (
                self.min_threshold >= 0.0 && self.min_threshold < self.max_threshold,
                "min_threshold < max_threshold",
            ),
            (self.max_threshold.is_finite(), "a max_threshold that is a number"),
            (share(self.max_probability), "a max_probability above 0 and at most 1"),
            (!self.notice_interval.is_zero(), "a notice interval above 0"),
            (
                self.lifetime >= self.notice_interval.saturating_mul(2),
                "a lifetime of at least two notice intervals, so that one is renewed before it ends",
            ),
            (self.lifetime <= MAX_LIFETIME, "a lifetime of at most 65.535 s"),
            (suffering, "a suffering share above 0 and at most 1"),
            (!self.flow_memory.is_zero(), "a memory of flows above 0"),
            (!self.neighbour_memory.is_zero(), "a memory of neighbours above 0"),
            (guard, "a believed lifetime above 0"),
        ];
        rules.iter().find(|(ok, _)| !ok).map_or(Ok(()), |(_, must)| Err(must))
    }
}
