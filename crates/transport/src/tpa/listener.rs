//! Opening connections without keeping state for whoever has not proved to be where it says it is.
//!
//! A SYN is answered with a tag that is a keyed hash over the address it came from, its opening parameters and the
//! time. Nothing is kept. The peer repeats its parameters under that tag; if the hash is right, it has received our answer at
//! its address, and the connection comes into being. (The idea is that of SYN cookies, RFC 4987 §3.6.)

use super::config::Config;
use super::endpoint::Endpoint;
use super::parts::Identity;
use core::hash::Hasher;
use core::num::NonZeroU64;
use hopline_core::{Duration, Instant, LinkId, Machine, Payload};
use hopline_wire::tpa::{Ack, Control, Opening, Segment, Tag, TxStat};
use siphasher::sip::SipHasher24;

/// How long a tag can be redeemed: at least this, at most twice this.
const COOKIE_LIFETIME: Duration = Duration::from_secs(30);

/// The key of what must not be guessed: the tags that a listener gives out, the nonces of data. Must be unpredictable.
#[derive(Clone, Copy)]
pub struct Secret(pub [u8; 16]);

impl Secret {
    /// Another, for `purpose` and `tag`.
    #[must_use]
    pub fn derive(&self, purpose: &[u8], tag: Tag) -> Self {
        let half = |number: u8| {
            let mut hasher = self.hasher();
            hasher.write(purpose);
            hasher.write_u64(tag.0.get());
            hasher.write_u8(number);
            hasher.finish().to_be_bytes()
        };
        let mut derived = [0; 16];
        derived[..8].copy_from_slice(&half(0));
        derived[8..].copy_from_slice(&half(1));
        Self(derived)
    }

    /// A keyed hash, SipHash-2-4.
    pub(super) fn hasher(&self) -> SipHasher24 {
        SipHasher24::new_with_key(&self.0)
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret")
    }
}

/// Answers SYNs and makes endpoints.
#[derive(Clone, Debug)]
pub struct Listener {
    config: Config,
    secret: Secret,
}

/// What a listener makes of a segment that belongs to no connection.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once, when a connection is made")]
pub enum Verdict<P: Payload> {
    /// Send this back.
    Reply(Segment<P>),
    /// A connection, the segment taken in; drain it.
    Accepted(Endpoint<P>),
    /// Nothing.
    Refused(Refusal),
}

/// Why a segment made no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It neither opens a connection nor proves that we answered its SYN.
    NotAnOpening,
    /// Its tag is not one that we gave to that address lately.
    BadTag,
    /// It wants no tag of its own in our segments: over an open network nobody should.
    NoTag,
}

impl Listener {
    /// A listener whose connections have `config`.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(config: Config, secret: Secret) -> Result<Self, super::ConfigError> {
        config.validate()?;
        Ok(Self { config, secret })
    }

    /// Takes a segment from `address` that belongs to no connection. `address` is whatever names the peer: IP address
    /// and port, as bytes.
    pub fn handle<P: Payload>(&self, now: Instant, address: &[u8], segment: Segment<P>) -> Verdict<P> {
        let Some(opening) = segment.opening else { return Verdict::Refused(Refusal::NotAnOpening) };
        if opening.tag.is_none() {
            return Verdict::Refused(Refusal::NoTag);
        }
        match (segment.control, segment.tag, segment.ack) {
            (Control::Syn, None, None) => Verdict::Reply(self.answer(now, address, opening)),
            (Control::None | Control::Fin, Some(tag), Some(_)) => {
                if self.gave(now, address, &opening, tag) {
                    Verdict::Accepted(self.accept(now, tag, opening, segment))
                } else {
                    Verdict::Refused(Refusal::BadTag)
                }
            }
            _ => Verdict::Refused(Refusal::NotAnOpening),
        }
    }

    /// What refuses the SYN `segment`: for where nobody listens, or the queue is full.
    #[must_use]
    pub fn refuse<P: Payload>(segment: &Segment<P>) -> Option<Segment<P>> {
        let opening = segment.opening.filter(|_| segment.control == Control::Syn)?;
        Some(Segment { control: Control::Rst, tag: opening.tag, ..Segment::default() })
    }

    fn answer<P: Payload>(&self, now: Instant, address: &[u8], opening: Opening) -> Segment<P> {
        let tag = self.tag(epoch(now), address, &opening);
        Segment {
            ack: Some(Ack::default()),
            control: Control::Syn,
            tx_stat: TxStat::Normal,
            window: self.config.receive_buffer.min(u16::MAX.into()) as u16,
            tag: opening.tag,
            opening: Some(self.config.opening(Some(tag))),
            ..Segment::default()
        }
    }

    fn gave(&self, now: Instant, address: &[u8], opening: &Opening, tag: Tag) -> bool {
        let this = epoch(now);
        [Some(this), this.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|epoch| self.tag(epoch, address, opening) == tag)
    }

    fn accept<P: Payload>(
        &self,
        now: Instant,
        tag: Tag,
        opening: Opening,
        segment: Segment<P>,
    ) -> Endpoint<P> {
        let identity = Identity { tag, secret: self.secret.derive(b"receipts", tag) };
        let mut endpoint = Endpoint::accepted(now, self.config, identity, opening, segment.window);
        endpoint.handle_packet(now, LinkId::ONLY, segment);
        endpoint
    }

    fn tag(&self, epoch: u64, address: &[u8], opening: &Opening) -> Tag {
        let mut hasher = self.secret.hasher();
        hasher.write_u64(epoch);
        hasher.write_u64(opening.tag.map_or(0, |tag| tag.0.get()));
        hasher.write(&opening.mss.to_be_bytes());
        hasher.write(&[opening.block_segments, opening.cwnd_max]);
        hasher.write(address);
        // Zero stands for "none"; one value more or less in 2⁶⁴ does not matter.
        Tag(NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MIN))
    }
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / COOKIE_LIFETIME.as_nanos()
}
