//! The whole: the simulated network as the scheduler of the kernels at its nodes.

use crate::agenda::{Turn, free_until, next_turn};
use crate::boot::boot;
use crate::channel::Channel;
use crate::error::Error;
use crate::guest::init::folder_between;
use crate::guest::plan::{
    PLAN_FILE, Plan, PlannedInterface, PlannedProgram, STOP_FILE, end_file, output_file,
};
use crate::host::{Host, Patience, Step};
use crate::kernel::{KernelImage, Machine, socket};
use crate::report::{HostReport, ProgramReport, Report};
use hopline_core::{Instant, NodeId};
use hopline_linux::netns;
use hopline_sim::{EgressFrame, HostInterface, Medium, Spec, Tracer, World};
use hopline_wire::dot11::MacAddr;
use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest number of nodes with kernels.
pub const MAX_NODES: usize = 200;
/// Prefix of the network of all nodes: those that a radio reaches answer ARP requests.
const PREFIX: u8 = 8;
/// Prefix of the same address at the interface of a wire, which reaches one node.
const WIRE_PREFIX: u8 = 32;
/// Virtual time after the end in which hosts stop their programs and switch themselves off.
const SHUTDOWN: hopline_core::Duration = hopline_core::Duration::from_secs(60);

/// A program at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name, unique. A file can have it.
    pub name: String,
    /// Node at which it runs.
    pub node: NodeId,
    /// Path of the program, or a name to look for in `PATH`, which takes time at the node.
    pub path: PathBuf,
    /// The program, as it is told its name, and its arguments. Not empty.
    pub command: Vec<String>,
    /// Time at which it starts.
    pub start: Instant,
    /// Time at which it is stopped; `None`: at the end.
    pub stop: Option<Instant>,
}

/// End of an emulation. Programs are stopped then, and kernels are switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// At this virtual time.
    At(Instant),
    /// At the end of the program of this name. All programs go on for 0.1 s at most.
    WithProgram(String),
}

/// Settings of an emulation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes with kernels. Other nodes are simulated alone, and pass on no frames of kernels.
    pub nodes: BTreeSet<NodeId>,
    /// Number of the run: it selects placement, movement, losses, and the random numbers of the kernels.
    pub run: u64,
    /// Its end.
    pub end: End,
    /// `true` if kernels get routes to nodes several hops away. A routing daemon finds them otherwise.
    pub has_routes: bool,
    /// Programs at nodes.
    pub programs: Vec<Program>,
    /// Environment of programs.
    pub environment: Vec<(String, String)>,
    /// Working directory of programs.
    pub working_directory: PathBuf,
    /// The kernel.
    pub kernel: KernelImage,
    /// The machine of each kernel.
    pub machine: Machine,
    /// First process of each kernel: an executable that calls [`guest::init::run`](crate::guest::init::run).
    pub init: PathBuf,
    /// Its arguments.
    pub init_arguments: Vec<String>,
    /// Empty folder for the files of the hosts.
    pub folder: PathBuf,
    /// Real time for which a program may compute without waiting or reading the clock.
    pub patience: Duration,
}

/// Runs a network with kernels at nodes up to its end. Equal arguments and equal files of this machine give equal results
/// and equal events for `tracer`, whatever the folder of `settings` is.
///
/// `proceed`: is told the virtual time many times a second; `false` interrupts the emulation.
///
/// # Errors
/// See [`Error`].
///
/// # Panics
/// If there are more than [`MAX_NODES`] nodes with kernels.
pub fn run<T: Tracer>(
    spec: &Spec,
    settings: &Settings,
    tracer: T,
    proceed: &dyn Fn(Instant) -> bool,
) -> Result<(Report, T), Error> {
    assert!(settings.nodes.len() <= MAX_NODES, "the caller checks the number of nodes");
    let spec = Spec { ethernet_taps: settings.nodes.clone(), ..spec.clone() };
    let patience = Patience { limit: settings.patience, proceed };
    let world = World::new(&spec, settings.run, tracer);
    let mut hosts = start_hosts(&spec, settings)?;
    boot(&mut hosts, patience)?;
    let (end, awaited) = match &settings.end {
        End::At(end) => (*end, None),
        End::WithProgram(name) => (Instant::FAR_FUTURE, Some(Awaited::of(name, settings))),
    };
    let mut emulation = Emulation { world, hosts, patience, awaited, end, now: Instant::ZERO };
    emulation.run()?;
    if let Some(failure) = emulation.world.failure() {
        return Err(Error::Network(failure.describe(&spec)));
    }
    let report = |host: &Host| host_report(host, &emulation.world, settings);
    let hosts = emulation.hosts.iter().map(report).collect::<Result<_, _>>()?;
    let (events, reached) = (emulation.world.events(), emulation.world.now());
    let (outcome, tracer) = emulation.world.finish();
    Ok((Report { outcome, hosts, events, reached }, tracer))
}

struct Emulation<'a, T> {
    world: World<T>,
    hosts: Vec<Host>,
    patience: Patience<'a>,
    /// Program with which the emulation ends, until it has ended.
    awaited: Option<Awaited>,
    /// Time at which programs are stopped, if it is known.
    end: Instant,
    /// Time of the turn under way, or that a running host has reached.
    now: Instant,
}

/// A program with which an emulation ends.
struct Awaited {
    node: NodeId,
    /// File that the host makes when the program ends.
    end_file: PathBuf,
}

impl Awaited {
    fn of(name: &str, settings: &Settings) -> Self {
        let program = settings.programs.iter().find(|program| program.name == name);
        let node = program.expect("the emulation ends with one of its programs").node;
        Self { node, end_file: folder_of(&settings.folder, node.index()).join(end_file(name)) }
    }
}

impl<T: Tracer> Emulation<'_, T> {
    /// Gives the network and the hosts their turns, until all hosts have switched themselves off.
    fn run(&mut self) -> Result<(), Error> {
        while self.world.failure().is_none() && self.hosts.iter().any(|host| !host.has_ended()) {
            if !(self.patience.proceed)(self.now) {
                return Err(Error::Interrupted);
            }
            let limit = self.limit();
            match next_turn(self.world.next_due(), self.hosts.iter().map(Host::request)) {
                Turn::Network(time) if time < limit => {
                    self.now = time;
                    self.world.run_until(time);
                }
                Turn::Host(index, time) if time < limit => {
                    self.now = time.max(self.now);
                    let free = self.free_until(index);
                    self.hosts[index].run(self.now, free)?;
                    self.follow(index)?;
                    self.note_end(index)?;
                }
                _ => break,
            }
            self.deliver()?;
        }
        if self.end < Instant::FAR_FUTURE {
            self.world.run_until(self.end);
        }
        Ok(())
    }

    /// Returns the time that no host passes.
    fn limit(&self) -> Instant {
        match self.awaited {
            None => self.end + SHUTDOWN,
            Some(_) => Instant::FAR_FUTURE,
        }
    }

    /// Stops all programs if the one with which the emulation ends has ended. Host `index` has had its turn.
    fn note_end(&mut self, index: usize) -> Result<(), Error> {
        let is_there =
            |awaited: &mut Awaited| awaited.node == self.hosts[index].node && awaited.end_file.exists();
        if self.awaited.take_if(is_there).is_none() {
            let host = &self.hosts[index];
            let is_lost = host.has_ended() && self.awaited.as_ref().is_some_and(|one| one.node == host.node);
            return if is_lost { Err(host.has_ended_early()) } else { Ok(()) };
        }
        self.end = self.now;
        for host in &self.hosts {
            fs::write(host.folder.join(STOP_FILE), "").map_err(Error::system("stopping programs"))?;
        }
        Ok(())
    }

    /// Follows a running host until it waits, and carries the frames that it sends.
    fn follow(&mut self, index: usize) -> Result<(), Error> {
        loop {
            match self.hosts[index].follow(self.now, self.patience)? {
                Step::Waits => return self.hosts[index].deliver_backlog(self.now, self.patience),
                Step::Ended => return Ok(()),
                Step::Transmits(port, time) => {
                    self.now = time;
                    self.world.run_until(time);
                    let (node, medium) = (self.hosts[index].node, self.hosts[index].medium(port));
                    while let Some(frame) = self.hosts[index].take_frame(port)? {
                        // What is refused is counted.
                        let _ = match medium {
                            None => self.world.inject_frame(node, &frame),
                            Some(medium) => self.world.inject_frame_over(node, medium, &frame),
                        };
                    }
                    let free = self.free_until(index);
                    self.hosts[index].finish_transmission(self.now, free, self.patience)?;
                }
            }
        }
    }

    /// Returns the time up to which a host may run freely.
    fn free_until(&self, index: usize) -> Instant {
        let network = self.world.next_due().min(self.limit());
        free_until(network, self.hosts.iter().map(Host::request), index)
    }

    /// Hands out the frames that have arrived. All hosts wait.
    fn deliver(&mut self) -> Result<(), Error> {
        while let Some(EgressFrame { node, medium, frame, .. }) = self.world.poll_frame() {
            let host = self.hosts.binary_search_by_key(&node, |host| host.node);
            let host = host.expect("a frame leaves the network at a node with a kernel");
            self.hosts[host].deliver(self.now, medium, frame, self.patience)?;
        }
        Ok(())
    }
}

/// Starts the kernels, in the order of their nodes.
fn start_hosts(spec: &Spec, settings: &Settings) -> Result<Vec<Host>, Error> {
    let nodes = || settings.nodes.iter().copied();
    // Routes are computed to the nodes that send or receive: here to all.
    let every = Spec { taps: settings.nodes.clone(), ..spec.clone() };
    let routes = settings.has_routes.then(|| hopline_sim::routes::shortest(&every));
    let mut hosts_file = fs::read_to_string("/etc/hosts").unwrap_or_default();
    if !hosts_file.is_empty() && !hosts_file.ends_with('\n') {
        hosts_file.push('\n');
    }
    for node in nodes().filter(|node| netns::is_host_name(&spec.nodes[node.index()].name)) {
        hosts_file.push_str(&format!("{} {}\n", node.ipv4(), spec.nodes[node.index()].name));
    }
    let start = |node: NodeId| {
        let others = nodes().filter(|&other| other != node);
        let via = |to: NodeId| {
            let next = routes.as_ref()?.next_hop(node, to)?;
            // A simulated node alone forwards no frames.
            (next != to && settings.nodes.contains(&next)).then(|| (to.ipv4(), next.ipv4()))
        };
        let interfaces = HostInterface::at(spec, node);
        let plan = Plan {
            hosts_file: hosts_file.clone(),
            interfaces: interfaces.iter().map(planned_interface).collect(),
            ..plan(node, &spec.nodes[node.index()].name, others.filter_map(via).collect(), settings)
        };
        start_host(node, &plan, interfaces, settings)
    };
    nodes().map(start).collect()
}

fn plan(node: NodeId, name: &str, routes: Vec<(Ipv4Addr, Ipv4Addr)>, settings: &Settings) -> Plan {
    let programs = settings.programs.iter().filter(|program| program.node == node);
    let planned = |program: &Program| PlannedProgram {
        name: program.name.clone(),
        path: program.path.clone(),
        command: program.command.clone(),
        start_ns: program.start.as_nanos(),
        stop_ns: program.stop.map(Instant::as_nanos),
    };
    Plan {
        name: name.to_owned(),
        address: node.ipv4(),
        interfaces: Vec::new(),
        routes,
        hosts_file: String::new(),
        folder: settings.working_directory.clone(),
        environment: settings.environment.clone(),
        programs: programs.map(planned).collect(),
        end_ns: match settings.end {
            End::At(end) => Some(end.as_nanos()),
            End::WithProgram(_) => None,
        },
    }
}

fn planned_interface(interface: &HostInterface) -> PlannedInterface {
    let (prefix, neighbour) = match interface.medium {
        Some(Medium::Wire(neighbour)) => (WIRE_PREFIX, Some(neighbour.ipv4())),
        Some(Medium::Radio) | None => (PREFIX, None),
    };
    PlannedInterface { name: interface.name.clone(), prefix, neighbour }
}

fn start_host(
    node: NodeId,
    plan: &Plan,
    interfaces: Vec<HostInterface>,
    settings: &Settings,
) -> Result<Host, Error> {
    let folder = folder_of(&settings.folder, node.index());
    let preparing = || format!("preparing {}", folder.display());
    fs::create_dir(&folder).map_err(Error::system(preparing()))?;
    let between = folder.join(folder_between(&plan.folder));
    fs::create_dir_all(between).map_err(Error::system(preparing()))?;
    let plan_text = serde_json::to_vec(plan).map_err(Error::system(preparing()))?;
    fs::write(folder.join(PLAN_FILE), plan_text).map_err(Error::system(preparing()))?;
    symlink(&settings.init, folder.join("init")).map_err(Error::system(preparing()))?;
    let listen = |name: &str| Channel::listen(&folder, name).map_err(Error::system(preparing()));
    let time = listen("time")?;
    let port = |(number, interface): (usize, HostInterface)| Ok((interface.medium, listen(&socket(number))?));
    let ports = interfaces.into_iter().enumerate().map(port).collect::<Result<Vec<_>, Error>>()?;
    // A host's random numbers differ from those of others, and from those of other runs.
    let seed = settings.run << 32 | u64::from(node.0);
    let process =
        settings.kernel.start(&folder, seed, settings.machine, ports.len(), &settings.init_arguments)?;
    Ok(Host::new((node, &plan.name), folder, process, MacAddr::of_node(node).0, time, ports))
}

fn folder_of(folder: &Path, index: usize) -> PathBuf {
    folder.join(index.to_string())
}

fn host_report<T: Tracer>(host: &Host, world: &World<T>, settings: &Settings) -> Result<HostReport, Error> {
    let mut programs = Vec::new();
    for program in settings.programs.iter().filter(|program| program.node == host.node) {
        let has_started = match settings.end {
            End::At(end) => program.start < end,
            End::WithProgram(_) => host.folder.join(output_file(&program.name)).exists(),
        };
        let end = match has_started {
            true => {
                let bytes = fs::read(host.folder.join(end_file(&program.name))).unwrap_or_default();
                Some(serde_json::from_slice(&bytes).map_err(|_| host.has_ended_early())?)
            }
            false => None,
        };
        programs.push(ProgramReport { name: program.name.clone(), end });
    }
    Ok(HostReport {
        name: host.name.clone(),
        node: host.node,
        tap: world.tap_counts(host.node),
        overflow: host.overflow(),
        folder: host.folder.clone(),
        programs,
    })
}
