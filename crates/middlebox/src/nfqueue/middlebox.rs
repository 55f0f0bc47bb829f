//! Queue with a middlebox behind it, as a daemon runs it.

use super::metrics::MiddleboxMetrics;
use super::{Config, Queue, queue_stats};
use crate::middlebox_loop::{Fds, run_with_maintenance};
use crate::service::{Metric, MetricKind, Service, ServiceStatus};
use bytes::Bytes;
use hopline_linux::Error;
use hopline_proxy::Pep;
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
pub struct MiddleboxService<M> {
    queue: Queue,
    driver: Driver<M>,
    pending_change: Arc<PendingChange<M>>,
}

/// Changes the parameters of the middlebox of a running [`MiddleboxService`], or replaces it. The queue stays the same.
#[derive(Debug)]
pub struct Replacer<M>(Arc<PendingChange<M>>);

struct PendingChange<M> {
    /// Latest change. It supersedes earlier ones that have not been applied yet.
    change: Mutex<Option<Change<M>>>,
    notify: OwnedFd,
}

/// A change of parameters, or the replacement of a middlebox, which returns the old one.
type Change<M> = Box<dyn FnOnce(&mut M) -> Option<M> + Send>;

/// Interval between checks of the interface and updates of the ledger.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl<M> MiddleboxService<M> {
    /// Binds the queue, in the calling thread's namespace.
    ///
    /// # Errors
    /// As [`Queue::open`].
    pub fn open(config: &Config, machine: M) -> Result<Self, Error>
    where
        M: Pep<Bytes>,
    {
        let there_is_one = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| Error::system("making an eventfd", e))?;
        let replacement = Arc::new(PendingChange { change: Mutex::new(None), notify: there_is_one });
        Ok(Self { queue: Queue::open(config)?, driver: Driver::new(machine), pending_change: replacement })
    }

    /// Returns a handle that replaces the middlebox while it runs.
    #[must_use]
    pub fn replacer(&self) -> Replacer<M> {
        Replacer(Arc::clone(&self.pending_change))
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
        match rustix::io::write(&self.0.notify, &1u64.to_ne_bytes()) {
            // The descriptor is already readable.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<M> PendingChange<M> {
    fn take(&self) -> Option<Change<M>> {
        // An empty counter is no error.
        let _ = rustix::io::read(&self.notify, &mut [0; 8]);
        self.change.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<M> fmt::Debug for PendingChange<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement").field("there_is_one", &self.notify).finish_non_exhaustive()
    }
}

impl<M> Service for MiddleboxService<M>
where
    M: Pep<Bytes> + Send,
    M::Stats: MiddleboxMetrics,
{
    fn run(self: Box<Self>, stop: BorrowedFd<'_>, ledger: &ServiceStatus) -> io::Result<()> {
        let Self { mut queue, mut driver, pending_change: replacement } = *self;
        let fds = Fds { stop, wake: Some(replacement.notify.as_fd()) };
        let mut retired = Vec::new();
        let mut written: Option<Instant> = None;
        let ended = run_with_maintenance(&mut driver, &mut queue, fds, |driver, queue| {
            if let Some(old) = replacement.take().and_then(|change| change(driver.middlebox_mut())) {
                retired = add_counters(old.stats().metrics(), &retired);
            }
            if written.is_none_or(|written| written.elapsed() >= CHECK_INTERVAL) {
                #[expect(clippy::disallowed_methods, reason = "a ledger is in real time")]
                let now = Instant::now();
                written = Some(now);
                ledger.set_metrics(metrics(queue, driver, &retired));
                queue.check_interface()?;
            }
            Ok(())
        });
        ledger.set_metrics(metrics(&queue, &driver, &retired));
        ended
    }
}

/// Returns all metrics. `retired`: counters of previous middleboxes.
fn metrics<M>(queue: &Queue, driver: &Driver<M>, retired: &[Metric]) -> Vec<Metric>
where
    M: Pep<Bytes>,
    M::Stats: MiddleboxMetrics,
{
    let machine = driver.middlebox();
    let mut figures = queue.counts().metrics();
    figures.extend(driver.counts().metrics());
    figures.extend(add_counters(machine.stats().metrics(), retired));
    figures.push(Metric::gauge("connections", "connections that are known", machine.connections() as u64));
    if let Some(kernel) = queue_stats(queue.config.number) {
        let (full, no_room) = (kernel.queue_dropped.into(), kernel.user_dropped.into());
        figures.push(Metric::counter("found_full_packets", "packets that found the queue full", full));
        figures.push(Metric::counter("found_no_room_packets", "packets that found the socket full", no_room));
    }
    figures
}

/// Returns the sums of the counters.
fn add_counters(mut figures: Vec<Metric>, others: &[Metric]) -> Vec<Metric> {
    for figure in figures.iter_mut().filter(|figure| figure.kind == MetricKind::Counter) {
        let other = others.iter().find(|other| other.name == figure.name);
        figure.value += other.map_or(0, |other| other.value);
    }
    figures
}
