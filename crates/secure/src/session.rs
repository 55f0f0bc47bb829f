//! A connection after the handshake: datagrams are sealed and opened in place.

use crate::aead::{KEY_LEN, Key};
use crate::config::SessionConfig;
use crate::keys::PublicKey;
use crate::number::rebuild;
use crate::replay::{Position, ReplayWindow};
use crate::stats::{Rejection, Rejections};
use bytes::Bytes;
use hopline_core::Duration;
use hopline_wire::secure::{Cipher, ConnectionId, DatagramKind, HEADER_LEN, SealedHeader, TAG_LEN};
use thiserror::Error;
use zeroize::Zeroizing;

/// Numbers end here; at a billion datagrams a second that is in 146 years.
const NUMBER_MAX: u64 = (1 << 62) - 1;

/// After so many forged datagrams a session opens nothing more: the least that any cipher of ours stands (RFC
/// 9001 §6.6, ChaCha20-Poly1305).
const FORGED_MAX: u64 = 1 << 36;

/// Result of a handshake.
#[derive(Debug)]
pub struct Established {
    /// Seals and opens.
    pub session: Session,
    /// The version of TPA-wide that both speak.
    pub version: u8,
    /// Transport parameters of the peer from the handshake, authentic: at most
    /// [`PARAMETERS_MAX`](crate::PARAMETERS_MAX) bytes.
    pub parameters: Bytes,
    /// Public key of the peer; none with a shared key.
    pub peer: Option<PublicKey>,
    /// The same at both ends, and of this handshake alone (Noise §11.2, channel binding). It is no secret.
    pub binding: [u8; 32],
    /// A round trip, if one was measured.
    pub round_trip: Option<Duration>,
}

/// Both directions of a connection.
#[derive(Debug)]
pub struct Session {
    /// Sealer of outgoing datagrams.
    pub sealer: Sealer,
    /// Unsealer of incoming datagrams.
    pub unsealer: Unsealer,
}

/// Keys and ids that a handshake has agreed on.
pub(crate) struct NegotiatedKeys {
    pub(crate) cipher: Cipher,
    pub(crate) config: SessionConfig,
    pub(crate) local: ConnectionId,
    pub(crate) remote: ConnectionId,
    pub(crate) sending: Zeroizing<[u8; KEY_LEN]>,
    pub(crate) receiving: Zeroizing<[u8; KEY_LEN]>,
}

impl Session {
    pub(crate) fn new(agreed: &NegotiatedKeys) -> Self {
        Self { sealer: Sealer::new(agreed), unsealer: Unsealer::new(agreed) }
    }
}

/// Seals what goes out. It is of a piece with the peer's [`Unsealer`].
#[derive(Debug)]
pub struct Sealer {
    remote: ConnectionId,
    key: Key,
    rekey_after: u64,
    next: u64,
    /// The number from which on the next key is used.
    rekey_at: u64,
}

/// Reason that nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The buffer has no room for a header and a tag.
    #[error("a datagram has a header of 12 bytes and a tag of 16")]
    NoRoom,
    /// All numbers are used up.
    #[error("the connection has used up its numbers")]
    Exhausted,
}

impl Sealer {
    /// Bytes that a datagram has beside its payload.
    pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;

    fn new(agreed: &NegotiatedKeys) -> Self {
        let key = Key::new(agreed.cipher, &agreed.sending);
        let rekey_after = agreed.config.rekey_after;
        Self { remote: agreed.remote, key, rekey_after, next: 0, rekey_at: rekey_after }
    }

    /// Returns the peer's connection id.
    #[must_use]
    pub const fn remote_id(&self) -> ConnectionId {
        self.remote
    }

    /// Returns the number of the next datagram.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the first number under the current key.
    #[must_use]
    pub const fn key_since(&self) -> u64 {
        self.rekey_at - self.rekey_after
    }

    /// Changes the key before its numbers are used up, and leaves out the rest of them. Returns the number of
    /// the next datagram. The peer opens what is sealed under the next key, and nothing under the one after
    /// it before that: the current key must have reached it.
    pub fn rekey(&mut self) -> u64 {
        self.next = self.rekey_at;
        self.change_key();
        self.next
    }

    fn change_key(&mut self) {
        self.key = self.key.next();
        self.rekey_at += self.rekey_after;
    }

    /// Makes a sealed datagram of `datagram`, which has 12 bytes of any content, the payload, and 16 bytes of
    /// any content. Returns its number. Nothing is allocated or copied.
    ///
    /// # Errors
    /// `NoRoom`, `Exhausted`; `datagram` is as it was.
    pub fn seal(&mut self, datagram: &mut [u8]) -> Result<u64, SealError> {
        if datagram.len() < Self::OVERHEAD {
            return Err(SealError::NoRoom);
        }
        if self.next > NUMBER_MAX {
            return Err(SealError::Exhausted);
        }
        let number = self.next;
        if number == self.rekey_at {
            self.change_key();
        }
        self.next += 1;
        let (header, rest) = datagram.split_at_mut(HEADER_LEN);
        let (content, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
        header.copy_from_slice(&SealedHeader { id: self.remote, number: number as u32 }.bytes());
        tag.copy_from_slice(&self.key.seal(number, header, content));
        Ok(number)
    }
}

/// Opens what comes in.
#[derive(Debug)]
pub struct Unsealer {
    local: ConnectionId,
    keys: Keys,
    window: ReplayWindow,
    rejections: Rejections,
}

/// A datagram that the peer has sealed, and that has not come before.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'d> {
    /// Its number.
    pub number: u64,
    /// Position among the datagrams that have arrived.
    pub order: Order,
    /// Decrypted payload.
    pub payload: &'d mut [u8],
}

/// Position of a datagram among those that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Its number is higher than all others.
    Newest,
    /// One with a higher number has come before it.
    Older,
}

impl Unsealer {
    fn new(agreed: &NegotiatedKeys) -> Self {
        Self {
            local: agreed.local,
            keys: Keys::new(Key::new(agreed.cipher, &agreed.receiving), agreed.config.rekey_after),
            window: ReplayWindow::new(agreed.config.window),
            rejections: Rejections::default(),
        }
    }

    /// Returns our connection id.
    #[must_use]
    pub const fn local_id(&self) -> ConnectionId {
        self.local
    }

    /// Returns the numbers of rejected datagrams, by reason.
    #[must_use]
    pub const fn rejections(&self) -> &Rejections {
        &self.rejections
    }

    /// Opens a datagram where it stands. Nothing is allocated or copied.
    ///
    /// # Errors
    /// Why it is dropped; it was counted. What then stands in `datagram` is undefined.
    pub fn open<'d>(&mut self, datagram: &'d mut [u8]) -> Result<Opened<'d>, Rejection> {
        self.try_open(datagram).inspect_err(|rejection| self.rejections.add(*rejection))
    }

    fn try_open<'d>(&mut self, datagram: &'d mut [u8]) -> Result<Opened<'d>, Rejection> {
        if DatagramKind::of(datagram).is_some_and(|kind| kind != DatagramKind::Sealed(self.local)) {
            return Err(Rejection::Foreign);
        }
        let header = SealedHeader::parse(datagram).map_err(|_| Rejection::Truncated)?;
        if self.rejections.of(Rejection::Forged) >= FORGED_MAX {
            return Err(Rejection::Worn);
        }
        let number = rebuild(header.number, self.window.highest());
        let order = match self.window.position(number) {
            Position::Newest => Order::Newest,
            Position::Older => Order::Older,
            Position::Repeated => return Err(Rejection::Repeated),
            Position::TooOld => return Err(Rejection::TooOld),
        };
        let key = self.keys.of(number)?;
        let (header, rest) = datagram.split_at_mut(HEADER_LEN);
        let (content, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
        let tag = (*tag).try_into().expect("cut to this length");
        key.open(number, header, content, tag).map_err(|crate::aead::Forged| Rejection::Forged)?;
        self.window.record(number);
        self.keys.advance(number);
        Ok(Opened { number, order, payload: content })
    }
}

/// The keys of a direction that datagrams may have been sealed with: which one follows from the number.
#[derive(Debug)]
struct Keys {
    /// Numbers of a generation.
    span: u64,
    /// The first number of the current one.
    start: u64,
    /// Key of the previous generation, for late datagrams. The window is not wider than a generation.
    previous: Option<Key>,
    current: Key,
    /// Derived in advance, so that an attacker with forged datagrams cannot have it derived again and again.
    next: Key,
}

impl Keys {
    fn new(current: Key, span: u64) -> Self {
        Self { span, start: 0, previous: None, next: current.next(), current }
    }

    fn of(&self, number: u64) -> Result<&Key, Rejection> {
        if number < self.start {
            let previous = self.previous.as_ref().filter(|_| self.start - number <= self.span);
            return previous.ok_or(Rejection::TooOld);
        }
        match number - self.start {
            ahead if ahead < self.span => Ok(&self.current),
            ahead if ahead < 2 * self.span => Ok(&self.next),
            _ => Err(Rejection::TooFarAhead),
        }
    }

    /// Records that an authentic datagram of this number has come.
    fn advance(&mut self, number: u64) {
        if number >= self.start + self.span {
            let after = self.next.next();
            let current = core::mem::replace(&mut self.next, after);
            self.previous = Some(core::mem::replace(&mut self.current, current));
            self.start += self.span;
        }
    }
}

#[cfg(test)]
mod tests;
