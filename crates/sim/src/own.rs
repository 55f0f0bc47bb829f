//! User-defined algorithms: congestion control algorithms and queue disciplines that a program supplies.
//!
//! A [`Spec`](crate::Spec) has them by number, and makes of each an instance for every end of a flow and every queue
//! that asks for it.

mod in_spec;

use core::fmt;
use hopline_core::own::OwnFailure;
use hopline_core::{FlowId, Instant, NodeId, Stream};
use hopline_queue::own::{Admission, HeadInfo, OwnDisciplineId, PacketInfo, QueueInfo, Service};
use hopline_transport::tcp::{LawAck, LawLoss, LawTimeout};
use std::sync::Arc;

pub use hopline_queue::OwnDiscipline;
pub use hopline_transport::tcp::{OwnLaw, OwnLawId};

/// Makes a machine from a seed. Every seed is drawn from that of the experiment, the number of the run, and
/// where the machine is: machines that draw random numbers from it alone are the same in every run of that
/// number.
pub type Make<M> = dyn Fn(u64) -> Result<Box<M>, String> + Send + Sync;

/// Function that runs work on a thread for simulations, within the context that user-defined algorithms need there.
pub type Around = dyn Fn(&mut (dyn FnMut() + Send)) + Send + Sync;

/// All user-defined algorithms, by name.
#[derive(Clone, Default)]
pub struct Machines {
    around: Option<Arc<Around>>,
    laws: Vec<Named<dyn OwnLaw>>,
    disciplines: Vec<Named<dyn OwnDiscipline>>,
}

/// Named constructor of an algorithm.
struct Named<M: ?Sized> {
    name: Arc<str>,
    digest: Arc<str>,
    make: Arc<Make<M>>,
}

impl<M: ?Sized> Named<M> {
    fn new(name: &str, digest: &str, make: Arc<Make<M>>) -> Self {
        Self { name: name.into(), digest: digest.into(), make }
    }
}

impl<M: ?Sized> Clone for Named<M> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), digest: self.digest.clone(), make: self.make.clone() }
    }
}

impl<M: ?Sized> fmt::Debug for Named<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.digest)
    }
}

/// Kind of a user-defined algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A congestion control algorithm.
    Law,
    /// A discipline of a queue.
    Discipline,
}

/// A machine that a specification asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Used {
    /// Kind of the algorithm.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Digest that identifies its program, as given by the program that supplied it.
    pub digest: String,
}

impl fmt::Debug for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machines")
            .field("laws", &self.laws)
            .field("disciplines", &self.disciplines)
            .finish_non_exhaustive()
    }
}

impl Machines {
    /// Returns the same where threads that make runs do so within `around`: an interpreter sets a thread up
    /// once, not at every call.
    #[must_use]
    pub fn within(mut self, around: impl Fn(&mut (dyn FnMut() + Send)) + Send + Sync + 'static) -> Self {
        self.around = Some(Arc::new(around));
        self
    }

    /// Does `work`, which makes runs, on this thread.
    pub fn work(&self, work: &mut (dyn FnMut() + Send)) {
        match &self.around {
            Some(around) => around(work),
            None => work(),
        }
    }

    /// Adds a congestion control algorithm called `name`. `digest` tells one program of that name from
    /// another: results of different digests are not mixed. One that had the name gives way.
    #[must_use]
    pub fn with_law(
        mut self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> Result<Box<dyn OwnLaw>, String> + Send + Sync + 'static,
    ) -> Self {
        put(&mut self.laws, Named::new(name, digest, Arc::new(make)));
        self
    }

    /// Returns the same with a queue discipline, as [`with_law`](Self::with_law).
    #[must_use]
    pub fn with_discipline(
        mut self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> Result<Box<dyn OwnDiscipline>, String> + Send + Sync + 'static,
    ) -> Self {
        put(&mut self.disciplines, Named::new(name, digest, Arc::new(make)));
        self
    }

    /// Returns these and `others`, which take the place of those of the same name.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.around = others.around.or(self.around);
        for law in others.laws {
            put(&mut self.laws, law);
        }
        for discipline in others.disciplines {
            put(&mut self.disciplines, discipline);
        }
        self
    }

    /// Returns the number of the congestion control algorithm of this name.
    #[must_use]
    pub fn law(&self, name: &str) -> Option<OwnLawId> {
        position(&self.laws, name).map(OwnLawId)
    }

    /// Returns the number of the discipline of this name.
    #[must_use]
    pub fn discipline(&self, name: &str) -> Option<OwnDisciplineId> {
        position(&self.disciplines, name).map(OwnDisciplineId)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.laws.is_empty() && self.disciplines.is_empty()
    }

    /// Returns the names of all algorithms of a kind, in the order in which they were added.
    #[must_use]
    pub fn names(&self, kind: Kind) -> Vec<&str> {
        match kind {
            Kind::Law => self.laws.iter().map(|law| &*law.name).collect(),
            Kind::Discipline => self.disciplines.iter().map(|discipline| &*discipline.name).collect(),
        }
    }

    /// Creates an instance of a congestion control algorithm. One that cannot be made fails when it is first used.
    pub(crate) fn make_law(&self, id: OwnLawId, random: &mut Stream) -> Box<dyn OwnLaw> {
        made(&self.laws, id.0, random).unwrap_or_else(|why| Box::new(Broken(why)))
    }

    /// Creates an instance of a discipline, in the same way.
    pub(crate) fn make_discipline(&self, id: OwnDisciplineId, random: &mut Stream) -> Box<dyn OwnDiscipline> {
        made(&self.disciplines, id.0, random).unwrap_or_else(|why| Box::new(Broken(why)))
    }

    fn used_law(&self, id: OwnLawId) -> Used {
        used(Kind::Law, &self.laws, id.0)
    }

    fn used_discipline(&self, id: OwnDisciplineId) -> Used {
        used(Kind::Discipline, &self.disciplines, id.0)
    }
}

fn put<M: ?Sized>(machines: &mut Vec<Named<M>>, new: Named<M>) {
    match machines.iter_mut().find(|machine| machine.name == new.name) {
        Some(old) => *old = new,
        None => machines.push(new),
    }
}

fn position<M: ?Sized>(machines: &[Named<M>], name: &str) -> Option<u16> {
    let found = machines.iter().position(|machine| *machine.name == *name)?;
    u16::try_from(found).ok()
}

fn made<M: ?Sized>(machines: &[Named<M>], number: u16, random: &mut Stream) -> Result<Box<M>, String> {
    match machines.get(usize::from(number)) {
        Some(machine) => (machine.make)(random.bits()).map_err(|why| format!("it cannot be made: {why}")),
        None => Err(format!("the specification has no own machine number {number}")),
    }
}

fn used<M: ?Sized>(kind: Kind, machines: &[Named<M>], number: u16) -> Used {
    let machine = machines.get(usize::from(number));
    let text = |of: fn(&Named<M>) -> &Arc<str>| machine.map_or("?", |machine| of(machine)).to_owned();
    Used { kind, name: text(|machine| &machine.name), digest: text(|machine| &machine.digest) }
}

/// Stands for a machine that cannot be made.
#[derive(Debug)]
struct Broken(String);

impl OwnLaw for Broken {
    fn on_ack(&mut self, _ack: &LawAck) -> Result<f64, String> {
        Err(self.0.clone())
    }

    fn on_loss(&mut self, _loss: &LawLoss) -> Result<f64, String> {
        Err(self.0.clone())
    }

    fn on_timeout(&mut self, _timeout: &LawTimeout) -> Result<f64, String> {
        Err(self.0.clone())
    }
}

impl OwnDiscipline for Broken {
    fn enqueue(&mut self, _packet: &PacketInfo, _queue: &QueueInfo) -> Result<Admission, String> {
        Err(self.0.clone())
    }

    fn dequeue(&mut self, _head: &HeadInfo, _queue: &QueueInfo) -> Result<Service, String> {
        Err(self.0.clone())
    }
}

/// Failure of a user-defined algorithm, which ended its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The failed instance.
    pub culprit: Culprit,
    /// Time of the failure.
    pub at: Instant,
    /// Reason for the failure.
    pub reason: OwnFailure,
}

/// Instance that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// Congestion control algorithm of an end of a flow.
    Law {
        /// The congestion control algorithm.
        id: OwnLawId,
        /// Flow of the instance.
        flow: FlowId,
        /// Node of the instance.
        node: NodeId,
    },
    /// The discipline of a queue.
    Discipline {
        /// The queue discipline.
        id: OwnDisciplineId,
        /// Node of the instance.
        node: NodeId,
    },
}
