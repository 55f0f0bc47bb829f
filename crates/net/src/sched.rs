//! A thread that has to be on time.

use crate::sys;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;

/// How the system treats a thread that asked to be on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Before everything that is not real-time (`SCHED_FIFO`).
    RealTime,
    /// As everybody: there was no permission for more (`CAP_SYS_NICE`, or `RLIMIT_RTPRIO`).
    Ordinary,
}

/// Lets the threads of this process ask to be on time, and programs that it starts, when it has given up `CAP_SYS_NICE`: by the limit
/// `RLIMIT_RTPRIO`, which privileges raise now (`CAP_SYS_RESOURCE`), or which others have raised.
///
/// # Errors
/// What the system says; nothing is worse then.
pub fn keep_the_right_to_be_on_time() -> io::Result<()> {
    let priority = u64::from(sys::PRIORITY.unsigned_abs());
    let limit = getrlimit(Resource::Rtprio);
    // None is no limit.
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= priority);
    if is_enough(limit.current) {
        return Ok(());
    }
    let maximum = if is_enough(limit.maximum) { limit.maximum } else { Some(priority) };
    Ok(setrlimit(Resource::Rtprio, Rlimit { current: Some(priority), maximum })?)
}

/// Asks for the calling thread to be woken when it said, not later: timers are not batched (their slack is 1 ns
/// instead of 50 µs), and ordinary threads give way, if the system permits.
#[must_use]
pub fn be_on_time() -> Priority {
    // Without it the thread is later, by what the link's own statistics then say.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    match sys::become_real_time() {
        Ok(()) => Priority::RealTime,
        Err(_) => Priority::Ordinary,
    }
}
