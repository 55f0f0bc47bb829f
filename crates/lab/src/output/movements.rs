//! Movements of a run as a file for ns-2, ns-3 and BonnMotion.

use crate::counted::count_text;
use hopline_radio::mobility::{Position, Trajectory};
use hopline_scenario::Scenario;
use hopline_scenario::movements::to_ns_movements;
use hopline_sim::spec::{Attachment, Spec};
use std::fmt::Write;

/// Returns the `.ns_movements` file of run number `run` of `scenario`, with specification `spec`. `$node_(i)`
/// is the i-th wireless node, as for `mobility.model = "ns2"`; comments give further information. `None` if
/// no node is wireless.
#[must_use]
pub fn movements(scenario: &Scenario, spec: &Spec, run: u64) -> Option<String> {
    let wireless = spec.nodes.iter().filter(|node| node.attachment() == Attachment::Wireless);
    let (names, paths): (Vec<&str>, Vec<Trajectory>) =
        wireless.map(|node| (node.name.as_str(), node.trajectory.clone())).unzip();
    let (least, most) = bounds(&paths)?;
    let mut text = String::new();
    let mut say = |line: String| writeln!(text, "# {line}").expect("strings take everything");
    let nodes = count_text(names.len(), "node");
    say(format!("{}, seed {}, run {run}: {nodes}", scenario.name().escape_debug(), spec.seed));
    say(format!("x from {} to {} m, y from {} to {} m", least.x_m, most.x_m, least.y_m, most.y_m));
    if least.x_m <= 0.0 || least.y_m <= 0.0 {
        say("ns-2 sends nodes only to coordinates above 0".to_owned());
    }
    for (number, name) in names.iter().enumerate().filter(|(number, name)| **name != format!("n{number}")) {
        say(format!("$node_({number}) is {}", name.escape_debug()));
    }
    text.push_str(&to_ns_movements(&paths));
    Some(text)
}

/// Returns the corners of the smallest rectangle that contains all paths.
fn bounds(paths: &[Trajectory]) -> Option<(Position, Position)> {
    let mut all = paths.iter().flat_map(Trajectory::corners).map(|(_, position)| position);
    let first = all.next()?;
    Some(all.fold((first, first), |(least, most), here| {
        (
            Position::new(least.x_m.min(here.x_m), least.y_m.min(here.y_m)),
            Position::new(most.x_m.max(here.x_m), most.y_m.max(here.y_m)),
        )
    }))
}
