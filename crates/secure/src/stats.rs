//! Counters of dropped datagrams, by reason.

use core::fmt;

/// A reason for which datagrams are dropped.
pub trait DropReason: Copy + fmt::Debug + 'static {
    /// Every reason.
    const ALL: &'static [Self];

    /// Returns the position in [`Self::ALL`].
    fn index(self) -> usize;
}

/// Number of times that each of `N` reasons occurred.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Counts<D: DropReason, const N: usize> {
    counts: [u64; N],
    reasons: core::marker::PhantomData<D>,
}

impl<D: DropReason, const N: usize> Counts<D, N> {
    /// Returns the number of times that `reason` occurred.
    #[must_use]
    pub fn of(&self, reason: D) -> u64 {
        self.counts[reason.index()]
    }

    /// Returns the total number of drops, for all reasons.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Counts one more occurrence.
    pub fn add(&mut self, reason: D) {
        self.counts[reason.index()] += 1;
    }

    /// Adds the counters of `others`.
    pub fn merge(&mut self, others: &Self) {
        self.counts.iter_mut().zip(&others.counts).for_each(|(count, more)| *count += more);
    }
}

impl<D: DropReason, const N: usize> Default for Counts<D, N> {
    fn default() -> Self {
        const { assert!(D::ALL.len() == N, "one count for each reason") };
        Self { counts: [0; N], reasons: core::marker::PhantomData }
    }
}

impl<D: DropReason, const N: usize> fmt::Debug for Counts<D, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let occurred = D::ALL.iter().map(|reason| (reason, self.of(*reason))).filter(|(_, count)| *count > 0);
        f.debug_map().entries(occurred).finish()
    }
}

/// Declares reasons, and what counts them.
macro_rules! reasons {
    ($(#[$about:meta])* $name:ident, $counts:ident; $($(#[$doc:meta])* $reason:ident,)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $reason,)+
        }

        impl DropReason for $name {
            const ALL: &'static [Self] = &[$(Self::$reason),+];

            fn index(self) -> usize {
                self as usize
            }
        }

        #[doc = concat!("Counts of each [`", stringify!($name), "`].")]
        pub type $counts = Counts<$name, { $name::ALL.len() }>;
    };
}

reasons! {
    /// Reason that a sealed datagram was not opened.
    Rejection, Rejections;
    /// Too short for a header and a tag.
    Truncated,
    /// It belongs to a handshake, or to another connection.
    Foreign,
    /// It has come before.
    Repeated,
    /// Too far behind the highest number to know whether it has come before.
    TooOld,
    /// Its number is more than a change of keys ahead.
    TooFarAhead,
    /// The sender does not have the key, or an attacker has changed the datagram.
    Forged,
    /// More forged ones have come than the cipher stands (RFC 9001 §6.6). The connection is over.
    Worn,
}

reasons! {
    /// Reason that an initiator or a responder refused a datagram.
    Refused, Refusals;
    /// The datagram is not a message, or not one for this end.
    Malformed,
    /// It belongs to no handshake in progress.
    Unknown,
    /// It makes no sense at this point: a repetition, or later than what it opens.
    Late,
    /// The sender has another key, or an attacker has changed the datagram.
    Unauthentic,
    /// Authentic, and not what the protocol allows: versions, a connection id, the length of parameters.
    Improper,
    /// From a peer with a public key that is not trusted.
    Stranger,
    /// The methods differ.
    Method,
    /// The ends have no common version.
    Version,
    /// It came without a valid cookie when one was needed; it was answered by one.
    Cookie,
    /// More first messages came than are answered. An initiator that sends it again soon is answered.
    Unanswered,
    /// As many handshakes had begun recently as may, and this one found no room in time, or gave way in the
    /// queue.
    Full,
    /// A handshake that was given up to make room for another one.
    Evicted,
    /// It was not read: too many messages for the same handshake have failed, or it came from another address.
    OverBudget,
    /// A sealed datagram that came before its handshake was over.
    Early,
    /// A handshake that was given up: the initiator fell silent.
    Expired,
}
