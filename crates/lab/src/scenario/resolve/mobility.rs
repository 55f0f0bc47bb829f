//! `[mobility]` and waypoints: how nodes move.

use super::super::schema::Section;
use super::super::source::{Origin, Problem, Source};
use super::nodes::{Placed, through};
use super::{Files, Owned, refuse_foreign, seconds};
use hopline_core::{Duration, NodeId, Purpose, Stream};
use hopline_radio::mobility::{
    Area, MovementError, Movements, RandomWaypoint, SetdestWaypoint, StationaryWaypoint, Trajectory,
};
use hopline_sim::spec::Interface;
use std::sync::Arc;

/// The keys of each model.
const KEYS: [Owned; 3] = [
    (&["ns2"], &["file"]),
    (
        &["random-waypoint", "random-waypoint-stationary"],
        &["width_m", "height_m", "max_speed_mps", "pause_s"],
    ),
    (&["random-waypoint-stationary"], &["min_speed_mps"]),
];

/// The path of each node.
pub(super) fn resolve(
    scenario: Section<'_>,
    files: &Files,
    placed: &[Placed<'_>],
    seed: u64,
    run: u64,
) -> Result<Vec<Trajectory>, Problem> {
    let section = scenario.section("mobility");
    let model = section.word("model").expect("has a default");
    if let (Some(node), true) = (placed.iter().find(|n| !n.waypoints.is_empty()), model != "static") {
        return Err(Problem::new(format!(
            "`{}` has waypoints, but mobility.model is \"{model}\"",
            node.name
        ))
        .at(node.waypoints[0].origin)
        .help("remove the waypoints, or set mobility.model = \"static\""));
    }
    refuse_foreign(&section, "model", model, &KEYS)?;
    match model {
        "static" => placed.iter().map(|node| through(node.position, &node.waypoints)).collect(),
        "ns2" => from_file(section, files, placed),
        _random => {
            let model = random(scenario, section, model)?;
            let duration = Duration::from_secs_f64(scenario.number("duration_s").expect("is required"));
            let wander = |(number, node): (u32, &Placed<'_>)| {
                if node.interface == Interface::Wired {
                    return Ok(Trajectory::fixed(node.position));
                }
                let mut stream = Stream::new(seed, run, NodeId(number), Purpose::Mobility);
                model
                    .trajectory(duration, &mut stream)
                    .map_err(|e| Problem::new(e.to_string()).at(section.origin))
            };
            (0..).zip(placed).map(wander).collect()
        }
    }
}

fn random(scenario: Section<'_>, section: Section<'_>, model: &str) -> Result<RandomWaypoint, Problem> {
    let missing = |key: &str| {
        Problem::new(format!("mobility model \"{model}\" needs `{key}`")).at(section.origin_of("model"))
    };
    let nodes = scenario.section("nodes");
    let side = |key| section.number(key).or(nodes.number(key)).ok_or_else(|| missing(key));
    let area = Area { width_m: side("width_m")?, height_m: side("height_m")? };
    let max_speed_mps = section.number("max_speed_mps").ok_or_else(|| missing("max_speed_mps"))?;
    let pause = seconds(&section, "pause_s").expect("has a default");
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

/// The movement file: its node i is the i-th wireless node. Wired nodes stand still.
fn from_file(section: Section<'_>, files: &Files, placed: &[Placed<'_>]) -> Result<Vec<Trajectory>, Problem> {
    let Some((source, movements)) = files.movements.as_deref() else {
        return Err(Problem::new("mobility model \"ns2\" needs `file`").at(section.origin_of("model")));
    };
    let wireless = placed.iter().filter(|n| n.interface == Interface::Wireless).count();
    if movements.nodes.len() != wireless {
        return Err(miscounted(section, source, wireless));
    }
    let mut paths = movements.trajectories().into_iter();
    let path = |node: &Placed<'_>| match node.interface {
        Interface::Wireless => paths.next().expect("counted above"),
        Interface::Wired => Trajectory::fixed(node.position),
    };
    Ok(placed.iter().map(path).collect())
}

/// The line of the file that names one node too many, or the end of the file if there are too few.
fn miscounted(section: Section<'_>, source: &Arc<Source>, wireless: usize) -> Problem {
    let declared = u32::try_from(wireless).expect("the key table bounds the number of nodes");
    match Movements::parse(&source.text, Some(declared)) {
        Err(error) => broken(source, error),
        Ok(_) => Problem::new(format!("the movement file does not place exactly {wireless} nodes"))
            .at(section.origin_of("file")),
    }
}

/// The movements of a file that need not fit the scenario yet.
pub(super) fn read(source: Arc<Source>) -> Result<(Arc<Source>, Movements), Problem> {
    let movements = Movements::parse(&source.text, None).map_err(|error| broken(&source, error))?;
    Ok((source, movements))
}

fn broken(source: &Arc<Source>, error: MovementError) -> Problem {
    Problem::new(error.message).at(&Origin { source: source.clone(), span: error.span }).help(error.help)
}
