//! Observer of tests that prints their progress and results.

use super::{json, text};
use crate::console;
use crate::net::args::{Bench as Args, Unit};
use crate::problems::{Failure, print_error_line};
use hopline_tools::bench::{Error, Interval, Observer, Plan, Report, TestSettings};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;

pub(super) struct BenchPrinter {
    style: Style,
    unit: Option<Unit>,
    /// Prefix of every line.
    title: String,
    /// File to write to instead of stdout.
    log: Option<File>,
    /// Plan of the present test.
    plan: Option<Plan>,
    settled: Option<TestSettings>,
    /// Intervals of a test that is printed at its end.
    intervals: Vec<Interval>,
    /// Output of the present test so far.
    output: String,
    /// First failure to write.
    pub(super) write_result: Result<(), Failure>,
}

/// Output format of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Lines of text, during the test.
    Text,
    /// JSON, at the end.
    Json,
    /// JSON lines, during a test with this server.
    JsonStream { host: String, port: u16 },
}

/// Most bytes of output that are kept for a client that requests them.
const MAX_KEPT_OUTPUT: usize = 1 << 20;

impl BenchPrinter {
    pub(super) fn new(style: Style, args: &Args) -> Result<Self, Failure> {
        let open = |path| File::options().create(true).append(true).open(path);
        let log = args.logfile.as_ref().map(|path| {
            open(path).map_err(|e| Failure::Other(format!("cannot write to {}: {e}", path.display())))
        });
        let title = args.test.title.as_ref().filter(|_| style == Style::Text);
        Ok(Self {
            unit: args.format,
            title: title.map(|title| format!("{title}:  ")).unwrap_or_default(),
            log: log.transpose()?,
            style,
            plan: None,
            settled: None,
            intervals: Vec::new(),
            output: String::new(),
            write_result: Ok(()),
        })
    }

    /// Begins a test, at the client.
    pub(super) fn begin(&mut self, plan: &Plan) {
        self.plan = Some(plan.clone());
    }

    /// Prints the result of a test, at the client.
    pub(super) fn print_result(
        &mut self,
        host: &str,
        port: u16,
        plan: &Plan,
        result: &Result<Report, Error>,
    ) {
        match &self.style {
            Style::Json => {
                let session = json::Session { host, port, plan, settled: self.settled.as_ref() };
                let document = json::document(&session, &self.intervals, result);
                let text = serde_json::to_string_pretty(&document).expect("numbers and words");
                self.print(&(text + "\n"));
            }
            Style::JsonStream { .. } => {
                if let Some(error) = json::error(result) {
                    self.event("error", error);
                }
                self.event("end", json::end(plan, result));
            }
            Style::Text => {
                let Ok(report) = result else { return };
                let parts = [
                    text::summary(plan, self.unit, report),
                    text::costs(plan, report),
                    text::latency(plan, report.latency.as_ref()),
                    text::output(report),
                ];
                self.print(&parts.concat());
            }
        }
    }

    fn event(&mut self, event: &'static str, data: impl serde::Serialize) {
        let line = serde_json::to_string(&json::Event { event, data }).expect("numbers and words");
        self.print(&(line + "\n"));
    }

    fn print(&mut self, text: &str) {
        if self.write_result.is_err() {
            return;
        }
        let titled =
            |text: &str| text.lines().map(|line| format!("{}{line}\n", self.title)).collect::<String>();
        let text = if self.title.is_empty() { text.to_owned() } else { titled(text) };
        if self.output.len() + text.len() <= MAX_KEPT_OUTPUT {
            self.output.push_str(&text);
        }
        self.write_result = match &mut self.log {
            None => console::print(&text),
            Some(file) => (file.write_all(text.as_bytes()))
                .map_err(|e| Failure::Other(format!("cannot write to the log file: {e}"))),
        };
    }
}

impl Observer for BenchPrinter {
    fn accepted(&mut self, client: SocketAddr, plan: &Plan) {
        self.output.clear();
        self.print(&text::accepted(client, plan));
        self.plan = Some(plan.clone());
    }

    fn connected(&mut self, settled: &TestSettings) {
        self.settled = Some(settled.clone());
        let plan = self.plan.clone().expect("streams are of a test");
        match &self.style {
            Style::Text => self.print(&text::connected(&plan, settled)),
            Style::Json => {}
            Style::JsonStream { host, port } => {
                let session = json::Session { host, port: *port, plan: &plan, settled: Some(settled) };
                let start = json::start(&session);
                self.event("start", start);
            }
        }
    }

    fn interval(&mut self, interval: &Interval) {
        match self.style {
            Style::Text => {
                let plan = self.plan.as_ref().expect("intervals are of a test");
                let text = text::interval(plan, self.unit, interval);
                self.print(&text);
            }
            Style::Json => self.intervals.push(interval.clone()),
            Style::JsonStream { .. } => self.event("interval", json::interval(interval)),
        }
    }

    fn ended(&mut self, result: &Result<Report, Error>) {
        let plan = self.plan.take();
        match (result, plan) {
            (Ok(report), Some(plan)) => self.print(&text::summary(&plan, self.unit, report)),
            (Err(Error::Interrupted) | Ok(_), _) => {}
            (Err(error), _) => print_error_line(&error.to_string()),
        }
    }

    fn output(&mut self, report: &Report) -> Option<String> {
        let plan = self.plan.as_ref()?;
        // It is printed once the client has it: what follows may still fail.
        Some(self.output.clone() + &text::summary(plan, self.unit, report))
    }

    fn interrupted(&self) -> bool {
        console::interrupted() || self.write_result.is_err()
    }
}
