//! Runs a middlebox on real packets, in real time.

use bytes::Bytes;
use hopline_core::Instant;
use hopline_proxy::driver::{Driver, PumpResult};
use hopline_proxy::{PacketIo, Pep};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Maximum wait at a time, so that `tend` is called at least as often.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Passes packets of `io` to `driver` until `stop` becomes readable. Blocks.
///
/// # Errors
/// If packet I/O fails, or the system cannot wait.
pub fn run<M, Io>(driver: &mut Driver<M>, io: &mut Io, stop: BorrowedFd<'_>) -> io::Result<()>
where
    M: Pep<Bytes>,
    Io: PacketIo<Error = io::Error> + AsFd,
{
    run_with_maintenance(driver, io, Fds { stop, wake: None }, |_, _| Ok(()))
}

/// Descriptors that end the wait for packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fds<'a> {
    /// Ends the loop when it becomes readable.
    pub(crate) stop: BorrowedFd<'a>,
    /// Calls `tend` when it becomes readable.
    pub(crate) wake: Option<BorrowedFd<'a>>,
}

/// Like [`run`], but calls `tend` before every wait, at least once a second. An error of `tend` ends the loop.
pub(crate) fn run_with_maintenance<M, Io>(
    driver: &mut Driver<M>,
    io: &mut Io,
    fds: Fds<'_>,
    mut tend: impl FnMut(&mut Driver<M>, &mut Io) -> io::Result<()>,
) -> io::Result<()>
where
    M: Pep<Bytes>,
    Io: PacketIo<Error = io::Error> + AsFd,
{
    #[expect(clippy::disallowed_methods, reason = "packets are in real time")]
    let start = std::time::Instant::now();
    let now = || Instant::from_nanos(start.elapsed().as_nanos() as u64);
    loop {
        let pumped = driver.pump(now(), io)?;
        tend(driver, io)?;
        let wait = match (pumped, driver.poll_timeout()) {
            (PumpResult::BatchFull, _) => Duration::ZERO,
            (PumpResult::Drained, None) => MAX_WAIT,
            (PumpResult::Drained, Some(due)) => {
                Duration::from_nanos(due.as_nanos().saturating_sub(now().as_nanos())).min(MAX_WAIT)
            }
        };
        if wait_for(io.as_fd(), fds, wait)? == WaitResult::Stopped {
            return Ok(());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitResult {
    Stopped,
    Ready,
}

fn wait_for(io: BorrowedFd<'_>, fds: Fds<'_>, wait: Duration) -> io::Result<WaitResult> {
    let waiting = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut waited = [waiting(fds.stop), waiting(io), waiting(fds.wake.unwrap_or(fds.stop))];
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    match poll(&mut waited, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(if waited[0].revents().is_empty() { WaitResult::Ready } else { WaitResult::Stopped })
}
