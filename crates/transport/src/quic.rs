//! QUIC (RFC 9000): configuration, datagrams, and the contract of an endpoint.
//!
//! This crate has no QUIC endpoint. A program supplies one that implements [`Endpoint`]; the simulator takes that of
//! `quinn-proto`, from the crate `hopline-quic`. [`any::Endpoint`](crate::any::Endpoint) then drives it as any other transport.

use crate::ConfigError;
use crate::connection::Connection;
use bytes::Bytes;
use core::ops::Range;
use hopline_core::{Duration, Payload, StateMachine, settings};
use hopline_wire::ipv4::Ecn;

/// Bytes of a full datagram that are not data: flags, connection ID, packet number, tag (RFC 9001 §5.3), and the header of a STREAM
/// frame with an offset of 4 bytes.
const OVERHEAD_BYTES: u16 = 1 + 8 + 2 + 16 + 1 + 1 + 4;

/// Smallest largest datagram (RFC 9000 §14).
const MIN_DATAGRAM_BYTES: u16 = 1200;

settings! {
    /// Parameters of an [`Endpoint`]. Start from [`Config::DEFAULT`] and use the setters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Config {
        /// Congestion control algorithm. Default CUBIC.
        congestion_control, with_congestion_control: CongestionControl,
        /// Largest UDP payload, bytes. Range 1200–65 507, default 1472: a packet of IPv4 is then 1500 bytes long.
        max_datagram, with_max_datagram: u16,
        /// Received data kept for the user, bytes. Range 65 536–2³⁰, default 16 MiB.
        receive_window, with_receive_window: u64,
    }
}

/// Congestion control algorithm of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// CUBIC.
    Cubic,
    /// NewReno (RFC 9002 §7).
    NewReno,
    /// BBR.
    Bbr,
    /// CUBIC of s2n-quic.
    S2nCubic,
    /// BBR version 2 of s2n-quic.
    S2nBbr,
    /// User-defined algorithm.
    Custom(CustomControllerId),
}

/// Number of a user-defined congestion control algorithm for QUIC, in the table of the program that supplies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomControllerId(pub u16);

impl Config {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { congestion_control: CongestionControl::Cubic, max_datagram: 1472, receive_window: 16 << 20 };

    /// Checks the ranges.
    ///
    /// # Errors
    /// A parameter is out of its range; the error names it.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(MIN_DATAGRAM_BYTES..=65_507).contains(&self.max_datagram) {
            return Err(ConfigError { field: "max_datagram", requirement: "1200 to 65507" });
        }
        if !((1 << 16)..=(1 << 30)).contains(&self.receive_window) {
            return Err(ConfigError { field: "receive_window", requirement: "65536 to 1073741824" });
        }
        Ok(())
    }

    /// Returns the data bytes of a full datagram.
    #[must_use]
    pub const fn mss(&self) -> u16 {
        self.max_datagram - OVERHEAD_BYTES
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Datagram between two endpoints: real bytes, even in the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// UDP payload.
    pub bytes: Bytes,
    /// ECN field of the IP packet.
    pub ecn: Ecn,
    /// Number of its data bytes. This and [`data`](Self::data) are for statistics, as no observer of an encrypted datagram could
    /// tell.
    pub data_bytes: u64,
    /// Part of its sender's stream from the first to the last data byte; more than [`data_bytes`](Self::data_bytes) if the
    /// datagram carries several pieces.
    pub data: Range<u64>,
}

impl Datagram {
    /// Returns whether it opens a connection: a client's first flight is an Initial packet in a full datagram (RFC 9000 §17.2.2,
    /// §14.1).
    #[must_use]
    pub fn is_initial(&self) -> bool {
        // Long header, fixed bit, type 0.
        self.bytes.first().is_some_and(|flags| flags & 0xf0 == 0xc0)
    }
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Datagrams with data sent, retransmissions included.
    pub segments_sent: u64,
    /// Datagrams with data that were sent before, at least in part.
    pub retransmissions: u64,
    /// Probe timeouts (RFC 9002 §6.2).
    pub timeouts: u64,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes passed to the application, or ready for it.
    pub bytes_received: u64,
    /// Datagrams with data that were all received before.
    pub duplicates_received: u64,
}

/// Reason for which an endpoint asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The earliest timer of the connection.
    Connection,
}

/// One end of a QUIC connection with a stream in each direction.
pub trait Endpoint<P: Payload>:
    Connection<P> + StateMachine<Packet = Datagram, Transmit = Datagram, Timer = Timer> + core::fmt::Debug + Send
{
    /// Returns the congestion window, bytes.
    fn cwnd(&self) -> u64;

    /// Returns the smoothed round-trip time, if there is a sample.
    fn srtt(&self) -> Option<Duration>;

    /// Returns the data bytes of a full datagram.
    fn effective_mss(&self) -> u32;

    /// Returns the counters.
    fn stats(&self) -> Stats;
}
