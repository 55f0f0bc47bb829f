//! Connections that nobody has accepted yet.

use super::notice::{Notice, Shown, Sleepers};
use std::collections::VecDeque;

/// The accept queue. How many it holds is the protocol's to mind, which has to answer those for whom there is no room.
#[derive(Debug)]
pub(super) struct Queue<K> {
    keys: VecDeque<K>,
    pub(super) notice: Notice,
}

impl<K> Queue<K> {
    pub(super) fn new(notice: Notice) -> Self {
        Self { keys: VecDeque::new(), notice }
    }

    pub(super) fn push(&mut self, key: K, sleepers: &mut Sleepers) {
        self.keys.push_back(key);
        self.notice.show(Shown::Something);
        self.notice.wake(sleepers);
    }

    pub(super) fn pop(&mut self) -> Option<K> {
        let key = self.keys.pop_front();
        if self.keys.is_empty() {
            self.notice.show(Shown::Nothing);
        }
        key
    }

    pub(super) fn into_keys(self) -> VecDeque<K> {
        self.keys
    }
}
