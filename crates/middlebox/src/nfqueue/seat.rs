//! Queue with a middlebox behind it, as a daemon runs it.

use super::figures::Figures;
use super::{Config, Queue, in_kernel};
use crate::in_path::{Fds, run_tended};
use crate::service::{Figure, FigureKind, Ledger, Service};
use bytes::Bytes;
use hopline_linux::Error;
use hopline_proxy::Filter;
use hopline_proxy::driver::Driver;
use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A middlebox at a queue.
#[derive(Debug)]
pub struct Seat<M> {
    queue: Queue,
    driver: Driver<M>,
    replacement: Arc<Replacement<M>>,
}

/// Changes the parameters of the middlebox of a running [`Seat`], or replaces it. The queue stays the same.
#[derive(Debug)]
pub struct Replacer<M>(Arc<Replacement<M>>);

struct Replacement<M> {
    /// Latest change. It supersedes earlier ones that have not been applied yet.
    change: Mutex<Option<Change<M>>>,
    there_is_one: OwnedFd,
}

/// A change of parameters, or the replacement of a middlebox, which returns the old one.
type Change<M> = Box<dyn FnOnce(&mut M) -> Option<M> + Send>;

/// Interval between checks of the interface and updates of the ledger.
const PERIOD: Duration = Duration::from_secs(1);

impl<M> Seat<M> {
    /// Binds the queue, in the calling thread's namespace.
    ///
    /// # Errors
    /// As [`Queue::open`].
    pub fn open(config: &Config, machine: M) -> Result<Self, Error>
    where
        M: Filter<Bytes>,
    {
        let there_is_one = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| Error::system("making an eventfd", e))?;
        let replacement = Arc::new(Replacement { change: Mutex::new(None), there_is_one });
        Ok(Self { queue: Queue::open(config)?, driver: Driver::new(machine), replacement })
    }

    /// Returns a handle that replaces the middlebox while it runs.
    #[must_use]
    pub fn replacer(&self) -> Replacer<M> {
        Replacer(Arc::clone(&self.replacement))
    }
}

impl<M> Clone for Replacer<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> Replacer<M> {
    /// Replaces the middlebox at once. The state of connections in the old one is lost; they continue, and the new one
    /// learns them from passing packets. Counters are kept.
    ///
    /// # Errors
    /// If the thread that runs the seat cannot be woken.
    pub fn replace(&self, machine: M) -> io::Result<()>
    where
        M: Send + 'static,
    {
        self.change(move |old| Some(mem::replace(old, machine)))
    }

    /// Applies a change to the middlebox at once. If the change replaces the middlebox, it returns the old one, so that
    /// counters are kept. A pending change is superseded, so each change must be complete.
    ///
    /// # Errors
    /// If the thread that runs the seat cannot be woken.
    pub fn change(&self, change: impl FnOnce(&mut M) -> Option<M> + Send + 'static) -> io::Result<()> {
        *self.0.change.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(change));
        match rustix::io::write(&self.0.there_is_one, &1u64.to_ne_bytes()) {
            // The descriptor is already readable.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<M> Replacement<M> {
    fn take(&self) -> Option<Change<M>> {
        // An empty counter is no error.
        let _ = rustix::io::read(&self.there_is_one, &mut [0; 8]);
        self.change.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<M> fmt::Debug for Replacement<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement").field("there_is_one", &self.there_is_one).finish_non_exhaustive()
    }
}

impl<M> Service for Seat<M>
where
    M: Filter<Bytes> + Send,
    M::Stats: Figures,
{
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &Ledger) -> io::Result<()> {
        let Self { mut queue, mut driver, replacement } = *self;
        let fds = Fds { stop, wake: Some(replacement.there_is_one.as_fd()) };
        let mut retired = Vec::new();
        let mut written: Option<Instant> = None;
        let ended = run_tended(&mut driver, &mut queue, fds, |driver, queue| {
            if let Some(old) = replacement.take().and_then(|change| change(driver.machine_mut())) {
                retired = summed(old.stats().figures(), &retired);
            }
            if written.is_none_or(|written| written.elapsed() >= PERIOD) {
                #[expect(clippy::disallowed_methods, reason = "a ledger is in real time")]
                let now = Instant::now();
                written = Some(now);
                ledger.write(figures(queue, driver, &retired));
                queue.check_interface()?;
            }
            Ok(())
        });
        ledger.write(figures(&queue, &driver, &retired));
        ended
    }
}

/// Returns all metrics. `retired`: counters of previous middleboxes.
fn figures<M>(queue: &Queue, driver: &Driver<M>, retired: &[Figure]) -> Vec<Figure>
where
    M: Filter<Bytes>,
    M::Stats: Figures,
{
    let machine = driver.machine();
    let mut figures = queue.counts().figures();
    figures.extend(driver.counts().figures());
    figures.extend(summed(machine.stats().figures(), retired));
    figures.push(Figure::gauge("connections", "connections that are known", machine.connections() as u64));
    if let Some(kernel) = in_kernel(queue.config.number) {
        let (full, no_room) = (kernel.found_full.into(), kernel.found_no_room.into());
        figures.push(Figure::counter("found_full_packets", "packets that found the queue full", full));
        figures.push(Figure::counter("found_no_room_packets", "packets that found the socket full", no_room));
    }
    figures
}

/// Returns the sums of the counters.
fn summed(mut figures: Vec<Figure>, others: &[Figure]) -> Vec<Figure> {
    for figure in figures.iter_mut().filter(|figure| figure.kind == FigureKind::Counter) {
        let other = others.iter().find(|other| other.name == figure.name);
        figure.value += other.map_or(0, |other| other.value);
    }
    figures
}
