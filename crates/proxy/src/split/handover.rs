//! Transfer of split connections from the base station that a mobile host has left to its new one (I-TCP §2:
//! "the base stations hand over the sockets with everything in their buffers").
//!
//! The paper states the cost, but no protocol. Here [`Leaving`] cuts the state into pieces of one packet
//! each, and sends them to the mobile host's own address, so that they reach its current base station as all
//! its packets do. Pieces without an acknowledgment are retransmitted. [`Arriving`] reassembles them. State
//! that does not arrive in time is given up, and the connections end with a reset.

use hopline_core::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Bytes of state in a piece.
pub const PIECE: u32 = 1400;
/// Bytes of a piece's header: identifier of the handover, index and number of pieces.
pub const PIECE_HEADER: u32 = 12;
/// State of both halves of a connection besides its buffers, bytes: twice the size of Linux's `struct
/// tcp_sock`.
pub const STATE: u64 = 2 * 2400;
/// Maximum number of pieces in flight: half of what a queue holds.
const WINDOW: usize = 24;
/// Retransmission timeout of pieces.
const AGAIN: Duration = Duration::from_millis(200);
/// Maximum number of transmissions of a piece.
const ATTEMPTS: u8 = 10;
/// Time for which a base station waits for the rest of a transfer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One of the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Identifier of the handover at its sender.
    pub id: u32,
    /// Index of the piece, from 0.
    pub index: u32,
    /// Number of pieces.
    pub count: u32,
}

/// Action of a base station that hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Send a piece to the host's address.
    Sends {
        /// Mobile host of the connections.
        mobile: Ipv4Addr,
        /// The piece.
        piece: Piece,
    },
    /// Report that everything has arrived.
    Done(u32),
    /// Report that the state is lost after the last attempt.
    Fails(u32),
}

/// State that leaves a base station.
#[derive(Debug, Default)]
pub struct Leaving {
    next_id: u32,
    under_way: BTreeMap<u32, Sent>,
    out: VecDeque<Does>,
}

#[derive(Debug)]
struct Sent {
    mobile: Ipv4Addr,
    pieces: Vec<State>,
    /// Base station that has acknowledged the pieces.
    taker: Option<Ipv4Addr>,
    again: Instant,
    /// Number of timeouts in a row.
    tries: u8,
}

/// State of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Sent,
    Arrived,
}

impl Leaving {
    /// Starts the transfer of `bytes` bytes of state to a mobile host's base station. Returns the identifier
    /// of the handover.
    pub fn begin(&mut self, now: Instant, mobile: Ipv4Addr, bytes: u64) -> u32 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let count = bytes.div_ceil(PIECE.into()).max(1) as usize;
        let pieces = vec![State::Waits; count];
        self.under_way.insert(id, Sent { mobile, pieces, taker: None, again: now, tries: 1 });
        self.send(now, id);
        id
    }

    /// Handles the acknowledgment of a piece. Pieces that another base station has received are sent anew:
    /// the host has moved on meanwhile.
    pub fn acknowledged(&mut self, now: Instant, by: Ipv4Addr, piece: Piece) {
        let Some(sent) = self.under_way.get_mut(&piece.id) else { return };
        if sent.taker.replace(by).is_some_and(|before| before != by) {
            sent.pieces.fill(State::Waits);
        }
        if let Some(state) = sent.pieces.get_mut(piece.index as usize) {
            (*state, sent.tries) = (State::Arrived, 1);
        }
        if sent.pieces.iter().all(|state| *state == State::Arrived) {
            self.under_way.remove(&piece.id);
            self.out.push_back(Does::Done(piece.id));
        } else {
            self.send(now, piece.id);
        }
    }

    /// Stops transfers to a mobile host that is back: its state stays. Returns the identifiers of pending
    /// handovers.
    pub fn recall(&mut self, mobile: Ipv4Addr) -> Vec<u32> {
        let of_host = |sent: &Sent| sent.mobile == mobile;
        let ids: Vec<u32> =
            self.under_way.iter().filter(|(_, sent)| of_host(sent)).map(|(id, _)| *id).collect();
        self.under_way.retain(|_, sent| !of_host(sent));
        self.out.retain(|does| !matches!(does, Does::Sends { piece, .. } if ids.contains(&piece.id)));
        ids
    }

    /// Retransmits pieces that have not arrived.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due: Vec<u32> =
            self.under_way.iter().filter(|(_, sent)| sent.again <= now).map(|(id, _)| *id).collect();
        for id in due {
            let Some(sent) = self.under_way.get_mut(&id) else { continue };
            if sent.tries >= ATTEMPTS {
                self.under_way.remove(&id);
                self.out.push_back(Does::Fails(id));
                continue;
            }
            sent.tries += 1;
            for state in sent.pieces.iter_mut().filter(|state| **state == State::Sent) {
                *state = State::Waits;
            }
            self.send(now, id);
        }
    }

    /// Sends waiting pieces, as far as the window allows.
    fn send(&mut self, now: Instant, id: u32) {
        let Some(sent) = self.under_way.get_mut(&id) else { return };
        sent.again = now + AGAIN;
        let (mobile, count) = (sent.mobile, sent.pieces.len() as u32);
        let under_way = sent.pieces.iter().filter(|state| **state == State::Sent).count();
        let waiting = (0..).zip(&mut sent.pieces).filter(|(_, state)| **state == State::Waits);
        for (index, state) in waiting.take(WINDOW.saturating_sub(under_way)) {
            *state = State::Sent;
            self.out.push_back(Does::Sends { mobile, piece: Piece { id, index, count } });
        }
    }

    /// Returns the time of the next call of [`Leaving::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.under_way.values().map(|sent| sent.again).min()
    }

    /// Returns the next action.
    pub fn poll(&mut self) -> Option<Does> {
        self.out.pop_front()
    }
}

/// State that arrives at a base station. Each received piece must be acknowledged, whatever the result.
#[derive(Debug, Default)]
pub struct Arriving {
    /// Received pieces and time of the last one, by sender and handover.
    begun: BTreeMap<(Ipv4Addr, u32), (Vec<bool>, Instant)>,
}

/// Maximum number of pieces of a handover that is accepted.
const MOST_PIECES: u32 = 1 << 16;
/// Maximum number of concurrent handovers.
const MOST_BEGUN: usize = 256;

impl Arriving {
    /// Handles a piece from a base station. Returns whether it was the last one missing.
    pub fn take(&mut self, now: Instant, from: Ipv4Addr, piece: Piece) -> bool {
        self.begun.retain(|_, (_, since)| *since + PATIENCE > now);
        let Piece { id, index, count } = piece;
        if index >= count || count > MOST_PIECES {
            return false;
        }
        if self.begun.len() >= MOST_BEGUN && !self.begun.contains_key(&(from, id)) {
            return false;
        }
        let (there, since) =
            self.begun.entry((from, id)).or_insert_with(|| (vec![false; count as usize], now));
        *since = now;
        if there.len() != count as usize || there[index as usize] {
            return false;
        }
        there[index as usize] = true;
        there.iter().all(|there| *there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const NEW: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const THIRD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    fn sent(leaving: &mut Leaving) -> Vec<Does> {
        core::iter::from_fn(|| leaving.poll()).collect()
    }

    fn pieces(does: &[Does]) -> Vec<Piece> {
        does.iter().map(|does| if let Does::Sends { piece, .. } = does { *piece } else { panic!() }).collect()
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn state_goes_in_pieces_and_what_is_lost_goes_again() {
        let (mut leaving, mut arriving) = (Leaving::default(), Arriving::default());
        let id = leaving.begin(at(0), MOBILE, 3000);
        let first = pieces(&sent(&mut leaving));
        assert_eq!(first, [0, 1, 2].map(|index| Piece { id, index, count: 3 }));
        for piece in [first[0], first[2], first[0]] {
            assert!(!arriving.take(at(5), OLD, piece));
            leaving.acknowledged(at(5), NEW, piece);
        }
        assert_eq!(leaving.poll_timeout(), Some(at(205)));
        leaving.handle_timeout(at(205));
        let again = pieces(&sent(&mut leaving));
        assert_eq!(again, [first[1]]);
        assert!(arriving.take(at(205), OLD, again[0]), "that was the last");
        assert!(!arriving.take(at(206), OLD, again[0]), "and is so once");
        leaving.acknowledged(at(206), NEW, again[0]);
        assert_eq!((sent(&mut leaving), leaving.poll_timeout()), (vec![Does::Done(id)], None));
    }

    #[test]
    fn a_host_that_goes_on_to_a_third_station_is_followed_there_with_everything() {
        let mut leaving = Leaving::default();
        let id = leaving.begin(at(0), MOBILE, 3000);
        let first = pieces(&sent(&mut leaving));
        leaving.acknowledged(at(5), NEW, first[0]);
        leaving.acknowledged(at(9), THIRD, first[1]);
        assert_eq!(pieces(&sent(&mut leaving)), [first[0], first[2]], "what the second has got is of no use");
        leaving.acknowledged(at(9), THIRD, first[0]);
        leaving.acknowledged(at(9), THIRD, first[2]);
        assert_eq!(sent(&mut leaving), [Does::Done(id)]);
    }

    #[test]
    fn a_host_that_comes_back_finds_its_state_where_it_was() {
        let mut leaving = Leaving::default();
        let id = leaving.begin(at(0), MOBILE, 3000);
        leaving.begin(at(0), OLD, 0);
        leaving.acknowledged(at(5), NEW, Piece { id, index: 0, count: 3 });
        assert_eq!(leaving.recall(MOBILE), [id]);
        assert_eq!(sent(&mut leaving).len(), 1, "the other host's");
        leaving.acknowledged(at(6), NEW, Piece { id, index: 1, count: 3 });
        assert_eq!(sent(&mut leaving), []);
    }

    #[test]
    fn no_more_is_under_way_than_a_queue_holds() {
        let mut leaving = Leaving::default();
        leaving.begin(at(0), MOBILE, 1_000_000);
        let first = pieces(&sent(&mut leaving));
        assert_eq!(first.len(), WINDOW);
        leaving.acknowledged(at(1), NEW, first[3]);
        assert_eq!(pieces(&sent(&mut leaving)).len(), 1);
    }

    #[test]
    fn what_nobody_answers_is_given_up() {
        let mut leaving = Leaving::default();
        let id = leaving.begin(at(0), MOBILE, 0);
        let mut all = sent(&mut leaving);
        while let Some(due) = leaving.poll_timeout() {
            leaving.handle_timeout(due);
            all.extend(sent(&mut leaving));
        }
        assert_eq!((all.len(), all.last()), (usize::from(ATTEMPTS) + 1, Some(&Does::Fails(id))));
    }

    #[test]
    fn forged_pieces_cost_little_and_begin_nothing_twice() {
        let mut arriving = Arriving::default();
        for (index, count) in [(0, 0), (3, 3), (0, u32::MAX)] {
            assert!(!arriving.take(at(0), OLD, Piece { id: 1, index, count }));
        }
        for id in 0..10_000 {
            arriving.take(at(0), OLD, Piece { id, index: 0, count: 2 });
        }
        assert_eq!(arriving.begun.len(), MOST_BEGUN);
        // Unfinished handovers have expired.
        assert!(arriving.take(at(6000), OLD, Piece { id: 0, index: 0, count: 1 }));
        let mut leaving = Leaving::default();
        leaving.acknowledged(at(0), NEW, Piece { id: 7, index: 9, count: 1 });
        assert_eq!(leaving.poll(), None);
    }
}
