//! What the kit must know about a packet to carry, damage and print it.

use bytes::Bytes;
use hopline_core::{Length, Payload, Stream};
use hopline_wire::ipv4;
use hopline_wire::tcp::{Flags, Segment};
use std::fmt::Write;
use std::net::Ipv4Addr;

/// A packet that the emulated link can carry.
pub trait Packet: Clone {
    /// Length on the link, in bytes.
    fn link_len(&self) -> usize;

    /// The packet as the far end would parse it from bytes. Panics if it is not the same.
    #[must_use]
    fn through_bytes(self) -> Self;

    /// The packet with a bit flipped, if the far end would still accept it.
    #[must_use]
    fn corrupted(&self, random: &mut Stream) -> Option<Self>;

    /// One line for people.
    fn describe(&self) -> String;
}

impl Packet for Segment<Length> {
    fn link_len(&self) -> usize {
        ipv4::HEADER_LEN + self.wire_len()
    }

    fn through_bytes(self) -> Self {
        self
    }

    /// Without bytes there is no checksum to fool: the far end drops it.
    fn corrupted(&self, _random: &mut Stream) -> Option<Self> {
        None
    }

    fn describe(&self) -> String {
        describe(self)
    }
}

impl Packet for Segment<Bytes> {
    fn link_len(&self) -> usize {
        ipv4::HEADER_LEN + self.wire_len()
    }

    fn through_bytes(self) -> Self {
        let mut out = Vec::new();
        self.emit(&header(), &mut out);
        let parsed = Self::parse(&header(), &Bytes::from(out)).expect("what was emitted can be parsed");
        assert_eq!(parsed, self, "a segment changes on the wire");
        parsed
    }

    fn corrupted(&self, random: &mut Stream) -> Option<Self> {
        let mut out = Vec::new();
        self.emit(&header(), &mut out);
        let bit = random.below(out.len() as u32 * 8);
        out[bit as usize / 8] ^= 1 << (bit % 8);
        Self::parse(&header(), &Bytes::from(out)).ok()
    }

    fn describe(&self) -> String {
        describe(self)
    }
}

fn header() -> ipv4::Header {
    ipv4::Header {
        src: Ipv4Addr::new(10, 0, 0, 1),
        dst: Ipv4Addr::new(10, 0, 0, 2),
        ttl: 64,
        protocol: ipv4::Protocol::Tcp,
        ecn: ipv4::Ecn::NotCapable,
        id: 0,
    }
}

/// A segment in one line, much like tcpdump: flags, sequence range, ACK, window, options.
#[must_use]
pub fn describe<P: Payload>(segment: &Segment<P>) -> String {
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
    for block in options.sack.as_slice() {
        let _ = write!(text, " sack {}-{}", block.left, block.right);
    }
    text
}

/// `S`, `F`, `R`, `P` as set, or `.`.
#[must_use]
pub fn flag_letters(flags: Flags) -> String {
    let letters: String = [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P')]
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|&(_, letter)| letter)
        .collect();
    if letters.is_empty() { ".".into() } else { letters }
}
