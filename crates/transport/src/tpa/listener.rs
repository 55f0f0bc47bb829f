//! Opening of connections without state for unverified addresses.
//!
//! The listener answers a SYN with a tag. The tag is a keyed hash over the source address, the opening parameters and the
//! time, and no state is kept. The peer repeats its parameters under that tag. If the hash is correct, the peer has
//! received the answer at its address, and the connection is created. (The idea is that of SYN cookies, RFC 4987 §3.6.)

use super::config::Config;
use super::endpoint::Endpoint;
use super::secret::Secret;
use super::state::Identity;
use core::hash::Hasher;
use core::num::NonZeroU64;
use hopline_core::{Duration, Instant, LinkId, Payload, StateMachine};
use hopline_wire::tpa::{Ack, Control, Opening, Segment, Tag, TxStat};

/// Lifetime of a tag: at least this time, at most twice as long.
const COOKIE_LIFETIME: Duration = Duration::from_secs(30);

/// Listener: answers SYNs and creates endpoints.
///
/// # Example
///
/// ```
/// use core::num::NonZeroU64;
/// use hopline_core::{Instant, Length, LinkId, StateMachine};
/// use hopline_transport::tpa::{Config, Endpoint, Identity, Listener, Secret, Verdict};
/// use hopline_wire::tpa::Tag;
///
/// // Both must be unpredictable.
/// let tag = Tag(NonZeroU64::new(0x5eed).expect("not zero"));
/// let identity = Identity { tag, secret: Secret([1; 16]) };
/// let listener = Listener::new(Config::tpa(3), Secret([2; 16])).expect("valid");
///
/// let now = Instant::ZERO;
/// let mut client = Endpoint::<Length>::tagged(Config::tpa(3), identity).expect("valid");
/// client.connect(now).expect("a new endpoint");
/// let syn = client.poll_transmit(now).expect("the SYN");
/// let Verdict::Reply(answer) = listener.handle(now, b"192.0.2.1:7172", syn) else { panic!("no reply") };
/// client.handle_packet(now, LinkId::ONLY, answer);
/// // The client repeats its parameters under the tag, which shows that it received the answer.
/// let second = client.poll_transmit(now).expect("an acknowledgment");
/// assert!(matches!(listener.handle(now, b"192.0.2.1:7172", second), Verdict::Accepted(_)));
/// ```
#[derive(Clone, Debug)]
pub struct Listener {
    config: Config,
    secret: Secret,
}

/// Reaction of a listener to a segment that belongs to no connection.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "moved once, when a connection is made")]
pub enum Verdict<P: Payload> {
    /// Reply to send back.
    Reply(Segment<P>),
    /// New connection, which has processed the segment. Drain its outputs.
    Accepted(Endpoint<P>),
    /// No reaction.
    Refused(Refusal),
}

/// Reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The segment neither opens a connection nor proves that we answered its SYN.
    NoOpening,
    /// The tag is not one that this address received lately.
    BadTag,
    /// The opening requests no tag for the peer's side, which is unsafe over an open network.
    NoTag,
}

impl Listener {
    /// Creates a listener for connections with `config`.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub fn new(config: Config, secret: Secret) -> Result<Self, super::ConfigError> {
        config.validate()?;
        Ok(Self { config, secret })
    }

    /// Processes a segment from `address` that belongs to no connection. `address` identifies the peer: IP address and
    /// port, as bytes.
    pub fn handle<P: Payload>(&self, now: Instant, address: &[u8], segment: Segment<P>) -> Verdict<P> {
        let Some(opening) = segment.opening else { return Verdict::Refused(Refusal::NoOpening) };
        if opening.tag.is_none() {
            return Verdict::Refused(Refusal::NoTag);
        }
        match (segment.control, segment.tag, segment.ack) {
            (Control::Syn, None, None) => Verdict::Reply(self.syn_ack(now, address, opening)),
            (Control::None | Control::Fin, Some(tag), Some(_)) => {
                if self.is_valid_cookie(now, address, &opening, tag) {
                    Verdict::Accepted(self.accept(now, tag, opening, segment))
                } else {
                    Verdict::Refused(Refusal::BadTag)
                }
            }
            _ => Verdict::Refused(Refusal::NoOpening),
        }
    }

    /// Returns the reset that refuses the SYN `segment`, for a host without a listener or with a full queue.
    #[must_use]
    pub fn refuse<P: Payload>(segment: &Segment<P>) -> Option<Segment<P>> {
        let opening = segment.opening.filter(|_| segment.control == Control::Syn)?;
        Some(Segment { control: Control::Rst, tag: opening.tag, ..Segment::default() })
    }

    fn syn_ack<P: Payload>(&self, now: Instant, address: &[u8], opening: Opening) -> Segment<P> {
        let tag = self.tag(epoch(now), address, &opening);
        Segment {
            ack: Some(Ack::default()),
            control: Control::Syn,
            tx_stat: TxStat::Normal,
            window: self.config.receive_buffer.min(u16::MAX.into()) as u16,
            tag: opening.tag,
            opening: Some(self.config.opening_parameters(Some(tag))),
            ..Segment::default()
        }
    }

    fn is_valid_cookie(&self, now: Instant, address: &[u8], opening: &Opening, tag: Tag) -> bool {
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
        let mut endpoint = Endpoint::from_cookie(now, self.config, identity, opening, segment.window);
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
