//! From what a proxy does to what does it.

use crate::config::{InPath, SplitTask, Task};
use bytes::Bytes;
use hopline_net::neighborhood::Neighborhood;
use hopline_net::nfqueue::{self, Queue};
use hopline_net::service::{Ledger, Service};
use hopline_net::split::Split;
use hopline_net::{Error, in_path};
use hopline_proxy::mtcp::Mtcp;
use hopline_proxy::nack::Nacks;
use hopline_proxy::snoop::Snoop;
use hopline_proxy::{Driver, Filter};
use std::io;
use std::os::fd::BorrowedFd;

/// What does it, and how it is told of other parameters.
pub(crate) struct Opened {
    pub(crate) service: Box<dyn Service>,
    pub(crate) tuner: Tuner,
}

/// Tells a service that runs of other parameters.
pub(crate) struct Tuner(Box<dyn Fn(&Task) -> bool + Send + Sync>);

impl Tuner {
    /// Has the service do what `task` says; whether it can without ending.
    pub(crate) fn tune(&self, task: &Task) -> bool {
        (self.0)(task)
    }
}

/// Opens what a task needs: queues, listeners, interfaces. Packets come from now on.
pub(crate) fn open(task: &Task) -> Result<Opened, Error> {
    match task {
        Task::Snoop(path, config) => queued(path, Snoop::new(*config)),
        Task::Mtcp(path, config) => queued(path, Mtcp::new(*config)),
        Task::Nack(path, config) => queued(path, Nacks::new(*config)),
        Task::Split(task) => split(task),
        Task::NeighborhoodRed(config) => Ok(fixed(Neighborhood::open(config)?)),
    }
}

/// A service whose parameters stay as they are.
fn fixed(service: impl Service + 'static) -> Opened {
    Opened { service: Box::new(service), tuner: Tuner(Box::new(|_| false)) }
}

fn split(task: &SplitTask) -> Result<Opened, Error> {
    let service = Split::open(&task.config)?;
    let (handle, opened) = (service.handle(), task.clone());
    let tune = move |task: &Task| match task {
        Task::Split(task) if task.is_like(&opened) => handle.set_legs(task.config.legs.clone()).is_ok(),
        _ => false,
    };
    Ok(Opened { service: Box::new(service), tuner: Tuner(Box::new(tune)) })
}

fn queued<M: Filter<Bytes> + Send + 'static>(path: &InPath, machine: M) -> Result<Opened, Error> {
    let queue = Queue::open(&nfqueue::Config::new(path.queue, &path.interface))?;
    Ok(fixed(Seat { driver: Driver::new(machine), queue }))
}

struct Seat<M> {
    driver: Driver<M>,
    queue: Queue,
}

impl<M: Filter<Bytes> + Send> Service for Seat<M> {
    fn run(mut self: Box<Self>, stop: BorrowedFd<'_>, _: &Ledger) -> io::Result<()> {
        in_path::run(&mut self.driver, &mut self.queue, stop)
    }
}
