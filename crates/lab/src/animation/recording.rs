//! Recording of a part of a run, for playback.

use super::chunk::Chunk;
use crate::map::Map;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Recording of a part of a run, for playback.
#[derive(Clone, Debug, PartialEq)]
pub struct Animation {
    /// The number of the run.
    pub run: u64,
    /// The network of that run.
    pub map: Map,
    /// Begin of the recording, seconds of the run.
    pub from_s: f64,
    /// Requested end of the recording, seconds of the run.
    pub requested_end_s: f64,
    /// Reasons of drops, by their numbers in rows.
    pub(crate) reasons: Vec<&'static str>,
    pub(crate) chunks: Vec<Chunk>,
}

impl Animation {
    /// Returns the end of the recording, seconds of the run.
    #[must_use]
    pub fn to_s(&self) -> f64 {
        self.from_s + self.chunks.last().map_or(0.0, |chunk| chunk.until_us as f64 / 1e6)
    }

    /// Returns whether the recording ends before the requested end.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.requested_end_s - self.to_s() > 1e-6
    }

    /// Returns the chunks as text, one line of base64 each.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.chunks.iter().map(|chunk| STANDARD.encode(&chunk.bytes)).collect();
        lines.join("\n")
    }
}
