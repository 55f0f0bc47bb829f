//! Recording of a network that runs in real time: the thread of its events records, another one compresses.

use super::chunk::{Chunk, CompressedChunks};
use super::recorder::{ChunkForm, RawChunk, Recorder, Room};
use super::recording::Animation;
use super::window::Window;
use crate::map::Map;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hopline_core::{Duration, Instant, NodeId};
use hopline_sim::trace::TraceEvent;
use hopline_sim::{Spec, Tracer};
use serde_json::json;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};

/// Chunks that may wait to be compressed: about 3 MB. If more would, the recording ends.
const WAITING: usize = 64;

/// Time of a chunk of a network that is watched.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Recorder of events. Its last events are handed over when it is dropped.
pub struct LiveRecorder {
    recorder: Recorder,
    now: Instant,
}

impl std::fmt::Debug for LiveRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveRecorder").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Receiver of the chunks of a recorder.
#[derive(Debug)]
pub struct LiveRecording {
    chunks: Receiver<RawChunk>,
    begins: Instant,
    ends: Instant,
}

/// A recording, compressed.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedRecording {
    chunks: Vec<Chunk>,
    reasons: Vec<&'static str>,
    begins: Instant,
    ends: Instant,
}

/// Prepares to record the events of `window` in a run of `spec` of unknown length.
#[must_use]
pub fn live(spec: &Spec, window: Window) -> (LiveRecorder, LiveRecording) {
    let (begins, ends) = (window.begins(), window.ends_or(Instant::FAR_FUTURE));
    let (sender, chunks) = sync_channel(WAITING);
    let recorder = LiveRecorder::new(spec, (begins, ends), ChunkForm::Continued, sender);
    (recorder, LiveRecording { chunks, begins, ends })
}

/// Prepares to watch a run of `spec`.
#[must_use]
pub fn watched(spec: &Spec) -> (LiveRecorder, WatchedNetwork) {
    let (sender, chunks) = sync_channel(WAITING);
    let ends = (Instant::ZERO, Instant::FAR_FUTURE);
    let recorder = LiveRecorder::new(spec, ends, ChunkForm::Whole(WATCH_INTERVAL), sender);
    (recorder, WatchedNetwork { chunks })
}

impl LiveRecorder {
    fn new(spec: &Spec, window: (Instant, Instant), form: ChunkForm, sender: SyncSender<RawChunk>) -> Self {
        let hand_over = move |chunk| match (sender.try_send(chunk), form) {
            (Ok(()), _) => Room::Left,
            // One can be missing where each can be read by itself.
            (Err(TrySendError::Full(_)), ChunkForm::Whole(_)) => Room::Left,
            (Err(_), _) => Room::None,
        };
        Self { recorder: Recorder::new(spec, window, form, Box::new(hand_over)), now: Instant::ZERO }
    }
}

/// Never blocks.
impl Tracer for LiveRecorder {
    fn trace(&mut self, now: Instant, node: NodeId, event: TraceEvent<'_>) {
        self.now = now;
        self.recorder.trace(now, node, event);
    }
}

impl Drop for LiveRecorder {
    fn drop(&mut self) {
        self.recorder.finish(self.now);
    }
}

/// Events of a network that is watched, in the form that the page of [`live`](crate::report::live) reads.
#[derive(Debug)]
pub struct WatchedNetwork {
    chunks: Receiver<RawChunk>,
}

/// News of a network that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Events, as an object of JSON without line breaks.
    Events(String),
    /// None for a while.
    Nothing,
    /// The network has ended.
    End,
}

impl WatchedNetwork {
    /// Waits for events, no longer than `most`.
    pub fn next(&self, most: std::time::Duration) -> Watched {
        match self.chunks.recv_timeout(most) {
            Ok(RawChunk { until_us, rows, reasons, first_frame }) => {
                let rows = STANDARD.encode(rows);
                let chunk =
                    json!({ "until": until_us, "first": first_frame, "rows": rows, "reasons": reasons });
                Watched::Events(chunk.to_string())
            }
            Err(RecvTimeoutError::Timeout) => Watched::Nothing,
            Err(RecvTimeoutError::Disconnected) => Watched::End,
        }
    }
}

impl LiveRecording {
    /// Compresses what comes, as far as it fits a page, until the recorder is dropped.
    #[must_use]
    pub fn collect(self) -> CollectedRecording {
        let mut kept = CompressedChunks::default();
        for chunk in self.chunks {
            if kept.push(chunk) == Room::None {
                break;
            }
        }
        let CompressedChunks { chunks, reasons, .. } = kept;
        CollectedRecording { chunks, reasons, begins: self.begins, ends: self.ends }
    }
}

impl CollectedRecording {
    /// Returns the animation of run number `run` of `spec`, which has its length. `None` if the run ended before the
    /// window began.
    #[must_use]
    pub fn into_animation(self, spec: &Spec, run: u64) -> Option<Animation> {
        let ends = self.ends.min(Instant::ZERO + spec.duration);
        (!self.chunks.is_empty()).then(|| Animation {
            run,
            map: Map::of(spec),
            from_s: self.begins.as_secs_f64(),
            requested_end_s: ends.as_secs_f64(),
            reasons: self.reasons,
            chunks: self.chunks,
        })
    }
}
