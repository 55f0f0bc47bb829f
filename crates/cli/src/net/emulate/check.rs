//! Networks that cannot be emulated.

use crate::commands::run::find_node;
use hopline_config::source::Problem;
use hopline_core::NodeId;
use hopline_emulate::MAX_NODES;
use hopline_lab::Spec;
use hopline_scenario::Program;
use hopline_virtual_time::emulation::MAX_NODES as MAX_KERNELS;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeSet;

/// Descriptors of an emulation beside those of nodes and programs: files of results, the page, what other parts open for
/// a moment.
const RESERVED_DESCRIPTORS: usize = 64;
/// Descriptors of a node: its namespace and its interface.
const DESCRIPTORS_PER_NODE: usize = 2;
/// Descriptors of a wire: an interface at each end.
const DESCRIPTORS_PER_WIRE: usize = 2;
/// Descriptors of a program: its output and its process.
const DESCRIPTORS_PER_PROGRAM: usize = 4;

/// Raises the limit of open files to what an emulation takes, and not further: programs inherit it.
pub(super) fn raise_descriptor_limit(nodes: usize, wires: usize, programs: usize) -> Result<(), Problem> {
    let wanted = DESCRIPTORS_PER_NODE * nodes
        + DESCRIPTORS_PER_WIRE * wires
        + DESCRIPTORS_PER_PROGRAM * programs
        + RESERVED_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted as u64);
    if is_enough(limit.current) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted as u64), ..limit };
    if is_enough(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    let maximum = limit.maximum.or(limit.current).unwrap_or_default();
    Err(Problem::new(format!(
        "{nodes} nodes, {wires} links and {programs} programs take {wanted} open files, and this process may have {maximum}"
    ))
    .help(format!(
        "raise the hard limit before the start (LimitNOFILE={wanted} of systemd, `ulimit -n {wanted}` as root), or choose nodes \
         with --node"
    )))
}

/// Returns the nodes that programs can enter, those of these names or all, after a check that the network can be emulated.
pub(super) fn network(
    spec: &Spec,
    names: &[String],
    virtual_time: bool,
    programs: &[Program],
) -> Result<BTreeSet<NodeId>, Problem> {
    let nodes: BTreeSet<NodeId> = match names {
        [] => (0..spec.nodes.len() as u32).map(NodeId).collect(),
        names => names.iter().map(|name| find_node("--node", name, spec)).collect::<Result<_, _>>()?,
    };
    let most = if virtual_time { MAX_KERNELS } else { MAX_NODES };
    if nodes.len() > most {
        let count = nodes.len();
        let time = if virtual_time { " in virtual time" } else { "" };
        return Err(Problem::new(format!("{count} nodes are too many to emulate{time}: at most {most}"))
            .help("--node chooses those for programs; `hopline run` simulates networks of any size"));
    }
    if let Some(program) = programs.iter().find(|program| !nodes.contains(&program.node)) {
        let node = &spec.nodes[program.node.index()].name;
        return Err(Problem::new(format!(
            "program `{}` is at `{node}`, which --node does not choose",
            program.name
        ))
        .at(&program.origin)
        .help(format!("--node {node} in addition, or --set program=[]")));
    }
    if spec.cells.is_some() {
        return Err(Problem::new(
            "[cells] cannot be emulated: hosts that move between base stations are simulated alone",
        )
        .help("leave out [cells] and [[mobile]]"));
    }
    if spec.routing.has_agents() && !spec.flows.is_empty() {
        return Err(Problem::new(
            "simulated flows have no routes: emulated nodes run no simulated routing protocol",
        )
        .help("--set routing.protocol=static, or leave out [[flow]] and run a routing daemon at the nodes"));
    }
    Ok(nodes)
}
