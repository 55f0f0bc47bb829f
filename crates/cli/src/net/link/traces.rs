//! Files of links that change over time: rates in mahimahi's format; delays, losses and rates as CSV or JSON.

use hopline_config::separated::{Separator, byte_order_mark_len, rows};
use hopline_config::source::{Origin, Problem, Source, nearest};
use hopline_core::{Duration, Instant};
use hopline_link::{Condition, Opportunities, TraceError, TraceLineError};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Longest recording: a day, in seconds. No recording that is replayed in real time is longer.
const MAX_S: f64 = 86_400.0;
/// Highest rate: 1000 Gb/s, as for `--rate`.
const MAX_MBPS: f64 = 1e6;

/// Reads a trace of mahimahi. Each line is the millisecond at which up to 1500 bytes may leave; the last one is also the
/// length of the trace, after which it repeats.
pub(super) fn rate_trace(path: &Path) -> Result<Opportunities, Problem> {
    opportunities(&Source::read(path)?)
}

/// Reads conditions over time: of a file, or of the link in it that a name behind `#` chooses.
pub(in crate::net) fn replay(path: &Path) -> Result<Vec<Condition>, Problem> {
    let text = path.to_str().filter(|_| !path.exists());
    match text.and_then(|text| text.rsplit_once('#')) {
        Some((file, link)) => conditions(&Source::read(Path::new(file))?, Some(link)),
        None => conditions(&Source::read(path)?, None),
    }
}

const MAHIMAHI: &str = "each line has a whole number of milliseconds, at which up to 1500 bytes may leave, as in traces of mahimahi";

fn opportunities(source: &Arc<Source>) -> Result<Opportunities, Problem> {
    let text = &source.text[byte_order_mark_len(&source.text)..];
    text.parse().map_err(|TraceLineError { line, error, .. }| {
        let start = text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
        let row = text[start..].lines().next().unwrap_or_default();
        let word = row.trim();
        let start = source.text.len() - text.len() + start + (row.len() - row.trim_start().len());
        let origin = Origin { source: source.clone(), span: start..start + word.len() };
        let message = match error {
            TraceError::NotATime => format!("`{word}` is no time"),
            error => error.to_string(),
        };
        Problem::new(message).at(&origin).help(MAHIMAHI)
    })
}

/// Columns of CSV and keys of JSON.
const COLUMNS: [&str; 4] = ["time_s", "delay_ms", "loss", "rate_mbps"];

/// Values of one row; a missing value does not change.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    time_s: Seconds,
    #[serde(default)]
    delay_ms: Option<Milliseconds>,
    #[serde(default)]
    loss: Option<Loss>,
    #[serde(default)]
    rate_mbps: Option<Rate>,
}

/// Declares a quantity with a range, parsed from a number.
macro_rules! quantity {
    ($name:ident, $range:expr, $words:expr) => {
        #[derive(Clone, Copy, Debug, Default)]
        struct $name(f64);

        impl TryFrom<f64> for $name {
            type Error = String;

            fn try_from(value: f64) -> Result<Self, String> {
                let range = $range;
                if range.contains(&value) { Ok(Self(value)) } else { Err(format!("{value}: {}", $words)) }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::try_from(f64::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }
    };
}

quantity!(Seconds, 0.0..=MAX_S, "`time_s` is from 0 to 86400 seconds");
quantity!(Milliseconds, 0.0..=MAX_S * 1e3, "`delay_ms` is from 0 to 86400000 milliseconds");
quantity!(Loss, 0.0..=1.0, "`loss` is a share from 0 to 1");
quantity!(Rate, 1e-6..=MAX_MBPS, "`rate_mbps` is from 0.000001 to 1000000 Mb/s");

/// Conditions in order of time.
#[derive(Debug, Default)]
struct Conditions(Vec<Condition>);

impl Conditions {
    fn push(&mut self, row: &Row) -> Result<(), String> {
        let from = Instant::ZERO + Duration::from_secs_f64(row.time_s.0);
        let before = self.0.last().copied().unwrap_or_default();
        if !self.0.is_empty() && from <= before.from() {
            let last = before.from().since(Instant::ZERO).as_secs_f64();
            return Err(format!("{} s does not come after {last} s, the time before", row.time_s.0));
        }
        self.0.push(
            Condition::starting_at(from)
                .with_rate(row.rate_mbps.map(|rate| (rate.0 * 1e6) as u64).or(before.rate()))
                .with_latency(
                    row.delay_ms.map(|delay| Duration::from_secs_f64(delay.0 / 1e3)).or(before.latency()),
                )
                .with_loss(row.loss.map(|loss| loss.0).or(before.loss())),
        );
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rows;

        impl<'de> Visitor<'de> for Rows {
            type Value = Conditions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of objects")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Conditions, A::Error> {
                let mut course = Conditions::default();
                while let Some(row) = rows.next_element::<Row>()? {
                    course.push(&row).map_err(A::Error::custom)?;
                }
                Ok(course)
            }
        }

        deserializer.deserialize_seq(Rows)
    }
}

/// Returns the conditions in a file, of this link if it has links by name.
fn conditions(source: &Arc<Source>, link: Option<&str>) -> Result<Vec<Condition>, Problem> {
    let text = &source.text[byte_order_mark_len(&source.text)..];
    let course = match (text.trim_start().chars().next(), link) {
        (Some('{'), _) => of_links(source, of_json(source, text)?, link)?,
        (_, Some(link)) => {
            return Err(Problem::new(format!("{} has no links by name, and no `{link}`", source.name))
                .help("`hopline emulate --record` writes files that have them"));
        }
        (Some('['), None) => of_json(source, text)?,
        _ => of_csv(source)?,
    };
    if course.0.is_empty() {
        let help = "the first line of CSV names columns: time_s,delay_ms,loss,rate_mbps";
        return Err(Problem::new(format!("{}: there is no row", source.name)).help(help));
    }
    Ok(course.0)
}

/// Returns the conditions of the link called `link`, or of the only one.
fn of_links(
    source: &Source,
    mut links: BTreeMap<String, Conditions>,
    link: Option<&str>,
) -> Result<Conditions, Problem> {
    let names: Vec<String> = links.keys().cloned().collect();
    let known = || format!("the links are {}", names.join(", "));
    let name = match (link, &*names) {
        (Some(link), _) => link,
        (None, [only]) => only,
        (None, []) => return Err(Problem::new(format!("{}: there is no link", source.name))),
        (None, [first, ..]) => {
            let several = format!("{} has {} links", source.name, names.len());
            return Err(Problem::new(several).help(format!(
                "choose one: {}#{first}; {}",
                source.name,
                known()
            )));
        }
    };
    links
        .remove(name)
        .ok_or_else(|| Problem::new(format!("{}: there is no link `{name}`", source.name)).help(known()))
}

fn of_json<T: DeserializeOwned>(source: &Arc<Source>, text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| {
        let mark = source.text.len() - text.len();
        let line: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        // Columns count from 1, and may point beyond the end.
        let offset = (mark + line + error.column().saturating_sub(1)).min(source.text.len());
        let words = error.to_string();
        // The position is reported by the origin.
        let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
        let origin = Origin { source: source.clone(), span: offset..offset };
        let help = "JSON is a list of objects: [{\"time_s\": 0, \"delay_ms\": 20, \"loss\": 0.01, \"rate_mbps\": 5}]";
        Problem::new(words.to_owned()).at(&origin).help(help)
    })
}

fn of_csv(source: &Arc<Source>) -> Result<Conditions, Problem> {
    let at = |span: Range<usize>| Origin { source: source.clone(), span };
    let mut lines = rows(&source.text);
    let mut course = Conditions::default();
    let Some(header) = lines.next() else { return Ok(course) };
    let separator = Separator::of(&source.text[header.clone()]);
    let mut columns = Vec::new();
    for cell in separator.cells(&source.text, header.clone()) {
        let word = &source.text[cell.clone()];
        let Some(name) = COLUMNS.into_iter().find(|&name| name == word) else {
            let known = format!("columns are {}", COLUMNS.join(", "));
            let help = nearest(word, COLUMNS).map_or(known, |name| format!("`{name}` is meant?"));
            return Err(Problem::new(format!("there is no column `{word}`")).at(&at(cell)).help(help));
        };
        if columns.contains(&name) {
            return Err(Problem::new(format!("a second column `{name}`")).at(&at(cell)));
        }
        columns.push(name);
    }
    if !columns.contains(&"time_s") {
        return Err(Problem::new("there is no column `time_s`").at(&at(header)));
    }
    for line in lines {
        let cells: Vec<_> = separator.cells(&source.text, line.clone()).collect();
        if cells.len() != columns.len() {
            let what = format!("{} values for {} columns", cells.len(), columns.len());
            return Err(Problem::new(what).at(&at(line)));
        }
        let mut row = Row::default();
        for (&column, cell) in columns.iter().zip(cells) {
            let wrong = |what: String| Problem::new(what).at(&at(cell.clone()));
            let word = &source.text[cell.clone()];
            let value = match word {
                "" => None,
                _ => Some(word.parse::<f64>().map_err(|_| wrong(format!("`{word}` is no number")))?),
            };
            match (column, value) {
                ("time_s", None) => return Err(wrong("a row has a time".into())),
                ("time_s", Some(value)) => row.time_s = value.try_into().map_err(wrong)?,
                (_, None) => {}
                ("delay_ms", Some(value)) => row.delay_ms = Some(value.try_into().map_err(wrong)?),
                ("loss", Some(value)) => row.loss = Some(value.try_into().map_err(wrong)?),
                (_, Some(value)) => row.rate_mbps = Some(value.try_into().map_err(wrong)?),
            }
        }
        course.push(&row).map_err(|what| Problem::new(what).at(&at(line)))?;
    }
    Ok(course)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Arc<Source> {
        Arc::new(Source { name: "file".into(), text: text.into() })
    }

    fn condition(ms: u64, mbps: Option<u64>, delay_ms: Option<u64>, loss: Option<f64>) -> Condition {
        let (rate, latency) = (mbps.map(|rate| rate * 1_000_000), delay_ms.map(Duration::from_millis));
        Condition::starting_at(Instant::from_millis(ms)).with_rate(rate).with_latency(latency).with_loss(loss)
    }

    #[test]
    fn equal_conditions_are_parsed_from_csv_and_json() {
        let expected = [
            condition(0, None, Some(20), Some(0.0)),
            condition(1500, None, Some(20), Some(0.05)),
            condition(3000, Some(2), Some(80), Some(0.05)),
        ];
        for text in [
            "time_s,delay_ms,loss\n0,20,0\n1.5,,0.05\n",
            "\u{feff}# from a drive\r\nloss; time_s; delay_ms\r\n0; 0; 20\r\n\r\n0.05; 1.5;\r\n",
            r#"[{"time_s": 0, "delay_ms": 20, "loss": 0}, {"loss": 0.05, "time_s": 1.5}]"#,
        ] {
            assert_eq!(conditions(&source(text), None).unwrap(), expected[..2], "{text}");
        }
        let text = "time_s,delay_ms,loss,rate_mbps\n0,20,0,\n1.5,,0.05,\n3,80,,2\n";
        assert_eq!(conditions(&source(text), None).unwrap(), expected);
    }

    #[test]
    fn errors_in_conditions_have_a_position() {
        for (text, expected) in [
            ("time_s,delay\n", "file:1:8: there is no column `delay` (`delay_ms` is meant?)"),
            ("loss\n0\n", "file:1:1: there is no column `time_s`"),
            ("time_s,loss\n0,0\n1,2\n", "file:3:3: 2: `loss` is a share from 0 to 1"),
            ("time_s,loss,loss\n0,0,0\n", "file:1:13: a second column `loss`"),
            ("time_s,loss\n0,x\n", "file:2:3: `x` is no number"),
            ("time_s,loss\n0,0,0\n", "file:2:1: 3 values for 2 columns"),
            ("time_s,loss\n1,0\n1,0\n", "file:3:1: 1 s does not come after 1 s, the time before"),
            ("time_s,loss\n,0\n", "file:2:1: a row has a time"),
            ("time_s,rate_mbps\n0,0\n", "file:2:3: 0: `rate_mbps` is from 0.000001 to 1000000 Mb/s"),
            ("time_s,delay_ms\n0,nan\n", "file:2:3: NaN: `delay_ms` is from 0 to 86400000 milliseconds"),
        ] {
            let problem = conditions(&source(text), None).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
        for (text, place, words) in [
            ("[{\"time_s\": 0,\n  \"loss\": 1.5}]", "file:2:14:", "1.5: `loss` is a share from 0 to 1"),
            ("[{\"time_s\": 0},\n {\"time_s\": 0}]", "file:2:15:", "0 s does not come after 0 s"),
            ("[{\"time\": 0}]", "file:1:8:", "unknown field `time`"),
            ("[{\"loss\": 0}]", "file:1:12:", "missing field `time_s`"),
            ("[{", "file:1:2:", "EOF"),
            ("{\"a\": 1}", "file:1:7:", "expected a list of objects"),
        ] {
            let problem = conditions(&source(text), None).unwrap_err().to_string();
            assert!(problem.starts_with(place) && problem.contains(words), "{problem}");
        }
        for text in ["", "time_s\n", "[]"] {
            assert!(
                conditions(&source(text), None).unwrap_err().to_string().starts_with("file: there is no row")
            );
        }
    }

    #[test]
    fn a_mahimahi_trace_is_parsed_and_its_errors_have_a_position() {
        let trace = opportunities(&source("# cellular\n0\n  5\r\n5\n10\n")).unwrap();
        assert_eq!(trace.mean_rate(), 4.0 * 12_000.0 / 0.01);
        for (text, expected) in [
            ("5\nx\n", "file:2:1: `x` is no time"),
            ("5\n -1\n", "file:2:2: `-1` is no time"),
            ("5\n1.5\n", "file:2:1: `1.5` is no time"),
            ("5\n4\n", "file:2:1: a time that is earlier than the one before"),
            ("0\n0\n", "file:2:1: all times are zero"),
            ("", "file:1:1: there is no time"),
        ] {
            let problem = opportunities(&source(text)).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
