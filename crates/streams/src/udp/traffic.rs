//! Datagram counters of a host, for any protocol.

/// Datagrams of all connections of a host since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received datagrams of any kind.
    pub received: u64,
    /// Datagrams passed to the kernel.
    pub sent: u64,
    /// Datagrams that the kernel rejected: no route, or not permitted. They count as lost on the path.
    pub send_failures: u64,
    /// Connections that peers opened.
    pub accepted: u64,
    /// Current connections, including dropped ones that have not ended.
    pub connections: usize,
}
