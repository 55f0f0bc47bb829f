//! Packets within packets.

use hopline_wire::checksum;
use hopline_wire::handoff::PacketId;
use hopline_wire::ipv4::{HEADER_LEN, Header, Protocol};
use std::net::Ipv4Addr;

/// Destination and identification of a packet that has come out of the tunnel. It may be a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InnerHeader {
    /// Whom it is for.
    pub(crate) to: Ipv4Addr,
    /// Its source and identification.
    pub(crate) id: PacketId,
}

/// Result of decapsulation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decapsulated<'a> {
    /// A packet, as it is to go on.
    Packet(InnerHeader, &'a [u8]),
    /// A packet without ECN that was marked as congested in the tunnel. It is dropped (RFC 6040 §4.2).
    Congested,
    /// A packet from another source than the tunnel's entrance.
    WrongSource,
    /// No IPv4 packet in another one.
    Malformed,
}

/// `CE`, `ECT(1)` and `Not-ECT` (RFC 3168 §5).
const CONGESTED: u8 = 0b11;
const CAPABLE_1: u8 = 0b01;
const NOT_CAPABLE: u8 = 0b00;

/// Offsets of the fields of an IPv4 header, in bytes.
mod at {
    pub(super) const TOS: usize = 1;
    pub(super) const TOTAL: usize = 2;
    pub(super) const ID: usize = 4;
    pub(super) const CHECKSUM: usize = 10;
    pub(super) const SOURCE: usize = 12;
    pub(super) const DESTINATION: usize = 16;
}

/// The packet to which an IPv4 header stands at the front of `bytes`, without what was padded; `None`: there is no whole one.
pub(crate) fn parse_inner(bytes: &[u8]) -> Option<(InnerHeader, &[u8])> {
    let header_len = usize::from(bytes.first()? & 0xf) * 4;
    let total = usize::from(number(bytes.get(..HEADER_LEN)?, at::TOTAL));
    if bytes[0] >> 4 != 4 || header_len < HEADER_LEN || total < header_len {
        return None;
    }
    let packet = bytes.get(..total)?;
    let id = PacketId { source: address(packet, at::SOURCE), id: number(packet, at::ID) };
    Some((InnerHeader { to: address(packet, at::DESTINATION), id }, packet))
}

/// Puts a packet into another one. The kernel fills in the outer checksum and identification.
pub(crate) fn encapsulate(src: Ipv4Addr, dst: Ipv4Addr, ttl: u8, packet: &[u8], out: &mut Vec<u8>) {
    out.clear();
    Header { src, dst, ttl, protocol: Protocol::Ipv4, ecn: Default::default(), id: 0 }
        .emit(packet.len(), out);
    // RFC 6040 §4.1; DSCP goes with it (RFC 2983 §3.1, uniform).
    out[at::TOS] = packet[at::TOS];
    out.extend_from_slice(packet);
}

/// Takes a packet out of another one, which must come from `from`.
pub(crate) fn decapsulate(outer: &mut [u8], from: Ipv4Addr) -> Decapsulated<'_> {
    let Some(&first) = outer.first() else { return Decapsulated::Malformed };
    let header_len = usize::from(first & 0xf) * 4;
    if header_len < HEADER_LEN || outer.len() < header_len {
        return Decapsulated::Malformed;
    }
    if address(outer, at::SOURCE) != from {
        return Decapsulated::WrongSource;
    }
    let mark = outer[at::TOS] & 0b11;
    let inner = &mut outer[header_len..];
    if parse_inner(inner).is_none() {
        return Decapsulated::Malformed;
    }
    // RFC 6040 §4.2, figure 4.
    match (inner[at::TOS] & 0b11, mark) {
        (NOT_CAPABLE, CONGESTED) => return Decapsulated::Congested,
        (inner_mark, CONGESTED) if inner_mark != CONGESTED => set_mark(inner, CONGESTED),
        (0b10, CAPABLE_1) => set_mark(inner, CAPABLE_1),
        _ => {}
    }
    let (what, packet) = parse_inner(inner).expect("it was whole, and only its mark has changed");
    Decapsulated::Packet(what, packet)
}

/// Writes an identification.
pub(super) fn set_identification(packet: &mut [u8], id: u16) {
    packet[at::ID..at::ID + 2].copy_from_slice(&id.to_be_bytes());
    renew_checksum(packet);
}

fn set_mark(packet: &mut [u8], mark: u8) {
    packet[at::TOS] = packet[at::TOS] & !0b11 | mark;
    renew_checksum(packet);
}

fn renew_checksum(packet: &mut [u8]) {
    let header_len = (usize::from(packet[0] & 0xf) * 4).clamp(HEADER_LEN, packet.len());
    packet[at::CHECKSUM..at::CHECKSUM + 2].fill(0);
    let sum = checksum::internet(&packet[..header_len]);
    packet[at::CHECKSUM..at::CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_wire::ipv4::Ecn;
    use proptest::prelude::*;

    const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 0, 0, 9);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    const INNER: InnerHeader = InnerHeader { to: HOST, id: PacketId { source: HOME, id: 77 } };

    fn packet(ecn: Ecn) -> Vec<u8> {
        let header = Header { src: HOME, dst: HOST, ttl: 9, protocol: Protocol::Udp, ecn, id: 77 };
        let mut packet = Vec::new();
        header.emit(3, &mut packet);
        packet.extend(b"abc");
        packet
    }

    /// Returns the mark of a packet after the tunnel, given its mark before and the mark set in the tunnel. `None`: dropped.
    fn through(inner: Ecn, on_the_way: Option<Ecn>) -> Option<u8> {
        let (before, mut outer) = (packet(inner), Vec::new());
        encapsulate(HOME, GROUP, 64, &before, &mut outer);
        assert_eq!(outer[1] & 0b11, inner.bits(), "RFC 6040 §4.1");
        if let Some(mark) = on_the_way {
            set_mark(&mut outer, mark.bits());
        }
        match decapsulate(&mut outer, HOME) {
            Decapsulated::Packet(what, after) => {
                assert_eq!(what, INNER);
                assert_eq!(checksum::internet(&after[..20]), 0);
                assert_eq!(&after[20..], b"abc");
                Some(after[1] & 0b11)
            }
            Decapsulated::Congested => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn encapsulated_packets_are_decapsulated_unchanged() {
        let (before, mut outer) = (packet(Ecn::NotCapable), Vec::new());
        encapsulate(HOME, GROUP, 64, &before, &mut outer);
        assert_eq!((outer.len(), outer[9]), (before.len() + 20, 4));
        assert_eq!(decapsulate(&mut outer, HOME), Decapsulated::Packet(INNER, &before));
    }

    #[test]
    fn congestion_marks_survive_the_tunnel() {
        use Ecn::{Capable0, Capable1, CongestionExperienced as Congested, NotCapable};
        for mark in [NotCapable, Capable0, Capable1, Congested] {
            assert_eq!(through(mark, None), Some(mark.bits()));
        }
        assert_eq!(through(Capable0, Some(Congested)), Some(Congested.bits()));
        assert_eq!(through(Capable1, Some(Congested)), Some(Congested.bits()));
        assert_eq!(through(Capable0, Some(Capable1)), Some(Capable1.bits()));
        assert_eq!(through(NotCapable, Some(Congested)), None, "it is dropped");
        assert_eq!(through(Congested, Some(NotCapable)), Some(Congested.bits()));
    }

    #[test]
    fn wrong_sources_and_malformed_packets_are_distinguished() {
        let mut outer = Vec::new();
        encapsulate(HOST, GROUP, 64, &packet(Ecn::NotCapable), &mut outer);
        assert_eq!(decapsulate(&mut outer, HOME), Decapsulated::WrongSource);
        assert_eq!(decapsulate(&mut outer[..30], HOST), Decapsulated::Malformed, "cut short");
        assert_eq!(decapsulate(&mut [], HOST), Decapsulated::Malformed);
        outer[20] = 0x65;
        assert_eq!(decapsulate(&mut outer, HOST), Decapsulated::Malformed, "IPv6 within");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), outer: bool) {
            if outer && bytes.len() >= 20 {
                bytes[0] = 0x45;
                bytes[12..16].copy_from_slice(&HOME.octets());
            }
            let before = bytes.len();
            if let Decapsulated::Packet(_, packet) = decapsulate(&mut bytes, HOME) {
                prop_assert!(packet.len() >= 20 && packet.len() <= before - 20);
            }
        }
    }
}
