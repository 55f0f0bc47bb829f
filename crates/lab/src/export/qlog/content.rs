//! Content of segments, in the terms of qlog. A new transport is a variant here.

use super::events::{Extension, Frame, QuicFields, TcpFields, TpaFields, WideFields};
use hopline_core::{Length, Payload, Seq32};
use hopline_transport::any::Segment;
use hopline_transport::quic::Datagram;
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::Flags;
use hopline_wire::wide::StreamEnd;
use hopline_wire::{tcp, tpa, wide};
use std::collections::BTreeMap;
use std::ops::Range;

/// Unit of delayed acknowledgment of TPA-wide, milliseconds.
const WIDE_ACK_DELAY_MS: f64 = 0.016;
/// Units of a TPA block: more than it has positions.
const TPA_BLOCK_UNITS: u64 = 16;
/// Number of blocks for which offsets are kept, for late segments.
const TPA_KEPT_BLOCKS: u64 = 64;

/// Content of a segment.
#[derive(Debug)]
pub(super) struct Content {
    /// The transport's own packet number, if it has any.
    pub(super) number: Option<u64>,
    /// Units that it takes; empty if it is not acknowledged.
    pub(super) units: Range<u64>,
    /// Frames apart from the acknowledgment.
    pub(super) frames: Vec<Frame>,
    pub(super) ack: Option<Acknowledgment>,
    pub(super) extension: Extension,
    /// `true` if it ends the connection at once.
    pub(super) is_reset: bool,
}

/// Acknowledgment in a segment.
#[derive(Debug, Default)]
pub(super) struct Acknowledgment {
    /// All units below are acknowledged.
    pub(super) below: u64,
    /// Units beyond that are acknowledged.
    pub(super) blocks: Vec<Range<u64>>,
    /// Frame of a transport that acknowledges packet numbers.
    pub(super) frame: Option<Frame>,
}

/// Numbering of one direction of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// TCP: initial sequence number, and the highest unit so far.
    tcp: Option<(Seq32, u64)>,
    /// TPA: last block, unwrapped.
    block: u64,
    /// TPA: offset in the stream by unit, and that of the next data.
    offsets: BTreeMap<u64, u64>,
    next_offset: u64,
}

impl Numbering {
    /// Returns the unit of a sequence number of TCP, if the connection has begun.
    fn unit(&mut self, seq: Seq32) -> Option<u64> {
        let (iss, highest) = self.tcp.as_mut()?;
        let near = *iss + *highest as u32;
        let distance = i64::from(seq.0.wrapping_sub(near.0) as i32);
        let unit = highest.saturating_add_signed(distance);
        *highest = unit.max(*highest);
        Some(unit)
    }

    /// Returns the number of a TPA block, unwrapped.
    fn unwrap_block(&mut self, block: u16) -> u64 {
        let distance = i64::from(block.wrapping_sub(self.block as u16) as i16);
        self.block = self.block.saturating_add_signed(distance).max(self.block);
        let last = self.block as i64;
        (last + i64::from(block.wrapping_sub(last as u16) as i16)).max(0) as u64
    }

    /// Takes over the offset of the data of a TPA segment from the numbering of their sender, which has sent them in order.
    pub(super) fn learn_offset(&mut self, segment: &Segment<Length>, sender: &Self) {
        if let Segment::Tpa { segment, .. } = segment
            && let Some(position) = segment.position
        {
            let unit = self.unwrap_block(segment.block) * TPA_BLOCK_UNITS + u64::from(position.position);
            if let Some(&offset) = sender.offsets.get(&unit) {
                self.offsets.insert(unit, offset);
                self.next_offset = self.next_offset.max(offset + segment.payload.len());
            }
        }
    }

    /// Returns the offset of the data of a TPA segment: that of their first transmission.
    fn offset(&mut self, unit: u64, len: u64) -> u64 {
        if let Some(&offset) = self.offsets.get(&unit) {
            return offset;
        }
        let offset = self.next_offset;
        self.offsets.insert(unit, offset);
        self.next_offset += len;
        let oldest = unit.saturating_sub(TPA_KEPT_BLOCKS * TPA_BLOCK_UNITS);
        while self.offsets.first_key_value().is_some_and(|(&unit, _)| unit < oldest) {
            self.offsets.pop_first();
        }
        offset
    }
}

/// Returns the content of a segment. `own`: numbering of its direction; `other`: of the other one.
pub(super) fn content(segment: &Segment<Length>, own: &mut Numbering, other: &mut Numbering) -> Content {
    match segment {
        Segment::Tcp(segment) => of_tcp(segment, own, other),
        Segment::Tpa { segment, .. } => of_tpa(segment, own, other),
        Segment::Wide { packet, .. } => of_wide(packet),
        Segment::Quic { datagram, .. } => of_quic(datagram),
    }
}

const RESET: Frame = Frame::ConnectionClose { error_space: "transport", reason: "reset" };

fn stream(offset: u64, length: u64, fin: bool) -> Frame {
    Frame::Stream { stream_id: 0, offset, length, fin }
}

const fn ecn_name(ecn: Ecn) -> Option<&'static str> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable1 => Some("ECT(1)"),
        Ecn::Capable0 => Some("ECT(0)"),
        Ecn::CongestionExperienced => Some("CE"),
    }
}

fn of_tcp(segment: &tcp::Segment<Length>, own: &mut Numbering, other: &mut Numbering) -> Content {
    let has = |flag| segment.flags.contains(flag);
    if has(Flags::SYN) {
        own.tcp.get_or_insert((segment.seq, 0));
    }
    let is_reset = has(Flags::RST);
    // A reset takes no sequence numbers, and its own need not be near the others.
    let first = if is_reset { None } else { own.unit(segment.seq) };
    let units = first.map_or(0..0, |first| first..first + u64::from(segment.seq_len()));
    let len = segment.payload.len();
    let mut frames = Vec::new();
    if has(Flags::SYN) {
        frames.push(Frame::Ping);
    }
    if let Some(first) = first
        && (len > 0 || has(Flags::FIN))
    {
        let offset = (first + u64::from(has(Flags::SYN))).saturating_sub(1);
        frames.push(stream(offset, len, has(Flags::FIN)));
    }
    if is_reset {
        frames.push(RESET);
    }
    let below = if has(Flags::ACK) && !is_reset { other.unit(segment.ack) } else { None };
    // A negative acknowledgment lists what is missing.
    let blocks = if segment.options.nack { &[][..] } else { segment.options.sack.as_slice() };
    let blocks = blocks.iter().filter_map(|block| Some(other.unit(block.left)?..other.unit(block.right)?));
    let blocks: Vec<_> = blocks.collect();
    let fields = TcpFields {
        flags: flag_names(segment.flags),
        seq: first.unwrap_or_default(),
        ack: below,
        window: segment.window,
        sack: blocks.iter().map(|block| [block.start, block.end]).collect(),
        ecn: ecn_name(segment.ecn),
    };
    let ack = below.map(|below| Acknowledgment { below, blocks, frame: None });
    Content { number: None, units, frames, ack, extension: Extension::Tcp(fields), is_reset }
}

fn flag_names(flags: Flags) -> String {
    const NAMES: [(Flags, &str); 8] = [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::URG, "URG"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
    ];
    let set = NAMES.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| *name);
    set.collect::<Vec<_>>().join(",")
}

fn of_tpa(segment: &tpa::Segment<Length>, own: &mut Numbering, other: &mut Numbering) -> Content {
    let mut frames = Vec::new();
    let mut units = 0..0;
    let is_fin = segment.control == tpa::Control::Fin;
    if let Some(position) = segment.position {
        let unit = own.unwrap_block(segment.block) * TPA_BLOCK_UNITS + u64::from(position.position);
        units = unit..unit + 1;
        let len = segment.payload.len();
        frames.push(stream(own.offset(unit, len), len, is_fin));
    }
    let is_reset = matches!(segment.control, tpa::Control::Rst | tpa::Control::StatelessReset);
    match segment.control {
        tpa::Control::Syn | tpa::Control::Challenge(_) | tpa::Control::Echo(_) => frames.push(Frame::Ping),
        tpa::Control::Rst | tpa::Control::StatelessReset => frames.push(RESET),
        tpa::Control::None | tpa::Control::Fin => {}
    }
    let ack = segment.ack.map(|ack| {
        // A block begins when the one before it is complete.
        let below = other.unwrap_block(ack.block) * TPA_BLOCK_UNITS;
        let blocks = ack.bitmap.positions().map(|position| {
            let unit = below + u64::from(position);
            unit..unit + 1
        });
        Acknowledgment { below, blocks: blocks.collect(), frame: None }
    });
    let fields = TpaFields {
        block: segment.block,
        position: segment.position.map(|position| position.position),
        tx: segment.tx,
        ack_block: segment.ack.map(|ack| ack.block),
        ack_bitmap: segment.ack.map(|ack| ack.bitmap.bits()),
    };
    Content { number: None, units, frames, ack, extension: Extension::Tpa(fields), is_reset }
}

fn of_quic(datagram: &Datagram) -> Content {
    let data = datagram.data.clone();
    let frame = if data.is_empty() { Frame::Ping } else { stream(data.start, datagram.data_bytes, false) };
    let fields = QuicFields { is_initial: datagram.is_initial(), ecn: ecn_name(datagram.ecn) };
    Content {
        number: None,
        units: data,
        frames: vec![frame],
        ack: None,
        extension: Extension::Quic(fields),
        is_reset: false,
    }
}

fn of_wide(packet: &wide::Packet<Length>) -> Content {
    let mut frames = Vec::new();
    if let Some(data) = &packet.data {
        frames.push(stream(data.offset, data.payload.len(), data.end == StreamEnd::Yes));
    }
    if packet.opening.is_some() || packet.control == wide::Control::Ping {
        frames.push(Frame::Ping);
    }
    let is_reset = packet.control == wide::Control::Reset;
    if is_reset {
        frames.push(RESET);
    }
    let number = packet.number;
    let units = if packet.is_ack_eliciting() { number..number + 1 } else { 0..0 };
    let ack = packet.ack.as_deref().map(|ack| {
        frames.push(Frame::MaxData { maximum: ack.max_data });
        let acked_ranges: Vec<_> = ack.ranges.iter().rev().map(|range| [range.first, range.last]).collect();
        let blocks = acked_ranges.iter().map(|&[first, last]| first..last + 1).collect();
        let ack_delay = Some(f64::from(ack.delay) * WIDE_ACK_DELAY_MS);
        Acknowledgment { below: 0, blocks, frame: Some(Frame::Ack { ack_delay, acked_ranges }) }
    });
    let fields =
        WideFields { cumulative: packet.ack.as_ref().map(|ack| ack.cumulative), ecn: ecn_name(packet.ecn) };
    let extension = Extension::TpaWide(fields);
    Content { number: Some(number), units, frames, ack, extension, is_reset }
}
