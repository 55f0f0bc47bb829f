//! Running proxy: its service on a thread, its counters, and its restart after a failure.

use crate::config::{Proxy, Task};
use crate::open::{self, Opened, Tuner};
use crate::status::{Condition, ProxyStatus};
use crate::thread_starter;
use hopline_middlebox::service::{Notice, NoticeListener, Service, ServiceStatus, Severity};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Event of a daemon.
#[derive(Debug)]
pub(crate) enum Event {
    /// A signal arrived.
    Signal(i32),
    /// A service has ended.
    Ended(ServiceEnd),
}

/// End of a service that was not requested.
#[derive(Debug)]
pub(crate) struct ServiceEnd {
    /// Name of the proxy.
    pub(crate) proxy: String,
    /// Number of the service: an event of an earlier service does not concern the running one.
    pub(crate) generation: u64,
    /// Reason.
    pub(crate) reason: String,
}

/// Proxy and its service.
pub(crate) struct ProxyRunner {
    proxy: Proxy,
    state: State,
    status: Arc<ServiceStatus>,
    since: Instant,
    generation: u64,
    restarts: u64,
}

enum State {
    Running {
        generation: u64,
        handle: ServiceHandle,
        tuner: Tuner,
    },
    /// The service is opened again at this time, after `failures` failures in a row.
    Waiting {
        reason: String,
        retry_at: Instant,
        failures: u32,
    },
}

/// Running service. Dropping it ends the service and waits for that.
pub(crate) struct ServiceHandle {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// Effect of a changed file on a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeEffect {
    /// No effect.
    None,
    /// The service continues with other parameters.
    Applied,
    /// No effect yet: the service must end, and another one begin.
    RestartNeeded,
}

/// First and longest time before a service is opened again; it doubles. The longest is also the delay in noticing that a
/// missing interface has returned.
const RESTART_DELAY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

impl ProxyRunner {
    /// Starts a seat with an opened service.
    pub(crate) fn start(proxy: Proxy, opened: Opened, events: &Sender<Event>) -> io::Result<Self> {
        let ledger = status_of(&proxy);
        let state = run(&proxy, opened, &ledger, events)?;
        info!(proxy = proxy.name, kind = proxy.task.kind(), "running");
        Ok(Self { proxy, state, status: ledger, since: now(), generation: 1, restarts: 0 })
    }

    /// Creates a seat that waits for another attempt.
    pub(crate) fn waiting(proxy: Proxy, why: String) -> Self {
        let mut seat = Self::failed_to_open(proxy);
        seat.schedule_retry(why, 0);
        seat
    }

    /// Opens a service, and creates a seat that runs, or waits for another attempt.
    pub(crate) fn begin(proxy: Proxy, events: &Sender<Event>) -> Self {
        let mut seat = Self::failed_to_open(proxy);
        seat.retry(events);
        seat
    }

    fn failed_to_open(proxy: Proxy) -> Self {
        Self {
            state: State::Waiting { reason: String::new(), retry_at: now(), failures: 0 },
            status: status_of(&proxy),
            proxy,
            since: now(),
            generation: 0,
            restarts: 0,
        }
    }

    /// Returns the proxy.
    pub(crate) const fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Handles the end of its service.
    pub(crate) fn handle_end(&mut self, ended: &ServiceEnd) {
        if !matches!(self.state, State::Running { generation: life, .. } if life == ended.generation) {
            return;
        }
        warn!(proxy = self.proxy.name, why = ended.reason, "ended; it is started again");
        self.schedule_retry(ended.reason.clone(), 0);
    }

    /// Returns the time of the next attempt.
    pub(crate) const fn retry_at(&self) -> Option<Instant> {
        match &self.state {
            State::Waiting { retry_at: until, .. } => Some(*until),
            State::Running { .. } => None,
        }
    }

    /// Opens its service again, if that is due. Returns whether it runs again.
    pub(crate) fn retry(&mut self, events: &Sender<Event>) -> bool {
        let State::Waiting { retry_at: until, failures, .. } = &self.state else { return false };
        if *until > now() {
            return false;
        }
        let failures = *failures;
        let again = |seat: &Self| -> Result<State, String> {
            let opened = open::open(&seat.proxy.task).map_err(|e| e.to_string())?;
            run(&seat.proxy, opened, &seat.status, events).map_err(|e| e.to_string())
        };
        match again(self) {
            Ok(running) => {
                let what = if self.generation == 0 { "running" } else { "running again" };
                info!(proxy = self.proxy.name, kind = self.proxy.task.kind(), "{what}");
                (self.state, self.since) = (running, now());
                self.restarts += u64::from(self.generation > 0);
                self.generation += 1;
                true
            }
            Err(why) => {
                self.schedule_retry(why, failures + 1);
                false
            }
        }
    }

    /// Applies `task`, if the service can without ending.
    pub(crate) fn apply(&mut self, task: &Task) -> ChangeEffect {
        if self.proxy.task == *task {
            return ChangeEffect::None;
        }
        match &self.state {
            State::Running { tuner, .. } if tuner.tune(task) => {
                self.proxy.task = task.clone();
                ChangeEffect::Applied
            }
            _ => ChangeEffect::RestartNeeded,
        }
    }

    /// Tells its service to end. Dropping the returned value waits for the end. The seat waits for a successor.
    pub(crate) fn stop(&mut self) -> Option<ServiceHandle> {
        let why = "told to end".to_owned();
        match std::mem::replace(&mut self.state, State::Waiting { reason: why, retry_at: now(), failures: 0 })
        {
            State::Running { handle: ending, .. } => {
                self.since = now();
                ending.signal_stop();
                Some(ending)
            }
            State::Waiting { .. } => None,
        }
    }

    /// Returns the status of the proxy.
    pub(crate) fn status(&self) -> ProxyStatus {
        let (state, why) = match &self.state {
            State::Running { .. } => (Condition::Running, None),
            State::Waiting { reason: why, .. } => (Condition::Waiting, Some(why.clone())),
        };
        ProxyStatus {
            name: self.proxy.name.clone(),
            kind: self.proxy.task.kind().into(),
            state,
            why,
            for_s: self.since.elapsed().as_secs(),
            restarts: self.restarts,
            notices: self.status.notices().into_iter().map(|notice| notice.text).collect(),
            figures: self.status.metrics().into_iter().map(Into::into).collect(),
        }
    }

    fn schedule_retry(&mut self, why: String, failures: u32) {
        self.status.clear_notices();
        let patience = RESTART_DELAY[0].saturating_mul(1 << failures.min(16)).min(RESTART_DELAY[1]);
        (self.state, self.since) =
            (State::Waiting { reason: why, retry_at: now() + patience, failures }, now());
    }
}

impl ServiceHandle {
    fn signal_stop(&self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }
}

impl Drop for ServiceHandle {
    fn drop(&mut self) {
        self.signal_stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Writes notices of a proxy to the log, each time they change.
#[derive(Debug)]
struct NoticeLogger {
    proxy: String,
}

impl NoticeListener for NoticeLogger {
    fn handle_notice(&self, notice: &Notice) {
        match notice.severity {
            Severity::Normal => info!(proxy = self.proxy, "{}", notice.text),
            Severity::Warning => warn!(proxy = self.proxy, "{}", notice.text),
        }
    }
}

fn status_of(proxy: &Proxy) -> Arc<ServiceStatus> {
    Arc::new(ServiceStatus::with_listener(Arc::new(NoticeLogger { proxy: proxy.name.clone() })))
}

/// Number of services so far, in all seats.
static GENERATIONS: AtomicU64 = AtomicU64::new(0);

fn run(
    Proxy { name, task }: &Proxy,
    Opened { service, tuner }: Opened,
    ledger: &Arc<ServiceStatus>,
    events: &Sender<Event>,
) -> io::Result<State> {
    let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
    let stopped = stop.try_clone()?;
    let life = GENERATIONS.fetch_add(1, Ordering::Relaxed);
    let (ledger, events, proxy) = (ledger.clone(), events.clone(), name.clone());
    let body = move || {
        if let Err(why) = serve(service, &stopped, &ledger) {
            let _ = events.send(Event::Ended(ServiceEnd { proxy, generation: life, reason: why }));
        }
    };
    let thread = thread_starter::spawn(task.scheduling(), format!("proxy {name}"), body)?;
    Ok(State::Running { generation: life, handle: ServiceHandle { stop, thread: Some(thread) }, tuner })
}

/// Runs a service until it is told to stop; otherwise returns the reason of its end. A panic does not affect other services.
fn serve(service: Box<dyn Service>, stop: &OwnedFd, ledger: &ServiceStatus) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| service.run(stop.as_fd(), ledger))) {
        // An error after the request to stop does not matter.
        Ok(_) if is_stop_requested(stop) => Ok(()),
        Ok(Ok(())) => Err("it has ended, and nobody told it to".into()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("a panic, which is a mistake in hopline; the log says where".into()),
    }
}

/// Returns whether the service was told to stop. The counter is not read, so that it stays readable.
fn is_stop_requested(stop: &OwnedFd) -> bool {
    let mut looked = [PollFd::new(stop, PollFlags::IN)];
    poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[expect(clippy::disallowed_methods, reason = "a daemon is in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
