//! SUMO's floating car data, as `sumo --fcd-output file.xml` writes it.
//!
//! ```xml
//! <fcd-export>
//!   <timestep time="0.00">
//!     <vehicle id="car.0" x="83.40" y="239.40" speed="13.89" angle="90.00" lane="e1_0"/>
//!     <person id="walker" x="10.00" y="5.00" speed="1.20"/>
//!   </timestep>
//! </fcd-export>
//! ```
//!
//! Vehicles, persons and containers are nodes, named by their `id`. A node goes from each of its positions to
//! its next in a straight line and at constant speed, also where steps lie between in which it does not
//! appear. Before its first position and after its last one it stands there: it is in the network from
//! beginning to end. Other attributes than `id`, `x` and `y` are not used. Positions are metres: longitudes
//! and latitudes are refused.

use super::quantity::Quantity;
use super::recording::{Recorder, Recording, Track};
use super::text_error::{TextError, shorten};
use super::xml::{Attribute, Xml, attributes};
use core::ops::Range;
use hopline_core::Instant;
use hopline_radio::mobility::Position;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// Tags that may occur in a time step.
const MOVING_TAGS: [&str; 3] = ["vehicle", "person", "container"];
const NO_GEO: &str = "run SUMO with `--fcd-output.geo false`, which writes metres";

pub(super) fn read(text: &str) -> Result<Recording, TextError> {
    let mut xml = Xml::new(text, "SUMO's FCD output");
    let mut fcd = Fcd::new(text);
    loop {
        let (event, range) = xml.next()?;
        match event {
            Event::Start(tag) => fcd.open(&tag, range)?,
            Event::Empty(tag) => {
                fcd.open(&tag, range)?;
                fcd.close();
            }
            Event::End(_) => fcd.close(),
            Event::Comment(comment) => fcd.comment(&comment, range)?,
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Text(words) if words.trim().is_empty() => {}
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                return Err(TextError::new(
                    range,
                    "text between the tags",
                    "positions are attributes: `x=\"83.4\"`",
                ));
            }
            Event::Eof => return fcd.finish(),
        }
    }
}

/// Place of the reader in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderState {
    Before,
    Export,
    Step(Instant),
    Mover(Instant),
    After,
}

struct Fcd<'a> {
    text: &'a str,
    state: ReaderState,
    last_step: Option<Instant>,
    nodes: BTreeMap<String, (Track, &'static str)>,
    recorder: Recorder,
    scale: ScaleCheck,
}

impl<'a> Fcd<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            state: ReaderState::Before,
            last_step: None,
            nodes: BTreeMap::new(),
            recorder: Recorder::default(),
            scale: ScaleCheck::default(),
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>, range: Range<usize>) -> Result<(), TextError> {
        let name = tag.name().into_inner();
        self.state = match self.state {
            ReaderState::Before if name == "fcd-export" => ReaderState::Export,
            ReaderState::Export if name == "timestep" => ReaderState::Step(self.step(tag, &range)?),
            ReaderState::Step(at) => match MOVING_TAGS.into_iter().find(|known| *known == name) {
                Some(kind) => {
                    self.mover(kind, at, tag, &range)?;
                    ReaderState::Mover(at)
                }
                None => return Err(self.unexpected_tag(name, range)),
            },
            _ => return Err(self.unexpected_tag(name, range)),
        };
        Ok(())
    }

    /// Only what has been opened is closed: quick-xml checks the names.
    fn close(&mut self) {
        self.state = match self.state {
            ReaderState::Mover(at) => ReaderState::Step(at),
            ReaderState::Step(_) => ReaderState::Export,
            ReaderState::Before | ReaderState::Export | ReaderState::After => ReaderState::After,
        };
    }

    fn unexpected_tag(&self, name: &str, range: Range<usize>) -> TextError {
        let help = match self.state {
            ReaderState::Before => "expected <fcd-export>, as `sumo --fcd-output` writes it",
            ReaderState::Export => "expected <timestep time=\"…\">",
            ReaderState::Step(_) => "expected <vehicle>, <person> or <container>",
            ReaderState::Mover(_) => "nothing stands in a <vehicle>, <person> or <container>",
            ReaderState::After => "the file ends with </fcd-export>",
        };
        TextError::new(range, format!("<{}> is out of place", shorten(name)), help)
    }

    fn step(&mut self, tag: &BytesStart<'_>, range: &Range<usize>) -> Result<Instant, TextError> {
        let [time] = attributes(self.text, tag, range, ["time"])?;
        let time = time.ok_or_else(|| missing_attribute("timestep", "time", range))?;
        let at = Quantity::read_instant(&time.value, time.range.start)
            .map_err(|flaw| TextError { range: time.range.clone(), ..flaw })?;
        if let Some(last) = self.last_step.replace(at).filter(|last| at <= *last) {
            let help = format!("the steps of a file follow each other in time; before it is {last}");
            return Err(TextError::new(time.range, "this time is not later than the one before it", help));
        }
        Ok(at)
    }

    fn mover(
        &mut self,
        kind: &'static str,
        at: Instant,
        tag: &BytesStart<'_>,
        range: &Range<usize>,
    ) -> Result<(), TextError> {
        let [id, x, y, speed, lon] = attributes(self.text, tag, range, ["id", "x", "y", "speed", "lon"])?;
        if let Some(lon) = lon {
            return Err(TextError::new(lon.range, "a longitude", NO_GEO));
        }
        let need = |attribute: Option<Attribute>, name| {
            attribute.ok_or_else(|| missing_attribute(kind, name, range))
        };
        let (id, x, y) = (need(id, "id")?, need(x, "x")?, need(y, "y")?);
        let number = |attribute: &Attribute, quantity: Quantity| {
            let read = quantity.read(&attribute.value, attribute.range.start);
            read.map_err(|flaw| TextError { range: attribute.range.clone(), ..flaw })
        };
        let position = Position { x_m: number(&x, Quantity::X)?, y_m: number(&y, Quantity::Y)? };
        let track = self.track(kind, &id)?;
        let before = self.recorder.last(track);
        if before.is_some_and(|(last, _)| last == at) {
            let help = "ids are unique: a vehicle is in one place at a time";
            return Err(TextError::new(
                id.range,
                format!("`{}` is twice in this step", shorten(&id.value)),
                help,
            ));
        }
        self.recorder.sample(track, at, position, range.clone())?;
        let speed_mps = speed.and_then(|speed| speed.value.parse().ok());
        self.scale.record(at, position, before, speed_mps, &x.range);
        Ok(())
    }

    fn track(&mut self, kind: &'static str, id: &Attribute) -> Result<Track, TextError> {
        if let Some(&(track, first)) = self.nodes.get(&id.value) {
            if first == kind {
                return Ok(track);
            }
            let message = format!("a {kind} with the id of a {first}, `{}`", shorten(&id.value));
            return Err(TextError::new(
                id.range.clone(),
                message,
                "ids become names of nodes, which are unique",
            ));
        }
        let track = self.recorder.node(Some(&id.value), id.range.clone())?;
        self.nodes.insert(id.value.clone(), (track, kind));
        Ok(track)
    }

    /// The comment at the head of a file has the configuration of SUMO.
    fn comment(&self, comment: &str, range: Range<usize>) -> Result<(), TextError> {
        const OPTION: &str = "fcd-output.geo value=\"true\"";
        let Some(at) = comment.find(OPTION).filter(|_| self.state == ReaderState::Before) else {
            return Ok(());
        };
        let at = range.start + "<!--".len() + at;
        Err(TextError::new(at..at + OPTION.len(), "positions are longitudes and latitudes", NO_GEO))
    }

    fn finish(self) -> Result<Recording, TextError> {
        let end = self.text.trim_end().len();
        match self.state {
            ReaderState::After => {}
            ReaderState::Before => {
                let help = "expected <fcd-export>, as `sumo --fcd-output` writes it";
                return Err(TextError::new(end..end, "there is no <fcd-export>", help));
            }
            ReaderState::Export | ReaderState::Step(_) | ReaderState::Mover(_) => {
                let help = "let SUMO run to its end: it writes </fcd-export> last";
                return Err(TextError::new(end..end, "the file ends before </fcd-export>", help));
            }
        }
        let speeds = self.scale.speeds();
        self.scale.check()?;
        let recording = self.recorder.finish();
        if speeds == Speeds::Unknown {
            recording.check_metres()?;
        }
        Ok(recording)
    }
}

fn missing_attribute(tag: &str, attribute: &str, range: &Range<usize>) -> TextError {
    let help = match attribute {
        "time" => "expected <timestep time=\"0.00\">".to_owned(),
        _ => format!("expected <{tag} id=\"a\" x=\"83.4\" y=\"239.4\"/>"),
    };
    TextError::new(range.clone(), format!("<{tag}> has no `{attribute}`"), help)
}

/// Test of whether positions are metres: longitudes and latitudes look like movement that is a hundred thousand
/// times too slow.
#[derive(Debug, Default)]
struct ScaleCheck {
    /// Range of the first x in the text.
    first: Option<Range<usize>>,
    /// A position that is no longitude and latitude has been seen.
    beyond_degrees: bool,
    /// Distance by the speeds that are given, and by the positions.
    expected_m: f64,
    travelled_m: f64,
}

/// Presence of speeds in the file, which tell how far nodes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speeds {
    Known,
    Unknown,
}

impl ScaleCheck {
    /// Least share of the reported distance. Below it, positions are not metres. A degree is 111 km, and a
    /// vehicle may turn back.
    const MIN_SHARE: f64 = 1e-3;
    /// Least distance for a judgement, in metres.
    const MIN_DISTANCE_M: f64 = 10.0;

    fn record(
        &mut self,
        at: Instant,
        position: Position,
        before: Option<(Instant, Position)>,
        speed_mps: Option<f64>,
        x: &Range<usize>,
    ) {
        self.first.get_or_insert_with(|| x.clone());
        self.beyond_degrees |= position.x_m.abs() > 180.0 || position.y_m.abs() > 90.0;
        let speed_mps = speed_mps.filter(|speed| speed.is_finite() && *speed > 0.0);
        if let (Some((last, from)), Some(speed_mps)) = (before, speed_mps) {
            self.expected_m += speed_mps * at.since(last).as_secs_f64();
            self.travelled_m += from.distance_m(position);
        }
    }

    fn speeds(&self) -> Speeds {
        if self.expected_m > Self::MIN_DISTANCE_M { Speeds::Known } else { Speeds::Unknown }
    }

    fn check(self) -> Result<(), TextError> {
        let slow = self.speeds() == Speeds::Known && self.travelled_m < Self::MIN_SHARE * self.expected_m;
        match self.first {
            Some(first) if slow && !self.beyond_degrees => {
                let message =
                    "positions look like longitudes and latitudes: nodes hardly move for their speeds";
                Err(TextError::new(first, message, NO_GEO))
            }
            _ => Ok(()),
        }
    }
}
