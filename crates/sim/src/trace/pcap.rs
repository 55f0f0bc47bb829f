//! A capture of everything, in pcapng: what each node sent and received, and what it dropped and why.

use super::{DropLocation, DropReason, PacketView, TraceEvent, Tracer};
use crate::packet::{Body, InnerPacket, Packet, TapFrame};
use crate::spec::Spec;
use hopline_core::{Instant, LinkId, NodeId, Seq16};
use hopline_wire::dot11::{Frame, LLC_SNAP_LEN, MacAddr};
use hopline_wire::ipv4::{HEADER_LEN, Header};
use hopline_wire::pcapng::{InterfaceId, LinkType, Writer};
use hopline_wire::{arp, dproxy, ethernet, handoff, ncn, udp};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Nodes that a capture covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureFilter {
    /// All nodes.
    All,
    /// These nodes.
    Only(BTreeSet<NodeId>),
}

impl CaptureFilter {
    /// Returns whether it includes `node`.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        match self {
            Self::All => true,
            Self::Only(nodes) => nodes.contains(&node),
        }
    }
}

/// Writes one pcapng with an interface for each node, 802.11 for radios and raw IP for nodes that have only wires. A
/// node with both has a second interface, named "… (wired)".
///
/// Frames stand at the time at which their transmission begins (sent) or ends (received). A dropped packet stands with
/// its reason as comment, at the interface where it was dropped; what the network layer of a node with both drops is on
/// the wired one; on an 802.11 interface as a data frame to no one (all zeros), since it was never sent.
///
/// A frame of a tap stands with the addresses of its radios. On wires, only its IP packets can be shown.
/// After the first write error nothing more is written; [`PcapTracer::finish`] returns it.
pub struct PcapTracer<W: Write> {
    writer: Writer<W>,
    /// Radios, by node, and by number of the radio.
    radios: Vec<Vec<InterfaceId>>,
    /// Wires, by node.
    wires: Vec<Option<InterfaceId>>,
    scratch: Vec<u8>,
    failed: io::Result<()>,
}

impl<W: Write> PcapTracer<W> {
    /// Creates a capture of all nodes of `spec`: writes the file header and their interfaces.
    ///
    /// # Errors
    /// What `out` reports.
    pub fn new(out: W, spec: &Spec) -> io::Result<Self> {
        Self::with_filter(out, spec, &CaptureFilter::All)
    }

    /// Does the same for the nodes alone that `captured` has.
    ///
    /// # Errors
    /// What `out` reports.
    pub fn with_filter(out: W, spec: &Spec, captured: &CaptureFilter) -> io::Result<Self> {
        let mut writer = Writer::new(out)?;
        let (mut radios, mut wires) = (Vec::new(), Vec::new());
        for (id, node) in (0..).map(NodeId).zip(&spec.nodes) {
            if !captured.contains(id) {
                radios.push(Vec::new());
                wires.push(None);
                continue;
            }
            let wired = spec.links.iter().any(|link| link.a == id || link.b == id);
            let mut add = |name: &str, kind| writer.add_interface(name, kind);
            let mut of_node = Vec::new();
            for number in 0..node.radio_channels.len() {
                let name = if number == 0 {
                    node.name.clone()
                } else {
                    format!("{} (radio {})", node.name, number + 1)
                };
                of_node.push(add(&name, LinkType::Ieee80211)?);
            }
            radios.push(of_node);
            wires.push(match (wired, node.is_wireless()) {
                (true, true) => Some(add(&format!("{} (wired)", node.name), LinkType::RawIp)?),
                (_, false) => Some(add(&node.name, LinkType::RawIp)?),
                (false, true) => None,
            });
        }
        Ok(Self { writer, radios, wires, scratch: Vec::new(), failed: Ok(()) })
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(self) -> io::Result<W> {
        self.failed?;
        self.writer.finish()
    }

    fn frame(
        &mut self,
        now: Instant,
        (node, link): (NodeId, LinkId),
        frame: &Frame<PacketView<'_>>,
        comment: Option<&str>,
    ) {
        self.scratch.clear();
        frame.emit_with(&mut self.scratch, |packet, out| emit_behind_llc(*packet, out));
        let radio = self.radios[node.index()].get(link.0 as usize).copied();
        self.write(radio, now, comment);
    }

    fn packet(&mut self, now: Instant, node: NodeId, packet: PacketView<'_>, comment: Option<&str>) {
        if let Body::Ethernet(TapFrame { frame, .. }) = &packet.packet.body
            && !matches!(frame.ethertype(), ethernet::IPV4 | ethernet::IPV6)
        {
            return;
        }
        self.scratch.clear();
        emit(packet, &mut self.scratch);
        self.write(self.wires[node.index()], now, comment);
    }

    fn dropped(
        &mut self,
        now: Instant,
        node: NodeId,
        packet: PacketView<'_>,
        reason: DropReason,
        place: DropLocation,
    ) {
        let comment = Some(reason.describe());
        if self.wires[node.index()].is_some() && place != DropLocation::Radio {
            self.packet(now, node, packet, comment);
        } else {
            let frame = Frame::Data {
                duration_us: 0,
                ra: MacAddr::default(),
                ta: MacAddr::of_node(node),
                sequence: Seq16(0),
                retry: false,
                body: packet,
            };
            self.frame(now, (node, LinkId::ONLY), &frame, comment);
        }
    }

    fn write(&mut self, interface: Option<InterfaceId>, now: Instant, comment: Option<&str>) {
        if let (Some(interface), Ok(())) = (interface, &self.failed) {
            self.failed = self.writer.packet(interface, now, &self.scratch, comment);
        }
    }
}

impl<W: Write + 'static> Tracer for PcapTracer<W> {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        // Without an interface it is not captured; making its bytes would be in vain.
        if self.radios[node.index()].is_empty() && self.wires[node.index()].is_none() {
            return;
        }
        match event {
            TraceEvent::FrameSent { link, frame, .. } | TraceEvent::FrameReceived { link, frame } => {
                self.frame(now, (node, link), frame, None);
            }
            TraceEvent::PacketSent { packet, .. } | TraceEvent::PacketReceived(packet) => {
                self.packet(now, node, packet, None);
            }
            TraceEvent::Dropped { packet, reason, location: place } => {
                self.dropped(now, node, packet, reason, place)
            }
            TraceEvent::Originated(_)
            | TraceEvent::Arrived(_)
            | TraceEvent::FrameLost { .. }
            | TraceEvent::Queued { .. }
            | TraceEvent::Routed { .. }
            | TraceEvent::Delivered(_)
            | TraceEvent::Signalled { .. }
            | TraceEvent::Transport { .. } => {}
        }
    }
}

/// Appends the packet's bytes behind an LLC header that announces IPv4.
fn emit_behind_llc(view: PacketView<'_>, out: &mut Vec<u8>) {
    if let Body::Ethernet(TapFrame { frame, .. }) = &view.packet.body {
        // IEEE Std 802.1AC-2016 §12.2.1: below 1536 it is a length, and the frame has an LLC header of its own.
        if frame.ethertype() < 0x600 {
            out.truncate(out.len() - LLC_SNAP_LEN);
        } else {
            out.truncate(out.len() - 2);
            out.extend(frame.ethertype().to_be_bytes());
        }
        return emit(view, out);
    }
    if let Body::Arp(message) = &view.packet.body {
        let ethertype = out.len() - 2;
        out.truncate(ethertype);
        out.extend(arp::ETHERTYPE.to_be_bytes());
        message.emit(out);
    } else {
        emit(view, out);
    }
}

/// Appends the packet's bytes, with the hops it has left and the mark it bears.
pub(crate) fn emit(PacketView { packet, ttl, ecn, inner: carried }: PacketView<'_>, out: &mut Vec<u8>) {
    let ip = Header { ttl, ecn, ..packet.ip };
    if let Body::External(opaque) = &packet.body {
        opaque.emit(ttl, ecn, out);
    } else if let Body::Ethernet(frame) = &packet.body {
        out.extend_from_slice(&frame.emit(ecn)[ethernet::HEADER_LEN..]);
    } else if let (Body::Routing { message, .. }, Some(carried)) = (&packet.body, carried) {
        let payload = payload(carried);
        ip.emit(message.wire_len() + payload.len(), out);
        message.emit(out);
        out.extend(payload);
    } else if let (Body::Link(frame), Some(carried)) = (&packet.body, carried) {
        // As the packet that it brings, if it brings one.
        if let Some(InnerPacket(inner)) = frame.packets().next() {
            let payload = payload(carried);
            Header { ttl: inner.ttl, ..carried.ip }.emit(payload.len(), out);
            out.extend(payload);
        }
    } else if let (Body::Tunnel(InnerPacket(inner)), Some(carried)) = (&packet.body, carried) {
        let inner_ip = Header { ttl: inner.ttl, ..carried.ip };
        let payload = payload(carried);
        ip.emit(HEADER_LEN + payload.len(), out);
        inner_ip.emit(payload.len(), out);
        out.extend(payload);
    } else {
        let payload = payload(packet);
        ip.emit(payload.len(), out);
        out.extend(payload);
    }
}

/// Returns the content after the IP header of a packet that carries no other.
fn payload(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    match &packet.body {
        Body::External(opaque) => out.extend_from_slice(opaque.payload()),
        Body::Ethernet(frame) => out.extend_from_slice(frame.frame.payload()),
        Body::Segment(segment) => segment.emit(&packet.ip, &mut out),
        Body::Udp { datagram, .. } => datagram.emit(&packet.ip, &mut out),
        Body::Icmp(report) => report.emit(&mut out),
        Body::Ncn(notice) => {
            let mut message = Vec::with_capacity(notice.wire_len());
            notice.emit(&mut message);
            emit_udp(&packet.ip, [ncn::PORT; 2], message, &mut out);
        }
        Body::Handoff(tagged) => {
            let mut message = Vec::with_capacity(tagged.wire_len());
            tagged.emit(&mut message);
            emit_udp(&packet.ip, [handoff::PORT; 2], message, &mut out);
        }
        Body::DProxy(sealed) => {
            let mut message = Vec::new();
            sealed.emit(&mut message);
            emit_udp(&packet.ip, [dproxy::PORT; 2], message, &mut out);
        }
        // Connections as they are here have no bytes.
        Body::Handover(_) => out.resize((packet.len_bytes as usize).saturating_sub(HEADER_LEN), 0),
        Body::Link(_) => out.resize((packet.len_bytes as usize).saturating_sub(HEADER_LEN), 0),
        // Within a frame of a link: what a tunnel carries is not at hand there.
        Body::Tunnel(_) => out.resize((packet.len_bytes as usize).saturating_sub(HEADER_LEN), 0),
        Body::Routing { message, .. } => {
            let mut bytes = Vec::with_capacity(message.wire_len());
            message.emit(&mut bytes);
            match message.port() {
                Some(port) => emit_udp(&packet.ip, [port; 2], bytes, &mut out),
                None => out = bytes,
            }
        }
        Body::Arp(_) => unreachable!("ARP has no IP header, and stays on radios"),
    }
    out
}

/// Appends a datagram that carries `payload`.
fn emit_udp(ip: &Header, [src_port, dst_port]: [u16; 2], payload: Vec<u8>, out: &mut Vec<u8>) {
    udp::Datagram { src_port, dst_port, payload: bytes::Bytes::from(payload) }.emit(ip, out);
}
