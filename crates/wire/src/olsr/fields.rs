//! Lists of addresses, and sizes.

use crate::emit::address;
use crate::error::ParseError;
use std::net::Ipv4Addr;

pub(super) const ADDRESS_LEN: usize = 4;

/// Parses a body that consists of addresses alone.
pub(super) fn addresses(bytes: &[u8], what: &'static str) -> Result<Vec<Ipv4Addr>, ParseError> {
    if !bytes.len().is_multiple_of(ADDRESS_LEN) {
        return Err(ParseError::BadLength { what, value: bytes.len() });
    }
    Ok(bytes.chunks_exact(ADDRESS_LEN).map(|entry| address(entry, 0)).collect())
}

pub(super) fn emit_addresses(addresses: &[Ipv4Addr], out: &mut Vec<u8>) {
    for address in addresses {
        out.extend(address.octets());
    }
}

/// A length as a 16-bit field.
pub(super) fn length_field(len: usize) -> [u8; 2] {
    u16::try_from(len).expect("an OLSR packet has at most 65,535 bytes").to_be_bytes()
}
