//! Writing payloads, and reading fixed-size fields.

use bytes::Bytes;
use hopline_core::{Length, Payload};
use std::net::Ipv4Addr;

/// A payload that can be written to the wire.
///
/// # Example
///
/// ```
/// use hopline_core::Length;
/// use hopline_wire::Emit;
///
/// let mut out = Vec::new();
/// Length(3).emit(&mut out);
/// assert_eq!(out, [0; 3]);
/// ```
pub trait Emit: Payload {
    /// Appends exactly `len()` bytes.
    fn emit(&self, out: &mut Vec<u8>);
}

impl Emit for Bytes {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// The simulator keeps no contents and writes zeros.
impl Emit for Length {
    fn emit(&self, out: &mut Vec<u8>) {
        let len = usize::try_from(self.0).expect("a packet fits into memory");
        out.resize(out.len() + len, 0);
    }
}

/// Returns the `N` bytes at `at`. The caller has checked that they exist.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a range of N bytes")
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from(array::<4>(bytes, at))
}
