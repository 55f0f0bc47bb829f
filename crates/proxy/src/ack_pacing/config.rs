//! Parameters of ACK pacing.

use crate::table::TableLimits;
use core::num::NonZeroU16;
use hopline_core::Duration;

/// Parameters of [`AckPacing`](super::AckPacing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest time that an ACK waits, and longest time over which a burst is spread. Default 20 ms: a block
    /// of 64 frames of 1500 bytes takes 17 ms at 54 Mb/s.
    pub max_delay: Duration,
    /// Largest gap between two ACKs of the same burst. Default 200 µs: two ACKs of a block are 160 µs apart
    /// at 6 Mb/s, the lowest rate of 802.11a.
    pub burst_gap: Duration,
    /// Maximum number of waiting ACKs of a connection; beyond it, the oldest is forwarded. Default 256.
    pub max_delayed_acks: NonZeroU16,
    /// Maximum number of waiting ACKs in total. An ACK beyond it is forwarded, after all waiting ACKs of its
    /// connection. Default 4096.
    pub max_total_delayed_acks: u32,
    /// Limits of the connection table.
    pub limits: TableLimits,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        max_delay: Duration::from_millis(20),
        burst_gap: Duration::from_micros(200),
        max_delayed_acks: NonZeroU16::new(256).expect("not zero"),
        max_total_delayed_acks: 4096,
        limits: TableLimits::DEFAULT,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}
