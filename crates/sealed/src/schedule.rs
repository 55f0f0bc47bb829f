//! Queues of the connections with output or events, and the timers of connections. Thanks to them, the host never searches
//! through all connections.

use crate::event::ConnectionKey;
use hopline_core::Instant;
use std::collections::{BTreeSet, VecDeque};

/// Queue of connections, in which each connection is at most once. Each connection stores its [`Membership`]. The key of a
/// deleted connection may still be in the queue.
#[derive(Debug, Default)]
pub(crate) struct RoundRobin(VecDeque<ConnectionKey>);

/// Membership of a connection in a [`RoundRobin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Membership {
    /// The connection is not in the queue.
    #[default]
    Absent,
    /// The connection is in the queue.
    Queued,
}

impl RoundRobin {
    pub(crate) fn push(&mut self, key: ConnectionKey, standing: &mut Membership) {
        if *standing == Membership::Absent {
            *standing = Membership::Queued;
            self.0.push_back(key);
        }
    }

    pub(crate) fn first(&self) -> Option<ConnectionKey> {
        self.0.front().copied()
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop_front();
    }

    /// Moves the first connection to the end.
    pub(crate) fn rotate(&mut self) {
        if self.0.len() > 1 {
            self.0.rotate_left(1);
        }
    }
}

/// Timers of all connections, at most one for each.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, ConnectionKey)>);

impl Timers {
    /// Sets the timer of a connection to `at`; `None` stops it. `set`: the stored value of this timer, which is updated.
    pub(crate) fn set(&mut self, key: ConnectionKey, set: &mut Option<Instant>, at: Option<Instant>) {
        if *set == at {
            return;
        }
        if let Some(before) = core::mem::replace(set, at) {
            self.0.remove(&(before, key));
        }
        if let Some(at) = at {
            self.0.insert((at, key));
        }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Returns all connections with timers that are due. These timers stay until they are set again.
    pub(crate) fn expired(&self, now: Instant) -> Vec<ConnectionKey> {
        self.0.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| *key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_queued_once() {
        let mut line = RoundRobin::default();
        let [one, other] = [1, 2].map(ConnectionKey);
        let mut standing = [Membership::Absent; 2];
        for _ in 0..3 {
            line.push(one, &mut standing[0]);
            line.push(other, &mut standing[1]);
        }
        line.rotate();
        assert_eq!(line.first(), Some(other));
        line.pop();
        line.pop();
        assert_eq!(line.first(), None);
    }

    #[test]
    fn a_timer_that_is_set_again_expires_once() {
        let (mut alarms, mut set) = (Timers::default(), None);
        let key = ConnectionKey(7);
        for at in [3, 5, 5, 4].map(Instant::from_secs) {
            alarms.set(key, &mut set, Some(at));
        }
        assert_eq!(
            (alarms.next(), alarms.expired(Instant::from_secs(3))),
            (Some(Instant::from_secs(4)), vec![])
        );
        assert_eq!(alarms.expired(Instant::from_secs(9)), [key]);
        alarms.set(key, &mut set, None);
        assert_eq!((alarms.next(), set), (None, None));
    }
}
