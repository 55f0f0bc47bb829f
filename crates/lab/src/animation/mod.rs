//! Animation of the map of a report: frames, losses, drops, queues and routes of a part of a run.
//!
//! [`record`] repeats a run up to the end of the [`Window`], and keeps its events there. Equal specification
//! and run number give an equal run, so that nothing has to be kept during the experiment. The result is
//! compact and bounded: [`fit`] cuts several animations at about the same moment so that together they take
//! no more than [`BUDGET_BYTES`] of a page.

mod chunk;
mod kind;
mod layout;
mod live;
mod recorder;
mod recording;
mod scene;
#[cfg(test)]
mod tests;
mod window;

pub use chunk::BUDGET_BYTES;
use chunk::{CompressedChunks, html_bytes};
pub use live::{CollectedRecording, LiveRecorder, LiveRecording, Watched, WatchedNetwork, live, watched};
pub use recording::Animation;
pub(crate) use scene::distinct_scenes;
pub use window::{Window, WindowError};

use crate::map::Map;
use crate::run::{Interrupted, Observer};
use hopline_core::{Duration, Instant};
use hopline_sim::{Spec, World};
use recorder::{ChunkForm, Recorder};
use std::sync::{Arc, Mutex, PoisonError};

/// Virtual time between two checks for an interruption.
const STEP: Duration = Duration::from_millis(200);

/// Runs `spec` as run number `run` up to the end of `window`, and keeps the events in it, as far as there is
/// room.
///
/// # Errors
///
/// [`Interrupted`], if the watcher interrupts it.
pub fn record(spec: &Spec, run: u64, window: Window, watch: &dyn Observer) -> Result<Animation, Interrupted> {
    let (begins, ends) = (window.begins(), window.ends(spec.duration));
    let kept = Arc::new(Mutex::new(CompressedChunks::default()));
    let theirs = Arc::clone(&kept);
    let chunks = Box::new(move |chunk| lock(&theirs).push(chunk));
    let mut world = World::new(spec, run, Recorder::new(spec, (begins, ends), ChunkForm::Continued, chunks));
    let mut now = Instant::ZERO;
    while now < ends && !lock(&kept).is_full() {
        if watch.interrupted() {
            return Err(Interrupted);
        }
        now = (now + STEP).min(ends);
        world.run_until(now);
    }
    world.finish().1.finish(ends);
    let CompressedChunks { chunks, reasons, .. } = std::mem::take(&mut *lock(&kept));
    Ok(Animation {
        run,
        map: Map::of(spec),
        from_s: begins.as_secs_f64(),
        requested_end_s: ends.as_secs_f64(),
        reasons,
        chunks,
    })
}

/// A panic of the other user shows elsewhere.
fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`record`], cut to the size that fits a page.
///
/// # Errors
///
/// As [`record`].
pub fn single(spec: &Spec, run: u64, window: Window, watch: &dyn Observer) -> Result<Animation, Interrupted> {
    let mut animation = record(spec, run, window, watch)?;
    fit(std::slice::from_mut(&mut animation), BUDGET_BYTES);
    Ok(animation)
}

/// Cuts `animations` at about the same moment, so that they take no more than `budget` bytes of a page.
pub fn fit(animations: &mut [Animation], budget: usize) {
    let mut kept = vec![0; animations.len()];
    let mut bytes = scene::distinct_scenes(animations).0.iter().map(String::len).sum::<usize>();
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
