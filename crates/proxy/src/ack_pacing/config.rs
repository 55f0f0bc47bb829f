//! Parameters of ACK pacing.

use crate::table::Bounds;
use core::num::NonZeroU16;
use hopline_core::Duration;

/// Parameters of [`AckPacing`](super::AckPacing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest time that an ACK waits, and longest time over which a burst is spread. Default 20 ms: a block
    /// of 64 frames of 1500 bytes takes 17 ms at 54 Mb/s.
    pub max_hold: Duration,
    /// Largest gap between two ACKs of the same burst. Default 200 µs: two ACKs of a block are 160 µs apart
    /// at 6 Mb/s, the lowest rate of 802.11a.
    pub burst_gap: Duration,
    /// Maximum number of waiting ACKs of a connection; beyond it, the oldest is forwarded. Default 256.
    pub held_packets: NonZeroU16,
    /// Maximum number of waiting ACKs in total. An ACK beyond it is forwarded, after all waiting ACKs of its
    /// connection. Default 4096.
    pub held_in_all: u32,
    /// Limits of the connection table.
    pub bounds: Bounds,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        max_hold: Duration::from_millis(20),
        burst_gap: Duration::from_micros(200),
        held_packets: NonZeroU16::new(256).expect("not zero"),
        held_in_all: 4096,
        bounds: Bounds::DEFAULT,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}
