//! Parameters of a host stack.

use crate::gateway::{Destination, ListenerConfig};
use hopline_stack::{Secret, StackConfig};
use hopline_transport::tcp::{self, KeepAlive};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// Parameters of a [`HostStack`](super::HostStack).
#[derive(Clone, Debug)]
pub struct HostStackConfig {
    /// Name of the TUN interface, at most 15 bytes. A `%d` in it is replaced by the first free number.
    pub interface: String,
    /// Parameters of the stack: TCP, addresses, MTU, limits.
    pub stack: StackConfig,
    /// Listeners by which programs of this host reach the stack: forwards and SOCKS.
    pub listeners: Vec<ListenerConfig>,
    /// Ports at which the stack accepts connections.
    pub accept: Vec<AcceptPort>,
    /// Buffer for each direction of a connection between the kernel's TCP and the stack's, in bytes. Default 64 KiB.
    pub buffer: usize,
    /// Timeout of a SOCKS negotiation. Default 10 s.
    pub negotiation_timeout: Duration,
    /// Timeout of a connection attempt, over all addresses of the peer. Default 30 s.
    pub connect_timeout: Duration,
}

/// A port of the stack, and the destination of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptPort {
    /// Port of the stack.
    pub port: u16,
    /// Destination of its connections, over the kernel's TCP.
    pub to: Destination,
}

impl HostStackConfig {
    /// Returns a stack with the TCP parameters `tcp` at `addresses`, without listeners for programs, and with a new
    /// secret.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(tcp: tcp::Config, addresses: Vec<IpAddr>) -> io::Result<Self> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let stack = StackConfig::new(tcp, addresses, Secret(secret));
        Ok(Self {
            interface: "hopline%d".into(),
            // The stack is the application of its connections: the programs behind it do not see the peer (RFC 9293
            // §3.8.4).
            stack: StackConfig { keep_alive: Some(KeepAlive::DEFAULT), ..stack },
            listeners: Vec::new(),
            accept: Vec::new(),
            buffer: 64 << 10,
            negotiation_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(30),
        })
    }
}
