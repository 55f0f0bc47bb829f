//! User-defined algorithms: congestion control algorithms and queue disciplines that a program supplies.
//!
//! A [`Spec`](crate::Spec) has them by number, and makes of each an instance for every end of a flow and every queue
//! that asks for it.

mod in_spec;
mod quic;
mod quic_factory;

use core::fmt;
use hopline_core::custom_algorithm::CustomAlgorithmError;
use hopline_core::{FlowId, Instant, NodeId, RandomStream};
use hopline_queue::custom::{
    CustomDisciplineId, DequeueDecision, EnqueueDecision, HeadOfQueue, PacketInfo, QueueInfo,
};
use hopline_transport::tcp::{CustomCcAck, CustomCcLoss, CustomCcTimeout};
use std::sync::Arc;

pub use hopline_queue::CustomDiscipline;
pub use hopline_transport::tcp::{CustomCongestionControl, CustomCongestionControlId};

/// Makes a machine from a seed. Every seed is drawn from that of the experiment, the number of the run, and
/// where the machine is: machines that draw random numbers from it alone are the same in every run of that
/// number.
pub type AlgorithmConstructor<M> = dyn Fn(u64) -> Result<Box<M>, String> + Send + Sync;

/// Function that runs work on a thread for simulations, within the context that user-defined algorithms need there.
pub type ThreadContext = dyn Fn(&mut (dyn FnMut() + Send)) + Send + Sync;

/// All user-defined algorithms, by name.
#[derive(Clone, Default)]
pub struct CustomAlgorithms {
    thread_context: Option<Arc<ThreadContext>>,
    congestion_controls: Vec<NamedConstructor<dyn CustomCongestionControl>>,
    disciplines: Vec<NamedConstructor<dyn CustomDiscipline>>,
    quic_controllers: Vec<NamedConstructor<quic_factory::Controllers>>,
}

/// Named constructor of an algorithm.
struct NamedConstructor<M: ?Sized> {
    name: Arc<str>,
    digest: Arc<str>,
    make: Arc<AlgorithmConstructor<M>>,
}

impl<M: ?Sized> NamedConstructor<M> {
    fn new(name: &str, digest: &str, make: Arc<AlgorithmConstructor<M>>) -> Self {
        Self { name: name.into(), digest: digest.into(), make }
    }
}

impl<M: ?Sized> Clone for NamedConstructor<M> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), digest: self.digest.clone(), make: self.make.clone() }
    }
}

impl<M: ?Sized> fmt::Debug for NamedConstructor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.digest)
    }
}

/// Kind of a user-defined algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlgorithmKind {
    /// A congestion control algorithm.
    CongestionControl,
    /// A discipline of a queue.
    Discipline,
    /// A congestion control algorithm of QUIC.
    QuicCongestionControl,
}

/// A machine that a specification asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsedAlgorithm {
    /// Kind of the algorithm.
    pub kind: AlgorithmKind,
    /// Its name.
    pub name: String,
    /// Digest that identifies its program, as given by the program that supplied it.
    pub digest: String,
}

impl fmt::Debug for CustomAlgorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machines")
            .field("laws", &self.congestion_controls)
            .field("disciplines", &self.disciplines)
            .field("quic_controllers", &self.quic_controllers)
            .finish_non_exhaustive()
    }
}

impl CustomAlgorithms {
    /// Returns the same where threads that make runs do so within `around`: an interpreter sets a thread up
    /// once, not at every call.
    #[must_use]
    pub fn with_thread_context(
        mut self,
        around: impl Fn(&mut (dyn FnMut() + Send)) + Send + Sync + 'static,
    ) -> Self {
        self.thread_context = Some(Arc::new(around));
        self
    }

    /// Does `work`, which makes runs, on this thread.
    pub fn run_in_context(&self, work: &mut (dyn FnMut() + Send)) {
        match &self.thread_context {
            Some(around) => around(work),
            None => work(),
        }
    }

    /// Adds a congestion control algorithm called `name`. `digest` tells one program of that name from
    /// another: results of different digests are not mixed. One that had the name gives way.
    #[must_use]
    pub fn with_congestion_control(
        mut self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> Result<Box<dyn CustomCongestionControl>, String> + Send + Sync + 'static,
    ) -> Self {
        insert_named(&mut self.congestion_controls, NamedConstructor::new(name, digest, Arc::new(make)));
        self
    }

    /// Returns the same with a queue discipline, as [`with_congestion_control`](Self::with_congestion_control).
    #[must_use]
    pub fn with_discipline(
        mut self,
        name: &str,
        digest: &str,
        make: impl Fn(u64) -> Result<Box<dyn CustomDiscipline>, String> + Send + Sync + 'static,
    ) -> Self {
        insert_named(&mut self.disciplines, NamedConstructor::new(name, digest, Arc::new(make)));
        self
    }

    /// Returns these and `others`, which take the place of those of the same name.
    #[must_use]
    pub fn merge(mut self, others: Self) -> Self {
        self.thread_context = others.thread_context.or(self.thread_context);
        for law in others.congestion_controls {
            insert_named(&mut self.congestion_controls, law);
        }
        for discipline in others.disciplines {
            insert_named(&mut self.disciplines, discipline);
        }
        for controller in others.quic_controllers {
            insert_named(&mut self.quic_controllers, controller);
        }
        self
    }

    /// Returns the number of the congestion control algorithm of this name.
    #[must_use]
    pub fn congestion_control(&self, name: &str) -> Option<CustomCongestionControlId> {
        position(&self.congestion_controls, name).map(CustomCongestionControlId)
    }

    /// Returns the number of the discipline of this name.
    #[must_use]
    pub fn discipline(&self, name: &str) -> Option<CustomDisciplineId> {
        position(&self.disciplines, name).map(CustomDisciplineId)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.congestion_controls.is_empty() && self.disciplines.is_empty() && self.quic_controllers.is_empty()
    }

    /// Returns the names of all algorithms of a kind, in the order in which they were added.
    #[must_use]
    pub fn names(&self, kind: AlgorithmKind) -> Vec<&str> {
        match kind {
            AlgorithmKind::CongestionControl => {
                self.congestion_controls.iter().map(|law| &*law.name).collect()
            }
            AlgorithmKind::Discipline => {
                self.disciplines.iter().map(|discipline| &*discipline.name).collect()
            }
            AlgorithmKind::QuicCongestionControl => {
                self.quic_controllers.iter().map(|controller| &*controller.name).collect()
            }
        }
    }

    /// Creates an instance of a congestion control algorithm. One that cannot be made fails when it is first used.
    pub(crate) fn make_congestion_control(
        &self,
        id: CustomCongestionControlId,
        random: &mut RandomStream,
    ) -> Box<dyn CustomCongestionControl> {
        construct(&self.congestion_controls, id.0, random)
            .unwrap_or_else(|why| Box::new(BrokenAlgorithm(why)))
    }

    /// Creates an instance of a discipline, in the same way.
    pub(crate) fn make_discipline(
        &self,
        id: CustomDisciplineId,
        random: &mut RandomStream,
    ) -> Box<dyn CustomDiscipline> {
        construct(&self.disciplines, id.0, random).unwrap_or_else(|why| Box::new(BrokenAlgorithm(why)))
    }

    fn used_congestion_control(&self, id: CustomCongestionControlId) -> UsedAlgorithm {
        used_algorithm(AlgorithmKind::CongestionControl, &self.congestion_controls, id.0)
    }

    fn used_discipline(&self, id: CustomDisciplineId) -> UsedAlgorithm {
        used_algorithm(AlgorithmKind::Discipline, &self.disciplines, id.0)
    }
}

fn insert_named<M: ?Sized>(machines: &mut Vec<NamedConstructor<M>>, new: NamedConstructor<M>) {
    match machines.iter_mut().find(|machine| machine.name == new.name) {
        Some(old) => *old = new,
        None => machines.push(new),
    }
}

fn position<M: ?Sized>(machines: &[NamedConstructor<M>], name: &str) -> Option<u16> {
    let found = machines.iter().position(|machine| *machine.name == *name)?;
    u16::try_from(found).ok()
}

fn construct<M: ?Sized>(
    machines: &[NamedConstructor<M>],
    number: u16,
    random: &mut RandomStream,
) -> Result<Box<M>, String> {
    match machines.get(usize::from(number)) {
        Some(machine) => (machine.make)(random.bits()).map_err(|why| format!("it cannot be made: {why}")),
        None => Err(format!("the specification has no own machine number {number}")),
    }
}

fn used_algorithm<M: ?Sized>(
    kind: AlgorithmKind,
    machines: &[NamedConstructor<M>],
    number: u16,
) -> UsedAlgorithm {
    let machine = machines.get(usize::from(number));
    let text =
        |of: fn(&NamedConstructor<M>) -> &Arc<str>| machine.map_or("?", |machine| of(machine)).to_owned();
    UsedAlgorithm { kind, name: text(|machine| &machine.name), digest: text(|machine| &machine.digest) }
}

/// Stands for a machine that cannot be made.
#[derive(Debug)]
struct BrokenAlgorithm(String);

impl CustomCongestionControl for BrokenAlgorithm {
    fn on_ack(&mut self, _ack: &CustomCcAck) -> Result<f64, String> {
        Err(self.0.clone())
    }

    fn on_loss(&mut self, _loss: &CustomCcLoss) -> Result<f64, String> {
        Err(self.0.clone())
    }

    fn on_timeout(&mut self, _timeout: &CustomCcTimeout) -> Result<f64, String> {
        Err(self.0.clone())
    }
}

impl CustomDiscipline for BrokenAlgorithm {
    fn enqueue(&mut self, _packet: &PacketInfo, _queue: &QueueInfo) -> Result<EnqueueDecision, String> {
        Err(self.0.clone())
    }

    fn dequeue(&mut self, _head: &HeadOfQueue, _queue: &QueueInfo) -> Result<DequeueDecision, String> {
        Err(self.0.clone())
    }
}

/// Failure of a user-defined algorithm, which ended its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The failed instance.
    pub instance: FailedInstance,
    /// Time of the failure.
    pub at: Instant,
    /// Reason for the failure.
    pub reason: CustomAlgorithmError,
}

/// Instance that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedInstance {
    /// Congestion control algorithm of an end of a flow.
    CongestionControl {
        /// The congestion control algorithm.
        id: CustomCongestionControlId,
        /// Flow of the instance.
        flow: FlowId,
        /// Node of the instance.
        node: NodeId,
    },
    /// The discipline of a queue.
    Discipline {
        /// The queue discipline.
        id: CustomDisciplineId,
        /// Node of the instance.
        node: NodeId,
    },
}
