//! Limits of a stack, and where its sequence numbers come from.

use crate::secret::Secret;
use hopline_core::{Duration, Seq32};
use hopline_transport::ConfigError;
use hopline_transport::tcp::{self, KeepAlive};
use std::net::IpAddr;

/// Bytes of the headers of IPv4 and TCP without options.
const HEADERS: u32 = 40;
/// Smallest MTU of a stack with IPv4 alone: what every host must accept (RFC 791 §3.1).
const MIN_MTU: u16 = 576;
/// Smallest MTU of a stack with IPv6 (RFC 8200 §5).
const MIN_MTU_V6: u16 = 1280;

/// Range of the memory of all connections, bytes. With the least there is room for one.
const MIN_MEMORY: u64 = 64 << 10;
const MAX_MEMORY_LIMIT: u64 = 1 << 60;
const _: () = assert!(crate::guarantee::MIN_CONNECTION_MEMORY <= MIN_MEMORY);

/// Parameters of a [`Stack`](crate::Stack).
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// TCP of every connection. Its `mss` is lowered to what `mtu` permits. Its `send_buffer` must be limited.
    pub tcp: tcp::Config,
    /// Addresses of the stack: one at least, each unicast.
    pub addresses: Vec<IpAddr>,
    /// Longest IP packet that the interface takes, bytes. 576 to 65,535; 1280 at least with an IPv6 address.
    pub mtu: u16,
    /// Connections at once, those in TIME-WAIT included, which give way to new ones. 1 to 1,048,576.
    pub max_connections: usize,
    /// Connections at once with an incomplete handshake that the peer has begun. At the limit the oldest of the address prefix with the most
    /// of them gives way. 1 to `max_connections`.
    pub max_half_open: usize,
    /// Memory of all connections together, bytes: data to send, received data, announced windows, and 160 bytes for each piece of received
    /// data. A connection takes at most half of it. One that would not have 64 KiB is refused. 65,536 at least; default 256 MiB.
    pub max_memory: u64,
    /// Keep-alive of every connection. Default `None`, as RFC 9293 §3.8.4 (MUST-25) has it.
    pub keep_alive: Option<KeepAlive>,
    /// Origin of initial sequence numbers.
    pub initial_sequence: InitialSequence,
    /// Key of ports and sequence numbers. Must be unpredictable.
    pub secret: Secret,
}

/// Origin of initial sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSequence {
    /// A clock of 4 µs, and a keyed hash of addresses and ports (RFC 6528 §3).
    Keyed,
    /// One number for all connections, for tests of wrap-around.
    Fixed(Seq32),
}

/// Reason for which a [`StackConfig`] is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackConfigError {
    /// TCP parameter out of its range.
    #[error("TCP: {0}")]
    Tcp(ConfigError),
    /// Parameter of the stack out of its range.
    #[error("`{field}` must be {must}")]
    Field {
        /// Name of the parameter.
        field: &'static str,
        /// Values that are right.
        must: &'static str,
    },
}

impl StackConfig {
    /// Send buffer of a connection where `tcp` names none, bytes.
    pub const SEND_BUFFER: u64 = 1 << 20;

    /// Memory of all connections together by default, bytes.
    pub const MAX_MEMORY: u64 = 256 << 20;

    /// A stack at `addresses` with the MTU of Ethernet, 1024 connections and 256 half-open ones.
    #[must_use]
    pub fn new(tcp: tcp::Config, addresses: Vec<IpAddr>, secret: Secret) -> Self {
        let send_buffer = tcp.send_buffer().or(Some(Self::SEND_BUFFER));
        Self {
            tcp: tcp.with_send_buffer(send_buffer),
            addresses,
            mtu: 1500,
            max_connections: 1024,
            max_half_open: 256,
            max_memory: Self::MAX_MEMORY,
            keep_alive: None,
            initial_sequence: InitialSequence::Keyed,
            secret,
        }
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), StackConfigError> {
        let usable = |ip: &IpAddr| !(ip.is_unspecified() || ip.is_multicast() || ip.is_loopback());
        let v6 = self.addresses.iter().any(IpAddr::is_ipv6);
        let rules = [
            (!self.addresses.is_empty(), "addresses", "one at least"),
            (self.addresses.iter().all(usable), "addresses", "unicast, and not of the loopback network"),
            (self.mtu >= MIN_MTU, "mtu", "576 to 65535 bytes"),
            (!v6 || self.mtu >= MIN_MTU_V6, "mtu", "1280 bytes at least with an IPv6 address"),
            ((1..=1 << 20).contains(&self.max_connections), "max_connections", "1 to 1048576"),
            (
                (1..=self.max_connections).contains(&self.max_half_open),
                "max_half_open",
                "1 to max_connections",
            ),
            (
                (MIN_MEMORY..=MAX_MEMORY_LIMIT).contains(&self.max_memory),
                "max_memory",
                "65536 bytes to 1 EiB",
            ),
            (
                self.keep_alive
                    .is_none_or(|keep| keep.idle() > Duration::ZERO && keep.interval() > Duration::ZERO),
                "keep_alive",
                "of times above zero",
            ),
            (self.tcp.send_buffer().is_some(), "tcp.send_buffer", "limited"),
        ];
        if let Some(&(_, field, must)) = rules.iter().find(|(holds, ..)| !holds) {
            return Err(StackConfigError::Field { field, must });
        }
        self.tcp.validate().map_err(StackConfigError::Tcp)
    }

    /// Returns the TCP configuration of a connection at the address `local`.
    pub(crate) fn tcp_for(&self, local: IpAddr) -> tcp::Config {
        let mss = self.tcp.mss().min(mss_for_mtu(self.mtu.into(), local));
        self.tcp.with_mss(mss)
    }
}

/// Returns the MSS for packets of `mtu` bytes between addresses of the version of `ip`.
pub(crate) const fn mss_for_mtu(mtu: u32, ip: IpAddr) -> u32 {
    mtu.saturating_sub(if ip.is_ipv4() { HEADERS } else { HEADERS + 20 })
}
