//! Captures in pcapng: one interface a node, nanosecond stamps, comments on packets.

use hopline_core::Instant;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::{self, Write};

/// Stamps count units of 10⁻⁹ s (if_tsresol).
const NANOSECONDS: u8 = 9;
/// Longest option: its length field has 16 bits.
const MAX_OPTION_LEN: usize = 0xffff;

/// What the packets of an interface begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// 105: an 802.11 header, and a frame check sequence at the end.
    Ieee80211,
    /// 101: an IP header.
    RawIp,
}

/// An interface of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(u32);

/// Writes one capture. The same calls give the same bytes on every machine. Every block is one or more small writes:
/// hand it a buffered `W`.
pub struct Writer<W: Write> {
    inner: PcapNgWriter<W>,
}

impl<W: Write> Writer<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// What writing to `out` returns.
    pub fn new(out: W) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("hopline"))],
            ..SectionHeaderBlock::default()
        };
        let inner = PcapNgWriter::with_section_header(out, section).map_err(into_io)?;
        Ok(Self { inner })
    }

    /// Adds an interface. Its name is cut to 65,535 bytes.
    ///
    /// # Errors
    /// What the underlying writer returns.
    pub fn add_interface(&mut self, name: &str, link_type: LinkType) -> io::Result<InterfaceId> {
        let linktype = match link_type {
            LinkType::Ieee80211 => DataLink::IEEE802_11,
            LinkType::RawIp => DataLink::RAW,
        };
        let mut block = InterfaceDescriptionBlock::new(linktype, 0);
        block.options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(option_text(name))),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        let id = InterfaceId(self.inner.interfaces().len() as u32);
        self.inner.write_pcapng_block(block).map_err(into_io)?;
        Ok(id)
    }

    /// Writes a packet as it was at `at`, with a comment such as the reason why it was dropped, cut to 65,535 bytes.
    ///
    /// # Errors
    /// What the underlying writer returns; `InvalidInput` for the interface of another capture.
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        bytes: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let len = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let comment = comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(option_text(text))));
        let block = EnhancedPacketBlock {
            interface_id: interface.0,
            timestamp: std::time::Duration::from_nanos(at.as_nanos()),
            original_len: len,
            data: Cow::Borrowed(bytes),
            options: comment.into_iter().collect(),
        };
        self.inner.write_pcapng_block(block).map_err(into_io)?;
        Ok(())
    }

    /// Ends the capture: flushes, and hands the underlying writer back.
    ///
    /// # Errors
    /// What flushing returns.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.inner.into_inner();
        out.flush()?;
        Ok(out)
    }
}

fn option_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_OPTION_LEN)]
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidInput, other),
    }
}

#[cfg(test)]
mod tests;
