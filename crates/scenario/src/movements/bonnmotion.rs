//! BonnMotion's own movement files (`.movements`): a line for each node.
//!
//! A line is `t x y t x y …`: seconds and metres, separated by blanks; the node is at each point at its time, goes there in
//! a straight line and at constant speed, and stands at the first point before and at the last one afterwards. Lines that
//! begin with `#` are comments, but for `#3D`, with which BonnMotion says that points have a height: `t x y z`. Nodes
//! move in the plane here, so the height must be the same everywhere in the file. The model DisasterArea of BonnMotion
//! spreads a node over several lines and is not read.

use super::quantity::Quantity;
use super::recording::{Recorder, Recording, Track};
use super::text_error::TextError;
use hopline_radio::mobility::Position;

#[cfg(test)]
mod tests;

/// Number of coordinates of a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PointFormat {
    TwoDimensional,
    WithHeight,
}

pub(super) fn read(text: &str) -> Result<Recording, TextError> {
    let mut recorder = Recorder::default();
    let mut points = PointFormat::TwoDimensional;
    let mut height_m = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let words = Words { line, at: 0 };
        match words.rest() {
            "" => {}
            "#3D" => points = PointFormat::WithHeight,
            comment if comment.starts_with('#') => {}
            _node => {
                node(words, points, &mut height_m, &mut recorder, start).map_err(|f| f.offset_by(start))?
            }
        }
        start += line.len();
    }
    Ok(recorder.finish())
}

/// Reads the line of a node, which begins at byte `start` of the text.
fn node(
    mut words: Words<'_>,
    points: PointFormat,
    height_m: &mut Option<f64>,
    recorder: &mut Recorder,
    start: usize,
) -> Result<(), TextError> {
    let mut track: Option<Track> = None;
    while let Some((time, at)) = words.next() {
        let instant = Quantity::read_instant(time, at)?;
        let position = Position { x_m: words.number(Quantity::X)?, y_m: words.number(Quantity::Y)? };
        if points == PointFormat::WithHeight {
            words.height(height_m)?;
        }
        let track = match track {
            Some(track) => track,
            None => *track.insert(recorder.node(None, start + at..start + at + time.len())?),
        };
        let range = at..at + time.len();
        recorder.sample(track, instant, position, range).map_err(|flaw| add_hint(flaw, points))?;
    }
    Ok(())
}

/// Heights look like times in disorder to a reader that does not expect them.
fn add_hint(mut flaw: TextError, points: PointFormat) -> TextError {
    if points == PointFormat::TwoDimensional {
        flaw.help.push_str("; points with a height, `t x y z`, are announced by a first line `#3D`");
    }
    flaw
}

/// The words of a line with their places.
struct Words<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        self.line[self.at..].trim_matches(is_blank)
    }

    fn next(&mut self) -> Option<(&'a str, usize)> {
        let rest = &self.line[self.at..];
        let blanks = rest.len() - rest.trim_start_matches(is_blank).len();
        let word = &rest[blanks..];
        let word = &word[..word.find(is_blank).unwrap_or(word.len())];
        let at = self.at + blanks;
        self.at = at + word.len();
        (!word.is_empty()).then_some((word, at))
    }

    fn number(&mut self, quantity: Quantity) -> Result<f64, TextError> {
        let Some((word, at)) = self.next() else {
            let end = self.line.trim_end_matches(is_blank).len();
            let help = format!("{}; a line is `t x y t x y …`", quantity.help());
            return Err(TextError::new(end..end, "the line ends in the middle of a point", help));
        };
        quantity.read(word, at)
    }

    /// Reads the height of a point, which must be that of all points before it.
    fn height(&mut self, height_m: &mut Option<f64>) -> Result<(), TextError> {
        let z_m = self.number(Quantity::Height)?;
        let all_m = *height_m.get_or_insert(z_m);
        if z_m == all_m {
            return Ok(());
        }
        let begin = self.line[..self.at].trim_end_matches(|c| !is_blank(c)).len();
        let help = format!(
            "nodes move in the plane, so the height must be {all_m} everywhere; `-J 2D` makes BonnMotion leave it out"
        );
        Err(TextError::new(begin..self.at, format!("a height of {z_m} m after one of {all_m} m"), help))
    }
}

const fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace()
}
