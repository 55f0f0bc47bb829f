//! Memory of all connections together.
//!
//! A connection has a few kilobytes for certain, and may take more as long as it holds less than what is free: the dynamic threshold of
//! Choudhury and Hahne ("Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Trans. Networking 6(2), 1998) with
//! α = 1. So one connection takes at most half of the limit, and a new one finds room. An announced window counts as taken, since it
//! cannot be taken back (RFC 9293 §3.8.6.2.1). Therefore a window begins small and grows with what the application reads.

use crate::connection::{Connection, ConnectionId};
use crate::guarantee::{MIN_CONNECTION_MEMORY, MIN_PIECES, MIN_RECEIVE, MIN_SEND, PIECE_OVERHEAD};
use crate::stack::Stack;
use hopline_transport::tcp::ReceiveLimits;

/// Most unread pieces, whatever memory is free.
const MAX_PIECES: usize = 8192;

/// Memory that a connection holds, or has promised to hold.
#[derive(Clone, Copy, Debug)]
struct MemoryUse {
    /// Unread bytes, and those of the announced window.
    receive: u64,
    send: u64,
    unread_pieces: usize,
    unordered_pieces: usize,
}

impl MemoryUse {
    fn of(connection: &Connection) -> Self {
        let used = connection.endpoint.receive_memory();
        let rest = connection.partial_read.as_ref().map_or(0, bytes::Bytes::len) as u64;
        Self {
            receive: used.announced + used.unread + rest,
            send: connection.endpoint.unacknowledged(),
            unread_pieces: used.unread_pieces,
            unordered_pieces: used.unordered_pieces,
        }
    }

    /// Returns the bytes that are set aside for it: what it holds, but no part less than what it has for certain while it may use that.
    fn reserved(&self, connection: &Connection) -> u64 {
        let state = connection.endpoint.state();
        let receives = state.may_receive() || state.may_send() && !connection.peer_closed;
        let (receive, pieces) = if receives { (MIN_RECEIVE, MIN_PIECES) } else { (0, 0) };
        let send = if state.may_send() { MIN_SEND } else { 0 };
        let pieces = self.unread_pieces.max(pieces) + self.unordered_pieces;
        self.receive.max(receive) + self.send.max(send) + pieces as u64 * PIECE_OVERHEAD
    }
}

impl Stack {
    /// Returns the memory that connections hold or have promised to hold, bytes: at most the configured limit.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.reserved_memory
    }

    /// Returns whether a new connection has the memory that each has for certain.
    pub(crate) fn has_memory_for_connection(&self) -> bool {
        self.reserved_memory + MIN_CONNECTION_MEMORY <= self.config.max_memory
    }

    /// Returns the bytes by which a connection may grow that has `reserved`: as many as leave free what it then has.
    fn available_memory(&self, reserved: u64) -> u64 {
        self.config.max_memory.saturating_sub(self.reserved_memory).saturating_sub(reserved) / 2
    }

    /// Returns the bytes that `send` takes now.
    pub(crate) fn send_capacity(&self, connection: &Connection) -> u64 {
        let held = connection.endpoint.unacknowledged();
        let most = held.max(MIN_SEND) + self.available_memory(connection.reserved_memory);
        connection.endpoint.send_capacity().min(most - held)
    }

    /// Sets the limits of a connection before it takes a segment or announces a window.
    pub(crate) fn apply_memory_limits(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else { return };
        let holding = MemoryUse::of(connection);
        let spare = self.available_memory(connection.reserved_memory);
        let rest = connection.partial_read.as_ref().map_or(0, bytes::Bytes::len) as u64;
        let pieces = usize::try_from(spare / PIECE_OVERHEAD).unwrap_or(usize::MAX);
        let window = connection.window.size.min(holding.receive.max(MIN_RECEIVE) + spare);
        let limits = ReceiveLimits {
            buffer: window.saturating_sub(rest),
            unread_pieces: MAX_PIECES.min(holding.unread_pieces.max(MIN_PIECES).saturating_add(pieces)),
            unordered_pieces: holding.unordered_pieces.saturating_add(pieces),
        };
        let connection = self.connections.get_mut(&id).expect("nothing was removed");
        connection.endpoint.set_receive_limits(limits);
    }

    /// Counts what a connection holds after it has changed.
    pub(crate) fn account_memory(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let holding = MemoryUse::of(connection);
        let used = connection.endpoint.receive_memory();
        let read = connection.endpoint.stats().bytes_received - used.unread;
        connection.window.grow(read, connection.endpoint.config().receive_buffer().into());
        let reserved = holding.reserved(connection);
        self.reserved_memory = self.reserved_memory - connection.reserved_memory + reserved;
        connection.reserved_memory = reserved;
    }
}
