//! Flows that the two ends of a link know by different addresses, because a router at one end translates them.
//!
//! The middlebox of that router sees packets with the addresses behind it. The other end names those on the
//! link. One endpoint of the connection is the same for both, and sequence numbers are not changed. A request
//! for an unknown flow is therefore attributed to a flow with one endpoint in common that has cached the
//! requested data. A tail probe is attributed to such a flow that has received almost as much.

mod setting;

use super::tracked::ConnectionState;
use crate::packet::Connection;
use crate::table::{Table, TableIndex};
use hopline_wire::dproxy::Flow;
pub use setting::Translation;
use std::collections::BTreeMap;

/// Flows by the addresses that the other end uses for them.
#[derive(Debug)]
pub(super) struct TranslatedFlows {
    translation: Translation,
    flows: BTreeMap<Flow, Connection>,
}

/// Maximum number of remembered flows; beyond it, all are learned anew.
const MAX_FLOWS: usize = 4096;
/// Maximum number of connections that a search examines, most recently used first: requested data were sent a
/// moment ago.
const MAX_SEARCHED: usize = 1024;

impl TranslatedFlows {
    pub(super) const fn new(translation: Translation) -> Self {
        Self { translation, flows: BTreeMap::new() }
    }

    /// Returns the connection that the other end means by `flow`, which would be `named` here: one for which
    /// `fits` holds.
    pub(super) fn find<K>(
        &mut self,
        table: &Table<ConnectionState<K>>,
        flow: Flow,
        named: Connection,
        fits: impl Fn(&ConnectionState<K>) -> bool,
    ) -> Option<TableIndex> {
        if self.translation == Translation::Absent {
            return None;
        }
        let remembered = self.flows.get(&flow).and_then(|connection| table.find(connection));
        if remembered.is_some_and(|place| table.is_state(place, &fits)) {
            return remembered;
        }
        // The flow is unknown, or the router has reused its address for another connection.
        let found = table.find_among_recent(MAX_SEARCHED, |connection, tracked| {
            (connection.fixed == named.fixed) != (connection.mobile == named.mobile) && fits(tracked)
        });
        let Some(place) = found else { return remembered };
        if self.flows.len() >= MAX_FLOWS {
            self.flows.clear();
        }
        self.flows.insert(flow, table.connection(place));
        Some(place)
    }
}
