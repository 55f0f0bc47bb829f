//! Scheduling of threads with tight timing.

use crate::sys;
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::time::Duration;

/// Minimum time slice of Linux (`sched_setattr(2)`); the default is some milliseconds.
const MIN_TIME_SLICE: Duration = Duration::from_micros(100);

/// Scheduling priority that a thread was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Real-time priority (`SCHED_FIFO`), before all other threads.
    RealTime,
    /// Ordinary priority: the permission for more was missing (`CAP_SYS_NICE`, or `RLIMIT_RTPRIO`).
    Ordinary,
}

/// Requests exact wake-ups of the calling thread: a timer slack of 1 ns instead of 50 µs, and real-time priority, if the
/// system permits it.
#[must_use]
pub fn request_real_time() -> Priority {
    // If this fails, the thread is later, and the link's statistics show it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    match sys::become_real_time() {
        Ok(()) => Priority::RealTime,
        Err(_) => Priority::Ordinary,
    }
}

/// Makes the calling thread run soon after a wake-up, even if other programs occupy all processors. It requests short
/// time slices, which the scheduler grants earlier, and exact timers. It needs no permission, and the thread's share of
/// the processor stays the same.
///
/// Linux 6.12 and later support it; earlier versions ignore it. A real-time thread is not changed.
pub fn request_prompt_wakeups() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = sys::set_time_slice(MIN_TIME_SLICE);
}

/// Returns the calling thread to ordinary scheduling. Threads that it started before keep the scheduling that they
/// inherited.
pub fn reset_scheduling() {
    let _ = set_current_timer_slack(None);
    // Every thread may give up its priority.
    let _ = sys::become_ordinary();
}
