//! DSR Options headers (RFC 4728 §6), between the IP header and the payload of a packet.
//!
//! Not implemented: flow state (§7), which is an extension of its own.

mod option;

pub use option::{
    Ack, AckRequest, Addresses, DsrOption, ErrorKind, FirstHop, LastHop, RouteError, RouteReply,
    RouteRequest, SourceRoute,
};

use crate::emit::be16;
use crate::error::{ParseError, require};
use crate::ipv4::Protocol;
use smallvec::SmallVec;

/// IP protocol number of DSR.
pub const PROTOCOL: Protocol = Protocol::Other(48);
/// Length of the fixed portion in bytes.
pub const FIXED_LEN: usize = 4;

/// IP protocol number "no next header" (RFC 8200 §4.7).
const NO_NEXT_HEADER: u8 = 59;
/// Marks a flow state header in place of options (§7.1).
const FLOW_STATE: u8 = 0x80;
const PAD_1: u8 = 224;
const PAD_N: u8 = 0;

/// A DSR Options header (RFC 4728 §6.1).
///
/// # Example
///
/// ```
/// use hopline_wire::dsr::{DsrOption, Header, RouteRequest};
///
/// let request = RouteRequest { id: 1, target: [10, 0, 0, 9].into(), path: Default::default() };
/// let header = Header { next: None, options: [DsrOption::Request(request)].into_iter().collect() };
/// let mut bytes = Vec::new();
/// header.emit(&mut bytes);
/// assert_eq!(Header::parse(&bytes), Ok((header, bytes.len())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Protocol of the payload behind the header; `None`: no payload.
    pub next: Option<Protocol>,
    /// The options, without padding.
    pub options: SmallVec<[DsrOption; 1]>,
}

impl Header {
    /// Parses the header at the start of `bytes`; returns its length too. Padding is skipped and reserved bits are ignored.
    ///
    /// # Errors
    /// `Truncated`; `BadLength` of an option, or of segments left beyond the addresses of a source route; `Unsupported` for
    /// a flow state header.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        require(bytes, FIXED_LEN)?;
        if bytes[1] & FLOW_STATE != 0 {
            return Err(ParseError::Unsupported { what: "dsr flow state", value: u32::from(bytes[1]) });
        }
        let next = (bytes[0] != NO_NEXT_HEADER).then(|| Protocol::from(bytes[0]));
        let len = FIXED_LEN + usize::from(be16(bytes, 2));
        require(bytes, len)?;
        let options = options(&bytes[FIXED_LEN..len])?;
        Ok((Self { next, options }, len))
    }

    /// Appends the header, padded if a payload follows.
    ///
    /// # Panics
    /// If an option has more addresses than its length field can express, 61 at least.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let next = self.next.map_or(NO_NEXT_HEADER, Protocol::number);
        let len = u16::try_from(self.wire_len() - FIXED_LEN).expect("a header fits into a packet");
        out.extend([next, 0]);
        out.extend(len.to_be_bytes());
        for option in &self.options {
            option.emit(out);
        }
        match self.padding() {
            0 => {}
            1 => out.push(PAD_1),
            n => {
                out.extend([PAD_N, (n - 2) as u8]);
                out.resize(out.len() + n - 2, 0);
            }
        }
    }

    /// Length on the wire, in bytes.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        FIXED_LEN + self.options_len() + self.padding()
    }

    fn options_len(&self) -> usize {
        self.options.iter().map(DsrOption::wire_len).sum()
    }

    /// Returns the padding that aligns the payload to a multiple of four (RFC 4728 §6.8).
    fn padding(&self) -> usize {
        if self.next.is_some() { self.options_len().next_multiple_of(4) - self.options_len() } else { 0 }
    }
}

fn options(mut bytes: &[u8]) -> Result<SmallVec<[DsrOption; 1]>, ParseError> {
    let mut options = SmallVec::new();
    while let Some(&kind) = bytes.first() {
        if kind == PAD_1 {
            bytes = &bytes[1..];
            continue;
        }
        require(bytes, 2)?;
        let len = 2 + usize::from(bytes[1]);
        require(bytes, len)?;
        if kind != PAD_N {
            options.push(DsrOption::parse(kind, &bytes[2..len])?);
        }
        bytes = &bytes[len..];
    }
    Ok(options)
}

#[cfg(test)]
mod tests;
