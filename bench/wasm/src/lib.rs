//! A scenario run in WebAssembly: its text goes in byte by byte, and the result is the fingerprint, or an
//! error message.
//!
//! No pointers are exchanged: a test of results needs no fast input. `#[unsafe(no_mangle)]` is the only
//! unsafe part, and there is no other way to name an export.

use hopline_scenario::Scenario;
use hopline_config::source::Source;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Input received so far, and the result.
static STATE: Mutex<State> = Mutex::new(State { text: Vec::new(), answer: Vec::new() });

struct State {
    text: Vec<u8>,
    answer: Vec<u8>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends a byte to the scenario's text.
#[unsafe(no_mangle)]
pub extern "C" fn push(byte: u8) {
    state().text.push(byte);
}

/// Runs the received scenario as run number `run`, and clears the text. Returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn run(run: u64) -> usize {
    let text = core::mem::take(&mut state().text);
    let answer = match fingerprint(text, run) {
        Ok(fingerprint) => format!("{fingerprint:016x}"),
        Err(problem) => problem,
    };
    let mut state = state();
    state.answer = answer.into_bytes();
    state.answer.len()
}

/// Returns byte number `at` of the answer; 0 beyond its end.
#[unsafe(no_mangle)]
pub extern "C" fn answer(at: usize) -> u8 {
    state().answer.get(at).copied().unwrap_or(0)
}

fn fingerprint(text: Vec<u8>, run: u64) -> Result<u64, String> {
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    let source = Arc::new(Source { name: "scenario.toml".into(), text });
    let scenario = Scenario::parse(source, PathBuf::new(), &[]).map_err(|problems| problems.to_string())?;
    let spec = scenario.spec(run).map_err(|problems| problems.to_string())?;
    Ok(hopline_sim::simulate(&spec, run).fingerprint)
}
