//! Daemon: opens everything, sets up rules, runs until a signal, and leaves nothing behind.

use crate::config::{Config, Need, Proxy};
use crate::keeper::Keeper;
use crate::open::{self, Opened};
use crate::rules::{self, Leave, Rules, Tracking, Watch};
use crate::seat::{Change, Event, Seat};
use crate::state::{self, State};
use crate::status::{Sandbox, Status, Tracked};
use crate::{RunError, control, log, metrics, router, sandbox, starter};
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
const LOOKS_FOR_TRACKING: Duration = Duration::from_secs(1);
const TRIES_AGAIN: Duration = Duration::from_secs(60);

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
    let state = State::take_for(&config.state_dir, &config.name, user)?;
    look_at_router(&config)?;
    config.status_group.as_ref().map(control::join).transpose()?;
    let written = config.folders_written();
    let sandbox =
        starter::begin(|| sandbox::enter(state.folder(), &written, user, config.status_group.as_ref()))
            .map_err(RunError::Thread)?;
    if let (Some(user), Err(problems)) = (user, Config::load(path)) {
        warn!(%problems, "the user \"{}\" cannot read the file again, so that a reload will be refused", user.name);
    }
    // Before there is anything to clean up.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(RunError::Signals)?;
    let keeper = Keeper::start(&keeper(&config)).map_err(RunError::Keeper)?;
    state.share().map_err(RunError::Keeper)?;
    let (events, incoming) = mpsc::channel();
    let mut daemon = Daemon::start(path, config, sandbox, keeper, state, &events)?;
    forward(signals, events).map_err(RunError::Signals)?;
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    daemon.live(&incoming);
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    daemon.end()
}

/// Running daemon.
struct Daemon {
    path: PathBuf,
    state: State,
    shared: Arc<Shared>,
    config: Config,
    watch: Watch,
    next_look: Instant,
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
    seats: Vec<Seat>,
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
            .map_err(|e| RunError::Socket(state::socket(&config.state_dir, &config.name), e))?;
        let rules = rules::set_up(&config, state.folder());
        let start = |(proxy, found): (&Proxy, Found)| match found {
            Found::Opened(opened) => Seat::start(proxy.clone(), opened, events),
            Found::Absent(why) => Ok(Seat::waiting(proxy.clone(), why)),
        };
        let started = rules.map_err(RunError::from).and_then(|watch| {
            // Behind the rules: those of an earlier daemon are gone.
            if let Some(why) = router::of_tracked_moves(&config, watch.tracking()) {
                return Err(RunError::Hidden(why));
            }
            mark_onward(watch.tracking());
            let seats = config.proxies.iter().zip(opened).map(start).collect::<io::Result<Vec<Seat>>>();
            Ok((watch, seats.map_err(RunError::Thread)?))
        });
        let (watch, seats) = started.inspect_err(|_| {
            let _ = rules::undo(&config.name, state.folder(), Leave::Tuns);
        })?;
        let connection_tracking = tracked(&config, watch.tracking());
        if connection_tracking == Some(Tracked::NotInUse) {
            info!("connection tracking is not in use: rules for it come when it begins");
        }
        let inner = Mutex::new(Inner { reloads: 0, connection_tracking, seats });
        let shared = Arc::new(Shared { name: config.name.clone(), sandbox, since: now(), inner });
        shared.clone().tell(control, metrics).map_err(RunError::Thread)?;
        let (path, events) = (path.to_owned(), events.clone());
        let next_look = now() + LOOKS_FOR_TRACKING;
        Ok(Self { path, state, shared, config, watch, next_look, events, _keeper: keeper })
    }

    /// Handles events until a signal to end.
    fn live(&mut self, incoming: &Receiver<Event>) {
        loop {
            match self.await_event(incoming) {
                Some(Event::Signal(SIGHUP)) => self.reload(),
                Some(Event::Signal(_)) => return,
                Some(Event::Ended(ended)) => {
                    let mut inner = self.shared.lock();
                    if let Some(seat) = inner.seats.iter_mut().find(|seat| seat.proxy().name == ended.proxy) {
                        seat.has_ended(&ended);
                    }
                }
                None => {}
            }
            let mut back = false;
            for seat in &mut self.shared.lock().seats {
                back |= seat.try_again(&self.events);
            }
            if self.is_tracked_now() || back {
                self.renew_rules();
            }
        }
    }

    /// Checks whether connections are tracked, if that is due. Returns whether they are, without rules for that yet.
    fn is_tracked_now(&mut self) -> bool {
        if !self.looks_for_tracking() || now() < self.next_look {
            return false;
        }
        let is_tracked = self.watch.look() == Tracking::InUse;
        self.next_look = now() + if is_tracked { TRIES_AGAIN } else { LOOKS_FOR_TRACKING };
        is_tracked
    }

    /// Returns whether the beginning of connection tracking matters.
    fn looks_for_tracking(&self) -> bool {
        self.shared.lock().connection_tracking == Some(Tracked::NotInUse)
    }

    /// Returns the next event; `None` if a seat is due for another attempt before, or connection tracking for a check.
    fn await_event(&self, incoming: &Receiver<Event>) -> Option<Event> {
        let look = self.looks_for_tracking().then_some(self.next_look);
        let due = self.shared.lock().seats.iter().filter_map(Seat::due).chain(look).min();
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
    fn renew_rules(&self) {
        if let Err(error) = self.change_rules(&self.config) {
            error!(%error, "the rules are not those of the file");
        }
    }

    /// Changes the rules to those of `config`.
    fn change_rules(&self, config: &Config) -> Result<(), rules::RuleError> {
        let tracking = self.watch.tracking();
        if tracking == Tracking::InUse {
            // Before the rules, which may be rejected: connections with NAT must not move.
            open::set_moving(tracking);
        }
        rules::change(&Rules::of(config, tracking), self.state.folder())?;
        // After the rules: without them conntrack would assign the first packet to another zone than the second.
        mark_onward(tracking);
        open::set_moving(tracking);
        if let Some(why) = router::of_tracked_moves(config, tracking) {
            warn!("connections stay at this station: {why}");
        }
        let tracked = tracked(config, tracking);
        let before = std::mem::replace(&mut self.shared.lock().connection_tracking, tracked);
        if (before, tracked) == (Some(Tracked::NotInUse), Some(Tracked::InUse)) {
            info!("connection tracking has begun: there are rules for it from now on");
        }
        Ok(())
    }

    fn change_to(&mut self, config: Config) {
        if config.of_a_life() != self.config.of_a_life() {
            warn!(
                "name, state_dir, user, status_group, log, metrics, mark and route_table are those of the start until the next one"
            );
        }
        // The names of rules stay those of the start.
        let Config { proxies, needs, .. } = config;
        let mut config = Config { proxies, needs, ..self.config.clone() };
        config.own();
        if let Err(error) = look_at_router(&config) {
            error!(%error, "not read again: everything goes on as before");
            return;
        }
        warn_of_needs(&config);
        self.shared.change(&config.proxies, |proxy| Seat::begin(proxy, &self.events));
        self.watch.look();
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
        self.shared.change(&[], |proxy| Seat::begin(proxy, &self.events));
        let undone = rules::undo(&self.config.name, self.state.folder(), Leave::Tuns);
        info!("ended");
        undone.map(drop).map_err(RunError::Undo)
    }
}

/// Sets whether onward connections are marked: if rules read the mark.
fn mark_onward(tracking: Tracking) {
    set_onward_marking(match tracking {
        Tracking::Absent => OnwardMarking::Unmarked,
        Tracking::InUse => OnwardMarking::Marked,
    });
}

fn tracked(config: &Config, tracking: Tracking) -> Option<Tracked> {
    let tracked = match tracking {
        Tracking::Absent => Tracked::NotInUse,
        Tracking::InUse => Tracked::InUse,
    };
    Rules::of(config, tracking).mind_tracking().then_some(tracked)
}

fn look_at_router(config: &Config) -> Result<(), RunError> {
    let report = router::inspect(config);
    report.warnings.iter().for_each(|warning| warn!("{warning}"));
    match report.obstacles.first() {
        Some(obstacle) => Err(RunError::Hidden(obstacle.clone())),
        None => Ok(()),
    }
}

/// Result of opening a proxy.
enum Found {
    Opened(Opened),
    /// A requirement that may appear later is missing.
    Absent(String),
}

/// Opens all proxies. A proxy with a missing interface or address waits for it, as it does if that disappears later.
fn open_all(config: &Config) -> Result<Vec<Found>, RunError> {
    let unmet = warn_of_needs(config);
    let open = |proxy: &Proxy| match open::open(&proxy.task) {
        Ok(opened) => Ok(Found::Opened(opened)),
        Err(error) if error.is_of_absence() => {
            let why = error.to_string();
            if unmet.iter().all(|need| need.proxy != proxy.name) {
                warn!(proxy = proxy.name, why, "waits");
            }
            Ok(Found::Absent(why))
        }
        Err(error) => Err(RunError::Open(proxy.name.clone(), error)),
    };
    config.proxies.iter().map(open).collect()
}

/// Warns of requirements of proxies that this machine does not meet now. Returns them.
fn warn_of_needs(config: &Config) -> Vec<&Need> {
    let unmet: Vec<&Need> = config.needs.iter().filter(|need| !need.is_met()).collect();
    unmet.iter().for_each(|need| warn!("{need}"));
    unmet
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs these proxies and no others. Unchanged ones continue; changed ones have ended before any begins. Status queries
    /// are answered meanwhile.
    fn change(&self, proxies: &[Proxy], begin: impl Fn(Proxy) -> Seat) {
        let (mut kept, mut endings) = (Vec::new(), Vec::new());
        for seat in &mut self.lock().seats {
            let name = seat.proxy().name.clone();
            let proxy = proxies.iter().find(|proxy| proxy.name == name);
            match proxy.map_or(Change::Another, |proxy| seat.change_to(&proxy.task)) {
                Change::None => kept.push(name),
                Change::Tuned => {
                    info!(proxy = name, "has other parameters");
                    kept.push(name);
                }
                Change::Another => endings.extend(seat.tell_to_end()),
            }
        }
        // Waits for all of them: a new proxy may need what one of them has.
        drop(endings);
        let others = proxies.iter().filter(|proxy| !kept.contains(&proxy.name));
        let begun: Vec<Seat> = others.cloned().map(begin).collect();
        let mut inner = self.lock();
        inner.seats.retain(|seat| kept.contains(&seat.proxy().name));
        inner.seats.extend(begun);
        inner.seats.sort_by_key(|seat| proxies.iter().position(|proxy| proxy.name == seat.proxy().name));
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
            proxies: inner.seats.iter().map(Seat::status).collect(),
        }
    }

    /// Starts the threads that answer status queries and serve metrics.
    fn tell(self: Arc<Self>, control: UnixListener, metrics: Option<TcpListener>) -> io::Result<()> {
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

fn forward(mut signals: Signals, events: Sender<Event>) -> io::Result<()> {
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
