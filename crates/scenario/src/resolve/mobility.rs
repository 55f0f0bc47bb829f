//! `[mobility]` and waypoints: how nodes move.

use super::super::keys;
use super::super::schema::Section;
use super::files::Files;
use super::movement_file::MovementFile;
use super::names::{Names, name_examples, unknown_node};
use super::placed::{Placed, trajectory_through};
use super::{OwnedKeys, reject_foreign_keys, seconds_of};
use hopline_config::source::{Origin, Problem};
use hopline_core::{Duration, NodeId, Purpose, RandomStream};
use hopline_radio::mobility::{Area, RandomWaypoint, SetdestWaypoint, StationaryWaypoint, Trajectory};
use hopline_sim::spec::Attachment;

/// The keys of each model.
const KEYS: [OwnedKeys; 3] = [
    (&["ns2", "bonnmotion", "sumo", "csv", "gpx"], &["file"]),
    (
        &["random-waypoint", "random-waypoint-stationary"],
        &["width_m", "height_m", "max_speed_mps", "pause_s"],
    ),
    (&["random-waypoint-stationary"], &["min_speed_mps"]),
];

/// Returns the path of each node.
pub(super) fn resolve(
    scenario: Section<'_>,
    files: &Files,
    placed: &[Placed<'_>],
    names: &Names,
    (seed, run): (u64, u64),
) -> Result<Vec<Trajectory>, Problem> {
    let section = scenario.section("mobility");
    let model = section.get(keys::mobility::MODEL);
    if let (Some(node), true) = (placed.iter().find(|n| !n.waypoints.is_empty()), model != "static") {
        return Err(Problem::new(format!(
            "`{}` has waypoints, but mobility.model is \"{model}\"",
            node.name
        ))
        .at(node.waypoints[0].origin)
        .help("remove the waypoints, or set mobility.model = \"static\""));
    }
    reject_foreign_keys(&section, "model", model, &KEYS)?;
    match model {
        "static" => placed.iter().map(|node| trajectory_through(node.position, &node.waypoints)).collect(),
        "ns2" | "bonnmotion" | "sumo" | "csv" | "gpx" => from_file(section, files, placed, names),
        _random => {
            let model = random(scenario, section, model)?;
            let duration = seconds_of(&scenario, keys::scenario::DURATION_S);
            check_size(&model, duration, placed, section.origin)?;
            let wander = |(number, node): (u32, &Placed<'_>)| {
                if node.is_stationary() {
                    return Ok(Trajectory::fixed(node.position));
                }
                let mut stream = RandomStream::new(seed, run, NodeId(number), Purpose::Mobility);
                model
                    .trajectory(duration, &mut stream)
                    .map_err(|e| Problem::new(e.to_string()).at(section.origin))
            };
            (0..).zip(placed).map(wander).collect()
        }
    }
}

/// Refuses movement of all nodes together that would not fit into memory.
fn check_size(
    model: &RandomWaypoint,
    duration: Duration,
    placed: &[Placed<'_>],
    origin: &Origin,
) -> Result<(), Problem> {
    let moving = placed.iter().filter(|node| !node.is_stationary()).count();
    let (trips, most) = (model.estimated_trips(duration) * moving as f64, RandomWaypoint::MAX_TOTAL_TRIPS);
    if trips <= most {
        return Ok(());
    }
    Err(Problem::new(format!("{moving} nodes would make about {trips:.0} trips")).at(origin).help(format!(
        "all nodes together may make {most:.0}: fewer nodes, slower, in a larger area, or shorter"
    )))
}

fn random(scenario: Section<'_>, section: Section<'_>, model: &str) -> Result<RandomWaypoint, Problem> {
    let missing = |key: &str| {
        Problem::new(format!("mobility model \"{model}\" needs `{key}`")).at(section.origin_of("model"))
    };
    let nodes = scenario.section("nodes");
    let side = |key| section.number(key).or(nodes.number(key)).ok_or_else(|| missing(key));
    let area = Area { width_m: side("width_m")?, height_m: side("height_m")? };
    let max_speed_mps = section.number("max_speed_mps").ok_or_else(|| missing("max_speed_mps"))?;
    let pause = seconds_of(&section, keys::mobility::PAUSE_S);
    if model == "random-waypoint" {
        return Ok(RandomWaypoint::Setdest(SetdestWaypoint { area, max_speed_mps, pause }));
    }
    let min_speed_mps = section.number("min_speed_mps").ok_or_else(|| missing("min_speed_mps"))?;
    if min_speed_mps > max_speed_mps {
        return Err(Problem::new("`min_speed_mps` is above `max_speed_mps`")
            .at(section.origin_of("min_speed_mps"))
            .help(format!("it is at most {max_speed_mps}")));
    }
    Ok(RandomWaypoint::Stationary(StationaryWaypoint { area, min_speed_mps, max_speed_mps, pause }))
}

/// Returns the paths of the movement file. A node that is not in it stands still.
fn from_file(
    section: Section<'_>,
    files: &Files,
    placed: &[Placed<'_>],
    names: &Names,
) -> Result<Vec<Trajectory>, Problem> {
    let Some(file) = files.movements.as_deref() else {
        let model = section.get(keys::mobility::MODEL);
        return Err(
            Problem::new(format!("mobility model \"{model}\" needs `file`")).at(section.origin_of("model"))
        );
    };
    let recorded = if placed.iter().any(|node| node.recorded.is_some()) {
        placed.iter().map(|node| node.recorded).collect()
    } else if names_any(file, placed) {
        match_by_name(file, placed, names)?
    } else {
        match_by_order(file, placed, names)?
    };
    let path = |(node, recorded): (&Placed<'_>, Option<usize>)| match recorded {
        Some(index) => file.recording.nodes[index].trajectory.clone(),
        None => Trajectory::fixed(node.position),
    };
    Ok(placed.iter().zip(recorded).map(path).collect())
}

/// Returns whether a node of the scenario has the name of one in the file.
fn names_any(file: &MovementFile, placed: &[Placed<'_>]) -> bool {
    let known = file.by_name();
    placed.iter().any(|node| known.contains_key(node.name.as_str()))
}

/// Node by node by its name: every node of the file is one of the scenario.
fn match_by_name(
    file: &MovementFile,
    placed: &[Placed<'_>],
    names: &Names,
) -> Result<Vec<Option<usize>>, Problem> {
    let known = file.by_name();
    for (name, &index) in &known {
        let Some(node) = names.get(*name) else { return Err(unknown_node(name, &file.place(index), names)) };
        let node = &placed[node.index()];
        if node.is_stationary() {
            let (what, other) = match node.interface {
                Attachment::Wired => ("wired", "give it interface = \"wireless\""),
                Attachment::Wireless => ("fixed", "do not fix it"),
            };
            return Err(Problem::new(format!("`{name}` is {what}: it does not move"))
                .at(&file.place(index))
                .help(format!("leave it out of the file, or {other}")));
        }
    }
    Ok(placed.iter().map(|node| known.get(node.name.as_str()).copied()).collect())
}

/// Node i of the file is the i-th wireless node, and there are as many.
fn match_by_order(
    file: &MovementFile,
    placed: &[Placed<'_>],
    names: &Names,
) -> Result<Vec<Option<usize>>, Problem> {
    let moves = |node: &&Placed<'_>| !node.is_stationary();
    let (recorded, wireless) = (file.recording.nodes.len(), placed.iter().filter(moves).count());
    if recorded > wireless {
        let help = format!("the scenario has {wireless} wireless nodes; {}", name_examples(names));
        let surplus = match &file.recording.nodes[wireless].name {
            Some(name) => format!("there is no node for `{name}`"),
            None => format!("there is no node {wireless}"),
        };
        return Err(Problem::new(surplus).at(&file.place(wireless)).help(help));
    }
    if recorded < wireless {
        let node = placed.iter().filter(moves).nth(recorded).expect("there are more");
        let help =
            format!("the file has {recorded} nodes, the scenario {wireless} wireless ones, matched in order");
        return Err(Problem::new(format!("node {recorded}, `{}`, is not placed", node.name))
            .at(&file.end())
            .help(help));
    }
    let mut next = 0..recorded;
    Ok(placed.iter().map(|node| if moves(&node) { next.next() } else { None }).collect())
}
