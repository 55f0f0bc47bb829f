//! Daemon: opens everything, sets up rules, runs until a signal, and leaves nothing behind.

use crate::config::{Config, Proxy, Requirement};
use crate::keeper::Keeper;
use crate::open::{self, Opened};
use crate::proxy_runner::{ChangeEffect, Event, ProxyRunner};
use crate::rules::{self, Keep, Rules, Tracking, TrackingMonitor};
use crate::state::{self, State};
use crate::status::{Sandbox, Status, Tracked};
use crate::{RunError, control, log, metrics, router, sandbox, thread_starter};
use hopline_config::source::Problems;
use hopline_linux::transparent::{OnwardMarking, set_onward_marking};
use rustix::process::geteuid;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// Interval at which connection tracking is polled while it is not in use, and interval after which rejected rules for it
/// are tried again.
const TRACKING_POLL: Duration = Duration::from_secs(1);
const RULES_RETRY: Duration = Duration::from_secs(60);

/// Runs the daemon that the file at `path` describes until SIGTERM or SIGINT; SIGHUP reloads the file. `keeper`: arguments
/// with which this program calls [`keep`](crate::keep) for the daemon of that name and folder.
///
/// # Errors
/// The reason why it did not start; nothing is left half set up.
pub fn run(path: &Path, keeper: impl FnOnce(&Config) -> Vec<OsString>) -> Result<(), RunError> {
    let config = Config::load(path)?;
    log::start(config.log);
    // A user other than root cannot change to this one, and gets errors for files that it may not write.
    let user = config.user.as_ref().filter(|_| geteuid().is_root());
    let state = State::acquire_for(&config.state_dir, &config.name, user)?;
    check_router(&config)?;
    config.status_group.as_ref().map(control::join).transpose()?;
    let written = config.writable_folders();
    let sandbox = thread_starter::begin(|| {
        sandbox::enter(state.folder(), &written, user, config.status_group.as_ref())
    })
    .map_err(RunError::Thread)?;
    if let (Some(user), Err(problems)) = (user, Config::load(path)) {
        warn!(%problems, "the user \"{}\" cannot read the file again, so that a reload will be refused", user.name);
    }
    // Before there is anything to clean up.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(RunError::Signals)?;
    let keeper = Keeper::start(&keeper(&config)).map_err(RunError::Keeper)?;
    state.share_lock().map_err(RunError::Keeper)?;
    let (events, incoming) = mpsc::channel();
    let mut daemon = Daemon::start(path, config, sandbox, keeper, state, &events)?;
    forward_signals(signals, events).map_err(RunError::Signals)?;
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    daemon.handle_events(&incoming);
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    daemon.end()
}

/// Running daemon.
struct Daemon {
    path: PathBuf,
    state: State,
    shared: Arc<Shared>,
    config: Config,
    watch: TrackingMonitor,
    next_check: Instant,
    events: Sender<Event>,
    // Dropped last: it waits for the end of this daemon.
    _keeper: Keeper,
}

/// State that other threads read as well.
struct Shared {
    name: String,
    sandbox: Sandbox,
    since: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    reloads: u64,
    connection_tracking: Option<Tracked>,
    proxies: Vec<ProxyRunner>,
}

impl Daemon {
    /// Opens everything, then installs the rules, so that each diverted packet finds its receiver.
    fn start(
        path: &Path,
        config: Config,
        sandbox: Sandbox,
        // In this order: if the start fails, the lock is released first, and the keeper does not wait for it.
        keeper: Keeper,
        state: State,
        events: &Sender<Event>,
    ) -> Result<Self, RunError> {
        let metrics = config.metrics.map(|at| TcpListener::bind(at).map_err(|e| RunError::Metrics(at, e)));
        let metrics = metrics.transpose()?;
        let opened = open_all(&config)?;
        let control = control::listen(state.folder(), &config.name, config.status_group.as_ref())
            .map_err(|e| RunError::Socket(state::socket_path(&config.state_dir, &config.name), e))?;
        let rules = rules::set_up(&config, state.folder());
        let start = |(proxy, found): (&Proxy, OpenResult)| match found {
            OpenResult::Opened(opened) => ProxyRunner::start(proxy.clone(), opened, events),
            OpenResult::Absent(why) => Ok(ProxyRunner::waiting(proxy.clone(), why)),
        };
        let started = rules.map_err(RunError::from).and_then(|watch| {
            // Behind the rules: those of an earlier daemon are gone.
            if let Some(why) = router::tracked_moves_warning(&config, watch.tracking()) {
                return Err(RunError::Hidden(why));
            }
            set_onward_mark(watch.tracking());
            let seats =
                config.proxies.iter().zip(opened).map(start).collect::<io::Result<Vec<ProxyRunner>>>();
            Ok((watch, seats.map_err(RunError::Thread)?))
        });
        let (watch, seats) = started.inspect_err(|_| {
            let _ = rules::undo(&config.name, state.folder(), Keep::TunInterfaces);
        })?;
        let connection_tracking = tracking_status(&config, watch.tracking());
        if connection_tracking == Some(Tracked::NotInUse) {
            info!("connection tracking is not in use: rules for it come when it begins");
        }
        let inner = Mutex::new(Inner { reloads: 0, connection_tracking, proxies: seats });
        let shared = Arc::new(Shared { name: config.name.clone(), sandbox, since: now(), inner });
        shared.clone().serve_status(control, metrics).map_err(RunError::Thread)?;
        let (path, events) = (path.to_owned(), events.clone());
        let next_look = now() + TRACKING_POLL;
        Ok(Self { path, state, shared, config, watch, next_check: next_look, events, _keeper: keeper })
    }

    /// Handles events until a signal to end.
    fn handle_events(&mut self, incoming: &Receiver<Event>) {
        loop {
            match self.await_event(incoming) {
                Some(Event::Signal(SIGHUP)) => self.reload(),
                Some(Event::Signal(_)) => return,
                Some(Event::Ended(ended)) => {
                    let mut inner = self.shared.lock();
                    if let Some(seat) = inner.proxies.iter_mut().find(|seat| seat.proxy().name == ended.proxy)
                    {
                        seat.handle_end(&ended);
                    }
                }
                None => {}
            }
            let mut back = false;
            for seat in &mut self.shared.lock().proxies {
                back |= seat.retry(&self.events);
            }
            if self.check_tracking() || back {
                self.remake_rules();
            }
        }
    }

    /// Checks whether connections are tracked, if that is due. Returns whether they are, without rules for that yet.
    fn check_tracking(&mut self) -> bool {
        if !self.depends_on_tracking() || now() < self.next_check {
            return false;
        }
        let is_tracked = self.watch.check() == Tracking::InUse;
        self.next_check = now() + if is_tracked { RULES_RETRY } else { TRACKING_POLL };
        is_tracked
    }

    /// Returns whether the beginning of connection tracking matters.
    fn depends_on_tracking(&self) -> bool {
        self.shared.lock().connection_tracking == Some(Tracked::NotInUse)
    }

    /// Returns the next event; `None` if a seat is due for another attempt before, or connection tracking for a check.
    fn await_event(&self, incoming: &Receiver<Event>) -> Option<Event> {
        let look = self.depends_on_tracking().then_some(self.next_check);
        let due = self.shared.lock().proxies.iter().filter_map(ProxyRunner::retry_at).chain(look).min();
        // `self` owns a sender, so the channel is never closed.
        match due {
            None => incoming.recv().ok(),
            Some(due) => incoming.recv_timeout(due.saturating_duration_since(now())).ok(),
        }
    }

    /// Reloads the file and applies the changes. Unchanged parts continue; if the file is invalid, everything does.
    fn reload(&mut self) {
        let _ = sd_notify::NotifyState::monotonic_usec_now()
            .map(|at| sd_notify::notify(&[NotifyState::Reloading, at]));
        match Config::load(&self.path) {
            Ok(config) => {
                self.change_to(config);
            }
            Err(Problems(problems)) => {
                for problem in problems {
                    error!(file = %self.path.display(), %problem, "not read again: everything goes on as before");
                }
            }
        }
        let _ = sd_notify::notify(&[NotifyState::Ready]);
    }

    /// Makes the rules again: a missing interface has returned without them, or connection tracking has begun.
    fn remake_rules(&self) {
        if let Err(error) = self.change_rules(&self.config) {
            error!(%error, "the rules are not those of the file");
        }
    }

    /// Changes the rules to those of `config`.
    fn change_rules(&self, config: &Config) -> Result<(), rules::RuleError> {
        let tracking = self.watch.tracking();
        if tracking == Tracking::InUse {
            // Before the rules, which may be rejected: connections with NAT must not move.
            open::set_move_policy(tracking);
        }
        rules::change(&Rules::of(config, tracking), self.state.folder())?;
        // After the rules: without them conntrack would assign the first packet to another zone than the second.
        set_onward_mark(tracking);
        open::set_move_policy(tracking);
        if let Some(why) = router::tracked_moves_warning(config, tracking) {
            warn!("connections stay at this station: {why}");
        }
        let tracked = tracking_status(config, tracking);
        let before = std::mem::replace(&mut self.shared.lock().connection_tracking, tracked);
        if (before, tracked) == (Some(Tracked::NotInUse), Some(Tracked::InUse)) {
            info!("connection tracking has begun: there are rules for it from now on");
        }
        Ok(())
    }

    fn change_to(&mut self, config: Config) {
        if config.fixed_settings() != self.config.fixed_settings() {
            warn!(
                "name, state_dir, user, status_group, log, metrics, mark and route_table are those of the start until the next one"
            );
        }
        // The names of rules stay those of the start.
        let Config { proxies, requirements: needs, .. } = config;
        let mut config = Config { proxies, requirements: needs, ..self.config.clone() };
        config.set_owner();
        if let Err(error) = check_router(&config) {
            error!(%error, "not read again: everything goes on as before");
            return;
        }
        warn_of_missing(&config);
        self.shared.change(&config.proxies, |proxy| ProxyRunner::begin(proxy, &self.events));
        self.watch.check();
        match self.change_rules(&config) {
            Ok(()) => info!("read again"),
            Err(error) => error!(%error, "the rules are not those of the file"),
        }
        self.config = config;
        // Counted at the end: a client that waits for the count finds rules and proxies that belong together.
        self.shared.lock().reloads += 1;
    }

    /// Ends the seats, then removes the rules that lead to them. Resets of split connections need the rules: without them
    /// the resets would leave with the client's address and port, even if the router translates these. New packets pass
    /// meanwhile, since there is no queue or listener.
    fn end(self) -> Result<(), RunError> {
        self.shared.change(&[], |proxy| ProxyRunner::begin(proxy, &self.events));
        let undone = rules::undo(&self.config.name, self.state.folder(), Keep::TunInterfaces);
        info!("ended");
        undone.map(drop).map_err(RunError::Undo)
    }
}

/// Sets whether onward connections are marked: if rules read the mark.
fn set_onward_mark(tracking: Tracking) {
    set_onward_marking(match tracking {
        Tracking::Absent => OnwardMarking::Unmarked,
        Tracking::InUse => OnwardMarking::Marked,
    });
}

fn tracking_status(config: &Config, tracking: Tracking) -> Option<Tracked> {
    let tracked = match tracking {
        Tracking::Absent => Tracked::NotInUse,
        Tracking::InUse => Tracked::InUse,
    };
    Rules::of(config, tracking).uses_tracking().then_some(tracked)
}

fn check_router(config: &Config) -> Result<(), RunError> {
    let report = router::inspect(config);
    report.warnings.iter().for_each(|warning| warn!("{warning}"));
    match report.obstacles.first() {
        Some(obstacle) => Err(RunError::Hidden(obstacle.clone())),
        None => Ok(()),
    }
}

/// Result of opening a proxy.
enum OpenResult {
    Opened(Opened),
    /// A requirement that may appear later is missing.
    Absent(String),
}

/// Opens all proxies. A proxy with a missing interface or address waits for it, as it does if that disappears later.
fn open_all(config: &Config) -> Result<Vec<OpenResult>, RunError> {
    let unmet = warn_of_missing(config);
    let open = |proxy: &Proxy| match open::open(&proxy.task) {
        Ok(opened) => Ok(OpenResult::Opened(opened)),
        Err(error) if error.is_absence() => {
            let why = error.to_string();
            if unmet.iter().all(|need| need.proxy != proxy.name) {
                warn!(proxy = proxy.name, why, "waits");
            }
            Ok(OpenResult::Absent(why))
        }
        Err(error) => Err(RunError::Open(proxy.name.clone(), error)),
    };
    config.proxies.iter().map(open).collect()
}

/// Warns of requirements of proxies that this machine does not meet now. Returns them.
fn warn_of_missing(config: &Config) -> Vec<&Requirement> {
    let unmet: Vec<&Requirement> = config.requirements.iter().filter(|need| !need.is_met()).collect();
    unmet.iter().for_each(|need| warn!("{need}"));
    unmet
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs these proxies and no others. Unchanged ones continue; changed ones have ended before any begins. Status queries
    /// are answered meanwhile.
    fn change(&self, proxies: &[Proxy], begin: impl Fn(Proxy) -> ProxyRunner) {
        let (mut kept, mut endings) = (Vec::new(), Vec::new());
        for seat in &mut self.lock().proxies {
            let name = seat.proxy().name.clone();
            let proxy = proxies.iter().find(|proxy| proxy.name == name);
            match proxy.map_or(ChangeEffect::RestartNeeded, |proxy| seat.apply(&proxy.task)) {
                ChangeEffect::None => kept.push(name),
                ChangeEffect::Applied => {
                    info!(proxy = name, "has other parameters");
                    kept.push(name);
                }
                ChangeEffect::RestartNeeded => endings.extend(seat.stop()),
            }
        }
        // Waits for all of them: a new proxy may need what one of them has.
        drop(endings);
        let others = proxies.iter().filter(|proxy| !kept.contains(&proxy.name));
        let begun: Vec<ProxyRunner> = others.cloned().map(begin).collect();
        let mut inner = self.lock();
        inner.proxies.retain(|seat| kept.contains(&seat.proxy().name));
        inner.proxies.extend(begun);
        inner.proxies.sort_by_key(|seat| proxies.iter().position(|proxy| proxy.name == seat.proxy().name));
    }

    fn status(&self) -> Status {
        let inner = self.lock();
        Status {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            process: std::process::id(),
            running_s: self.since.elapsed().as_secs(),
            reloads: inner.reloads,
            connection_tracking: inner.connection_tracking,
            sandbox: Some(self.sandbox.clone()),
            proxies: inner.proxies.iter().map(ProxyRunner::status).collect(),
        }
    }

    /// Starts the threads that answer status queries and serve metrics.
    fn serve_status(self: Arc<Self>, control: UnixListener, metrics: Option<TcpListener>) -> io::Result<()> {
        if let Some(metrics) = metrics {
            let shared = self.clone();
            let serve = move || drop(metrics::serve(&metrics, || shared.status()));
            thread::Builder::new().name("metrics".into()).spawn(serve)?;
        }
        let serve = move || drop(control::serve(&control, || self.status()));
        thread::Builder::new().name("control".into()).spawn(serve)?;
        Ok(())
    }
}

fn forward_signals(mut signals: Signals, events: Sender<Event>) -> io::Result<()> {
    let body = move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(body).map(drop)
}

#[expect(clippy::disallowed_methods, reason = "a daemon is in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
