//! 802.11 frames: data, RTS, CTS, ACK (IEEE 802.11-2020 §9.3).

use core::fmt;
use hopline_core::{NodeId, Seq16};

/// Length of an RTS frame with its FCS, in bytes.
pub const RTS_LEN: usize = 20;
/// Length of a CTS frame with its FCS, in bytes.
pub const CTS_LEN: usize = 14;
/// Length of an ACK frame with its FCS, in bytes.
pub const ACK_LEN: usize = 14;
/// Length of a three-address data header and FCS, in bytes.
pub const DATA_OVERHEAD: usize = 28;
/// Length of the LLC/SNAP header in front of an IP packet, in bytes.
pub const LLC_SNAP_LEN: usize = 8;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The node's default address: locally administered, 02:00 followed by the node number.
    #[must_use]
    pub const fn of_node(node: NodeId) -> Self {
        let n = node.0.to_be_bytes();
        Self([0x02, 0x00, n[0], n[1], n[2], n[3]])
    }

    /// The node whose default address this is.
    #[must_use]
    pub const fn node(self) -> Option<NodeId> {
        match self.0 {
            [0x02, 0x00, a, b, c, d] => Some(NodeId(u32::from_be_bytes([a, b, c, d]))),
            _ => None,
        }
    }

    /// Whether this is a group address.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A frame. `M` is the MSDU that a data frame carries: a handle in the simulator, bytes elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<M> {
    /// Request to send.
    Rts {
        /// Duration field in µs: what the medium stays reserved after the frame.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
    },
    /// Clear to send.
    Cts {
        /// Duration field in µs.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
    },
    /// Acknowledgment.
    Ack {
        /// Duration field in µs; 0 without fragmentation.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
    },
    /// Data, ad-hoc addressing (address 3 is the cell's BSSID).
    Data {
        /// Duration field in µs; 0 to a group.
        duration_us: u16,
        /// Receiver.
        ra: MacAddr,
        /// Transmitter.
        ta: MacAddr,
        /// 12-bit sequence number of the MSDU.
        sequence: Seq16,
        /// Set on every transmission but the first.
        retry: bool,
        /// The MSDU.
        body: M,
    },
}

impl<M> Frame<M> {
    /// Receiver address.
    #[must_use]
    pub const fn ra(&self) -> MacAddr {
        match self {
            Self::Rts { ra, .. } | Self::Cts { ra, .. } | Self::Ack { ra, .. } | Self::Data { ra, .. } => *ra,
        }
    }

    /// Duration field in µs.
    #[must_use]
    pub const fn duration_us(&self) -> u16 {
        match self {
            Self::Rts { duration_us, .. }
            | Self::Cts { duration_us, .. }
            | Self::Ack { duration_us, .. }
            | Self::Data { duration_us, .. } => *duration_us,
        }
    }
}
