//! Bodies of packets that reach a middlebox. Their bytes become packets of the simulator and back.

use super::FilterMiddlebox;
use crate::ids::{Interface, Port, StationId};
use crate::middlebox::{Action, Middlebox, MiddleboxPacket, PacketDirection, PassingPacket, PathVerdict};
use crate::middlebox_slot::MiddleboxKind;
use crate::packet::{Body, FlowPacketId, Handle, Mark, Packet, PacketAccount, PacketRole};
use crate::proxy::{CachedSegment, new_middlebox};
use crate::spec::{MobileSide, ProxyKind, ProxySpec};
use crate::trace::PacketView;
use bytes::Bytes;
use hopline_core::{Instant, Length, LinkId, NodeId};
use hopline_proxy::driver::Counts;
use hopline_proxy::snoop::{Config, Stats, WindowedSnoop};
use hopline_proxy::{Pep, Side};
use hopline_queue::Class;
use hopline_testkit::middlebox::{Arrived, CASES, IPV4, MiddleboxPath};
use hopline_transport::any::Segment;
use hopline_wire::checksum::ChecksumSum;
use hopline_wire::dot11::MacAddr;
use hopline_wire::ipv4::{HEADER_LEN, Header};
use hopline_wire::tcp;
use std::collections::BTreeMap;

/// Damaged checksums, fragments, datagrams and segments that are cut short: a packet of the simulator has no
/// bytes that could be wrong.
const NEEDS_BYTES: [&str; 1] = ["what_is_no_whole_segment_passes_untouched"];

#[test]
fn every_case_holds_that_needs_no_bytes() {
    let held = CASES.into_iter().filter(|(name, _)| !NEEDS_BYTES.contains(name)).map(|(name, body)| {
        println!("{name}");
        body(&mut FilterHarness::new());
    });
    assert_eq!(held.count(), CASES.len() - NEEDS_BYTES.len(), "what is left out is among the cases");
}

/// Snoop at a seat, as a scenario has it.
struct FilterHarness {
    middlebox: Box<FilterMiddlebox<WindowedSnoop<CachedSegment>>>,
    packets: u32,
    counts: Counts,
    arrived: Arrived,
    /// The data that have come from the fixed host, by their first number: here they are lengths.
    data: BTreeMap<u32, Bytes>,
}

impl FilterHarness {
    fn new() -> Self {
        let kind = ProxyKind::Snoop(Config::modern());
        let spec = ProxySpec { node: STATION, mobile: MobileSide::Radios, kind };
        let MiddleboxKind::Snoop(seat) = new_middlebox((0, &spec), None, (0, 0)) else {
            unreachable!("it is Snoop")
        };
        let (counts, arrived) = Default::default();
        Self { middlebox: seat, packets: 0, counts, arrived, data: BTreeMap::new() }
    }

    /// A packet comes from a side.
    fn receive(&mut self, now: Instant, from: Side, bytes: &[u8]) {
        let packet = self.packet_of(now, bytes);
        let (ip, len) = (packet.ip, bytes.len());
        let handle = Handle { id: self.packets, ttl: ip.ttl, mark: Mark::None };
        self.packets += 1;
        let view = PacketView { packet: &packet, ttl: ip.ttl, inner: None, ecn: ip.ecn };
        let passing = |onward| PassingPacket { handle, onward, view };
        let passage = match from {
            Side::Fixed => {
                self.counts.to_mobile += 1;
                self.middlebox.handle_egress(now, passing(TO_MOBILE), IPV4[1])
            }
            Side::Mobile => {
                self.counts.from_mobile += 1;
                self.middlebox.handle_ingress(now, passing(FROM_MOBILE))
            }
        };
        match passage {
            PathVerdict::Pass => self.record_arrival(from.other(), bytes.to_vec()),
            PathVerdict::Rewritten(segment) => {
                self.counts.rewritten += 1;
                let rewritten = self.bytes_of(&ip, segment, len);
                self.record_arrival(from.other(), rewritten);
            }
            // It says by a wish what becomes of it.
            PathVerdict::Held => {}
            PathVerdict::Marked | PathVerdict::Dropped(_) => {
                unreachable!("no machine here does that: {passage:?}")
            }
        }
        self.perform_actions(now);
    }

    /// Does what the machine wants.
    fn perform_actions(&mut self, now: Instant) {
        while let Some(wish) = self.middlebox.poll_action(now) {
            match wish {
                Action::Absorb(handle) => {
                    assert_eq!(handle.id + 1, self.packets, "the packet that came last");
                    self.counts.absorbed += 1;
                }
                Action::Send(sending) => {
                    self.counts.sent_to_mobile += 1;
                    self.send(Side::Mobile, sending);
                }
                Action::Route(sending) => {
                    self.counts.sent_to_fixed += 1;
                    self.send(Side::Fixed, sending);
                }
                other => unreachable!("no machine here wants that: {other:?}"),
            }
        }
    }

    fn send(&mut self, to: Side, MiddleboxPacket { ip, body, len_bytes, .. }: MiddleboxPacket) {
        let Body::Segment(segment) = body else { unreachable!("machines here send segments: {body:?}") };
        let bytes = self.bytes_of(&ip, segment, len_bytes as usize);
        self.record_arrival(to, bytes);
    }

    fn record_arrival(&mut self, at: Side, bytes: Vec<u8>) {
        match at {
            Side::Fixed => self.arrived.fixed.push(bytes),
            Side::Mobile => self.arrived.mobile.push(bytes),
        }
    }

    /// Returns a packet of the simulator for these bytes, and remembers its data.
    fn packet_of(&mut self, now: Instant, bytes: &[u8]) -> Packet {
        let (ip, segment) = Header::parse(&bytes.to_vec().into()).expect("an IPv4 packet");
        let segment = tcp::Segment::parse(&ip, &segment).expect("a segment with a right checksum");
        if !segment.payload.is_empty() {
            self.data.insert(segment.seq.0, segment.payload.clone());
        }
        let length = Length(segment.payload.len() as u64);
        let body = Body::Segment(Segment::Tcp(with_payload(length, &segment)));
        let (len_bytes, serial) = (bytes.len() as u32, self.packets.into());
        let original = FlowPacketId { number: serial, made: now };
        Packet {
            ip,
            body,
            len_bytes,
            account: PacketAccount::External,
            made: now,
            original,
            role: PacketRole::Original,
            serial,
        }
    }

    /// The bytes of a packet of the simulator that is so long: what is missing there was taken out, and is filled up.
    fn bytes_of(&self, ip: &Header, segment: Segment<Length>, len: usize) -> Vec<u8> {
        let Segment::Tcp(segment) = segment else { unreachable!("it is TCP: {segment:?}") };
        let data = if segment.payload.0 == 0 { Bytes::new() } else { self.data[&segment.seq.0].clone() };
        assert_eq!(data.len() as u64, segment.payload.0, "packets go out again as they came");
        let segment = with_payload(data, &segment);
        let filling = len - HEADER_LEN - segment.wire_len();
        let mut bytes = Vec::new();
        ip.emit(segment.wire_len() + filling, &mut bytes);
        segment.emit(ip, &mut bytes);
        if filling > 0 {
            assert!(segment.payload.is_empty(), "only ACKs are changed");
            add_nops(ip, &mut bytes, filling);
        }
        bytes
    }
}

impl MiddleboxPath for FilterHarness {
    fn handle_packets(&mut self, now: Instant, from: Side, packets: &[Vec<u8>], arrivals: usize) -> Arrived {
        packets.iter().for_each(|packet| self.receive(now, from, packet));
        if self.middlebox.poll_timeout().is_some_and(|due| due <= now) {
            self.middlebox.handle_timeout(now);
            self.perform_actions(now);
        }
        let arrived = std::mem::take(&mut self.arrived);
        assert_eq!(arrived.fixed.len() + arrived.mobile.len(), arrivals, "{:?}", self.counts);
        arrived
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn stats(&self) -> Stats {
        self.middlebox.machine.stats().middlebox
    }
}

const STATION: NodeId = NodeId(1);
const RADIO: Port = Port { link: LinkId(0), interface: Interface::Radio(StationId(0)) };
const TO_MOBILE: PacketDirection = PacketDirection::Out {
    at: RADIO,
    to: MacAddr([2, 0, 0, 0, 0, 2]),
    class: Class::Data,
    next_hop: IPV4[1],
};
const FROM_MOBILE: PacketDirection = PacketDirection::In { at: RADIO, from: NodeId(2) };

/// The segment with other data.
fn with_payload<P, Q>(payload: P, segment: &tcp::Segment<Q>) -> tcp::Segment<P> {
    let tcp::Segment { src_port, dst_port, seq, ack, flags, window, urgent, options, ecn, .. } = *segment;
    tcp::Segment { src_port, dst_port, seq, ack, flags, window, urgent, options, ecn, payload }
}

/// Appends `filling` NOPs to the options of an ACK under this IP header, and adjusts the header length and
/// the checksum.
fn add_nops(ip: &Header, packet: &mut Vec<u8>, filling: usize) {
    packet.resize(packet.len() + filling, 1);
    let segment = &mut packet[HEADER_LEN..];
    segment[12] = (segment.len() / 4 * 16) as u8;
    segment[16..18].fill(0);
    let mut sum = ChecksumSum::pseudo_header(ip, segment.len());
    sum.add(segment);
    segment[16..18].copy_from_slice(&sum.finish().to_be_bytes());
}
