//! Files that users write. Any text is parsed without a panic, and errors have a position in the text.

use hopline_config::source::{Problems, Source};
use hopline_core::{Duration, Instant};
use hopline_radio::mobility::Trajectory;
use hopline_scenario::movements::{MovementError, MovementFormat, Movements, Recording, to_ns_movements};
use hopline_scenario::{csv, keys, rate_trace, recorded};
use std::collections::BTreeSet;
use std::sync::Arc;

/// ns-2 movement files. Accepted values are finite, and movements are the same after writing and reading again.
pub fn ns_movements(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let movements = match Movements::parse(&text) {
        Ok(movements) => movements,
        Err(error) => return check_error(&text, error),
    };
    let paths = movements.trajectories();
    let back = written_and_read(&paths);
    for ((movement, before), after) in movements.nodes.iter().zip(&paths).zip(&back) {
        let fastest = movement.set_destinations.iter().map(|order| order.speed_mps).fold(0.0, f64::max);
        same_path(before, after, fastest * (movement.set_destinations.len() + 1) as f64);
    }
}

/// BonnMotion's movement files.
pub fn bonnmotion(data: &[u8]) {
    recording(MovementFormat::BonnMotion, data);
}

/// SUMO's floating car data.
pub fn sumo(data: &[u8]) {
    recording(MovementFormat::Sumo, data);
}

/// Tracks of GPX.
pub fn gpx(data: &[u8]) {
    recording(MovementFormat::Gpx, data);
}

/// Movement as CSV.
pub fn csv_movements(data: &[u8]) {
    recording(MovementFormat::Csv, data);
}

/// Movement file of sampled positions. Names are unique, at their first occurrence. Paths are finite, and the same after
/// writing for ns-2 and reading again.
fn recording(format: MovementFormat, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let file = match Recording::parse(format, &text) {
        Ok(file) => file,
        Err(error) => return check_error(&text, error),
    };
    let names: BTreeSet<_> = file.nodes.iter().filter_map(|node| node.name.as_deref()).collect();
    assert!(names.is_empty() || names.len() == file.nodes.len(), "all have names, or none");
    assert!(file.nodes.iter().all(|node| text.get(node.first.clone()).is_some_and(|word| !word.is_empty())));
    let paths: Vec<Trajectory> = file.nodes.into_iter().map(|node| node.trajectory).collect();
    for (before, after) in paths.iter().zip(written_and_read(&paths)) {
        same_path(before, &after, before.max_speed() * before.corners().len() as f64);
    }
}

fn written_and_read(paths: &[Trajectory]) -> Vec<Trajectory> {
    Movements::parse(&to_ns_movements(paths)).expect("what is written can be read").trajectories()
}

/// Checks that the error has a message and a position.
fn check_error(text: &str, error: MovementError) {
    assert!(!error.message.is_empty() && !error.help.is_empty());
    assert_eq!((error.line, error.column), line_column(text, error.span.start));
    assert!(text.get(error.span.clone()).is_some(), "{error:?}");
}

/// CSV files of nodes and flows, and of recorded traffic.
pub fn csv(data: &[u8]) {
    let source = source("file.csv", data);
    for (keys, what) in [(keys::NODE, "node"), (keys::FLOW, "flow")] {
        match csv::entries(&source, keys, what) {
            Ok(entries) => assert!(entries.len() < source.text.lines().count()),
            Err(problems) => check_problems(&problems),
        }
    }
    match recorded::Recording::parse(source) {
        Ok(recording) => assert!(recording.packets.is_sorted_by_key(|packet| packet.at)),
        Err(problem) => check_problems(&problem.into()),
    }
}

/// Files with rates of a link.
pub fn rate_trace(data: &[u8]) {
    match rate_trace::TraceFile::parse(source("file.trace", data)) {
        Ok(trace) => {
            for interval_ms in [1, 20, 3_600_000] {
                let Some(rates) = trace.rates(interval_ms, Duration::from_millis(7)) else { continue };
                assert!(rates.mean_bps() >= 1);
                assert!(rates.sent_at(Instant::from_secs(5), 12_000) > Instant::from_secs(5));
            }
        }
        Err(problem) => check_problems(&problem.into()),
    }
}

/// Returns `data` as the text of a file called `name`.
pub(crate) fn source(name: &str, data: &[u8]) -> Arc<Source> {
    Arc::new(Source { name: name.to_owned(), text: String::from_utf8_lossy(data).into_owned() })
}

/// Checks that every problem has a message, and a position in its text.
pub(crate) fn check_problems(problems: &Problems) {
    assert!(!problems.0.is_empty());
    for problem in &problems.0 {
        assert!(!problem.message.is_empty());
        if let Some(at) = &problem.at {
            assert!(at.source.text.get(at.span.clone()).is_some(), "{problem:?}");
            assert_eq!(at.line_column(), line_column(&at.source.text, at.span.start));
        }
    }
    assert!(!problems.to_string().is_empty());
}

/// Returns line and column of a byte, counted from 1 in characters, without a byte order mark.
fn line_column(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..byte];
    let before = before.strip_prefix('\u{feff}').unwrap_or(before);
    let line = before.rsplit('\n').next().expect("there is a last line");
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// Asserts that two paths are equal up to rounding; `speed_mps` is the highest speed, which turns an error in time into one
/// in space.
fn same_path(before: &Trajectory, after: &Trajectory, speed_mps: f64) {
    let corners: Vec<_> = before.corners().chain(after.corners()).collect();
    let (latest, _) = corners.iter().max_by_key(|(at, _)| *at).expect("a path has a corner");
    let farthest_m = corners.iter().map(|(_, p)| p.x_m.abs().max(p.y_m.abs())).fold(0.0, f64::max);
    // Instants are whole nanoseconds; a file has them in seconds, as floating-point numbers.
    let slack_s = 2e-9 + latest.as_secs_f64() * 1e-15;
    let slack_m = 1e-6 + farthest_m * 1e-12 + speed_mps * slack_s;
    let mut instants: Vec<Instant> = corners.iter().map(|(at, _)| *at).collect();
    instants.sort_unstable();
    let between: Vec<Instant> =
        instants.windows(2).map(|pair| pair[0] + pair[1].since(pair[0]) / 2).collect();
    for at in instants.into_iter().chain(between) {
        let (was, is) = (before.position_at(at), after.position_at(at));
        assert!(was.is_finite() && is.is_finite());
        assert!(
            was.distance_m(is) <= slack_m,
            "{at}: {was:?}, written and read {is:?}, more than {slack_m} m off"
        );
    }
}
