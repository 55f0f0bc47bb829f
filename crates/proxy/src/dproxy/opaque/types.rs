//! Parameters, actions and counters of an end of a link.

use super::frame::Frame;
use crate::arq::DeliveryMode;
use crate::dproxy::config::CacheConfig;
use crate::dproxy::{RecoveryConfig, SampleRule};
use crate::pep::QueuePosition;
use core::num::NonZeroU8;
use hopline_core::Duration;

/// Parameters of one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Recovery of missing packets. Default as for TCP, but with an average over recoveries with one request,
    /// a minimum of 2 ms, and 12 attempts: no host behind the link repairs a loss as cheaply.
    pub recovery: RecoveryConfig,
    /// Turn of replays, requests and answers at the link. Default first.
    pub queue_position: QueuePosition,
    /// Order of delivery. Default in order.
    pub order: DeliveryMode,
    /// Maximum number of cached packets, at least 1; the oldest is evicted. Default 1024.
    pub max_cached_packets: u32,
    /// Lifetime of a cached packet. Default 500 ms: more than the patience of the other end.
    pub cache_lifetime: Duration,
    /// Maximum number of replays of a packet. Default 16.
    pub max_replays: u8,
    /// Minimum time between two replays of a packet. Default 250 µs.
    pub replay_interval: Duration,
    /// Minimum time before a tail probe. The probe is sent after half a round trip of the link without a
    /// packet, or after this time if it is longer; twice more, a round trip apart, if no answer comes.
    /// Default [`tail_probe_delay`] of an unknown rate. `None`: never.
    pub tail_probe_delay: Option<Duration>,
    /// Forward error correction. Default off.
    pub parity: Parity,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = {
        let attempts = NonZeroU8::new(12).expect("not zero");
        Self {
            recovery: RecoveryConfig {
                max_timer_requests: attempts,
                sample_rule: SampleRule::SingleRequest,
                min_average: Duration::from_millis(2),
                ..RecoveryConfig::DEFAULT
            },
            queue_position: QueuePosition::Front,
            order: DeliveryMode::InOrder,
            max_cached_packets: WINDOW_PACKETS as u32,
            cache_lifetime: Duration::from_millis(500),
            max_replays: 16,
            replay_interval: Duration::from_micros(250),
            tail_probe_delay: Some(LEAST_TAIL_PROBE),
            parity: Parity::Off,
        }
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Shortest silence before a tail probe, and that on a link of unknown rate.
const LEAST_TAIL_PROBE: Duration = Duration::from_millis(4);

/// Returns the silence after which an end sends a tail probe, over a link of this rate: the time of eight
/// packets of 1500 bytes, from 4 to 100 ms, and 4 ms for an unknown rate. Shorter times occur between two
/// ACKs that bring new data: at 6 Mb/s over 802.11, probes after 4 ms cost 14 % of the goodput. Longer times
/// exceed the timeout of a TCP sender.
#[must_use]
pub fn tail_probe_delay(rate_bps: Option<u64>) -> Duration {
    const MOST: Duration = Duration::from_millis(100);
    const BITS: u64 = 8 * 1500 * 8;
    let of_rate = |bps: u64| Duration::from_secs_f64(BITS as f64 / bps.max(1) as f64);
    rate_bps.map_or(LEAST_TAIL_PROBE, |bps| of_rate(bps).clamp(LEAST_TAIL_PROBE, MOST))
}

impl Config {
    pub(super) const fn caching(&self) -> CacheConfig {
        let Self {
            max_cached_packets: kept_packets,
            cache_lifetime: age,
            max_replays: replays,
            replay_interval,
            ..
        } = *self;
        CacheConfig {
            packets_per_flow: u16::MAX,
            packets: kept_packets,
            lifetime: age,
            max_replays: replays,
            replay_interval,
        }
    }
}

/// Forward error correction: restores lost packets without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Off.
    Off,
    /// One parity frame (exclusive-or) after a number of packets, from which any one of them can be restored.
    /// The number is half the mean distance between requested packets, within these bounds. There is no
    /// parity while less than one in a thousand is lost.
    Adaptive {
        /// Minimum number of packets.
        min_group: NonZeroU8,
        /// Maximum number of packets.
        max_group: NonZeroU8,
    },
}

/// Size of the receive window, packets from the first missing one. A packet beyond it moves the window on,
/// past missing packets.
pub const WINDOW_PACKETS: usize = 1024;

/// Maximum number of missing packets. Larger losses are left to the hosts behind the link.
pub const MAX_MISSING: usize = 256;

/// Action of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpaqueAction<K> {
    /// Send a frame.
    Send(QueuePosition, Frame<K>),
    /// Deliver a packet that has crossed the link.
    Deliver(K),
    /// Report an accepted packet as dropped: the queue had no room for it.
    ReportDrop(K),
    /// Release a packet: the other end has it, it was evicted, it has expired, or it is a duplicate.
    Release(K),
}

/// Counters of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets accepted.
    pub packets: u64,
    /// Packets replayed.
    pub replayed: u64,
    /// Requested packets that were replayed a moment ago.
    pub recently_replayed: u64,
    /// Requested packets that are not cached, or were replayed too often.
    pub not_cached: u64,
    /// Packets that the queue refused.
    pub refused: u64,
    /// Tail probes.
    pub tail_probes: u64,
    /// Parity frames sent.
    pub parity: u64,
    /// Packets restored from parity.
    pub restored: u64,
    /// Duplicates of packets that had arrived.
    pub duplicates: u64,
    /// Number of times that more was missing than is requested.
    pub excess_losses: u64,
    /// Frames of the former epoch of the other end.
    pub stale: u64,
    /// Epochs of the other end after the first.
    pub restarts: u64,
    /// Invalid frames: for another epoch than the current one, or about packets that were never sent.
    pub invalid: u64,
}
