//! Split connections on their way between base stations. The bytes travel as packets, the state by reference.

use core::fmt;
use hopline_core::Length;
use hopline_proxy::split::Moved;
use hopline_proxy::split::handover::Piece;
use std::sync::{Arc, Mutex};

/// Message between base stations.
#[derive(Clone, Debug)]
pub enum Handover {
    /// A piece of the state, which follows the mobile host.
    Piece(Piece, State),
    /// It has arrived.
    Arrived(Piece),
}

/// Connections in transfer between two stations: the station that has all the pieces takes them.
#[derive(Clone)]
pub struct State(Arc<Mutex<Option<Vec<Moved<Length>>>>>);

impl State {
    pub(crate) fn of(moved: Vec<Moved<Length>>) -> Self {
        Self(Arc::new(Mutex::new(Some(moved))))
    }

    /// Takes the connections, unless they have been taken already: a station that keeps packets may come to
    /// the pieces late. The lock is never held elsewhere, since a world runs on one thread.
    pub(crate) fn take(&self) -> Option<Vec<Moved<Length>>> {
        self.0.lock().ok()?.take()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State")
    }
}
