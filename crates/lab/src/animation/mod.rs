//! What the map of a report plays: the frames, losses, drops, queues and routes of a part of a run.
//!
//! [`record`] runs a specification once more, up to the end of the [`Window`], and keeps what happens in it: equal
//! specification and run number give an equal run, so that nothing has to be kept while an experiment goes on. What is kept
//! is compact and bounded: [`fit`] cuts several animations at about the same moment so that together they take no more
//! than [`BUDGET_BYTES`] of a page.

mod kind;
mod layout;
mod recorder;
mod scene;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use scene::distinct;
pub use window::{Window, WindowError};

use crate::map::Map;
use crate::run::{Interrupted, Watch};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hopline_core::{Duration, Instant};
use hopline_sim::{Spec, World};
use recorder::{Recorded, Recorder};
use std::cell::Cell;
use std::rc::Rc;

/// Most bytes of a page that all animations of an experiment take.
pub const BUDGET_BYTES: usize = 3_000_000;
/// How far a run goes before somebody looks whether to go on, in virtual time.
const STEP: Duration = Duration::from_millis(200);

/// A part of a run, to be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Animation {
    /// The number of the run.
    pub run: u64,
    /// The network of that run.
    pub map: Map,
    /// Where it begins, in seconds of the run.
    pub from_s: f64,
    /// Where it was to end, in seconds of the run.
    pub asked_to_s: f64,
    /// Why packets were dropped, by the numbers that rows have.
    pub(crate) reasons: Vec<&'static str>,
    pub(crate) chunks: Vec<Chunk>,
}

/// The events of a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its end, in µs since the window began.
    pub(crate) until_us: i64,
    /// Rows, as `layout.rs` has them, deflated.
    pub(crate) bytes: Vec<u8>,
}

/// Runs `spec` as run number `run` up to the end of `window`, and keeps what happens in it, as far as there is room.
///
/// # Errors
///
/// [`Interrupted`], if the watcher asked to give up.
pub fn record(spec: &Spec, run: u64, window: Window, watch: &dyn Watch) -> Result<Animation, Interrupted> {
    let (begins, ends) = (window.begins(), window.ends(spec.duration));
    let full = Rc::new(Cell::new(false));
    let mut world = World::new(spec, run, Recorder::new(spec, (begins, ends), full.clone()));
    let mut now = Instant::ZERO;
    while now < ends && !full.get() {
        if watch.interrupted() {
            return Err(Interrupted);
        }
        now = (now + STEP).min(ends);
        world.run_until(now);
    }
    let Recorded { chunks, reasons } = world.finish().1.finish();
    Ok(Animation {
        run,
        map: Map::of(spec),
        from_s: begins.as_secs_f64(),
        asked_to_s: ends.as_secs_f64(),
        reasons,
        chunks,
    })
}

/// The same, and no more of it than fits a page.
///
/// # Errors
///
/// As [`record`].
pub fn single(spec: &Spec, run: u64, window: Window, watch: &dyn Watch) -> Result<Animation, Interrupted> {
    let mut animation = record(spec, run, window, watch)?;
    fit(std::slice::from_mut(&mut animation), BUDGET_BYTES);
    Ok(animation)
}

impl Animation {
    /// Up to where it can be played, in seconds of the run.
    #[must_use]
    pub fn to_s(&self) -> f64 {
        self.from_s + self.chunks.last().map_or(0.0, |chunk| chunk.until_us as f64 / 1e6)
    }

    /// Whether it ends before it was to end.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.asked_to_s - self.to_s() > 1e-6
    }

    /// The chunks as text, a line each: base64 of what deflate made of them.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.chunks.iter().map(|chunk| STANDARD.encode(&chunk.bytes)).collect();
        lines.join("\n")
    }
}

/// Cuts `animations` at about the same moment, so that they take no more than `budget` bytes of a page.
pub fn fit(animations: &mut [Animation], budget: usize) {
    let mut kept = vec![0; animations.len()];
    let mut bytes = scene::distinct(animations).0.iter().map(String::len).sum::<usize>();
    loop {
        let next = |(i, animation): (usize, &Animation)| {
            let chunk = animation.chunks.get(kept[i])?;
            let since = kept[i].checked_sub(1).map_or(0, |last| animation.chunks[last].until_us);
            Some((since, i, html_bytes(&chunk.bytes)))
        };
        let Some((_, i, more)) = animations.iter().enumerate().filter_map(next).min() else { break };
        bytes += more;
        if bytes > budget {
            break;
        }
        kept[i] += 1;
    }
    for (animation, kept) in animations.iter_mut().zip(kept) {
        animation.chunks.truncate(kept);
    }
}

/// Bytes of a page that a chunk takes: base64, and the end of its line.
fn html_bytes(bytes: &[u8]) -> usize {
    bytes.len().div_ceil(3) * 4 + 1
}
