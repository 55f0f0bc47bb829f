//! Memory that each connection has for certain.

/// Bytes of the receive window that a connection has for certain, as far as its receive buffer is no smaller.
pub(crate) const LEAST_RECEIVE: u64 = 16 << 10;
/// Bytes to send that a connection may hold for certain, as far as its send buffer is no smaller.
pub(crate) const LEAST_SEND: u64 = 16 << 10;
/// Unread pieces that a connection may hold for certain.
pub(crate) const LEAST_PIECES: usize = 200;
/// Memory that a piece of received data takes beside its data: its header, the handle, and what the allocator adds, bytes.
pub(crate) const PIECE: u64 = 160;

/// Memory that a connection has for certain, bytes.
pub(crate) const LEAST: u64 = LEAST_RECEIVE + LEAST_SEND + LEAST_PIECES as u64 * PIECE;
