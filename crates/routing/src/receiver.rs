//! Receiver of a transmission, as a routing agent sees it.

use std::net::Ipv4Addr;

/// Receiver of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// This node, or all.
    ThisNode,
    /// Another node: this one overhears the packet.
    Other(Ipv4Addr),
}
