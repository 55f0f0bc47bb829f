//! How users of a stream or a listener learn that there is something to do.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar};
use std::task::{Context, Waker};

/// Whom to wake. The descriptor is readable while there is something to do, from when somebody looks at it on.
#[derive(Debug)]
pub(super) struct Notice {
    changed: Arc<Condvar>,
    /// Threads that wait for a change.
    waiting: u32,
    descriptor: Arc<OwnedFd>,
    /// Whether there is something to do.
    there_is: Shown,
    /// What the descriptor says; `None` as long as nobody has asked for it.
    shown: Option<Shown>,
    wakers: Vec<(Who, Waker)>,
}

/// Who is to be woken once the table is free: a thread would only wait for it, and a task may run at once.
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

/// Which task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "tokio"), allow(dead_code))]
pub(super) enum Who {
    /// The one that reads from a stream.
    Reader,
    /// The one that writes to it.
    Writer,
    /// One of those that accept connections.
    Acceptor,
    /// One of those that wait for many streams.
    Observer,
}

/// Whether there is something to do.
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

    /// A thread is about to wait for this; it says when it [no longer does](Self::end_wait).
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

    /// Something changed.
    pub(super) fn wake(&mut self, sleepers: &mut Sleepers) {
        sleepers.threads.extend((self.waiting > 0).then(|| Arc::clone(&self.changed)));
        sleepers.tasks.extend(self.wakers.drain(..).map(|(_, waker)| waker));
    }

    /// Whether there is something to do.
    pub(super) fn show(&mut self, what: Shown) {
        self.there_is = what;
        if self.shown.is_some_and(|shown| shown != what) {
            self.write();
        }
    }

    /// There is more to do than was shown: who looks for edges (`EPOLLET`) has one again.
    pub(super) fn show_anew(&mut self) {
        if self.shown == Some(Shown::Something) {
            self.write();
        }
    }

    /// From now on the descriptor says what is.
    pub(super) fn is_watched(&mut self) {
        if self.shown.is_none() {
            self.shown = Some(Shown::Nothing);
            self.show(self.there_is);
        }
    }

    fn write(&mut self) {
        self.shown = Some(self.there_is);
        // A counter of 0 or 1 takes the one and gives the other.
        let _ = match self.there_is {
            Shown::Something => rustix::io::write(&self.descriptor, &1u64.to_ne_bytes()),
            Shown::Nothing => rustix::io::read(&self.descriptor, &mut [0u8; 8]),
        };
    }

    /// Wakes the task at the next change. A stream has one reader and one writer, the latest of each; but all who accept or
    /// observe are woken, as one of them may be gone.
    pub(super) fn wake_later(&mut self, who: Who, context: &Context<'_>) {
        self.wakers.retain(|(other, waker)| match who {
            Who::Acceptor | Who::Observer => *other != who || !waker.will_wake(context.waker()),
            Who::Reader | Who::Writer => *other != who,
        });
        self.wakers.push((who, context.waker().clone()));
    }
}
