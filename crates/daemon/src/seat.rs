//! Running proxy: its service on a thread, its counters, and its restart after a failure.

use crate::config::{Proxy, Task};
use crate::open::{self, Opened, Tuner};
use crate::starter;
use crate::status::{Condition, ProxyStatus};
use hopline_middlebox::service::{Ledger, Listener, Notice, Service, Tone};
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
    Ended(Ended),
}

/// End of a service that was not requested.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Name of the proxy.
    pub(crate) proxy: String,
    /// Number of the service: an event of an earlier service does not concern the running one.
    pub(crate) life: u64,
    /// Reason.
    pub(crate) why: String,
}

/// Proxy and its service.
pub(crate) struct Seat {
    proxy: Proxy,
    state: State,
    ledger: Arc<Ledger>,
    since: Instant,
    lives: u64,
    restarts: u64,
}

enum State {
    Running {
        life: u64,
        ending: Ending,
        tuner: Tuner,
    },
    /// The service is opened again at this time, after `failures` failures in a row.
    Waiting {
        why: String,
        until: Instant,
        failures: u32,
    },
}

/// Running service. Dropping it ends the service and waits for that.
pub(crate) struct Ending {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// Effect of a changed file on a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// No effect.
    None,
    /// The service continues with other parameters.
    Tuned,
    /// No effect yet: the service must end, and another one begin.
    Another,
}

/// First and longest time before a service is opened again; it doubles. The longest is also the delay in noticing that a
/// missing interface has returned.
const PATIENCE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

impl Seat {
    /// Starts a seat with an opened service.
    pub(crate) fn start(proxy: Proxy, opened: Opened, events: &Sender<Event>) -> io::Result<Self> {
        let ledger = ledger_of(&proxy);
        let state = run(&proxy, opened, &ledger, events)?;
        info!(proxy = proxy.name, kind = proxy.task.kind(), "running");
        Ok(Self { proxy, state, ledger, since: now(), lives: 1, restarts: 0 })
    }

    /// Creates a seat that waits for another attempt.
    pub(crate) fn waiting(proxy: Proxy, why: String) -> Self {
        let mut seat = Self::unopened(proxy);
        seat.wait(why, 0);
        seat
    }

    /// Opens a service, and creates a seat that runs, or waits for another attempt.
    pub(crate) fn begin(proxy: Proxy, events: &Sender<Event>) -> Self {
        let mut seat = Self::unopened(proxy);
        seat.try_again(events);
        seat
    }

    fn unopened(proxy: Proxy) -> Self {
        Self {
            state: State::Waiting { why: String::new(), until: now(), failures: 0 },
            ledger: ledger_of(&proxy),
            proxy,
            since: now(),
            lives: 0,
            restarts: 0,
        }
    }

    /// Returns the proxy.
    pub(crate) const fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Handles the end of its service.
    pub(crate) fn has_ended(&mut self, ended: &Ended) {
        if !matches!(self.state, State::Running { life, .. } if life == ended.life) {
            return;
        }
        warn!(proxy = self.proxy.name, why = ended.why, "ended; it is started again");
        self.wait(ended.why.clone(), 0);
    }

    /// Returns the time of the next attempt.
    pub(crate) const fn due(&self) -> Option<Instant> {
        match &self.state {
            State::Waiting { until, .. } => Some(*until),
            State::Running { .. } => None,
        }
    }

    /// Opens its service again, if that is due. Returns whether it runs again.
    pub(crate) fn try_again(&mut self, events: &Sender<Event>) -> bool {
        let State::Waiting { until, failures, .. } = &self.state else { return false };
        if *until > now() {
            return false;
        }
        let failures = *failures;
        let again = |seat: &Self| -> Result<State, String> {
            let opened = open::open(&seat.proxy.task).map_err(|e| e.to_string())?;
            run(&seat.proxy, opened, &seat.ledger, events).map_err(|e| e.to_string())
        };
        match again(self) {
            Ok(running) => {
                let what = if self.lives == 0 { "running" } else { "running again" };
                info!(proxy = self.proxy.name, kind = self.proxy.task.kind(), "{what}");
                (self.state, self.since) = (running, now());
                self.restarts += u64::from(self.lives > 0);
                self.lives += 1;
                true
            }
            Err(why) => {
                self.wait(why, failures + 1);
                false
            }
        }
    }

    /// Applies `task`, if the service can without ending.
    pub(crate) fn change_to(&mut self, task: &Task) -> Change {
        if self.proxy.task == *task {
            return Change::None;
        }
        match &self.state {
            State::Running { tuner, .. } if tuner.tune(task) => {
                self.proxy.task = task.clone();
                Change::Tuned
            }
            _ => Change::Another,
        }
    }

    /// Tells its service to end. Dropping the returned value waits for the end. The seat waits for a successor.
    pub(crate) fn tell_to_end(&mut self) -> Option<Ending> {
        let why = "told to end".to_owned();
        match std::mem::replace(&mut self.state, State::Waiting { why, until: now(), failures: 0 }) {
            State::Running { ending, .. } => {
                self.since = now();
                ending.tell();
                Some(ending)
            }
            State::Waiting { .. } => None,
        }
    }

    /// Returns the status of the proxy.
    pub(crate) fn status(&self) -> ProxyStatus {
        let (state, why) = match &self.state {
            State::Running { .. } => (Condition::Running, None),
            State::Waiting { why, .. } => (Condition::Waiting, Some(why.clone())),
        };
        ProxyStatus {
            name: self.proxy.name.clone(),
            kind: self.proxy.task.kind().into(),
            state,
            why,
            for_s: self.since.elapsed().as_secs(),
            restarts: self.restarts,
            notices: self.ledger.notices().into_iter().map(|notice| notice.text).collect(),
            figures: self.ledger.read().into_iter().map(Into::into).collect(),
        }
    }

    fn wait(&mut self, why: String, failures: u32) {
        self.ledger.take_over(Vec::new());
        let patience = PATIENCE[0].saturating_mul(1 << failures.min(16)).min(PATIENCE[1]);
        (self.state, self.since) = (State::Waiting { why, until: now() + patience, failures }, now());
    }
}

impl Ending {
    fn tell(&self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.tell();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Writes notices of a proxy to the log, each time they change.
#[derive(Debug)]
struct Log {
    proxy: String,
}

impl Listener for Log {
    fn hear(&self, notice: &Notice) {
        match notice.tone {
            Tone::Good => info!(proxy = self.proxy, "{}", notice.text),
            Tone::Bad => warn!(proxy = self.proxy, "{}", notice.text),
        }
    }
}

fn ledger_of(proxy: &Proxy) -> Arc<Ledger> {
    Arc::new(Ledger::heard_by(Arc::new(Log { proxy: proxy.name.clone() })))
}

/// Number of services so far, in all seats.
static LIVES: AtomicU64 = AtomicU64::new(0);

fn run(
    Proxy { name, task }: &Proxy,
    Opened { service, tuner }: Opened,
    ledger: &Arc<Ledger>,
    events: &Sender<Event>,
) -> io::Result<State> {
    let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
    let stopped = stop.try_clone()?;
    let life = LIVES.fetch_add(1, Ordering::Relaxed);
    let (ledger, events, proxy) = (ledger.clone(), events.clone(), name.clone());
    let body = move || {
        if let Err(why) = serve(service, &stopped, &ledger) {
            let _ = events.send(Event::Ended(Ended { proxy, life, why }));
        }
    };
    let thread = starter::spawn(task.timing(), format!("proxy {name}"), body)?;
    Ok(State::Running { life, ending: Ending { stop, thread: Some(thread) }, tuner })
}

/// Runs a service until it is told to stop; otherwise returns the reason of its end. A panic does not affect other services.
fn serve(service: Box<dyn Service>, stop: &OwnedFd, ledger: &Ledger) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| service.run(stop.as_fd(), ledger))) {
        // An error after the request to stop does not matter.
        Ok(_) if is_told(stop) => Ok(()),
        Ok(Ok(())) => Err("it has ended, and nobody told it to".into()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("a panic, which is a mistake in hopline; the log says where".into()),
    }
}

/// Returns whether the service was told to stop. The counter is not read, so that it stays readable.
fn is_told(stop: &OwnedFd) -> bool {
    let mut looked = [PollFd::new(stop, PollFlags::IN)];
    poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[expect(clippy::disallowed_methods, reason = "a daemon is in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
