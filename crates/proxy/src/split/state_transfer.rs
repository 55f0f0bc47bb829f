//! Transfer of split connections from the base station that a mobile host has left to its new one (I-TCP §2:
//! "the base stations hand over the sockets with everything in their buffers").
//!
//! The paper states the cost, but no protocol. Here [`OutgoingTransfers`] cuts the state into pieces of one packet
//! each, and sends them to the mobile host's own address, so that they reach its current base station as all
//! its packets do. Pieces without an acknowledgment are retransmitted. [`IncomingTransfers`] reassembles them. State
//! that does not arrive in time is given up, and the connections end with a reset.

use hopline_core::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Bytes of state in a piece.
pub const PIECE_BYTES: u32 = 1400;
/// Bytes of a piece's header: identifier of the handover, index and number of pieces.
pub const PIECE_HEADER_BYTES: u32 = 12;
/// State of both halves of a connection besides its buffers, bytes: twice the size of Linux's `struct
/// tcp_sock`.
pub const CONNECTION_STATE_BYTES: u64 = 2 * 2400;
/// Maximum number of pieces in flight: half of what a queue holds.
const WINDOW_PIECES: usize = 24;
/// Retransmission timeout of pieces.
const RETRANSMISSION_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum number of transmissions of a piece.
const MAX_TRANSMISSIONS: u8 = 10;
/// Time for which a base station waits for the rest of a transfer.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(5);

/// One of the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatePiece {
    /// Identifier of the handover at its sender.
    pub id: u32,
    /// Index of the piece, from 0.
    pub index: u32,
    /// Number of pieces.
    pub count: u32,
}

/// Action of a base station that hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferAction {
    /// Send a piece to the host's address.
    Send {
        /// Mobile host of the connections.
        mobile: Ipv4Addr,
        /// The piece.
        piece: StatePiece,
    },
    /// Report that everything has arrived.
    Completed(u32),
    /// Report that the state is lost after the last attempt.
    Failed(u32),
}

/// State that leaves a base station.
#[derive(Debug, Default)]
pub struct OutgoingTransfers {
    next_id: u32,
    transfers: BTreeMap<u32, OutgoingTransfer>,
    actions: VecDeque<TransferAction>,
}

#[derive(Debug)]
struct OutgoingTransfer {
    mobile: Ipv4Addr,
    pieces: Vec<PieceState>,
    /// Base station that has acknowledged the pieces.
    receiver: Option<Ipv4Addr>,
    next_retransmission: Instant,
    /// Number of timeouts in a row.
    timeouts: u8,
}

/// State of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceState {
    Waiting,
    Sent,
    Acknowledged,
}

impl OutgoingTransfers {
    /// Starts the transfer of `bytes` bytes of state to a mobile host's base station. Returns the identifier
    /// of the handover.
    pub fn start(&mut self, now: Instant, mobile: Ipv4Addr, bytes: u64) -> u32 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let count = bytes.div_ceil(PIECE_BYTES.into()).max(1) as usize;
        let pieces = vec![PieceState::Waiting; count];
        self.transfers.insert(
            id,
            OutgoingTransfer { mobile, pieces, receiver: None, next_retransmission: now, timeouts: 1 },
        );
        self.send_window(now, id);
        id
    }

    /// Handles the acknowledgment of a piece. Pieces that another base station has received are sent anew:
    /// the host has moved on meanwhile.
    pub fn handle_ack(&mut self, now: Instant, by: Ipv4Addr, piece: StatePiece) {
        let Some(sent) = self.transfers.get_mut(&piece.id) else { return };
        if sent.receiver.replace(by).is_some_and(|before| before != by) {
            sent.pieces.fill(PieceState::Waiting);
        }
        if let Some(state) = sent.pieces.get_mut(piece.index as usize) {
            (*state, sent.timeouts) = (PieceState::Acknowledged, 1);
        }
        if sent.pieces.iter().all(|state| *state == PieceState::Acknowledged) {
            self.transfers.remove(&piece.id);
            self.actions.push_back(TransferAction::Completed(piece.id));
        } else {
            self.send_window(now, piece.id);
        }
    }

    /// Stops transfers to a mobile host that is back: its state stays. Returns the identifiers of pending
    /// handovers.
    pub fn cancel(&mut self, mobile: Ipv4Addr) -> Vec<u32> {
        let of_host = |sent: &OutgoingTransfer| sent.mobile == mobile;
        let ids: Vec<u32> =
            self.transfers.iter().filter(|(_, sent)| of_host(sent)).map(|(id, _)| *id).collect();
        self.transfers.retain(|_, sent| !of_host(sent));
        self.actions
            .retain(|does| !matches!(does, TransferAction::Send { piece, .. } if ids.contains(&piece.id)));
        ids
    }

    /// Retransmits pieces that have not arrived.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due: Vec<u32> = self
            .transfers
            .iter()
            .filter(|(_, sent)| sent.next_retransmission <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let Some(sent) = self.transfers.get_mut(&id) else { continue };
            if sent.timeouts >= MAX_TRANSMISSIONS {
                self.transfers.remove(&id);
                self.actions.push_back(TransferAction::Failed(id));
                continue;
            }
            sent.timeouts += 1;
            for state in sent.pieces.iter_mut().filter(|state| **state == PieceState::Sent) {
                *state = PieceState::Waiting;
            }
            self.send_window(now, id);
        }
    }

    /// Sends waiting pieces, as far as the window allows.
    fn send_window(&mut self, now: Instant, id: u32) {
        let Some(sent) = self.transfers.get_mut(&id) else { return };
        sent.next_retransmission = now + RETRANSMISSION_TIMEOUT;
        let (mobile, count) = (sent.mobile, sent.pieces.len() as u32);
        let under_way = sent.pieces.iter().filter(|state| **state == PieceState::Sent).count();
        let waiting = (0..).zip(&mut sent.pieces).filter(|(_, state)| **state == PieceState::Waiting);
        for (index, state) in waiting.take(WINDOW_PIECES.saturating_sub(under_way)) {
            *state = PieceState::Sent;
            self.actions.push_back(TransferAction::Send { mobile, piece: StatePiece { id, index, count } });
        }
    }

    /// Returns the time of the next call of [`OutgoingTransfers::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.transfers.values().map(|sent| sent.next_retransmission).min()
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<TransferAction> {
        self.actions.pop_front()
    }
}

/// State that arrives at a base station. Each received piece must be acknowledged, whatever the result.
#[derive(Debug, Default)]
pub struct IncomingTransfers {
    /// Received pieces and time of the last one, by sender and handover.
    transfers: BTreeMap<(Ipv4Addr, u32), (Vec<bool>, Instant)>,
}

/// Maximum number of pieces of a handover that is accepted.
const MAX_PIECES: u32 = 1 << 16;
/// Maximum number of concurrent handovers.
const MAX_TRANSFERS: usize = 256;

impl IncomingTransfers {
    /// Handles a piece from a base station. Returns whether it was the last one missing.
    pub fn handle_piece(&mut self, now: Instant, from: Ipv4Addr, piece: StatePiece) -> bool {
        self.transfers.retain(|_, (_, since)| *since + TRANSFER_TIMEOUT > now);
        let StatePiece { id, index, count } = piece;
        if index >= count || count > MAX_PIECES {
            return false;
        }
        if self.transfers.len() >= MAX_TRANSFERS && !self.transfers.contains_key(&(from, id)) {
            return false;
        }
        let (there, since) =
            self.transfers.entry((from, id)).or_insert_with(|| (vec![false; count as usize], now));
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

    fn poll_actions(leaving: &mut OutgoingTransfers) -> Vec<TransferAction> {
        core::iter::from_fn(|| leaving.poll_action()).collect()
    }

    fn pieces(does: &[TransferAction]) -> Vec<StatePiece> {
        does.iter()
            .map(|does| if let TransferAction::Send { piece, .. } = does { *piece } else { panic!() })
            .collect()
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn state_is_sent_in_pieces_and_lost_ones_are_retransmitted() {
        let (mut leaving, mut arriving) = (OutgoingTransfers::default(), IncomingTransfers::default());
        let id = leaving.start(at(0), MOBILE, 3000);
        let first = pieces(&poll_actions(&mut leaving));
        assert_eq!(first, [0, 1, 2].map(|index| StatePiece { id, index, count: 3 }));
        for piece in [first[0], first[2], first[0]] {
            assert!(!arriving.handle_piece(at(5), OLD, piece));
            leaving.handle_ack(at(5), NEW, piece);
        }
        assert_eq!(leaving.poll_timeout(), Some(at(205)));
        leaving.handle_timeout(at(205));
        let again = pieces(&poll_actions(&mut leaving));
        assert_eq!(again, [first[1]]);
        assert!(arriving.handle_piece(at(205), OLD, again[0]), "that was the last");
        assert!(!arriving.handle_piece(at(206), OLD, again[0]), "and is so once");
        leaving.handle_ack(at(206), NEW, again[0]);
        assert_eq!(
            (poll_actions(&mut leaving), leaving.poll_timeout()),
            (vec![TransferAction::Completed(id)], None)
        );
    }

    #[test]
    fn transfer_restarts_towards_a_third_station() {
        let mut leaving = OutgoingTransfers::default();
        let id = leaving.start(at(0), MOBILE, 3000);
        let first = pieces(&poll_actions(&mut leaving));
        leaving.handle_ack(at(5), NEW, first[0]);
        leaving.handle_ack(at(9), THIRD, first[1]);
        assert_eq!(
            pieces(&poll_actions(&mut leaving)),
            [first[0], first[2]],
            "what the second has got is of no use"
        );
        leaving.handle_ack(at(9), THIRD, first[0]);
        leaving.handle_ack(at(9), THIRD, first[2]);
        assert_eq!(poll_actions(&mut leaving), [TransferAction::Completed(id)]);
    }

    #[test]
    fn transfer_is_cancelled_when_the_host_returns() {
        let mut leaving = OutgoingTransfers::default();
        let id = leaving.start(at(0), MOBILE, 3000);
        leaving.start(at(0), OLD, 0);
        leaving.handle_ack(at(5), NEW, StatePiece { id, index: 0, count: 3 });
        assert_eq!(leaving.cancel(MOBILE), [id]);
        assert_eq!(poll_actions(&mut leaving).len(), 1, "the other host's");
        leaving.handle_ack(at(6), NEW, StatePiece { id, index: 1, count: 3 });
        assert_eq!(poll_actions(&mut leaving), []);
    }

    #[test]
    fn pieces_in_flight_are_limited() {
        let mut leaving = OutgoingTransfers::default();
        leaving.start(at(0), MOBILE, 1_000_000);
        let first = pieces(&poll_actions(&mut leaving));
        assert_eq!(first.len(), WINDOW_PIECES);
        leaving.handle_ack(at(1), NEW, first[3]);
        assert_eq!(pieces(&poll_actions(&mut leaving)).len(), 1);
    }

    #[test]
    fn unanswered_transfer_fails() {
        let mut leaving = OutgoingTransfers::default();
        let id = leaving.start(at(0), MOBILE, 0);
        let mut all = poll_actions(&mut leaving);
        while let Some(due) = leaving.poll_timeout() {
            leaving.handle_timeout(due);
            all.extend(poll_actions(&mut leaving));
        }
        assert_eq!(
            (all.len(), all.last()),
            (usize::from(MAX_TRANSMISSIONS) + 1, Some(&TransferAction::Failed(id)))
        );
    }

    #[test]
    fn forged_pieces_use_bounded_memory() {
        let mut arriving = IncomingTransfers::default();
        for (index, count) in [(0, 0), (3, 3), (0, u32::MAX)] {
            assert!(!arriving.handle_piece(at(0), OLD, StatePiece { id: 1, index, count }));
        }
        for id in 0..10_000 {
            arriving.handle_piece(at(0), OLD, StatePiece { id, index: 0, count: 2 });
        }
        assert_eq!(arriving.transfers.len(), MAX_TRANSFERS);
        // Unfinished handovers have expired.
        assert!(arriving.handle_piece(at(6000), OLD, StatePiece { id: 0, index: 0, count: 1 }));
        let mut leaving = OutgoingTransfers::default();
        leaving.handle_ack(at(0), NEW, StatePiece { id: 7, index: 9, count: 1 });
        assert_eq!(leaving.poll_action(), None);
    }
}
