//! Access to the packets in a queue: properties that the queue needs, and actions on packets.

use crate::drop_tail::Class;

/// The owner of the packets, of which a queue holds handles only.
pub trait PacketAccess<T> {
    /// Returns its class. Routing messages are never dropped or marked early.
    fn class(&self, packet: &T) -> Class;

    /// Returns its length in bytes.
    fn len_bytes(&self, packet: &T) -> u32;

    /// Returns whether it may be marked.
    fn capability(&self, packet: &T) -> EcnCapability;

    /// Returns a number that packets of one flow and direction share, and packets of other flows hardly ever.
    fn flow(&self, packet: &T) -> u64;

    /// Marks it as Congestion Experienced (CE).
    fn mark(&mut self, packet: &mut T);

    /// Handles a packet that was dropped at the head of the queue as a congestion signal.
    fn dropped(&mut self, packet: T);
}

/// ECN capability of a packet (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCapability {
    /// ECT(0): ECN-capable transport.
    Capable,
    /// ECT(1), the identifier of low-latency (L4S) traffic, or CE: marked already, which counts as L4S (RFC 9331 §5.1).
    L4s,
    /// Transport without ECN.
    NotCapable,
}

/// Action on a packet chosen to signal congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalAction {
    /// Drop.
    Drop,
    /// Mark if the transport is ECN-capable, else drop (RFC 3168 §5).
    Mark,
}

impl SignalAction {
    /// Returns whether a packet of this capability is marked rather than dropped.
    #[must_use]
    pub fn marks(self, capability: EcnCapability) -> bool {
        self == Self::Mark && capability != EcnCapability::NotCapable
    }
}

/// Packets for tests.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A packet, and whether it was marked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Packet {
        pub(crate) number: u32,
        pub(crate) len_bytes: u32,
        pub(crate) flow: u64,
        pub(crate) class: Class,
        pub(crate) capability: EcnCapability,
        pub(crate) mark: bool,
    }

    /// A packet of data of 1000 bytes that cannot be marked.
    pub(crate) const fn data(number: u32) -> Packet {
        let (class, capability) = (Class::Data, EcnCapability::NotCapable);
        Packet { number, len_bytes: 1000, flow: 0, class, capability, mark: false }
    }

    pub(crate) const fn routing(number: u32) -> Packet {
        Packet { class: Class::Routing, ..data(number) }
    }

    /// Records the calls.
    #[derive(Debug, Default)]
    pub(crate) struct Owner {
        pub(crate) marked: Vec<u32>,
        pub(crate) dropped: Vec<u32>,
    }

    impl PacketAccess<Packet> for Owner {
        fn class(&self, packet: &Packet) -> Class {
            packet.class
        }

        fn len_bytes(&self, packet: &Packet) -> u32 {
            packet.len_bytes
        }

        fn capability(&self, packet: &Packet) -> EcnCapability {
            packet.capability
        }

        fn flow(&self, packet: &Packet) -> u64 {
            packet.flow
        }

        fn mark(&mut self, packet: &mut Packet) {
            packet.mark = true;
            self.marked.push(packet.number);
        }

        fn dropped(&mut self, packet: Packet) {
            self.dropped.push(packet.number);
        }
    }
}
