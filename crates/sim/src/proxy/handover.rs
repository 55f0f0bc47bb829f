//! State of split connections between stations, in a world: its bytes travel as packets, itself by reference.

use crate::in_path::{Sending, Wish};
use crate::packet::{Account, Body, Handover, State, header};
use hopline_core::{Instant, Length};
use hopline_proxy::split::Moved;
use hopline_proxy::split::handover::{Arriving, Does, Leaving, PIECE, PIECE_HEADER, Piece};
use hopline_queue::Class;
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// No standard has this protocol: a number for experiments (RFC 3692 §2.1).
const PROTOCOL: Protocol = Protocol::Other(254);

/// A station's part in hand-overs.
#[derive(Debug)]
pub(super) struct Handovers {
    own: Ipv4Addr,
    leaving: Leaving,
    arriving: Arriving,
    /// State in transfer from here, with its length.
    under_way: BTreeMap<u32, (State, u64)>,
    /// Bytes of state that have left.
    pub(super) bytes: u64,
}

impl Handovers {
    pub(super) fn new(own: Ipv4Addr) -> Self {
        let (leaving, arriving) = (Leaving::default(), Arriving::default());
        Self { own, leaving, arriving, under_way: BTreeMap::new(), bytes: 0 }
    }

    /// Connections follow a mobile host.
    pub(super) fn begin(&mut self, now: Instant, mobile: Ipv4Addr, moved: Vec<Moved<Length>>) {
        let bytes = moved.iter().map(Moved::len_bytes).sum();
        self.bytes += bytes;
        let id = self.leaving.begin(now, mobile, bytes);
        self.under_way.insert(id, (State::of(moved), bytes));
    }

    /// Handles a piece of state. Returns the answer, and the connections if that was the last piece.
    pub(super) fn take(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        piece: Piece,
        state: &State,
    ) -> (Wish, Option<Vec<Moved<Length>>>) {
        let is_whole = self.arriving.take(now, from, piece);
        let moved = if is_whole { state.take() } else { None };
        (self.sending(from, Handover::Arrived(piece), 0), moved)
    }

    /// Returns whether a packet is for this station.
    pub(super) fn is_for(&self, address: Ipv4Addr) -> bool {
        address == self.own
    }

    pub(super) fn acknowledged(&mut self, now: Instant, by: Ipv4Addr, piece: Piece) {
        self.leaving.acknowledged(now, by, piece);
    }

    /// Returns the connections of a mobile host that is back, if their transfer from here is not complete.
    pub(super) fn recall(&mut self, mobile: Ipv4Addr) -> Option<Vec<Moved<Length>>> {
        let ids = self.leaving.recall(mobile);
        let recalled: Vec<_> = ids.iter().filter_map(|id| self.under_way.remove(id)?.0.take()).collect();
        (!recalled.is_empty()).then(|| recalled.into_iter().flatten().collect())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.leaving.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.leaving.poll_timeout()
    }

    /// Returns the next packet to send; `Err`: connections that have been lost in transfer.
    pub(super) fn poll(&mut self) -> Option<Result<Wish, Vec<Moved<Length>>>> {
        loop {
            match self.leaving.poll()? {
                Does::Sends { mobile, piece } => {
                    let (state, bytes) = self.under_way.get(&piece.id)?;
                    let before = u64::from(piece.index) * u64::from(PIECE);
                    let len_bytes = bytes.saturating_sub(before).min(PIECE.into()) as u32;
                    let body = Handover::Piece(piece, state.clone());
                    return Some(Ok(self.sending(mobile, body, len_bytes)));
                }
                Does::Done(id) => drop(self.under_way.remove(&id)),
                Does::Fails(id) => {
                    let lost = self.under_way.remove(&id).and_then(|(state, _)| state.take());
                    if let Some(lost) = lost {
                        return Some(Err(lost));
                    }
                }
            }
        }
    }

    fn sending(&self, to: Ipv4Addr, handover: Handover, len_bytes: u32) -> Wish {
        let ip = header(self.own, to, PROTOCOL);
        let len_bytes = HEADER_LEN as u32 + PIECE_HEADER + len_bytes;
        let body = Body::Handover(handover);
        Wish::Route(Sending {
            account: Account::Control,
            ip,
            body,
            len_bytes,
            next_hop: to,
            class: Class::Data,
            copy_of: None,
        })
    }
}
