//! Memory that each connection has for certain.

/// Bytes of the receive window that a connection has for certain, as far as its receive buffer is no smaller.
pub(crate) const MIN_RECEIVE: u64 = 16 << 10;
/// Bytes to send that a connection may hold for certain, as far as its send buffer is no smaller.
pub(crate) const MIN_SEND: u64 = 16 << 10;
/// Unread pieces that a connection may hold for certain.
pub(crate) const MIN_PIECES: usize = 200;
/// Memory that a piece of received data takes beside its data: its header, the handle, and what the allocator adds, bytes.
pub(crate) const PIECE_OVERHEAD: u64 = 160;

/// Memory that a connection has for certain, bytes.
pub(crate) const MIN_CONNECTION_MEMORY: u64 = MIN_RECEIVE + MIN_SEND + MIN_PIECES as u64 * PIECE_OVERHEAD;
