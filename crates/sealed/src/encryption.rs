//! Encryption of one connection: its handshake, then its session and the paths to the peer.

use crate::event::Path;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use hopline_core::{Duration, Instant};
use hopline_secure::{Initiator, Order, Paths, PublicKey, Session};
use hopline_transport::wide::Endpoint;
use hopline_wire::secure::{ConnectionId, HEADER_LEN, StatelessResetToken, TAG_LEN};
use hopline_wire::wide::DatagramContent;

/// The encryption of a connection.
#[derive(Debug)]
pub(crate) enum Encryption {
    /// The handshake of a connection that this end opens is in progress.
    Handshaking(Box<Initiator>),
    /// The connection has keys: datagrams can be encrypted (sealed) and decrypted (opened).
    Open(Box<Open>),
    /// The connection has ended before it had keys.
    Closed,
}

/// A connection with keys.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: Session,
    pub(crate) paths: Paths,
    /// Local address to which the peer sends, for each known address of the peer.
    pub(crate) locals: Vec<(SocketAddr, Option<IpAddr>)>,
    pub(crate) confirmation: Confirmation,
    pub(crate) peer: Option<PublicKey>,
    /// Token in a stateless reset of the peer, which proves that the peer has lost the connection.
    pub(crate) reset: Option<StatelessResetToken>,
    pub(crate) key_update: KeyUpdate,
}

/// Key update of the sending direction after a time.
#[derive(Debug)]
pub(crate) struct KeyUpdate {
    interval: Duration,
    /// Number of the first datagram under the current key, and the time at which this was recorded.
    current: (u64, Instant),
    probe: Probe,
}

/// Request for an acknowledgment, to learn whether the peer has the current key.
#[derive(Debug, PartialEq, Eq)]
enum Probe {
    NotSent,
    Sent,
}

impl KeyUpdate {
    pub(crate) const fn new(now: Instant, every: Duration) -> Self {
        Self { interval: every, current: (0, now), probe: Probe::NotSent }
    }
}

/// Confirmation that the peer has accepted the connection.
#[derive(Debug)]
pub(crate) enum Confirmation {
    /// Confirmed: the peer is the initiator, or one of its datagrams was decrypted.
    Confirmed,
    /// Nothing was decrypted yet. The initiator retransmits its last message of the handshake, if it has one.
    Awaited { initiator: Box<Initiator>, until: Instant },
}

impl Encryption {
    pub(crate) fn open(&mut self) -> Option<&mut Open> {
        match self {
            Self::Open(open) => Some(open),
            Self::Handshaking(_) | Self::Closed => None,
        }
    }

    /// Returns the initiator of the handshake, while it may send and receive messages.
    pub(crate) fn initiator(&mut self) -> Option<&mut Initiator> {
        match self {
            Self::Handshaking(initiator) => Some(initiator),
            Self::Open(open) => match &mut open.confirmation {
                Confirmation::Awaited { initiator, .. } => Some(initiator),
                Confirmation::Confirmed => None,
            },
            Self::Closed => None,
        }
    }

    /// Returns the connection ID at the peer. `None` without keys.
    pub(crate) fn remote_id(&self) -> Option<ConnectionId> {
        match self {
            Self::Open(open) => Some(open.session.sealer.remote_id()),
            Self::Handshaking(_) | Self::Closed => None,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Handshaking(initiator) => initiator.poll_timeout(),
            Self::Open(open) => {
                let proof = match &open.confirmation {
                    Confirmation::Confirmed => None,
                    Confirmation::Awaited { initiator, until } => {
                        Some(initiator.poll_timeout().map_or(*until, |at| at.min(*until)))
                    }
                };
                [proof, open.paths.poll_timeout()].into_iter().flatten().min()
            }
            Self::Closed => None,
        }
    }
}

impl Open {
    /// Records that a datagram of `len` bytes, received on `path`, was decrypted.
    pub(crate) fn record_received(&mut self, now: Instant, path: Path, len: usize, order: Order) {
        self.confirmation = Confirmation::Confirmed;
        self.paths.record_received(now, path.peer, len, order);
        match self.locals.iter_mut().find(|(peer, _)| *peer == path.peer) {
            Some((_, local)) if order == Order::Newest => *local = path.local,
            Some(_) => {}
            None => {
                let (active, paths) = (self.paths.active(), &self.paths);
                self.locals.retain(|(peer, _)| *peer == active || paths.candidates().any(|one| one == *peer));
                self.locals.push((path.peer, path.local));
            }
        }
    }

    /// Returns the path to this address of the peer.
    pub(crate) fn path_to(&self, peer: SocketAddr) -> Path {
        let local = self.locals.iter().find(|(known, _)| *known == peer).and_then(|(_, local)| *local);
        Path { peer, local }
    }

    /// Changes the sending key if it is due. The peer can follow only one change at a time (`Sealer::rekey`), so a datagram
    /// under the current key must have been acknowledged before. If none was, an acknowledgment is requested, once.
    pub(crate) fn update_key_if_due(&mut self, now: Instant, endpoint: &mut Endpoint<Bytes>) {
        let (sealer, rekeying) = (&mut self.session.sealer, &mut self.key_update);
        if rekeying.current.0 != sealer.key_since() {
            // The key has changed after the configured number of datagrams.
            (rekeying.current, rekeying.probe) = ((sealer.key_since(), now), Probe::NotSent);
        }
        let (first, since) = rekeying.current;
        if now < since + rekeying.interval {
            return;
        }
        if endpoint.highest_acknowledged().is_some_and(|number| number >= first) {
            endpoint.skip_numbers_to(sealer.rekey());
            (rekeying.current, rekeying.probe) = ((sealer.key_since(), now), Probe::NotSent);
        } else if rekeying.probe == Probe::NotSent {
            rekeying.probe = Probe::Sent;
            endpoint.request_answer();
        }
    }

    /// Appends an encrypted datagram with `content`. Returns its number and its length in bytes. `None` if all numbers are used
    /// up.
    pub(crate) fn seal(
        &mut self,
        content: &DatagramContent<Bytes>,
        buffer: &mut Vec<u8>,
    ) -> Option<(u64, usize)> {
        let start = buffer.len();
        buffer.resize(start + HEADER_LEN, 0);
        content.emit(buffer);
        buffer.resize(buffer.len() + TAG_LEN, 0);
        let Ok(number) = self.session.sealer.seal(&mut buffer[start..]) else {
            buffer.truncate(start);
            return None;
        };
        Some((number, buffer.len() - start))
    }
}
