//! Processor time of this process.

use super::now;
use super::report::Cpu;
use hopline_linux::sys;
use std::time::{Duration, Instant};

/// Start of a measurement, and the processor time used before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuClock {
    began: Instant,
    user: Duration,
    system: Duration,
}

impl CpuClock {
    pub(super) fn start() -> Self {
        let (user, system) = used();
        Self { began: now(), user, system }
    }

    pub(super) fn read(&self) -> Cpu {
        let (user, system) = used();
        let elapsed = self.began.elapsed().as_secs_f64();
        let share = |used: Duration, before: Duration| {
            if elapsed > 0.0 { used.saturating_sub(before).as_secs_f64() / elapsed } else { 0.0 }
        };
        Cpu { user: share(user, self.user), system: share(system, self.system) }
    }
}

/// Returns the user and the system time of this process; zero if the system reports none.
fn used() -> (Duration, Duration) {
    let span = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    sys::resource_usage()
        .map_or_else(|_| Default::default(), |usage| (span(usage.ru_utime), span(usage.ru_stime)))
}
