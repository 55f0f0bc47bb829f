//! Shared parts of real-time services: a clock, waiting, and the interval between updates of metrics.

use hopline_core::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Maximum wait at a time, so that metrics are updated meanwhile.
const MAX_WAIT: Duration = Duration::from_millis(500);
/// Minimum interval between updates of metrics, in nanoseconds.
const METRICS_INTERVAL: u64 = 500_000_000;

/// Real-time clock that starts with a service.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

/// Reason that a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// The service has to end.
    Stopped,
    /// There may be an event to process.
    Ready,
}

/// Time of the last update of metrics.
#[derive(Debug, Default)]
pub struct MetricsTimer(Option<Instant>);

impl Clock {
    /// Starts a clock at zero.
    #[expect(clippy::disallowed_methods, reason = "packets are in real time")]
    #[must_use]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn now(self) -> Instant {
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// Waits until one of `inputs` or `stop` becomes readable, or until `due`; at most half a second.
    pub fn wait(
        self,
        inputs: [BorrowedFd<'_>; 2],
        stop: BorrowedFd<'_>,
        due: Option<Instant>,
    ) -> io::Result<WaitResult> {
        let left = |due: Instant| Duration::from_nanos(due.as_nanos().saturating_sub(self.now().as_nanos()));
        let wait = due.map_or(MAX_WAIT, left).min(MAX_WAIT);
        let [one, other] = inputs;
        let mut waited = [stop, one, other].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(if waited[0].revents().is_empty() { WaitResult::Ready } else { WaitResult::Stopped })
    }
}

impl MetricsTimer {
    /// Returns whether metrics are due for an update, and if so records the update.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now.since(last).as_nanos() >= METRICS_INTERVAL);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}
