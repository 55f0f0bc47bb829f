//! A thread that has to be on time.

use crate::sys;
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::time::Duration;

/// The shortest turn that Linux grants (`sched_setattr(2)`; by default a turn takes some milliseconds).
const TURN: Duration = Duration::from_micros(100);

/// How the system treats a thread that asked to be on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Before everything that is not real-time (`SCHED_FIFO`).
    RealTime,
    /// As everybody: there was no permission for more (`CAP_SYS_NICE`, or `RLIMIT_RTPRIO`).
    Ordinary,
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

/// Makes the calling thread run soon after it was woken, also where other programs fill all processors: it asks for short turns, which come
/// the earlier, and for exact timers. It needs no permission, and its share of the processor stays as it is.
///
/// Linux 6.12 and later heed it; earlier ones ignore it. A thread that runs in real time stays as it is.
pub fn be_prompt() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = sys::shorten_turns(TURN);
}

/// Has the calling thread run as all others again. Threads that it started before stay as they are: each begins as the one that starts it.
pub fn be_as_others() {
    let _ = set_current_timer_slack(None);
    // Whoever is before others may always step back.
    let _ = sys::become_ordinary();
}
