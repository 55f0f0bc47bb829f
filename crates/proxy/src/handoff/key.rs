//! Proof that who speaks belongs to the network.

use core::hash::Hasher;
use hopline_wire::handoff::{Message, Says, TAG_LEN, Tagged};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::net::Ipv4Addr;

/// A secret that stations, home agents and mobile hosts of a network share. Tags are SipHash-2-4 of 128 bits over the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

impl Key {
    /// The key of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn tag(&self, message: &Message) -> [u8; TAG_LEN] {
        let mut bytes = Vec::with_capacity(message.wire_len());
        message.emit(&mut bytes);
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&bytes);
        hasher.finish128().as_bytes()
    }
}

/// It is not shown.
impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key")
    }
}

/// The message with its proof.
pub(super) fn seal(key: Option<&Key>, message: Message) -> Tagged {
    Tagged { message, tag: key.map_or([0; TAG_LEN], |key| key.tag(&message)) }
}

/// Tells a mobile host that the `number` of its request is not above the `latest`. Without a key nothing is told: an attacker could raise
/// numbers as far as they go.
pub(super) fn behind(key: Option<&Key>, latest: u64, (mobile, asked): (Ipv4Addr, u64)) -> Option<Tagged> {
    let key = key.filter(|_| latest > asked)?;
    Some(seal(Some(key), Message { number: latest, says: Says::Behind { mobile, asked } }))
}

/// Whether the proof is right. Without a key it is not looked at.
pub(super) fn is_genuine(key: Option<&Key>, tagged: &Tagged) -> bool {
    let differs = |tag: [u8; TAG_LEN]| tag.iter().zip(&tagged.tag).fold(0, |all, (a, b)| all | (a ^ b));
    key.is_none_or(|key| differs(key.tag(&tagged.message)) == 0)
}
