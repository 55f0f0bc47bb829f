//! Files with the rates of a link: opportunities of mahimahi, or CSV.
//!
//! | the first line | format |
//! |---|---|
//! | a whole number | mahimahi: each line is the time in milliseconds of an opportunity to deliver 1504 bytes |
//! | `time_s,rate_mbps` | CSV: each line is a rate from a time on |
//!
//! The format is that of mahimahi's `mm-link` (`src/frontend/link_queue.cc` and `.hh`): times do not decrease, several lines of
//! one time are several opportunities, and the trace repeats from its last time on. An opportunity has 1504 bytes (`PACKET_SIZE`,
//! an IP packet of 1500 bytes and the header of a TUN device), although `traces/README` says 1500. Here lines that are empty or
//! begin with `#` are ignored; mahimahi refuses them.

use super::separated::{Separator, decimal_comma, rows};
use core::ops::Range;
use hopline_config::keys::MAX_S;
use hopline_config::source::{Origin, Problem, Source};
use hopline_core::Duration;
use hopline_sim::spec::links::RateTrace;
use std::sync::Arc;

/// Bits of an opportunity: `PACKET_SIZE` of mahimahi, 1504 bytes.
const OPPORTUNITY_BITS: u64 = 1504 * 8;
/// Latest time, as of scenarios.
const MAX_MS: u64 = MAX_S as u64 * 1000;
/// Highest rate in Mb/s, as of a link.
const MAX_MBPS: f64 = 1e6;
const COLUMNS: [&str; 2] = ["time_s", "rate_mbps"];
const EXAMPLE: &str =
    "lines are times in milliseconds, as mahimahi has them, or a CSV with the header `time_s,rate_mbps`";

/// Rates of a link from a file.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// Its text.
    pub source: Arc<Source>,
    content: Arc<Content>,
}

#[derive(Debug)]
enum Content {
    /// Times in milliseconds with the number of opportunities, times increasing. At least one time, the last one above 0.
    Opportunities(Vec<(u64, u64)>),
    /// Times since the first one, increasing, and bits per second. At least one; not all are 0.
    Rates(Vec<(Duration, u64)>),
}

impl TraceFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn parse(source: Arc<Source>) -> Result<Self, Problem> {
        let reader = Reader { source: &source };
        let first = rows(&source.text).next();
        let first = first.ok_or_else(|| reader.problem("an empty file", 0..0).help(EXAMPLE))?;
        let content = if source.text[first.clone()].trim().starts_with(|c: char| c.is_ascii_digit())
            && !source.text[first].contains([',', ';'])
        {
            reader.opportunities().map(Content::Opportunities)
        } else {
            reader.rates().map(Content::Rates)
        }?;
        Ok(Self { source, content: Arc::new(content) })
    }

    /// Returns whether the file has opportunities of which a rate is made.
    #[must_use]
    pub fn has_opportunities(&self) -> bool {
        matches!(*self.content, Content::Opportunities(_))
    }

    /// Returns the rates of a link. Opportunities are counted over intervals of `interval`, which is not zero. A run starts at
    /// `offset` of the trace. Returns `None` if the mean rate is below 1 bit/s.
    #[must_use]
    pub fn rates(&self, interval_ms: u64, offset: Duration) -> Option<RateTrace> {
        match &*self.content {
            Content::Opportunities(times) => {
                let period = Duration::from_millis(times.last()?.0);
                RateTrace::new(means(times, interval_ms), period, offset)
            }
            Content::Rates(rates) => RateTrace::new(rates.clone(), period(rates)?, offset),
        }
    }
}

/// Returns the length of a trace of rates: the last one lasts as long as the one before, and a single one for any time.
fn period(rates: &[(Duration, u64)]) -> Option<Duration> {
    let last = rates.last()?.0;
    let before = rates.len().checked_sub(2).map(|index| rates[index].0);
    Some(before.map_or(Duration::from_secs(1), |before| last + (last - before)))
}

/// Returns the mean rate of each interval, where it differs from that before. An opportunity belongs to the interval that ends
/// with it or later, as the link has sent its bits by then; one at time 0 belongs to the first interval.
fn means(times: &[(u64, u64)], interval_ms: u64) -> Vec<(Duration, u64)> {
    let period = times.last().map_or(0, |last| last.0);
    let mut rates: Vec<(Duration, u64)> = Vec::new();
    let mut push = |from: u64, rate: u64| {
        if from < period && rates.last().is_none_or(|&(_, before)| before != rate) {
            rates.push((Duration::from_millis(from), rate));
        }
    };
    let mut next = 0;
    for group in times.chunk_by(|a, b| interval_of(a.0, interval_ms) == interval_of(b.0, interval_ms)) {
        let from = interval_of(group[0].0, interval_ms) * interval_ms;
        let count: u64 = group.iter().map(|(_, count)| count).sum();
        if next < from {
            push(next, 0);
        }
        next = from.saturating_add(interval_ms);
        // The last interval ends with the trace.
        let length_ms = next.min(period) - from;
        push(from, count * OPPORTUNITY_BITS * 1000 / length_ms);
    }
    rates
}

const fn interval_of(time_ms: u64, interval_ms: u64) -> u64 {
    time_ms.saturating_sub(1) / interval_ms
}

struct Reader<'a> {
    source: &'a Arc<Source>,
}

impl Reader<'_> {
    fn problem(&self, message: impl Into<String>, span: Range<usize>) -> Problem {
        Problem::new(message.into()).at(&Origin { source: self.source.clone(), span })
    }

    /// Returns the problem that the number at `span` is not `expected`.
    fn wrong_number(&self, span: Range<usize>, expected: &str, help: String) -> Problem {
        let help = decimal_comma(&self.source.text[span.clone()]).unwrap_or(help);
        self.wrong(span, expected).help(help)
    }

    /// Returns the problem that `span` is not `expected`.
    fn wrong(&self, span: Range<usize>, expected: &str) -> Problem {
        const MOST: usize = 40;
        let word = &self.source.text[span.clone()];
        let mut shown: String = word.chars().take(MOST).flat_map(char::escape_debug).collect();
        if word.chars().nth(MOST).is_some() {
            shown.push('…');
        }
        self.problem(format!("`{shown}` is not {expected}"), span)
    }

    fn opportunities(&self) -> Result<Vec<(u64, u64)>, Problem> {
        let text = &self.source.text;
        let mut times: Vec<(u64, u64)> = Vec::new();
        let mut last_row = 0..0;
        for row in rows(text) {
            let row = row.end - text[row.clone()].trim_start().len()..row.end;
            let time = text[row.clone()].parse().ok().filter(|time| *time <= MAX_MS);
            let time: u64 = time.ok_or_else(|| {
                let help = format!("a whole number of milliseconds from 0 to {MAX_MS}");
                self.wrong_number(row.clone(), "a time of an opportunity", help)
            })?;
            match times.last_mut() {
                Some((before, _)) if *before > time => {
                    return Err(self
                        .problem(format!("time {time} after time {before}"), row)
                        .help("times do not decrease"));
                }
                Some((before, count)) if *before == time => *count += 1,
                _ => times.push((time, 1)),
            }
            last_row = row;
        }
        if times.last().is_none_or(|last| last.0 == 0) {
            return Err(self
                .problem("a trace that ends at time 0", last_row)
                .help("the last time is above 0: the trace repeats from then on"));
        }
        Ok(times)
    }

    fn rates(&self) -> Result<Vec<(Duration, u64)>, Problem> {
        let text = &self.source.text;
        let mut rows = rows(text);
        let header = rows.next().unwrap_or(0..0);
        let separator = Separator::of(&text[header.clone()]);
        let names: Vec<&str> = separator.cells(text, header.clone()).map(|cell| &text[cell]).collect();
        if names != COLUMNS {
            return Err(self.wrong(header, "the first line of a trace of rates").help(EXAMPLE));
        }
        let mut rates: Vec<(Duration, u64)> = Vec::new();
        let mut first_s = None;
        for row in rows {
            let cells: Vec<Range<usize>> = separator.cells(text, row.clone()).collect();
            let [time, rate] = &cells[..] else {
                return Err(self
                    .problem(format!("2 columns in the header, {} here", cells.len()), row)
                    .help("every line has a time and a rate"));
            };
            let number = |cell: &Range<usize>, max: f64, expected: &str, help: &str| {
                let value =
                    text[cell.clone()].parse::<f64>().ok().filter(|value| (0.0..=max).contains(value));
                value.ok_or_else(|| {
                    self.wrong_number(cell.clone(), expected, format!("{help}, from 0 to {max}"))
                })
            };
            // Times may count from 1970.
            let at = number(time, 1e10, "a time", "a number of seconds")?;
            let mbps = number(rate, MAX_MBPS, "a rate", "a number of megabits per second")?;
            let since = at - *first_s.get_or_insert(at);
            let from = Duration::from_secs_f64(since.max(0.0));
            if since > MAX_S {
                return Err(self
                    .problem("a trace that is too long", time.clone())
                    .help(format!("at most {MAX_S} seconds after the first time")));
            }
            if rates.last().is_some_and(|&(before, _)| before >= from) {
                return Err(self
                    .problem("a time that is not after the one before", time.clone())
                    .help("times increase"));
            }
            rates.push((from, libm::round(mbps * 1e6) as u64));
        }
        if rates.iter().all(|(_, rate)| *rate == 0) {
            return Err(self.problem("a trace that never has a rate above 0", 0..0).help(EXAMPLE));
        }
        Ok(rates)
    }
}

#[cfg(test)]
mod tests;
