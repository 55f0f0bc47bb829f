//! Accept queue.

use super::notice::{Notice, Shown, Sleepers};
use std::collections::VecDeque;

/// Accept queue. The protocol enforces its limit, since it has to answer peers that exceed it.
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
