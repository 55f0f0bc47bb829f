//! Every parameter of an OLSR machine, and the presets.

use core::num::NonZeroU8;
use hopline_core::Duration;
pub use hopline_wire::olsr::Willingness;

/// Detection of a lost link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSensing {
    /// HELLO messages that are missing or that list the link as lost (RFC 3626 §7). Reports of the link layer are ignored.
    Hello,
    /// HELLO messages, or the link layer: a unicast frame that was given up (§13). Such a link stays lost for
    /// NEIGHB_HOLD_TIME, whatever is received over it.
    HelloAndLinkLayer,
}

/// Link hysteresis (RFC 3626 §14): a link is used once its quality has risen above one threshold, and until it falls below
/// another. Quality is a moving average over the neighbour's packets: 1 for a received packet, 0 for a lost one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hysteresis {
    /// HYST_SCALING: weight of the latest packet, above 0 and below 1. Default 0.5.
    pub scaling: f64,
    /// HYST_THRESHOLD_HIGH, 0 to 1. Default 0.8.
    pub threshold_high: f64,
    /// HYST_THRESHOLD_LOW, 0 to `threshold_high`. Default 0.3.
    pub threshold_low: f64,
}

impl Hysteresis {
    /// RFC 3626 §18.7: a new link is used after three packets, and given up after two losses.
    pub const RFC3626: Self = Self { scaling: 0.5, threshold_high: 0.8, threshold_low: 0.3 };
}

/// Early TC messages: sent before the next one is due, if the link to an MPR selector fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyTc {
    /// Not sent.
    Never,
    /// Sent (RFC 3626 §9.3), but TC messages are not closer to each other than `spacing`.
    OnLinkFailure {
        /// RFC 3626 names no value; default TC_INTERVAL / 4, the TC_MIN_INTERVAL of RFC 7181: 1.25 s.
        spacing: Duration,
    },
}

/// Bounds on memory. Entries beyond them are refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Links. At most 255, so that HELLO and TC messages fit into a packet. Default 255.
    pub links: u8,
    /// Pairs of a neighbour and a node that it reaches. Default 65,536.
    pub two_hops: u32,
    /// Links learnt from TC messages. Default 65,536.
    pub topology: u32,
    /// Messages in the duplicate set. Default 65,536.
    pub duplicates: u32,
    /// Messages waiting for their jitter to pass. Default 256.
    pub departures: u32,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { links: 255, two_hops: 65_536, topology: 65_536, duplicates: 65_536, departures: 256 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Parameters of an OLSR machine. Names in capitals are those of RFC 3626 §18; [`Config::rfc3626`] has its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// HELLO_INTERVAL, REFRESH_INTERVAL: time between two HELLO messages, less jitter. Not zero. 2 s.
    pub hello_interval: Duration,
    /// TC_INTERVAL: time between two TC messages, less jitter. Not zero. 5 s.
    pub tc_interval: Duration,
    /// NEIGHB_HOLD_TIME in HELLO intervals: validity of a neighbour's HELLO. 3.
    pub neighbour_hold_intervals: NonZeroU8,
    /// TOP_HOLD_TIME in TC intervals: validity of a TC message. 3.
    pub topology_hold_intervals: NonZeroU8,
    /// DUP_HOLD_TIME: time for which a message is remembered. 30 s.
    pub duplicate_hold_time: Duration,
    /// MAXJITTER: each message of this node is early, and each forwarded message late, by a random time below this. `None`:
    /// HELLO_INTERVAL / 4, as RFC 3626 proposes (§3.5).
    pub max_jitter: Option<Duration>,
    /// WILLINGNESS to carry traffic for other nodes. [`Willingness::DEFAULT`].
    pub willingness: Willingness,
    /// Detection of lost links. [`LinkSensing::Hello`].
    pub link_sensing: LinkSensing,
    /// Link hysteresis; `None`: a link is used as soon as it is symmetric. Default off.
    pub hysteresis: Option<Hysteresis>,
    /// Early TC messages. On, 1.25 s apart.
    pub early_tc: EarlyTc,
    /// Longest packet, OLSR header included, in bytes: messages share a packet until it is full. 1472, the UDP payload of
    /// IPv4 on Ethernet (1500).
    pub max_packet_bytes: u16,
    /// Bounds on memory.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self::rfc3626()
    }
}

impl Config {
    /// Returns RFC 3626 with the values of its §18; hysteresis and link layer notification, which it leaves optional, are
    /// off.
    #[must_use]
    pub const fn rfc3626() -> Self {
        let tc_interval = Duration::from_secs(5);
        let three = NonZeroU8::new(3).expect("not zero");
        Self {
            hello_interval: Duration::from_secs(2),
            tc_interval,
            neighbour_hold_intervals: three,
            topology_hold_intervals: three,
            duplicate_hold_time: Duration::from_secs(30),
            max_jitter: None,
            willingness: Willingness::DEFAULT,
            link_sensing: LinkSensing::Hello,
            hysteresis: None,
            early_tc: EarlyTc::OnLinkFailure { spacing: Duration::from_nanos(tc_interval.as_nanos() / 4) },
            max_packet_bytes: 1472,
            limits: Limits::DEFAULT,
        }
    }

    /// NEIGHB_HOLD_TIME. On the wire it is at most 3968 s.
    #[must_use]
    pub const fn neighbour_hold_time(&self) -> Duration {
        self.hello_interval.saturating_mul(self.neighbour_hold_intervals.get() as u64)
    }

    /// TOP_HOLD_TIME. On the wire it is at most 3968 s.
    #[must_use]
    pub const fn topology_hold_time(&self) -> Duration {
        self.tc_interval.saturating_mul(self.topology_hold_intervals.get() as u64)
    }

    /// MAXJITTER.
    #[must_use]
    pub fn max_jitter(&self) -> Duration {
        self.max_jitter.unwrap_or(self.hello_interval / 4)
    }
}
