//! Listener thread. It accepts connections and deals them to the workers, or resets them.

use super::Shared;
use super::worker::{Accepted, Inbox, now};
use crate::endpoints::FlowEndpoints;
use crate::service::ServiceStatus;
use hopline_linux::transparent::TransparentListener;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Maximum number of connections accepted from one listener before the others and `stop` are polled.
const BATCH: usize = 64;
/// Interval between updates of the published metrics.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);
/// Pause in accepting when the system has no descriptor or memory left for a connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Acceptor<'a> {
    shared: &'a Shared,
    listeners: &'a [TransparentListener],
    inboxes: &'a [Inbox],
    /// Index of the worker that gets the next connection.
    next_worker: usize,
    /// Time until which accepting is paused, after a shortage of descriptors or memory.
    paused_until: Option<Instant>,
}

impl<'a> Acceptor<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        listeners: &'a [TransparentListener],
        inboxes: &'a [Inbox],
    ) -> Self {
        Self { shared, listeners, inboxes, next_worker: 0, paused_until: None }
    }

    /// Accepts connections until `stop` can be read, or `alive` returns `false` because a worker or the SYN holder has ended.
    pub(super) fn run(
        &mut self,
        stop: BorrowedFd<'_>,
        status: &ServiceStatus,
        alive: impl Fn() -> bool,
    ) -> io::Result<()> {
        let mut metrics_set_at = None;
        loop {
            if metrics_set_at.is_none_or(|at: Instant| at.elapsed() >= UPDATE_INTERVAL) {
                status.set_metrics(self.shared.metrics());
                metrics_set_at = Some(now());
            }
            let Some(ready) = self.wait(stop)? else { return Ok(()) };
            if !alive() {
                return Ok(());
            }
            ready
                .into_iter()
                .zip(self.listeners)
                .filter(|(ready, _)| *ready)
                .for_each(|(_, l)| self.accept(l));
        }
    }

    /// Waits for calls. Returns for each listener whether it has calls, or `None` once `stop` can be read.
    fn wait(&mut self, stop: BorrowedFd<'_>) -> io::Result<Option<Vec<bool>>> {
        let rest = self
            .paused_until
            .map(|until| until.saturating_duration_since(now()))
            .filter(|rest| !rest.is_zero());
        if rest.is_none() {
            self.paused_until = None;
        }
        let open = if rest.is_some() { &[] } else { self.listeners };
        let mut waited = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        waited.extend(open.iter().map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)));
        let wait = Timespec::try_from(rest.unwrap_or(UPDATE_INTERVAL).min(UPDATE_INTERVAL)).ok();
        match poll(&mut waited, wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = waited.iter().map(|waited| !waited.revents().is_empty());
        Ok((ready.next() == Some(false)).then(|| ready.collect()))
    }

    fn accept(&mut self, listener: &TransparentListener) {
        let counts = &self.shared.counts;
        for _ in 0..BATCH {
            match listener.accept() {
                Ok(None) => return,
                Ok(Some(call)) => {
                    let ends = FlowEndpoints::new(call.client, call.server);
                    self.shared.unaccepted.accepted(ends);
                    // A call with an onward connection was counted when its SYN was held.
                    let onward = self.shared.pending.take_accepted(ends);
                    if onward.is_none() {
                        if counts.open_connections.get() >= self.shared.max_connections as u64 {
                            counts.refused_full.add(1);
                            continue;
                        }
                        counts.open_connections.add(1);
                    }
                    counts.accepted.add(1);
                    self.inboxes[self.next_worker].push_accepted(Accepted { call, onward });
                    self.next_worker = (self.next_worker + 1) % self.inboxes.len();
                }
                Err(_) => return self.refuse(listener),
            }
        }
    }

    /// Handles a failed accept. Out of descriptors, it releases the spare one to accept and reset one connection. If that fails
    /// too, it pauses accepting for [`ACCEPT_BACKOFF`].
    fn refuse(&mut self, listener: &TransparentListener) {
        let counts = &self.shared.counts;
        let mut refused = false;
        self.shared.spare_descriptor.with_spare_released(|| {
            refused = matches!(listener.accept(), Ok(Some(_)));
        });
        if refused {
            counts.refused_descriptors.add(1);
        } else {
            self.paused_until = Some(now() + ACCEPT_BACKOFF);
        }
    }
}
