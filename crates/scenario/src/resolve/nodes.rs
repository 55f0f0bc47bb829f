//! `[nodes]` and `[[node]]`: nodes and their positions at the start.

use super::super::keys;
use super::super::schema::Section;
use super::super::user_defined::{ScenarioUse, ScenarioWithMachines};
use super::files::Files;
use super::host_names;
use super::mobility;
use super::names::Names;
use super::placed::{Mobility, Placed};
use super::routes::Gateways;
use hopline_config::source::Problem;
use hopline_core::{Instant, NodeId, Purpose, RandomStream};
use hopline_radio::mobility::Position;
use hopline_sim::spec::{Attachment, Channel, NodeSpec};

/// All nodes, those of `[nodes]` first.
pub(super) struct Resolved<'a> {
    pub(super) nodes: Vec<NodeSpec>,
    /// Their numbers.
    pub(super) names: Names,
    pub(super) gateways: Gateways<'a>,
}

/// Returns the nodes.
pub(super) fn resolve<'a>(
    whole: ScenarioWithMachines<'a>,
    files: &'a Files,
    seed: u64,
    run: u64,
) -> Result<Resolved<'a>, Problem> {
    let scenario = whole.scenario;
    let default = if scenario.section("radio").is_given() { Attachment::Wireless } else { Attachment::Wired };
    check_count(scenario, files)?;
    let mut placed = Vec::new();
    generate(scenario.section("nodes"), default, seed, run, &mut placed)?;
    from_movements(scenario, files, &mut placed)?;
    let from_file = files.nodes.iter().map(|node| Section::new(node, keys::NODE));
    for section in from_file.chain(scenario.sections("node")) {
        placed.push(listed(section, default, placed.len())?);
    }
    if placed.is_empty() {
        return Err(Problem::new("no nodes")
            .at(scenario.origin)
            .help("add [nodes] with a layout, or [[node]]"));
    }
    let names = names(&placed)?;
    if whole.used_for == ScenarioUse::Emulation {
        host_names::check(&placed)?;
    }
    let trajectories = mobility::resolve(scenario, files, &placed, &names, (seed, run))?;
    let common = channels(&scenario.section("radio"))?.unwrap_or_else(|| vec![Channel(0)]);
    let gateways = placed.iter().map(|node| node.gateway).collect();
    let radios = |node: &Placed<'_>| match node.interface {
        Attachment::Wireless => node.channels.clone().unwrap_or_else(|| common.clone()),
        Attachment::Wired => Vec::new(),
    };
    let count: u64 = placed.iter().map(|node| radios(node).len() as u64).sum();
    if count > keys::MAX_NODES {
        return Err(Problem::new(format!("a network of {count} radios"))
            .at(scenario.section("radio").origin_of("channels"))
            .help(format!("it has at most {}, as many as nodes", keys::MAX_NODES)));
    }
    let nodes = placed.into_iter().zip(trajectories).map(|(node, trajectory)| {
        let radios = radios(&node);
        NodeSpec::new(node.name, trajectory, radios)
    });
    Ok(Resolved { nodes: nodes.collect(), names, gateways })
}

/// Returns the channels of a node, each once, if it says.
fn channels(section: &Section<'_>) -> Result<Option<Vec<Channel>>, Problem> {
    const MOST_RADIOS: usize = 16;
    let Some(given) = section.integers("channels") else { return Ok(None) };
    let mut channels = Vec::new();
    for (number, at) in given {
        let channel = Channel(number);
        if channels.contains(&channel) {
            return Err(Problem::new(format!("two radios on channel {number}"))
                .at(at)
                .help("each radio of a node is on a channel of its own"));
        }
        channels.push(channel);
    }
    if channels.len() > MOST_RADIOS {
        return Err(Problem::new(format!("a node with {} radios", channels.len()))
            .at(section.origin_of("channels"))
            .help(format!("it has at most {MOST_RADIOS}")));
    }
    Ok(Some(channels))
}

fn names(placed: &[Placed<'_>]) -> Result<Names, Problem> {
    let mut names = Names::new();
    for (number, node) in (0..).zip(placed) {
        if let Some(first) = names.insert(node.name.clone(), NodeId(number)) {
            let first = placed[first.index()].origin;
            return Err(Problem::new(format!("a second node named `{}`", node.name)).at(node.origin).help(
                format!("the first is at {first}; names of nodes are unique, and [nodes] makes n0, n1, …"),
            ));
        }
    }
    Ok(names)
}

fn listed<'a>(section: Section<'a>, default: Attachment, number: usize) -> Result<Placed<'a>, Problem> {
    let interface = match section.word("interface") {
        Some("wired") => Attachment::Wired,
        Some("wireless") if default == Attachment::Wired => {
            return Err(Problem::new("a wireless node, but the scenario has no [radio]")
                .at(section.origin_of("interface"))
                .help("add [radio] with preset = \"ns2-wavelan\""));
        }
        Some(_wireless) => Attachment::Wireless,
        None => default,
    };
    let [x_m, y_m] = [keys::node::X_M, keys::node::Y_M].map(|key| section.get(key));
    if interface == Attachment::Wired && section.has("channels") {
        return Err(Problem::new("channels, but no radio")
            .at(section.origin_of("channels"))
            .help("a node with interface = \"wireless\" has radios, where the scenario has [radio]"));
    }
    let waypoints = section.sections("waypoints");
    let motion = if section.flag("fixed") == Some(true) { Mobility::Stationary } else { Mobility::ByModel };
    if let (Some(waypoint), Mobility::Stationary) = (waypoints.first(), motion) {
        return Err(Problem::new("waypoints of a node that is fixed")
            .at(waypoint.origin)
            .help("remove the waypoints, or `fixed`"));
    }
    Ok(Placed {
        mobility: motion,
        channels: channels(&section)?,
        gateway: section.word("gateway").map(|name| (name, section.origin_of("gateway"))),
        name: section.word("name").map_or_else(|| NodeId(number as u32).to_string(), str::to_owned),
        interface,
        position: Position::new(x_m, y_m),
        waypoints,
        recorded: None,
        origin: section.origin_of("name"),
    })
}

/// Returns the nodes of `[nodes]`.
fn generate<'a>(
    section: Section<'a>,
    interface: Attachment,
    seed: u64,
    run: u64,
    placed: &mut Vec<Placed<'a>>,
) -> Result<(), Problem> {
    if !section.is_given() {
        return Ok(());
    }
    let layout = section.get(keys::nodes::LAYOUT);
    let used: &[&str] = match layout {
        "chain" => &["count", "spacing_m"],
        "grid" => &["columns", "rows", "spacing_m"],
        "random" => &["count", "width_m", "height_m"],
        "movements" => &[],
        _file => &["file"],
    };
    require(&section, layout, used)?;
    let mut put = |position| {
        let name = NodeId(placed.len() as u32).to_string();
        let (waypoints, origin) = (Vec::new(), section.origin);
        placed.push(Placed {
            name,
            interface,
            channels: None,
            gateway: None,
            position,
            mobility: Mobility::ByModel,
            waypoints,
            recorded: None,
            origin,
        });
    };
    let whole = |key| section.integer(key).expect("checked above");
    let number = |key| section.number(key).expect("checked above");
    match layout {
        "chain" => {
            (0..whole("count")).for_each(|i| put(Position::new(i as f64 * number("spacing_m"), 0.0)));
        }
        "grid" => {
            let (columns, spacing) = (whole("columns"), number("spacing_m"));
            (0..columns * whole("rows")).for_each(|i| {
                put(Position::new((i % columns) as f64 * spacing, (i / columns) as f64 * spacing));
            });
        }
        "random" => {
            let (width, height) = (number("width_m"), number("height_m"));
            (0..whole("count")).for_each(|i| {
                let mut stream = RandomStream::new(seed, run, NodeId(i as u32), Purpose::Placement);
                put(Position::new(stream.uniform(0.0, width), stream.uniform(0.0, height)));
            });
        }
        _file_or_movements => {}
    }
    Ok(())
}

/// Layout "movements": the nodes of the movement file, with their names if it has names.
fn from_movements<'a>(
    scenario: Section<'a>,
    files: &Files,
    placed: &mut Vec<Placed<'a>>,
) -> Result<(), Problem> {
    let section = scenario.section("nodes");
    if section.word("layout") != Some("movements") {
        return Ok(());
    }
    let Some(file) = files.movements.as_deref() else {
        return Err(Problem::new("layout \"movements\" needs a movement file")
            .at(section.origin_of("layout"))
            .help(
                "add [mobility] with model = \"ns2\", \"bonnmotion\", \"sumo\", \"csv\" or \"gpx\", and file",
            ));
    };
    placed.extend(file.recording.nodes.iter().enumerate().map(|(number, node)| Placed {
        name: node.name.clone().unwrap_or_else(|| NodeId(number as u32).to_string()),
        interface: Attachment::Wireless,
        channels: None,
        gateway: None,
        position: node.trajectory.position_at(Instant::ZERO),
        mobility: Mobility::ByModel,
        waypoints: Vec::new(),
        recorded: Some(number),
        origin: section.origin,
    }));
    Ok(())
}

/// Refuses a network that would not fit into memory, before any of it is made.
fn check_count(scenario: Section<'_>, files: &Files) -> Result<(), Problem> {
    let section = scenario.section("nodes");
    let whole = |key| section.integer(key).unwrap_or(0);
    let (by_rule, key) = match section.word("layout") {
        Some("chain" | "random") => (whole("count"), "count"),
        Some("grid") => (whole("columns").saturating_mul(whole("rows")), "rows"),
        Some("movements") => {
            (files.movements.as_deref().map_or(0, |file| file.recording.nodes.len() as u64), "layout")
        }
        _file_or_none => (0, "file"),
    };
    let listed = files.nodes.len() + scenario.sections("node").len();
    let nodes = by_rule.saturating_add(listed as u64);
    if nodes <= keys::MAX_NODES {
        return Ok(());
    }
    let origin = if section.has(key) { section.origin_of(key) } else { scenario.origin_of("node") };
    Err(Problem::new(format!("a network of {nodes} nodes"))
        .at(origin)
        .help(format!("it has at most {}, which take some 3.5 GB of memory", keys::MAX_NODES)))
}

/// Checks that a layout has its keys and no others.
fn require(section: &Section<'_>, layout: &str, used: &[&str]) -> Result<(), Problem> {
    let origin = section.origin_of("layout");
    if let Some(missing) = used.iter().find(|key| !section.has(key)) {
        return Err(Problem::new(format!("layout \"{layout}\" needs `{missing}`"))
            .at(origin)
            .help(format!("layout \"{layout}\" takes {}", used.join(", "))));
    }
    let foreign =
        section.keys().find(|k| k.name != "layout" && section.has(k.name) && !used.contains(&k.name));
    match foreign {
        None => Ok(()),
        Some(key) => Err(Problem::new(format!("layout \"{layout}\" does not use `{}`", key.name))
            .at(section.origin_of(key.name))
            .help(format!("it takes {}", used.join(", ")))),
    }
}
