//! Keys that are numbers, and tags that are checksums.

use crate::frames::TAG_BYTES;
use bytes::BytesMut;
use quinn_proto::Side;
use quinn_proto::crypto::{self, CryptoError, KeyPair, Keys};

/// Encryption level of keys (RFC 9001 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Initial,
    Handshake,
    /// 1-RTT keys of this key phase.
    OneRtt(u64),
}

/// Key that is a number.
struct Key(u64);

/// Header protection that changes nothing.
struct NoHeaderProtection;

/// Returns the keys of a level. `context`: of Initial keys, the client's first destination connection ID.
pub(super) fn keys(level: Level, context: &[u8], side: Side) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NoHeaderProtection), remote: Box::new(NoHeaderProtection) },
        packet: packet_keys(level, context, side),
    }
}

pub(super) fn packet_keys(level: Level, context: &[u8], side: Side) -> KeyPair<Box<dyn crypto::PacketKey>> {
    let level = match level {
        Level::Initial => 1,
        Level::Handshake => 2,
        Level::OneRtt(phase) => 3 + phase,
    };
    let key = |sender: Side| -> Box<dyn crypto::PacketKey> {
        let number = mix(level << 1 | sender.is_client() as u64);
        Box::new(Key(checksum(number, &[context])[0]))
    };
    KeyPair { local: key(side), remote: key(!side) }
}

/// Mixes the bits of a number (the finalizer of SplitMix64).
pub(crate) const fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Returns a checksum of `parts`. It detects damage, not forgery.
pub(crate) fn checksum(key: u64, parts: &[&[u8]]) -> [u64; 2] {
    let mut sum = key;
    for part in parts {
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        let last = rest.iter().fold(part.len() as u64, |word, &byte| word << 8 | u64::from(byte));
        sum = (sum ^ last).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    [mix(sum), mix(sum ^ key.rotate_left(32) ^ 1)]
}

impl Key {
    fn tag(&self, packet: u64, header: &[u8], payload: &[u8]) -> [u8; TAG_BYTES] {
        let [low, high] = checksum(self.0 ^ mix(packet), &[header, payload]);
        (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
    }
}

impl crypto::PacketKey for Key {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (header, rest) = buf.split_at_mut(header_len);
        let (payload, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
        tag.copy_from_slice(&self.tag(packet, header, payload));
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        let (content, tag) = payload.split_at(length);
        if *tag != self.tag(packet, header, content) {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl crypto::HeaderKey for NoHeaderProtection {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    /// As of AES and ChaCha20 (RFC 9001 §5.4), so that short packets are padded as much.
    fn sample_size(&self) -> usize {
        16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::PacketKey;

    #[test]
    fn a_packet_is_accepted_as_it_was_sealed_only() {
        let KeyPair { local, remote: clients } = packet_keys(Level::OneRtt(0), &[], Side::Client);
        let KeyPair { remote, .. } = packet_keys(Level::OneRtt(0), &[], Side::Server);
        let mut sealed = [&b"header"[..], b"some frames", &[0; TAG_BYTES]].concat();
        local.encrypt(7, &mut sealed, 6);
        let open = |key: &dyn PacketKey, number, bytes: &[u8]| {
            let mut payload = BytesMut::from(&bytes[6..]);
            key.decrypt(number, &bytes[..6], &mut payload).map(|()| payload)
        };
        assert_eq!(open(&*remote, 7, &sealed).expect("intact"), b"some frames"[..]);
        assert!(open(&*clients, 7, &sealed).is_err(), "reflected to the client");
        assert!(open(&*remote, 8, &sealed).is_err(), "another number");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 0x10;
            assert!(open(&*remote, 7, &damaged).is_err(), "byte {at}");
        }
        assert!(open(&*remote, 7, &sealed[..12]).is_err(), "shorter than a tag");
    }
}
