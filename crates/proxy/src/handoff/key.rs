//! Authentication of messages of the network, and of its mobile hosts.
//!
//! Stations and home agents have the network's key. From it are derived the key of beacons, which all mobile
//! hosts have, and a key for each mobile host, which authenticates its requests and their answers. A mobile
//! host has these two keys and not the network's: it cannot impersonate another host.

use core::hash::Hasher;
use hopline_wire::handoff::{Message, MessageBody, TAG_LEN, TaggedMessage};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::net::Ipv4Addr;

/// Key by which a station, a home agent or a mobile host authenticates messages. Tags are SipHash-2-4 of 128
/// bits over the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(KeyMaterial);

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyMaterial {
    /// Secret of the network.
    Network([u8; 16]),
    /// Keys of a mobile host, derived from it.
    Host {
        /// Key of beacons.
        beacons: [u8; 16],
        /// Key of the host's requests.
        requests: [u8; 16],
    },
}

/// Length of the key of a mobile host.
pub const HOST_KEY_LEN: usize = 32;

impl Key {
    /// Creates the network's key from its bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(KeyMaterial::Network(bytes))
    }

    /// Creates the key of a mobile host, from the bytes that [`Key::derive_host_key`] has returned.
    #[must_use]
    pub fn host(bytes: [u8; HOST_KEY_LEN]) -> Self {
        let half = |at: usize| bytes[at..at + 16].try_into().expect("16 of 32 bytes");
        Self(KeyMaterial::Host { beacons: half(0), requests: half(16) })
    }

    /// Returns the key for the mobile host with this home address. `None`: this is not the network's key.
    #[must_use]
    pub fn derive_host_key(&self, mobile: Ipv4Addr) -> Option<[u8; HOST_KEY_LEN]> {
        let KeyMaterial::Network(network) = self.0 else { return None };
        let mut bytes = [0; HOST_KEY_LEN];
        bytes[..16].copy_from_slice(&derive_beacon_key(&network));
        bytes[16..].copy_from_slice(&derive_request_key(&network, mobile));
        Some(bytes)
    }

    /// Returns the key of connections between stations. `None`: this is not the network's key.
    #[must_use]
    pub fn derive_station_key(&self) -> Option<[u8; 32]> {
        let KeyMaterial::Network(network) = self.0 else { return None };
        Some(blake3::derive_key("hopline split connections between stations", &network))
    }

    fn tag(&self, message: &Message) -> [u8; TAG_LEN] {
        let mobile = match message.body {
            MessageBody::Beacon { .. } => None,
            MessageBody::Request { mobile, .. }
            | MessageBody::Reply { mobile, .. }
            | MessageBody::Stale { mobile, .. } => Some(mobile),
        };
        let key = match (self.0, mobile) {
            (KeyMaterial::Network(network), None) => derive_beacon_key(&network),
            (KeyMaterial::Network(network), Some(mobile)) => derive_request_key(&network, mobile),
            (KeyMaterial::Host { beacons, .. }, None) => beacons,
            (KeyMaterial::Host { requests: own, .. }, Some(_)) => own,
        };
        let mut bytes = Vec::with_capacity(message.wire_len());
        message.emit(&mut bytes);
        let mut hasher = SipHasher24::new_with_key(&key);
        hasher.write(&bytes);
        hasher.finish128().as_bytes()
    }
}

/// Hides the key.
impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key")
    }
}

fn derive_beacon_key(network: &[u8; 16]) -> [u8; 16] {
    first_half(&blake3::derive_key("hopline handoff beacons", network))
}

fn derive_request_key(network: &[u8; 16], mobile: Ipv4Addr) -> [u8; 16] {
    let mut of = [0; 20];
    of[..16].copy_from_slice(network);
    of[16..].copy_from_slice(&mobile.octets());
    first_half(&blake3::derive_key("hopline handoff mobile host", &of))
}

fn first_half(bytes: &[u8; 32]) -> [u8; 16] {
    bytes[..16].try_into().expect("16 of 32 bytes")
}

/// Returns the message with its tag.
pub(super) fn seal(key: Option<&Key>, message: Message) -> TaggedMessage {
    TaggedMessage { message, tag: key.map_or([0; TAG_LEN], |key| key.tag(&message)) }
}

/// Returns an answer that tells a mobile host that the `number` of its request is not above the `latest`.
/// Without a key there is no answer: an attacker could raise numbers without limit.
pub(super) fn stale_number_reply(
    key: Option<&Key>,
    latest: u64,
    (mobile, asked): (Ipv4Addr, u64),
) -> Option<TaggedMessage> {
    let key = key.filter(|_| latest > asked)?;
    Some(seal(Some(key), Message { number: latest, body: MessageBody::Stale { mobile, requested: asked } }))
}

/// Returns whether the tag is valid. Without a key it is not checked.
pub(super) fn is_genuine(key: Option<&Key>, tagged: &TaggedMessage) -> bool {
    let differs = |tag: [u8; TAG_LEN]| tag.iter().zip(&tagged.tag).fold(0, |all, (a, b)| all | (a ^ b));
    key.is_none_or(|key| differs(key.tag(&tagged.message)) == 0)
}
