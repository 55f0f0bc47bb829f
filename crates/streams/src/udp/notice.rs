//! Wake-up of the users of a stream or a listener.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar};
use std::task::{Context, Waker};

/// Waiting users to wake. The descriptor is readable while there is an event to handle, from its first use on.
#[derive(Debug)]
pub(super) struct Wakeup {
    changed: Arc<Condvar>,
    /// Number of threads that wait for a change.
    waiting: u32,
    descriptor: Arc<OwnedFd>,
    /// `Ready` while there is an event to handle.
    is_ready: Readiness,
    /// State of the descriptor; `None` until it is used.
    descriptor_state: Option<Readiness>,
    wakers: Vec<(WaiterRole, Waker)>,
}

/// Threads and tasks to be woken once the table is unlocked: a thread would block on it, and a task may run at once.
#[derive(Debug, Default)]
pub(super) struct PendingWakeups {
    tasks: Vec<Waker>,
    threads: Vec<Arc<Condvar>>,
}

impl PendingWakeups {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.threads.is_empty()
    }

    pub(super) fn wake(self) {
        self.tasks.into_iter().for_each(Waker::wake);
        self.threads.iter().for_each(|changed| changed.notify_all());
    }
}

/// Role of a waiting task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "tokio"), allow(dead_code))]
pub(super) enum WaiterRole {
    /// Reads from a stream.
    Reader,
    /// Writes to a stream.
    Writer,
    /// Accepts connections; there may be several.
    Acceptor,
    /// Waits for many streams; there may be several.
    Observer,
}

/// State of the descriptor: an event to handle, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Idle,
    Ready,
}

impl Wakeup {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            changed: Arc::default(),
            waiting: 0,
            descriptor: Arc::new(descriptor),
            is_ready: Readiness::Idle,
            descriptor_state: None,
            wakers: Vec::new(),
        })
    }

    /// Registers a thread that is about to wait, until [`end_wait`](Self::end_wait).
    pub(super) fn begin_wait(&mut self) -> Arc<Condvar> {
        self.waiting += 1;
        Arc::clone(&self.changed)
    }

    pub(super) fn end_wait(&mut self) {
        self.waiting -= 1;
    }

    pub(super) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.descriptor)
    }

    /// Wakes all waiting threads and tasks.
    pub(super) fn wake(&mut self, sleepers: &mut PendingWakeups) {
        sleepers.threads.extend((self.waiting > 0).then(|| Arc::clone(&self.changed)));
        sleepers.tasks.extend(self.wakers.drain(..).map(|(_, waker)| waker));
    }

    /// Sets whether there is an event to handle.
    pub(super) fn set_readiness(&mut self, what: Readiness) {
        self.is_ready = what;
        if self.descriptor_state.is_some_and(|shown| shown != what) {
            self.write();
        }
    }

    /// Signals a further event: edge-triggered users (`EPOLLET`) get another edge.
    pub(super) fn signal_again(&mut self) {
        if self.descriptor_state == Some(Readiness::Ready) {
            self.write();
        }
    }

    /// Makes the descriptor follow the state from now on.
    pub(super) fn enable_descriptor(&mut self) {
        if self.descriptor_state.is_none() {
            self.descriptor_state = Some(Readiness::Idle);
            self.set_readiness(self.is_ready);
        }
    }

    fn write(&mut self) {
        self.descriptor_state = Some(self.is_ready);
        // The counter is 0 or 1; writing or reading toggles it.
        let _ = match self.is_ready {
            Readiness::Ready => rustix::io::write(&self.descriptor, &1u64.to_ne_bytes()),
            Readiness::Idle => rustix::io::read(&self.descriptor, &mut [0u8; 8]),
        };
    }

    /// Registers the task for a wake-up at the next change. A stream has one reader and one writer, the latest of each.
    /// All acceptors and observers are woken, since one of them may have been dropped.
    pub(super) fn register_waker(&mut self, who: WaiterRole, context: &Context<'_>) {
        self.wakers.retain(|(other, waker)| match who {
            WaiterRole::Acceptor | WaiterRole::Observer => *other != who || !waker.will_wake(context.waker()),
            WaiterRole::Reader | WaiterRole::Writer => *other != who,
        });
        self.wakers.push((who, context.waker().clone()));
    }
}
