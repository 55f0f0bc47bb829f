//! Formats of movement files.

use super::recording::{RecordedNode, Recording};
use super::text_error::{MovementError, TextError};
use super::{Movements, bonnmotion, csv, gpx, sumo};
use hopline_radio::mobility::Trajectory;

/// The formats of movement files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovementFormat {
    /// ns-2: `.ns_movements`, see [`ns_movements`](super::ns_movements).
    Ns2,
    /// BonnMotion: `.movements`, see [`bonnmotion`](super::bonnmotion).
    BonnMotion,
    /// SUMO floating car data, see [`sumo`](super::sumo).
    Sumo,
    /// CSV, see [`csv`](super::csv).
    Csv,
    /// GPX, see [`gpx`](super::gpx).
    Gpx,
}

impl Recording {
    /// Reads the text of a movement file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place. Nothing is skipped that would move a node.
    pub fn parse(format: MovementFormat, text: &str) -> Result<Self, MovementError> {
        let read = match format {
            MovementFormat::Ns2 => Ok(Self::from_movements(Movements::parse(text)?)),
            MovementFormat::BonnMotion => bonnmotion::read(text),
            MovementFormat::Sumo => sumo::read(text),
            MovementFormat::Csv => csv::read(text),
            MovementFormat::Gpx => gpx::read(text),
        };
        let recording = read.map_err(|flaw| flaw.in_text(text))?;
        if recording.nodes.is_empty() {
            return Err(TextError::new(0..0, "the movement file has no node", format.example()).in_text(text));
        }
        match format {
            MovementFormat::Ns2 | MovementFormat::BonnMotion | MovementFormat::Csv => {
                recording.check_metres().map_err(|flaw| flaw.in_text(text))?;
            }
            // SUMO gives speeds, by which its reader judges. Positions of GPX were projected.
            MovementFormat::Sumo | MovementFormat::Gpx => {}
        }
        Ok(recording)
    }

    fn from_movements(movements: Movements) -> Self {
        let node = |node: super::ns_movements::Movement| RecordedNode {
            name: None,
            trajectory: Trajectory::from_setdest(node.start, &node.set_destinations),
            first: node.first,
        };
        Self { nodes: movements.nodes.into_iter().map(node).collect() }
    }
}

impl MovementFormat {
    /// Returns an example of the smallest file.
    fn example(self) -> String {
        let example = match self {
            Self::Ns2 => "`$node_(0) set X_ 83.4` and `$node_(0) set Y_ 239.4`",
            Self::BonnMotion => "a line for each node: `0.0 83.4 239.4 2.0 90.4 44.8`",
            Self::Sumo => {
                "<fcd-export><timestep time=\"0.00\"><vehicle id=\"a\" x=\"83.4\" y=\"239.4\"/></timestep></fcd-export>"
            }
            Self::Gpx => {
                "<gpx><trk><trkseg><trkpt lat=\"52.52\" lon=\"13.405\"><time>2024-05-01T10:00:00Z</time></trkpt></trkseg></trk></gpx>"
            }
            Self::Csv => "`node,time_s,x_m,y_m` and then `n0,0,83.4,239.4`",
        };
        format!("expected at least {example}")
    }
}
