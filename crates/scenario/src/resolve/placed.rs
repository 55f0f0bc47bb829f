//! A node with its position at the start, and its waypoints.

use super::times::instant_of;
use crate::keys;
use crate::schema::Section;
use hopline_config::source::{Origin, Problem};
use hopline_core::Instant;
use hopline_radio::mobility::{Position, SetdestCommand, Trajectory};
use hopline_sim::spec::{Attachment, Channel};

/// A node before its movement is known.
pub(super) struct Placed<'a> {
    pub(super) name: String,
    pub(super) interface: Attachment,
    /// Channels of its radios, if given.
    pub(super) channels: Option<Vec<Channel>>,
    /// The name of its gateway, if it says.
    pub(super) gateway: Option<(&'a str, &'a Origin)>,
    pub(super) position: Position,
    pub(super) mobility: Mobility,
    /// Movement of a `[[node]]`.
    pub(super) waypoints: Vec<Section<'a>>,
    /// Index of the node in the movement file, if it comes from there.
    pub(super) recorded: Option<usize>,
    /// Place in the source where it was named, or placed.
    pub(super) origin: &'a Origin,
}

/// Applicability of the mobility model to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mobility {
    /// It is, if the node has a radio.
    ByModel,
    /// The node stands.
    Stationary,
}

impl Placed<'_> {
    /// Returns whether it never moves, however other nodes move.
    pub(super) fn is_stationary(&self) -> bool {
        self.interface == Attachment::Wired || self.mobility == Mobility::Stationary
    }
}

/// Returns the path of a node through the waypoints of `[[node]]`.
pub(super) fn trajectory_through(start: Position, waypoints: &[Section<'_>]) -> Result<Trajectory, Problem> {
    let mut orders: Vec<SetdestCommand> = Vec::new();
    for section in waypoints {
        let at = instant_of(section, keys::waypoint::AT_S);
        let last = orders.last().map_or(Instant::ZERO, |o| o.at);
        if at < last {
            return Err(Problem::new("a waypoint that is earlier than the one before it")
                .at(section.origin_of("at_s"))
                .help(format!("it follows one at {} s", last.as_secs_f64())));
        }
        let [x_m, y_m, speed_mps] =
            [keys::waypoint::X_M, keys::waypoint::Y_M, keys::waypoint::SPEED_MPS].map(|key| section.get(key));
        orders.push(SetdestCommand { at, to: Position::new(x_m, y_m), speed_mps });
    }
    Ok(Trajectory::from_setdest(start, &orders))
}
