//! Parameters of a window, and packets as it has them.

use crate::packet::Connection;
use core::num::NonZeroU16;
use hopline_core::{Duration, Seq32};
use hopline_queue::codel::CoDelConfig;
use hopline_queue::fq_codel::FqCoDelConfig;

/// Parameters of the window and its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Minimum window of a host, bytes. Default 15,000, ten full packets: delayed ACKs need some.
    pub min_window_bytes: u32,
    /// Margin of the window beyond one and a half bandwidth-delay products, as a time at the measured rate: ACKs
    /// arrive in bursts, and radios send in bursts. Default 4 ms.
    pub window_margin: Duration,
    /// Rate above which a hop has no window and all packets pass, bytes per second. Default 50,000,000, 400
    /// Mb/s: above it, holding packets here costs more than a queue further on does.
    pub max_rate: u32,
    /// Queue of waiting packets, one for each connection, and its dropping. Default FQ-CoDel with 64 queues,
    /// a target of 100 ms and an interval of 200 ms.
    pub queue: FqCoDelConfig,
    /// Maximum number of waiting packets of a host. Default 1,000.
    pub max_waiting_packets: NonZeroU16,
}

impl Config {
    /// Default parameters.
    pub const DEFAULT: Self = Self {
        min_window_bytes: 15_000,
        window_margin: Duration::from_millis(4),
        max_rate: 50_000_000,
        queue: FqCoDelConfig {
            codel: CoDelConfig {
                target: Duration::from_millis(100),
                interval: Duration::from_millis(200),
                ..CoDelConfig::RFC8289
            },
            flows: NonZeroU16::new(64).expect("not zero"),
            ..FqCoDelConfig::RFC8290
        },
        max_waiting_packets: NonZeroU16::new(1000).expect("not zero"),
    };
}

/// A packet that the middlebox stores, with its span.
#[derive(Clone, Debug)]
pub struct StoredPacket<K> {
    pub(super) info: PacketInfo,
    pub(super) packet: K,
}

/// Sequence range, length and transmission of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketInfo {
    pub(super) connection: Connection,
    pub(super) seq: Seq32,
    pub(super) end: Seq32,
    pub(super) len_bytes: u32,
    pub(super) transmission: Transmission,
}

/// First transmission or retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmission {
    /// First transmission.
    New,
    /// Retransmission. Its ACK may be that of an earlier transmission, and is no sample (Karn, Partridge,
    /// SIGCOMM 1987).
    Retransmission,
}
