//! Datagrams that leave with one system call.

use super::socket::Path;
use bytes::Bytes;
use hopline_wire::tpa::Segment;

/// Most bytes: a datagram's, which the kernel takes the train for at first.
const LONGEST: usize = 65_000;

/// Datagrams to one place, all but the last of the same length (`UDP_SEGMENT`, udp(7)).
#[derive(Debug, Default)]
pub(super) struct Train {
    path: Option<Path>,
    bytes: Vec<u8>,
    /// Bytes of it that have left.
    gone: usize,
    /// Length of all but the last.
    each: usize,
    coupling: Coupling,
}

/// Whether they leave together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Coupling {
    #[default]
    Together,
    OneByOne,
}

/// What leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure<'a> {
    pub(super) path: Path,
    pub(super) contents: &'a [u8],
    /// Length of each datagram in it, but of the last, which may be shorter.
    pub(super) each: usize,
}

impl Departure<'_> {
    /// Datagrams in it.
    pub(super) fn datagrams(&self) -> usize {
        self.contents.len().div_ceil(self.each)
    }
}

impl Train {
    pub(super) fn is_empty(&self) -> bool {
        self.gone == self.bytes.len()
    }

    /// Whether a datagram of `len` bytes may be added, if no more than `most` may leave at once.
    pub(super) fn has_room_for(&self, path: Path, len: usize, most: usize) -> bool {
        let used = self.bytes.len();
        self.is_empty()
            || (self.path == Some(path)
                && len <= self.each
                && used.is_multiple_of(self.each)
                && used < most * self.each
                && used + len <= LONGEST)
    }

    /// Adds a segment, for which there is [room](Self::has_room_for).
    pub(super) fn couple(&mut self, path: Path, segment: &Segment<Bytes>) {
        if self.is_empty() {
            self.bytes.clear();
            (self.path, self.gone, self.each) = (Some(path), 0, segment.udp_len());
            self.coupling = Coupling::Together;
        }
        segment.emit_udp(&mut self.bytes);
    }

    /// From now on they leave one by one.
    pub(super) fn uncouple(&mut self) {
        self.coupling = Coupling::OneByOne;
    }

    /// What leaves next.
    pub(super) fn departure(&self) -> Option<Departure<'_>> {
        let left = &self.bytes[self.gone..];
        let len = match self.coupling {
            Coupling::Together => left.len(),
            Coupling::OneByOne => left.len().min(self.each),
        };
        let path = self.path.filter(|_| len > 0)?;
        Some(Departure { path, contents: &left[..len], each: self.each })
    }

    /// It has left, or never will.
    pub(super) fn depart(&mut self) {
        self.gone += self.departure().map_or(0, |departure| departure.contents.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_wire::tpa::{Control, Place, Receipt, TxStat};

    fn to(port: u16) -> Path {
        Path { peer: ([127, 0, 0, 1], port).into(), local: None }
    }

    fn segment(len: usize) -> Segment<Bytes> {
        Segment {
            block: 1,
            place: (len > 0).then_some(Place { position: 0, last: false }),
            tx: 0,
            ack: None,
            control: Control::None,
            tx_stat: TxStat::Normal,
            window: 0,
            tag: None,
            receipt: Receipt::default(),
            opening: None,
            payload: Bytes::from(vec![7; len]),
        }
    }

    fn train(lengths: &[usize]) -> Train {
        let mut train = Train::default();
        for &len in lengths {
            assert!(train.has_room_for(to(1), segment(len).udp_len(), 64), "{lengths:?}");
            train.couple(to(1), &segment(len));
        }
        train
    }

    fn departures(train: &mut Train) -> Vec<usize> {
        std::iter::from_fn(|| {
            let datagrams = train.departure()?.datagrams();
            train.depart();
            Some(datagrams)
        })
        .collect()
    }

    #[test]
    fn equal_datagrams_leave_at_once_with_a_shorter_one_at_the_end() {
        let mut train = train(&[100, 100, 50]);
        let Departure { contents, each, .. } = train.departure().unwrap();
        assert_eq!((contents.len(), each), (3 * 12 + 250, 112));
        assert_eq!(departures(&mut train), [3]);
        assert!(train.is_empty() && train.departure().is_none());
    }

    #[test]
    fn what_does_not_fit_has_no_room() {
        let train = train(&[100, 100]);
        assert!(train.has_room_for(to(1), 112, 3) && train.has_room_for(to(1), 20, 3));
        assert!(!train.has_room_for(to(1), 113, 3), "longer than those before");
        assert!(!train.has_room_for(to(1), 112, 2), "too many");
        assert!(!train.has_room_for(to(2), 112, 3), "to somebody else");
        assert!(!self::train(&[100, 50]).has_room_for(to(1), 62, 3), "after a shorter one");
        assert!(!self::train(&[30_000, 30_000]).has_room_for(to(1), 30_012, 3), "too much");
    }

    #[test]
    fn uncoupled_each_leaves_alone_and_its_place_can_be_taken() {
        let mut train = train(&[100, 100, 50]);
        train.uncouple();
        assert_eq!(departures(&mut train), [1, 1, 1]);
        train.couple(to(2), &segment(200));
        let departure = train.departure().unwrap();
        assert_eq!((departure.path, departure.contents.len(), departure.each), (to(2), 212, 212));
    }

    #[test]
    fn without_offload_each_leaves_alone() {
        let train = train(&[100]);
        assert!(!train.has_room_for(to(1), 112, 1));
    }
}
