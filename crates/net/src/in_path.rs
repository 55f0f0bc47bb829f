//! A machine in the path of real packets, in real time.

use bytes::Bytes;
use hopline_core::Instant;
use hopline_proxy::driver::{Driver, Pumped};
use hopline_proxy::{Filter, PacketIo};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Longest wait at a time, so that the arithmetic of times cannot overflow.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Brings `driver` what comes by `io` until `stop` can be read. Blocks.
///
/// # Errors
/// If the path breaks down, or the system does not wait.
pub fn run<M, Io>(driver: &mut Driver<M>, io: &mut Io, stop: BorrowedFd<'_>) -> io::Result<()>
where
    M: Filter<Bytes>,
    Io: PacketIo<Error = io::Error> + AsFd,
{
    #[expect(clippy::disallowed_methods, reason = "packets are in real time")]
    let start = std::time::Instant::now();
    let now = || Instant::from_nanos(start.elapsed().as_nanos() as u64);
    loop {
        let pumped = driver.pump(now(), io)?;
        let wait = match (pumped, driver.poll_timeout()) {
            (Pumped::Batch, _) => Duration::ZERO,
            (Pumped::All, None) => LONGEST_WAIT,
            (Pumped::All, Some(due)) => {
                Duration::from_nanos(due.as_nanos().saturating_sub(now().as_nanos())).min(LONGEST_WAIT)
            }
        };
        if wait_for(io.as_fd(), stop, wait)? == Woken::ToStop {
            return Ok(());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    ToStop,
    ToWork,
}

fn wait_for(io: BorrowedFd<'_>, stop: BorrowedFd<'_>, wait: Duration) -> io::Result<Woken> {
    let mut waited =
        [PollFd::from_borrowed_fd(io, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    match poll(&mut waited, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(if waited[1].revents().is_empty() { Woken::ToWork } else { Woken::ToStop })
}
