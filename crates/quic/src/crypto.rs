//! Cryptography that protects nothing: the messages, keys and tags of QUIC with TLS 1.3 in their sizes.
//!
//! The handshake has the flights of TLS 1.3 with a certificate (RFC 9001 §4): ClientHello, ServerHello, the server's flight, and
//! Finished. Both hellos carry transport parameters in clear. The tag behind each packet is a checksum, so that damaged and
//! invented packets are dropped as those that fail authentication.

pub(crate) mod keys;
mod session;

use keys::{Level, checksum, keys, mix};
use quinn_proto::crypto::{self, CryptoError, Keys, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side};
use session::Session;
use std::sync::Arc;

/// Null cryptography of both ends.
#[derive(Clone, Copy, Debug)]
pub struct NullCrypto;

impl crypto::ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        Ok(Box::new(Session::new(Side::Client, params)))
    }
}

impl crypto::ServerConfig for NullCrypto {
    fn initial_keys(&self, _version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(Level::Initial, dst_cid, Side::Server))
    }

    /// Endpoints here send no Retry packets.
    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        Box::new(Session::new(Side::Server, params))
    }
}

/// Key of stateless reset tokens: a number.
#[derive(Clone, Copy, Debug)]
pub struct ResetKey(pub u64);

impl crypto::HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let [mut word, _] = checksum(self.0, &[data]);
        for chunk in signature_out.chunks_mut(8) {
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
            word = mix(word);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; 32];
        self.sign(data, &mut expected);
        if signature == expected { Ok(()) } else { Err(CryptoError) }
    }
}

/// Key of address validation tokens, of which endpoints here make none and accept none.
#[derive(Clone, Copy, Debug)]
pub struct NoTokens;

impl crypto::HandshakeTokenKey for NoTokens {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn crypto::AeadKey> {
        Box::new(Self)
    }
}

impl crypto::AeadKey for NoTokens {
    fn seal(&self, _data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _data: &'a mut [u8], _additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::HmacKey;

    #[test]
    fn a_reset_token_follows_from_key_and_connection_id() {
        let sign = |key: u64, data: &[u8]| {
            let mut out = [0; 32];
            ResetKey(key).sign(data, &mut out);
            out
        };
        assert_eq!(sign(1, b"cid"), sign(1, b"cid"));
        assert_ne!(sign(1, b"cid"), sign(2, b"cid"));
        assert_ne!(sign(1, b"cid"), sign(1, b"cie"));
        assert!(ResetKey(1).verify(b"cid", &sign(1, b"cid")).is_ok());
    }
}
