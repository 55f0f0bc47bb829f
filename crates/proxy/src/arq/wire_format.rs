//! Wire format of frames.

use super::Frame;
use bytes::Bytes;
use hopline_wire::arq as wire;

impl Frame<Bytes> {
    /// Returns the frame in wire format. `None` for parity, which has no wire format.
    #[must_use]
    pub fn to_wire(&self) -> Option<wire::Frame> {
        let (epoch, body) = match self {
            Self::Data { epoch, first, number, content } => {
                (epoch, wire::Body::Data { oldest: *first, number: *number, packet: content.clone() })
            }
            Self::Ack { epoch, next, beyond } => (epoch, wire::Body::Ack { next: *next, bitmap: *beyond }),
            Self::Parity { .. } => return None,
        };
        Some(wire::Frame { epoch: *epoch, body })
    }

    /// Converts a frame from wire format.
    #[must_use]
    pub fn from_wire(frame: wire::Frame) -> Self {
        let epoch = frame.epoch;
        match frame.body {
            wire::Body::Data { oldest: first, number, packet: content } => {
                Self::Data { epoch, first, number, content }
            }
            wire::Body::Ack { next, bitmap: beyond } => Self::Ack { epoch, next, beyond },
        }
    }
}
