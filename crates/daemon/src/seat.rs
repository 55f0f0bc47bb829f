//! A proxy that runs: its service on a thread, what it has done, and what becomes of it when it ends against its will.

use crate::config::{Proxy, Task};
use crate::open::{self, Opened, Tuner};
use crate::starter;
use crate::status::{Condition, ProxyStatus};
use hopline_net::service::{Ledger, Listener, Notice, Service, Tone};
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

/// What happens to a daemon.
#[derive(Debug)]
pub(crate) enum Event {
    /// A signal came.
    Signal(i32),
    /// A service has ended.
    Ended(Ended),
}

/// Tells the daemon that the service of a seat has ended against its will.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Of which seat.
    pub(crate) proxy: String,
    /// Which service of all that there were: an earlier one says nothing of the one that runs.
    pub(crate) life: u64,
    /// Why.
    pub(crate) why: String,
}

/// A proxy and its service.
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
    /// Its service is opened again when this time has come; `failures` in a row.
    Waiting {
        why: String,
        until: Instant,
        failures: u32,
    },
}

/// A service that runs. Dropped, it is told to end, and waited for.
pub(crate) struct Ending {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// What a change of its file has come to for a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// It goes on with other parameters.
    Tuned,
    /// Nothing yet: it must end, and another one begin.
    Another,
}

/// First and longest time before a service is opened again; it doubles. What it waits for, such as its interface, is noticed so soon when
/// it is back.
const PATIENCE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

impl Seat {
    /// One that runs, with a service that has been opened.
    pub(crate) fn start(proxy: Proxy, opened: Opened, events: &Sender<Event>) -> io::Result<Self> {
        let ledger = ledger_of(&proxy);
        let state = run(&proxy, opened, &ledger, events)?;
        info!(proxy = proxy.name, kind = proxy.task.kind(), "running");
        Ok(Self { proxy, state, ledger, since: now(), lives: 1, restarts: 0 })
    }

    /// One that is tried again in a while.
    pub(crate) fn waiting(proxy: Proxy, why: String) -> Self {
        let mut seat = Self::unopened(proxy);
        seat.wait(why, 0);
        seat
    }

    /// One that runs, or is tried again in a while.
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

    /// The proxy.
    pub(crate) const fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Its service has ended.
    pub(crate) fn has_ended(&mut self, ended: &Ended) {
        if !matches!(self.state, State::Running { life, .. } if life == ended.life) {
            return;
        }
        warn!(proxy = self.proxy.name, why = ended.why, "ended; it is started again");
        self.wait(ended.why.clone(), 0);
    }

    /// When it wants to be started again.
    pub(crate) const fn due(&self) -> Option<Instant> {
        match &self.state {
            State::Waiting { until, .. } => Some(*until),
            State::Running { .. } => None,
        }
    }

    /// Opens its service again, if that is due. Whether it runs again.
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

    /// Does what `task` says from now on, if it can without ending.
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

    /// Tells its service to end. Whoever has what is returned waits for that; the seat waits for another one to take its place.
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

    /// How it is.
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

/// Writes what a proxy says of itself to the log, each time that it changes.
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

/// How many services there were, in all seats.
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

/// Runs a service until it is told to stop; else says why it has ended. One that panics takes nothing else with it.
fn serve(service: Box<dyn Service>, stop: &OwnedFd, ledger: &Ledger) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| service.run(stop.as_fd(), ledger))) {
        // Nor is anything the matter with it then if it stumbles.
        Ok(_) if is_told(stop) => Ok(()),
        Ok(Ok(())) => Err("it has ended, and nobody told it to".into()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("a panic, which is a mistake in hopline; the log says where".into()),
    }
}

/// Services look, and take nothing out.
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
