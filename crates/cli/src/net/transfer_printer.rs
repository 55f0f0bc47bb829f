//! Output of `send` and `recv` about a transfer: a progress bar on stderr, a line for each file on stdout.
//!
//! `docs/transfer.md` describes the lines of `--json`.

use crate::console;
use crate::net::args::OutputArgs;
use crate::net::clock;
use crate::net::recv::Sender;
use crate::net::refusals::{self, RefusalCounts};
use crate::net::state::{State, Status};
use crate::problems::{Failure, print_error_line};
use hopline_tools::transfer::{Observer, Outcome, Reason, Refusal, RelativePath, Unsendable};
use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Direction and content of a transfer.
pub(crate) enum TransferKind {
    /// Bytes that this host sends.
    Outgoing {
        /// Bytes of all files.
        bytes: u64,
        /// `true` while standard input, which is sent, provides no data.
        input_is_silent: Arc<AtomicBool>,
    },
    /// Files of this sender.
    Incoming(Sender),
}

/// Observer of a transfer that prints its progress.
pub(crate) struct TransferPrinter {
    show: OutputArgs,
    /// Sender, at a receiver.
    from: Option<Sender>,
    bar: ProgressBar,
    /// Extent of the bar: all files, or each in turn.
    bar_extent: BarExtent,
    started: Instant,
    /// State, printed every second with `--json`.
    status: Status,
    counts: Counts,
    /// Paths that need not be offered again, at a sender.
    settled: BTreeSet<RelativePath>,
    /// Paths that the receiver of this connection may accept later, at a sender.
    deferred: BTreeMap<RelativePath, Refusal>,
    /// Paths that were reported and are not reported again.
    reported: BTreeSet<PathBuf>,
    /// Counters of refusals, at a receiver.
    refusal_counts: RefusalCounts,
    /// Line that is printed before any other.
    preface: Option<String>,
    /// Reason of the last retry that was printed, and the time of the last progress then; at a sender.
    retry: Option<(&'static str, Instant)>,
    /// `true` once an early end was reported.
    has_failed: bool,
    /// First failure to write to stdout.
    write_result: Result<(), Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BarExtent {
    AllFiles,
    EachFile,
}

/// Counters of all connections.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    stored: u64,
    present: u64,
    refused: u64,
    /// Files that their sender is to offer again later, and those of them that were reported before; at a receiver.
    deferred: u64,
    deferred_again: u64,
    bytes: u64,
}

impl TransferPrinter {
    /// Creates an observer without events.
    pub(crate) fn new(show: OutputArgs, transferred: TransferKind, bars: &MultiProgress) -> Self {
        let (total, from, state, input_is_silent) = match transferred {
            TransferKind::Outgoing { bytes, input_is_silent } => {
                (Some(bytes), None, State::Connecting, input_is_silent)
            }
            TransferKind::Incoming(sender) => (None, Some(sender), State::Receiving, Arc::default()),
        };
        if show.quiet || show.json {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        let bar = bars.add(ProgressBar::new(total.unwrap_or(0)));
        let template =
            "{bar:30} {percent:>3} %  {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go  {wide_msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
        let spans =
            if total.is_some_and(|bytes| bytes > 0) { BarExtent::AllFiles } else { BarExtent::EachFile };
        let status = Status::new(show.json, from.as_ref().map(Sender::json), state, total, input_is_silent);
        Self {
            show,
            from,
            bar,
            bar_extent: spans,
            started: clock::now(),
            status,
            counts: Counts::default(),
            settled: BTreeSet::new(),
            deferred: BTreeMap::new(),
            reported: BTreeSet::new(),
            refusal_counts: RefusalCounts::default(),
            preface: None,
            retry: None,
            has_failed: false,
            write_result: Ok(()),
        }
    }

    /// Returns the time of the last progress over any connection.
    pub(crate) fn progressed(&self) -> Instant {
        self.status.progressed()
    }

    /// Returns the paths that were stored, existed already, or will never be accepted: they need not be offered again.
    pub(crate) const fn settled(&self) -> &BTreeSet<RelativePath> {
        &self.settled
    }

    /// Returns the reason for which the receiver has deferred a file, if it has.
    pub(crate) fn deferral(&self) -> Option<&Refusal> {
        self.deferred.values().next()
    }

    /// Begins another connection. The receiver will report how much it has of each file that is offered again.
    pub(crate) fn restart(&mut self, settled_bytes: u64) {
        self.bar.set_position(settled_bytes);
        self.status.restart(settled_bytes);
        self.deferred.clear();
    }

    /// Sets the state of the transfer.
    pub(crate) fn set_state(&mut self, state: State) {
        self.status.set_state(state);
    }

    /// Reports a part of the source that cannot be sent.
    pub(crate) fn unsendable(&mut self, unsendable: &Unsendable) {
        let Unsendable { path: place, refusal } = unsendable;
        if self.reported.insert(place.clone()) {
            self.counts.refused += 1;
            let values = ended(Some(&place.display().to_string()), "refused", Some(refusal));
            self.print_event(&format!("refused: {refusal}"), values);
        }
    }

    /// Prints a line for people on stderr, above the bar.
    pub(crate) fn print_line(&self, line: &str) {
        if !self.show.quiet {
            self.bar.suspend(|| print_error_line(line));
        }
    }

    /// Prints `line` before any other line, or never if there is no other.
    pub(crate) fn preface(&mut self, line: String) {
        self.preface = Some(line);
    }

    fn print_preface(&mut self) {
        if let Some(line) = self.preface.take() {
            self.print_line(&line);
        }
    }

    /// Reports another attempt: once for each reason, unless there was progress.
    pub(crate) fn report_retry(&mut self, code: &'static str, line: &str) {
        let now = (code, self.progressed());
        if self.retry.replace(now) != Some(now) {
            self.print_line(line);
        }
    }

    /// Returns the number of files that a receiver refused for now.
    pub(crate) const fn deferred(&self) -> u64 {
        self.counts.deferred
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// A file was refused, or stdout is closed.
    pub(crate) fn summarise(mut self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        for (path, refusal) in std::mem::take(&mut self.deferred) {
            self.refused(&path, &refusal);
        }
        let Counts { stored, present, refused, deferred, deferred_again, bytes } = self.counts;
        if deferred > 0 && deferred == deferred_again && stored + present + refused == 0 {
            // The same as at the attempt before.
            self.status.stop();
            return self.write_result;
        }
        self.print_unnamed_count();
        let waiting = if deferred > 0 { format!(", {deferred} deferred") } else { String::new() };
        let seconds = self.started.elapsed().as_secs_f64();
        let rate_bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        let text = format!(
            "{stored} stored, {present} there already, {refused} refused{waiting}; {} in {seconds:.1} s, {:.3} Mb/s",
            HumanBytes(bytes),
            rate_bps / 1e6
        );
        let values = json!({
            "event": "summary", "stored": stored, "present": present, "refused": refused, "deferred": deferred,
            "bytes": bytes, "seconds": seconds, "rate_bps": rate_bps,
        });
        self.status.stop();
        self.print_event(&text, values);
        // If the reader of stdout is gone, the exit code reports at least this.
        match refused {
            0 => self.write_result,
            _ if self.show.json => Err(Failure::Other(format!("{refused} refused"))),
            _ => Err(Failure::Other(format!("{refused} refused; see above"))),
        }
    }

    /// Reports an early end. The first report of it counts.
    pub(crate) fn report_failure(&mut self, code: &str, why: &str) {
        self.print_unnamed_count();
        self.print_preface();
        self.status.stop();
        if self.show.json && !std::mem::replace(&mut self.has_failed, true) {
            self.print_event("", json!({ "event": "failed", "reason": code, "why": why }));
        }
    }

    /// Reports `failure`, by which the transfer ended early, unless its reason was reported already.
    pub(crate) fn report_failure_of(&mut self, failure: &Failure) {
        match failure {
            Failure::Interrupted(why) => self.report_failure(Reason::Interrupted.code(), why),
            Failure::Input(problems) => self.report_failure("input", &problems.to_string()),
            Failure::Other(why) => self.report_failure(Reason::System.code(), why),
            // Without a reader of stdout, a line is useless; the rest belongs to simulations.
            Failure::Stdout(_)
            | Failure::Output(_)
            | Failure::Store(_)
            | Failure::Suspended(_)
            | Failure::Reported => {}
        }
    }

    fn refused(&mut self, path: &RelativePath, refusal: &Refusal) {
        self.counts.refused += 1;
        if self.is_named() {
            let values = ended(Some(&path.whole()), "refused", Some(refusal));
            self.print_event(&format!("{path}: refused: {refusal}"), values);
        }
    }

    /// Returns whether a refusal is printed; at a receiver their number is limited.
    fn is_named(&mut self) -> bool {
        self.from.is_none() || self.refusal_counts.count_named()
    }

    fn print_unnamed_count(&mut self) {
        let unnamed = std::mem::take(&mut self.refusal_counts).unnamed();
        if unnamed > 0 {
            let text = format!("{unnamed} more were refused, and are not named");
            self.print_event(&text, json!({ "event": "unnamed", "refused": unnamed }));
        }
    }

    /// Counts a file that this receiver may accept later.
    fn postponed(&mut self, sender: String, path: &RelativePath, refusal: &Refusal) {
        self.counts.deferred += 1;
        if refusals::defer((sender, path.whole()), refusal.reason) {
            if self.is_named() {
                self.print_deferred(path, refusal);
            }
        } else {
            self.counts.deferred_again += 1;
        }
    }

    fn print_deferred(&mut self, path: &RelativePath, refusal: &Refusal) {
        let values = json!({
            "event": "deferred", "path": path.whole(), "reason": refusal.reason.code(),
            "why": refusal.to_string(),
        });
        self.print_event(&format!("{path}: waits: {refusal}"), values);
    }

    /// Records a file that the receiver may accept later, and reports it once.
    fn defer(&mut self, path: &RelativePath, refusal: &Refusal) {
        if self.reported.insert(PathBuf::from(path.whole())) {
            self.print_deferred(path, refusal);
        }
        self.status.deferred();
        self.deferred.insert(path.clone(), refusal.clone());
    }

    /// Prints the line as text or JSON.
    fn print_event(&mut self, text: &str, mut values: Value) {
        self.print_preface();
        let line = if self.show.json {
            values["time_s"] = clock::time_of_day().as_secs_f64().into();
            if let Some(sender) = &self.from {
                values["from"] = sender.json();
            }
            values.to_string()
        } else {
            text.to_owned()
        };
        let printed = self.bar.suspend(|| console::print(&format!("{line}\n")));
        if self.write_result.is_ok() {
            self.write_result = printed;
        }
    }
}

/// Returns the JSON line of the end of a file.
fn ended(path: Option<&str>, outcome: &str, refusal: Option<&Refusal>) -> Value {
    json!({
        "event": "ended", "path": path, "outcome": outcome,
        "reason": refusal.map(|refusal| refusal.reason.code()),
        "why": refusal.map(ToString::to_string),
    })
}

impl Observer for TransferPrinter {
    fn file_started(&mut self, path: &RelativePath, size: Option<u64>, offset: u64) {
        self.status.file_started(offset, size);
        match self.bar_extent {
            BarExtent::AllFiles => self.bar.inc(offset),
            BarExtent::EachFile => {
                self.bar.set_length(size.unwrap_or(0));
                self.bar.set_position(offset);
            }
        }
        self.bar.reset_eta();
        self.bar.set_message(path.to_string());
        if self.show.json {
            let values = json!({ "event": "begun", "path": path.whole(), "size": size, "offset": offset });
            self.print_event("", values);
        }
    }

    fn handle_progress(&mut self, bytes: u64) {
        self.counts.bytes += bytes;
        self.status.advanced(bytes);
        self.bar.inc(bytes);
    }

    fn already_present(&mut self, bytes: u64) {
        self.status.already_present(bytes);
        if self.bar_extent == BarExtent::AllFiles {
            self.bar.inc(bytes);
        }
    }

    fn ended(&mut self, path: &RelativePath, outcome: &Outcome) {
        self.status.file_ended();
        if let Outcome::Refused(refusal) = outcome {
            if let Some(sender) = self.from.as_ref().filter(|_| refusal.reason.is_temporary()) {
                return self.postponed(sender.identity(), path, refusal);
            }
            if self.from.is_none() && refusal.reason.is_temporary() {
                return self.defer(path, refusal);
            }
            self.refused(path, refusal);
        } else {
            let word = match outcome {
                Outcome::Stored => {
                    self.counts.stored += 1;
                    "stored"
                }
                Outcome::Made => "stored",
                Outcome::Present | Outcome::Refused(_) => {
                    self.counts.present += 1;
                    "there already"
                }
            };
            if *outcome == Outcome::Stored {
                self.status.stored();
            }
            let tries =
                self.from.as_ref().and_then(|from| refusals::settle(&(from.identity(), path.whole())));
            let after =
                tries.map_or_else(String::new, |tries| format!(", after it had to wait {tries} times"));
            self.print_event(&format!("{path}: {word}{after}"), ended(Some(&path.whole()), word, None));
        }
        if self.from.is_none() {
            self.settled.insert(path.clone());
        }
    }

    fn path_rejected(&mut self, refusal: &Refusal) {
        self.counts.refused += 1;
        if self.is_named() {
            self.print_event(&format!("refused: {refusal}"), ended(None, "refused", Some(refusal)));
        }
    }

    fn interrupted(&self) -> bool {
        console::interrupted()
    }
}
