//! State of split connections between stations, in a world: its bytes travel as packets, itself by reference.

use crate::middlebox::{Action, MiddleboxPacket};
use crate::packet::{Body, PacketAccount, StateTransfer, TransferredState, header};
use hopline_core::{Instant, Length};
use hopline_proxy::split::TransferredConnection;
use hopline_proxy::split::state_transfer::{
    IncomingTransfers, OutgoingTransfers, PIECE_BYTES, PIECE_HEADER_BYTES, StatePiece, TransferAction,
};
use hopline_queue::Class;
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// No standard has this protocol: a number for experiments (RFC 3692 §2.1).
const PROTOCOL: Protocol = Protocol::Other(254);

/// A station's part in hand-overs.
#[derive(Debug)]
pub(super) struct StateTransfers {
    local: Ipv4Addr,
    outgoing: OutgoingTransfers,
    incoming: IncomingTransfers,
    /// State in transfer from here, with its length.
    in_transfer: BTreeMap<u32, (TransferredState, u64)>,
    /// Bytes of state that have left.
    pub(super) bytes: u64,
}

impl StateTransfers {
    pub(super) fn new(own: Ipv4Addr) -> Self {
        let (leaving, arriving) = (OutgoingTransfers::default(), IncomingTransfers::default());
        Self { local: own, outgoing: leaving, incoming: arriving, in_transfer: BTreeMap::new(), bytes: 0 }
    }

    /// Connections follow a mobile host.
    pub(super) fn start(
        &mut self,
        now: Instant,
        mobile: Ipv4Addr,
        moved: Vec<TransferredConnection<Length>>,
    ) {
        let bytes = moved.iter().map(TransferredConnection::len_bytes).sum();
        self.bytes += bytes;
        let id = self.outgoing.start(now, mobile, bytes);
        self.in_transfer.insert(id, (TransferredState::new(moved), bytes));
    }

    /// Handles a piece of state. Returns the answer, and the connections if that was the last piece.
    pub(super) fn handle_piece(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        piece: StatePiece,
        state: &TransferredState,
    ) -> (Action, Option<Vec<TransferredConnection<Length>>>) {
        let is_whole = self.incoming.handle_piece(now, from, piece);
        let moved = if is_whole { state.take_once() } else { None };
        (self.sending(from, StateTransfer::Acknowledged(piece), 0), moved)
    }

    /// Returns whether a packet is for this station.
    pub(super) fn is_for(&self, address: Ipv4Addr) -> bool {
        address == self.local
    }

    pub(super) fn on_acknowledged(&mut self, now: Instant, by: Ipv4Addr, piece: StatePiece) {
        self.outgoing.handle_ack(now, by, piece);
    }

    /// Returns the connections of a mobile host that is back, if their transfer from here is not complete.
    pub(super) fn recall(&mut self, mobile: Ipv4Addr) -> Option<Vec<TransferredConnection<Length>>> {
        let ids = self.outgoing.cancel(mobile);
        let recalled: Vec<_> =
            ids.iter().filter_map(|id| self.in_transfer.remove(id)?.0.take_once()).collect();
        (!recalled.is_empty()).then(|| recalled.into_iter().flatten().collect())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.outgoing.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.outgoing.poll_timeout()
    }

    /// Returns the next packet to send; `Err`: connections that have been lost in transfer.
    pub(super) fn poll(&mut self) -> Option<Result<Action, Vec<TransferredConnection<Length>>>> {
        loop {
            match self.outgoing.poll_action()? {
                TransferAction::Send { mobile, piece } => {
                    let (state, bytes) = self.in_transfer.get(&piece.id)?;
                    let before = u64::from(piece.index) * u64::from(PIECE_BYTES);
                    let len_bytes = bytes.saturating_sub(before).min(PIECE_BYTES.into()) as u32;
                    let body = StateTransfer::Piece(piece, state.clone());
                    return Some(Ok(self.sending(mobile, body, len_bytes)));
                }
                TransferAction::Completed(id) => drop(self.in_transfer.remove(&id)),
                TransferAction::Failed(id) => {
                    let lost = self.in_transfer.remove(&id).and_then(|(state, _)| state.take_once());
                    if let Some(lost) = lost {
                        return Some(Err(lost));
                    }
                }
            }
        }
    }

    fn sending(&self, to: Ipv4Addr, handover: StateTransfer, len_bytes: u32) -> Action {
        let ip = header(self.local, to, PROTOCOL);
        let len_bytes = HEADER_LEN as u32 + PIECE_HEADER_BYTES + len_bytes;
        let body = Body::Handover(handover);
        Action::Route(MiddleboxPacket {
            account: PacketAccount::Control,
            ip,
            body,
            len_bytes,
            next_hop: to,
            class: Class::Data,
            copy_of: None,
        })
    }
}
