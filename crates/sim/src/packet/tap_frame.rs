//! Ethernet frames as bodies of packets.

use bytes::Bytes;
use hopline_core::NodeId;
use hopline_wire::ethernet::Frame;
use hopline_wire::ip::Ecn;

/// An Ethernet frame that came in at a tap. The IP header of its packet has the addresses and the ECN field of an IP packet
/// in it; without one, the addresses are unspecified.
#[derive(Clone, Debug)]
pub struct TapFrame {
    /// The frame.
    pub frame: Frame,
    /// Ports of TCP and UDP, which tell flows apart; else zeros.
    pub(crate) ports: [u16; 2],
    /// Node at which it came in.
    pub(crate) tap: NodeId,
}

impl TapFrame {
    /// Returns the frame's bytes as they leave, with this ECN field.
    pub(crate) fn emit(&self, ecn: Ecn) -> Bytes {
        match (ecn, self.frame.ip_fields()) {
            (Ecn::CongestionExperienced, Some(fields)) if fields.ecn != ecn => {
                self.frame.with_congestion_mark()
            }
            _ => self.frame.bytes().clone(),
        }
    }
}
