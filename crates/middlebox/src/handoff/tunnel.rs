//! The tunnel between a home agent and stations: IP in IP (RFC 2003).

mod numbering;
mod packet;
mod sockets;

pub(super) use numbering::Numbering;
pub(super) use packet::{Decapsulated, Inner, decapsulate, encapsulate, whole};
pub(super) use sockets::{Entrance, Exit, Sent};
