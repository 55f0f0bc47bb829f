//! The stack, and the tasks that wait for its events.

use hopline_core::Instant;
use hopline_stack::{ConnectionId, Event, Stack};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::mpsc::UnboundedSender;

/// The stack, shared by the driver and all connections. All are tasks of one thread, and none holds the lock while it
/// waits.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    start: std::time::Instant,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) stack: Stack,
    /// Tasks that wait for events of a connection: the latest for each.
    wakers: BTreeMap<ConnectionId, Waker>,
    /// Waker of the driver's task.
    pub(super) driver: Option<Waker>,
    /// Channel for connections that peers open. There are at most as many as the stack has.
    accepted: UnboundedSender<ConnectionId>,
}

impl Shared {
    pub(super) fn new(stack: Stack, accepted: UnboundedSender<ConnectionId>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "packets are in real time")]
        let start = std::time::Instant::now();
        let state = State { stack, wakers: BTreeMap::new(), driver: None, accepted };
        Self { state: Mutex::new(state), start }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a call of the stack, and wakes the driver to send the resulting packets.
    pub(super) fn call<T>(&self, call: impl FnOnce(&mut Stack, Instant) -> T) -> T {
        let mut state = self.lock();
        let done = call(&mut state.stack, self.now());
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
        done
    }

    /// Wakes `waker` at the next event of a connection.
    pub(super) fn wait(&self, id: ConnectionId, waker: &Waker) {
        self.lock().wakers.insert(id, waker.clone());
    }

    /// Removes the waiting task of a connection.
    pub(super) fn forget(&self, id: ConnectionId) {
        self.lock().wakers.remove(&id);
    }
}

impl State {
    /// Wakes the tasks of connections with events.
    pub(super) fn wake_tasks(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Changed(id) => self.wakers.remove(&id).into_iter().for_each(Waker::wake),
                // The receiver is dropped with the service, and the stack with it.
                Event::Accepted(id) => drop(self.accepted.send(id)),
            }
        }
    }
}
