//! How users of a stream or a listener learn that there is something to do.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar};
use std::task::{Context, Waker};

/// Whom to wake. The descriptor is readable exactly while there is something to do.
#[derive(Debug)]
pub(super) struct Notice {
    changed: Arc<Condvar>,
    descriptor: Arc<OwnedFd>,
    shown: Shown,
    wakers: [Option<Waker>; 2],
}

/// Which half of a stream a task waits for.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "tokio"), allow(dead_code))]
pub(super) enum Half {
    Reading,
    Writing,
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
            descriptor: Arc::new(descriptor),
            shown: Shown::Nothing,
            wakers: [None, None],
        })
    }

    pub(super) fn condition(&self) -> Arc<Condvar> {
        Arc::clone(&self.changed)
    }

    pub(super) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.descriptor)
    }

    /// Something changed. Returns the tasks to wake: by whoever no longer holds the table, for a task may run at once.
    pub(super) fn wake(&mut self) -> impl Iterator<Item = Waker> {
        self.changed.notify_all();
        self.wakers.iter_mut().filter_map(Option::take)
    }

    pub(super) fn show(&mut self, what: Shown) {
        if self.shown == what {
            return;
        }
        self.shown = what;
        // A counter of 0 or 1 takes the one and gives the other.
        let _ = match what {
            Shown::Something => rustix::io::write(&self.descriptor, &1u64.to_ne_bytes()),
            Shown::Nothing => rustix::io::read(&self.descriptor, &mut [0u8; 8]),
        };
    }

    /// Wakes the task at the next change.
    #[cfg_attr(not(feature = "tokio"), allow(dead_code))]
    pub(super) fn wake_later(&mut self, half: Half, context: &Context<'_>) {
        self.wakers[half as usize] = Some(context.waker().clone());
    }
}
