//! The Internet checksum (RFC 1071) and the CRC-32 of 802 frames.

use crate::ip::IpHeader;
use std::net::IpAddr;

/// A running one's complement sum.
///
/// # Example
///
/// ```
/// use hopline_wire::checksum::ChecksumSum;
///
/// let mut sum = ChecksumSum::default();
/// sum.add(&[0x00, 0x01, 0xf2, 0x03]);
/// let checksum = sum.finish();
/// assert_eq!(checksum, !0xf204);
/// // Over the data with their checksum, the result is zero.
/// sum.add(&checksum.to_be_bytes());
/// assert_eq!(sum.finish(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ChecksumSum(u64);

impl ChecksumSum {
    /// The sum over the pseudo header of TCP and UDP (RFC 9293 §3.1, RFC 768, RFC 8200 §8.1): addresses, protocol and `len`,
    /// the length of transport header and data in bytes. `ip` has the address of the last destination.
    #[must_use]
    pub fn pseudo_header(ip: &impl IpHeader, len: usize) -> Self {
        let mut sum = Self::default();
        sum.add_address(ip.src());
        sum.add_address(ip.dst());
        sum.0 += u64::from(ip.protocol().number()) + len as u64;
        sum
    }

    fn add_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.add(&address.octets()),
            IpAddr::V6(address) => self.add(&address.octets()),
        }
    }

    /// Adds `bytes` as big-endian 16-bit words; an odd last byte counts as a word's high half, so that only the last
    /// piece of a packet may be odd.
    pub fn add(&mut self, bytes: &[u8]) {
        let (words, odd) = bytes.as_chunks::<2>();
        self.0 += words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum::<u64>();
        self.0 += odd.first().map_or(0, |&high| u64::from(high) << 8);
    }

    /// The checksum: complement of the folded sum. 0 over data that contain their own correct checksum.
    #[must_use]
    pub const fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// The Internet checksum of `bytes`.
#[must_use]
pub fn internet(bytes: &[u8]) -> u16 {
    let mut sum = ChecksumSum::default();
    sum.add(bytes);
    sum.finish()
}

/// The CRC-32 of `bytes` as the frame check sequence of 802.11 uses it (IEEE 802.11-2020 §9.2.4.8); sent least
/// significant byte first.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, &byte| (crc >> 8) ^ CRC_TABLE[usize::from(crc as u8 ^ byte)])
}

/// x³² + x²⁶ + … + 1, bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        // RFC 1071 §3: 00 01 f2 03 f4 f5 f6 f7 adds up to ddf2.
        assert_eq!(internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn an_odd_last_byte_is_padded_with_zero() {
        assert_eq!(internet(&[0x12, 0x34, 0x56]), internet(&[0x12, 0x34, 0x56, 0x00]));
        assert_eq!(internet(&[]), 0xffff);
    }

    #[test]
    fn crc32_has_its_catalogued_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
