//! Parsers. Any bytes are parsed without a panic, and a parsed value survives emitting and parsing again.
//!
//! Checksums reject nearly all random bytes. Every format with a checksum is tried twice: unchanged, and with the correct
//! checksum.

use bytes::Bytes;
use hopline_wire::checksum::{self, ChecksumSum};
use hopline_wire::dot11;
use hopline_wire::dproxy::Sealed;
use hopline_wire::dproxy::frame::{Body, Frame, Parity};
use hopline_wire::dproxy::tunnel;
use hopline_wire::handoff::TaggedMessage;
use hopline_wire::icmp::Unreachable;
use hopline_wire::ipv4::{Ecn, Header, Protocol};
use hopline_wire::ncn::{NormalizedPb, Notice};
use hopline_wire::tcp::Segment;
use hopline_wire::tpa::{self as tpa_wire, Ports};
use hopline_wire::udp::Datagram;
use hopline_wire::{
    ParseError, aodv as routing, arp, arq as link_arq, dsr as source_routing, ethernet, ipv6 as ipv6_wire,
    olsr as link_state,
};
use std::net::Ipv4Addr;

/// IPv4 headers.
pub fn ipv4(data: &[u8]) {
    let emit = |(header, payload): &(Header, Bytes), out: &mut Vec<u8>| {
        header.emit(payload.len(), out);
        out.extend_from_slice(payload);
    };
    round_trip(data.to_vec(), Header::parse, emit);
    let header_len = data.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    if header_len >= 20 && data.len() >= header_len {
        let repaired = with_checksum(data, 10, |bytes| checksum::internet(&bytes[..header_len]));
        round_trip(repaired, Header::parse, emit);
    }
}

/// IPv6 headers with their extension headers, which are not emitted again.
pub fn ipv6(data: &[u8]) {
    let parse = |packet: &Bytes| {
        let (header, payload) = ipv6_wire::Header::parse(packet)?;
        Ok((header, packet.slice(payload)))
    };
    let emit = |(header, payload): &(ipv6_wire::Header, Bytes), out: &mut Vec<u8>| {
        header.emit(payload.len(), out);
        out.extend_from_slice(payload);
    };
    round_trip(data.to_vec(), parse, emit);
}

/// TCP segments, in a packet from 10.0.0.1 to 10.0.0.2.
pub fn tcp(data: &[u8]) {
    let ip = ip(Protocol::Tcp);
    let parse = |bytes: &Bytes| Segment::parse(&ip, bytes);
    let emit = |segment: &Segment<Bytes>, out: &mut Vec<u8>| {
        segment.emit(&ip, out);
        assert_eq!(out.len(), segment.wire_len());
    };
    round_trip(data.to_vec(), parse, emit);
    if data.len() >= 20 {
        round_trip(with_checksum(data, 16, |bytes| transport_checksum(&ip, bytes)), parse, emit);
    }
}

/// UDP datagrams, in a packet from 10.0.0.1 to 10.0.0.2.
pub fn udp(data: &[u8]) {
    let ip = ip(Protocol::Udp);
    let parse = |bytes: &Bytes| Datagram::parse(&ip, bytes);
    let emit = |datagram: &Datagram<Bytes>, out: &mut Vec<u8>| {
        datagram.emit(&ip, out);
        assert_eq!(out.len(), datagram.wire_len());
    };
    round_trip(data.to_vec(), parse, emit);
    if let [_, _, _, _, high, low, _, _, ..] = *data {
        let len = usize::from(u16::from_be_bytes([high, low])).clamp(8, data.len());
        round_trip(with_checksum(data, 6, |bytes| transport_checksum(&ip, &bytes[..len])), parse, emit);
    }
}

/// ICMP destination-unreachable messages. A parsed one has the length of every such message, and can be generated for the
/// packet that it quotes.
pub fn icmp(data: &[u8]) {
    let emit = |report: &Unreachable, out: &mut Vec<u8>| {
        report.emit(out);
        assert_eq!(out.len(), Unreachable::LEN);
        assert_eq!(Unreachable::for_packet(report.reason, &out[8..]), Ok(*report));
    };
    round_trip(data.to_vec(), Unreachable::parse, emit);
    if data.len() >= 4 {
        round_trip(with_checksum(data, 2, checksum::internet), Unreachable::parse, emit);
    }
}

/// TPA segments, over UDP and native. Over UDP a parsed segment is also emitted as the same bytes.
pub fn tpa(data: &[u8]) {
    let parse = |bytes: &Bytes| tpa_wire::Segment::parse_udp(bytes);
    let emit = |segment: &tpa_wire::Segment<Bytes>, out: &mut Vec<u8>| {
        segment.emit_udp(out);
        assert_eq!(out.len(), segment.udp_len());
    };
    round_trip(data.to_vec(), parse, emit);
    if let Ok(segment) = parse(&Bytes::copy_from_slice(data)) {
        let mut out = Vec::new();
        emit(&segment, &mut out);
        assert_eq!(out, without_ignored(data, &segment));
    }

    let ip = ip(tpa_wire::PROTOCOL);
    let parse = |bytes: &Bytes| tpa_wire::Segment::parse_native(&ip, bytes);
    let emit = |(ports, segment): &(Ports, tpa_wire::Segment<Bytes>), out: &mut Vec<u8>| {
        segment.emit_native(&ip, *ports, out);
    };
    round_trip(data.to_vec(), parse, emit);
    if data.len() >= tpa_wire::NATIVE_HEADER_LEN {
        round_trip(with_checksum(data, 14, |bytes| transport_checksum(&ip, bytes)), parse, emit);
    }
}

/// Returns the bytes of a TPA segment over UDP, with zeros in the fields that its parser ignores.
fn without_ignored(data: &[u8], segment: &tpa_wire::Segment<Bytes>) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if segment.ack.is_none() {
        for at in [1, 3, 6, 11] {
            bytes[at] = 0;
        }
        bytes[5] &= 0xf0;
    }
    if segment.opening.is_some() {
        let end = segment.udp_header_len();
        bytes[end - 3..end].fill(0);
    }
    bytes
}

/// 802.11 frames.
pub fn dot11(data: &[u8]) {
    round_trip(data.to_vec(), dot11::Frame::parse, dot11::Frame::emit);
    let with_fcs = [data, &checksum::crc32(data).to_le_bytes()].concat();
    round_trip(with_fcs, dot11::Frame::parse, dot11::Frame::emit);
}

/// AODV messages.
pub fn aodv(data: &[u8]) {
    let emit = |message: &routing::Message, out: &mut Vec<u8>| {
        message.emit(out);
        assert_eq!(out.len(), message.wire_len());
    };
    round_trip(data.to_vec(), |bytes| routing::Message::parse(bytes), emit);
}

/// OLSR packets: unchanged, and with the correct packet length.
pub fn olsr(data: &[u8]) {
    let emit = |packet: &link_state::Packet, out: &mut Vec<u8>| {
        packet.emit(out);
        assert_eq!(out.len(), packet.wire_len());
    };
    let parse = |bytes: &Bytes| link_state::Packet::parse(bytes);
    round_trip(data.to_vec(), parse, emit);
    if let (Ok(len), [_, _, rest @ ..]) = (u16::try_from(data.len()), data) {
        round_trip([&len.to_be_bytes(), rest].concat(), parse, emit);
    }
}

/// DSR Options headers: unchanged, and with the correct options length.
pub fn dsr(data: &[u8]) {
    let emit = |(header, _): &(source_routing::Header, usize), out: &mut Vec<u8>| {
        header.emit(out);
        assert_eq!(out.len(), header.wire_len());
    };
    // Padding is not kept, so the emitted header may be shorter, or longer where less was needed.
    let parse = |bytes: &Bytes| source_routing::Header::parse(bytes).map(|(header, _)| (header, 0));
    round_trip(data.to_vec(), parse, emit);
    let options = data.len().saturating_sub(source_routing::FIXED_LEN);
    if let (Ok(len), [next, flags, _, _, rest @ ..]) = (u16::try_from(options), data) {
        round_trip([&[*next, *flags], &len.to_be_bytes()[..], rest].concat(), parse, emit);
    }
}

/// ARP requests and replies. Bytes after a message are not kept.
pub fn arp(data: &[u8]) {
    round_trip(data.to_vec(), |bytes| arp::Message::parse(bytes), arp::Message::emit);
}

/// Ethernet frames. A congestion mark changes neither the length nor the flow, and can be set again.
pub fn ethernet(data: &[u8]) {
    round_trip(data.to_vec(), ethernet::Frame::parse, |frame, out| out.extend_from_slice(frame.bytes()));
    let Ok(frame) = ethernet::Frame::parse(&Bytes::copy_from_slice(data)) else { return };
    let marked = ethernet::Frame::parse(&frame.with_congestion_mark()).expect("the addresses are unchanged");
    assert_eq!(marked.bytes().len(), data.len());
    let as_marked = |fields| ethernet::IpFields { ecn: Ecn::CongestionExperienced, ..fields };
    assert_eq!(marked.ip_fields(), frame.ip_fields().map(as_marked));
    assert_eq!(marked.with_congestion_mark(), marked.bytes());
}

/// Notices of Neighborhood RED. Bytes after a notice, and reserved bytes, are not kept.
pub fn ncn(data: &[u8]) {
    let emit = |notice: &Notice, out: &mut Vec<u8>| {
        notice.emit(out);
        assert_eq!(out.len(), notice.wire_len());
    };
    round_trip(data.to_vec(), |bytes| Notice::parse(bytes), emit);
    if let Ok(notice) = Notice::parse(data) {
        let share = notice.normalized_pb.get();
        assert!((0.0..=1.0).contains(&share));
        assert_eq!(NormalizedPb::of(share), notice.normalized_pb);
    }
}

/// Messages of base stations, home agents and mobile hosts. Bytes after a message, and reserved bytes, are not kept.
pub fn handoff(data: &[u8]) {
    let emit = |tagged: &TaggedMessage, out: &mut Vec<u8>| {
        tagged.emit(out);
        assert_eq!(out.len(), tagged.wire_len());
    };
    round_trip(data.to_vec(), |bytes| TaggedMessage::parse(bytes), emit);
}

/// Messages of D-Proxy. A parsed message is emitted as the same bytes.
pub fn dproxy(data: &[u8]) {
    if let Ok(sealed) = Sealed::parse(data) {
        let mut out = Vec::new();
        sealed.emit(&mut out);
        assert_eq!(out, data);
    }
}

/// Frames of links on which the ends number the packets. A parsed frame is emitted as the same bytes. Parity yields only
/// packets that it covers.
pub fn dproxy_frame(data: &[u8]) {
    let Ok(frame) = Frame::parse(&Bytes::copy_from_slice(data)) else { return };
    let mut out = Vec::new();
    frame.emit(&mut out);
    assert_eq!((out.as_slice(), out.len()), (data, frame.wire_len()));
    if let Body::Parity(parity) = &frame.body
        && let Some(made) = parity.recover(core::iter::empty())
    {
        assert_eq!(Parity::over(parity.first, [&made[..]].into_iter()).map(|made| made.count), Some(1));
        assert!(made.len() <= parity.bytes.len());
    }
}

/// Datagrams between the ends of a tunnel. A parsed datagram is emitted as the same bytes.
pub fn dproxy_tunnel(data: &[u8]) {
    if let Ok(datagram) = tunnel::Datagram::parse(&Bytes::copy_from_slice(data)) {
        let mut out = Vec::new();
        datagram.emit(&mut out);
        assert_eq!((out.as_slice(), out.len()), (data, datagram.wire_len()));
    }
}

/// Frames of links with an acknowledgment of each frame. A parsed frame is emitted as the same bytes.
pub fn arq_frame(data: &[u8]) {
    if let Ok(frame) = link_arq::Frame::parse(&Bytes::copy_from_slice(data)) {
        let mut out = Vec::new();
        frame.emit(&mut out);
        assert_eq!((out.as_slice(), out.len()), (data, frame.wire_len()));
    }
}

/// Checks that a value parsed from `data` is the same after `emit` and `parse`.
fn round_trip<T: PartialEq + core::fmt::Debug>(
    data: Vec<u8>,
    parse: impl Fn(&Bytes) -> Result<T, ParseError>,
    emit: impl Fn(&T, &mut Vec<u8>),
) {
    if let Ok(value) = parse(&Bytes::from(data)) {
        let mut out = Vec::new();
        emit(&value, &mut out);
        assert_eq!(parse(&Bytes::from(out)), Ok(value));
    }
}

fn ip(protocol: Protocol) -> Header {
    let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    Header { src, dst, ttl: 64, protocol, ecn: Ecn::NotCapable, id: 0 }
}

/// Returns `data` with the 16-bit checksum at `at` computed over the rest.
fn with_checksum(data: &[u8], at: usize, checksum: impl Fn(&[u8]) -> u16) -> Vec<u8> {
    let mut bytes = data.to_vec();
    bytes[at..at + 2].fill(0);
    let right = checksum(&bytes);
    bytes[at..at + 2].copy_from_slice(&right.to_be_bytes());
    bytes
}

fn transport_checksum(ip: &Header, bytes: &[u8]) -> u16 {
    let mut sum = ChecksumSum::pseudo_header(ip, bytes.len());
    sum.add(bytes);
    sum.finish()
}
