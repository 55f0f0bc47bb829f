//! What a host counts whatever it speaks.

/// Datagrams of a host since it was made, of all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received, whatever they were.
    pub received: u64,
    /// Handed to the kernel.
    pub sent: u64,
    /// Not taken by the kernel: no route, not permitted. They count as lost on the way.
    pub send_failures: u64,
    /// Connections that came into being because a peer opened them.
    pub accepted: u64,
    /// Connections now, those included that were dropped and are not over.
    pub connections: usize,
}
