//! Captures in pcapng: one interface per node, nanosecond timestamps, packet comments.

use hopline_core::Instant;
use std::io::{self, Write};

/// Block types (draft-ietf-opsawg-pcapng §4.1 to §4.3).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Byte-order magic: numbers are little-endian (§4.1).
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const VERSION_MAJOR: u16 = 1;
const VERSION_MINOR: u16 = 0;
/// Unspecified length of the section (§4.1).
const UNKNOWN_SECTION_LENGTH: u64 = u64::MAX;
/// Unlimited snapshot length: packets are never truncated (§4.2).
const NO_SNAP_LENGTH: u32 = 0;

/// Option codes: §3.5, §4.1 and §4.2.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const USER_APPLICATION: u16 = 4;
const IF_TSRESOL: u16 = 9;

/// Timestamp resolution of 10⁻⁹ s (if_tsresol).
const NANOSECONDS: u8 = 9;
/// Longest option: its length field has 16 bits.
const MAX_OPTION_LEN: usize = 0xffff;

/// First header of the packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkType {
    /// 105: an 802.11 header, and a frame check sequence at the end.
    Ieee80211,
    /// 101: an IP header.
    RawIp,
}

/// An interface of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(u32);

/// Writer of one capture. The same calls give the same bytes on every machine. Every block is one write; pass a
/// buffered `W`.
///
/// # Example
///
/// ```
/// use hopline_core::Instant;
/// use hopline_wire::ip::{Header, Protocol};
/// use hopline_wire::pcapng::{LinkType, Writer};
///
/// let mut capture = Writer::new(Vec::new())?;
/// let interface = capture.add_interface("node 0", LinkType::RawIp)?;
/// let mut packet = Vec::new();
/// Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), Protocol::Udp).emit(0, &mut packet);
/// capture.packet(interface, Instant::from_millis(12), &packet, Some("queue full"))?;
/// let bytes = capture.finish()?;
/// assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Writer<W: Write> {
    out: W,
    interfaces: u32,
    /// Block that is being written, without its length at the end; its memory is reused.
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: 0, block: Vec::new() };
        writer.begin(SECTION_HEADER);
        writer.block.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        writer.block.extend(VERSION_MAJOR.to_le_bytes());
        writer.block.extend(VERSION_MINOR.to_le_bytes());
        writer.block.extend(UNKNOWN_SECTION_LENGTH.to_le_bytes());
        writer.option(USER_APPLICATION, b"hopline");
        writer.option(END_OF_OPTIONS, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface. Its name is cut to 65,535 bytes.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn add_interface(&mut self, name: &str, link_type: LinkType) -> io::Result<InterfaceId> {
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        self.begin(INTERFACE_DESCRIPTION);
        self.block.extend(link_type.number().to_le_bytes());
        self.block.extend([0; 2]); // reserved
        self.block.extend(NO_SNAP_LENGTH.to_le_bytes());
        self.option(IF_NAME, option_text(name).as_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.option(END_OF_OPTIONS, &[]);
        self.end()?;
        Ok(id)
    }

    /// Writes a packet with the timestamp `at`, and with a comment such as the reason for its drop, cut to 65,535 bytes.
    ///
    /// # Errors
    /// Errors of the underlying writer; `InvalidInput` for the interface of another capture.
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        bytes: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        if interface.0 >= self.interfaces {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the interface is of another capture"));
        }
        let len = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let stamp = at.as_nanos();
        self.begin(ENHANCED_PACKET);
        self.block.extend(interface.0.to_le_bytes());
        self.block.extend(((stamp >> 32) as u32).to_le_bytes());
        self.block.extend((stamp as u32).to_le_bytes());
        self.block.extend([len; 2].map(u32::to_le_bytes).as_flattened()); // captured, and on the air
        self.block.extend(bytes);
        self.pad();
        if let Some(text) = comment {
            self.option(COMMENT, option_text(text).as_bytes());
            self.option(END_OF_OPTIONS, &[]);
        }
        self.end()
    }

    /// Ends the capture: flushes and returns the underlying writer.
    ///
    /// # Errors
    /// Errors of flushing.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Appends an option to the block (§3.5).
    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    /// Pads the block to a multiple of 32 bits (§3.1).
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Begins a block of this type; its body is to follow (§3.1).
    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        self.block.extend([0; 4]); // the length
    }

    /// Writes the block.
    fn end(&mut self) -> io::Result<()> {
        let total = u32::try_from(self.block.len() + 4).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.block[4..8].copy_from_slice(&total.to_le_bytes());
        self.block.extend(total.to_le_bytes());
        self.out.write_all(&self.block)
    }
}

impl LinkType {
    /// Returns its number in the registry of link types.
    const fn number(self) -> u16 {
        match self {
            Self::Ieee80211 => 105,
            Self::RawIp => 101,
        }
    }
}

fn option_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_OPTION_LEN)]
}

#[cfg(test)]
mod tests;
