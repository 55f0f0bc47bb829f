//! Boot of all kernels at the same time.
//!
//! No kernel sends or receives a frame before it has configured its interface, at [`PREPARED`]. Until then kernels do not
//! depend on each other, so that it makes no difference which one runs first.

use crate::error::Error;
use crate::guest::init::PREPARED_NS;
use crate::host::{Host, Patience, Step};
use hopline_core::Instant;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Time that kernels reach on their own.
const PREPARED: Instant = Instant::from_nanos(PREPARED_NS);
/// Interval between checks of whether the caller wants the end.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Follows all kernels until they wait for a time from [`PREPARED`] on: on each processor one.
pub(crate) fn boot(hosts: &mut [Host], patience: Patience<'_>) -> Result<(), Error> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = hosts.len().div_ceil(threads).max(1);
    let is_interrupted = AtomicBool::new(false);
    let limit = patience.limit;
    let boot_share = |hosts: &mut [Host]| {
        let proceed = |_| !is_interrupted.load(Ordering::Relaxed);
        hosts.iter_mut().try_for_each(|host| boot_one(host, Patience { limit, proceed: &proceed }))
    };
    thread::scope(|scope| {
        let running: Vec<_> =
            hosts.chunks_mut(share).map(|hosts| scope.spawn(|| boot_share(hosts))).collect();
        while running.iter().any(|thread| !thread.is_finished()) {
            if !(patience.proceed)(Instant::ZERO) {
                is_interrupted.store(true, Ordering::Relaxed);
            }
            thread::sleep(CHECK_INTERVAL);
        }
        running.into_iter().try_for_each(|thread| thread.join().expect("the thread does not panic"))
    })
}

fn boot_one(host: &mut Host, patience: Patience<'_>) -> Result<(), Error> {
    let mut now = Instant::ZERO;
    loop {
        match host.follow(now, patience)? {
            Step::Ended => return Err(host.has_ended_early()),
            Step::Transmits(..) => return Err(Error::EarlyFrame { node: host.name.clone() }),
            Step::Waits => {}
        }
        let Some(time) = host.request().filter(|&time| time < PREPARED) else { return Ok(()) };
        now = time;
        host.run(now, PREPARED)?;
    }
}
