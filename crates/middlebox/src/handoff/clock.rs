//! Time, and waiting.

use crate::service::{Metric, Notice, ServiceStatus};
use hopline_core::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime};

/// Time between two entries into a ledger, and the longest wait.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// The real clock, counted from the making of the value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: std::time::Instant,
    /// Time of the start, in microseconds of the wall clock. Message numbers begin there.
    pub(super) epoch_us: u64,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "packets are in real time")]
    pub(super) fn start() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let epoch_us = epoch.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
        Self { start: std::time::Instant::now(), epoch_us }
    }

    pub(super) fn now(self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }
}

/// Schedule of the ledger's entries.
#[derive(Debug)]
pub(super) struct StatusWriter<'a> {
    ledger: &'a ServiceStatus,
    due: Instant,
}

impl<'a> StatusWriter<'a> {
    pub(super) const fn new(ledger: &'a ServiceStatus) -> Self {
        Self { ledger, due: Instant::ZERO }
    }

    /// Writes, if it is time. Returns whether it was.
    pub(super) fn write_if_due(&mut self, now: Instant, figures: impl FnOnce() -> Vec<Metric>) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = now + hopline_core::Duration::from_nanos(STATUS_INTERVAL.as_nanos() as u64);
            self.ledger.set_metrics(figures());
        }
        is_due
    }

    /// Says how something is.
    pub(super) fn report(&self, notice: Notice) {
        self.ledger.report(notice);
    }

    /// Returns the time until the next entry of the ledger or until `due`, whichever comes first.
    pub(super) fn wait(&self, now: Instant, due: Option<Instant>) -> Duration {
        let next = due.map_or(self.due, |due| due.min(self.due));
        Duration::from_nanos(next.as_nanos().saturating_sub(now.as_nanos()))
    }
}

/// Reason why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitResult {
    /// The service is asked to stop.
    Stopped,
    /// Something has come, or it is time.
    Ready,
}

/// Waits until something has come to one of `sources` or to `stop`, `longest` at most.
pub(super) fn wait_for<'a>(
    sources: impl IntoIterator<Item = BorrowedFd<'a>>,
    stop: BorrowedFd<'a>,
    longest: Duration,
) -> io::Result<WaitResult> {
    let all = [stop].into_iter().chain(sources);
    let mut waited: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
    match poll(&mut waited, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(if waited[0].revents().is_empty() { WaitResult::Ready } else { WaitResult::Stopped })
}
