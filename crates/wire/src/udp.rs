//! UDP datagrams (RFC 768).

/// Length of a header, in bytes.
pub const HEADER_LEN: usize = 8;

/// A datagram: ports and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Datagram<P> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Data.
    pub payload: P,
}
