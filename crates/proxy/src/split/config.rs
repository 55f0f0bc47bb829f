//! Parameters of split connections.

use crate::table::TableLimits;
use hopline_core::Duration;
use hopline_transport::any::Transport;

/// Parameters of [`Split`](super::Split).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Transport of the half in the wired network.
    pub fixed: Transport,
    /// Transport of the half over the last hop.
    pub mobile: Transport,
    /// Handling of packets of unknown connections. Default: a reset.
    pub unknown: UnknownConnections,
    /// Limits of the connection table. Default idle time: 2 hours and 4 minutes (RFC 5382 §5).
    pub limits: TableLimits,
}

/// Handling of packets of unknown connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownConnections {
    /// A reset: no other base station knows of them either.
    Reset,
    /// They are dropped while their host is at another base station, and for this time after its arrival:
    /// their state may be in transfer.
    Hold(Duration),
}

impl Config {
    /// Creates a configuration with these transports, each with a buffer of this size for data that wait to
    /// be passed on; a full segment always fits.
    #[must_use]
    pub fn new(fixed: Transport, mobile: Transport, buffer_bytes: u64) -> Self {
        let bounds = TableLimits { idle_timeout: Duration::from_secs(7440), ..TableLimits::default() };
        let (fixed, mobile) =
            (with_buffer_limit(fixed, buffer_bytes), with_buffer_limit(mobile, buffer_bytes));
        Self { fixed, mobile, unknown: UnknownConnections::Reset, limits: bounds }
    }
}

fn with_buffer_limit(mut transport: Transport, bytes: u64) -> Transport {
    match &mut transport {
        Transport::Tcp(config) => *config = config.with_send_buffer(Some(bytes.max(config.mss().into()))),
        // A block must fit (TPA §3.1).
        Transport::Tpa(config) => {
            let block = u64::from(config.mss()) * u64::from(config.block_segments());
            *config = config.with_send_buffer(Some(bytes.max(block)));
        }
        Transport::Wide(config) => *config = config.with_send_buffer(Some(bytes.max(config.mss().into()))),
        // Its connections are not split.
        Transport::Quic(_) => {}
    }
    transport
}
