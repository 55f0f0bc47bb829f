//! Accept queue.

use super::notice::{PendingWakeups, Readiness, Wakeup};
use std::collections::VecDeque;

/// Accept queue. The protocol enforces its limit, since it has to answer peers that exceed it.
#[derive(Debug)]
pub(super) struct Queue<K> {
    keys: VecDeque<K>,
    pub(super) notice: Wakeup,
}

impl<K> Queue<K> {
    pub(super) fn new(notice: Wakeup) -> Self {
        Self { keys: VecDeque::new(), notice }
    }

    pub(super) fn push(&mut self, key: K, sleepers: &mut PendingWakeups) {
        self.keys.push_back(key);
        self.notice.set_readiness(Readiness::Ready);
        self.notice.wake(sleepers);
    }

    pub(super) fn pop(&mut self) -> Option<K> {
        let key = self.keys.pop_front();
        if self.keys.is_empty() {
            self.notice.set_readiness(Readiness::Idle);
        }
        key
    }

    pub(super) fn into_keys(self) -> VecDeque<K> {
        self.keys
    }
}
