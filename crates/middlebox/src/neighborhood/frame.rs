//! Frames of neighbours: their sender, its IP address, and notices.

use bytes::Bytes;
use hopline_linux::frames::{BROADCAST, HEADER_LEN, IPV4};
use hopline_queue::neighborhood_red::Destination;
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::{self, Ecn, Protocol};
use hopline_wire::ncn::Notice;
use hopline_wire::{arp, udp};
use std::net::Ipv4Addr;

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Transmitter of the frame on this hop.
    pub from: MacAddr,
    /// Relevant content of the frame.
    pub content: FrameContent,
}

/// Relevant content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameContent {
    /// No relevant content.
    Nothing,
    /// IPv4 address of the transmitter, from an ARP message.
    Address(Ipv4Addr),
    /// A notice.
    Notice {
        /// IPv4 source address.
        from: Ipv4Addr,
        /// The notice.
        notice: Notice,
    },
    /// A malformed packet to the port of notices, or one that was forwarded.
    Malformed,
}

impl Frame {
    /// Parses the beginning of an Ethernet frame. Notices have UDP source and destination port `port`. `None` if the
    /// frame is truncated or its source is a group address.
    #[must_use]
    pub fn of(frame: &[u8], port: u16) -> Option<Self> {
        let (header, rest) = frame.split_first_chunk::<HEADER_LEN>()?;
        let [_, _, _, _, _, _, a, b, c, d, e, f, high, low] = *header;
        let from = MacAddr([a, b, c, d, e, f]);
        let says = match u16::from_be_bytes([high, low]) {
            arp::ETHERTYPE => address(from, rest),
            IPV4 if is_for_port(rest, port) => notice(rest, port).unwrap_or(FrameContent::Malformed),
            _ => FrameContent::Nothing,
        };
        (a & GROUP == 0).then_some(Self { from, content: says })
    }
}

/// Group bit of a MAC address.
const GROUP: u8 = 1;

/// Returns the sender's IP address of an ARP request or reply, if the sender is the transmitter of the frame.
fn address(from: MacAddr, message: &[u8]) -> FrameContent {
    match arp::Message::parse(message) {
        Ok(arp::Message { sender: (mac, ip), .. }) if mac == from => FrameContent::Address(ip),
        _ => FrameContent::Nothing,
    }
}

/// Returns whether a packet is addressed to `port`. This quick check precedes full parsing.
fn is_for_port(packet: &[u8], port: u16) -> bool {
    let header_len = packet.first().map_or(0, |&first| 4 * usize::from(first & 0xf));
    let to = packet.get(header_len + 2..header_len + 4);
    packet.get(9) == Some(&Protocol::Udp.number()) && to == Some(&port.to_be_bytes()[..])
}

fn notice(packet: &[u8], port: u16) -> Option<FrameContent> {
    let (ip, payload) = ipv4::Header::parse(&Bytes::copy_from_slice(packet)).ok()?;
    let datagram = udp::Datagram::parse(&ip, &payload).ok()?;
    let notice = Notice::parse(&datagram.payload).ok()?;
    (ip.ttl == ONE_HOP && datagram.src_port == port).then_some(FrameContent::Notice { from: ip.src, notice })
}

/// TTL of notices, which are not forwarded.
const ONE_HOP: u8 = 1;

/// Returns the frame with a notice of this node. The packet has the format of the simulator.
pub(super) fn encode_notice(
    from: (MacAddr, Ipv4Addr),
    to: (MacAddr, Destination),
    notice: &Notice,
    port: u16,
) -> Vec<u8> {
    let dst = match to.1 {
        Destination::Neighbour(neighbour) => neighbour,
        Destination::AllNeighbours => Ipv4Addr::BROADCAST,
    };
    let mut payload = Vec::with_capacity(notice.wire_len());
    notice.emit(&mut payload);
    let ip =
        ipv4::Header { src: from.1, dst, ttl: ONE_HOP, protocol: Protocol::Udp, ecn: Ecn::NotCapable, id: 0 };
    let datagram = udp::Datagram { src_port: port, dst_port: port, payload: Bytes::from(payload) };
    let mut frame = [to.0.0, from.0.0].concat();
    frame.extend(IPV4.to_be_bytes());
    ip.emit(datagram.wire_len(), &mut frame);
    datagram.emit(&ip, &mut frame);
    frame
}

/// Broadcast destination for a notice.
pub(super) const ALL: (MacAddr, Destination) = (BROADCAST, Destination::AllNeighbours);

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::Duration;
    use hopline_wire::ncn::{NormalizedPb, PORT, StarvedNode};

    const HERE: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));

    fn notice() -> Notice {
        Notice {
            normalized_pb: NormalizedPb::of(5e-4),
            lifetime: Duration::from_secs(2),
            starved_node: StarvedNode::Sender,
        }
    }

    fn frame() -> Vec<u8> {
        encode_notice(HERE, ALL, &notice(), PORT)
    }

    #[test]
    fn the_encoding_of_a_notice_is_stable() {
        let expected = [
            &[0xff; 6][..],            // to all
            &[2, 0, 0, 0, 0, 1],       // from here
            &[0x08, 0x00],             // IPv4
            &[0x45, 0, 0, 36],         // 36 bytes
            &[0, 0, 0x40, 0, 1, 17],   // whole, one hop, UDP
            &[0x6f, 0xc9],             // the header's checksum
            &[10, 0, 0, 1],            // from
            &[255, 255, 255, 255],     // to
            &[0x03, 0xfe, 0x03, 0xfe], // port 1022
            &[0, 16, 0x20, 0x45],      // 16 bytes, and the checksum
            &[1, 0, 0x07, 0xd0],       // a notice, for 2000 ms
            &[0x00, 0x20, 0xc4, 0x9c], // 0.0005
        ]
        .concat();
        assert_eq!(frame(), expected);
    }

    #[test]
    fn notices_round_trip() {
        let says = FrameContent::Notice { from: HERE.1, notice: notice() };
        assert_eq!(Frame::of(&frame(), PORT), Some(Frame { from: HERE.0, content: says }));
        // Ethernet pads short frames.
        let filled = [&frame()[..], &[0; 10]].concat();
        assert_eq!(Frame::of(&filled, PORT).unwrap().content, says);
        assert_eq!(
            Frame::of(&frame(), 4000).unwrap().content,
            FrameContent::Nothing,
            "notices have another port there"
        );
    }

    #[test]
    fn malformed_notices_are_ignored() {
        for at in [14 + 8, 14 + 10, 14 + 20, 14 + 26, 14 + 28, 14 + 33] {
            let mut frame = frame();
            frame[at] ^= 2;
            assert_eq!(Frame::of(&frame, PORT).unwrap().content, FrameContent::Malformed, "byte {at}");
        }
        for len in 14 + 24..frame().len() {
            assert_eq!(
                Frame::of(&frame()[..len], PORT).unwrap().content,
                FrameContent::Malformed,
                "{len} bytes"
            );
        }
        assert_eq!((Frame::of(&[], PORT), Frame::of(&[0; 13], PORT)), (None, None));
        let mut group = frame();
        group[6] |= GROUP;
        assert_eq!(Frame::of(&group, PORT), None);
    }

    #[test]
    fn an_address_is_accepted_only_from_its_owner() {
        let message = |sender| {
            let mut frame = [BROADCAST.0, HERE.0.0].concat();
            frame.extend(arp::ETHERTYPE.to_be_bytes());
            let target = (MacAddr([0; 6]), Ipv4Addr::new(10, 0, 0, 2));
            arp::Message { operation: arp::Operation::Request, sender, target }.emit(&mut frame);
            Frame::of(&frame, PORT).unwrap().content
        };
        assert_eq!(message(HERE), FrameContent::Address(HERE.1));
        assert_eq!(message((MacAddr([2, 0, 0, 0, 0, 9]), HERE.1)), FrameContent::Nothing);
    }
}
