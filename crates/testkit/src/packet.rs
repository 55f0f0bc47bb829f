//! Operations on packets to carry, damage and print them.

use bytes::Bytes;
use hopline_core::{Length, Payload, RandomStream};
use hopline_transport::quic;
use hopline_wire::ipv4::{self, Protocol};
use hopline_wire::tcp::{DoorOption, Flags};
use hopline_wire::tpa::{Bitmap, Control, TxStat};
use hopline_wire::{tcp, tpa, udp, wide};
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Packet that the emulated link can carry.
pub trait Packet: Clone {
    /// Returns the length on the link, bytes.
    fn link_len(&self) -> usize;

    /// Returns the packet as the far end parses it from bytes. Panics if it differs.
    #[must_use]
    fn through_bytes(self) -> Self;

    /// Returns the packet with a bit flipped, if the far end would still accept it.
    #[must_use]
    fn corrupted(&self, random: &mut RandomStream) -> Option<Self>;

    /// Returns the packet with an ECN mark; unchanged if it cannot be marked.
    #[must_use]
    fn marked(self) -> Self {
        self
    }

    /// Returns a description of one line.
    fn describe(&self) -> String;
}

/// Implements `Packet` for a packet of which only the length is known. It does not change on the wire, and is never damaged:
/// without bytes there is no checksum that could fail to detect it.
macro_rules! length_only {
    ($segment:ty, $link_len:expr) => {
        impl Packet for $segment {
            fn link_len(&self) -> usize {
                $link_len(self)
            }

            fn through_bytes(self) -> Self {
                self
            }

            fn corrupted(&self, _random: &mut RandomStream) -> Option<Self> {
                None
            }

            fn describe(&self) -> String {
                self.to_line()
            }
        }
    };
}

length_only!(tcp::Segment<Length>, |s: &tcp::Segment<Length>| ipv4::HEADER_LEN + s.wire_len());
length_only!(tpa::Segment<Length>, |s: &tpa::Segment<Length>| ipv4::HEADER_LEN
    + udp::HEADER_LEN
    + s.udp_len());

length_only!(wide::Packet<Length>, |s: &wide::Packet<Length>| ipv4::HEADER_LEN
    + udp::HEADER_LEN
    + s.sealed_len());

impl Packet for tcp::Segment<Bytes> {
    fn link_len(&self) -> usize {
        ipv4::HEADER_LEN + self.wire_len()
    }

    fn through_bytes(self) -> Self {
        let ip = ipv4::Header { ecn: self.ecn, ..header(Protocol::Tcp) };
        let mut out = Vec::new();
        self.emit(&ip, &mut out);
        let parsed = Self::parse(&ip, &Bytes::from(out)).expect("what was emitted can be parsed");
        assert_eq!(parsed, self, "a segment changes on the wire");
        parsed
    }

    fn marked(mut self) -> Self {
        if self.ecn != ipv4::Ecn::NotCapable {
            self.ecn = ipv4::Ecn::CongestionExperienced;
        }
        self
    }

    fn corrupted(&self, random: &mut RandomStream) -> Option<Self> {
        let ip = ipv4::Header { ecn: self.ecn, ..header(Protocol::Tcp) };
        let mut out = Vec::new();
        self.emit(&ip, &mut out);
        Self::parse(&ip, &with_flipped_bit(out, random)).ok()
    }

    fn describe(&self) -> String {
        self.to_line()
    }
}

/// Segment of TPA over UDP. The UDP checksum detects damage.
impl Packet for tpa::Segment<Bytes> {
    fn link_len(&self) -> usize {
        ipv4::HEADER_LEN + udp::HEADER_LEN + self.udp_len()
    }

    fn through_bytes(self) -> Self {
        let mut out = Vec::new();
        self.emit_udp(&mut out);
        let parsed = Self::parse_udp(&Bytes::from(out)).expect("what was emitted can be parsed");
        assert_eq!(parsed, self, "a segment changes on the wire");
        parsed
    }

    fn corrupted(&self, random: &mut RandomStream) -> Option<Self> {
        let mut payload = Vec::new();
        self.emit_udp(&mut payload);
        let mut out = Vec::new();
        let datagram =
            udp::Datagram { src_port: tpa::PORT, dst_port: tpa::PORT, payload: Bytes::from(payload) };
        datagram.emit(&header(Protocol::Udp), &mut out);
        let damaged = with_flipped_bit(out, random);
        let datagram = udp::Datagram::parse(&header(Protocol::Udp), &damaged).ok()?;
        Self::parse_udp(&datagram.payload).ok()
    }

    fn describe(&self) -> String {
        self.to_line()
    }
}

/// Packet of TPA-wide, which is sealed: a damaged packet is not accepted.
impl Packet for wide::Packet<Bytes> {
    fn link_len(&self) -> usize {
        ipv4::HEADER_LEN + udp::HEADER_LEN + self.sealed_len()
    }

    fn through_bytes(self) -> Self {
        let mut out = Vec::new();
        self.emit_inner(&mut out);
        let mut parsed =
            Self::parse_inner(self.number, &Bytes::from(out)).expect("what was emitted can be parsed");
        parsed.ecn = self.ecn;
        assert_eq!(parsed, self, "a packet changes on the wire");
        parsed
    }

    fn marked(mut self) -> Self {
        if self.ecn != ipv4::Ecn::NotCapable {
            self.ecn = ipv4::Ecn::CongestionExperienced;
        }
        self
    }

    fn corrupted(&self, _random: &mut RandomStream) -> Option<Self> {
        None
    }

    fn describe(&self) -> String {
        self.to_line()
    }
}

/// Datagram of QUIC. The far end gets a damaged one as it is: its tag is wrong.
impl Packet for quic::Datagram {
    fn link_len(&self) -> usize {
        ipv4::HEADER_LEN + udp::HEADER_LEN + self.bytes.len()
    }

    fn through_bytes(self) -> Self {
        self
    }

    fn marked(mut self) -> Self {
        if self.ecn != ipv4::Ecn::NotCapable {
            self.ecn = ipv4::Ecn::CongestionExperienced;
        }
        self
    }

    fn corrupted(&self, random: &mut RandomStream) -> Option<Self> {
        Some(Self { bytes: with_flipped_bit(self.bytes.to_vec(), random), ..self.clone() })
    }

    fn describe(&self) -> String {
        let kind = match self.bytes.first() {
            Some(flags) if flags & 0x80 == 0 => "1-RTT",
            Some(flags) if flags & 0x30 == 0 => "Initial",
            _ => "Handshake",
        };
        format!("{kind} {} bytes, data {:?}", self.bytes.len(), self.data)
    }
}

fn with_flipped_bit(mut bytes: Vec<u8>, random: &mut RandomStream) -> Bytes {
    let bit = random.below(bytes.len() as u32 * 8);
    bytes[bit as usize / 8] ^= 1 << (bit % 8);
    Bytes::from(bytes)
}

/// Description of a segment in one line.
trait Line {
    fn to_line(&self) -> String;
}

impl<P: Payload> Line for tcp::Segment<P> {
    fn to_line(&self) -> String {
        describe(self)
    }
}

impl<P: Payload> Line for tpa::Segment<P> {
    fn to_line(&self) -> String {
        describe_tpa(self)
    }
}

impl<P: Payload> Line for wide::Packet<P> {
    fn to_line(&self) -> String {
        describe_wide(self)
    }
}

fn header(protocol: Protocol) -> ipv4::Header {
    ipv4::Header {
        src: Ipv4Addr::new(10, 0, 0, 1),
        dst: Ipv4Addr::new(10, 0, 0, 2),
        ttl: 64,
        protocol,
        ecn: ipv4::Ecn::NotCapable,
        id: 0,
    }
}

/// Describes a segment in one line, similar to tcpdump: flags, sequence range, ACK, window, options.
#[must_use]
pub fn describe<P: Payload>(segment: &tcp::Segment<P>) -> String {
    let mut text = flag_letters(segment.flags);
    let len = segment.payload.len();
    let _ = write!(text, " {}", segment.seq);
    if len > 0 {
        let _ = write!(text, ":{}({len})", segment.seq + len as u32);
    }
    if segment.flags.contains(Flags::ACK) {
        let _ = write!(text, " ack {}", segment.ack);
    }
    let _ = write!(text, " win {}", segment.window);
    let options = &segment.options;
    if let Some(mss) = options.mss {
        let _ = write!(text, " mss {mss}");
    }
    if let Some(shift) = options.window_scale {
        let _ = write!(text, " wscale {shift}");
    }
    if options.sack_permitted {
        text.push_str(" sackOK");
    }
    if let Some(ts) = options.timestamps {
        let _ = write!(text, " ts {}/{}", ts.value, ts.echo);
    }
    if let Some(door) = options.door {
        describe_door(&mut text, door);
    }
    for block in options.sack.as_slice() {
        let _ = write!(text, " sack {}-{}", block.left, block.right);
    }
    text
}

fn describe_door(text: &mut String, door: DoorOption) {
    match door {
        DoorOption::Malformed => text.push_str(" door ?"),
        DoorOption::Offer(f) => {
            let can = [(f.adsn, "adsn"), (f.tpsn, "tpsn"), (f.feedback, "feedback")];
            let names: Vec<_> = can.iter().filter(|(has, _)| *has).map(|&(_, name)| name).collect();
            let _ = write!(text, " door {}", names.join("+"));
        }
        DoorOption::Report(report) => {
            if let Some(adsn) = report.adsn {
                let _ = write!(text, " adsn {adsn}");
            }
            if let Some(tpsn) = report.tpsn {
                let _ = write!(text, " tpsn {tpsn}");
            }
            text.push_str(if report.out_of_order { " ooo" } else { "" });
        }
    }
}

/// Returns `S`, `F`, `R`, `P` as set, or `.`.
#[must_use]
pub fn flag_letters(flags: Flags) -> String {
    let all = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::AE, 'A'),
    ];
    let letters: String =
        all.iter().filter(|(flag, _)| flags.contains(*flag)).map(|&(_, letter)| letter).collect();
    if letters.is_empty() { ".".into() } else { letters }
}

/// Describes a segment in one line: `S`, `F` or `R`, or the position in its block; transmission number; acknowledgment.
/// Example: `131:9 (1460) tx 12 ack 7:[0-3 5] tx 4`. `!` marks a congested sender, `.` after a position the end of the
/// block.
#[must_use]
pub fn describe_tpa<P: Payload>(segment: &tpa::Segment<P>) -> String {
    let mut text = match segment.control {
        Control::None => String::new(),
        Control::Syn => "S ".into(),
        Control::Fin => "F ".into(),
        Control::Rst => "R ".into(),
        Control::Challenge(_) => "challenge ".into(),
        Control::Echo(_) => "echo ".into(),
        Control::StatelessReset => "stray ".into(),
    };
    if let Some(place) = segment.position {
        let end = if place.is_last { "." } else { "" };
        let (block, position, tx) = (segment.block, place.position, segment.tx);
        let _ = write!(text, "{block}:{position}{end} ({}) tx {tx} ", segment.payload.len());
    }
    if let Some(ack) = segment.ack {
        let _ = write!(text, "ack {}:{} tx {} ", ack.block as i16, ranges(ack.bitmap), ack.tx);
    }
    if segment.tx_stat == TxStat::Congested {
        text.push_str("! ");
    }
    text.truncate(text.trim_end().len());
    text
}

/// Describes a packet in one line: its number, its kind, data as `offset(length)`, acknowledged ranges, the highest first.
/// Example: `#17 2874(1437) ack 9-12 4-7 upto 5748`. `.` after a length is the end of the stream.
#[must_use]
pub fn describe_wide<P: Payload>(packet: &wide::Packet<P>) -> String {
    let mut text = format!("#{}", packet.number);
    text.push_str(if packet.opening.is_some() { " open" } else { "" });
    text.push_str(match packet.control {
        wide::Control::None => "",
        wide::Control::Reset => " reset",
        wide::Control::Ping => " ping",
    });
    if let Some(data) = &packet.data {
        let end = if data.end == wide::StreamEnd::Yes { "." } else { "" };
        let _ = write!(text, " {}({}){end}", data.offset, data.payload.len());
    }
    if let Some(ack) = &packet.ack {
        text.push_str(" ack");
        for span in &ack.ranges {
            let _ = if span.first == span.last {
                write!(text, " {}", span.last)
            } else {
                write!(text, " {}-{}", span.first, span.last)
            };
        }
        let _ = write!(text, " upto {}", ack.cumulative);
    }
    text
}

/// Returns positions as ranges, such as `[0-3 5]`.
fn ranges(bitmap: Bitmap) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for position in bitmap.positions() {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == position => *last = position,
            _ => runs.push((position, position)),
        }
    }
    let run = |&(first, last): &(u8, u8)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    format!("[{}]", runs.iter().map(run).collect::<Vec<_>>().join(" "))
}
