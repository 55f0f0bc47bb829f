//! GSO segment groups: datagrams that leave with one system call.

use super::protocol::{Company, Transmit};
use super::socket::Path;
use hopline_wire::ipv4::Ecn;

/// Maximum bytes of a group: those of a datagram, as which the kernel treats the group at first.
const LONGEST: usize = 65_000;

/// Datagrams to one destination, all but the last of the same length (`UDP_SEGMENT`, udp(7)), contiguous in memory.
#[derive(Debug)]
pub(super) struct Train<K> {
    /// First datagram.
    first: Option<Transmit<K>>,
    /// Its datagrams, followed by at most one that [does not belong](Self::takes) to it.
    bytes: Vec<u8>,
    /// Bytes of its datagrams.
    used: usize,
    /// Bytes that have been sent.
    gone: usize,
    coupling: Coupling,
}

/// Way of sending the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Coupling {
    #[default]
    Together,
    OneByOne,
}

/// Next bytes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure<'a> {
    pub(super) path: Path,
    pub(super) ecn: Ecn,
    pub(super) contents: &'a [u8],
    /// Length of each datagram in bytes; the last may be shorter.
    pub(super) each: usize,
}

impl Departure<'_> {
    /// Returns the number of datagrams.
    pub(super) fn datagrams(&self) -> usize {
        self.contents.len().div_ceil(self.each)
    }
}

impl<K> Default for Train<K> {
    fn default() -> Self {
        Self { first: None, bytes: Vec::new(), used: 0, gone: 0, coupling: Coupling::default() }
    }
}

impl<K: Copy + PartialEq> Train<K> {
    pub(super) fn is_empty(&self) -> bool {
        self.gone == self.used
    }

    /// Returns the connection of the first datagram.
    pub(super) fn key(&self) -> Option<K> {
        self.first.and_then(|first| first.key)
    }

    /// Returns whether no datagram can be added, if at most `most` datagrams may leave at once.
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.first.is_some_and(|first| {
            !self.is_empty()
                && (first.company == Company::Nobody
                    || !self.used.is_multiple_of(first.len)
                    || self.used >= most * first.len
                    || self.used + first.len > LONGEST)
        })
    }

    /// Returns the buffer to which the next datagram is to be appended.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.is_empty() {
            (self.first, self.used, self.gone, self.coupling) = (None, 0, 0, Coupling::Together);
        }
        self.bytes.truncate(self.used);
        &mut self.bytes
    }

    /// Returns whether a datagram that was appended to the [buffer](Self::buffer) can join this group, which is not
    /// [full](Self::is_full).
    pub(super) fn takes(&self, datagram: &Transmit<K>) -> bool {
        self.first.is_none_or(|first| {
            let together = match datagram.company {
                Company::Nobody => false,
                Company::SameConnection => first.key == datagram.key,
                Company::SamePath => first.company == Company::SamePath || first.key == datagram.key,
            };
            together
                && first.path == datagram.path
                && first.ecn == datagram.ecn
                && first.fragments == datagram.fragments
                && datagram.len <= first.len
        })
    }

    /// Adds the datagram that was appended to the [buffer](Self::buffer).
    pub(super) fn couple(&mut self, datagram: Transmit<K>) {
        debug_assert_eq!(
            self.bytes.len(),
            self.used + datagram.len,
            "what was appended is as long as was said"
        );
        self.first.get_or_insert(datagram);
        self.used += datagram.len;
    }

    /// Moves the datagram that was appended to the [buffer](Self::buffer) to an empty train.
    pub(super) fn shunt(&mut self, datagram: Transmit<K>, to: &mut Self) {
        to.buffer().extend_from_slice(&self.bytes[self.used..]);
        to.couple(datagram);
        self.bytes.truncate(self.used);
    }

    /// Makes the datagrams leave one by one from now on.
    pub(super) fn uncouple(&mut self) {
        self.coupling = Coupling::OneByOne;
    }

    /// Returns the next bytes to send.
    pub(super) fn departure(&self) -> Option<Departure<'_>> {
        let Transmit { path, ecn, len: each, .. } = self.first?;
        let left = &self.bytes[self.gone..self.used];
        let len = match self.coupling {
            Coupling::Together => left.len(),
            Coupling::OneByOne => left.len().min(each),
        };
        (len > 0).then(|| Departure { path, ecn, contents: &left[..len], each })
    }

    /// Removes the bytes of [`departure`](Self::departure), sent or dropped.
    pub(super) fn depart(&mut self) {
        self.gone += self.departure().map_or(0, |departure| departure.contents.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Fragments;
    use super::*;

    const MANY: usize = 64;

    fn datagram(len: usize, to: u16, key: u8, company: Company) -> Transmit<u8> {
        let path = Path { peer: ([127, 0, 0, 1], to).into(), local: None };
        Transmit { path, len, ecn: Ecn::NotCapable, key: Some(key), company, fragments: Fragments::Allowed }
    }

    fn plain(len: usize) -> Transmit<u8> {
        datagram(len, 1, 1, Company::SameConnection)
    }

    fn add(train: &mut Train<u8>, datagram: Transmit<u8>) {
        let buffer = train.buffer();
        buffer.resize(buffer.len() + datagram.len, 7);
        assert!(train.takes(&datagram), "{datagram:?}");
        train.couple(datagram);
    }

    fn train(lengths: &[usize]) -> Train<u8> {
        let mut train = Train::default();
        for &len in lengths {
            assert!(!train.is_full(MANY), "{lengths:?}");
            add(&mut train, plain(len));
        }
        train
    }

    fn departures(train: &mut Train<u8>) -> Vec<usize> {
        std::iter::from_fn(|| {
            let datagrams = train.departure()?.datagrams();
            train.depart();
            Some(datagrams)
        })
        .collect()
    }

    #[test]
    fn equal_datagrams_leave_at_once_with_a_shorter_one_at_the_end() {
        let mut train = train(&[112, 112, 62]);
        let Departure { contents, each, .. } = train.departure().unwrap();
        assert_eq!((contents.len(), each), (286, 112));
        assert_eq!(departures(&mut train), [3]);
        assert!(train.is_empty() && train.departure().is_none());
    }

    #[test]
    fn what_does_not_fit_has_no_room() {
        let two = train(&[112, 112]);
        assert!(two.takes(&plain(112)) && two.takes(&plain(20)));
        assert!(!two.takes(&plain(113)), "longer than those before");
        assert!(!two.takes(&datagram(112, 2, 1, Company::SamePath)), "to somebody else");
        assert!(!two.takes(&Transmit { ecn: Ecn::Capable0, ..plain(112) }), "marked otherwise");
        assert!(!two.is_full(3) && two.is_full(2), "as many as may leave at once");
        assert!(train(&[112, 62]).is_full(MANY), "after a shorter one nothing follows");
        assert!(train(&[30_012, 30_012]).is_full(MANY), "too much");
    }

    #[test]
    fn who_travels_with_whom_is_for_the_protocol_to_say() {
        let mut own = train(&[100]);
        assert!(!own.takes(&datagram(100, 1, 2, Company::SameConnection)));
        assert!(!own.takes(&datagram(100, 1, 2, Company::SamePath)), "the first keeps to itself");
        assert!(!own.takes(&datagram(100, 1, 1, Company::Nobody)));
        let mut open = Train::default();
        add(&mut open, datagram(100, 1, 1, Company::SamePath));
        add(&mut open, datagram(100, 1, 2, Company::SamePath));
        assert_eq!(departures(&mut open), [2]);
        own.depart();
        add(&mut own, datagram(100, 1, 1, Company::Nobody));
        assert!(own.is_full(MANY), "it leaves alone");
    }

    #[test]
    fn uncoupled_each_leaves_alone_and_its_place_can_be_taken() {
        let mut train = train(&[112, 112, 62]);
        train.uncouple();
        assert_eq!(departures(&mut train), [1, 1, 1]);
        let next = datagram(212, 2, 3, Company::SameConnection);
        add(&mut train, next);
        let departure = train.departure().unwrap();
        assert_eq!((departure.path, departure.contents.len(), departure.each), (next.path, 212, 212));
        assert_eq!(train.key(), Some(3));
    }

    #[test]
    fn a_datagram_that_does_not_fit_is_the_first_of_the_next_train() {
        let mut train = train(&[100, 100]);
        let longer = plain(150);
        train.buffer().extend_from_slice(&[9; 150]);
        assert!(!train.takes(&longer));
        let mut next = Train::default();
        train.shunt(longer, &mut next);
        assert_eq!((departures(&mut train), train.bytes.len()), (vec![2], 200));
        assert_eq!(next.departure().unwrap().contents, [9; 150]);
    }

    #[test]
    fn without_offload_each_leaves_alone() {
        assert!(train(&[112]).is_full(1));
    }
}
