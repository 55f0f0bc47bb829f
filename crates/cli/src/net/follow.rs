//! What `send` and `recv` show of a transfer: a bar on stderr, a line for each file on stdout.

use crate::console;
use crate::net::args::Show;
use crate::net::clock;
use crate::net::recv::Sender;
use crate::problems::{Failure, say};
use hopline_net::transfer::{Outcome, Refusal, RelativePath, Summary, Watch};
use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::time::Instant;

/// What is transferred.
pub(crate) enum Transferred {
    /// So many bytes from here.
    Outwards(u64),
    /// What a sender has.
    From(Sender),
}

/// The one who watches a transfer and tells.
pub(crate) struct Follow {
    show: Show,
    /// At a receiver.
    from: Option<Sender>,
    bar: ProgressBar,
    /// Whether the bar's length is that of all files, or of each in turn.
    spans: Spans,
    started: Instant,
    bytes: u64,
    /// When something new last came about.
    progressed: Instant,
    /// The first failure to write to stdout.
    printed: Result<(), Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spans {
    All,
    Each,
}

impl Follow {
    /// One that has seen nothing yet.
    pub(crate) fn new(show: Show, transferred: Transferred, bars: &MultiProgress) -> Self {
        let (total, from) = match transferred {
            Transferred::Outwards(bytes) => (Some(bytes), None),
            Transferred::From(sender) => (None, Some(sender)),
        };
        if show.quiet || show.json {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        let bar = bars.add(ProgressBar::new(total.unwrap_or(0)));
        let template =
            "{bar:30} {percent:>3} %  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go  {wide_msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
        let spans = if total.is_some_and(|bytes| bytes > 0) { Spans::All } else { Spans::Each };
        let started = clock::now();
        Self { show, from, bar, spans, started, bytes: 0, progressed: started, printed: Ok(()) }
    }

    /// When a byte last travelled, or a file was begun or stored, over whichever connection; before the first: when it began.
    /// What the receiver had before is no progress.
    pub(crate) const fn progressed(&self) -> Instant {
        self.progressed
    }

    /// Another connection: the receiver will say how much it has of each file.
    pub(crate) fn begin_anew(&self) {
        self.bar.set_position(0);
    }

    /// A line for people on stderr, above the bar.
    pub(crate) fn say(&self, line: &str) {
        if !self.show.quiet {
            self.bar.suspend(|| say(line));
        }
    }

    /// Says what became of it all.
    ///
    /// # Errors
    /// Something was refused, or stdout is gone.
    pub(crate) fn summarise(mut self, summary: Summary) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let Summary { stored, present, refused, .. } = summary;
        let (seconds, bytes) = (self.started.elapsed().as_secs_f64(), self.bytes);
        let rate_bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let text = format!(
            "{stored} stored, {present} there already, {refused} refused; {} in {seconds:.1} s, {:.3} Mb/s",
            HumanBytes(bytes),
            rate_bps / 1e6
        );
        let values = json!({
            "event": "summary", "stored": stored, "present": present, "refused": refused,
            "bytes": bytes, "seconds": seconds, "rate_bps": rate_bps,
        });
        self.line(&text, values);
        self.printed?;
        if refused > 0 { Err(Failure::Other(format!("{refused} refused; see above"))) } else { Ok(()) }
    }

    /// Prints one of the two, as the user wants it.
    fn line(&mut self, text: &str, mut values: Value) {
        if let Some(sender) = &self.from {
            values["from"] = sender.json();
        }
        let line = if self.show.json { values.to_string() } else { text.to_owned() };
        let printed = self.bar.suspend(|| console::print(&format!("{line}\n")));
        if self.printed.is_ok() {
            self.printed = printed;
        }
    }
}

impl Watch for Follow {
    fn begun(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        self.progressed = clock::now();
        match self.spans {
            Spans::All => self.bar.inc(offset),
            Spans::Each => {
                self.bar.set_length(size.unwrap_or(0));
                self.bar.set_position(offset);
            }
        }
        self.bar.reset_eta();
        self.bar.set_message(path.to_string());
        if self.show.json {
            let values =
                json!({ "event": "begun", "path": path.to_string(), "size": size, "offset": offset });
            self.line("", values);
        }
    }

    fn advanced(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.progressed = clock::now();
        self.bar.inc(bytes);
    }

    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        if *outcome == Outcome::Stored {
            self.progressed = clock::now();
        }
        let (word, why) = match outcome {
            Outcome::Stored => ("stored", None),
            Outcome::Present => ("there already", None),
            Outcome::Refused(refusal) => ("refused", Some(refusal.to_string())),
        };
        let text = match &why {
            Some(why) => format!("{path}: {word}: {why}"),
            None => format!("{path}: {word}"),
        };
        let values = json!({ "event": "ended", "path": path.to_string(), "outcome": word, "why": why });
        self.line(&text, values);
    }

    fn unnameable(&mut self, refusal: &Refusal) {
        let values =
            json!({ "event": "ended", "path": null, "outcome": "refused", "why": refusal.to_string() });
        self.line(&format!("refused: {refusal}"), values);
    }

    fn interrupted(&self) -> bool {
        console::interrupted()
    }
}
