//! Event loop of a gateway: one thread for all connections.

use crate::service::{Metric, Notice, ServiceStatus};
use hopline_linux::sched;
use hopline_linux::sys;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::interval;

/// Interval between updates of the statistics.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of concurrent name resolutions.
const MAX_RESOLVERS: usize = 16;

/// Queue of notices for the statistics ledger, which tasks cannot borrow.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<Vec<Notice>>);

impl Notices {
    /// Queues `notice` for the ledger.
    pub(crate) fn push(&self, notice: Notice) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    pub(crate) fn drain_into(&self, ledger: &ServiceStatus) {
        let said = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        said.into_iter().for_each(|notice| ledger.report(notice));
    }
}

/// Runs `work` and its tasks until `stop` becomes readable; then all connections are reset.
pub(crate) fn run(
    work: impl Future<Output = io::Result<()>>,
    stop: BorrowedFd<'_>,
    ledger: &ServiceStatus,
    (figures, notices): (impl Fn() -> Vec<Metric>, &Notices),
) -> io::Result<()> {
    sched::request_prompt_wakeups();
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(MAX_RESOLVERS).build()?;
    let ended = runtime.block_on(async {
        let stop = sys::watch(stop.try_clone_to_owned()?)?;
        let mut ticks = interval(UPDATE_INTERVAL);
        let mut work = pin!(work);
        poll_fn(|context| {
            while ticks.poll_tick(context).is_ready() {
                ledger.set_metrics(figures());
                notices.drain_into(ledger);
            }
            match stop.poll_read_ready(context) {
                Poll::Ready(ready) => Poll::Ready(ready.map(drop)),
                Poll::Pending => work.as_mut().poll(context),
            }
        })
        .await
    });
    // Do not wait for name resolutions, which may take long.
    runtime.shutdown_background();
    ledger.set_metrics(figures());
    notices.drain_into(ledger);
    ended
}
