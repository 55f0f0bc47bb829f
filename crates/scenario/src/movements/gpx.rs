//! GPX, as receivers of satellite navigation and telephones write it.
//!
//! ```xml
//! <gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">
//!   <trk>
//!     <name>walker</name>
//!     <trkseg>
//!       <trkpt lat="52.5200" lon="13.4050"><time>2024-05-01T10:00:00Z</time></trkpt>
//!       <trkpt lat="52.5203" lon="13.4056"><time>2024-05-01T10:00:05Z</time></trkpt>
//!     </trkseg>
//!   </trk>
//! </gpx>
//! ```
//!
//! Each track is a node, with the track's name if all have one. Its segments are one way: between them the
//! node goes straight on. The earliest time of the file is 0. Elevations, waypoints and routes are not used.
//!
//! The plane is that of an equirectangular projection around the first point of the file: x to the east, y to
//! the north, with the radii of curvature that the ellipsoid WGS 84 has there. Within 10 km of that point
//! distances are right to a quarter of a percent up to 58° of latitude; farther than 1000 km away nothing is
//! taken.

use super::quantity::Quantity;
use super::recording::{Recorder, Recording};
use super::text_error::{TextError, shorten};
use super::xml::{Attribute, Xml, attributes};
use chrono::{DateTime, NaiveDateTime};
use core::ops::Range;
use hopline_core::{Duration, Instant};
use hopline_radio::mobility::Position;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

const KIND: &str = "a GPX file";
/// Farther from the first point the projection says nothing.
const MAX_DISTANCE_M: f64 = 1e6;
/// Latest time, in nanoseconds, as in any movement file: 1e9 s.
const MAX_TIME_NS: u64 = 1_000_000_000 * 1_000_000_000;
/// Semi-major axis and squared eccentricity of WGS 84.
const AXIS_M: f64 = 6_378_137.0;
const ECCENTRICITY_2: f64 = 6.694_379_990_141e-3;

pub(super) fn read(text: &str) -> Result<Recording, TextError> {
    let mut xml = Xml::new(text, KIND);
    let mut gpx = Gpx {
        text,
        state: ReaderState::Before,
        ignored_depth: 0,
        words: String::new(),
        tracks: Vec::new(),
        points: 0,
    };
    loop {
        let (event, range) = xml.next()?;
        match event {
            Event::Start(tag) => gpx.open(&tag, range)?,
            Event::Empty(tag) => {
                gpx.open(&tag, range.clone())?;
                gpx.close(range)?;
            }
            Event::End(_) => gpx.close(range)?,
            Event::Text(words) => gpx.add_text(&words),
            Event::CData(words) => gpx.add_text(&words),
            Event::GeneralRef(entity) => {
                let letter = entity.resolve_char_ref().ok().flatten().map(String::from);
                let words = letter.or_else(|| resolve_predefined_entity(&entity).map(str::to_owned));
                let help = "only &amp; &lt; &gt; &quot; &apos; and numbers of characters are entities";
                gpx.add_text(&words.ok_or_else(|| TextError::new(range, "an unknown entity", help))?);
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Eof => return gpx.finish(),
        }
    }
}

/// Place of the reader in the document; in tags that are not used as well if `deeper` is above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderState {
    Before,
    Gpx,
    Track,
    Name,
    Segment,
    Point,
    Time,
    After,
}

struct Gpx<'a> {
    text: &'a str,
    state: ReaderState,
    /// Tags that are not used and open.
    ignored_depth: usize,
    /// Text of the present name or time so far.
    words: String,
    tracks: Vec<Track>,
    points: usize,
}

struct Track {
    name: Option<String>,
    /// Range of the bytes where it begins.
    range: Range<usize>,
    points: Vec<Point>,
}

struct Point {
    latitude: Attribute,
    longitude: Attribute,
    /// Nanoseconds since 1970.
    time_ns: Option<i64>,
}

impl Gpx<'_> {
    fn open(&mut self, tag: &BytesStart<'_>, range: Range<usize>) -> Result<(), TextError> {
        if self.ignored_depth > 0 {
            self.ignored_depth += 1;
            return Ok(());
        }
        let name = tag.local_name().into_inner();
        self.state = match (self.state, name) {
            (ReaderState::Before, "gpx") => ReaderState::Gpx,
            (ReaderState::Before, _) => {
                return Err(TextError::new(
                    range,
                    format!("<{}> is out of place", shorten(name)),
                    "expected <gpx>",
                ));
            }
            (ReaderState::Gpx, "trk") => {
                self.tracks.push(Track { name: None, range, points: Vec::new() });
                ReaderState::Track
            }
            (ReaderState::Track, "name") => ReaderState::Name,
            (ReaderState::Track, "trkseg") => ReaderState::Segment,
            (ReaderState::Segment, "trkpt") => {
                self.point(tag, &range)?;
                ReaderState::Point
            }
            (ReaderState::Point, "time") => ReaderState::Time,
            (place, _) => {
                self.ignored_depth = 1;
                place
            }
        };
        self.words.clear();
        Ok(())
    }

    fn add_text(&mut self, words: &str) {
        if self.ignored_depth == 0 && matches!(self.state, ReaderState::Name | ReaderState::Time) {
            self.words.push_str(words);
        }
    }

    /// Only what has been opened is closed: quick-xml checks the names.
    fn close(&mut self, range: Range<usize>) -> Result<(), TextError> {
        if self.ignored_depth > 0 {
            self.ignored_depth -= 1;
            return Ok(());
        }
        let words = self.words.trim();
        self.state = match self.state {
            ReaderState::Name => {
                let track = self.tracks.last_mut().expect("a name is in a track");
                track.name = Some(words.to_owned()).filter(|name| !name.is_empty());
                ReaderState::Track
            }
            ReaderState::Time => {
                let time = nanoseconds(words).ok_or_else(|| {
                    let words = range.start.saturating_sub(self.words.len())..range.start;
                    let place = if self.text.get(words.clone()) == Some(&self.words) { words } else { range };
                    let message = format!("`{}` is not a time", shorten(self.words.trim()));
                    TextError::new(place, message, "expected a time such as 2024-05-01T10:00:00Z")
                })?;
                let points = &mut self.tracks.last_mut().expect("a point is in a track").points;
                points.last_mut().expect("a time is in a point").time_ns = Some(time);
                ReaderState::Point
            }
            ReaderState::Point => ReaderState::Segment,
            ReaderState::Segment => ReaderState::Track,
            ReaderState::Track => ReaderState::Gpx,
            ReaderState::Before | ReaderState::Gpx | ReaderState::After => ReaderState::After,
        };
        Ok(())
    }

    fn point(&mut self, tag: &BytesStart<'_>, range: &Range<usize>) -> Result<(), TextError> {
        self.points += 1;
        if self.points > super::MAX_SAMPLES {
            return Err(super::recording::too_many_samples(range.clone()));
        }
        let lacking = |name: &str| {
            let help = "expected <trkpt lat=\"52.52\" lon=\"13.405\">";
            TextError::new(range.clone(), format!("<trkpt> has no `{name}`"), help)
        };
        let [latitude, longitude] = attributes(self.text, tag, range, ["lat", "lon"])?;
        let latitude = latitude.ok_or_else(|| lacking("lat"))?;
        let longitude = longitude.ok_or_else(|| lacking("lon"))?;
        let track = self.tracks.last_mut().expect("a point is in a track");
        track.points.push(Point { latitude, longitude, time_ns: None });
        Ok(())
    }

    fn finish(self) -> Result<Recording, TextError> {
        let end = self.text.trim_end().len();
        match self.state {
            ReaderState::After => record(self.tracks),
            ReaderState::Before => {
                Err(TextError::new(end..end, "there is no <gpx>", format!("expected {KIND}")))
            }
            _ => Err(TextError::new(
                end..end,
                "the file ends before </gpx>",
                "let the receiver write it to its end",
            )),
        }
    }
}

/// Seconds since 1970 as ISO 8601 and GPX write them, in nanoseconds. Without a zone it is UTC.
fn nanoseconds(words: &str) -> Option<i64> {
    let zoned = DateTime::parse_from_rfc3339(words).ok().map(|time| time.to_utc());
    let plain = || NaiveDateTime::parse_from_str(words, "%Y-%m-%dT%H:%M:%S%.f").ok();
    zoned.or_else(|| plain().map(|time| time.and_utc())).and_then(|time| time.timestamp_nanos_opt())
}

/// Returns the tracks as paths in one plane and on one clock.
fn record(tracks: Vec<Track>) -> Result<Recording, TextError> {
    let mut recorder = Recorder::default();
    let tracks: Vec<Track> = tracks.into_iter().filter(|track| !track.points.is_empty()).collect();
    let timeless = tracks.iter().flat_map(|track| &track.points).find(|point| point.time_ns.is_none());
    if let Some(point) = timeless {
        let help = "expected <time> in every <trkpt>: a planned route is no recorded track";
        return Err(TextError::new(point.latitude.range.clone(), "a point without a time", help));
    }
    let named = tracks.iter().all(|track| track.name.is_some());
    let mut names = BTreeSet::new();
    let earliest_ns = tracks.iter().flat_map(|track| &track.points).filter_map(|point| point.time_ns).min();
    let mut plane = None;
    for track in &tracks {
        let name = track.name.as_deref().filter(|_| named);
        if name.is_some_and(|name| !names.insert(name)) {
            let message = format!("a second track named `{}`", shorten(name.unwrap_or_default()));
            return Err(TextError::new(
                track.range.clone(),
                message,
                "names of tracks become names of nodes, which are unique",
            ));
        }
        let node = recorder.node(name, track.range.clone())?;
        for point in &track.points {
            let [latitude, longitude] = point.degrees()?;
            let plane = plane.get_or_insert_with(|| Plane::around(latitude, longitude));
            let position = plane.position(latitude, longitude);
            if position.distance_m(Position::new(0.0, 0.0)) > MAX_DISTANCE_M {
                let help = "all tracks of a file are of one region: the plane is that of its first point";
                return Err(TextError::new(
                    point.latitude.range.clone(),
                    "more than 1000 km from the first point",
                    help,
                ));
            }
            let since_ns = point.time_ns.unwrap_or_default().abs_diff(earliest_ns.unwrap_or_default());
            if since_ns > MAX_TIME_NS {
                let help =
                    "tracks of one file belong together: its earliest time is the beginning of the run";
                return Err(TextError::new(
                    point.latitude.range.clone(),
                    "more than 1e9 s after the earliest point",
                    help,
                ));
            }
            let at = Instant::ZERO + Duration::from_nanos(since_ns);
            // Receivers that stand still may say so twice.
            if recorder.last(node) != Some((at, position)) {
                recorder.sample(node, at, position, point.latitude.range.clone())?;
            }
        }
    }
    Ok(recorder.finish())
}

impl Point {
    fn degrees(&self) -> Result<[f64; 2], TextError> {
        let read = |attribute: &Attribute, quantity: Quantity| {
            let read = quantity.read(&attribute.value, attribute.range.start);
            read.map_err(|flaw| TextError { range: attribute.range.clone(), ..flaw })
        };
        Ok([read(&self.latitude, Quantity::Latitude)?, read(&self.longitude, Quantity::Longitude)?])
    }
}

/// An equirectangular projection around a point.
struct Plane {
    latitude: f64,
    longitude: f64,
    /// Metres of a degree to the east and to the north.
    east_m: f64,
    north_m: f64,
}

impl Plane {
    fn around(latitude: f64, longitude: f64) -> Self {
        let (sine, cosine) = libm::sincos(latitude.to_radians());
        let bent = 1.0 - ECCENTRICITY_2 * sine * sine;
        let across_m = AXIS_M / libm::sqrt(bent);
        let along_m = across_m * (1.0 - ECCENTRICITY_2) / bent;
        let of_degree = 1.0_f64.to_radians();
        Self { latitude, longitude, east_m: across_m * cosine * of_degree, north_m: along_m * of_degree }
    }

    fn position(&self, latitude: f64, longitude: f64) -> Position {
        // The shorter way around, across the date line too.
        let east = (longitude - self.longitude + 540.0).rem_euclid(360.0) - 180.0;
        Position::new(east * self.east_m, (latitude - self.latitude) * self.north_m)
    }
}
