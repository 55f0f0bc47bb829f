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
    Waiting(Cause),
}

/// Reason for which a transfer waits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    /// Identifier for programs.
    pub(crate) code: &'static str,
    /// Text for people.
    pub(crate) why: String,
    /// Time of the next attempt.
    pub(crate) until: Instant,
}

/// Position in the present file, and in all files, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
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
    teller: Option<JoinHandle<()>>,
}

struct Shared {
    now: Mutex<Now>,
    /// `true` while the standard input of a sender provides no data.
    input_is_silent: Arc<AtomicBool>,
    stopped: Condvar,
    /// Sender, at a receiver.
    from: Option<Value>,
}

struct Now {
    state: State,
    place: Place,
    bytes: u64,
    progress: Progress,
    /// Time of the last event.
    active: Instant,
    is_over: bool,
    /// Bytes and time of the last output.
    told: (u64, Instant),
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
        let place = Place { total_size: total_size.filter(|bytes| *bytes > 0), ..Place::default() };
        let shared = Arc::new(Shared {
            now: Mutex::new(Now { place, ..Now::new(state, clock::now()) }),
            input_is_silent,
            stopped: Condvar::new(),
            from,
        });
        let told = shared.clone();
        // If no thread can be started, the other lines are printed anyway.
        let teller =
            || thread::Builder::new().name("state".into()).spawn(move || told.tell_every_second()).ok();
        Self { teller: json.then(teller).flatten(), shared }
    }

    /// Begins another connection. The receiver has `bytes` that it is not offered again.
    pub(crate) fn begin_anew(&self, bytes: u64) {
        let mut now = self.shared.now();
        now.progress.begin_anew(bytes);
        now.place = Place { total_offset: bytes, total_size: now.place.total_size, ..Place::default() };
    }

    /// Begins a file, of which the receiver has `offset` bytes.
    pub(crate) fn begun(&self, offset: u64, size: Option<u64>) {
        self.act(|now, at| {
            now.progress.has(at, offset);
            now.place.total_offset += offset;
            (now.place.offset, now.place.size) = (Some(offset), size);
        });
    }

    /// Counts a file of `bytes` bytes that existed already.
    pub(crate) fn recognised(&self, bytes: u64) {
        self.act(|now, _| now.place.total_offset += bytes);
    }

    /// Ends a file: it was stored, existed already, or was refused.
    pub(crate) fn ended(&self) {
        self.act(|now, _| {
            let place = now.place;
            if place.size.is_none() || place.offset == place.size {
                (now.place.offset, now.place.size) = (None, None);
            }
        });
    }

    /// Counts bytes passed to the transport, or received from it.
    pub(crate) fn advanced(&self, bytes: u64) {
        self.act(|now, at| {
            now.progress.advanced(at, bytes);
            now.bytes += bytes;
            now.place.total_offset += bytes;
            now.place.offset = now.place.offset.map(|offset| offset + bytes);
        });
    }

    /// Counts a stored file.
    pub(crate) fn stored(&self) {
        self.act(|now, at| now.progress.stored(at));
    }

    /// Counts a deferred file.
    pub(crate) fn deferred(&self) {
        self.act(|now, _| now.progress.deferred());
    }

    fn act(&self, what: impl FnOnce(&mut Now, Instant)) {
        let at = clock::now();
        let mut now = self.shared.now();
        what(&mut now, at);
        now.active = at;
    }

    /// Returns the time of the last progress.
    pub(crate) fn progressed(&self) -> Instant {
        self.shared.now().progress.last()
    }

    /// Sets the state of the transfer and reports it at once.
    pub(crate) fn turn(&self, state: State) {
        let mut now = self.shared.now();
        if now.state != state {
            now.state = state;
            if self.teller.is_some() {
                self.shared.tell(&mut now);
            }
        }
    }

    /// Stops the output.
    pub(crate) fn stop(&mut self) {
        self.shared.now().is_over = true;
        self.shared.stopped.notify_all();
        if let Some(teller) = self.teller.take() {
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
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().expect(UNPOISONED)
    }

    fn tell_every_second(&self) {
        let mut now = self.now();
        loop {
            let waited = self.stopped.wait_timeout_while(now, SECOND, |now| !now.is_over);
            now = waited.expect(UNPOISONED).0;
            if now.is_over {
                return;
            }
            self.tell(&mut now);
        }
    }

    fn tell(&self, now: &mut Now) {
        let at = clock::now();
        let mut line = now.line(at, self.input_is_silent.load(Relaxed));
        line["time_s"] = clock::time_of_day().as_secs_f64().into();
        if let Some(from) = &self.from {
            line["from"] = from.clone();
        }
        now.told = (now.bytes, at);
        // A closed stdout is reported by the summary.
        let _ = console::print(&format!("{line}\n"));
    }
}

impl Now {
    fn new(state: State, at: Instant) -> Self {
        Self {
            state,
            place: Place::default(),
            bytes: 0,
            progress: Progress::new(at),
            active: at,
            is_over: false,
            told: (0, at),
        }
    }

    fn line(&self, at: Instant, input_is_silent: bool) -> Value {
        let (bytes, since) = self.told;
        let seconds = at.duration_since(since).as_secs_f64();
        let rate_bps = if seconds > 0.0 { (self.bytes - bytes) as f64 * 8.0 / seconds } else { 0.0 };
        let idle_s = at.duration_since(self.active).as_secs_f64();
        let (word, waits_for, why, retry_in_s) = match &self.state {
            State::Connecting => ("connecting", Some("receiver"), None, None),
            State::Reconnecting => ("reconnecting", Some("receiver"), None, None),
            State::Sending if input_is_silent => ("sending", Some("input"), None, None),
            State::Sending => ("sending", (idle_s >= 1.0).then_some("receiver"), None, None),
            State::Receiving => ("receiving", (idle_s >= 1.0).then_some("sender"), None, None),
            State::Waiting(Cause { code, why, until }) => {
                let left = until.saturating_duration_since(at).as_secs_f64();
                ("waiting", Some(*code), Some(why), Some(left))
            }
        };
        let Place { offset, size, total_offset, total_size } = self.place;
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
    fn a_line_has_the_position_in_the_file_and_in_all_files() {
        let status = Status::new(false, None, State::Sending, Some(1000), Arc::default());
        let line = || status.shared.now().line(clock::now(), false);
        let place = || ["offset", "size", "total_offset", "total_size"].map(|name| line()[name].as_u64());
        status.begin_anew(100);
        status.recognised(50);
        assert_eq!(place(), [None, None, Some(150), Some(1000)]);
        status.begun(20, Some(300));
        status.advanced(30);
        assert_eq!(place(), [Some(50), Some(300), Some(200), Some(1000)]);
        status.advanced(250);
        status.ended();
        assert_eq!(place(), [None, None, Some(450), Some(1000)]);
        status.begin_anew(400);
        assert_eq!(place(), [None, None, Some(400), Some(1000)]);
    }

    #[test]
    fn a_line_has_the_rate_since_the_last_and_what_is_waited_for() {
        let at = clock::now();
        let mut now = Now { bytes: 1000, told: (500, at), ..Now::new(State::Sending, at) };
        let line = now.line(at + Duration::from_millis(500), false);
        assert_eq!((&line["rate_bps"], &line["waits_for"]), (&8000.0.into(), &Value::Null));
        let line = now.line(at + SECOND, false);
        assert_eq!((&line["state"], &line["waits_for"]), (&"sending".into(), &"receiver".into()));
        assert_eq!(now.line(at + SECOND, true)["waits_for"], "input");
        let cause = Cause { code: "no-space", why: "the disk is full".into(), until: at + 5 * SECOND };
        now.state = State::Waiting(cause);
        let line = now.line(at + 2 * SECOND, false);
        assert_eq!((&line["waits_for"], &line["retry_in_s"]), (&"no-space".into(), &3.0.into()));
        assert_eq!((&line["why"], &line["idle_s"]), (&"the disk is full".into(), &2.0.into()));
    }
}
