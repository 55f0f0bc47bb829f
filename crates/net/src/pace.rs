//! What services that drive machines in real time have in common: a clock, waiting, and how often they say what they have done.

use hopline_core::Instant;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Longest wait at a time: figures are written meanwhile.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// Between two times that figures are written, at least, in nanoseconds.
const WRITES: u64 = 500_000_000;

/// The real clock, counted from the start of a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The service is to end.
    ToStop,
    /// Something has come, is due, or may be.
    ToWork,
}

/// When figures were written last.
#[derive(Debug, Default)]
pub(crate) struct Written(Option<Instant>);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "packets are in real time")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// Waits until one of `inputs` or `stop` can be read, or it is `due`. Half a second at most.
    pub(crate) fn wait(
        self,
        inputs: [BorrowedFd<'_>; 2],
        stop: BorrowedFd<'_>,
        due: Option<Instant>,
    ) -> io::Result<Woken> {
        let left = |due: Instant| Duration::from_nanos(due.as_nanos().saturating_sub(self.now().as_nanos()));
        let wait = due.map_or(LONGEST_WAIT, left).min(LONGEST_WAIT);
        let [one, other] = inputs;
        let mut waited = [stop, one, other].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(if waited[0].revents().is_empty() { Woken::ToWork } else { Woken::ToStop })
    }
}

impl Written {
    /// Whether it is time to write figures again; then they are taken for written.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now.since(last).as_nanos() >= WRITES);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}
