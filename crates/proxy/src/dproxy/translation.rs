//! Flows that the two ends of a link know by different addresses, because a router at one end translates them.
//!
//! The middlebox of that router sees packets with the addresses that they have behind it. The other end names those on the link. One
//! endpoint of the connection is the same for both, and sequence numbers are not changed: so a request for an unknown flow is taken to
//! mean a flow with one endpoint in common that keeps the data which are asked for, and the tail of one to be that of such a flow which has
//! come almost that far.

use super::Tracked;
use crate::packet::Connection;
use crate::table::{Place, Table};
use hopline_wire::dproxy::Flow;
use std::collections::BTreeMap;

/// Translation of addresses between the ends of a link and their middleboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Both ends know every connection by the same addresses.
    Absent,
    /// One end may know a connection by other addresses.
    Possible,
}

/// Flows by the names that the other end has for them.
#[derive(Debug)]
pub(super) struct Names {
    translation: Translation,
    known: BTreeMap<Flow, Connection>,
}

/// Most names that are remembered; one more, and all are learned anew.
const NAMES: usize = 4096;
/// Connections that a search looks at, those heard of last first: what is asked for has just been sent.
const SEARCHED: usize = 1024;

impl Names {
    pub(super) const fn new(translation: Translation) -> Self {
        Self { translation, known: BTreeMap::new() }
    }

    /// Returns the connection that the other end means by `flow`, which would be `named` here: one that `fits` what it says of it.
    pub(super) fn find<K>(
        &mut self,
        table: &Table<Tracked<K>>,
        flow: Flow,
        named: Connection,
        fits: impl Fn(&Tracked<K>) -> bool,
    ) -> Option<Place> {
        if self.translation == Translation::Absent {
            return None;
        }
        let remembered = self.known.get(&flow).and_then(|connection| table.find(connection));
        if remembered.is_some_and(|place| table.is(place, &fits)) {
            return remembered;
        }
        // Never heard of, or the router has given the name to another connection.
        let found = table.find_among_newest(SEARCHED, |connection, tracked| {
            (connection.fixed == named.fixed) != (connection.mobile == named.mobile) && fits(tracked)
        });
        let Some(place) = found else { return remembered };
        if self.known.len() >= NAMES {
            self.known.clear();
        }
        self.known.insert(flow, table.connection(place));
        Some(place)
    }
}
