//! Wake-up of the users of a stream or a listener.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar};
use std::task::{Context, Waker};

/// Waiting users to wake. The descriptor is readable while there is an event to handle, from its first use on.
#[derive(Debug)]
pub(super) struct Notice {
    changed: Arc<Condvar>,
    /// Number of threads that wait for a change.
    waiting: u32,
    descriptor: Arc<OwnedFd>,
    /// `Something` while there is an event to handle.
    there_is: Shown,
    /// State of the descriptor; `None` until it is used.
    shown: Option<Shown>,
    wakers: Vec<(Who, Waker)>,
}

/// Threads and tasks to be woken once the table is unlocked: a thread would block on it, and a task may run at once.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    tasks: Vec<Waker>,
    threads: Vec<Arc<Condvar>>,
}

impl Sleepers {
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
pub(super) enum Who {
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
pub(super) enum Shown {
    Nothing,
    Something,
}

impl Notice {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            changed: Arc::default(),
            waiting: 0,
            descriptor: Arc::new(descriptor),
            there_is: Shown::Nothing,
            shown: None,
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
    pub(super) fn wake(&mut self, sleepers: &mut Sleepers) {
        sleepers.threads.extend((self.waiting > 0).then(|| Arc::clone(&self.changed)));
        sleepers.tasks.extend(self.wakers.drain(..).map(|(_, waker)| waker));
    }

    /// Sets whether there is an event to handle.
    pub(super) fn show(&mut self, what: Shown) {
        self.there_is = what;
        if self.shown.is_some_and(|shown| shown != what) {
            self.write();
        }
    }

    /// Signals a further event: edge-triggered users (`EPOLLET`) get another edge.
    pub(super) fn show_anew(&mut self) {
        if self.shown == Some(Shown::Something) {
            self.write();
        }
    }

    /// Makes the descriptor follow the state from now on.
    pub(super) fn is_watched(&mut self) {
        if self.shown.is_none() {
            self.shown = Some(Shown::Nothing);
            self.show(self.there_is);
        }
    }

    fn write(&mut self) {
        self.shown = Some(self.there_is);
        // The counter is 0 or 1; writing or reading toggles it.
        let _ = match self.there_is {
            Shown::Something => rustix::io::write(&self.descriptor, &1u64.to_ne_bytes()),
            Shown::Nothing => rustix::io::read(&self.descriptor, &mut [0u8; 8]),
        };
    }

    /// Registers the task for a wake-up at the next change. A stream has one reader and one writer, the latest of each.
    /// All acceptors and observers are woken, since one of them may have been dropped.
    pub(super) fn wake_later(&mut self, who: Who, context: &Context<'_>) {
        self.wakers.retain(|(other, waker)| match who {
            Who::Acceptor | Who::Observer => *other != who || !waker.will_wake(context.waker()),
            Who::Reader | Who::Writer => *other != who,
        });
        self.wakers.push((who, context.waker().clone()));
    }
}
