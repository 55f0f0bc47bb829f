//! GSO segment groups: datagrams that leave with one system call.

use super::protocol::{GsoGrouping, Transmit};
use super::socket::Path;
use hopline_wire::ipv4::Ecn;

/// Maximum bytes of a group: those of a datagram, as which the kernel treats the group at first.
const MAX_BYTES: usize = 65_000;

/// Datagrams to one destination, all but the last of the same length (`UDP_SEGMENT`, udp(7)), contiguous in memory.
#[derive(Debug)]
pub(super) struct GsoBurst<K> {
    /// First datagram.
    first: Option<Transmit<K>>,
    /// Its datagrams, followed by at most one that [does not belong](Self::accepts) to it.
    bytes: Vec<u8>,
    /// Bytes of its datagrams.
    used: usize,
    /// Bytes that have been sent.
    sent: usize,
    mode: SendMode,
}

/// Way of sending the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SendMode {
    #[default]
    Gso,
    Single,
}

/// Next bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transmission<'a> {
    pub(super) path: Path,
    pub(super) ecn: Ecn,
    pub(super) contents: &'a [u8],
    /// Length of each datagram in bytes; the last may be shorter.
    pub(super) segment_len: usize,
}

impl Transmission<'_> {
    /// Returns the number of datagrams.
    pub(super) fn datagrams(&self) -> usize {
        self.contents.len().div_ceil(self.segment_len)
    }
}

impl<K> Default for GsoBurst<K> {
    fn default() -> Self {
        Self { first: None, bytes: Vec::new(), used: 0, sent: 0, mode: SendMode::default() }
    }
}

impl<K: Copy + PartialEq> GsoBurst<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.used
    }

    /// Returns the connection of the first datagram.
    pub(super) fn key(&self) -> Option<K> {
        self.first.and_then(|first| first.key)
    }

    /// Returns whether no datagram can be added, if at most `most` datagrams may leave at once.
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.first.is_some_and(|first| {
            !self.is_empty()
                && (first.gso_grouping == GsoGrouping::Alone
                    || !self.used.is_multiple_of(first.len)
                    || self.used >= most * first.len
                    || self.used + first.len > MAX_BYTES)
        })
    }

    /// Returns the buffer to which the next datagram is to be appended.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.is_empty() {
            (self.first, self.used, self.sent, self.mode) = (None, 0, 0, SendMode::Gso);
        }
        self.bytes.truncate(self.used);
        &mut self.bytes
    }

    /// Returns whether a datagram that was appended to the [buffer](Self::buffer) can join this group, which is not
    /// [full](Self::is_full).
    pub(super) fn accepts(&self, datagram: &Transmit<K>) -> bool {
        self.first.is_none_or(|first| {
            let together = match datagram.gso_grouping {
                GsoGrouping::Alone => false,
                GsoGrouping::SameConnection => first.key == datagram.key,
                GsoGrouping::SamePath => {
                    first.gso_grouping == GsoGrouping::SamePath || first.key == datagram.key
                }
            };
            together
                && first.path == datagram.path
                && first.ecn == datagram.ecn
                && first.fragments == datagram.fragments
                && datagram.len <= first.len
        })
    }

    /// Adds the datagram that was appended to the [buffer](Self::buffer).
    pub(super) fn push(&mut self, datagram: Transmit<K>) {
        debug_assert_eq!(
            self.bytes.len(),
            self.used + datagram.len,
            "what was appended is as long as was said"
        );
        self.first.get_or_insert(datagram);
        self.used += datagram.len;
    }

    /// Moves the datagram that was appended to the [buffer](Self::buffer) to an empty train.
    pub(super) fn move_last_to(&mut self, datagram: Transmit<K>, to: &mut Self) {
        to.buffer().extend_from_slice(&self.bytes[self.used..]);
        to.push(datagram);
        self.bytes.truncate(self.used);
    }

    /// Makes the datagrams leave one by one from now on.
    pub(super) fn disable_gso(&mut self) {
        self.mode = SendMode::Single;
    }

    /// Returns the next bytes to send.
    pub(super) fn next_transmission(&self) -> Option<Transmission<'_>> {
        let Transmit { path, ecn, len: each, .. } = self.first?;
        let left = &self.bytes[self.sent..self.used];
        let len = match self.mode {
            SendMode::Gso => left.len(),
            SendMode::Single => left.len().min(each),
        };
        (len > 0).then(|| Transmission { path, ecn, contents: &left[..len], segment_len: each })
    }

    /// Removes the bytes of [`next_transmission`](Self::next_transmission), sent or dropped.
    pub(super) fn advance(&mut self) {
        self.sent += self.next_transmission().map_or(0, |departure| departure.contents.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Fragments;
    use super::*;

    const MANY: usize = 64;

    fn datagram(len: usize, to: u16, key: u8, company: GsoGrouping) -> Transmit<u8> {
        let path = Path { peer: ([127, 0, 0, 1], to).into(), local: None };
        Transmit {
            path,
            len,
            ecn: Ecn::NotCapable,
            key: Some(key),
            gso_grouping: company,
            fragments: Fragments::Allowed,
        }
    }

    fn plain(len: usize) -> Transmit<u8> {
        datagram(len, 1, 1, GsoGrouping::SameConnection)
    }

    fn add(train: &mut GsoBurst<u8>, datagram: Transmit<u8>) {
        let buffer = train.buffer();
        buffer.resize(buffer.len() + datagram.len, 7);
        assert!(train.accepts(&datagram), "{datagram:?}");
        train.push(datagram);
    }

    fn train(lengths: &[usize]) -> GsoBurst<u8> {
        let mut train = GsoBurst::default();
        for &len in lengths {
            assert!(!train.is_full(MANY), "{lengths:?}");
            add(&mut train, plain(len));
        }
        train
    }

    fn departures(train: &mut GsoBurst<u8>) -> Vec<usize> {
        std::iter::from_fn(|| {
            let datagrams = train.next_transmission()?.datagrams();
            train.advance();
            Some(datagrams)
        })
        .collect()
    }

    #[test]
    fn equal_datagrams_share_a_burst_with_a_shorter_one_at_the_end() {
        let mut train = train(&[112, 112, 62]);
        let Transmission { contents, segment_len: each, .. } = train.next_transmission().unwrap();
        assert_eq!((contents.len(), each), (286, 112));
        assert_eq!(departures(&mut train), [3]);
        assert!(train.is_empty() && train.next_transmission().is_none());
    }

    #[test]
    fn a_datagram_that_does_not_fit_is_not_accepted() {
        let two = train(&[112, 112]);
        assert!(two.accepts(&plain(112)) && two.accepts(&plain(20)));
        assert!(!two.accepts(&plain(113)), "longer than those before");
        assert!(!two.accepts(&datagram(112, 2, 1, GsoGrouping::SamePath)), "to somebody else");
        assert!(!two.accepts(&Transmit { ecn: Ecn::Capable0, ..plain(112) }), "marked otherwise");
        assert!(!two.is_full(3) && two.is_full(2), "as many as may leave at once");
        assert!(train(&[112, 62]).is_full(MANY), "after a shorter one nothing follows");
        assert!(train(&[30_012, 30_012]).is_full(MANY), "too much");
    }

    #[test]
    fn the_protocol_selects_which_datagrams_share_a_burst() {
        let mut own = train(&[100]);
        assert!(!own.accepts(&datagram(100, 1, 2, GsoGrouping::SameConnection)));
        assert!(!own.accepts(&datagram(100, 1, 2, GsoGrouping::SamePath)), "the first keeps to itself");
        assert!(!own.accepts(&datagram(100, 1, 1, GsoGrouping::Alone)));
        let mut open = GsoBurst::default();
        add(&mut open, datagram(100, 1, 1, GsoGrouping::SamePath));
        add(&mut open, datagram(100, 1, 2, GsoGrouping::SamePath));
        assert_eq!(departures(&mut open), [2]);
        own.advance();
        add(&mut own, datagram(100, 1, 1, GsoGrouping::Alone));
        assert!(own.is_full(MANY), "it leaves alone");
    }

    #[test]
    fn without_gso_each_datagram_is_sent_alone_and_frees_its_space() {
        let mut train = train(&[112, 112, 62]);
        train.disable_gso();
        assert_eq!(departures(&mut train), [1, 1, 1]);
        let next = datagram(212, 2, 3, GsoGrouping::SameConnection);
        add(&mut train, next);
        let departure = train.next_transmission().unwrap();
        assert_eq!((departure.path, departure.contents.len(), departure.segment_len), (next.path, 212, 212));
        assert_eq!(train.key(), Some(3));
    }

    #[test]
    fn a_datagram_that_does_not_fit_starts_the_next_burst() {
        let mut train = train(&[100, 100]);
        let longer = plain(150);
        train.buffer().extend_from_slice(&[9; 150]);
        assert!(!train.accepts(&longer));
        let mut next = GsoBurst::default();
        train.move_last_to(longer, &mut next);
        assert_eq!((departures(&mut train), train.bytes.len()), (vec![2], 200));
        assert_eq!(next.next_transmission().unwrap().contents, [9; 150]);
    }

    #[test]
    fn without_offload_each_datagram_is_sent_alone() {
        assert!(train(&[112]).is_full(1));
    }
}
