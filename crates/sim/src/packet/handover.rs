//! Split connections on their way between base stations. The bytes travel as packets, the state by reference.

use core::fmt;
use hopline_core::Length;
use hopline_proxy::split::TransferredConnection;
use hopline_proxy::split::state_transfer::StatePiece;
use std::sync::{Arc, Mutex};

/// Message between base stations.
#[derive(Clone, Debug)]
pub enum StateTransfer {
    /// A piece of the state, which follows the mobile host.
    Piece(StatePiece, TransferredState),
    /// It has arrived.
    Acknowledged(StatePiece),
}

/// Connections in transfer between two stations: the station that has all the pieces takes them.
#[derive(Clone)]
pub struct TransferredState(Arc<Mutex<Option<Vec<TransferredConnection<Length>>>>>);

impl TransferredState {
    pub(crate) fn new(moved: Vec<TransferredConnection<Length>>) -> Self {
        Self(Arc::new(Mutex::new(Some(moved))))
    }

    /// Takes the connections, unless they have been taken already: a station that keeps packets may come to
    /// the pieces late. The lock is never held elsewhere, since a world runs on one thread.
    pub(crate) fn take_once(&self) -> Option<Vec<TransferredConnection<Length>>> {
        self.0.lock().ok()?.take()
    }
}

impl fmt::Debug for TransferredState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State")
    }
}
