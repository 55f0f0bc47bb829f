//! State of a transfer, printed every second with `--json`, even while the transfer waits.

use crate::console;
use crate::net::clock;
use crate::net::progress::Progress;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const UNPOISONED: &str = "no thread panics while it holds the state";

/// State of a transfer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// The first connection is being opened.
    Connecting,
    /// Another connection is being opened.
    Reconnecting,
    /// The connection is open, and data are sent.
    Sending,
    /// The connection is open, and data are received.
    Receiving,
    /// A pause before the next attempt.
    Waiting(WaitCause),
}

/// Reason for which a transfer waits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WaitCause {
    /// Identifier for programs.
    pub(crate) code: &'static str,
    /// Text for people.
    pub(crate) why: String,
    /// Time of the next attempt.
    pub(crate) until: Instant,
}

/// Position in the present file, and in all files, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    /// Bytes of the file that the receiver has, or that were sent; `None` between files.
    offset: Option<u64>,
    /// Size of the file, if it is known.
    size: Option<u64>,
    /// Position in all files together.
    total_offset: u64,
    /// Size of all files, at a sender of files.
    total_size: Option<u64>,
}

/// State of a transfer, and the thread that prints it.
pub(crate) struct Status {
    shared: Arc<Shared>,
    printer: Option<JoinHandle<()>>,
}

struct Shared {
    current: Mutex<Current>,
    /// `true` while the standard input of a sender provides no data.
    input_is_silent: Arc<AtomicBool>,
    stopped: Condvar,
    /// Sender, at a receiver.
    from: Option<Value>,
}

struct Current {
    state: State,
    position: Position,
    bytes: u64,
    progress: Progress,
    /// Time of the last event.
    last_event: Instant,
    is_finished: bool,
    /// Bytes and time of the last output.
    last_output: (u64, Instant),
}

impl Status {
    /// Begins a transfer; with `json`, its state is printed every second.
    pub(crate) fn new(
        json: bool,
        from: Option<Value>,
        state: State,
        total_size: Option<u64>,
        input_is_silent: Arc<AtomicBool>,
    ) -> Self {
        let place = Position { total_size: total_size.filter(|bytes| *bytes > 0), ..Position::default() };
        let shared = Arc::new(Shared {
            current: Mutex::new(Current { position: place, ..Current::new(state, clock::now()) }),
            input_is_silent,
            stopped: Condvar::new(),
            from,
        });
        let told = shared.clone();
        // If no thread can be started, the other lines are printed anyway.
        let teller =
            || thread::Builder::new().name("state".into()).spawn(move || told.print_every_second()).ok();
        Self { printer: json.then(teller).flatten(), shared }
    }

    /// Begins another connection. The receiver has `bytes` that it is not offered again.
    pub(crate) fn restart(&self, bytes: u64) {
        let mut now = self.shared.now();
        now.progress.restart(bytes);
        now.position =
            Position { total_offset: bytes, total_size: now.position.total_size, ..Position::default() };
    }

    /// Begins a file, of which the receiver has `offset` bytes.
    pub(crate) fn file_started(&self, offset: u64, size: Option<u64>) {
        self.update(|now, at| {
            now.progress.already_received(at, offset);
            now.position.total_offset += offset;
            (now.position.offset, now.position.size) = (Some(offset), size);
        });
    }

    /// Counts a file of `bytes` bytes that existed already.
    pub(crate) fn already_present(&self, bytes: u64) {
        self.update(|now, _| now.position.total_offset += bytes);
    }

    /// Ends a file: it was stored, existed already, or was refused.
    pub(crate) fn file_ended(&self) {
        self.update(|now, _| {
            let place = now.position;
            if place.size.is_none() || place.offset == place.size {
                (now.position.offset, now.position.size) = (None, None);
            }
        });
    }

    /// Counts bytes passed to the transport, or received from it.
    pub(crate) fn advanced(&self, bytes: u64) {
        self.update(|now, at| {
            now.progress.advanced(at, bytes);
            now.bytes += bytes;
            now.position.total_offset += bytes;
            now.position.offset = now.position.offset.map(|offset| offset + bytes);
        });
    }

    /// Counts a stored file.
    pub(crate) fn stored(&self) {
        self.update(|now, at| now.progress.stored(at));
    }

    /// Counts a deferred file.
    pub(crate) fn deferred(&self) {
        self.update(|now, _| now.progress.deferred());
    }

    fn update(&self, what: impl FnOnce(&mut Current, Instant)) {
        let at = clock::now();
        let mut now = self.shared.now();
        what(&mut now, at);
        now.last_event = at;
    }

    /// Returns the time of the last progress.
    pub(crate) fn progressed(&self) -> Instant {
        self.shared.now().progress.last()
    }

    /// Sets the state of the transfer and reports it at once.
    pub(crate) fn set_state(&self, state: State) {
        let mut now = self.shared.now();
        if now.state != state {
            now.state = state;
            if self.printer.is_some() {
                self.shared.print_state(&mut now);
            }
        }
    }

    /// Stops the output.
    pub(crate) fn stop(&mut self) {
        self.shared.now().is_finished = true;
        self.shared.stopped.notify_all();
        if let Some(teller) = self.printer.take() {
            // The thread returns nothing.
            let _ = teller.join();
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Current> {
        self.current.lock().expect(UNPOISONED)
    }

    fn print_every_second(&self) {
        let mut now = self.now();
        loop {
            let waited = self.stopped.wait_timeout_while(now, SECOND, |now| !now.is_finished);
            now = waited.expect(UNPOISONED).0;
            if now.is_finished {
                return;
            }
            self.print_state(&mut now);
        }
    }

    fn print_state(&self, now: &mut Current) {
        let at = clock::now();
        let mut line = now.line(at, self.input_is_silent.load(Relaxed));
        line["time_s"] = clock::time_of_day().as_secs_f64().into();
        if let Some(from) = &self.from {
            line["from"] = from.clone();
        }
        now.last_output = (now.bytes, at);
        // A closed stdout is reported by the summary.
        let _ = console::print(&format!("{line}\n"));
    }
}

impl Current {
    fn new(state: State, at: Instant) -> Self {
        Self {
            state,
            position: Position::default(),
            bytes: 0,
            progress: Progress::new(at),
            last_event: at,
            is_finished: false,
            last_output: (0, at),
        }
    }

    fn line(&self, at: Instant, input_is_silent: bool) -> Value {
        let (bytes, since) = self.last_output;
        let seconds = at.duration_since(since).as_secs_f64();
        let rate_bps = if seconds > 0.0 { (self.bytes - bytes) as f64 * 8.0 / seconds } else { 0.0 };
        let idle_s = at.duration_since(self.last_event).as_secs_f64();
        let (word, waits_for, why, retry_in_s) = match &self.state {
            State::Connecting => ("connecting", Some("receiver"), None, None),
            State::Reconnecting => ("reconnecting", Some("receiver"), None, None),
            State::Sending if input_is_silent => ("sending", Some("input"), None, None),
            State::Sending => ("sending", (idle_s >= 1.0).then_some("receiver"), None, None),
            State::Receiving => ("receiving", (idle_s >= 1.0).then_some("sender"), None, None),
            State::Waiting(WaitCause { code, why, until }) => {
                let left = until.saturating_duration_since(at).as_secs_f64();
                ("waiting", Some(*code), Some(why), Some(left))
            }
        };
        let Position { offset, size, total_offset, total_size } = self.position;
        json!({
            "event": "state", "state": word, "waits_for": waits_for, "why": why, "retry_in_s": retry_in_s,
            "offset": offset, "size": size, "total_offset": total_offset, "total_size": total_size,
            "bytes": self.bytes, "rate_bps": rate_bps, "idle_s": idle_s,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_position_in_the_file_and_in_total() {
        let status = Status::new(false, None, State::Sending, Some(1000), Arc::default());
        let line = || status.shared.now().line(clock::now(), false);
        let place = || ["offset", "size", "total_offset", "total_size"].map(|name| line()[name].as_u64());
        status.restart(100);
        status.already_present(50);
        assert_eq!(place(), [None, None, Some(150), Some(1000)]);
        status.file_started(20, Some(300));
        status.advanced(30);
        assert_eq!(place(), [Some(50), Some(300), Some(200), Some(1000)]);
        status.advanced(250);
        status.file_ended();
        assert_eq!(place(), [None, None, Some(450), Some(1000)]);
        status.restart(400);
        assert_eq!(place(), [None, None, Some(400), Some(1000)]);
    }

    #[test]
    fn a_line_has_the_current_rate_and_the_reason_for_waiting() {
        let at = clock::now();
        let mut now = Current { bytes: 1000, last_output: (500, at), ..Current::new(State::Sending, at) };
        let line = now.line(at + Duration::from_millis(500), false);
        assert_eq!((&line["rate_bps"], &line["waits_for"]), (&8000.0.into(), &Value::Null));
        let line = now.line(at + SECOND, false);
        assert_eq!((&line["state"], &line["waits_for"]), (&"sending".into(), &"receiver".into()));
        assert_eq!(now.line(at + SECOND, true)["waits_for"], "input");
        let cause = WaitCause { code: "no-space", why: "the disk is full".into(), until: at + 5 * SECOND };
        now.state = State::Waiting(cause);
        let line = now.line(at + 2 * SECOND, false);
        assert_eq!((&line["waits_for"], &line["retry_in_s"]), (&"no-space".into(), &3.0.into()));
        assert_eq!((&line["why"], &line["idle_s"]), (&"the disk is full".into(), &2.0.into()));
    }
}
