//! Creation of services from the tasks of proxies.

use crate::config::{EntranceTask, ExitTask, PacketSelection, SplitTask, StationTask, Task, TunnelTask};
use crate::rules::{Claim, RuleError, Tracking};
use bytes::Bytes;
use hopline_linux::Error;
use hopline_middlebox::announce::Announcements;
use hopline_middlebox::diversion::{Diverter, OverflowPolicy};
use hopline_middlebox::dproxy::DProxy;
use hopline_middlebox::gateway;
use hopline_middlebox::gateway::{Entrance, Exit, Fallback};
use hopline_middlebox::handoff::{BaseStation, HomeAgent, MobileHost, MovePolicy, VisitorList};
use hopline_middlebox::neighborhood::Neighborhood;
use hopline_middlebox::nfqueue::{self, MiddleboxMetrics, MiddleboxService};
use hopline_middlebox::opaque::Opaque;
use hopline_middlebox::service::{JoinedServices, Service};
use hopline_middlebox::split::{Config as SplitConfig, Split};
use hopline_proxy::Pep;
use hopline_proxy::mtcp::{self, Mtcp};
use hopline_proxy::nack::{self, NackStation};
use hopline_proxy::snoop::{self, Snoop};
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Service, and the way to change its parameters.
pub(crate) struct Opened {
    pub(crate) service: Box<dyn Service>,
    pub(crate) tuner: Tuner,
}

/// Changes the parameters of a running service.
pub(crate) struct Tuner(Box<dyn Fn(&Task) -> bool + Send + Sync>);

impl Tuner {
    /// Returns the tuner of a service with constant parameters.
    pub(crate) fn unchangeable() -> Self {
        Self(Box::new(|_| false))
    }

    /// Applies the parameters of `task`. Returns whether that is possible without a restart.
    pub(crate) fn tune(&self, task: &Task) -> bool {
        (self.0)(task)
    }
}

/// Reason why a proxy cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system has rejected an operation.
    #[error(transparent)]
    System(#[from] Error),
    /// A gateway cannot be opened.
    #[error(transparent)]
    Gateway(#[from] gateway::Error),
    /// The interface of a tunnel does not belong to the daemon, or does not accept its addresses.
    #[error(transparent)]
    Interface(#[from] RuleError),
}

impl OpenError {
    /// Returns whether an interface or address of this machine is missing, and may appear later.
    pub(crate) const fn is_absence(&self) -> bool {
        match self {
            Self::System(error) | Self::Gateway(gateway::Error::System(error)) => error.is_absence(),
            Self::Gateway(gateway::Error::Config { .. }) | Self::Interface(_) => false,
        }
    }
}

/// Opens everything that a task needs: queues, listeners, interfaces. Packets arrive from now on.
pub(crate) fn open(task: &Task) -> Result<Opened, OpenError> {
    Ok(match task {
        Task::Snoop(path, config) => queued(path, *config, |task| match task {
            Task::Snoop(path, config) => Some((path, *config)),
            _ => None,
        })?,
        Task::Mtcp(path, config) => queued(path, *config, |task| match task {
            Task::Mtcp(path, config) => Some((path, *config)),
            _ => None,
        })?,
        Task::Nack(path, config) => queued(path, *config, |task| match task {
            Task::Nack(path, config) => Some((path, *config)),
            _ => None,
        })?,
        Task::NackHost(path, config) => queued(path, BufferingHost(*config), |task| match task {
            Task::NackHost(path, config) => Some((path, BufferingHost(*config))),
            _ => None,
        })?,
        Task::Split(task) => split(task)?,
        Task::NeighborhoodRed(config) => without_parameters(Neighborhood::open(config)?),
        Task::DProxy(task) => without_parameters(DProxy::open(&task.config)?),
        Task::Tunnel(task) => tunnel(task)?,
        Task::Gateway(task) => gateway(task)?,
        Task::GatewayExit(task) => exit(task)?,
        Task::HomeAgent(config) => without_parameters(HomeAgent::open(config)?),
        Task::BaseStation(task) => station(task)?,
        Task::MobileHost(config) => without_parameters(MobileHost::open(config)?),
    })
}

/// Returns a service with constant parameters.
fn without_parameters(service: impl Service + 'static) -> Opened {
    Opened { service: Box::new(service), tuner: Tuner::unchangeable() }
}

/// Parameters of a middlebox.
trait Parameters: Copy + Send + 'static {
    type Middlebox: Pep<Bytes, Stats: MiddleboxMetrics> + Send + 'static;

    /// Creates a middlebox with these parameters.
    fn middlebox(self) -> Self::Middlebox;

    /// Sets the parameters of a middlebox. Returns whether that was possible: some need a new middlebox.
    fn tune(self, middlebox: &mut Self::Middlebox) -> bool;
}

impl Parameters for snoop::Config {
    type Middlebox = snoop::WindowedSnoop<Bytes>;

    fn middlebox(self) -> Self::Middlebox {
        snoop::windowed(self)
    }

    fn tune(self, middlebox: &mut Self::Middlebox) -> bool {
        middlebox.set_snoop_config(self)
    }
}

impl Parameters for mtcp::Config {
    type Middlebox = Mtcp<Bytes>;

    fn middlebox(self) -> Self::Middlebox {
        Mtcp::new(self)
    }

    fn tune(self, middlebox: &mut Self::Middlebox) -> bool {
        middlebox.set_config(self);
        true
    }
}

impl Parameters for nack::Config {
    type Middlebox = NackStation<Bytes>;

    fn middlebox(self) -> Self::Middlebox {
        NackStation::new(self)
    }

    fn tune(self, middlebox: &mut Self::Middlebox) -> bool {
        middlebox.set_config(self);
        true
    }
}

/// Parameters of a host that caches its own segments: Snoop without a window on the last hop.
#[derive(Clone, Copy, Debug)]
struct BufferingHost(snoop::Config);

impl Parameters for BufferingHost {
    type Middlebox = Snoop<Bytes>;

    fn middlebox(self) -> Self::Middlebox {
        Snoop::new(self.0)
    }

    fn tune(self, middlebox: &mut Self::Middlebox) -> bool {
        middlebox.set_config(self.0)
    }
}

/// Opens a middlebox on a queue. `of`: parameters of a task of the same kind, and its packets.
fn queued<P: Parameters>(
    path: &PacketSelection,
    parameters: P,
    of: impl Fn(&Task) -> Option<(&PacketSelection, P)> + Send + Sync + 'static,
) -> Result<Opened, Error> {
    let seat =
        MiddleboxService::open(&nfqueue::Config::new(path.queue, &path.interface), parameters.middlebox())?;
    let (replacer, opened) = (seat.replacer(), path.clone());
    let change = |parameters: P| {
        move |middlebox: &mut P::Middlebox| match parameters.tune(middlebox) {
            true => None,
            false => Some(mem::replace(middlebox, parameters.middlebox())),
        }
    };
    let tune = move |task: &Task| match of(task) {
        // Hosts and ports are selected by rules.
        Some((path, parameters)) if (path.queue, &path.interface) == (opened.queue, &opened.interface) => {
            replacer.change(change(parameters)).is_ok()
        }
        _ => false,
    };
    Ok(Opened { service: Box::new(seat), tuner: Tuner(Box::new(tune)) })
}

fn split(task: &SplitTask) -> Result<Opened, Error> {
    let visitors = || visitors_at(&task.interface);
    let moves =
        task.connection_moves.as_ref().and_then(|moving| moving.move_config(&task.interface, visitors()));
    let service = Split::open(&SplitConfig { moves, ..task.config.clone() })?;
    let (handle, opened) = (service.control(), task.clone());
    let tune = move |task: &Task| match task {
        Task::Split(task) if task.is_compatible(&opened) => handle.set_legs(task.config.legs.clone()).is_ok(),
        _ => false,
    };
    Ok(Opened { service: Box::new(service), tuner: Tuner(Box::new(tune)) })
}

fn gateway(task: &EntranceTask) -> Result<Opened, OpenError> {
    let entrance = Entrance::open(&task.config)?;
    let unaccepted = entrance.unaccepted();
    let entrance: Box<dyn Service> = match &task.announce {
        None => Box::new(entrance),
        Some(config) => {
            let announcements = Announcements::open(config)?;
            let entrance = entrance.restrict_to_tpa_hosts(announcements.host_protocols());
            Box::new(JoinedServices(Box::new(entrance), Box::new(announcements)))
        }
    };
    let service: Box<dyn Service> = match task.diverted() {
        None => entrance,
        Some(diversion) => {
            // Connections that may not use TCP at all do not pass the entrance by TCP either.
            let beyond = match task.config.fallback() {
                Fallback::Tcp => OverflowPolicy::Forward,
                Fallback::Refuse => OverflowPolicy::Reset,
            };
            Box::new(JoinedServices(entrance, Box::new(Diverter::open(diversion, unaccepted, beyond)?)))
        }
    };
    let opened = (task.config.clone(), task.announce.clone(), task.diverted());
    // Diverted connections are selected by rules.
    let tune = move |task: &Task| match task {
        Task::Gateway(task) => {
            (&task.config, &task.announce, &task.diverted()) == (&opened.0, &opened.1, &opened.2)
        }
        _ => false,
    };
    Ok(Opened { service, tuner: Tuner(Box::new(tune)) })
}

fn exit(task: &ExitTask) -> Result<Opened, OpenError> {
    let exit = Exit::open(&task.config)?;
    Ok(match &task.announce {
        None => without_parameters(exit),
        Some(config) => {
            without_parameters(JoinedServices(Box::new(exit), Box::new(Announcements::open(config)?)))
        }
    })
}

/// Visitor lists by the interface of the radio. A base station and the split proxy beside it have one, whichever of them begins again.
static VISITORS: Mutex<BTreeMap<String, VisitorList>> = Mutex::new(BTreeMap::new());

fn visitors() -> MutexGuard<'static, BTreeMap<String, VisitorList>> {
    VISITORS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn visitors_at(interface: &str) -> VisitorList {
    visitors().entry(interface.to_owned()).or_default().clone()
}

/// Has connections move between stations, or stay: what connection tracking has changed of a connection is at this station alone.
pub(crate) fn set_move_policy(tracking: Tracking) {
    let moving = match tracking {
        Tracking::Absent => MovePolicy::Allowed,
        Tracking::InUse => MovePolicy::Suspended,
    };
    visitors().values().for_each(|list| list.set_move_policy(moving));
}

fn station(task: &StationTask) -> Result<Opened, Error> {
    let mut station = BaseStation::open(&task.config)?;
    station.write_visitors(&visitors_at(&task.config.wireless));
    let Some((queue, config)) = task.snoop else { return Ok(without_parameters(station)) };
    let machine = station.notify_middlebox(snoop::windowed(config));
    let seat = MiddleboxService::open(&nfqueue::Config::new(queue, &task.config.wireless), machine)?;
    Ok(without_parameters(JoinedServices(Box::new(station), Box::new(seat))))
}

fn tunnel(task: &TunnelTask) -> Result<Opened, OpenError> {
    let claim: Claim = task.interface().claim(&task.owner)?;
    let service = Opaque::open(&task.config)?;
    claim.apply_addresses()?;
    Ok(without_parameters(service))
}
