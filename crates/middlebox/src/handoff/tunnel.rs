//! The tunnel between a home agent and stations: IP in IP (RFC 2003).

mod identification;
mod packet;
mod sockets;

pub(super) use identification::IdAllocator;
pub(super) use packet::{Decapsulated, InnerHeader, decapsulate, encapsulate, parse_inner};
pub(super) use sockets::{Decapsulator, Encapsulator, SendResult};
