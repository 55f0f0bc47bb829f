//! Recorded traffic: CSV with the columns `time_s` and `bytes`, a line for each packet.
//!
//! ```csv
//! time_s,bytes
//! 0,1200
//! 0.0201,1200
//! ```
//!
//! Times count from the start of the flow. Lines may come in any order, and are played in that of time; those of one time in
//! that of the file. Semicolons stand for the commas if the header has any. Quotes are not part of the format.

use super::separated::{Separator, decimal_comma, rows};
use core::ops::Range;
use hopline_config::keys::MAX_S;
use hopline_config::source::{Origin, Problem, Source};
use hopline_core::Duration;
use hopline_sim::spec::RecordedPacket;
use std::sync::Arc;

const COLUMNS: [&str; 2] = ["time_s", "bytes"];
const EXAMPLE: &str = "its first line is `time_s,bytes`, and each other a packet: `0.25,1200`";
/// More than any run carries.
const MAX_BYTES: u64 = 1 << 40;

/// Recorded packets of a file.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Its text.
    pub source: Arc<Source>,
    /// The packets, in the order of time. At least one.
    pub packets: Arc<[RecordedPacket]>,
    /// Place of the largest one.
    pub largest: Origin,
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn parse(source: Arc<Source>) -> Result<Self, Problem> {
        let place = |span| Origin { source: source.clone(), span };
        let text = &source.text;
        let mut rows = rows(text);
        let header =
            rows.next().ok_or_else(|| Problem::new("an empty file").at(&place(0..0)).help(EXAMPLE))?;
        let separator = Separator::of(&text[header.clone()]);
        let cells = |row| separator.cells(text, row).collect::<Vec<_>>();
        let [time, bytes] = columns(text, header.clone(), cells(header), &place)?;
        let mut packets: Vec<(RecordedPacket, Range<usize>)> = Vec::new();
        for row in rows {
            let cells = cells(row.clone());
            if cells.len() != COLUMNS.len() {
                return Err(Problem::new(format!("2 columns in the header, {} here", cells.len()))
                    .at(&place(row))
                    .help("every line has a time and a number of bytes"));
            }
            let number = |column: usize| Number {
                text: &text[cells[column].clone()],
                place: place(cells[column].clone()),
            };
            let packet = RecordedPacket { at: number(time).time()?, bytes: number(bytes).bytes()? };
            packets.push((packet, cells[bytes].clone()));
        }
        packets.sort_by_key(|(packet, _)| packet.at);
        let Some((_, largest)) = packets.iter().max_by_key(|(packet, _)| packet.bytes) else {
            return Err(Problem::new("a recording without packets").at(&place(0..0)).help(EXAMPLE));
        };
        let largest = place(largest.clone());
        let packets = packets.into_iter().map(|(packet, _)| packet).collect();
        Ok(Self { source, packets, largest })
    }
}

/// Returns the columns of the time and the bytes in a line.
fn columns(
    text: &str,
    header: Range<usize>,
    cells: Vec<Range<usize>>,
    place: &impl Fn(Range<usize>) -> Origin,
) -> Result<[usize; 2], Problem> {
    let names: Vec<&str> = cells.iter().map(|cell| &text[cell.clone()]).collect();
    let wrong = |message: String, span| Err(Problem::new(message).at(&place(span)).help(EXAMPLE));
    for (index, (name, cell)) in names.iter().zip(&cells).enumerate() {
        if !COLUMNS.contains(name) {
            return wrong(format!("unknown column `{name}`"), cell.clone());
        }
        if names[..index].contains(name) {
            return wrong(format!("a second column `{name}`"), cell.clone());
        }
    }
    let at = COLUMNS.map(|known| names.iter().position(|name| *name == known));
    match at {
        [Some(time), Some(bytes)] => Ok([time, bytes]),
        [None, _] => wrong("no column `time_s`".into(), header),
        [_, None] => wrong("no column `bytes`".into(), header),
    }
}

struct Number<'a> {
    text: &'a str,
    place: Origin,
}

impl Number<'_> {
    fn time(self) -> Result<Duration, Problem> {
        let seconds = self.text.parse::<f64>().ok().filter(|seconds| (0.0..=MAX_S).contains(seconds));
        let help = format!("a number of seconds since the flow starts, from 0 to {MAX_S}");
        seconds.map(Duration::from_secs_f64).ok_or_else(|| self.wrong("a time", help))
    }

    fn bytes(self) -> Result<u64, Problem> {
        let bytes = self.text.parse().ok().filter(|bytes| (1..=MAX_BYTES).contains(bytes));
        bytes.ok_or_else(|| self.wrong("a number of bytes", format!("a whole number from 1 to {MAX_BYTES}")))
    }

    fn wrong(&self, what: &str, help: String) -> Problem {
        let help = decimal_comma(self.text).unwrap_or(help);
        Problem::new(format!("`{}` is not {what}", self.text)).at(&self.place).help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Recording, Problem> {
        Recording::parse(Arc::new(Source { name: "t.csv".into(), text: text.into() }))
    }

    fn packets(text: &str) -> Vec<(u64, u64)> {
        let recording = parse(text).unwrap();
        recording.packets.iter().map(|packet| (packet.at.as_millis(), packet.bytes)).collect()
    }

    #[track_caller]
    fn assert_rejected(text: &str, expected: &str) {
        assert_eq!(parse(text).unwrap_err().to_string().split(" (").next().unwrap(), expected);
    }

    #[test]
    fn packets_are_replayed_in_order_of_time() {
        assert_eq!(
            packets("time_s,bytes\n1,10\n0.5,20\n1,5\n0,7\n"),
            [(0, 7), (500, 20), (1000, 10), (1000, 5)]
        );
        assert_eq!(packets("# a call\nbytes , time_s\n160, 0.02"), [(20, 160)]);
    }

    #[test]
    fn spreadsheet_formats_are_accepted() {
        assert_eq!(packets("\u{feff}time_s;bytes\r\n0;160\r\n\r\n0.02;160\r\n"), [(0, 160), (20, 160)]);
        let comma = parse("\u{feff}time_s;bytes\r\n0,02;160\r\n").unwrap_err().to_string();
        assert_eq!(comma, "t.csv:2:1: `0,02` is not a time (decimals stand behind a point: 0.02)");
    }

    #[test]
    fn errors_have_their_position() {
        assert_rejected("", "t.csv:1:1: an empty file");
        assert_rejected("time_s,bytes\n", "t.csv:1:1: a recording without packets");
        assert_rejected("\u{feff}time_s,size\n", "t.csv:1:8: unknown column `size`");
        assert_rejected("bytes,bytes\n", "t.csv:1:7: a second column `bytes`");
        assert_rejected("time_s\n", "t.csv:1:1: no column `bytes`");
        assert_rejected("bytes\n", "t.csv:1:1: no column `time_s`");
        assert_rejected("time_s,bytes\n1\n", "t.csv:2:1: 2 columns in the header, 1 here");
        assert_rejected("time_s,bytes\n1,2,3\n", "t.csv:2:1: 2 columns in the header, 3 here");
        for time in ["-1", "nan", "inf", "1e8", "now", ""] {
            assert_rejected(
                &format!("time_s,bytes\n{time},1\n"),
                &format!("t.csv:2:1: `{time}` is not a time"),
            );
        }
        for bytes in ["0", "-1", "1.5", "1e3", "1099511627777", "99999999999999999999", ""] {
            assert_rejected(
                &format!("time_s,bytes\n1,{bytes}\n"),
                &format!("t.csv:2:3: `{bytes}` is not a number of bytes"),
            );
        }
    }
}
