//! Movement files from trajectories.

use crate::movements::quantity::TOP_SPEED_MPS;
use core::fmt::Write as _;
use hopline_core::Instant;
use hopline_radio::mobility::Trajectory;

/// Returns the movement file of `paths`, one per node from node 0: what ns-2 and
/// [`Movements::parse`](super::Movements::parse) read. Positions and speeds are written with all their
/// digits, times in whole nanoseconds.
///
/// ns-2 itself refuses coordinates that are not greater than 0.
#[must_use]
pub fn to_ns_movements(paths: &[Trajectory]) -> String {
    let mut text = String::new();
    for (node, path) in paths.iter().enumerate() {
        place(&mut text, node, path).expect("writing to a string does not fail");
    }
    for (node, path) in paths.iter().enumerate() {
        orders(&mut text, node, path).expect("writing to a string does not fail");
    }
    text
}

fn place(text: &mut String, node: usize, path: &Trajectory) -> core::fmt::Result {
    let start = path.position_at(Instant::ZERO);
    writeln!(text, "$node_({node}) set X_ {}", start.x_m)?;
    writeln!(text, "$node_({node}) set Y_ {}", start.y_m)?;
    writeln!(text, "$node_({node}) set Z_ 0")
}

fn orders(text: &mut String, node: usize, path: &Trajectory) -> core::fmt::Result {
    for ((start, from), (_, to)) in path.corners().zip(path.corners().skip(1)) {
        if from != to {
            let nanos = start.as_nanos();
            let (secs, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            // A leg of few nanoseconds may be rounded to a higher speed than was ordered.
            let speed = path.velocity_at(start).speed_mps().min(TOP_SPEED_MPS);
            let order = format_args!("$node_({node}) setdest {} {} {speed}", to.x_m, to.y_m);
            writeln!(text, "$ns_ at {secs}.{rest:09} \"{order}\"")?;
        }
    }
    Ok(())
}
